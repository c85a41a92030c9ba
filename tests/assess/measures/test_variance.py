"""The variance of users' categories against the literal one with b-ary labels, and its two ends."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.arrays import offsets
from queryveil.assess.evaluation import evaluate
from queryveil.assess.measures import nominal_variance, variance_retention
from queryveil.knowledge import Tree
from queryveil.knowledge.links import Items, Links
from queryveil.methods.microaggregation.common import Searches
from tests.assess.attacks.helpers import identity, together
from tests.methods.microaggregation.test_common import WORDS, read, taxonomy
from tests.oracles import variance as oracle

__all__ = ["taxonomy"]  # a fixture

PATHS = ["a", "a/x", "a/x/1", "a/x/2", "a/x/3", "a/y", "b", "b/z/4", "c", "d/w", "d/w/5/6"]


def of(samples: list[list[str]], paths: list[str] = PATHS) -> tuple[list[float], int]:
    """Our variances of samples of paths, and the most children of a node."""
    tree = Tree.from_paths(pa.array(paths), root="top")
    node_of = {tree.path(node): node for node in range(len(tree))}
    items = Items.of(np.ones(len(paths), np.int64), pa.array(paths))
    nodes = np.array([node_of[path] for path in items.texts.to_pylist()], np.int32)
    links = Links.found(tree, items, np.arange(len(paths) + 1), nodes)
    query = np.array([paths.index(path) for sample in samples for path in sample], np.int32)
    searches = Searches(offsets(np.array([len(s) for s in samples])), query, np.ones(len(query), np.int64))
    b = int(np.bincount(tree.parent[1:]).max())
    return nominal_variance(searches, links).tolist(), b


@given(st.lists(st.lists(st.sampled_from(PATHS), min_size=1, max_size=12), min_size=1, max_size=6))
def test_it_is_the_literal_variance(samples):
    found, b = of(samples)
    for mine, sample in zip(found, samples, strict=True):
        length = max(path.count("/") + 1 for path in sample)
        assert mine == pytest.approx(float(oracle.nominal_variance(sample, b)) / b ** (2 * (length - 1)), abs=1e-9)


def test_the_literal_labels():
    assert oracle.labels(5) == [2, 1, 3, 0, 4]
    assert oracle.labels(4) == [1, 2, 0, 3]


def test_a_sample_that_is_less_related_varies_more():
    same, near, far, none = of([["a/x/1"] * 4, ["a/x/1", "a/x/2"] * 2, ["a/x/1", "b/z/4"] * 2, []])[0]
    assert same == 0 < near < far
    assert far == pytest.approx(0.25)  # two digits beside each other, half of the sample each
    assert near == pytest.approx(0.25 / 4**4)
    assert np.isnan(none)


def test_a_deep_tree_of_single_children_does_not_vary():
    assert of([["a/b/c/d", "a"]], ["a/b/c/d", "a"])[0] == [0.0]


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(1)
    return read([(u, WORDS[int(rng.choice(5))], 0) for u in range(60) for _ in range(int(rng.integers(1, 12)))])


def test_the_log_itself_keeps_all(log, taxonomy):
    kept = variance_retention(identity(log), qv.categorize(log, taxonomy))
    assert (kept.mean, kept.times) == (1.0, 1.0)
    assert 0 < kept.users <= log.n_users


def test_groups_of_users_vary_otherwise(log, taxonomy):
    links = qv.categorize(log, taxonomy)
    grouped = variance_retention(qv.Odp(k=3, taxonomy=taxonomy).anonymize(log, seed=4), links)
    assert 0 < grouped.mean < 1
    one = variance_retention(together(log), links)
    assert one.mean < 1


def test_it_is_among_the_measures(log, taxonomy):
    def measured(release):
        found = evaluate(release, log, taxonomy=taxonomy, tests=50).measured
        return next(one for one in found if one.measure == "variance_retention")

    release = qv.Odp(k=3, taxonomy=taxonomy).anonymize(log, seed=4)
    found = measured(release)
    assert found.value == pytest.approx(variance_retention(release, qv.categorize(log, taxonomy)).mean)
    assert found.best == 1
    assert "times as much" in found.why
    none = measured(qv.Equality(k=2, link="none").anonymize(log))
    assert none.value is None
    assert "user or session ids" in none.why
