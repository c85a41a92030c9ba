"""Compiled loops over plain arrays: no I/O, no strings, nothing about logs.

Importing a module of this package imports Numba, so callers import it where they use it.
"""
