"""Logs and releases in an object store, against an S3 server on this machine."""

import bz2
import gc
import gzip
import io
import lzma
import random
import stat
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.sources import stores
from tests.cli.conftest import run  # noqa: F401
from tests.sources.conftest import HEADER

pytest.importorskip("obstore")


def many(n=60_000):
    draw = random.Random(7)
    return HEADER + "".join(
        f"u{draw.randrange(500)}\tquery {draw.randrange(10**9)}\t2006-03-01 10:00:00\t\t\n" for _ in range(n)
    )


@pytest.mark.parametrize(
    ("name", "packed"),
    [("log.tsv", bytes), ("log.tsv.gz", gzip.compress), ("log.bz2", bz2.compress), ("log.xz", lzma.compress)],
)
def test_a_file_is_read_as_on_this_machine(bucket, rows, tmp_path, name, packed):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    found = qv.read_log(bucket.put(f"logs/{name}", packed(rows.encode())))
    assert found.stats.content == qv.read_log(local).stats.content


def test_a_file_of_several_parts_is_read_whole(bucket, tmp_path, monkeypatch):
    monkeypatch.setattr("queryveil.sources._PART", 1 << 18)
    local = tmp_path / "log.tsv"
    local.write_text(many())
    assert local.stat().st_size > 8 << 18
    found = qv.read_log(bucket.put("log.tsv", local.read_bytes()))
    assert found.stats.content == qv.read_log(local).stats.content


def test_parquet_is_read_part_by_part(bucket, monkeypatch):
    monkeypatch.setattr("queryveil.sources._PART", 1 << 16)
    asked = []
    fetch = stores._StoreParts.fetch
    monkeypatch.setattr(
        stores._StoreParts, "fetch", lambda self, *span: (asked.append(span[1] - span[0]), fetch(self, *span))[1]
    )
    draw = random.Random(1)
    table = pa.table(
        {"user": [f"u{i % 90}" for i in range(50_000)], "query": [str(draw.random()) for _ in range(50_000)]}
    )
    made = io.BytesIO()
    pq.write_table(table, made, row_group_size=5_000)
    found = qv.read_log(bucket.put("log.parquet", made.getvalue()))
    assert found.stats.content == qv.read_log(table).stats.content
    assert max(asked) <= 1 << 17 < len(made.getvalue())


def test_folders_and_patterns(bucket, rows):
    head, *lines = rows.splitlines(keepends=True)
    for at, line in enumerate(lines):
        bucket.put(f"logs/part-{at}.tsv", head + line)
    bucket.put("logs/README.txt", "not a log")
    bucket.put("logs/below/part.tsv", head + lines[0])
    bucket.put("logs-of-others/part-0.tsv", rows)
    whole = {name: qv.read_log(f"s3://bucket/{name}").stats.rows for name in ("logs", "logs/", "logs/part-[01].tsv")}
    assert whole == {"logs": 6, "logs/": 6, "logs/part-[01].tsv": 2}
    assert qv.read_log("s3://bucket/*/part-0.tsv").stats.rows == 7
    assert qv.read_log(["s3://bucket/logs/part-1.tsv", "s3://bucket/logs/part-2.tsv"]).stats.rows == 2


def test_partitions_are_columns_as_on_this_machine(bucket):
    for day in ("1", "2"):
        bucket.put(f"logs/day=2026-01-0{day}/part.csv", f"user,query\nu{day},tea\n")
    bucket.put("logs/_old=1/part.csv", "user,query\nx,secret\n")
    found = qv.read_log("s3://bucket/logs")
    assert (found.stats.rows, found.stats.users) == (2, 2)
    assert (found.stats.timed, found.stats.read_as.columns["time"], found.stats.extras) == (2, "day", ())


def test_a_bad_row_is_named_by_address_and_line(bucket, rows):
    address = bucket.put("log.tsv", rows + "only\n")
    with pytest.raises(QueryveilError, match=r"first at s3://bucket/log\.tsv:8"):
        qv.read_log(address)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("s3://bucket/nothing.tsv", "There is no file at s3://bucket/nothing.tsv; check the address"),
        ("s3://no-such-bucket/log.tsv", "There is no"),
        ("s3://me:pass-word@bucket/log.tsv", "s3://bucket/log.tsv must be written as s3://BUCKET/NAME"),
        ("hdfs://me:pass-word@host/log.tsv?token=pass-word", "No source knows addresses such as hdfs://host/log.tsv;"),
    ],
)
def test_what_is_not_there_is_one_sentence_without_secrets(bucket, address, sentence):
    with pytest.raises(QueryveilError) as caught:
        qv.read_log(address)
    assert str(caught.value).startswith(sentence)
    assert "pass-word" not in str(caught.value)
    assert "very-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_ends_in_the_middle_of_reading(own_bucket, monkeypatch):
    monkeypatch.setattr("queryveil.sources._PART", 1 << 18)
    address = own_bucket.put("log.tsv", many(100_000))
    parts = []
    fetch = stores._StoreParts.fetch

    def ending(self, start, end):
        parts.append(start)
        if start > 1 << 20:
            own_bucket.process.kill()
            own_bucket.process.wait()
        return fetch(self, start, end)

    monkeypatch.setattr(stores._StoreParts, "fetch", ending)
    with pytest.raises(QueryveilError) as caught:
        qv.read_log(address)
    assert str(caught.value) == (
        "The store of s3://bucket/log.tsv does not answer, or stopped in the middle; try again later."
    )


