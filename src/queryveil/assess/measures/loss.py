"""L: how differently users fall into clusters once their log is anonymized.

Montserrat Batet, Arnau Erola, David Sánchez, Jordi Castellà-Roca, Utility preserving query log anonymization via
semantic microaggregation, Information Sciences 242 (2013), formulas 8 and 9.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Floats, Ints, Longs, sampled
from queryveil.assess.measures.notes import beside_random, note_of, noted
from queryveil.assess.measures.random_groups import AboveRandom, activity, permuted, random_records
from queryveil.assess.measures.records import UserRecords, user_records
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.engines.memory import reserve
from queryveil.errors import QueryveilError, parameter
from queryveil.kernels.semantic import ONE
from queryveil.knowledge import Links
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.sharing import shared
from queryveil.methods.microaggregation.common import Searches
from queryveil.methods.microaggregation.interests import Interests, distances, interests_of
from queryveil.release import Release
from queryveil.text.show import percent

Linkage = Literal["average", "ward"]

HALF = 0.5
"""Most of the users who may be in one cluster, if clusters are to separate releases."""
DRAWS = 3
"""How often groups of users are made at random."""


@dataclass(frozen=True, eq=False)
class UserClusters:
    """Users of a log in clusters of like interests.

    Attributes:
        links: Where the queries of the log sit in a tree of topics.
        fingerprint: That of the log.
        users: The users; those without a category have nothing to lose and are not among them.
        cluster: The cluster of each.
        count: How many clusters there are.
        linkage: How they were made.
    """

    links: Links
    fingerprint: str
    users: Longs
    cluster: Ints
    count: int
    linkage: Linkage = "average"

    @property
    def largest(self) -> float:
        """The share of the users who are in the largest cluster."""
        return float(np.bincount(self.cluster).max() / len(self.users))


def user_clusters(
    log: QueryLog,
    links: Links,
    *,
    clusters: int | None = None,
    size: int | None = None,
    most: int = 200,
    sample: int = 5_000,
    seed: int = 0,
    linkage: Linkage = "average",
) -> UserClusters:
    """Cluster the users of a log hierarchically under the semantic distance of Batet et al. 2013.

    Args:
        log: The log.
        links: Where its queries sit in a tree of topics.
        clusters: How many clusters; by default as many as the index of Calinski and Harabasz likes best, at least 2.
            Average linkage parts with outliers first, so that a few clusters may be one large and some tiny ones, which
            say little; look at their sizes.
        size: How many users a cluster has in the mean, instead of how many clusters there are; at least 2 are made.
        most: Most clusters that the index is asked about.
        sample: Most users; of more, some are drawn. All pairs of them are compared.
        seed: Random seed.
        linkage: Which clusters are merged next: those with the least mean distance, as in the paper, or those whose
            squared distances grow least (Ward). Average linkage puts most users of a real log into one cluster; Ward's
            clusters are of about the same size.
    """
    here = local(log, "L")
    for name, value in (("most", most), ("sample", sample), ("clusters", clusters), ("size", size)):
        if value is not None and value < 2:
            raise QueryveilError(f"{parameter('user_clusters', name)} must be at least 2. Got {value} instead.")
    if clusters is not None and size is not None:
        raise QueryveilError("user_clusters takes 'clusters' or 'size', not both.")

    def clustered() -> UserClusters:
        key = ("distances of users", id(links), sample, seed)
        _, users, far = shared(here, key, lambda: _apart(here, links, sample, seed))
        count = clusters if size is None else max(2, len(users) // size)
        if count is not None and count > len(users):
            named = parameter("user_clusters", "clusters")
            raise QueryveilError(f"{named} must be at most the {len(users)} users. Got {count} instead.")
        tree = merges(far, linkage)
        count = count or best_count(far, tree, most)
        return UserClusters(links, here.fingerprint, users, _cut(tree, count), count, linkage)

    # The clusters hold on to the links, so that no others come to have the same id.
    return shared(here, ("clusters of users", id(links), clusters, size, most, sample, seed, linkage), clustered)


def _apart(here: LocalLog, links: Links, sample: int, seed: int) -> tuple[Links, Longs, Floats]:
    """Users, and how far they are from each other; with the links, which must not be let go of before."""
    interests = interests_of(Searches.of(here), links)
    users = np.flatnonzero(interests.sizes)
    if len(users) < 2:
        raise QueryveilError("L needs at least two users with a category; name another taxonomy or linker.")
    users = sampled(users, sample, np.random.default_rng(seed))
    return links, users, _matrix(interests.take(users))


def information_loss(release: Release, original: UserClusters) -> float:
    """L, in per cent: 0 if the users of a release fall into the same clusters as in its log.

    Args:
        release: A release that was just made, because only that knows who is who in it.
        original: The clusters of the log. The release is cut into as many.

    Returns:
        100 (2 - (I(A) + I(B)) / I(A ∩ B)), I being the entropy of a partition. A user who was left out, or whose record
        has no category left, is as far as can be from all who have one.
    """
    return 100 * lost(released_distances(user_records(release, "L"), original), original)


def lost(far: Floats, original: UserClusters) -> float:
    """L, as a share, of released records whose distances are at hand."""
    return partition_distance(original.cluster, _recut(far, original))


def released_distances(found: UserRecords, original: UserClusters) -> Floats:
    """How far the users of the clusters are from each other by their released records."""
    if found.log.fingerprint != original.fingerprint:
        raise QueryveilError("The clusters are those of another log than that of the release.")
    # Users who share a record are as far from everybody as one of them is.
    group = found.group[original.users]
    _, first, of = np.unique(group, return_index=True, return_inverse=True)
    return _distances(found.released.take(original.users[first]), of, original.links)


def any_left(found: UserRecords, original: UserClusters) -> bool:
    """Whether the record of any user has a category left; if none has, L speaks of the log alone."""
    return bool(len(interests_of(found.released.take(original.users), original.links).item))


def cluster_retention(release: Release, original: UserClusters, *, seed: int = 0) -> AboveRandom:
    """1 - L, corrected for groups of users made at random.

    Groups at random are those of `random_records`: of the same sizes as in the release, or its records of single users,
    permuted.

    Args:
        release: A release that was just made, because only that knows who is who in it. Sessions of a user are put
            together.
        original: The clusters of the log.
        seed: Random seed.

    Raises:
        QueryveilError: If more than half of the users of the log are in one cluster, which separates no releases.
    """
    found = user_records(release, "L")
    return cluster_retention_of(found, released_distances(found, original), original, seed)


def cluster_retention_of(found: UserRecords, far: Floats, original: UserClusters, seed: int) -> AboveRandom:
    """Corrected 1 - L of records that are at hand, with their distances."""
    if why := too_large(original):
        raise QueryveilError(why)
    rng = np.random.default_rng(seed)
    mine = _recut(far, original)
    there = np.flatnonzero(found.group[original.users] >= 0)
    band = activity(found.issued.take(original.users))[there]

    def at_random() -> Ints:
        if found.shared:
            return _recut(_distances(*random_records(found, original.users, rng), original.links), original)
        # Users who swap records swap clusters: nothing has to be compared again.
        swapped = mine.copy()
        swapped[there] = permuted(mine[there], band, rng)
        return swapped

    random = [1 - partition_distance(original.cluster, at_random()) for _ in range(DRAWS)]
    return AboveRandom(1 - partition_distance(original.cluster, mine), float(np.mean(random)), len(original.users))


def too_large(original: UserClusters) -> str:
    """Why clusters do not separate releases; nothing if they do."""
    if original.largest <= HALF:
        return ""
    return f"{percent(original.largest)} of the users of the log are in one cluster, which separates no releases."


def _recut(far: Floats, original: UserClusters) -> Ints:
    """The clusters of users by other distances than those in the log: as many, made in the same way."""
    return _cut(merges(far, original.linkage), original.count)


def _distances(records: Searches, of: Longs, links: Links) -> Floats:
    """How far users are from each other by their records; one without a category is as far as can be from all."""
    interests = interests_of(records, links)
    there = np.flatnonzero(interests.sizes)
    reserve(8 * (2 * len(records) ** 2 + len(of) ** 2), "The distances between users")
    far = np.ones((len(records),) * 2)
    if len(there):
        far[np.ix_(there, there)] = _matrix(interests.take(there))
    gone = np.setdiff1d(np.arange(len(far)), there)
    far[np.ix_(gone, gone)] = 0
    return far[np.ix_(of, of)]


def partition_distance(one: Ints, other: Ints) -> float:
    """The distance of two partitions by their entropies, from 0 (the same) to 1 (formula 8)."""
    _, joint = np.unique(np.stack([one, other]), axis=1, return_inverse=True)
    both = _entropy(joint)
    return max(0.0, 2 - (_entropy(one) + _entropy(other)) / both) if both > 0 else 0.0


def _entropy(label: NDArray[np.integer]) -> float:
    share = np.unique(label, return_counts=True)[1] / len(label)
    return float(-(share * np.log2(share)).sum())


def _matrix(interests: Interests) -> Floats:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return distances(interests).matrix(pool.map) / ONE


def merges(far: Floats, method: Linkage) -> Floats:
    """The tree of merges of users, as `scipy.cluster.hierarchy.linkage` gives it."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    if len(far) == 1:
        return np.empty((0, 4))
    return np.asarray(linkage(squareform(far, checks=False), method))


