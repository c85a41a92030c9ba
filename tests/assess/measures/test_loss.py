"""L: clusters and the distance of partitions against the literal ones, and what it says of releases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.measures import cluster_retention, information_loss, user_clusters
from queryveil.assess.measures.loss import (
    _cut,
    _distances,
    best_count,
    merges,
    partition_distance,
    released_distances,
)
from queryveil.assess.measures.records import user_records
from queryveil.errors import QueryveilError
from tests.assess.attacks.helpers import identity, shuffled, together
from tests.methods.microaggregation.test_common import WORDS, read, taxonomy
from tests.oracles import clusters as oracle

__all__ = ["taxonomy"]  # a fixture


@given(st.integers(3, 12), st.integers(0, 10_000))
def test_clusters_are_those_of_the_literal_algorithm(n, seed):
    points = np.random.default_rng(seed).random((n, 2))
    far = np.linalg.norm(points[:, None] - points[None], axis=2)
    tree = merges(far, "average")
    indices = {}
    for count in range(2, n):
        expected = oracle.average_linkage(far.tolist(), count)
        label = _cut(tree, count)
        assert sorted(np.flatnonzero(label == c).tolist() for c in range(count)) == expected
        indices[count] = oracle.calinski_harabasz(far.tolist(), expected)
    best = best_count(far, tree, n)
    assert indices[best] == pytest.approx(max(indices.values()))
    assert 2 <= best_count(far, tree, 3) <= 3


@given(st.integers(3, 10), st.integers(0, 10_000))
def test_clusters_by_ward_are_those_of_the_literal_algorithm(n, seed):
    """Of distances that are no distances in space too: those of users are not."""
    far = np.triu(np.random.default_rng(seed).random((n, n)), 1)
    far += far.T
    tree = merges(far, "ward")
    for count in range(1, n + 1):
        label = _cut(tree, count)
        assert sorted(np.flatnonzero(label == c).tolist() for c in range(count)) == oracle.ward(far.tolist(), count)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_the_distance_of_partitions_is_the_formula(pairs):
    one, other = (np.array(labels, np.int32) for labels in zip(*pairs, strict=True))
    found = partition_distance(one, other)
    assert found == pytest.approx(oracle.partition_distance(one.tolist(), other.tolist()), abs=1e-9)
    assert 0 <= found <= 1
    assert partition_distance(one, (one * 7 + 1) % 31) == 0


@pytest.fixture(scope="module")
def log():
    """Four interests of ten users each, more or less."""
    rng = np.random.default_rng(2)
    return read(
        [(u, WORDS[int(rng.choice([u % 4, rng.integers(4)], p=[0.9, 0.1]))], 0) for u in range(40) for _ in range(6)]
    )


def test_the_log_as_it_is_loses_nothing(taxonomy, log):
    clusters = user_clusters(log, qv.categorize(log, taxonomy, "terms"))
    assert clusters.count > 1
    assert information_loss(qv.Rules(max_characters=1000, link="user").anonymize(log), clusters) == 0


def test_like_users_lose_less_than_users_thrown_together(taxonomy, log):
    from queryveil.methods.microaggregation.common import Searches

    links = qv.categorize(log, taxonomy, "terms")
    clusters = user_clusters(log, links, clusters=4)
    assert len(set(clusters.cluster.tolist())) == 4
    alike = qv.Mdav(k=3, taxonomy=taxonomy, linker="terms").anonymize(log)
    thrown = np.random.default_rng(1).permutation(40).astype(np.int32) % 10
    random_queries = qv.Odp(k=4).release_groups(log, Searches.of(log), thrown, parts=0, seed=1, notes=[])
    assert information_loss(alike, clusters) < information_loss(random_queries, clusters) - 20


def test_users_who_are_gone_are_a_loss(taxonomy, log):
    clusters = user_clusters(log, qv.categorize(log, taxonomy, "terms"), clusters=4)
    release = qv.Equality(k=40, link="user").anonymize(log)
    assert release.manifest.counts.users < 40
    assert information_loss(release, clusters) > 0


def test_clusters_by_their_mean_size(taxonomy, log):
    links = qv.categorize(log, taxonomy, "terms")
    assert [user_clusters(log, links, size=size).count for size in (4, 9, 40)] == [10, 4, 2]


def test_a_sample_of_users(taxonomy, log):
    links = qv.categorize(log, taxonomy, "terms")
    some = user_clusters(log, links, sample=12, seed=3)
    assert len(some.users) == 12
    assert user_clusters(log, links, sample=12, seed=3).users.tolist() == some.users.tolist()
    assert information_loss(qv.Rules(max_characters=1000, link="user").anonymize(log), some) == 0


def test_what_cannot_be_clustered(taxonomy, log):
    links = qv.categorize(log, taxonomy, "terms")
    with pytest.raises(QueryveilError, match=r"'clusters' .* must be at most the 40 users\. Got 41 instead"):
        user_clusters(log, links, clusters=41)
    with pytest.raises(QueryveilError, match="takes 'clusters' or 'size', not both"):
        user_clusters(log, links, clusters=4, size=10)
    for name in ("most", "sample", "clusters", "size"):
        with pytest.raises(
            QueryveilError, match=f"'{name}' parameter of user_clusters must be at least 2. Got 1 instead"
        ):
            user_clusters(log, links, **{name: 1})
    lone = read([(0, "alpha", 0), (1, "unknown", 0)])
    with pytest.raises(QueryveilError, match="L needs at least two users with a category"):
        user_clusters(lone, qv.categorize(lone, taxonomy, "terms"))
    with pytest.raises(QueryveilError, match="L needs a release that was just made"):
        information_loss(qv.Equality(k=2, link="none").anonymize(log), user_clusters(log, links))


def test_clusters_of_another_log_are_refused(taxonomy, log):
    other = read([(u, WORDS[u % 4], 0) for u in range(40)])
    clusters = user_clusters(other, qv.categorize(other, taxonomy, "terms"), clusters=4)
    with pytest.raises(QueryveilError, match="The clusters are those of another log"):
        information_loss(qv.Rules(max_characters=1000, link="user").anonymize(log), clusters)


def test_a_compact_release_loses_as_much(taxonomy, log):
    clusters = user_clusters(log, qv.categorize(log, taxonomy, "terms"), clusters=6)
    lost = [
        information_loss(qv.Mdav(k=3, taxonomy=taxonomy, linker="terms", compact=compact).anonymize(log), clusters)
        for compact in (False, True)
    ]
    assert lost[0] == lost[1]


@pytest.mark.parametrize("compact", [False, True])
def test_users_who_share_a_record_are_compared_once(taxonomy, log, compact):
    """The distances are those of every user's record by itself, also of users who are left out."""
    clusters = user_clusters(log, qv.categorize(log, taxonomy, "terms"), clusters=4)
    release = qv.Mdav(k=3, taxonomy=taxonomy, linker="terms", compact=compact).anonymize(log)
    found = user_records(release, "a test")
    each = _distances(found.released.take(clusters.users), np.arange(len(clusters.users)), clusters.links)
    assert (released_distances(found, clusters) == each).all()
    assert len(np.unique(found.group)) < len(found.group)


