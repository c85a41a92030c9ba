"""SRP: the semantic remain percentage, per level of a tree of topics.

Arnau Erola, Jordi Castellà-Roca, Guillermo Navarro-Arribas, Vicenç Torra, Semantic microaggregation for the
anonymization of query logs using the open directory project, SORT 35 (2011), formula 4.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from queryveil.arrays import Floats, Ints, Longs, sampled
from queryveil.assess.measures.notes import beside_random, note_of, noted
from queryveil.assess.measures.random_groups import AboveRandom, group_records, random_records
from queryveil.assess.measures.records import UserRecords, user_records
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.errors import QueryveilError
from queryveil.knowledge import Links
from queryveil.log import QueryLog, local
from queryveil.log.sharing import shared
from queryveil.methods.microaggregation.common import Profiles, Searches
from queryveil.release import Release

BEST = 100
SAMPLE = 2_000
"""Most users whose records are made at random, so that the cost does not grow with the log."""
DRAWS = 5
"""How often groups are made at random."""
GROUP = 5
"""Users of the random groups that a level is judged by."""
USERS = 10
"""Least users with a category on a level that separates releases."""
HALF = 0.5
"""Most that such groups may keep on a level that separates releases."""


@dataclass(frozen=True)
class Srp:
    """Profile retention on one level."""

    level: int
    users: int
    """Users with a category on that level; the others have nothing to lose and are not counted."""
    mean: float
    """Not a number if there is no such user."""
    best: float
    """The mean of the 100 users with the highest share."""


def srp(release: Release, links: Links, levels: int = 5) -> list[Srp]:
    """The share of each user's categories that their released record still has, mean over users, per level.

    Args:
        release: A release that was just made, because only that knows who is who in it. Sessions of a user are put
            together.
        links: Where the queries of its log sit in a tree of topics.
        levels: The deepest level to measure.

    Returns:
        For each level: the sum over its categories c of min(n_original(c), n_released(c)), divided by that of
        n_original(c). The log as it is has 1; groups made at random have 1/k if nobody shares an interest, else more.
    """
    return srp_of(user_records(release, "SRP"), links, levels)


def srp_of(found: UserRecords, links: Links, levels: int, users: Longs | None = None) -> list[Srp]:
    """SRP of records that are at hand, of all users or of some."""
    released = Profiles.of(found.released, links, levels)
    shares = kept_shares(Profiles.of(found.issued, links, levels), released, links.tree.depth, levels)
    rows = []
    for level, share in enumerate(shares, 1):
        some = share if users is None else share[users]
        some = np.sort(some[~np.isnan(some)])[::-1]
        rows.append(Srp(level, len(some), _mean(some), _mean(some[:BEST])))
    return rows


@dataclass(frozen=True)
class ProfileRetention(AboveRandom):
    """SRP on one level, corrected for groups of users made at random."""

    level: int
    """The first on which groups at random keep at most half."""


def profile_retention(release: Release, links: Links, *, seed: int = 0) -> ProfileRetention:
    """SRP corrected for groups at random, on the first level of the tree that separates releases.

    Groups at random are those of `random_records`: of the same sizes as in the release, or its records of single users,
    permuted. At most 2,000 users are looked at.

    Args:
        release: A release that was just made, because only that knows who is who in it. Sessions of a user are put
            together.
        links: Where the queries of its log sit in a tree of topics.
        seed: Random seed.

    Raises:
        QueryveilError: If no level separates releases, see `separating_level`.
    """
    return profile_retention_of(user_records(release, "SRP"), links, seed)


def profile_retention_of(found: UserRecords, links: Links, seed: int) -> ProfileRetention:
    """Corrected SRP of records that are at hand."""
    level = separating_level(found.log, links, seed=seed)
    rng = np.random.default_rng(seed)
    users = sampled(np.arange(found.log.n_users), SAMPLE, rng)
    issued = Profiles.of(found.issued.take(users), links, level)

    def shares(records: Searches, of: Longs) -> Floats:
        released = Profiles.of(records, links, level).take(of)
        return kept_shares(issued, released, links.tree.depth, level)[-1]

    kept = shares(found.released.take(users), np.arange(len(users)))
    random = [shares(*random_records(found, users, rng)) for _ in range(DRAWS)]
    return ProfileRetention(float(np.nanmean(kept)), float(np.nanmean(random)), int((~np.isnan(kept)).sum()), level)


def separating_level(log: QueryLog, links: Links, *, seed: int = 0) -> int:
    """The first level of a tree of topics with enough categories to distinguish releases from random groups.

    It depends on the log alone, so that all of its releases are measured on the same level: the first on which groups
    of five users made at random keep at most half of the users' categories. At least half of the users who have a
    category, and at least ten, must have one there.

    Args:
        log: The log.
        links: Where its queries sit in a tree of topics.
        seed: Random seed, also of the at most 2,000 users who are looked at.

    Raises:
        QueryveilError: If there is no such level.
    """
    here = local(log, "SRP")
    # What is kept holds on to the links, so that no others come to have the same id.
    level, _ = shared(
        here, ("separating level", id(links), seed), lambda: (_separating(Searches.of(here), links, seed), links)
    )
    if level is None:
        raise QueryveilError(
            f"No level of the taxonomy separates releases: on each, groups of {GROUP} users at random keep more than"
            f" half of their profiles, or too few users have a category (fewer than half of them, or than {USERS})."
        )
    return level


def _separating(issued: Searches, links: Links, seed: int) -> int | None:
    rng = np.random.default_rng(seed)
    some = issued.take(sampled(np.arange(len(issued)), SAMPLE, rng))
    n, height = len(some), links.tree.height
    profiles = Profiles.of(some, links, height)
    draws = []
    for _ in range(DRAWS):
        group = np.minimum(rng.permutation(n) // GROUP, max(n // GROUP - 1, 0))
        records, of = group_records(some, group, np.arange(n), rng, by_repetition=False)
        released = Profiles.of(records, links, height).take(of)
        draws.append(kept_shares(profiles, released, links.tree.depth, height))
    linked = int(profiles.linked.sum())
    for level, shares in enumerate(zip(*draws, strict=True), 1):
        there = int((~np.isnan(shares[0])).sum())
        if there >= max(USERS, linked / 2) and np.nanmean(shares) <= HALF:
            return level
    return None


def kept_shares(original: Profiles, released: Profiles, depth: Ints, levels: int) -> list[Floats]:
    """For every level, the share of each user's categories that is left; not a number for a user without any."""
    users = len(original)
    mine, theirs = _keys(original), _keys(released)
    place = np.searchsorted(theirs, mine)
    there = np.append(theirs, -1)[place] == mine
    left = np.minimum(original.count, np.append(released.count, 0)[place]) * there
    user, level = mine >> 32, depth[original.feature]
    shares = []
    for one in range(1, levels + 1):
        here = level == one
        total = np.bincount(user[here], weights=original.count[here], minlength=users)
        kept = np.bincount(user[here], weights=left[here], minlength=users)
        shares.append(np.divide(kept, total, out=np.full(users, np.nan), where=total > 0))
    return shares


