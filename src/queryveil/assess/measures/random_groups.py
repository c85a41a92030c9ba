"""What a measure of users' records finds in groups of users made at random: the floor that it is corrected for."""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Longs, offsets
from queryveil.assess.measures.records import UserRecords
from queryveil.methods.microaggregation.common import Searches
from queryveil.methods.microaggregation.record_tables import contributions

N = TypeVar("N", bound=np.integer)

BANDS, LEAST = 20, 100
"""Bands of users by how active they are, and least users of one; of fewer users there are fewer bands."""


@dataclass(frozen=True)
class AboveRandom:
    """A measure that is 1 for the log itself, corrected for groups of users made at random.

    Attributes:
        kept: What the release has.
        random: What groups at random have, the mean over some draws.
        users: How many users this was measured on.
    """

    kept: float
    random: float
    users: int

    @property
    def value(self) -> float:
        """0 for groups at random, 1 for the log itself; not a number where groups at random keep everything."""
        return (self.kept - self.random) / (1 - self.random) if self.random < 1 else math.nan


def activity(issued: Searches) -> Longs:
    """The band of every user by the number of their events, at most twenty with as many users each.

    Without bands, somebody with a few queries would get into groups with very active users. The record of such a group
    is so large that it covers all they ever searched for, and groups at random would seem to keep more than groups of
    similar users, who are similarly active.
    """
    n = len(issued)
    rank = np.empty(n, np.int64)
    rank[np.argsort(issued.events, kind="stable")] = np.arange(n)
    return rank * max(1, min(BANDS, n // LEAST)) // n


def permuted(values: NDArray[N], band: Longs, rng: np.random.Generator) -> NDArray[N]:
    """Values of users, permuted at random among the users of each band."""
    found = np.empty_like(values)
    found[np.argsort(band, kind="stable")] = values[np.lexsort((rng.random(len(values)), band))]
    return found


def random_records(found: UserRecords, users: Longs, rng: np.random.Generator) -> tuple[Searches, Longs]:
    """The records of some users, had chance decided who is behind each record of a release.

    Records that users share are made anew: groups of the same sizes, of random users who each give their share of
    queries, as users do in the release. Records of single users are permuted among those who have one. Users take
    the place of others who are about as active, see `permuted`. Who was left out is left out again.

    Args:
        found: The records as they were released.
        users: For whom.
        rng: The source of randomness.

    Returns:
        Records, and which of them each of the users has.
    """
    there = np.flatnonzero(found.group >= 0)
    band = activity(found.issued)[there]
    if not found.shared:
        owner = np.arange(len(found.group))
        owner[there] = permuted(there, band, rng)
        return found.released.take(owner[users]), np.arange(len(users))
    group = np.full(len(found.group), -1, np.int64)
    group[there] = permuted(found.group[there], band, rng)
    return group_records(found.given, group, users, rng, by_repetition=found.by_repetition)


def group_records(
    issued: Searches, group: Longs, users: Longs, rng: np.random.Generator, *, by_repetition: bool
) -> tuple[Searches, Longs]:
    """The records that groups of users have in common, and which of them each of some users has.

    Args:
        issued: The queries of each user.
        group: The group of each user; -1 for one who has no record.
        users: For whom. Groups without any of them are not made.
        rng: The source of randomness.
        by_repetition: Whether users give the queries that they repeat most, or any.
    """
    made = np.unique(group[users][group[users] >= 0])
    place = np.full(int(group.max(initial=-1)) + 2, -1, np.int64)  # the last place is that of no group, -1
    place[made] = np.arange(len(made))
    mine = place[group]
    members = np.flatnonzero(mine >= 0)
    of = np.where(mine[users] >= 0, mine[users], len(made))  # after all records stands an empty one
    if not len(members):
        return Searches(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)), of
    some, group_of = issued.take(members), mine[members].astype(np.int32)
    draw = rng.integers(np.iinfo(np.uint64).max, size=len(some.query), dtype=np.uint64, endpoint=True)
    _, taken = contributions(some.start, some.times, draw, group_of, by_repetition=by_repetition)
    given = np.flatnonzero(taken)
    pairs, at = np.unique(group_of[some.owners[given]].astype(np.int64) << 32 | some.query[given], return_inverse=True)
    times = np.bincount(at, weights=taken[given]).astype(np.int64)
    size = np.bincount(pairs >> 32, minlength=len(made) + 1)
    return Searches(offsets(size), (pairs & 0xFFFFFFFF).astype(np.int32), times), of
