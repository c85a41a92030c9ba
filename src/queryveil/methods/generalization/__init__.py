"""Generalization: queries become nodes of a tree that enough users share."""