def _cut(tree: Floats, count: int) -> Ints:
    """So many clusters: all merges but the last ones."""
    return _clusters(tree, count)[1]


def _clusters(tree: Floats, count: int) -> tuple[Longs, Ints]:
    """The node of each cluster in the tree of merges, and the cluster of every user."""
    n = len(tree) + 1
    above = np.arange(2 * n - 1)
    for i in range(n - count):
        above[tree[i, :2].astype(np.int64)] = n + i
    for node in range(2 * n - 2, -1, -1):  # a merge is numbered after what it merges
        above[node] = above[above[node]]
    nodes, cluster = np.unique(above[:n], return_inverse=True)
    return nodes, cluster.astype(np.int32)


def best_count(far: Floats, tree: Floats, most: int) -> int:
    """The number of clusters with the highest index of Calinski and Harabasz, of equals the least.

    Sums of squares about a mean are those of the squared distances of all pairs, divided by the number of users, so
    that no mean is needed.

    Args:
        far: The distances of users.
        tree: Their merges, as `scipy.cluster.hierarchy.linkage` gives them.
        most: Most clusters.
    """
    n = len(far)
    if n < 3:
        return 1
    count = min(most, n - 1)
    nodes, cluster = _clusters(tree, count)
    order = np.argsort(cluster, kind="stable")
    start = np.searchsorted(cluster[order], np.arange(count))
    squares = np.add.reduceat((far**2)[order], start, axis=0)
    between = np.add.reduceat(squares[:, order], start, axis=1)
    size = np.bincount(cluster).astype(float)
    place = {int(node): i for i, node in enumerate(nodes)}
    total = between.sum() / (2 * n)
    best, found = -np.inf, 1
    while count > 1:
        within = (np.diag(between)[size > 0] / (2 * size[size > 0])).sum()
        index = np.inf if within == 0 else (total - within) / (count - 1) / (within / (n - count))
        if index >= best:
            best, found = index, count
        merge = n - count
        a, b = (place.pop(int(node)) for node in tree[merge, :2])
        between[a] += between[b]
        between[:, a] += between[:, b]
        size[a] += size[b]
        size[b] = 0
        place[n + merge] = a
        count -= 1
    return found


