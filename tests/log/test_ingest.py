"""What `read_log` makes of rows."""

from collections import Counter
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.kernels.digest import digests
from queryveil.kernels.times import MISSING
from queryveil.log.ingest.content import NOTHING, ordered
from queryveil.text.arrays import byte_spans
from tests.oracles import log as oracle
from tests.oracles.log import Row
from tests.oracles.text import words
from tests.strategies import LOGS, table


def read(rows: list[Row], **options) -> qv.QueryLog | None:
    """The log of some rows; None if no row has a query."""
    if not oracle.good(rows):
        with pytest.raises(qv.QueryveilError, match="There is no query"):
            qv.read_log(table(rows), **options)
        return None
    return qv.read_log(table(rows), **options)


def texts(log: qv.QueryLog, column: str, ids) -> list[str]:
    return getattr(log, f"{column}_text").take(ids.combine_chunks()).to_pylist()


@given(LOGS, st.booleans())
def test_events_are_the_distinct_user_query_time(rows, timed):
    rows = rows if timed else [row._replace(time=None) for row in rows]
    log = read(rows)
    if log is None:
        return
    users, queries = texts(log, "user", log.events["user_id"]), texts(log, "query", log.events["query_id"])
    times = [t and t.isoformat(" ") for t in log.events["time"].to_pylist()]
    assert Counter(zip(users, queries, times, strict=True)) == oracle.events(rows)
    assert log.has_times == timed


@given(LOGS)
def test_clicks_hang_on_their_events(rows):
    log = read(rows)
    if log is None:
        return
    event = log.clicks["event_id"].to_numpy()
    query_of_event, user_of_event = log.events["query_id"].to_numpy(), log.events["user_id"].to_numpy()
    assert np.array_equal(log.clicks["query_id"].to_numpy(), query_of_event[event])
    assert np.array_equal(log.clicks["user_id"].to_numpy(), user_of_event[event])
    found = Counter(
        zip(
            texts(log, "user", log.clicks["user_id"]),
            texts(log, "query", log.clicks["query_id"]),
            log.clicks["rank"].to_pylist(),
            texts(log, "url", log.clicks["url_id"]),
            strict=True,
        )
    )
    assert found == Counter((r.user, r.query, r.rank, r.url) for r in oracle.good(rows) if r.url)


@given(LOGS)
def test_counts_of_users_and_events(rows):
    log = read(rows)
    if log is None:
        return
    queries = log.query_text.to_pylist()
    assert dict(zip(queries, log.users_per_query, strict=True)) == oracle.users_per_query(rows)
    per_query = Counter()
    for (_, query, _), n in oracle.events(rows).items():
        per_query[query] += n
    assert dict(zip(queries, log.events_per_query, strict=True)) == per_query
    assert dict(zip(log.tokens.text.to_pylist(), log.users_per_word, strict=True)) == oracle.users_per_word(rows)


@given(LOGS)
def test_tokens_are_the_words_of_each_query(rows):
    log = read(rows)
    if log is None:
        return
    for i, query in enumerate(log.query_text.to_pylist()):
        ids = log.tokens.word[log.tokens.start[i] : log.tokens.start[i + 1]]
        assert log.tokens.text.take(pa.array(ids)).to_pylist() == words(query)


@given(LOGS, st.integers(1, 3), st.integers(1, 3))
def test_ngrams_count_occurrences_events_and_users(rows, n, min_users):
    log = read(rows)
    if log is None:
        return
    word = log.tokens.text.to_pylist()
    found = {
        tuple(word[row[f"word_{i}"]] for i in range(1, n + 1)): (row["occurrences"], row["events"], row["users"])
        for row in log.ngrams(n, min_users=min_users).to_pylist()
    }
    assert found == {gram: counts for gram, counts in oracle.ngrams(rows, n).items() if counts[2] >= min_users}


@given(LOGS, st.randoms())
def test_nothing_depends_on_the_order_of_rows_nor_on_threads(rows, random):
    log = read(rows, threads=1)
    shuffled = list(rows)
    random.shuffle(shuffled)
    other = read(shuffled, threads=2)
    if log is None or other is None:
        return
    assert log.fingerprint == other.fingerprint
    assert log.events.equals(other.events)
    assert log.clicks.equals(other.clicks)
    assert log.query_text.equals(other.query_text)
    assert log.secret(1, "x") == other.secret(1, "x")


