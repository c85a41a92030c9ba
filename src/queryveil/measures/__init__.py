"""Measures of what a release keeps and of what it gives away, one file each."""

from queryveil.measures.linkage import record_linkage
from queryveil.measures.srp import Srp, srp

__all__ = ["Srp", "record_linkage", "srp"]
