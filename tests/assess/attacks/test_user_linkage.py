"""The classifier of pairs: it finds people who use words of their own, and nothing where queries are nobody's."""

import sys
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess.attacks import InapplicableError, user_linkage
from queryveil.assess.attacks.user_linkage import _Beside, _drawn, _features, _topics, _word_queries
from queryveil.methods.microaggregation.common import Searches
from tests.assess.attacks.helpers import as_it_is, identity, own_words, random_queries, read, together


def test_words_of_ones_own_give_one_away():
    log = own_words(users=300)
    found = user_linkage(identity(log), log)
    assert found.succeeds
    assert found.estimate.value > 0.75
    assert found.details["recall"] > 0.6
    assert found.details["f1_low"] > found.details["f1_baseline"]
    assert not found.control.low > found.baseline + 0.1


@pytest.mark.parametrize("make", [identity, lambda log: together(log, 5)])
def test_where_queries_are_nobodys_it_guesses(make):
    log = random_queries(users=400, queries=12, words=60)
    found = user_linkage(make(log), log)
    assert not found.succeeds
    assert found.estimate.low < found.baseline


def test_queries_dealt_out_by_lot_are_nobodys():
    """Shuffled users: the same queries as where it succeeds, in the hands of others."""
    log = own_words(users=300)
    rows = log.engine.fetch(
        "SELECT e.user_id AS user_id, q.query AS query FROM events e JOIN queries q ON q.query_id = e.query_id"
        " ORDER BY e.event_id"
    )
    users = np.random.default_rng(1).permutation(rows["user_id"].to_numpy()).tolist()
    shuffled = read(list(zip(users, rows["query"].to_pylist(), strict=True)))
    found = user_linkage(identity(shuffled), shuffled)
    assert not found.succeeds
    assert found.estimate.low < found.baseline


def test_the_same_seed_gives_the_same_finding():
    log = own_words(users=150)
    release = identity(log)
    assert user_linkage(release, log, seed=2) == user_linkage(release, log, seed=2)


def test_pairs_are_two_queries_of_one_user_then_of_two():
    log = own_words(users=40)
    searches = Searches.of(log)
    one, other = _drawn(searches, np.random.default_rng(0), 1000, 3)
    assert (one != other).all()
    own = defaultdict(set)
    for user, query in zip(searches.owners.tolist(), searches.query.tolist(), strict=True):
        own[query].add(user)
    together = [bool(own[a] & own[b]) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    half = 40 * 3
    assert all(together[:half])
    assert not all(together[half:])


def test_features_tell_what_two_queries_share():
    rows = [("a", "red tea cup", "x"), ("b", "tea", "y"), ("a", "green tea", "x"), ("b", "dog", "z"), ("c", "tea", "x")]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("user", "query", "url"))}
    columns["time"] = [f"2006-03-{day:02} 10:00:00" for day in (1, 2, 3, 4, 5)]
    log = qv.read_log(pa.table(columns))
    queries = _word_queries(log, np.ones(log.n_queries, np.bool_))
    assert dict(zip(log.tokens.text.to_pylist(), queries.tolist(), strict=True)) == {
        "red": 1, "tea": 3, "cup": 1, "green": 1, "dog": 1,
    }  # fmt: skip
    release = as_it_is(log)
    beside = _Beside.of(release, log)
    ids = {query: i for i, query in enumerate(log.query_text.to_pylist())}
    one, other = (np.array([ids[q] for q in side], np.int32) for side in (["red tea cup"] * 2, ["green tea", "dog"]))
    topics = _topics(log, Searches.of(log))
    found = _features(log, queries, topics, beside, one, other)
    assert found[:, 0].tolist() == [1, 0]
    assert found[:, 1].tolist() == [1 / 4, 0]
    assert found[:, 2] == pytest.approx([np.log2(3), -1])
    grams = [{f" {text} "[i : i + 3] for i in range(len(text))} for text in ("red tea cup", "green tea", "dog")]
    assert found[:, 3] == pytest.approx([len(grams[0] & g) / len(grams[0] | g) for g in grams[1:]])
    assert found[:, 5:8].tolist() == [[2, 3, 2], [1, 3, 8]]
    assert found[:, 8].tolist() == [0, 0]
    assert found[:, 9].tolist() == [1, 0]
    assert found[:, 10].tolist() == [2, 3]


def test_words_of_the_same_people_are_near_each_other():
    log = read([(u, word) for u in range(40) for word in (["saddle", "pony"] if u % 2 else ["tax", "refund", "form"])])
    vectors = _topics(log, Searches.of(log))
    ids = {word: i for i, word in enumerate(log.tokens.text.to_pylist())}
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert unit[ids["saddle"]] @ unit[ids["pony"]] == pytest.approx(1)
    assert unit[ids["saddle"]] @ unit[ids["tax"]] == pytest.approx(0, abs=1e-9)


def test_people_of_a_log_like_real_ones_are_found_too(synthetic):
    found = user_linkage(identity(synthetic), synthetic)
    assert found.succeeds
    assert found.estimate.low > found.baseline + 0.2
    assert found.control.low < found.baseline + 0.1
    assert found.details["recall"] > 0.05


def test_days_help_where_they_are_released():
    """Texts tell nothing, but everybody searches on two days of his own."""
    rng = np.random.default_rng(1)
    rows = [
        (u, f"q{rng.integers(10**6)}", f"2006-{1 + u % 12:02}-{1 + u // 12:02} 10:00:00")
        for u in range(300)
        for _ in range(6)
    ]
    log = qv.read_log(
        pa.table({name: [str(row[i]) for row in rows] for i, name in enumerate(("user", "query", "time"))})
    )
    dated = qv.Rules(max_characters=1000, link="user", time="day").anonymize(log)
    assert user_linkage(dated, log).estimate.value > 0.9
    assert not user_linkage(identity(log), log).succeeds


def test_clicks_help_where_they_are_released():
    """Texts tell nothing, but every two twins have a site of their own."""
    rng = np.random.default_rng(1)
    typed = [(u, f"q{rng.integers(10**6)}", f"http://site{u}.com/") for u in range(300) for _ in range(6)]
    rows = [(f"u{u} {twin}", query, url) for u, query, url in typed for twin in "ab"]
    log = qv.read_log(pa.table({name: [row[i] for row in rows] for i, name in enumerate(("user", "query", "url"))}))
    found = user_linkage(qv.Equality(k=2).anonymize(log), log)
    assert found.succeeds
    assert found.estimate.value > 0.9
    hidden = qv.Rules(max_characters=1000, link="user").anonymize(log)
    assert "url" not in hidden.schema.names
    assert user_linkage(hidden, log).estimate.value < 0.7


def test_what_it_needs(monkeypatch):
    log = read([(u, f"w{u}") for u in range(30)])
    with pytest.raises(InapplicableError, match="fewer than 20 pairs"):
        user_linkage(identity(log), log)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InapplicableError, match=r"needs scikit-learn, .*: pip install 'queryveil\[attack\]'"):
        user_linkage(identity(log), log)
