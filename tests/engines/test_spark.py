import bz2
import gzip
import json
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryveil as qv
from queryveil.assess import profiles
from queryveil.assess.measures.retention import retention
from queryveil.formats.rows import ReadOptions
from tests.both import QUICK, as_options, needs_spark
from tests.engines.test_engines import TABLE, some_rows
from tests.formats.test_formats import MAPPING, ROWS, aol, csv_text, json_lines
from tests.strategies import table, weekly

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'queryveil[spark]'")

from queryveil.assess.sampling import bring
from queryveil.engines.hadoop import HadoopFolder
from queryveil.engines.spark import Spark
from queryveil.log.ingest.content import content
from queryveil.log.ingest.spark import dictionaries, find_rows, make_events, read_rows, read_spark

ALL = 2**64 - 1


@pytest.fixture(scope="module")
def engine(spark):
    made = Spark(spark)
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def no_log_is_small():
    """Tables are written down in several parts, as those of a large log; other files test small ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queryveil.engines.spark.SMALL_LOG", -1)
        yield


@pytest.fixture(scope="module")
def logs(spark):
    """The same log on both engines."""
    there = qv.read_log(spark.createDataFrame(TABLE), engine=spark)
    yield qv.read_log(TABLE), there
    there.close()


def read_and_digest(engine, source, format=None, **options):
    """What is found on reading, and the digest of all rows."""
    rows = find_rows(source, engine, format, ReadOptions(**options))
    known = {kind: {} for kind in ("user", "query", "url", *(f"extra {name}" for name in rows.extras))}
    found = read_rows(rows, engine, known, ALL)
    texts, clashes = dictionaries(engine, list(known), ALL)
    assert clashes == {}
    return found, content(make_events(engine, rows.extras, found.rows, texts, found.untimed > 0), texts)


@pytest.mark.parametrize("even", [False, True])
def test_numbers_go_through_all_parts_in_order(engine, even):
    draw = np.random.default_rng(1)
    # If keys are spread evenly, down to the least and up to the largest number.
    most = 2**63 // 9
    keys = np.append(draw.integers(-9, 9, 4998) * most, [-(2**63), 2**63 - 1]) if even else draw.integers(-9, 9, 5000)
    rows = {"a": keys, "b": draw.integers(0, 40, 5000), "c": draw.integers(0, 3, 5000)}
    rows["c"] = pa.array(rows["c"], mask=rows["c"] == 0)
    engine.read("t", pa.table(rows))
    engine.number("SELECT a, b, c FROM t", ("a", "b"), "n", "number", then=("c",), even=even)
    found = pa.Table.from_batches(list(engine.ordered("n")()))
    keys = list(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))
    place = {key: i for i, key in enumerate(sorted(set(keys)), 1)}
    assert found["number"].to_pylist() == [place[key] for key in sorted(keys)]
    assert keys == sorted(keys)
    rows_ = [(a, b, c is None, c or 0) for a, b, c in zip(*(found[key].to_pylist() for key in "abc"), strict=True)]
    assert rows_ == sorted(rows_)
    assert engine.row('SELECT count(DISTINCT "part of the rows") AS n FROM n')[0] > 1
    engine.drop("n", "t")


def test_rows_of_a_frequent_key_are_numbered_in_several_parts(engine, monkeypatch):
    monkeypatch.setattr("queryveil.engines.spark_numbers.ROWS_PER_TASK", 300)
    draw = np.random.default_rng(1)
    most = 2**63 // 9
    keys = np.append(draw.integers(-9, 9, 3000) * most, np.repeat([-(2**63), 3 * most, 3 * most + 5, 2**63 - 1], 1000))
    engine.read("t", pa.table({"a": keys, "b": draw.integers(-(2**63), 2**63 - 1, len(keys))}))
    counted = "SELECT a AS value, count(*) AS n FROM t GROUP BY a HAVING count(*) > 500"
    engine.number("SELECT a, b FROM t", ("a", "b"), "n", "number", even=True, frequent=counted)
    found = pa.Table.from_batches(list(engine.ordered("n")()))
    rows = list(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))
    assert rows == sorted(rows)
    assert found["number"].to_pylist() == list(range(1, len(keys) + 1))
    for key in (-(2**63), 3 * most, 3 * most + 5, 2**63 - 1):
        of_key = f"SELECT count(DISTINCT \"part of the rows\") AS n FROM n WHERE a = CAST('{key}' AS BIGINT)"
        assert engine.row(of_key) == (4,)
    engine.drop("n", "t")


def test_who_watches_numbered_rows_sees_each_block_whole_and_in_order(engine):
    def noting(batches):
        """A note of the rows of each block, once all of them have gone by."""
        seen = {}
        for batch in batches:
            for key in batch["a"].to_pylist():
                seen.setdefault(key >> 60, []).append(key)
            yield batch, ()
            last = batch.slice(0, 0)
        if seen:
            yield last, [f"{block}:{','.join(map(str, keys))}" for block, keys in seen.items()]

    keys = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5000)
    engine.read("t", pa.table({"a": keys}))
    notes = engine.number_watched("SELECT a FROM t", ("a",), "n", "number", bits=60, watch=noting)
    blocks = {int(block): list(map(int, seen.split(","))) for block, seen in (note.split(":") for note in notes)}
    assert len(notes) == len(blocks) == 16
    assert {block: sorted(keys[keys >> 60 == block].tolist()) for block in blocks} == blocks
    found = pa.Table.from_batches(list(engine.ordered("n")()))
    assert found["a"].to_pylist() == sorted(keys.tolist())
    assert found["number"].to_pylist() == list(range(1, 5001))
    engine.drop("n", "t")


@pytest.mark.parametrize(
    "method",
    [
        qv.Equality(k=3, link="session", session_gap=5, session_events=3),
        qv.Rules(min_row_users=2, min_term_users=2, time="day", min_metadata_users=2, metadata=["country", "device"]),
    ],  # affinity is compared in test_engines.py
    ids=["sessions", "rules"],
)
def test_the_release_is_that_of_one_machine_row_by_row(logs, method, tmp_path):
    local, there = logs
    one, other = (method.anonymize(log, seed=9) for log in (local, there))
    assert one.manifest == other.manifest
    assert one.linkage == other.linkage
    rows = pa.Table.from_batches(list(one.batches()), one.schema)
    assert len(rows) > 15
    assert rows.equals(pa.Table.from_batches(list(other.batches()), other.schema))
    other.save(tmp_path / "r")
    loaded = qv.Release.load(tmp_path / "r")
    assert rows.equals(pa.Table.from_batches(list(loaded.batches()), loaded.schema))
    assert qv.verify(tmp_path / "r", local).holds


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([qv.Affinity(k=4, theta=0.7), qv.Odp(k=3)], id="records"),
        pytest.param(
            [qv.Scrub(), qv.Equality(k=3), qv.Columns(min_click_users=3, time="day", link="user")],
            id="columns",
            marks=weekly,
        ),
    ],
)
def test_a_pipeline_is_that_of_one_machine_row_by_row(logs, steps):
    local, there = logs
    one, other = (qv.Pipeline(steps).anonymize(log, seed=9) for log in (local, there))
    assert one.manifest == other.manifest
    rows = pa.Table.from_batches(list(one.batches()), one.schema)
    assert len(rows) > 15
    assert rows.equals(pa.Table.from_batches(list(other.batches()), other.schema))
    maps = [[row for batch in release.user_map() for row in batch.to_pylist()] for release in (one, other)]
    assert sorted(maps[0], key=str) == sorted(maps[1], key=str)
    found = qv.verify(other, there)
    assert found.holds, found


def test_rows_of_a_query_that_are_together_are_not_sent_around_again(engine):
    kept = engine.session.conf.get("spark.sql.autoBroadcastJoinThreshold")
    engine.session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    a = np.arange(1000) * 7 % 250
    engine.read("given", pa.table({"query_id": a, "b": a % 3}))
    engine.materialize("SELECT query_id, count(*) AS n FROM given GROUP BY query_id", "grouped")
    schema = pa.schema([("query_id", pa.int64()), ("more", pa.int64())])

    def same(batch):
        return pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    engine.map("SELECT query_id, n FROM grouped", same, schema, "mapped")
    joined = "SELECT g.query_id AS query_id, m.more AS more FROM grouped g JOIN {other} m ON m.query_id = g.query_id"
    plans = {
        name: engine.sql(joined.format(other=other))._jdf.queryExecution().executedPlan().toString()
        for name, other in (("moved", "(SELECT query_id, b AS more FROM given)"), ("stays", "mapped"))
    }
    found = engine.fetch(joined.format(other="mapped") + " ORDER BY query_id")
    engine.session.conf.set("spark.sql.autoBroadcastJoinThreshold", kept)
    engine.drop("given", "grouped", "mapped")
    assert ("Exchange" in plans["moved"], "Exchange" in plans["stays"]) == (True, False)
    assert "Sort " not in plans["stays"]
    assert found.to_pydict() == {"query_id": list(range(250)), "more": [4] * 250}


PLAIN = TABLE.drop_columns(["device", "country"])


@pytest.mark.parametrize("small", [-1, len(PLAIN)], ids=["large", "small"])
def test_a_log_without_extra_columns_is_that_of_one_machine(spark, monkeypatch, small):
    monkeypatch.setattr("queryveil.engines.spark.SMALL_LOG", small)
    there, local = qv.read_log(spark.createDataFrame(PLAIN), engine=spark), qv.read_log(PLAIN)
    assert there.stats == local.stats
    one, other = (qv.Equality(k=3, link="user").anonymize(log, seed=9) for log in (local, there))
    assert len(one.to_arrow()) > 15
    assert whole(one) == whole(other)
    there.close()


def test_measures_and_attacks_see_a_sample_of_users(logs):
    local, there = logs
    one, other = (qv.Equality(k=3, link="user").anonymize(log, seed=9) for log in (local, there))
    assert retention(other, there) == retention(one, local)
    few = bring(other, there, 1, users=6)
    chosen = set(few.log.engine.fetch('SELECT "user" FROM users')["user"].to_pylist())
    assert (few.share, len(chosen)) == ("6 of 25 users, drawn at random", 6)
    events = (
        'SELECT u."user" AS name, q.query AS query, count(*) AS n FROM events e JOIN users u ON u.user_id = e.user_id'
    )
    events += ' JOIN queries q ON q.query_id = e.query_id GROUP BY u."user", q.query'
    rows = {tuple(row.values()) for row in local.engine.fetch(events).to_pylist() if row["name"] in chosen}
    assert {tuple(row.values()) for row in few.log.engine.fetch(events).to_pylist()} == rows
    names = {row["original"]: row["released"] for batch in one.user_map() for row in batch.to_pylist()}
    assert {row["original"]: row["released"] for batch in few.release.user_map() for row in batch.to_pylist()} == {
        name: number for name, number in names.items() if name in chosen
    }
    released = [row for row in one.to_arrow().to_pylist() if row["user"] in {names[name] for name in chosen}]
    assert sorted(few.release.to_arrow().to_pylist(), key=str) == sorted(released, key=str)
    # All users are a sample too, on which attacks find what they find on one machine. This log has rows that cannot be
    # read, so what comes here has another fingerprint and counts as a sample.
    tried = ["record_linkage", "unique_queries"]
    found, expected = qv.attack(other, there, only=tried), qv.attack(one, local, only=tried)
    assert found.findings == tuple(finding for finding in expected.findings if finding.attack == "record_linkage")
    assert [skipped.attack for skipped in found.skipped] == ["unique_queries"]
    assert found.sample == "all 25 users"


def whole(release):
    return release.manifest, pa.Table.from_batches(list(release.batches()), release.schema)


def test_jobs_side_by_side_on_one_log(logs):
    local, there = logs
    methods = [qv.Equality(k=3), qv.Equality(k=5, link="user")]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda method: whole(method.anonymize(there, seed=4)), methods))
    assert found == [whole(method.anonymize(local, seed=4)) for method in methods]


def test_profiles_and_fingerprints_are_those_of_one_machine(logs):
    local, there = logs
    assert qv.profile(there) == qv.profile(local)
    assert there.stats == local.stats


def test_a_digest_in_many_blocks_is_that_of_one_machine(spark, monkeypatch):
    monkeypatch.setattr("queryveil.log.ingest.content._BLOCK", 64)
    there = qv.read_log(spark.createDataFrame(TABLE), engine=spark)
    assert there.stats.content == qv.read_log(TABLE).stats.content
    there.close()


def test_texts_with_the_same_id_are_distinguished(spark):
    # With six bits of the digest, almost every id is shared.
    rows = spark.createDataFrame(TABLE)
    log = read_spark(rows, Spark(spark), format=None, options=ReadOptions(), refuse=lambda *_: None, id_mask=63 << 58)
    local = qv.read_log(TABLE)
    # Such ids are in another digest of the rows, and so in other random draws.
    assert log.stats.content != local.stats.content
    assert replace(log.stats, content=local.stats.content) == local.stats
    log.stats = local.stats
    one, other = (qv.Equality(k=3).anonymize(each, seed=1) for each in (local, log))
    assert next(one.batches()).to_pylist() == [row for batch in other.batches() for row in batch.to_pylist()]
    # Then none of its texts is found by its digest.
    assert qv.verify(other, log).holds
    log.close()
    with pytest.raises(qv.QueryveilError, match="The log was closed, and its tables are gone"):
        qv.profile(log)


SOGOU = "00:00:01\t123\t[手机]\t1 2\thttp://a.com\n00:00:02\t124\t[手机]\t1 1\thttp://b.com\n"
WRITTEN = [
    ("aol", aol().encode(), "log.tsv", {}),
    ("aol", aol(header=False).replace("\n", "\r\n").encode(), "log.tsv", {}),
    ("aol", ("\ufeff" + aol()).encode(), "log.tsv", {}),
    ("aol", gzip.compress(aol().encode()), "log.tsv.gz", {}),
    ("aol", bz2.compress(aol().encode()), "log.tsv.bz2", {}),
    ("csv", csv_text(";").encode(), "log.csv", {"columns": MAPPING}),
    (
        "tsv",
        ("user\tquery\ttime\trank\turl\tdevice\n" + aol(header=False).replace("\n", "\tphone\n")).encode(),
        "log.tsv",
        {},
    ),
    ("jsonl", json_lines().encode(), "log.jsonl", {}),
    ("excite", "".join(f"{u}\t970916000001\t{q}\n" for u, q, *_ in ROWS).encode(), "log", {}),
    ("sogou", SOGOU.encode("gb18030"), "access_log.20060801", {}),
]


@pytest.mark.parametrize(
    ("format", "data", "name", "options"), WRITTEN, ids=[f"{w[0]}-{i}" for i, w in enumerate(WRITTEN)]
)
def test_a_file_is_the_same_log_as_on_one_machine(engine, tmp_path, format, data, name, options):
    (tmp_path / name).write_bytes(data)
    found, digest = read_and_digest(engine, tmp_path / name, **options)
    local = qv.read_log(tmp_path / name, **options)
    assert digest == local.stats.content
    assert (found.rows, found.empty, found.bad.count) == (
        local.stats.rows,
        local.stats.empty_rows,
        local.stats.bad_rows.count,
    )


def test_odd_names_and_files_without_a_good_row(engine, tmp_path):
    folder = tmp_path / "sp ace%20ü [1]"
    folder.mkdir()
    (folder / "a b%.tsv").write_text(aol())
    (folder / "header only.tsv").write_text(aol([]))
    (folder / "empty query.tsv").write_text("u\t\t2006-03-01 10:00:00\t\t\n")
    files = sorted(folder.iterdir())
    assert read_and_digest(engine, files)[1] == qv.read_log(files, max_bad_rows=1).stats.content


def test_a_release_may_lie_in_a_folder_with_an_odd_name(logs, tmp_path):
    local, there = logs
    folder = tmp_path / "out dir%20ü"
    folder.mkdir()
    qv.Equality(k=3).anonymize(there).save(folder / "r")
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert qv.verify(folder / "r", local).holds
    assert qv.verify(folder / "r", there).holds


def test_a_folder_of_parquet_files(engine, tmp_path):
    for number in range(3):
        pq.write_table(TABLE.slice(number * 140, 140), tmp_path / f"{number}.parquet")
    assert read_and_digest(engine, tmp_path)[1] == qv.read_log(TABLE).stats.content


def test_a_large_file_is_read_in_stretches(spark, tmp_path):
    session = spark.newSession()
    # A few stretches of the log; the tables that are made of it are cut so too, and each piece is a task.
    session.conf.set("spark.sql.files.maxPartitionBytes", "8000")
    session.conf.set("spark.sql.files.openCostInBytes", "0")
    engine = Spark(spark)
    engine.session = session
    rows = [row for row in some_rows(900, seed=3) if row.time]
    lines = [f"{row.user}\t{row.query}\t{row.time}\t{row.rank or ''}\t{row.url or ''}\n" for row in rows]
    (tmp_path / "log.tsv").write_text("AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n" + "".join(lines) + "bad line\n")
    assert session.read.text(str(tmp_path / "log.tsv")).rdd.getNumPartitions() >= 3
    found, digest = read_and_digest(engine, tmp_path / "log.tsv")
    local = qv.read_log(tmp_path / "log.tsv")
    assert digest == local.stats.content
    assert found.bad.count == {"wrong column count": 1}
    assert "counted from byte" in found.bad.first["wrong column count"]
    engine.close()


def test_bad_rows_are_counted_and_named(engine, tmp_path):
    path = tmp_path / "log.tsv"
    path.write_bytes(aol().encode() + b"u\tq\n" + b"u\tb\xff\t2006-03-01 10:00:00\t\t\n" + b"u\tq\tnever\t\t\n")
    found, _ = read_and_digest(engine, path)
    local = qv.read_log(path, max_bad_rows=1).stats.bad_rows
    assert found.bad.count == local.count
    assert found.bad.first == local.first
    with pytest.raises(qv.QueryveilError, match="rows are bad, over the limit"):
        qv.read_log(path, engine=engine, max_bad_rows=0.1)


def refused(engine, tmp_path, match, *files, **options):
    for name, data in files:
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(qv.QueryveilError, match=match) as caught:
        qv.read_log([tmp_path / name for name, _ in files], engine=engine, **options)
    assert "\n" not in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_what_cannot_be_read_is_one_sentence(engine, tmp_path):
    refused(engine, tmp_path, "spans several lines", ("a.csv", 'user,query\nu,"SECRET\nquery"\n'))
    refused(
        engine, tmp_path, "has other columns", ("a.tsv", "user\tquery\nu\tq\n"), ("b.tsv", "query\tuser\nSECRET\tu\n")
    )
    late = json_lines() * 60 + json.dumps({"user": "u", "query": "SECRET", "novel": "x"}) + "\n"
    refused(engine, tmp_path, "has a column that the first lines of the log lack", ("a.jsonl", late))
    refused(
        engine,
        tmp_path,
        "cannot be read on Spark",
        ("a.ubi", '{"query_id": "1", "client_id": "u", "user_query": "q"}\n'),
    )
    refused(
        engine,
        tmp_path,
        "has a name with a dot or a backquote, which Spark would misread",
        ("a.csv", "user,query,co.untry\nu,q,x\n"),
    )
    refused(engine, tmp_path, "does not read xz", ("a.xz", b"\xfd7zXZ\x00"))
    refused(engine, tmp_path, "UTF-16", ("a.txt", aol().encode("utf-16")))
    refused(engine, tmp_path, "is empty", ("a.txt", ""))
    refused(engine, tmp_path, "No column of .* looks like the user", ("a.tsv", "x\tquery\nu\tSECRET\n"), format="tsv")


def test_a_path_that_does_not_exist_and_a_schema_that_does_not_fit(engine, tmp_path):
    with pytest.raises(qv.QueryveilError, match=r"Spark finds no file at .*nothing-here; check the path"):
        qv.read_log(tmp_path / "nothing-here", engine=engine)
    pq.write_table(pa.table({"user": ["u"], "query": [b"SECRET"]}), tmp_path / "log.parquet")
    with pytest.raises(qv.QueryveilError, match=r"Column 2 of .* holds binary, which cannot be a query"):
        qv.read_log(tmp_path / "log.parquet", engine=engine)


@pytest.mark.parametrize(
    ("kind", "beside"), [("Delta", "_delta_log/00000000000000000000.json"), ("Iceberg", "metadata/v1.metadata.json")]
)
def test_a_table_of_a_data_lake_is_not_read_file_by_file(engine, tmp_path, kind, beside):
    pq.write_table(pa.table({"user": ["u"], "query": ["SECRET"]}), tmp_path / "deleted.parquet")
    (tmp_path / beside).parent.mkdir()
    (tmp_path / beside).write_text("{}\n")
    with pytest.raises(qv.QueryveilError, match=f"is a table of {kind}, and its folder also has rows that were delet"):
        qv.read_log(tmp_path, engine=engine)


def test_types_and_names_that_spark_does_not_read_are_one_sentence(engine, tmp_path):
    pq.write_table(
        pa.table({"user": ["u"], "query": ["q"], "time": pa.array([1], pa.timestamp("ns"))}), tmp_path / "ns.parquet"
    )
    with pytest.raises(qv.QueryveilError, match=r"does not read a type of .*ns.parquet, such as times in nanoseconds"):
        qv.read_log(tmp_path / "ns.parquet", engine=engine)
    pq.write_table(pa.table({"user": ["u"], "query": ["q"], "X": ["a"], "x": ["b"]}), tmp_path / "case.parquet")
    with pytest.raises(qv.QueryveilError, match="have the same name but for case"):
        qv.read_log(tmp_path / "case.parquet", engine=engine)


def test_the_driver_sees_small_results_alone(spark, monkeypatch):
    rows = some_rows(1500, seed=11)
    seen = []
    ask = Spark.fetch
    monkeypatch.setattr(Spark, "fetch", lambda engine, query: seen.append(ask(engine, query)) or seen[-1])
    monkeypatch.setattr(profiles, "SAMPLE", 50)  # of texts whose language is detected
    log = qv.read_log(spark.createDataFrame(table(rows)), engine=spark)
    release = qv.Equality(k=3).anonymize(log)
    qv.profile(log)
    assert qv.verify(release, log).holds
    assert log.stats.events > 1000
    assert max(map(len, seen)) < 100
    log.close()


def test_the_session_of_the_caller_is_left_as_it_was(spark, tmp_path):
    before = (
        spark.conf.get("spark.sql.session.timeZone"),
        spark.catalog.listTables(),
        len(spark.catalog.listDatabases()),
    )
    log = qv.read_log(spark.createDataFrame(TABLE), engine=Spark(spark, work_dir=str(tmp_path)))
    (database,) = tmp_path.iterdir()
    assert stat.S_IMODE(database.stat().st_mode) == 0o700
    assert len(list(database.iterdir())) > 5
    log.close()
    assert list(tmp_path.iterdir()) == []
    after = spark.conf.get("spark.sql.session.timeZone"), spark.catalog.listTables(), len(spark.catalog.listDatabases())
    assert before == after


def test_the_temporary_folder_is_private_and_goes(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = Spark(spark)
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    engine.materialize("SELECT 1 AS a", "t")
    engine.close()
    assert not folder.exists()


def test_a_release_at_an_address_is_written_whole_and_verified_there(logs, tmp_path, monkeypatch):
    # Hadoop's client for files of this machine stands in for HDFS: the same calls, another file system behind them.
    local, there = logs
    monkeypatch.setattr("queryveil.log.spark.is_address", lambda path: str(path).startswith("file:"))
    address = (tmp_path / "made" / "release").as_uri()
    release = qv.Equality(k=3).anonymize(there, seed=4)
    with pytest.raises(qv.QueryveilError, match="does not exist; make it first"):
        release.save(address)
    (tmp_path / "made").mkdir()
    release.save(address)
    folder = there.folder(address)
    assert isinstance(folder, HadoopFolder)
    assert [name for name in folder.files() if not name.startswith("log.parquet/part-")] == [
        "manifest.json",
        "report.md",
        "schema.json",
    ]
    found = qv.verify(address, there)
    assert found.holds
    # What one machine does too is missing here, and said to be.
    why = "its log is on a cluster; rebuild=True does so"
    assert found.unchecked[-1] == f"The release was not made again, because {why}."
    assert "the order of rows was not looked at" in [verdict.how for verdict in found.verdicts]
    with pytest.raises(qv.QueryveilError, match="exists already"):
        release.save(address)
    qv.Equality(k=4).anonymize(there, seed=4).save(address, overwrite=True)
    assert qv.Release.load(folder).manifest.parameters["k"] == 4
    rows = pa.Table.from_batches(list(qv.Release.load(folder).batches()))
    expected = qv.Equality(k=4).anonymize(local, seed=4)
    assert rows.equals(pa.Table.from_batches(list(expected.batches())))
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["release"]
    folder.write("extra.txt", b"what should not be here")
    refuted = [verdict for verdict in qv.verify(address, there).verdicts if not verdict.holds]
    assert refuted[0].counterexample == "extra.txt is not in the manifest"
    folder.delete("extra.txt")
    part = next(path for path in (tmp_path / "made" / "release" / "log.parquet").glob("part-*"))
    part.write_bytes(part.read_bytes() + b"x")
    (part.parent / f".{part.name}.crc").unlink(missing_ok=True)
    assert "was changed" in qv.verify(address, there).verdicts[0].counterexample


def staged(place: HadoopFolder, text: bytes) -> HadoopFolder:
    stage = place.stage()
    stage.write("manifest.json", text)
    return stage


@pytest.mark.parametrize("context", [True, False])
def test_at_an_address_what_came_meanwhile_stays(spark, tmp_path, monkeypatch, context):
    engine = Spark(spark)
    place = HadoopFolder(engine, (tmp_path / "r").as_uri())
    if not context:  # a file system that has only the older call, which would move one folder into the other
        monkeypatch.setattr(HadoopFolder, "_moved", HadoopFolder._moved_after_a_look)
    place.take(staged(place, b"one"), None)
    decided = place.state()
    place.take(staged(place, b"longer"), decided)
    assert place.read("manifest.json") == b"longer"
    for replaces in (None, decided):
        stage = staged(place, b"late")
        with pytest.raises(qv.QueryveilError, match="changed by somebody else in the meantime and is left unchanged"):
            place.take(stage, replaces)
        stage.remove()
    looked, state = [], HadoopFolder.state

    def then_it_changes(self):
        found = state(self)
        if str(self) == str(place) and not looked:
            looked.append(found)
            (tmp_path / "r" / "photo").write_text("photo")
        return found

    for replaces in (place.state(), None):
        if replaces is None:
            place.remove()
            (tmp_path / "r").mkdir()
            monkeypatch.setattr(HadoopFolder, "state", lambda self: None)  # it came right after the look
        else:
            monkeypatch.setattr(HadoopFolder, "state", then_it_changes)
        stage = staged(place, b"late")
        with pytest.raises(qv.QueryveilError, match="changed by somebody else in the meantime and is left unchanged"):
            place.take(stage, replaces)
        stage.remove()
        assert place.files() == (["manifest.json", "photo"] if replaces else [])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".queryveil")] == []
    engine.close()


def test_an_address_is_refused_without_spark(tmp_path):
    log = qv.read_log(TABLE)
    for call in (
        lambda: qv.Equality(k=3).anonymize(log).save("hdfs://somewhere/release"),
        lambda: qv.Release.load("hdfs://somewhere/release"),
        lambda: qv.verify("hdfs://somewhere/release", log),
    ):
        with pytest.raises(qv.QueryveilError, match=r"not on this machine; reach it with a log that Spark has read"):
            call()


ASKING = qv.Search(taxonomy="d", send_queries_to="http://localhost", cache="answers")


def test_what_needs_arrays_says_so(logs):
    _, there = logs
    release = qv.Equality(k=3).anonymize(there)
    for what, call in {
        "explain": lambda: qv.explain(release, there, "cell"),
        "sweep": lambda: qv.sweep(there),
        "neighbourhood": lambda: qv.neighbourhood(there, "cell"),
        "degrees": lambda: qv.Affinity(k=3).degrees(there),
        "Another resolver than clicks": lambda: qv.Search(taxonomy="d", resolver="sites").anonymize(there),
        "Similarity by meaning or clicks": lambda: qv.Affinity(k=3, similarity=("clicks",)).anonymize(there),
        "The unit session": lambda: qv.Affinity(k=3, link="session", unit="session").anonymize(there),
        # Before the steps that come first.
        "resolver than clicks": lambda: qv.Pipeline([qv.Equality(k=3), ASKING]).anonymize(there),
    }.items():
        with pytest.raises(qv.QueryveilError, match=f"{what} needs a log in the memory of one machine"):
            call()


def test_messages_of_spark_do_not_pass_on_what_they_quote(engine):
    with pytest.raises(qv.QueryveilError) as caught:
        engine.fetch("SELECT CAST('SECRET' AS INT) AS a")
    assert str(caught.value) == "Spark could not finish a step (CAST_INVALID_INPUT); its own log says where."


def test_memory_that_runs_out_is_one_sentence(engine):
    def hungry(batch):
        raise MemoryError

    def killed(batch):
        os._exit(137)

    engine.read("t", pa.table({"a": [1]}))
    for work in (hungry, killed):
        with pytest.raises(
            qv.QueryveilError, match=r"An executor ran out of memory or was lost .*spark.executor.memory"
        ):
            engine.map("SELECT a FROM t", work, pa.schema([("a", pa.int64())]), "made")
    engine.drop("t")


def test_on_a_cluster_a_shared_folder_must_be_named(spark, monkeypatch):
    monkeypatch.setattr(Spark, "_master", lambda engine: "spark://somewhere:7077")
    with pytest.raises(qv.QueryveilError, match="give one as 'work_dir'"):
        Spark(spark)
    with pytest.raises(qv.QueryveilError, match="The work folder /not/here cannot be used"):
        Spark(spark, work_dir="/not/here")


@needs_spark
def test_the_command_line_writes_the_same_release(tmp_path):
    (tmp_path / "log.tsv").write_text(aol() * 2 + aol(ROWS[:2]))
    release = tmp_path / "release"
    line = ["anonymize", "log.tsv", "--method", "equality", "-k", "2", "--seed", str(2**100), "-o", "release",
            "--engine", "spark", "--master", "local[1]", "--quiet", *as_options(QUICK)]  # fmt: skip
    command = [sys.executable, "-c", "from queryveil.cli import main; main()", *line]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    local = qv.Equality(k=2).anonymize(qv.read_log(tmp_path / "log.tsv"), seed=2**100)
    assert next(qv.Release.load(release).batches()).equals(next(local.batches()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.tsv", "release"]
    assert sorted(path.name for path in (release / "log.parquet").iterdir()) == ["part-00000.parquet"]


@weekly
@needs_spark
@pytest.mark.parametrize(("number", "code", "message"), [(signal.SIGINT, 130, "queryveil: Stopped.\n")])
def test_a_polite_stop_leaves_nothing_behind(tmp_path, number, code, message):
    (tmp_path / "log.tsv").write_text(aol() * 50)
    work = tmp_path / "work"
    work.mkdir()
    line = ["anonymize", "log.tsv", "--method", "affinity", "-k", "2", "-o", "release", "--engine", "spark",
            "--master", "local[1]", *as_options(QUICK), "--work-dir", "work"]  # fmt: skip
    command = [sys.executable, "-c", "from queryveil.cli import main; main()", *line]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and len(list(work.glob("queryveil_*/*"))) < 6:
        time.sleep(0.05)
    run.send_signal(number)
    _, err = run.communicate(timeout=120)
    assert (run.returncode, err) == (code, message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.tsv", "work"]
    assert list(work.iterdir()) == []
