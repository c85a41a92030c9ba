"""Removal by degree against the literal one, on random graphs."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.removal import degrees, remove_by_degree, spelled
from queryveil.methods.click_graph import classes_of
from queryveil.text.arrays import byte_spans
from tests.oracles import removal as oracle

GRAPHS = st.lists(st.sets(st.integers(0, 6), min_size=1, max_size=4), max_size=25)


def of(graph):
    """The classes of queries, and the class of each."""
    query = np.repeat(np.arange(len(graph)), [len(urls) for urls in graph])
    url = np.array([u for urls in graph for u in sorted(urls)], np.int64)
    return classes_of(query, url, len(graph))


def as_clicks(graph):
    return {q: {str(u) for u in urls} for q, urls in enumerate(graph)}


@given(GRAPHS)
def test_degrees_are_those_of_the_graph(graph):
    classes = of(graph)
    edges = oracle.edges(as_clicks(graph))
    expected = [sum(q in edge for edge in edges) for q in range(len(graph))]
    found = np.zeros(len(graph), np.int64)
    found[classes.member] = np.repeat(degrees(classes), np.diff(classes.member_start))
    assert found.tolist() == expected


@given(GRAPHS)
def test_the_same_queries_stay_as_in_the_literal_removal(graph):
    classes = of(graph)
    kept = remove_by_degree(classes, degrees(classes))
    assert set(np.flatnonzero(kept).tolist()) == oracle.disconnected(as_clicks(graph))


@pytest.mark.parametrize("seed", range(8))
def test_larger_graphs_with_popular_addresses(seed):
    draw = np.random.default_rng(seed)
    urls = int(draw.integers(5, 120))
    graph = [
        {int(urls * draw.random() ** 3) for _ in range(int(draw.integers(1, 5)))} for _ in range(int(draw.integers(90)))
    ]
    classes = of(graph)
    kept = remove_by_degree(classes, degrees(classes))
    assert set(np.flatnonzero(kept).tolist()) == oracle.disconnected(as_clicks(graph))


def test_of_many_who_all_share_an_address_the_last_stays():
    """More queries than one block of the marked ones holds; every class has its own second address."""
    n = 9_000
    classes = of([{0, q // 2 + 1} for q in range(n)])
    kept = remove_by_degree(classes, degrees(classes))
    assert np.flatnonzero(kept).tolist() == [n - 1]


def test_many_with_one_address_and_nothing_else_are_one_class():
    classes = of([{0}] * 50_000 + [{0, 1}])
    assert len(classes.start) - 1 == 2
    kept = remove_by_degree(classes, degrees(classes))
    assert np.flatnonzero(kept).tolist() == [50_000]


@given(
    st.lists(st.sampled_from(["at", "t", "cocacola", "coca", "cola", "com", "a"]), max_size=5),
    st.sampled_from(["att", "cocacola", "cola", "a", "", "com", "tt"]),
)
def test_a_name_is_words_in_a_row_written_as_one(words, name):
    text, names = pa.array([" ".join(words)]), pa.array([name])
    pair = np.zeros(1, np.int64)
    found = spelled(*byte_spans(text), *byte_spans(names), pair, pair)
    assert found.tolist() == [bool(name) and oracle.names_target(" ".join(words), [name])]