@given(LOGS, st.data())
def test_the_fingerprint_sees_every_change(rows, data):
    rows = oracle.good(rows)
    if not rows:
        return
    at = data.draw(st.integers(0, len(rows) - 1))
    row = rows[at]
    changed = data.draw(
        st.sampled_from(
            [
                row._replace(user=row.user + "x"),
                row._replace(query=row.query + "x"),
                row._replace(time="2007-01-01 00:00:00"),
                row._replace(url="http://x.com"),
                row._replace(rank=9),
                row._replace(device="watch"),
                None,
            ]
        )
    )
    other = [*rows[:at], *([changed] if changed else [row, row]), *rows[at + 1 :]]
    assert read(rows).fingerprint != read(other).fingerprint


REPEATED = [-49, -25, 30, 25, -17, 46, 30, -57, 27, 2, 55, -50, -2, -3, 37, -46, -7, -31, -9, 44]
"""How often the queries q0, q1, ... of one user are in one log, and as negative numbers in another, where the sums of
all digests of rows are the same. Lattice reduction finds such numbers in a second."""


def test_rows_whose_digests_add_up_to_the_same_are_another_log():
    nobody = digests(*byte_spans(pa.array([""])))
    numbers = [np.array([MISSING]).view(np.uint64), np.array([-1]).view(np.uint64), np.zeros(1, np.uint64)]
    totals = [0, 0, sum(REPEATED)]
    for i, times in enumerate(REPEATED):
        texts = [half for text in ("a", f"q{i}") for half in digests(*byte_spans(pa.array([text])))]
        row = np.concatenate([*texts, *nobody, *numbers]).view(np.uint8)
        for half, found in enumerate(digests(row, np.zeros(1, np.int64), np.full(1, len(row)))):
            totals[half] = (totals[half] + times * int(found[0])) % 2**64
    assert totals == [0, 0, 0]
    one, other = ([f"q{i}" for i, times in enumerate(REPEATED) for _ in range(sign * times)] for sign in (1, -1))
    assert len(one) == len(other) == 296
    made = [qv.read_log(pa.table({"user": ["a"] * 296, "query": queries})) for queries in (one, other)]
    assert made[0].fingerprint != made[1].fingerprint


@given(LOGS, st.data())
def test_values_that_change_places_are_another_log(rows, data):
    rows = oracle.good(rows)
    if len(rows) < 2:
        return
    a, b = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=2, max_size=2, unique=True))
    column = data.draw(st.sampled_from(["user", "query", "time", "rank", "url", "device"]))
    other = list(rows)
    other[a], other[b] = (rows[i]._replace(**{column: getattr(rows[j], column)}) for i, j in ((a, b), (b, a)))
    same = Counter(other) == Counter(rows)
    assert (read(rows).fingerprint == read(other).fingerprint) == same


def same_digests(monkeypatch, *texts):
    """Let some texts have the same digest, but not the one with a secret key."""
    plain = digests

    def weak(data, starts, ends, *key):
        low, high = plain(data, starts, ends, *key)
        forged = [data[a:b].tobytes().decode() in texts for a, b in zip(starts, ends, strict=True)]
        if not key:
            low[forged] = high[forged] = 7
        return low, high

    monkeypatch.setattr("queryveil.kernels.digest.digests", weak)


def test_texts_with_the_same_digest_are_other_logs(monkeypatch):
    same_digests(monkeypatch, "cats", "dogs")
    found = {qv.read_log(pa.table({"user": ["a"], "query": [query]})).fingerprint for query in ("cats", "dogs")}
    assert len(found) == 2


def test_two_texts_with_the_same_digest_are_not_taken_for_one(monkeypatch):
    same_digests(monkeypatch, "cats", "dogs")
    with pytest.raises(QueryveilError, match="Two different texts of the log have the same digest"):
        qv.read_log(pa.table({"user": ["a", "a"], "query": ["cats", "dogs"]}))


def test_a_digest_in_many_blocks_does_not_depend_on_order_nor_threads(monkeypatch):
    monkeypatch.setattr("queryveil.log.ingest.content._BLOCK", 4)
    rows = {"user": [f"u{i % 40}" for i in range(200)], "query": [f"q{i % 70}" for i in range(200)]}
    logs = [
        qv.read_log(pa.table({name: values[::step] for name, values in rows.items()}), threads=threads)
        for step, threads in ((1, 1), (-1, 2))
    ]
    assert logs[0].fingerprint == logs[1].fingerprint
    monkeypatch.undo()
    assert logs[0].fingerprint != qv.read_log(pa.table(rows)).fingerprint


def test_the_fingerprint_does_not_depend_on_case_blanks_or_absent_columns():
    one = pa.table({"user": ["a", "b"], "query": ["Cats  and dogs", "tea"], "device": ["", None]})
    other = pa.table({"query": ["tea", "cats and dogs"], "user": ["b", "a"]})
    assert qv.read_log(one).fingerprint == qv.read_log(other).fingerprint


