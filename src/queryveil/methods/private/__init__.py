"""Differential privacy: noise and thresholds, for counts and for sets of queries."""
