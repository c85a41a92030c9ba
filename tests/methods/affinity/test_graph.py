import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.kernels.cores import Users
from queryveil.kernels.heavy import Groups, Sets
from queryveil.methods.affinity.concepts import Concepts, Vocabulary
from queryveil.methods.affinity.graph import AffinityGraph, Vertices, affine_pairs, vertices_of
from tests.oracles.affinity import degrees
from tests.oracles.log import Row
from tests.strategies import table


def graph_of(users, edges, monkeypatch):
    """A graph with given edges: equal weights, and a group for each edge."""
    n = len(users)
    sets = Sets(
        np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n, np.int64), np.ones(n, np.int64),
        np.full((n, 5), -1, np.int32), np.zeros(n, np.uint64), np.zeros(n, np.uint64),
    )  # fmt: skip
    start = np.concatenate([[0], np.cumsum([len(u) for u in users])]).astype(np.int64)
    behind = Users(start, np.array([who for u in users for who in sorted(u)], np.int32))
    member = np.array([v for edge in edges for v in sorted(edge)], np.int32)
    groups = Groups(np.arange(len(edges) + 1) * 2, member, np.ones(len(edges), np.int64))
    monkeypatch.setattr("queryveil.methods.affinity.graph.heavy_groups", lambda sets, theta, threads: groups)
    return AffinityGraph(Vertices(np.arange(n, dtype=np.int32), sets, behind), 1.0, 1)


def degrees_of(graph, most):
    found = np.zeros(len(graph.vertices), np.int64)
    for k, core in enumerate(graph.cores(range(1, most + 1)), 1):
        found[core] = k
    return found.tolist()


def test_the_three_nested_cores_of_twelve_vertices_in_three_classes(monkeypatch):
    # After figure 3 of the paper. Two triangles hold all three classes. Between them stands a black vertex (6), linked
    # to a white (7) and an asterisk (8), which hang on a triangle by a vertex of their own class.
    white, black, asterisk = {0}, {1}, {2}
    users = [white, black, asterisk, white, black, asterisk, black, white, asterisk, white, black, black]
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (6, 7), (6, 8), (0, 7), (5, 8), (10, 11)]
    found = degrees_of(graph_of(users, edges, monkeypatch), 4)
    assert found == [3] * 6 + [2, 2, 2] + [1, 1, 1]


def test_sharing_a_heavy_subset_is_not_enough():
    # What the two share weighs 85 of 100 in each, more than theta^2 = 0.81; but their cosine is 0.85, less than 0.9.
    digest = np.array([3, 5, 7], np.uint64) << np.uint64(40)
    sets = Sets(
        np.array([0, 2, 4]), np.array([0, 2, 1, 2], np.int32), np.array([100, 100]), np.array([15, 15, 85]),
        np.full((3, 5), -1, np.int32), digest, digest,
    )  # fmt: skip
    vertices = Vertices(np.arange(2, dtype=np.int32), sets, Users(np.arange(3), np.arange(2, dtype=np.int32)))
    for theta, together in ((0.9, False), (0.85, True)):
        graph = AffinityGraph(vertices, theta, 1)
        assert graph.groups.member.tolist() == [0, 1]
        (core,) = graph.cores([2])
        assert core.tolist() == [together, together]


EDGES = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda e: e[0] < e[1]), max_size=25)
CLASSES = st.lists(st.sets(st.integers(0, 6), min_size=1, max_size=3), min_size=9, max_size=9)


@given(CLASSES, EDGES, st.lists(st.integers(1, 7), min_size=1, unique=True).map(sorted))
def test_cores_are_those_of_the_peeled_graph_whatever_k_comes_before(users, edges, ks):
    with pytest.MonkeyPatch.context() as patch:
        graph = graph_of(users, sorted(edges), patch)
    plain = {v: {b if v == a else a for a, b in edges if v in (a, b)} for v in range(9)}
    expected = degrees(plain, dict(enumerate(users)))
    for k, core in zip(ks, graph.cores(ks), strict=True):
        assert core.tolist() == [expected[v] >= k for v in range(9)]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz")), min_size=1, max_size=40))
def test_with_vectors_named_by_step_by_the_full_text_theta_one_is_equality(pairs):
    log = qv.read_log(table([Row(user, query) for user, query in pairs]))
    n = log.n_queries
    ids = np.arange(n, dtype=np.int32)
    word = np.full((n, 3), -1, np.int32)
    word[:, 0] = ids
    vocabulary = Vocabulary(ids, log.query_text)
    kinds = (np.int64, np.int64, np.float64, np.bool_)
    one_each = Concepts(vocabulary, np.ones(n, np.int8), word, *(np.ones(n, kind) for kind in kinds))
    vertices = vertices_of(log, one_each, np.arange(n + 1), ids, np.ones(n, np.bool_))
    for k, core in enumerate(AffinityGraph(vertices, 1.0, 2).cores([2, 3, 4]), 2):
        assert (core[vertices.of] == (log.users_per_query >= k)).all()


def test_neighbours_are_found_alike_through_groups_and_by_comparison():
    from queryveil.methods.affinity.method import Candidates

    words = ["cell", "phone", "case", "red", "new", "cheap"]
    rows = [Row(f"u{i % 17}", " ".join(words[(i * j) % 6] for j in range(1, 2 + i % 4))) for i in range(300)]
    log = qv.read_log(table(rows))
    vertices = Candidates(qv.Affinity(k=2), log).vertices
    graph = AffinityGraph(vertices, 0.7, 1)
    pairs = affine_pairs(vertices.sets, vertices.postings, np.arange(len(vertices)), 0.7)
    edges = {tuple(pair) for pair in pairs.member.reshape(-1, 2).tolist()}
    assert edges
    for v in range(len(vertices)):
        assert set(graph.neighbours(v).tolist()) == {a + b - v for a, b in edges if v in (a, b)}
