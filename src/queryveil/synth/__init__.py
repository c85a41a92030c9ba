"""Synthetic query logs: a seeded, AOL-like log with planted truth.

>>> from queryveil.synth import generate
>>> generate("log.tsv.gz", users=1000, seed=1)  # doctest: +SKIP
Summary(users=1000, events=..., rows=..., clicks=...)
"""

from collections.abc import Callable
from pathlib import Path

from queryveil.errors import QueryveilError
from queryveil.synth.calibrate import Figure, calibrate
from queryveil.synth.summary import Summary

__all__ = ["FEWEST_USERS", "MOST_USERS", "Figure", "Summary", "calibrate", "generate"]

FEWEST_USERS = 100
MOST_USERS = 5_000_000
ENDINGS = (".tsv", ".tsv.gz", ".tsv.zst", ".parquet")


def generate(
    path: str | Path,
    *,
    users: int,
    seed: int = 0,
    truth: str | Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Write a synthetic query log.

    The same seed gives the same bytes, whatever the number of threads. Memory does not grow with the number
    of users.

    Args:
        path: where to; the ending decides the format: `.tsv`, `.tsv.gz`, `.tsv.zst` (AOL) or `.parquet`.
        users: how many users, from 100 to 5,000,000; about 56 rows each.
        seed: any whole number from 0 to 2**63 - 1.
        truth: a folder for what only measuring may read: `queries.parquet`, and the directory of topics
            and sites as `structure.rdf.u8` and `content.rdf.u8`.
        overwrite: replace what is there.
        progress: called with the users done and the users in all.

    Raises:
        QueryveilError: a parameter is out of bounds, the target exists, or it cannot be written.
    """
    path = Path(path)
    truth = Path(truth) if truth is not None else None
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), None)
    if ending is None:
        raise QueryveilError(f"The name of a synthetic log must end in {', '.join(ENDINGS)}. Got {path.name} instead.")
    if not FEWEST_USERS <= users <= MOST_USERS:
        raise QueryveilError(
            f"The 'users' parameter of a synthetic log must be from {FEWEST_USERS:,} to {MOST_USERS:,}. "
            f"Got {users:,} instead."
        )
    if not 0 <= seed < 1 << 63:
        raise QueryveilError(
            f"The 'seed' parameter of a synthetic log must be from 0 to 2**63 - 1. Got {seed} instead."
        )
    for target in filter(None, (path, truth)):
        if target.exists() and not overwrite:
            raise QueryveilError(f"{target} exists; choose another name, or replace it with --overwrite.")
        if not target.parent.is_dir():
            raise QueryveilError(f"{target} cannot be written, because the folder {target.parent} does not exist.")
    if path.is_dir():
        raise QueryveilError(f"{path} is a folder; give the name of a file.")
    if truth is not None and truth.exists() and not truth.is_dir():
        raise QueryveilError(f"{truth} is a file; give the name of a folder for the truth.")

    from queryveil.synth.make import make  # loads numba, which takes a second

    return make(path, ending, truth, users, seed, progress, overwrite=overwrite)