@pytest.fixture(scope="module")
def many():
    """Four interests of a hundred users each."""
    rng = np.random.default_rng(3)
    own = [0.85, 0.15]
    return read([(u, WORDS[int(rng.choice([u % 4, rng.integers(4)], p=own))], 0) for u in range(400) for _ in range(8)])


@pytest.fixture(scope="module")
def by_ward(taxonomy, many):
    return user_clusters(many, qv.categorize(many, taxonomy, "terms"), size=10, linkage="ward")


def test_clusters_kept_above_chance_are_all_in_the_log_itself_and_none_in_groups_at_random(many, by_ward):
    assert cluster_retention(identity(many), by_ward).value == 1
    for release in (together(many, 4), shuffled(many), together(many)):
        found = cluster_retention(release, by_ward)
        assert found.value == pytest.approx(0, abs=0.03)
        assert found.kept == pytest.approx(1 - information_loss(release, by_ward) / 100)


def test_clusters_kept_above_chance_rank_similar_users_above_others(taxonomy, many, by_ward):
    alike = qv.Mdav(k=4, taxonomy=taxonomy, linker="terms").anonymize(many)
    assert cluster_retention(alike, by_ward).value > 0.1


def test_permuting_records_is_permuting_clusters(many, by_ward):
    """What is found without comparing records again is what comparing them again finds."""
    found = user_records(identity(many), "a test")
    swapped = np.random.default_rng(5).permutation(many.n_users)
    far = released_distances(found, by_ward)
    again = _distances(found.released.take(swapped), np.arange(many.n_users), by_ward.links)
    assert by_ward.users.tolist() == list(range(many.n_users))
    assert (far[np.ix_(swapped, swapped)] == again).all()


def test_one_cluster_of_most_users_separates_nothing(taxonomy):
    log = read([(u, "alpha" if u < 30 else WORDS[u % 4], 0) for u in range(40) for _ in range(3)])
    clusters = user_clusters(log, qv.categorize(log, taxonomy, "terms"), clusters=3)
    assert clusters.largest > 0.5
    with pytest.raises(QueryveilError, match="of the users of the log are in one cluster"):
        cluster_retention(identity(log), clusters)
