"""The index against a dict."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.knowledge.index import Index
from queryveil.text import language

TEXT = st.text("abü ", min_size=1, max_size=3)
PAIRS = st.lists(st.tuples(TEXT, st.integers(0, 50)), max_size=30)


def built(pairs, **options):
    return Index.of(
        pa.array([text for text, _ in pairs], pa.string()), np.array([n for _, n in pairs], np.int32), **options
    )


@given(PAIRS, st.lists(st.one_of(TEXT, st.none())), st.integers(1, 3))
def test_it_finds_what_a_dict_finds(pairs, texts, most):
    known = {}
    for text, node in pairs:
        known.setdefault(text, []).append(node)
    index = built(pairs)
    entry = index.find(pa.array(texts, pa.string()))
    start, nodes = index.nodes_of(entry, most)
    assert [nodes[start[i] : start[i + 1]].tolist() for i in range(len(texts))] == [
        known.get(text, [])[:most] for text in texts
    ]
    assert index.first(pa.array(texts, pa.string())).tolist() == [known.get(text, [-1])[0] for text in texts]
    assert len(index) == len(known)


def test_a_text_keeps_its_first_nodes():
    index = built([("a", 5), ("b", 1), ("a", 3), ("a", 4)], most=2)
    assert index.nodes_of(index.find(pa.array(["a", "b"])), 10)[1].tolist() == [5, 3, 1]


def test_other_spellings_are_tried_in_order():
    drop = lambda n: lambda texts: pa.array([t[n:] if len(t) > n else None for t in texts.to_pylist()])  # noqa: E731
    index = built([("bc", 1), ("c", 2)]).with_forms(drop(1), drop(2))
    assert index.first(pa.array(["bc", "abc", "xc", "aac", "z", ""])).tolist() == [1, 1, 2, 2, -1, -1]


def test_a_label_in_its_own_spelling_wins_over_the_stem_of_another():
    index = Index.of_labels(pa.array(["runs", "running", "run"]), np.array([1, 2, 3], np.int32), language("en"))
    assert index.first(pa.array(["runs", "running", "run"])).tolist() == [1, 2, 3]
    index = Index.of_labels(pa.array(["runs", "marathon running"]), np.array([1, 2], np.int32), language("en"))
    assert index.first(pa.array(["running", "marathons run", "marathon"])).tolist() == [1, 2, -1]