def test_a_file_that_changes_while_it_is_read_is_refused(bucket, monkeypatch):
    address = bucket.put("log.tsv", many())
    fetch = stores._StoreParts.fetch

    def changing(self, start, end):
        if start:
            bucket.put("log.tsv", many(59_999))
        return fetch(self, start, end)

    monkeypatch.setattr(stores._StoreParts, "fetch", changing)
    with pytest.raises(QueryveilError, match="was changed while it was read"):
        qv.read_log(address)


@pytest.fixture
def private(tmp_path, monkeypatch):
    """A folder for temporary files of this test alone."""
    (tmp_path / "private").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "private"))
    return tmp_path / "private"


def test_a_release_goes_there_and_is_verified_there(bucket, rows, tmp_path, private, run):  # noqa: F811
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    code, out, err = run(
        "anonymize", local, "--method", "equality", "-k", 2, "--link", "none", "-o", "s3://bucket/out/release"
    )
    assert (code, err) == (0, ""), err
    assert bucket.names() == [
        f"out/release/{name}" for name in ("log.parquet", "manifest.json", "report.md", "schema.json")
    ]
    code, out, err = run("verify", "s3://bucket/out/release", "--original", local)
    assert code == 0, err
    assert "The release keeps its promises." in out
    code, out, err = run("explain", "s3://bucket/out/release", "mug", "--original", local)
    assert code == 0, err
    code, out, err = run("attack", "s3://bucket/out/release", "--original", local, "--json", "--only", "unique_queries")
    assert code == 0, err
    gc.collect()
    assert not list(private.rglob("manifest.json"))


def save(log, place, **more):
    return qv.Equality(k=2, link="none").anonymize(log).save(place, **more)


def test_the_manifest_comes_last_and_the_copy_is_private(bucket, rows, tmp_path, monkeypatch):
    import obstore

    put, order = obstore.put, []
    monkeypatch.setattr(
        obstore,
        "put",
        lambda store, key, *args, **more: (order.append((key, bucket.names())), put(store, key, *args, **more))[1],
    )
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    save(qv.read_log(local), "s3://bucket/release")
    key, there = order[-1]
    assert key == "release/manifest.json"
    assert set(there) == {
        f"release/{name}" for name in (".queryveil-unfinished", "log.parquet", "report.md", "schema.json")
    }
    loaded = qv.Release.load("s3://bucket/release")
    copy = loaded.folder.path
    assert stat.S_IMODE(copy.stat().st_mode) == stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in copy.iterdir()} == {0o600}
    batches = loaded.batches
    del loaded
    assert sum(len(batch) for batch in batches()) == 5
    del batches
    assert not copy.exists()


def test_no_release_is_replaced_unless_told(bucket, rows, tmp_path):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    log = qv.read_log(local)
    save(log, "s3://bucket/release")
    with pytest.raises(QueryveilError, match="s3://bucket/release exists already"):
        save(log, "s3://bucket/release")
    save(log, "s3://bucket/release", overwrite=True, format="csv")
    assert "release/log.csv" in bucket.names()
    assert "release/log.parquet" not in bucket.names()
    assert qv.verify("s3://bucket/release", log).holds
    bucket.put("mine/notes.txt", "mine")
    with pytest.raises(QueryveilError, match="is not a release, so it is not overwritten"):
        save(log, "s3://bucket/mine", overwrite=True)


def test_what_comes_there_in_the_meantime_stays(bucket, rows, tmp_path):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    log = qv.read_log(local)
    with pytest.raises(QueryveilError, match="was changed by somebody else in the meantime"):
        save(log, "s3://bucket/release", ready=lambda stage: bucket.put("release/theirs", "theirs") and None)
    assert bucket.names() == ["release/theirs"]
    assert bucket.uploads() == 0


def test_an_upload_that_fails_leaves_the_earlier_release(bucket, rows, tmp_path, monkeypatch):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    log = qv.read_log(local)
    save(log, "s3://bucket/release")
    with monkeypatch.context() as broken:
        broken.setattr(stores.StoreFolder, "_begin", lambda *given: 1 / 0)
        with pytest.raises(QueryveilError, match="does not answer"):
            save(log, "s3://bucket/release", overwrite=True, format="csv")
    assert "release/log.csv" not in bucket.names()
    assert qv.verify("s3://bucket/release", log).holds


