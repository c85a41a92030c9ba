"""WNGEN: against the literal algorithm, and what holds of every cluster."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from queryveil.kernels.wngen import cluster_queries
from queryveil.knowledge import Tree
from tests.kernels.test_partitions import as_dict, trees
from tests.oracles import wngen as oracle
from tests.strategies import examples

ANIMALS = Tree.from_paths(pa.array(["dog/poodle", "dog/pug", "cat/siamese", "cat/manx", "bird"]), root="animal")
NAMES = ANIMALS.names.to_pylist()


@st.composite
def logs(draw):
    tree = draw(trees())
    nodes = st.sets(st.integers(0, len(tree) - 1), max_size=4)
    queries = st.tuples(nodes, st.sets(st.integers(0, 7), min_size=1, max_size=4))
    return tree, draw(st.lists(queries, min_size=1, max_size=24))


def flat(sets):
    start = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    return start, np.array([value for s in sets for value in sorted(s)], np.int32)


def clustered(tree, queries, k):
    nodes, users = zip(*queries, strict=True)
    size = max(map(max, users)) + 1
    return cluster_queries(*flat(nodes), *flat(users), size, tree.parent, tree.depth, tree.end, k).tolist()


def named(queries, k):
    plain = [({NAMES.index(name) for name in names.split()}, set(users)) for names, users in queries]
    return [NAMES[node] for node in clustered(ANIMALS, plain, k)]


@settings(max_examples=examples(30))
@given(logs(), st.integers(1, 5))
def test_clusters_are_the_literal_ones(drawn, k):
    tree, queries = drawn
    expected = oracle.clusters(as_dict(tree), queries, k)
    found = clustered(tree, queries, k)
    assert {node: {q for q, at in enumerate(found) if at == node} for node in set(found)} == expected


@given(logs(), st.integers(1, 5))
def test_every_cluster_has_k_users_and_is_above_its_queries(drawn, k):
    tree, queries = drawn
    everyone = set().union(*(users for _, users in queries))
    found = clustered(tree, queries, k)
    for node in set(found):
        who = set().union(*(users for at, (_, users) in zip(found, queries, strict=True) if at == node))
        assert len(who) >= min(k, len(everyone))
    for at, (nodes, _) in zip(found, queries, strict=True):
        assert at == 0 or any(at <= node < tree.end[at] for node in nodes)


@given(logs(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_order_of_queries_plays_no_part(drawn, k, draws):
    tree, queries = drawn
    order = draws.sample(range(len(queries)), len(queries))
    found = clustered(tree, queries, k)
    assert clustered(tree, [queries[q] for q in order], k) == [found[q] for q in order]


def test_clusters_go_as_deep_as_users_allow():
    queries = [("poodle", [0, 1]), ("poodle", [2]), ("pug", [0]), ("pug", [1, 2]), ("siamese", [3, 4]), ("manx", [5])]
    assert named(queries, 3) == ["poodle", "poodle", "pug", "pug", "cat", "cat"]


def test_a_user_counts_once():
    assert named([("pug", [0]), ("pug", [0]), ("poodle", [1]), ("", [2])], 2) == ["animal"] * 4
    assert named([("pug", [0]), ("pug", [0]), ("poodle", [1]), ("", [2, 3])], 2) == ["dog", "dog", "dog", "animal"]


def test_a_query_goes_where_most_users_are():
    assert named([("bird manx", [0]), ("manx", [1, 2]), ("bird", [3, 4])], 2) == ["manx", "manx", "bird"]
    assert named([("bird manx", [0]), ("manx", [1, 2]), ("bird", [3, 4, 5])], 2) == ["bird", "manx", "bird"]


def test_a_query_goes_to_the_next_best_if_the_best_does_not_stand():
    # Four users have birds, but two of them, who also have a cat, are with the five of the cats.
    queries = [("bird manx", [0, 1]), ("manx", [2, 3, 4]), ("bird pug", [5, 6]), ("pug", [7])]
    assert named(queries, 3) == ["manx", "manx", "pug", "pug"]


def test_the_child_with_the_fewest_users_comes_back_to_those_that_stay():
    queries = [("pug", [0, 1, 2]), ("manx", [3, 4]), ("bird", [5, 6]), ("", [7])]
    assert named(queries, 2) == ["pug", "animal", "bird", "animal"]
    assert named([*queries, ("animal", [8])], 2) == ["pug", "manx", "bird", "animal", "animal"]
    # Birds and cats have two users each; that two more had birds among other things does not count.
    queries = [("pug bird", [0, 1]), ("pug", [2, 3, 4]), ("bird", [5, 6]), ("manx", [7, 8]), ("", [9])]
    assert named(queries, 2) == ["pug", "pug", "bird", "animal", "animal"]