def test_the_secret_depends_on_seed_purpose_and_log():
    log = qv.read_log(pa.table({"user": ["a"], "query": ["x"]}))
    other = qv.read_log(pa.table({"user": ["a"], "query": ["y"]}))
    found = {log.secret(1, "u"), log.secret(2, "u"), log.secret(1, "v"), other.secret(1, "u")}
    assert len(found) == 4
    assert log.fingerprint not in {secret.hex() for secret in found}


def test_extra_columns_are_carried_along():
    log = qv.read_log(
        pa.table({"user": ["a", "b", "c"], "query": ["x"] * 3, "device": ["phone", None, "desk"], "n": [1, 2, 2]})
    )
    assert {name: sorted(values.to_pylist()) for name, values in log.extras.items()} == {
        "device": ["desk", "phone"],
        "n": ["1", "2"],
    }
    by_user = dict(zip(texts(log, "user", log.events["user_id"]), log.events["device id"].to_pylist(), strict=True))
    assert by_user["b"] == -1
    assert log.extras["device"][by_user["a"]].as_py() == "phone"


def test_an_extra_column_may_be_called_like_an_inner_one():
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["x", "x"], "event": ["e1", "e2"], "word": ["w", "w"]}))
    assert log.events["event_id"].to_pylist() == [0, 1]
    assert sorted(log.extras["event"].to_pylist()) == ["e1", "e2"]
    assert qv.verify(qv.Equality(k=2).anonymize(log), log).holds
    with pytest.raises(qv.QueryveilError, match="has a name with a quote"):
        qv.read_log(pa.table({"user": ["a"], "query": ["x"], 'say "hi"': ["y"]}))


def test_times_of_a_table_may_be_timestamps_of_any_zone():
    times = pa.array([datetime(2006, 3, 1, 10), None], pa.timestamp("ms"))
    zoned = pa.array([1141207200000, None], pa.timestamp("ms", tz="America/New_York"))
    for column in (times, zoned):
        log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["x", "y"], "time": column}))
        assert sorted(log.events["time"].to_pylist(), key=str)[0] == datetime(2006, 3, 1, 10)


def test_users_are_known_in_the_order_of_the_rows():
    users = [f"u{i * 37 % 100}" for i in range(200)]
    log = qv.read_log(pa.table({"user": ["gone", *users], "query": [" ", *(f"q{i} a@b.org" for i in range(200))]}))
    assert log.user_text.take(pa.array(log.first_seen)).to_pylist() == list(dict.fromkeys(users))
    assert log.user_text.to_pylist() != list(dict.fromkeys(users))


def test_find_takes_any_spelling():
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["Cell Phone Case", "x"]}))
    assert log.query_text[log.find("  CELL phone\tcase ")].as_py() == "cell phone case"
    assert log.find("nobody") is None


def test_empty_queries_are_counted_and_are_no_bad_rows():
    log = qv.read_log(pa.table({"user": list("abcd"), "query": ["x", "", " - ", None]}))
    assert (log.stats.rows, log.stats.empty_rows, log.stats.bad_rows.total) == (1, 3, 0)


def test_bad_rows_are_counted_by_kind_with_the_first_place():
    rows = 200
    data = {
        "user": ["u"] * (rows - 1) + [""],
        "query": ["q"] * rows,
        "time": ["2006-03-01"] * rows,
        "rank": ["1"] * rows,
    }
    data["time"][7] = data["time"][9] = "never"
    data["query"][4] = "x" * 20_000
    data["rank"][5] = "first"
    log = qv.read_log(pa.table(data), max_bad_rows=0.05)
    assert log.stats.bad_rows.count == {"no user": 1, "over-long query": 1, "bad time": 2, "bad rank": 1}
    assert log.stats.bad_rows.first["bad time"] == "the table:8"
    with pytest.raises(qv.QueryveilError, match=r"5 of 200 rows are bad.*2 with bad time \(first at the table:8\)"):
        qv.read_log(pa.table(data))


def test_frames_of_other_packages_are_taken():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert len(qv.read_log(polars.DataFrame({"user": [1, 2], "query": ["a", "b"]})).events) == 2


def test_what_is_no_log_is_refused_in_one_sentence():
    with pytest.raises(qv.QueryveilError, match="takes a path"):
        qv.read_log(42)
    with pytest.raises(qv.QueryveilError, match="no encoding 'klingon'"):
        qv.read_log("x", encoding="klingon")
    with pytest.raises(qv.QueryveilError, match="line by line"):
        qv.read_log("x", encoding="hz")


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3, *[st.integers(NOTHING, 2)] * 3), min_size=1, max_size=40))
def test_rows_of_a_block_are_in_the_order_of_all_their_columns(rows):
    # A missing rank, like any missing value, comes first.
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    assert [tuple(row) for row in zip(*ordered(columns), strict=True)] == sorted(rows)
