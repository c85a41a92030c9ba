"""Affinity: queries that are similar enough vouch for each other."""