SAMPLE = 2_000
"""Most users that L looks at."""
CLUSTER = 10
"""Users of a cluster in the mean, for L. Of fewer each, nearly all are alone, and every release has the same L."""


@dataclass(frozen=True, eq=False)
class _Clustered:
    """What L and the cluster retention of a release have in common."""

    average: UserClusters
    ward: UserClusters
    far: Floats


def _clustered_users(on: Assessment) -> _Clustered:
    """The clusters of users, and how far their released records are from them."""

    def make() -> _Clustered:
        records = on.records
        average, ward = (
            user_clusters(on.log, on.phrases, size=CLUSTER, sample=SAMPLE, seed=on.seed, linkage=linkage)
            for linkage in ("average", "ward")
        )
        if not any_left(records, average):
            raise QueryveilError("no released record has a category")
        return _Clustered(average, ward, released_distances(records, average))

    return on.once("clusters", make)


@measure(
    "information_loss",
    label="information loss (L)",
    summary="share of users who fall into another cluster by their released record (L)",
    group="profiles",
    better="lower",
)
def information_loss_of_clusters(on: Assessment) -> Iterator[Value]:
    """How many users fall into another cluster by their released record."""
    found = _clustered_users(on)
    unclear = too_large(found.average)
    yield Value(lost(found.far, found.average), noted(unclear, note_of(on)), separates=not unclear)


@measure(
    "cluster_retention",
    label="cluster retention above random groups (1 - L)",
    summary="share of users who stay in their cluster, above what random groups keep (1 - L)",
    group="profiles",
)
def cluster_retention_above_random(on: Assessment) -> Iterator[Value]:
    """How many users stay in their cluster, beyond what random groups of users keep."""
    found = _clustered_users(on)
    ward = found.ward
    kept = cluster_retention_of(on.records, found.far, ward, on.seed)
    why = f"{ward.count:,} clusters of {len(ward.users):,} users by Ward's method; {beside_random(kept)}"
    yield Value(kept.value, noted(why, note_of(on)))
