"""Results shown: rows that say whether they were clicked, in every format, and what is wrong with them."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.kernels.events import find_bad_views, merge_views
from queryveil.kernels.times import parse_flags
from queryveil.text.arrays import byte_spans
from tests.both import on_both_engines
from tests.oracles import views as oracle
from tests.oracles.views import Shown

TIMES = ["2026-03-01 10:00:00", "2026-03-01 10:00:01", None]
ROWS = st.builds(
    Shown,
    user=st.sampled_from([f"u{i}" for i in range(6)]),
    query=st.sampled_from(["cat", "dog", "Sea  cat"]),
    time=st.sampled_from(TIMES[:2]) | st.sampled_from(TIMES),
    rank=st.none() | st.integers(1, 3),
    url=st.none() | st.sampled_from(["http://a.com", "http://b.org", "http://c.net"]),
    clicked=st.booleans(),
)
LOGS = st.lists(ROWS, min_size=1, max_size=40)
KINDS = {"rank": pa.int32(), "clicked": pa.bool_()}
SCHEMA = pa.schema([(name, KINDS.get(name, pa.string())) for name in Shown._fields])


def table(rows: list[Shown]) -> pa.Table:
    return pa.Table.from_pylist([row._asdict() for row in rows], schema=SCHEMA)


def views_of(log: qv.QueryLog) -> Counter:
    """The views of a log with their texts."""
    found = log.engine.fetch(
        'SELECT u."user" AS who, q.query AS query, e.time AS time, v.rank AS rank, a.url AS url, v.clicked AS clicked'
        " FROM views v JOIN events e ON e.event_id = v.event_id JOIN users u ON u.user_id = v.user_id"
        " JOIN queries q ON q.query_id = v.query_id LEFT JOIN urls a ON a.url_id = v.url_id"
    )
    return Counter(
        (row["who"], row["query"], row["time"].isoformat(" "), row["rank"], row["url"], bool(row["clicked"]))
        for row in found.to_pylist()
    )


@given(LOGS)
def test_views_are_the_distinct_results_of_good_rows(rows):
    wrong = oracle.bad(rows, 1000)
    good = [row for number, row in enumerate(rows) if not any(number in some for some in wrong.values())]
    if not good:
        return
    log = qv.read_log(table(rows), max_bad_rows=1)
    expected = oracle.views(good)
    assert log.stats.bad_rows.count == {kind: len(some) for kind, some in wrong.items()}
    for kind in wrong.keys() & {"a rank that repeats"}:
        assert log.stats.bad_rows.first[kind] == f"the table:{min(wrong[kind]) + 1}"
    assert log.stats.rows == len(good)
    assert log.has_views == bool(expected)
    assert set(log.user_text.to_pylist()) == {row.user for row in good}
    if expected:
        assert views_of(log) == Counter((*key, clicked) for key, clicked in expected.items())
        assert log.stats.clicks == sum(expected.values()) == len(log.clicks)
        clicked = log.views.filter(pa.array(log.views["clicked"].to_numpy() == 1)).drop(["clicked"])
        assert clicked.equals(log.clicks)
    again = qv.read_log(table(good[::-1]))
    assert again.fingerprint == log.fingerprint


RESULTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(-1, 2), st.integers(-1, 2), st.integers(0, 1)),
    min_size=1,
    max_size=30,
)


@given(RESULTS, st.integers(1, 3))
def test_kernels_find_what_is_wrong_with_the_results_of_an_event_and_merge_the_others(results, most):
    results = sorted(results)
    user, query, rank, url = (np.array([one[i] for one in results], np.int32) for i in range(4))
    clicked = np.array([one[4] for one in results], np.int8)
    rows = [
        Shown(f"u{who}", f"q{what}", "t", None if at < 0 else at, None if where < 0 else f"{where}", False)
        for who, what, at, where, _ in results
    ]
    wrong = oracle.bad(rows, most)
    codes = find_bad_views(user, query, np.zeros(len(user), np.int64), rank, url, most)
    for code, kind in ((1, "a rank that repeats"), (2, "an over-long result list")):
        assert set(np.flatnonzero(codes == code).tolist()) == wrong.get(kind, set())
    event = user * 2 + query
    place, was = merge_views(event, rank, url, clicked)
    first = {}
    for number, one in enumerate(results):
        first.setdefault(one[:4], number)
    assert place.tolist() == list(first.values())
    assert was.tolist() == [max(one[4] for one in results if one[:4] == key) for key in first]


def test_flags_are_yes_or_no_in_any_case():
    words = ["1", "TRUE", "Yes", "0", "false", "no", "", None, "2", "maybe", "truely", "y"]
    assert parse_flags(*byte_spans(pa.array(words))).tolist() == [1, 1, 1, 0, 0, 0, 0, 0, -2, -2, -2, -2]


EVENT, OTHER = (
    {"user": "u", "query": query, "time": f"2026-01-01 1{hour}:00:00"} for hour, query in enumerate(("cats", "dogs"))
)
FLAT = [EVENT | {"rank": n, "url": url, "clicked": url == "b"} for n, url in enumerate("abc", 1)] + [OTHER]
UBI = {"query_id": "1", "client_id": "u", "user_query": "cats", "timestamp": EVENT["time"]}
UBI_OTHER = UBI | {"query_id": "2", "user_query": "dogs", "timestamp": OTHER["time"], "query_response_hit_ids": []}
CLICK = {"query_id": "1", "client_id": "u", "action_name": "click", "event_attributes": {"object": {"object_id": "b"}}}
OBJECTS = [{"url": "a"}, {"url": "b", "clicked": 1}, {"url": "c", "clicked": None}]
SPELLINGS = {
    "flat.jsonl": FLAT,
    "addresses.jsonl": [EVENT | {"results": ["a", "b", "c"], "clicked": ["b"]}, OTHER | {"results": []}],
    "one click.jsonl": [EVENT | {"hits": ["a", "b", "c"], "clicked": "b"}, OTHER],
    "objects.jsonl": [EVENT | {"results": OBJECTS}, OTHER | {"results": None}],
    "ranks.jsonl": [
        EVENT | {"results": [{"url": u, "rank": n, "clicked": n == 2} for n, u in ((3, "c"), (2, "b"), (1, "a"))]},
        OTHER,
    ],
    "hits.ndjson": [UBI | {"query_response_hit_ids": ["a", "b", "c"]}, UBI_OTHER, CLICK],
    "table.csv": FLAT,
    "table.tsv": FLAT,
    "flat.parquet": FLAT,
    "lists.parquet": [EVENT | {"results": ["a", "b", "c"], "clicked": ["b"]}, OTHER | {"results": []}],
    "structs.parquet": [EVENT | {"results": OBJECTS}, OTHER | {"results": []}],
}


def write(folder, name: str, rows: list[dict]):
    """Rows as a file in the format of its name."""
    path = folder / name
    names = list(dict.fromkeys(key for row in rows for key in row))
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name.endswith(("json", "jsonl")):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        sep = "\t" if name.endswith(".tsv") else ","
        lines = [names, *([row.get(key, "") for key in names] for row in rows)]
        path.write_text("".join(sep.join(map(str, line)) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_format_gives_the_same_log(tmp_path, name):
    log = qv.read_log(write(tmp_path, name, SPELLINGS[name]))
    assert (log.stats.events, log.stats.views, log.stats.clicks, log.stats.rows) == (2, 3, 1, 4)
    assert log.fingerprint == qv.read_log(pa.Table.from_pylist(FLAT)).fingerprint
    assert log.fingerprint != qv.read_log(pa.Table.from_pylist(FLAT).drop(["clicked"])).fingerprint


def test_fields_of_results_can_be_named(tmp_path):
    rows = [
        EVENT | {"serp": {"docs": [{"id": "a", "p": 1}, {"id": "b", "p": 2, "c": True}, {"id": "c", "p": 3}]}},
        OTHER,
    ]
    columns = {"results": "serp.docs", "url": "serp.docs.id", "rank": "serp.docs.p", "clicked": "serp.docs.c"}
    log = qv.read_log(write(tmp_path, "named.jsonl", rows), columns=columns)
    assert log.fingerprint == qv.read_log(pa.Table.from_pylist(FLAT)).fingerprint


MANY = [f"http://{n}.com" for n in range(1001)]
LONG, TWICE = "an over-long result list", "a rank that repeats"
NOT_SHOWN, NO_EVENT = "a click on what was not shown", "a view without an event"
BAD = {
    "a list": ("a.jsonl", [EVENT | {"results": MANY}, OTHER], 1, LONG, 1),
    "a list in UBI": ("a.ndjson", [UBI_OTHER, UBI | {"query_response_hit_ids": MANY}], 1, LONG, 2),
    "rows of an event": ("a.csv", [OTHER, *(EVENT | {"url": url, "clicked": 0} for url in MANY)], 1001, LONG, 3),
    "a rank": ("a.csv", [EVENT | {"rank": 1, "url": url, "clicked": 0} for url in "ab"], 2, TWICE, 2),
    "a click beside a list": ("a.jsonl", [EVENT | {"results": ["a"], "clicked": ["b"]}, OTHER], 1, NOT_SHOWN, 1),
    "a click in UBI": ("a.ndjson", [UBI | {"query_response_hit_ids": ["a"]}, CLICK], 1, NOT_SHOWN, 2),
    "a click on nothing": ("a.csv", [EVENT | {"url": "", "clicked": 1}], 1, NOT_SHOWN, 2),
    "no time": ("a.csv", [EVENT | {"time": "", "url": "a", "clicked": 1}], 1, NO_EVENT, 2),
    "no flag": ("a.tsv", [EVENT | {"url": "a", "clicked": "perhaps"}], 1, "bad clicked", 2),
}


@pytest.mark.parametrize(("name", "rows", "count", "kind", "line"), BAD.values(), ids=BAD)
def test_bad_results_are_counted_with_their_place(tmp_path, name, rows, count, kind, line):
    path = write(tmp_path, name, rows)
    with pytest.raises(qv.QueryveilError) as error:
        qv.read_log(path)
    assert f": {count:,} with {kind} (first at {path}:{line});" in str(error.value)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([EVENT | {"results": ["a"], "url": "a"}], "has a list of results and a column of the url beside it"),
        ([EVENT | {"results": [1.5]}], "cannot be a result; choose another column with columns={'results': 'NAME'}"),
    ],
)
def test_lists_that_make_no_sense_are_refused(rows, found):
    with pytest.raises(qv.QueryveilError) as error:
        qv.read_log(pa.Table.from_pylist(rows))
    assert found in str(error.value)


def test_clicks_and_views_are_not_mixed(tmp_path):
    files = [write(tmp_path, "views.csv", FLAT[:3]), write(tmp_path, "clicks.csv", [EVENT | {"url": "a"}])]
    with pytest.raises(
        qv.QueryveilError, match="Some rows of the log say whether a result was clicked, and others are"
    ):
        qv.read_log(files)
    # Events without any result fit both.
    assert qv.read_log([files[0], write(tmp_path, "none.csv", [OTHER])]).stats.views == 3


def test_a_writer_may_leave_out_what_is_false(tmp_path, monkeypatch):
    monkeypatch.setattr("queryveil.formats.source.BLOCK", 300)
    rows = [EVENT | {"rank": 1, "url": "a", "clicked": True}]
    rows += [EVENT | {"user": f"v{n}", "rank": 1, "url": "a"} for n in range(50)]
    log = qv.read_log(write(tmp_path, "sparse.jsonl", rows))
    assert (log.stats.views, log.stats.clicks) == (51, 1)


BOTH = [
    *(Shown(f"u{n % 5}", "cat", TIMES[n % 2], n % 4 + 1, f"http://{n % 4}.com", n % 3 == 0) for n in range(40)),
    Shown("u9", "dog", TIMES[0], None, None, False),
    *(Shown("u8", "x", TIMES[0], 1, url, True) for url in ("http://a.com", "http://b.com")),
    Shown("u8", "x", None, 1, "http://b.com", True),
]
TABLE = table(BOTH)


@on_both_engines
def test_a_log_of_views_is_the_same_on_both_engines(read):
    rows, log = BOTH, read(TABLE, max_bad_rows=1)
    wrong = oracle.bad(rows, 1000)
    good = [row for number, row in enumerate(rows) if not any(number in some for some in wrong.values())]
    assert views_of(log) == Counter((*key, clicked) for key, clicked in oracle.views(good).items())
    assert log.stats.bad_rows.count == {kind: len(some) for kind, some in wrong.items()}
    assert log.fingerprint == qv.read_log(table(good)).fingerprint


def test_parts_and_scrubbed_logs_keep_views():
    rows = [
        Shown(f"u{n}", query, TIMES[0], 1, f"http://{query}.com", n == 1) for n in range(3) for query in ("cat", "dog")
    ]
    rows += [Shown("u1", "jane@example.com", TIMES[0], 1, "http://a.com", True)]
    rows += [
        Shown("u1", "sea", TIMES[0], n, url, False) for n, url in enumerate(("http://s.com/?q=jane%40example.com", "b"))
    ]
    log = qv.read_log(table(rows))
    scrubbed = qv.scrub(log, "remove")
    gone = {"jane@example.com"}
    expected = {
        key: was for key, was in oracle.views(rows).items() if key[1] not in gone and "jane" not in (key[4] or "")
    }
    assert views_of(scrubbed) == Counter((*key, clicked) for key, clicked in expected.items())
    assert (scrubbed.stats.views, scrubbed.stats.clicks) == (len(expected), sum(expected.values()))
    assert scrubbed.stats.scrub.log.views == log.stats.views
    with log.workspace() as work:
        part = log.only(work.read(pa.table({"query_id": pa.array([log.find("cat")], pa.int32())})), "test")
        assert views_of(part) == Counter((*key, was) for key, was in oracle.views(rows).items() if key[1] == "cat")


def test_a_profile_shows_views_and_ranks():
    found = qv.profile(qv.read_log(pa.Table.from_pylist(FLAT)))
    assert (found.views, found.clicks) == (3, 1)
    assert [(one.rank, one.views, one.clicks) for one in found.ranks] == [("1", 1, 0), ("2", 1, 1), ("3", 1, 0)]
    without = qv.profile(qv.read_log(pa.Table.from_pylist(FLAT).drop(["clicked"])))
    assert "views" not in without.as_dict()
    assert without.ranks == ()
