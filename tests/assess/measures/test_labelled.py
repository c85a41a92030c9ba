"""F-beta: formula 5 of Carpineto and Romano, literally."""

from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.evaluation import evaluate
from queryveil.assess.measures import f_beta
from tests.strategies import examples

QUERY = st.sampled_from(["tea", "red tea", "my cat", "mug", "dog", "ham"])


def read(pairs):
    return qv.read_log(pa.table({"user": [f"u{u}" for u, _ in pairs], "query": [q for _, q in pairs]}))


@settings(max_examples=examples(20))
@given(
    st.lists(st.tuples(st.integers(0, 4), QUERY), min_size=3, max_size=25),
    st.dictionaries(QUERY, st.booleans(), min_size=1),
    st.sampled_from([Fraction(1), Fraction(1, 10), Fraction(2)]),
)
def test_it_is_the_harmonic_mean_of_precision_and_recall(pairs, labels, beta):
    log = read(pairs)
    if log.n_users < 2:
        return
    release = qv.Equality(k=2).anonymize(log)
    users = {query: {u for u, q in pairs if q == query} for _, query in pairs}
    known = {query: label for query, label in labels.items() if query in users}
    harmless = {query for query, label in known.items() if not label}
    released = {query for query in known if len(users[query]) >= 2}
    table = pa.table({"query": list(labels), "sensitive": list(labels.values())})
    if not harmless:
        with pytest.raises(qv.QueryveilError, match="labelled as harmless"):
            f_beta(release, log, table, float(beta))
        return
    precision = Fraction(len(harmless & released), len(released)) if released else Fraction(0)
    recall = Fraction(len(harmless & released), len(harmless))
    bottom = beta**2 * precision + recall
    expected = (beta**2 + 1) * precision * recall / bottom if bottom else Fraction(0)
    found = f_beta(release, log, table, float(beta))
    assert found.value == pytest.approx(float(expected))
    assert (found.precision, found.recall) == (pytest.approx(float(precision)), pytest.approx(float(recall)))
    assert (found.queries, found.sensitive) == (len(known), len(known) - len(harmless))
    everything = qv.Rules(max_characters=1000, link="user").anonymize(log)
    assert f_beta(everything, log, table, float(beta)).value == pytest.approx(found.original)


def test_labels_in_every_form():
    log = read([(u, query) for u in range(3) for query in ("tea", "my cat", "mug")])
    release = qv.Equality(k=2).anonymize(log)
    for column in (
        [False, True, False, True],
        [0, 1, 0, 1],
        [0.0, 1.0, None, 1.0],
        [None, "health", "", "vanity"],
        ["no", "yes", "No ", "yes"],
        ["false", "TRUE", "False", "true"],
        ["0", "1", "0", "1"],
        pa.array(["no", "health", None, "yes"]).dictionary_encode(),
    ):
        found = f_beta(
            release, log, pa.table({"query": [" TEA", "my cat", "mug", "nobody asked"], "sensitive": column})
        )
        assert (found.queries, found.sensitive, found.precision, found.recall) == (3, 1, pytest.approx(2 / 3), 1)
    twice = pa.table({"query": ["tea", "tea", "mug"], "sensitive": [False, True, False]})
    assert f_beta(release, log, twice).sensitive == 1


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ([0, 2], r"must be 0 or 1\. Got 2 instead"),
        ([0.0, 0.7], r"must be 0 or 1\. Got 0\.7 instead"),
        ([0.0, float("nan")], r"must be 0 or 1\. Got nan instead"),
        ([["health"], []], r"or text\. Got the type 'list"),
    ],
    ids=["a number", "a share", "no number", "a list"],
)
def test_labels_that_are_not_understood_are_refused(column, told):
    log = read([(u, query) for u in range(3) for query in ("tea", "mug")])
    release, labels = qv.Equality(k=2).anonymize(log), pa.table({"query": ["tea", "mug"], "sensitive": column})
    with pytest.raises(qv.QueryveilError, match=told):
        f_beta(release, log, labels)
    with pytest.raises(qv.QueryveilError, match=told):
        evaluate(release, log, sensitive=labels)


def test_the_truth_of_a_synthetic_log_serves(tmp_path):
    qv.generate(tmp_path / "log.tsv", users=300, seed=1, truth=tmp_path / "truth")
    log = qv.read_log(tmp_path / "log.tsv")
    truth = pq.read_table(tmp_path / "truth" / "queries.parquet")
    few, many = (f_beta(qv.Equality(k=k).anonymize(log), log, truth, 0.1) for k in (6, 2))
    assert few.queries == log.n_queries
    assert few.precision > many.precision > 0.9
    assert few.recall < many.recall
    found = evaluate(qv.Equality(k=2).anonymize(log), log, tests=50, sensitive=truth).measured
    values = [one.value for one in found if one.group == "labelled"]
    assert values[1] == pytest.approx(many.value)


def test_what_it_needs():
    log = read([(u, "dog cat") for u in range(4)])
    release = qv.Equality(k=2).anonymize(log)
    labels = pa.table({"query": ["dog cat"], "sensitive": [False]})
    with pytest.raises(qv.QueryveilError, match=r"'beta' parameter of f_beta must be more than 0\. Got 0 instead"):
        f_beta(release, log, labels, 0)
    with pytest.raises(qv.QueryveilError, match="columns 'query' and 'sensitive'"):
        f_beta(release, log, pa.table({"query": ["dog"]}))
    with pytest.raises(qv.QueryveilError, match="for releases of queries"):
        f_beta(qv.Clump(k=2).anonymize(log), log, labels)
    found = [
        one for one in evaluate(qv.Clump(k=2).anonymize(log), log, sensitive=labels).measured if one.group == "labelled"
    ]
    assert [one.value for one in found] == [None, None]
    assert "for releases of queries" in found[0].why