def after_begin(monkeypatch, do):
    begin = stores.StoreFolder._begin
    monkeypatch.setattr(stores.StoreFolder, "_begin", lambda *given: (begin(*given), do())[0])


def test_an_upload_that_fails_removes_only_what_it_uploaded(bucket, rows, tmp_path, monkeypatch):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    after_begin(monkeypatch, lambda: bucket.put("release/theirs", "theirs"))
    with pytest.raises(QueryveilError, match="was changed by somebody else in the meantime"):
        save(qv.read_log(local), "s3://bucket/release")
    assert bucket.names() == ["release/theirs"]


def test_a_release_that_somebody_else_finished_stays(bucket, rows, tmp_path, monkeypatch):
    import obstore

    local = tmp_path / "log.tsv"
    local.write_text(rows)
    log, put, others = qv.read_log(local), obstore.put, []

    def overtaken(store, key, *given, **more):  # by a run that may replace what is unfinished
        if key.endswith("manifest.json") and not others:
            others.append(key)
            save(log, "s3://bucket/release", overwrite=True)
        return put(store, key, *given, **more)

    monkeypatch.setattr(obstore, "put", overtaken)
    with pytest.raises(QueryveilError, match="was changed by somebody else in the meantime"):
        save(log, "s3://bucket/release")
    assert qv.verify("s3://bucket/release", log).holds


def test_a_manifest_of_somebody_else_stays_with_its_files(bucket, rows, tmp_path, monkeypatch):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    after_begin(monkeypatch, lambda: bucket.put("release/manifest.json", "theirs"))
    with pytest.raises(QueryveilError, match="was changed by somebody else in the meantime"):
        save(qv.read_log(local), "s3://bucket/release")
    assert {"release/manifest.json", "release/log.parquet"} <= set(bucket.names())
    assert "release/.queryveil-unfinished" not in bucket.names()


def test_an_upload_that_fails_at_its_end_is_tidied_up(bucket, rows, tmp_path, monkeypatch):
    import obstore

    open_writer = obstore.open_writer

    class Failing:
        def __init__(self, upload, key):
            self.upload, self.key = upload, key

        def write(self, data):
            self.upload.write(data)

        def __enter__(self):
            self.upload.__enter__()
            return self

        def __exit__(self, *error):
            self.upload.__exit__(*error)
            if self.key.endswith("report.md") and error == (None, None, None):
                raise OSError("full")

    monkeypatch.setattr(
        obstore, "open_writer", lambda store, key, **more: Failing(open_writer(store, key, **more), key)
    )
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    with pytest.raises(QueryveilError, match="does not answer"):
        save(qv.read_log(local), "s3://bucket/release")
    assert (bucket.names(), bucket.uploads()) == ([], 0)


def test_a_server_that_ends_in_the_middle_of_an_upload(own_bucket, rows, tmp_path, private, monkeypatch):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    after_begin(monkeypatch, lambda: (own_bucket.process.kill(), own_bucket.process.wait()))
    with pytest.raises(QueryveilError) as caught:
        save(qv.read_log(local), "s3://bucket/release")
    assert str(caught.value).startswith("The store of s3://bucket/release does not answer")
    assert not list(private.rglob("manifest.json"))


def test_an_upload_that_was_ended_can_be_replaced(bucket, rows, tmp_path):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    log = qv.read_log(local)
    bucket.put("release/.queryveil-unfinished", "")
    bucket.put("release/log.parquet", "half")
    with pytest.raises(QueryveilError, match="There is no release in s3://bucket/release"):
        qv.Release.load("s3://bucket/release")
    with pytest.raises(QueryveilError, match="A release is being put at s3://bucket/release"):
        save(log, "s3://bucket/release")
    save(log, "s3://bucket/release", overwrite=True)
    assert qv.verify("s3://bucket/release", log).holds


def test_files_that_no_release_has_are_not_fetched(bucket, rows, tmp_path):
    bucket.put("release/manifest.json", "{}")
    bucket.put("release/a/b/c", "x")
    with pytest.raises(QueryveilError, match="holds a file that no release has"):
        qv.Release.load("s3://bucket/release")


def test_no_address_is_in_the_manifest(bucket, rows):
    bucket.put("very-private-name/log.tsv", rows)
    save(qv.read_log("s3://bucket/very-private-name/log.tsv"), "s3://bucket/release")
    folder = qv.Release.load("s3://bucket/release").folder
    assert isinstance(folder.path, Path)
    assert not any(b"very-private-name" in folder.read(name) for name in folder.files())
