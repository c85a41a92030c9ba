"""The release: the released table, its manifest, its report, and the folder that holds them."""

from queryveil.release.checks import (
    check_claims,
    check_log,
    evidence_of,
    is_click,
    loaded,
    loaded_release,
    made_from,
    scrub_again,
)
from queryveil.release.manifest import counts_of
from queryveil.release.release import Release
from queryveil.release.store import MANIFEST, REPORT, SCHEMA, check_target
from queryveil.release.user_map import as_of, with_user_map

__all__ = [
    "MANIFEST",
    "REPORT",
    "SCHEMA",
    "Release",
    "as_of",
    "check_claims",
    "check_log",
    "check_target",
    "counts_of",
    "evidence_of",
    "is_click",
    "loaded",
    "loaded_release",
    "made_from",
    "scrub_again",
    "with_user_map",
]
