"""Ratios against peers, measured in the same run."""
