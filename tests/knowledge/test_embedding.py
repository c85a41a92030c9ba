"""Linking by meaning: the nearest vectors against a plain matrix product, and meanings that everyone can check."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.errors import QueryveilError
from queryveil.knowledge.embedding import categorize_embedding
from queryveil.knowledge.nearest import Cells, unit
from queryveil.knowledge.vectors import embed, width
from queryveil.knowledge.wordnet import table, wordnet


def cosine(a, b):
    one, other = embed(pa.array([a, b])).vectors
    return float(one @ other)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("puppy", "dog, domestic dog", "income tax"),
        ("cheap flights", "airplane tickets", "chicken soup"),
        ("heart attack symptoms", "cardiac disease", "soccer club"),
        ("accomodation in paris", "hotel", "engine"),  # misspelt, as it is most of the time
        ("britney spears lyrics", "songs", "plumbing"),
    ],
)
def test_what_means_alike_is_near(text, near, far):
    assert cosine(text, near) > cosine(text, far) + 0.1


def test_every_text_has_a_vector_of_length_one_or_none():
    texts = ["dog", "qzxv", "", "2006", "наука", "a" * 500, "dog " * 100, "!!!"]
    vectors, known = embed(pa.array(texts))
    length = np.linalg.norm(vectors, axis=1)
    assert vectors.shape == (len(texts), width())
    assert np.all(np.isclose(length, 1, atol=1e-4) | (length == 0))
    assert np.all((known >= 0) & (known <= 1))
    assert known[0] == 1
    assert known[texts.index("")] == 0
    assert known[1] < known[0]


@given(st.lists(st.text(max_size=20), max_size=6))
def test_a_vector_depends_on_its_text_alone(texts):
    together = embed(pa.array(texts, pa.string())).vectors
    assert all((embed(pa.array([text])).vectors[0] == row).all() for text, row in zip(texts, together, strict=True))


@given(st.integers(1, 80), st.integers(1, 5), st.integers(0, 1000))
def test_with_all_cells_the_nearest_are_those_of_a_matrix_product(n, most, seed):
    rng = np.random.default_rng(seed)
    vectors, queries = (unit(rng.standard_normal((m, 8)).astype(np.float32)) for m in (n, 7))
    cells = Cells.of(vectors)
    assert sorted(cells.order.tolist()) == list(range(n))
    place, score = cells.nearest(queries, most)  # at most nine cells, all of which are looked into
    assert place.shape == (7, min(most, n))
    exact = queries @ vectors.T
    best = -np.sort(-exact, axis=1)[:, :most]
    assert np.allclose(score, best, atol=0.02)  # the integers have 127 steps
    assert np.allclose(np.take_along_axis(exact, place, axis=1), best, atol=0.02)


def test_few_cells_find_nearly_all():
    vectors = embed(wordnet().tree.names[:20_000]).vectors
    lemmas = table()["lemma"].to_pylist()
    queries = embed(pa.array([f"{a} {b}" for a, b in zip(lemmas[::400], lemmas[200::400], strict=False)])).vectors
    _, some = Cells.of(vectors).nearest(queries, 1)
    exact = (queries @ vectors.T).max(axis=1)
    assert np.mean(exact - some[:, 0] < 0.01) > 0.8


def test_a_query_is_linked_to_what_it_means():
    links = categorize_embedding(
        pa.array(["puppy food", "qzxvkj", "new york city hotels", ""]), wordnet(), min_confidence=0.5
    )
    start, nodes = links.nodes()
    assert np.diff(start).tolist() == [1, 0, 1, 0]
    assert "food" in wordnet().tree.path(int(nodes[0]))
    assert ((links.confidence >= 0.5) & (links.confidence <= 1)).all()


def test_more_categories_come_in_order():
    links = categorize_embedding(pa.array(["dog"]), wordnet(), categories=5, min_confidence=0)
    assert len(links.node) == 5
    assert (np.diff(links.confidence) <= 0).all()
    assert wordnet().tree.names[int(links.node[0])].as_py() == "dog"


def test_the_answer_does_not_depend_on_the_parts(monkeypatch):
    queries = pa.array([f"{a} {b}" for a in ("red", "cheap", "lost") for b in ("shoes", "dog", "paris", "zxq")])
    whole = categorize_embedding(queries, wordnet(), categories=2, min_confidence=0.1)
    monkeypatch.setattr("queryveil.knowledge.embedding._PART", 5)
    parts = categorize_embedding(queries, wordnet(), categories=2, min_confidence=0.1)
    assert whole.node.tolist() == parts.node.tolist()
    assert whole.confidence.tolist() == parts.confidence.tolist()


def test_no_query_at_all():
    assert len(categorize_embedding(pa.array([], pa.string()), wordnet())) == 0


def test_a_confidence_that_is_none():
    with pytest.raises(QueryveilError, match="must be from 0 to 1"):
        categorize_embedding(pa.array(["dog"]), wordnet(), min_confidence=2)


def test_zeros_are_near_nothing():
    cells = Cells.of(np.zeros((3, 4), np.float32))
    assert cells.nearest(np.ones((1, 4), np.float32), 1)[1].tolist() == [[0.0]]
