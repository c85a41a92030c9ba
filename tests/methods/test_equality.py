from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from tests.oracles import log as oracle
from tests.strategies import LOGS, table

LINKS = ["none", "session", "user"]


def user_map(release: qv.Release) -> dict[str, int]:
    return {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}


def rows_of(release: qv.Release) -> list[dict]:
    return pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()


@given(LOGS, st.integers(2, 4), st.sampled_from(LINKS))
def test_releases_what_the_definition_says(rows, k, link):
    if len({row.user for row in oracle.good(rows)}) < k:
        return
    log = qv.read_log(table(rows))
    if link == "session" and not log.has_times:
        return
    release = qv.Equality(k=k, link=link).anonymize(log, seed=3)
    queries, clicks = oracle.equality(rows, k)
    found = rows_of(release)
    assert Counter(query for _, query in {(row["event"], row["query"]) for row in found}) == queries
    assert Counter((row["query"], row["url"]) for row in found if row.get("url")) == clicks
    assert {"user", "session"} & set(release.schema.names) == {link} - {"none"}


@given(LOGS, st.integers(2, 4), st.sampled_from(LINKS), st.integers(1, 3))
def test_the_verifier_accepts_every_release(rows, k, link, most):
    if len({row.user for row in oracle.good(rows)}) < k:
        return
    log = qv.read_log(table(rows))
    if link == "session" and not log.has_times:
        return
    verification = qv.verify(qv.Equality(k=k, link=link, session_events=most).anonymize(log, seed=1), log)
    assert verification.holds, verification


@given(LOGS)
def test_each_pseudonym_has_the_released_queries_of_one_user(rows):
    if len({row.user for row in oracle.good(rows)}) < 2:
        return
    log = qv.read_log(table(rows))
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    released = oracle.equality(rows, 2)[0]
    original = defaultdict(Counter)
    for (user, query, _), n in oracle.events(rows).items():
        if query in released:
            original[user][query] += n
    fresh = defaultdict(Counter)
    for user, _, query in {(row["user"], row["event"], row["query"]) for row in rows_of(release)}:
        fresh[user][query] += 1
    assert sorted(map(sorted, (c.items() for c in fresh.values()))) == sorted(
        map(sorted, (c.items() for c in original.values()))
    )
    fresh_ids = user_map(release)
    assert {fresh_ids[user]: counts for user, counts in original.items()} == fresh
    assert sorted(fresh) == list(range(1, len(fresh) + 1))


def test_pseudonyms_follow_the_seed_and_the_log_and_not_the_original_ids():
    def ids(seed, extra=()):
        users = [f"u{i:03}" for i in range(200)]
        log = qv.read_log(pa.table({"user": [*users, *extra], "query": ["same"] * (200 + len(extra))}))
        release = qv.Equality(k=2, link="user").anonymize(log, seed=seed)
        by_name = user_map(release)
        return [by_name[user] for user in users]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)
    # One more row in the log changes the order of all: a reader who knows the seed but not the log cannot repeat it.
    changed = [a for a, b in zip(ids(1), ids(1, extra=["u000"]), strict=True) if a != b]
    assert len(changed) > 150
    assert sorted(ids(1)) != ids(1)


def test_an_event_with_a_rare_click_stays_without_it():
    rows = pa.table(
        {
            "user": ["a", "b", "c", "c"],
            "query": ["tea"] * 4,
            "time": ["2006-03-01 10:00:00"] * 4,
            "rank": [1, 1, 1, 9],
            "url": ["http://tea.com", "http://tea.com", "http://tea.com/my-own-page", "http://tea.com/another"],
        }
    )
    found = rows_of(qv.Equality(k=2).anonymize(qv.read_log(rows)))
    assert Counter(row["url"] for row in found) == {"http://tea.com": 2, None: 1}
    assert Counter(row["rank"] for row in found) == {1: 2, None: 1}


def test_a_rank_stays_only_if_k_users_clicked_at_it():
    rows = {"user": list("abcde"), "query": ["tea"] * 5, "rank": [1, 1, 1, 1, 4837], "url": ["http://tea.com"] * 5}
    found = rows_of(qv.Equality(k=3).anonymize(qv.read_log(pa.table(rows))))
    assert Counter(row["rank"] for row in found) == {1: 4, None: 1}
    assert {row["url"] for row in found} == {"http://tea.com"}


def test_releases_of_one_log_do_not_line_up_by_user():
    rows = pa.table({"user": [f"u{i:03}" for i in range(300)], "query": ["same"] * 300})
    log = qv.read_log(rows)
    methods = [qv.Equality(k=k, link="user") for k in (2, 3)]
    one, other = (np.array(list(user_map(method.anonymize(log, seed=1)).values())) for method in methods)
    assert np.mean(one == other) < 0.1
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.3


def test_larger_k_releases_a_part_of_what_smaller_k_does():
    log = qv.read_log(pa.table({"user": list("abcabxab"), "query": ["x"] * 3 + ["y"] * 2 + ["z"] + ["y"] * 2}))
    kept = [{row["query"] for row in rows_of(qv.Equality(k=k).anonymize(log))} for k in (2, 3, 4)]
    assert kept == [{"x", "y"}, {"x"}, set()]


def test_a_k_beyond_the_users_is_refused():
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["x", "x"]}))
    with pytest.raises(qv.QueryveilError, match="'k' parameter of Equality is 3, but the log has only 2 users"):
        qv.Equality(k=3).anonymize(log)


@pytest.mark.parametrize("k", [1, 0, -1, "five", 2.5, None])
def test_k_must_be_an_integer_of_at_least_two(k):
    with pytest.raises(qv.QueryveilError, match=r"The 'k' parameter of Equality must be an integer of at least 2. Got"):
        qv.Equality(k=k)


def test_explain_compares_users_with_k():
    log = qv.read_log(pa.table({"user": list("abc"), "query": ["x", "x", "y"]}))
    (reason,) = qv.Equality(k=2).explain(log, log.find("x"))
    assert (reason.passed, reason.found) == (True, "2 did")
    (reason,) = qv.Equality(k=2).explain(log, log.find("y"))
    assert (reason.passed, reason.found) == (False, "1 did")
