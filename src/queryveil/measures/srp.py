"""SRP: the semantic remain percentage, per level of a tree of topics.

Arnau Erola, Jordi Castellà-Roca, Guillermo Navarro-Arribas, Vicenç Torra, Semantic microaggregation for the
anonymization of query logs using the open directory project, SORT 35 (2011), formula 4.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from queryveil.knowledge import Links
from queryveil.measures.records import records
from queryveil.methods.microaggregation import Profiles, Searches
from queryveil.release import Release

BEST = 100


@dataclass(frozen=True)
class Srp:
    """What is left of the users' interests on one level."""

    level: int
    users: int
    """Users with a category on that level; the others have nothing to lose and are not counted."""
    mean: float
    """Not a number if there is no such user."""
    best: float
    """The mean of the 100 users with the highest share."""


def srp(release: Release, links: Links, levels: int = 5) -> list[Srp]:
    """The share of each user's categories that his released record still has, mean over users, per level.

    Args:
        release: A release that was just made, because only that knows who is who in it.
        links: Where the queries of its log sit in a tree of topics.
        levels: The deepest level to measure.

    Returns:
        For each level: the sum over its categories c of min(n_original(c), n_released(c)), divided by that of
        n_original(c). The log as it is has 1; groups made by lot have 1/k if nobody shares an interest, else more.
    """
    log, released = records(release, "SRP")
    shares = kept_shares(
        Profiles.of(Searches.of(log), links, levels), Profiles.of(released, links, levels), links.taxonomy.depth, levels
    )
    found = []
    for level, share in enumerate(shares, 1):
        some = np.sort(share[~np.isnan(share)])[::-1]
        found.append(Srp(level, len(some), _mean(some), _mean(some[:BEST])))
    return found


def kept_shares(
    original: Profiles, released: Profiles, depth: NDArray[np.int32], levels: int
) -> list[NDArray[np.float64]]:
    """For every level, the share of each user's categories that is left; not a number for a user without any."""
    users = len(original.start) - 1
    mine, theirs = _keys(original), _keys(released)
    place = np.searchsorted(theirs, mine)
    there = np.append(theirs, -1)[place] == mine
    left = np.minimum(original.count, np.append(released.count, 0)[place]) * there
    user, level = mine >> 32, depth[original.feature]
    shares = []
    for wanted in range(1, levels + 1):
        here = level == wanted
        total = np.bincount(user[here], weights=original.count[here], minlength=users)
        kept = np.bincount(user[here], weights=left[here], minlength=users)
        shares.append(np.divide(kept, total, out=np.full(users, np.nan), where=total > 0))
    return shares


def _keys(profiles: Profiles) -> NDArray[np.int64]:
    return profiles.user << 32 | profiles.feature


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")
