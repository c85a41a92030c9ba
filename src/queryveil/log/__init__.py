"""The log: who searched for what, when, and what they clicked, as integer tables; and how it is read."""

from queryveil.log.log import NOTHING_LEFT, Facts, Hits, LocalLog, QueryLog, Scrub, Size, local, split_queries

__all__ = ["NOTHING_LEFT", "Facts", "Hits", "LocalLog", "QueryLog", "Scrub", "Size", "local", "split_queries"]
