"""The log: who searched for what, when, and what they clicked, as integer tables; and how it is read."""

from queryveil.log.local import NOTHING_LEFT, NOTHING_SELECTED, LocalLog, local, refusal, split_queries
from queryveil.log.log import Part, QueryLog, check_is_log
from queryveil.log.stats import Hits, LogStats, Scrub, SeriesPlace, Size, Spent, Viewed

__all__ = [
    "NOTHING_LEFT",
    "NOTHING_SELECTED",
    "Hits",
    "LocalLog",
    "LogStats",
    "Part",
    "QueryLog",
    "Scrub",
    "SeriesPlace",
    "Size",
    "Spent",
    "Viewed",
    "check_is_log",
    "local",
    "refusal",
    "split_queries",
]