def _keys(profiles: Profiles) -> Longs:
    return profiles.owners << 32 | profiles.feature


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


@measure(
    "srp",
    label="profile retention (SRP)",
    summary="how much of each user's profile of topics is kept (SRP)",
    group="profiles",
)
def srp_by_level(on: Assessment) -> Iterator[Value]:
    """How much of each user's profile is kept, on the first levels of the taxonomy (Erola et al. 2011, section 5)."""
    levels = range(1, min(2, on.taxonomy.tree.height) + 1)
    try:
        found = srp_of(on.records, on.terms, len(levels))
    except QueryveilError as error:
        yield from (Value(None, str(error), f"level {level}") for level in levels)
        return
    for level, kept in zip(levels, found, strict=True):
        why = note_of(on) if kept.users else "no user of the log has a category on this level; name another taxonomy"
        yield Value(kept.mean if kept.users else None, why, f"level {level}")


@measure(
    "profile_retention",
    label="profile retention above random groups (SRP)",
    summary="how much of each user's profile of topics is kept, above what random groups keep (SRP)",
    group="profiles",
)
def profile_retention_above_random(on: Assessment) -> Iterator[Value]:
    """How much of each user's profile is kept, beyond what random groups of users keep."""
    kept = profile_retention_of(on.records, on.terms, on.seed)
    why = (
        f"level {kept.level} of the taxonomy, the first on which random groups of {GROUP} users keep at most half;"
        f" {beside_random(kept)}"
    )
    yield Value(kept.value, noted(why, note_of(on)))
