"""Poblete from log to release: the four steps against the literal ones, verified releases, refuted forgeries."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims.base import Evidence
from queryveil.errors import QueryveilError
from queryveil.release import check_claims, loaded
from tests.both import on_both_engines_weekly
from tests.oracles import removal as oracle

ADDRESSES = {
    "http://www.coca-cola.co.uk/a": ("coca-cola.co.uk", ["coca-cola.co.uk", "coca-cola"]),
    "http://shop.coca-cola.co.uk": ("coca-cola.co.uk", ["shop.coca-cola.co.uk", "coca-cola.co.uk", "coca-cola"]),
    "http://att.com": ("att.com", ["att.com", "att"]),
    "https://recipes.example.org/soup": ("example.org", ["recipes.example.org", "example.org", "example"]),
    "http://10.0.0.1/x": ("10.0.0.1", ["10.0.0.1"]),
    "nowhere": ("nowhere", []),
}
"""Addresses, the site of each, and what it is called."""
WORDS = ["coca", "cola", "at&t", "att.com", "example", "www.example.org", "soup", "recipes", "10.0.0.1", "shop", "été"]


def read(rows):
    columns = {"user": [r[0] for r in rows], "query": [r[1] for r in rows], "url": [r[2] for r in rows]}
    return qv.read_log(pa.table(columns, pa.schema([(name, pa.string()) for name in columns])))


def rows_of(release):
    return pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()


def clicked_of(rows):
    clicked = {}
    for _, query, url in rows:
        if url is not None:
            clicked.setdefault(query, set()).add(url)
    return clicked


def expected(log, rows, k, sites):
    """The queries that stay, step by step."""
    passed = {
        log.find(query): urls
        for query, urls in clicked_of(rows).items()
        if len(urls) >= k
        and not oracle.names_target(query, [name for url in urls for name in ADDRESSES[url][1]])
        and len({ADDRESSES[url][0] for url in urls}) >= sites
    }
    return {log.query_text[query].as_py() for query in oracle.disconnected(passed)}


LOGS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
        st.sampled_from([None, *ADDRESSES]),
    ),
    min_size=1,
    max_size=30,
).filter(lambda rows: any(url for *_, url in rows))


@given(LOGS, st.integers(1, 3), st.integers(1, 3), st.sampled_from(["none", "user"]))
def test_the_four_steps_are_the_literal_ones_and_the_verifier_agrees(rows, k, sites, link):
    log = read(rows)
    method = qv.Poblete(k=k, sites=sites, link=link)
    release = method.anonymize(log, seed=1)
    assert {row["query"] for row in rows_of(release)} == expected(log, rows, k, sites)
    assert release.manifest.counts.clicks == 0
    assert not {"url", "rank", "time"} & set(release.schema.names)
    verification = qv.verify(release, log)
    assert verification.holds, verification
    before = oracle.density(clicked_of(rows))
    assert f"density {float(before):.3g} " in release.notes[0]
    assert rows_of(method.anonymize(log, seed=1)) == rows_of(release)


@given(LOGS, st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_by_tables_the_same_queries_stay(rows, k, sites, part):
    log, method = read(rows), qv.Poblete(k=k, sites=sites)
    with log.workspace() as work:
        within = work.table("SELECT query_id FROM queries WHERE query_id < 5") if part else None
        one, other = method.select(log, work, within), method.select_by_tables(log, work, within)
        kept = [
            sorted(work.fetch(f"SELECT query_id FROM {each.queries}")["query_id"].to_pylist()) for each in (one, other)
        ]
    assert kept[0] == kept[1]
    assert other.notes == one.notes


SOUP = [
    ("a", "soup", "http://att.com"),
    ("a", "soup", "https://recipes.example.org/soup"),
    ("b", "tomato soup", "https://recipes.example.org/soup"),
    ("b", "tomato soup", "http://10.0.0.1/x"),
    ("c", "drinks", "http://www.coca-cola.co.uk/a"),
    ("c", "drinks", "http://shop.coca-cola.co.uk"),
    ("d", "coca cola", "http://www.coca-cola.co.uk/a"),
    ("d", "coca cola", "nowhere"),
    ("d", "tea", "nowhere"),
    ("d", "tea", "http://unlike.example.net"),
    ("d", "milk", None),
]


def test_each_step_removes_what_it_should():
    log = read(SOUP)
    method = qv.Poblete(k=2, sites=2)
    kept = {row["query"] for row in rows_of(method.anonymize(log))}
    # Of the two soups, which have an edge, the one goes whose text has the smaller digest.
    goes, stays = sorted(["soup", "tomato soup"], key=log.find)
    assert kept == {"tea", stays}
    why = {
        query: [reason.passed for reason in qv.explain(method.anonymize(log), log, query).reasons]
        for query in ("drinks", "coca cola", "milk", goes, stays)
    }
    assert why == {
        "drinks": [True, True, False],
        "coca cola": [True, False, True],
        "milk": [False, True, False],
        goes: [True, True, True, False],
        stays: [True, True, True, True],
    }


def test_a_removed_neighbour_makes_room():
    """The one in the middle goes, and both beside it stay."""
    urls = list(ADDRESSES)
    middle = [("a", "m", urls[2]), ("a", "m", urls[4])]
    beside = [("b", "x", urls[2]), ("b", "x", urls[0]), ("c", "y", urls[4]), ("c", "y", urls[5])]
    release = qv.Poblete(k=2, sites=2).anonymize(read(middle + beside))
    assert {row["query"] for row in rows_of(release)} == {"x", "y"}
    assert "density 0.667 (3 distinct queries with a click, 2 edges)" in release.notes[0]


@pytest.mark.parametrize(
    ("swap", "why"),
    [
        ("soup", "share a clicked address"),
        ("tomato soup", "share a clicked address"),
        ("coca cola", "names a site"),
        ("drinks", "has 2 clicked addresses of 1 sites"),
        ("milk", "has 0 clicked addresses"),
    ],
)
def test_a_query_that_should_have_gone_is_refuted(swap, why):
    log = read(SOUP)
    release = qv.Poblete(k=2, sites=2).anonymize(log)
    rows = rows_of(release)
    added = [{"user": 1, "event": 90, "query": swap}]
    if swap not in {row["query"] for row in rows}:
        rows += added
    else:  # it stayed: add the other one
        rows += [added[0] | {"query": "soup" if swap == "tomato soup" else "tomato soup"}]
    table = pa.Table.from_pylist(rows, release.schema)
    forged = replace(release, batches=lambda: iter(table.to_batches()))
    wrong = [verdict for verdict in qv.verify(forged, log).verdicts if not verdict.holds]
    assert any(verdict.counterexample and why in verdict.counterexample for verdict in wrong), wrong


def test_a_released_click_is_refuted():
    log = read(SOUP)
    release = qv.Poblete(k=2, sites=2).anonymize(log)
    schema = release.schema.append(pa.field("rank", pa.int32())).append(pa.field("url", pa.string()))
    rows = [row | {"url": "nowhere" if row["query"] == "tea" else None, "rank": None} for row in rows_of(release)]
    table = pa.Table.from_pylist(rows, schema)
    forged = replace(release, schema=schema, batches=lambda: iter(table.to_batches()))
    assert not qv.verify(forged, log).holds
    wrong = [verdict for verdict in check_claims(forged, log) if not verdict.holds]
    assert any(verdict.counterexample == "a click for 'tea' is released" for verdict in wrong), wrong


def test_a_manifest_must_claim_what_the_parameters_say():
    log = read(SOUP)
    release = qv.Poblete(k=2, sites=2).anonymize(log)
    weaker = release.manifest.model_copy(update={"parameters": release.manifest.parameters | {"sites": 3}})
    wrong = [v for v in qv.verify(replace(release, manifest=weaker), log).verdicts if not v.holds]
    assert ["at least 3 sites" in v.counterexample for v in wrong] == [True]


@pytest.mark.parametrize("format", ["parquet", "aol", "csv"])
def test_a_saved_release_is_verified(tmp_path, format):
    log = read(SOUP)
    qv.Poblete(k=2, sites=2, link="user").anonymize(log).save(tmp_path / "r", format=format)
    assert qv.verify(tmp_path / "r", log).holds


SOUP_TABLE = pa.table(
    {name: pa.array([row[i] for row in SOUP], pa.string()) for i, name in enumerate(("user", "query", "url"))}
)


@on_both_engines_weekly
def test_a_release_is_the_same_and_verified_on_both_engines(read, tmp_path):
    log = read(SOUP_TABLE)
    release = qv.Poblete(k=2, sites=2).anonymize(log, seed=1)
    here = qv.Poblete(k=2, sites=2).anonymize(qv.read_log(SOUP_TABLE), seed=1)
    assert rows_of(release) == rows_of(here)
    assert (release.manifest, release.notes) == (here.manifest, here.notes)
    release.save(tmp_path / "r")
    verification = qv.verify(tmp_path / "r", log)
    assert verification.holds, verification
    claims = {type(claim).__name__: claim for claim in release.manifest.claims}
    wrong = ["soup", "tomato soup", "coca cola"]
    more = [{"user": 1, "event": 90 + i, "query": query} for i, query in enumerate(wrong)]
    made = pa.Table.from_pylist(more, release.schema)
    forged = replace(release, batches=lambda: iter(made.to_batches()))
    with loaded(forged, log) as released, log.workspace() as work:
        evidence = Evidence(log, work, tuple(release.schema.names), released)
        assert "share a clicked address" in claims["DisjointClicks"].check(evidence)
        assert "the query 'coca cola' names a site" in claims["ClickedSites"].check(evidence)


@pytest.mark.parametrize("more", [{}, {"rank": [1, 2]}], ids=["no clicks", "ranks alone"])
def test_a_log_without_addresses_is_refused_for_that_reason(more):
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["x", "y"], **more}))
    assert log.has_clicks == bool(more)
    with log.workspace() as work:
        for make in (qv.Poblete().select, qv.Poblete().select_by_tables):
            with pytest.raises(QueryveilError, match="no click of the log has one; name the column"):
                make(log, work)


@pytest.mark.parametrize("bad", [{"k": 0}, {"sites": 0}])
def test_bad_parameters(bad):
    (name,) = bad
    with pytest.raises(QueryveilError, match=f"The '{name}' parameter of Poblete must be an integer of at least 1"):
        qv.Poblete(**bad)
