import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryveil as qv
from queryveil.assess.reproduce import reproduce
from queryveil.assess.reproduce.batet2013 import cut_to_released
from queryveil.errors import QueryveilError


def test_batet2013(world):
    topics = pq.read_table(world[1].folder.parent / "truth" / "queries.parquet")
    lost, linked, *removal = reproduce("batet2013", *world, clusters=20, topics=topics)
    loss = {(row["k"], row["method"]): row["L"] for row in lost.rows}
    assert set(loss) == {(row["k"], row["method"]) for row in linked.rows}
    assert len(loss) == 6 * 5
    assert {row["clusters"] for row in lost.rows} == {20}
    assert all(loss[k, "semantic MDAV"] < loss[k, "at random"] for k in (2, 3, 4, 5, 6, 7))
    assert all(0 <= row["RL"] <= 1 / row["k"] for row in linked.rows)
    by_sites = {figure.name: figure for figure in removal}["figure-2-poblete"]
    assert [row["Kp"] for row in by_sites.rows] == [2, 5, 10, 20, 30, 40]
    users, found = ([row[name] for row in by_sites.rows] for name in ("users", "L"))
    assert users == sorted(users, reverse=True)
    assert users[0] > 0 < found[0] <= found[-1] <= 1
    assert by_sites.rows[0]["RL"] > 0
    coverage, accuracy = removal[-2:]
    ways = ["text", "text and sites", "text, sites and clicks"]
    shares = {(row["looked up"], row["level"], row["of"]): row["share"] for row in coverage.rows}
    assert shares[ways[2], 0, "users"] * world[0].n_users == lost.rows[0]["users"]
    for of in ("distinct queries", "events", "users"):
        text, sites, clicks = (shares[way, 0, of] for way in ways)
        assert text < sites < clicks
    # A click is no noun phrase.
    assert shares[ways[0], 0, "noun phrases"] < shares[ways[1], 0, "noun phrases"] == shares[ways[2], 0, "noun phrases"]
    right = {(row["looked up"], row["of"]): row["share"] for row in accuracy.rows if row["level"] == 1}
    assert right[ways[0], "all queries"] < right[ways[1], "all queries"] < right[ways[2], "all queries"]
    assert all(right[way, "all queries"] < right[way, "queries with a category"] < 1 for way in ways)
    by_noise = {figure.name: figure for figure in removal}["figure-2-korolova"]
    assert [row["d"] for row in by_noise.rows] == [1, 2, 5, 10, 15, 20]
    assert "not private themselves" in by_noise.title
    # So few users count for any query that with d = 20 none reaches the threshold.
    assert by_noise.rows[-1]["kept"] <= by_noise.rows[0]["kept"] < 0.5
    assert all(0 <= row["RL"] <= row["users"] / world[0].n_users for row in by_noise.rows)
    assert all(0 <= row["L"] <= 1 for row in by_noise.rows)


def test_few_users_are_left_out_for_want_of_a_category(world):
    """At most one in twenty with the directory of the log; by whole labels alone it was 19 of these 150."""
    log, taxonomy = world
    release = qv.Mdav(k=5, taxonomy=taxonomy.source).anonymize(log, seed=1)
    assert log.n_users - release.manifest.counts.users <= 0.05 * log.n_users


def test_logs_are_cut_to_the_released_queries_with_all_repetitions():
    rows = [(f"u{u}", query) for u in range(60) for query in ("tea", "tea", f"own {u}")]
    times = [f"2006-03-01 10:00:{i % 60:02}" for i in range(len(rows))]
    log = qv.read_log(pa.table({"user": [r[0] for r in rows], "query": [r[1] for r in rows], "time": times}))
    release = cut_to_released(log, 1, 0)
    found = pa.Table.from_batches(release.batches(), release.schema)
    # Sixty users count for it, ten times the threshold; each has it twice, though they count once.
    assert set(found["query"].to_pylist()) == {"tea"}
    assert (len(found), release.manifest.counts.users) == (120, 60)


def test_batet2013_needs_users_with_a_category(world):
    log = qv.read_log(pa.table({"user": list("abcdefgh"), "query": ["zzz"] * 5 + ["dog", "cat", "dog"]}))
    with pytest.raises(QueryveilError, match="only 3 have a query with a category in 'wordnet'"):
        reproduce("batet2013", log)
