"""Measures of what a release keeps, one file each."""

from queryveil.measures.srp import Srp, srp

__all__ = ["Srp", "srp"]
