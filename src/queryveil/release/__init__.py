"""The release: the released table, its manifest, its report, and the folder that holds them."""

from queryveil.release.release import (
    MANIFEST,
    REPORT,
    Release,
    check_claims,
    check_loaded,
    check_log,
    check_target,
    counts_of,
    loaded,
    made_from,
    with_user_map,
)

__all__ = [
    "MANIFEST",
    "REPORT",
    "Release",
    "check_claims",
    "check_loaded",
    "check_log",
    "check_target",
    "counts_of",
    "loaded",
    "made_from",
    "with_user_map",
]
