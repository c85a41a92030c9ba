"""The distance by features against the literal one, and records that keep frequencies."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.kernels.semantic import ONE
from queryveil.methods.microaggregation import mdav
from queryveil.methods.microaggregation.common import Searches
from queryveil.methods.microaggregation.navarro import Features, prototypes
from tests.oracles import features as oracle
from tests.strategies import examples

QUERY = st.sampled_from(["red tea", "green tea", "red", "tea pot shop", "ham", "hamlet play"])
CLICK = st.sampled_from([None, "http://a.com/x", "http://www.a.com/y", "http://m.b.co.uk/", "http://1.2.3.4/"])
DOMAIN = {"http://a.com/x": "a", "http://www.a.com/y": "a", "http://m.b.co.uk/": "b", "http://1.2.3.4/": "n"}
EVENT = st.tuples(st.integers(0, 4), QUERY, st.none() | st.integers(0, 90), CLICK)


def read(rows):
    table = [
        {
            "user": f"u{u}",
            "query": q,
            "time": None if t is None else f"2006-03-01 00:{t // 60:02}:{t % 60:02}",
            "url": c,
        }
        for u, q, t, c in rows
    ]
    return qv.read_log(pa.Table.from_pylist(table, pa.schema([(name, pa.string()) for name in table[0]])))


@settings(max_examples=examples(15))
@given(st.lists(EVENT, min_size=2, max_size=14))
def test_the_distance_is_the_literal_mean_of_its_parts(rows):
    log = read(rows)
    number = {query: i for i, query in enumerate(log.query_text.to_pylist())}
    # Rows of one user that agree in query and time are one event with several clicks.
    of = defaultdict(list)
    clicks = log.engine.fetch(
        "SELECT e.event_id AS event, u.url AS url FROM events e LEFT JOIN clicks c ON c.event_id = e.event_id"
        " LEFT JOIN urls u ON u.url_id = c.url_id"
    ).to_pylist()
    for event in log.events.to_pylist():
        time = None if event["time"] is None else event["time"].minute * 60 + event["time"].second
        hit = tuple(DOMAIN[row["url"]] for row in clicks if row["event"] == event["event_id"] and row["url"])
        of[event["user_id"]].append(oracle.Event(log.query_text[event["query_id"]].as_py(), time, hit))
    everyone = [event for events in of.values() for event in events]
    found = Features.of(log, Searches.of(log)).rows_of(np.arange(log.n_users)).matrix() / ONE
    for a in of:
        for b in of:
            expected = float(oracle.distance(of[a], of[b], everyone, number))
            assert found[a, b] == pytest.approx(expected, abs=2e-3)  # a mean length is rounded to 1/1024
    assert (found == found.T).all()
    assert (np.diag(found) == 0).all()
    assert ((found >= 0) & (found <= 1)).all()


@given(
    st.lists(st.dictionaries(st.integers(0, 6), st.integers(1, 5), min_size=1), min_size=2, max_size=9),
    st.integers(1, 3),
)
def test_a_record_keeps_the_frequencies_of_its_group(logs, groups):
    start = np.cumsum([0, *map(len, logs)])
    searches = Searches(
        start,
        np.array([q for log in logs for q in sorted(log)], np.int32),
        np.array([log[q] for log in logs for q in sorted(log)], np.int64),
    )
    group = np.sort(np.arange(len(logs)) % groups).astype(np.int32)
    draw = np.random.default_rng(1).integers(0, 2**63, 7).astype(np.uint64)
    of, query = prototypes(searches, group, draw)
    for g in range(group.max() + 1):
        mine = [Counter(log) for log, h in zip(logs, group, strict=True) if h == g]
        total = sum(mine, Counter())
        record = Counter(query[of == g].tolist())
        assert record.total() == (2 * total.total() + len(mine)) // (2 * len(mine))
        for q, n in total.items():
            assert n // len(mine) <= record[q] <= -(-n // len(mine))
        lost = {q: n % len(mine) for q, n in total.items()}
        up = {q for q in total if record[q] > total[q] // len(mine)}
        assert all(lost[a] >= lost[b] for a in up for b in set(total) - up)


def test_who_spells_and_clicks_alike_is_grouped():
    rows = [(u, f"{'red tea' if u % 2 else 'hamlet play'} {u}", u % 2 * 80, [*DOMAIN][u % 2 * 2]) for u in range(12)]
    release = qv.Mdav(k=3, distance="features").anonymize(read(rows))
    records = defaultdict(set)
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        records[row["user"]].add(row["query"].split()[0])
    fresh = {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}
    for u in range(12):
        assert records[fresh[f"u{u}"]] == {"red" if u % 2 else "hamlet"}


@pytest.mark.parametrize("distance", ["features", "strings", "semantic"])
def test_blocks_hold_what_exact_groups_hold(distance, monkeypatch):
    """The claims hold in blocks, whose groups are pure where interests are."""
    monkeypatch.setattr(mdav, "BLOCK", 20)
    words = ["dog", "violin", "chess", "london"]
    rows = [(u, words[u // 20], None, f"http://{words[u // 20]}.com/") for u in range(80)]
    log = read(rows)
    release = qv.Mdav(k=3, distance=distance, grouping="blocks").anonymize(log)
    assert "in 4 blocks" in release.notes[0]
    assert qv.verify(release, log).holds
    fresh = {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        (user,) = [u for u in range(80) if fresh[f"u{u}"] == row["user"]]
        assert row["query"] == words[user // 20]


@settings(max_examples=examples(8))
@given(
    st.lists(EVENT, min_size=30, max_size=60),
    st.booleans(),
    st.sampled_from([{2}, {3}, {2, 3}, set()]),
)
def test_groups_by_tables_are_those_of_arrays(rows, compact, gone):
    """Also of a log without times, without clicks, or without both."""
    rows = [
        tuple(None if i in gone else value for i, value in enumerate((u + 5 * n, *row)))
        for n, (u, *row) in zip((0, 1, 2) * 20, rows, strict=False)
    ]
    log = read(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mdav, "BLOCK", 4)
        method = qv.Mdav(k=2, distance="features", grouping="blocks", compact=compact)
        assume(log.n_users >= 12)
        one, other = method.anonymize(log, seed=1), method.release_by_tables(log, seed=1)
    assert "blocks" in one.notes[0]
    assert other.notes[0] == one.notes[0]
    assert other.manifest == one.manifest
    assert list(other.batches()) == list(one.batches())


def test_more_than_the_log_has():
    with pytest.raises(QueryveilError, match="is 5, but the log has only 2 users, so nothing could be released"):
        qv.Mdav(distance="features").anonymize(read([(0, "red", 1, None), (1, "tea", 2, None)]))
