"""How much the categories of a user vary, before and after: the variance of hierarchical nominal attributes.

Josep Domingo-Ferrer, Agusti Solanas, A measure of variance for hierarchical nominal attributes, Information Sciences
178 (2008), with the erratum in 179 (2009). Erola et al. 2011 name it for the evaluation of their method (section 6).

Every category becomes a number whose digits are the children on its path. The child that holds most of a sample has the
middle digit, and rarer ones have digits farther off. The variance is that of the digits, those of upper levels weighing
more: for trees with at most b children of a node, b squared times as much as those of the next level.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from queryveil.arrays import Floats
from queryveil.assess.measures.notes import note_of, noted
from queryveil.assess.measures.records import UserRecords, user_records
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.errors import QueryveilError
from queryveil.knowledge import Links
from queryveil.methods.microaggregation.common import Profiles, Searches
from queryveil.release import Release

_EXACT = 1e-12
"""What levels may weigh together that are left out."""


@dataclass(frozen=True)
class VarianceRetention:
    """How near the variance of users' released categories is to that of the categories they searched for."""

    mean: float
    """Mean over users of the smaller variance divided by the larger; 1 where both are 0."""
    users: int
    """Users with a category in the log; the others have nothing to lose and are not counted."""
    times: float
    """How many times as much a record varies in the median, of users whose own categories vary."""


def variance_retention(release: Release, links: Links) -> VarianceRetention:
    """How near the variance of each user's released categories is to that of their own, mean over users.

    Args:
        release: A release that was just made, because only that knows who is who in it. Sessions of a user are put
            together.
        links: Where the queries of its log sit in a tree of topics.
    """
    return variance_retention_of(user_records(release, "The variance of categories"), links)


def variance_retention_of(found: UserRecords, links: Links) -> VarianceRetention:
    """The same of records that are at hand."""
    issued, released = (nominal_variance(records, links) for records in (found.issued, found.released))
    known = ~np.isnan(issued)
    before, after = issued[known], released[known]
    more, less = np.fmax(before, after), np.minimum(before, after)
    with np.errstate(invalid="ignore", divide="ignore"):
        # A user who was left out, or whose record has no category, keeps nothing.
        share = np.where(np.isnan(after), 0.0, np.where(more > 0, less / more, 1.0))
        times = (after / before)[(before > 0) & ~np.isnan(after)]
    return VarianceRetention(
        float(share.mean()) if len(share) else math.nan,
        int(known.sum()),
        float(np.median(times)) if len(times) else math.nan,
    )


def nominal_variance(searches: Searches, links: Links) -> Floats:
    """The population variance of the categories of each user, in units of the most significant digit.

    The squares are divided by the number of searches, not by one less. Users whose searches all have one category have
    0, and those without a category are not a number. The paper counts in units of the least significant digit; so its
    numbers depend on the depth of the sample, and cannot be compared.
    """
    tree = links.tree
    b = int(np.bincount(tree.parent[1:], minlength=1).max(initial=1)) if len(tree) > 1 else 1
    # A digit varies by at most b squared, and the next level weighs as much less: deeper ones make no difference.
    depth = tree.height if b == 1 else min(tree.height, 1 + math.ceil(-math.log(_EXACT) / (2 * math.log(b))))
    profiles = Profiles.of(searches, links, max(depth, 1))
    user, node, count = profiles.owners, profiles.feature, profiles.count.astype(np.float64)
    digit = _digits(user, tree.parent[node], node, profiles.count)
    total = np.bincount(user, count * (tree.depth[node] == 1), minlength=len(profiles))
    variance: Floats = np.zeros(len(profiles))
    with np.errstate(invalid="ignore", divide="ignore"):
        for level in range(1, depth + 1):
            # A category above the level has the middle digit there, which is 0 here.
            here = tree.depth[node] == level
            first, second = (
                np.bincount(user[here], count[here] * digit[here] ** power, minlength=len(profiles)) / total
                for power in (1, 2)
            )
            variance += (second - first**2) / float(b) ** (2 * (level - 1))
    return np.where(total > 0, np.maximum(variance, 0.0), np.nan)


def _digits(user: np.ndarray, parent: np.ndarray, node: np.ndarray, count: np.ndarray) -> Floats:
    """The digit of every category of a user, from the middle: 0 for the child with most searches, then 1, -1, 2, ..."""
    order = np.lexsort((node, -count, parent, user))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(user[order]) != 0) | (np.diff(parent[order]) != 0)
    first = np.flatnonzero(fresh)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    away: Floats = np.where(rank % 2 == 1, (rank + 1) // 2, -(rank // 2)).astype(np.float64)
    return away


@measure("variance_retention", label="variance of users' categories kept", group="profiles")
def variance_kept(on: Assessment) -> Iterator[Value]:
    """How near the variance of each user's categories stays to that of their own (Domingo-Ferrer and Solanas 2008)."""
    kept = variance_retention_of(on.records, on.terms)
    if not kept.users:
        raise QueryveilError("no user of the log has a category; name another taxonomy")
    times = "" if math.isnan(kept.times) else f"in the median, a record varies {kept.times:.2f} times as much"
    yield Value(kept.mean, noted(times, note_of(on)))
