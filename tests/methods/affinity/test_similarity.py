"""Affinity by meaning and clicks, against the definitions."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import similarity
from queryveil.claims.similarity import clicked, comparable
from queryveil.errors import QueryveilError
from tests.claims.test_affine import looked
from tests.oracles.affinity import affinity_degrees
from tests.oracles.log import Row
from tests.oracles.similarity import clicked as clicked_by_definition
from tests.oracles.similarity import comparable as comparable_by_definition
from tests.oracles.similarity import similar
from tests.strategies import examples, table

SAID = (
    "car repair",
    "auto repair",
    "auto repairs",
    "automobile repair shop",
    "repair car",
    "fix a car",
    "car dealers",
    "used cars for sale",
    "new york hotels",
    "hotels in new york",
    "long beach hotels",
    "chicago hotels",
    "cathy brown kansas city",
    "john smith kansas city",
    "grace woods car",
    "cell phone 5",
    "xyzzy repair",
    "john's car repair",
    "georgia brown car",
    "rose m brown hotels",
    "mr brown hotels",
    "nissan repair",
)
LOGS = st.lists(
    st.tuples(
        st.sampled_from("abcdefgh"),
        st.sampled_from(SAID),
        st.none(),
        st.none(),
        st.sampled_from([None, "u.com", "v.com", "w.com"]),
    ).map(lambda row: Row(*row)),
    min_size=5,
    max_size=70,
)
WAYS = st.sampled_from(
    [("meaning",), ("clicks",), ("words", "meaning"), ("words", "clicks"), ("words", "meaning", "clicks")]
)


def queries_of(release: qv.Release) -> set[str]:
    return set(pa.Table.from_batches(list(release.batches()), release.schema)["query"].to_pylist())


@given(LOGS, st.integers(1, 4), st.sampled_from([1, 3, 50]))
def test_what_is_compared_by_more_than_words(rows, least, fewest):
    with mock.patch.object(similarity, "FEWEST", fewest):
        check_compared(rows, least)


def check_compared(rows, least):
    log = qv.read_log(table(rows))
    found = {text for text, ok in zip(log.query_text.to_pylist(), comparable(log, least), strict=True) if ok}
    assert found == comparable_by_definition(rows, least)


@given(LOGS, st.integers(1, 4))
def test_which_addresses_queries_are_compared_by(rows, users):
    log = qv.read_log(table(rows))
    found = clicked(log, users)
    texts = [log.query_text[int(query)].as_py() for query in found.query]
    expected = clicked_by_definition(rows, users)
    assert sorted(texts) == sorted(query for query, urls in expected.items() for _ in urls)


@settings(max_examples=examples(25))
@given(
    LOGS, st.integers(2, 4), WAYS, st.sampled_from([0.7, 0.9]), st.sampled_from([0.6, 0.75, 0.85]), st.integers(2, 3)
)
def test_releases_the_core_of_the_graph_of_all_similarities(rows, k, ways, theta, theta_meaning, concept_users):
    log = qv.read_log(table(rows))
    if log.n_users < k or ("clicks" in ways and not log.has_clicks):
        return
    shared = {"similarity": ways, "theta_meaning": theta_meaning, "theta_clicks": 0.7}
    method = qv.Affinity(k=k, theta=theta, concept_min_users=concept_users, min_term_users=2, **shared)
    alike = similar(rows, k, theta, concept_users, 2, ways, theta_meaning, 0.7)
    expected = affinity_degrees(rows, theta, concept_users, 2, alike=alike)
    release = method.anonymize(log, seed=1)
    assert queries_of(release) == {query for query, degree in expected.items() if degree >= k}
    found = qv.verify(release, log)
    assert found.holds, found
    without = qv.verify(replace(release, certificate=None), log)
    assert without.holds, without
    swept = qv.sweep(log, ks=[k], thetas=[theta], concept_min_users=concept_users, min_term_users=2, **shared)
    assert swept.points[1].queries == len(queries_of(release))


@settings(max_examples=examples(15))
@given(LOGS, WAYS, st.data())
def test_the_check_of_any_queries_agrees_with_the_definition(rows, ways, data):
    log = qv.read_log(table(rows))
    if log.n_users < 3 or ("clicks" in ways and not log.has_clicks):
        return
    method = qv.Affinity(k=3, theta=0.8, concept_min_users=2, min_term_users=2, similarity=ways, theta_meaning=0.75)
    (claim,) = method.claims(log)
    released = data.draw(st.sets(st.sampled_from(sorted(log.query_text.to_pylist()))))
    alike = similar(rows, 3, 0.8, 2, 2, ways, 0.75, 0.8)
    kept = affinity_degrees(rows, 0.8, 2, 2, alike=alike)  # of the whole log
    pairs = {"query_id": [a for a in range(log.n_queries) for _ in range(log.n_queries)]}
    pairs["witness"] = list(range(log.n_queries)) * log.n_queries
    every = qv.Certificate(0, {"witnesses": pa.table(pairs)})
    plain, named = (looked(log, claim.look, released, certificate) for certificate in (None, every))
    assert plain.counterexample == named.counterexample
    if any(kept[query] < 3 for query in released):  # what no release may hold, this one may not
        assert plain.counterexample is not None


PEOPLE = [f"p{i}" for i in range(60)]


@pytest.mark.parametrize(
    "query",
    [
        "john's divorce lawyer",
        "johns divorce lawyer",
        "georgia brown lawyer",
        "rose m brown lawyer",
        "rose brown lawyer",
        "mr brown lawyer",
        "kowalski lawyer",
        "topeka lawyer",
    ],
)
def test_no_query_with_a_name_or_a_small_place_is_compared_by_meaning(query):
    asked = [query, "divorce lawyer", "cars for sale"]
    log = qv.read_log(table([Row(user, text) for user in PEOPLE[:12] for text in asked]))
    found = dict(zip(log.query_text.to_pylist(), comparable(log, 5).tolist(), strict=True))
    assert found == {query: False} | dict.fromkeys(asked[1:], True)


def planted() -> list[Row]:
    """Words that many use, a query of one user that means what others mean, and one with a name."""
    rows = [Row(user, "spanish to english translation") for user in PEOPLE[:8]]
    rows += [Row(user, f"john {word}") for user in PEOPLE for word in ("smith", "brown")]
    rows += [
        Row(user, word)
        for user in PEOPLE
        for word in ("translate", "from", "kansas city", "cathy", "spanish", "english")
    ]
    rows += [Row("one", "translate from spanish to english"), Row("one", "cathy brown kansas city")]
    return rows + [Row(user, "john smith kansas city") for user in PEOPLE[:8]]


def test_what_means_the_same_protects_and_names_do_not():
    log = qv.read_log(table(planted()))
    by_words = queries_of(qv.Affinity(k=5, theta=0.9).anonymize(log))
    both = queries_of(qv.Affinity(k=5, theta=0.9, similarity=("words", "meaning"), theta_meaning=0.7).anonymize(log))
    assert both - by_words == {"translate from spanish to english"}
    without_words = qv.Affinity(k=5, similarity=("meaning",), theta_meaning=0.5).anonymize(log)
    assert "cathy brown kansas city" not in queries_of(without_words)


def test_with_other_tables_a_release_is_not_refuted_and_not_accepted(tmp_path, monkeypatch):
    log = qv.read_log(table(planted()))
    method = qv.Affinity(k=5, theta=0.9, similarity=("words", "meaning"), theta_meaning=0.7)
    method.anonymize(log).save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", log).holds
    for module in ("claims.similarity", "verification.languages", "methods.affinity.method"):
        monkeypatch.setattr(f"queryveil.{module}.tables_digest", lambda: "0" * 32)
    found = qv.verify(tmp_path / "r", log)
    assert found.holds
    assert any("embedding and the lists of names of another version" in left for left in found.unchecked)
    monkeypatch.setattr("queryveil.claims.affine_others.comparable", lambda log, least: np.zeros(log.n_queries, bool))
    with pytest.raises(QueryveilError, match="cannot be checked here, because its queries were compared with the emb"):
        qv.verify(tmp_path / "r", log)
    monkeypatch.undo()
    monkeypatch.setattr("queryveil.claims.affine_others.comparable", lambda log, least: np.zeros(log.n_queries, bool))
    assert not qv.verify(tmp_path / "r", log).holds, "with the same tables it is refuted"


def test_explain_says_which_similarity_made_a_neighbour():
    log = qv.read_log(table(planted()))
    method = qv.Affinity(k=5, similarity=("words", "meaning"), theta_meaning=0.7)
    reasons = method.explain(log, log.find("translate from spanish to english"))
    assert "'spanish to english translation' (8, by meaning)" in reasons[-1].found


def test_a_hub_makes_no_queries_similar():
    rows = [Row(f"u{i}", f"thing {'abcdefghij'[i]}", url="hub.com") for i in range(10)]
    rows += [Row(f"u{i}", "thing z", url="z.com") for i in range(10)]
    log = qv.read_log(table(rows))
    assert {log.query_text[int(query)].as_py() for query in clicked(log, 5).query} == {"thing z"}


@pytest.mark.parametrize(
    ("similarity", "language", "sentence"),
    [
        (("meaning",), "de", "Meanings are known in English only, and the log is in German"),
        (("words", "clicks"), "en", "The log has no clicks; leave 'clicks' out"),
    ],
)
def test_what_cannot_be_compared_is_refused(similarity, language, sentence):
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"]}), language=language)
    with pytest.raises(qv.QueryveilError, match=sentence):
        qv.Affinity(k=2, similarity=similarity).anonymize(log)


def test_names_of_similarities_have_one_order_and_must_be_known():
    assert qv.Affinity(similarity=("meaning", "words", "meaning")).similarity == ("words", "meaning")
    with pytest.raises(qv.QueryveilError, match="similarity"):
        qv.Affinity(similarity=("sound",))
    with pytest.raises(qv.QueryveilError, match="similarity"):
        qv.Affinity(similarity=())


def test_neighbours_by_meaning_are_in_the_graph_around_a_query():
    log = qv.read_log(table(planted()))
    around = qv.neighbourhood(
        log, "translate from spanish to english", similarity=("words", "meaning"), theta_meaning=0.7
    )
    assert "spanish to english translation" in {one.query for one in around.queries}
    assert around.degree == 61  # `translate` is near as well


def test_the_cpu_compares_exactly_or_by_cells():
    from queryveil.kernels.close import close_pairs, whole

    rng = np.random.default_rng(1)
    middle = rng.standard_normal((40, 128)).astype(np.float32)
    vectors = middle[rng.integers(0, 40, 5000)] + 0.4 * rng.standard_normal((5000, 128)).astype(np.float32)
    vectors = whole(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    dot = vectors.astype(np.int64) @ vectors.astype(np.int64).T
    length = np.diag(dot).astype(np.float64)
    expected = (dot > 0) & (dot.astype(np.float64) ** 2 >= 0.85**2 * (length[:, None] * length))
    np.fill_diagonal(expected, False)
    start, near = close_pairs(vectors, 0.85)
    assert np.array_equal(np.repeat(np.arange(5000), np.diff(start)), np.nonzero(expected)[0])
    assert np.array_equal(near, np.nonzero(expected)[1])
    start, near = close_pairs(vectors, 0.85, exact=1000)
    found = np.zeros_like(expected)
    found[np.repeat(np.arange(5000), np.diff(start)), near] = True
    assert not (found & ~expected).any()
    assert found.sum() > 0.9 * expected.sum()


def test_a_graphics_processor_finds_the_same_pairs():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("there is no graphics processor with CUDA")
    from queryveil.kernels.close import close_pairs, whole

    vectors = np.random.default_rng(1).standard_normal((3000, 128)).astype(np.float32)
    vectors = whole(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    here, there = (close_pairs(vectors, 0.6, device=device) for device in ("cpu", "cuda"))
    assert all(np.array_equal(one, other) for one, other in zip(here, there, strict=True))
