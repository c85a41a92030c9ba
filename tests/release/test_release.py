import errno
import hashlib
import json
import os
import re
import stat

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.measures import record_linkage
from queryveil.claims import QueryUsers
from queryveil.files.folders import LocalFolder
from queryveil.formats import writers
from queryveil.release import check_target, with_user_map
from tests.oracles import log as oracle
from tests.strategies import LOGS, table

FORMATS = {"parquet": "log.parquet", "aol": "log.tsv", "csv": "log.csv"}

PARAMETERS = {"k": 2, "link": "user", "session_gap": 30, "session_events": 10}


def make_log(n: int = 40) -> qv.QueryLog:
    users = [f"original-user-{i % 7}" for i in range(n)]
    queries = [
        ["tea", 'the "best" tea', "a very private query"][(i * i) % 3] if i != 5 else "only once" for i in range(n)
    ]
    return qv.read_log(
        pa.table(
            {
                "user": users,
                "query": queries,
                "time": [f"2006-03-{1 + i % 28:02} 10:00:00" for i in range(n)],
                "rank": [1] * n,
                "url": ["http://tea.com/"] * (n - 1) + ["http://tea.com/secret-page"],
            }
        )
    )


def contents(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.mark.parametrize("format", FORMATS)
def test_a_release_is_a_table_a_manifest_and_a_report(tmp_path, format):
    log = make_log()
    verdicts = qv.Equality(k=2, link="user").anonymize(log, seed=1).save(tmp_path / "r", format=format)
    assert all(verdict.holds for verdict in verdicts)
    assert set(contents(tmp_path / "r")) == {FORMATS[format], "manifest.json", "report.md", "schema.json"}
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((tmp_path / "r" / name).read_bytes()).hexdigest() == digest
    assert manifest["input_fingerprint"] == log.keyed_fingerprint(1)
    assert (manifest["method"], manifest["parameters"]) == ("equality", {"k": 2, "link": "user"})
    assert "seed" not in manifest
    loaded = qv.Release.load(tmp_path / "r")
    assert qv.verify(loaded, log).holds
    assert sum(len(batch) for batch in loaded.batches()) == loaded.manifest.counts.rows


def test_all_formats_hold_the_same_table(tmp_path):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    tables = {}
    for format in FORMATS:
        release.save(tmp_path / format, format=format)
        loaded = qv.Release.load(tmp_path / format)
        rows = pa.Table.from_batches(list(loaded.batches()), loaded.schema)
        tables[format] = rows.select(["user", "query", "rank", "url"])
    assert tables["parquet"].equals(tables["csv"])
    assert tables["parquet"].equals(tables["aol"])


def test_other_readers_understand_the_files(tmp_path):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    for format, name in FORMATS.items():
        release.save(tmp_path / format, format=format)
        if format == "aol":
            assert len(qv.read_log(tmp_path / format / name).clicks) == release.manifest.counts.clicks
    assert pq.read_table(tmp_path / "parquet" / "log.parquet").num_rows == release.manifest.counts.rows
    assert pacsv.read_csv(tmp_path / "csv" / "log.csv").num_rows == release.manifest.counts.rows


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_seed_gives_the_same_bytes_with_one_thread_or_two(tmp_path, format):
    rows = pa.table({"user": [f"u{i % 300}" for i in range(9000)], "query": [f"q{i * i % 997}" for i in range(9000)]})
    for name, threads in (("one", 1), ("two", 2)):
        log = qv.read_log(rows.take(pa.array(range(8999, -1, -1))) if threads == 2 else rows, threads=threads)
        qv.Equality(k=3, link="user").anonymize(log, seed=7).save(tmp_path / name, format=format)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_another_seed_gives_another_order_and_the_same_queries(tmp_path):
    log = make_log()
    rows = []
    for seed in (1, 2):
        release = qv.Equality(k=2, link="user").anonymize(log, seed=seed)
        rows.append(pa.Table.from_batches(list(release.batches()), release.schema))
    assert not rows[0].equals(rows[1])
    assert sorted(rows[0]["query"].to_pylist()) == sorted(rows[1]["query"].to_pylist())


@given(LOGS, st.sampled_from(list(FORMATS)))
def test_no_original_user_nor_unreleased_query_is_anywhere_in_the_release(tmp_path_factory, rows, format):
    rows = [row._replace(user=f"secret-{row.user}", query=f"{row.query} zz{i % 5}") for i, row in enumerate(rows)]
    if len({row.user for row in oracle.good(rows)}) < 3:
        return
    place = tmp_path_factory.mktemp("r") / "release"
    log = qv.read_log(table(rows))
    release = qv.Equality(k=3, link="user").anonymize(log, seed=1)
    release.save(place, format=format, allow_empty=True)
    released = set(oracle.equality(rows, 3)[0])
    for name in contents(place):
        path = place / name
        text = "\n".join(map(str, pq.read_table(path).to_pylist())) if name.endswith("parquet") else path.read_text()
        assert "secret-" not in text
        # Whole lines, because an unreleased query may be part of a released one.
        fields = set(re.split(r"[\t\n]|', '|': '|\",\"?|\"", text))
        assert not fields & (set(oracle.users_per_query(rows)) - released)


def test_nothing_is_written_over(tmp_path):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    release.save(tmp_path / "r")
    before = contents(tmp_path / "r")
    with pytest.raises(qv.QueryveilError, match="exists already"):
        release.save(tmp_path / "r")
    assert contents(tmp_path / "r") == before
    release.save(tmp_path / "r", overwrite=True, format="csv")
    assert "log.csv" in contents(tmp_path / "r")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize("flags", [True, False])
def test_a_failed_overwrite_leaves_the_old_release(tmp_path, monkeypatch, flags):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    release.save(tmp_path / "r")
    before = contents(tmp_path / "r")

    def fail(*given):
        raise OSError(errno.EIO, "Input/output error")

    if not flags:  # then the old release is moved away before the new one fails to take its place
        monkeypatch.setattr("queryveil.files.scratch._renameat2", lambda *given: False)
    monkeypatch.setattr("queryveil.files.folders.exchange" if flags else "queryveil.files.folders.move_new", fail)
    with pytest.raises(qv.QueryveilError, match="Input/output error"):
        release.save(tmp_path / "r", overwrite=True, format="csv")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert contents(tmp_path / "r") == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_made_while_a_release_is_staged_stays(tmp_path, monkeypatch, overwrite):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    write = writers.write

    def slow(*given):
        (tmp_path / "r").mkdir()
        (tmp_path / "r" / "manifest.json").write_text("of another run")
        write(*given)

    monkeypatch.setattr(writers, "write", slow)
    with pytest.raises(qv.QueryveilError, match="r was made by somebody else in the meantime and is left unchanged"):
        release.save(tmp_path / "r", overwrite=overwrite)
    assert contents(tmp_path / "r") == {"manifest.json": b"of another run"}
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_what_may_be_replaced_is_decided_before_the_work(tmp_path):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    release.save(tmp_path / "r")
    first, second = (check_target(LocalFolder(tmp_path / "r"), "csv", True) for _ in range(2))
    release.save(first, format="csv")
    after = contents(tmp_path / "r")
    with pytest.raises(qv.QueryveilError, match="r was changed by somebody else in the meantime and is left unchanged"):
        release.save(second, format="aol")
    assert contents(tmp_path / "r") == after
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_a_link_to_a_release_is_not_overwritten(tmp_path):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    release.save(tmp_path / "r")
    before = contents(tmp_path / "r")
    (tmp_path / "link").symlink_to("r")
    for overwrite, sentence in ((False, "exists already"), (True, "is a link, so it is not overwritten")):
        with pytest.raises(qv.QueryveilError, match=sentence):
            release.save(tmp_path / "link", overwrite=overwrite)
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "r") == before


@pytest.mark.parametrize("format", FORMATS)
def test_a_release_in_the_making_is_for_its_owner_alone(tmp_path, monkeypatch, format):
    seen = {}

    def look(place, stage, replaces):
        for path in (stage.path.parent, *stage.path.parent.rglob("*")):
            seen[path.name] = stat.S_IMODE(path.stat().st_mode)
        raise OSError(errno.EIO, "enough seen")

    monkeypatch.setattr(LocalFolder, "take", look)
    with pytest.raises(qv.QueryveilError, match="enough seen"):
        qv.Equality(k=2, link="user").anonymize(make_log(), seed=1).save(tmp_path / "r", format=format)
    files = {FORMATS[format], "manifest.json", "report.md", "schema.json"}
    assert files <= set(seen)
    assert all(mode == (0o600 if name in files or "lock" in name else 0o700) for name, mode in seen.items())


def test_overwrite_replaces_only_releases(tmp_path):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    for place in (tmp_path / "photos", tmp_path / "photos" / "cat.jpg"):
        with pytest.raises(qv.QueryveilError, match="is not a release"):
            release.save(place, overwrite=True)
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "meow"


def test_an_empty_release_is_written_only_when_wanted(tmp_path):
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["x", "y"]}))
    release = qv.Equality(k=2, link="user").anonymize(log)
    with pytest.raises(qv.QueryveilError, match=r"would be empty.*allow_empty=True"):
        release.save(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []
    release.save(tmp_path / "r", allow_empty=True)
    assert qv.verify(tmp_path / "r", log).holds


def test_a_claim_that_does_not_hold_is_never_written(tmp_path):
    log = make_log()
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    boast = release.manifest.model_copy(update={"claims": (QueryUsers(users=99),)})
    with pytest.raises(qv.QueryveilError, match="a check refutes what it promises: Every released query") as caught:
        qv.Release(boast, release.schema, release.batches, log=log).save(tmp_path / "r")
    assert "tea" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["write", "open_table"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, step):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    release.save(tmp_path / "old")
    before = contents(tmp_path / "old")
    monkeypatch.setattr(writers, step, full)
    with pytest.raises(qv.QueryveilError, match="the disk is full"):
        release.save(tmp_path / "old", overwrite=True)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert contents(tmp_path / "old") == before


def test_places_and_formats_that_will_not_do(tmp_path):
    release = qv.Equality(k=2, link="user").anonymize(make_log(), seed=1)
    with pytest.raises(qv.QueryveilError, match="does not exist; make it first"):
        release.save(tmp_path / "no" / "such")
    with pytest.raises(qv.QueryveilError, match="no release format 'xml'"):
        release.save(tmp_path / "r", format="xml")
    without = qv.Equality(k=2, link="none").anonymize(make_log())
    with pytest.raises(qv.QueryveilError, match="has a user in every row"):
        without.save(tmp_path / "r", format="aol")
    assert list(tmp_path.iterdir()) == []


def test_where_users_are_dropped_the_order_does_not_stand_in_for_them():
    log = qv.read_log(
        pa.table({"user": [f"u{i % 50}" for i in range(500)], "query": [f"q{i % 5}" for i in range(500)]})
    )
    release = qv.Equality(k=2, link="none").anonymize(log, seed=1)
    rows = pa.Table.from_batches(list(release.batches()), release.schema)
    assert rows.column_names == ["event", "query"]
    ordered = rows["query"].to_pylist()
    assert ordered == sorted(ordered, key=ordered.index), "rows are grouped by query"
    assert release.manifest.counts.users is None


def test_the_user_map_is_secret_and_complete(tmp_path):
    log = make_log()
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    release.save_user_map(tmp_path / "map.csv")
    assert stat.S_IMODE(os.stat(tmp_path / "map.csv").st_mode) == 0o600
    found = pacsv.read_csv(tmp_path / "map.csv")
    assert set(found["original"].to_pylist()) == set(log.user_text.to_pylist())
    assert sorted(found["released"].to_pylist()) == list(range(1, 8))
    with pytest.raises(qv.QueryveilError, match="user map cannot be written"):
        release.save_user_map(tmp_path / "map.csv")


def test_what_is_no_release_is_told(tmp_path):
    with pytest.raises(qv.QueryveilError, match="There is no release in"):
        qv.Release.load(tmp_path)
    qv.Equality(k=2, link="user").anonymize(make_log(), seed=1).save(tmp_path / "r")
    manifest = tmp_path / "r" / "manifest.json"
    good = manifest.read_text()
    manifest.write_text(good.replace('"format_version": 2', '"format_version": 3'))
    with pytest.raises(qv.QueryveilError, match="has format version 3, this queryveil reads versions 1 and 2"):
        qv.Release.load(tmp_path / "r")
    manifest.write_text(good.replace('"method": "equality"', '"method": 1'))
    with pytest.raises(qv.QueryveilError, match="is damaged at 'method'"):
        qv.Release.load(tmp_path / "r")
    manifest.write_text("{")
    with pytest.raises(qv.QueryveilError, match=r"damaged|format version"):
        qv.Release.load(tmp_path / "r")
    manifest.write_text(good.replace("log.parquet", "../../elsewhere"))
    with pytest.raises(qv.QueryveilError, match="which no release has"):
        qv.Release.load(tmp_path / "r")
    manifest.write_text(good.replace('"query"', '"question"'))
    with pytest.raises(qv.QueryveilError, match="does not have the columns"):
        qv.Release.load(tmp_path / "r")
    manifest.write_text(good)
    loaded = qv.Release.load(tmp_path / "r")
    with pytest.raises(qv.QueryveilError, match="copy the folder"):
        loaded.save(tmp_path / "s")


def test_a_release_is_loaded_together_with_its_log(tmp_path):
    log = make_log(28)
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    release.save(tmp_path / "r")
    release.save_user_map(tmp_path / "users.csv")
    loaded = qv.Release.load(tmp_path / "r", log=log)
    assert loaded.log is log
    with pytest.raises(qv.QueryveilError, match="just made knows its user map"):
        loaded.save_user_map(tmp_path / "again.csv")
    for one in (loaded, qv.Release.load(tmp_path / "r", log=log, user_map=tmp_path / "users.csv")):
        with pytest.raises(qv.QueryveilError, match="copy the folder"):
            one.save(tmp_path / "s")
    with pytest.raises(qv.QueryveilError, match="made from another log"):
        qv.Release.load(tmp_path / "r", log=make_log(29))


def test_the_log_that_a_release_was_loaded_with_is_compared_with_its_certificate(tmp_path):
    log, other = (qv.read_log(pa.table({"user": ["a", "b", "c"], "query": [q] * 3})) for q in ("cat", "dog"))
    release = qv.Equality(k=2).anonymize(log, seed=1)
    release.save(tmp_path / "r")
    loaded = qv.Release.load(tmp_path / "r", log=other)  # as large as its own
    assert not qv.verify(loaded, other, certificate=release.certificate).verdicts[-1].holds
    with pytest.raises(qv.QueryveilError, match="made from another log"):
        qv.explain(loaded, log, "cat")


@pytest.mark.parametrize("format", FORMATS)
def test_a_loaded_release_knows_who_is_who_again_by_its_user_map(tmp_path, format):
    log = make_log(28)  # an event a row: the aol format does not tell of several clicks whether they are of one
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    release.save(tmp_path / "r", format=format)
    release.save_user_map(tmp_path / "map.csv")
    known = with_user_map(qv.Release.load(tmp_path / "r"), log, tmp_path / "map.csv")
    assert [b.to_pylist() for b in known.user_map()] == [b.to_pylist() for b in release.user_map()]
    assert record_linkage(known) == record_linkage(release)


def test_users_who_share_a_record_share_a_line_of_the_map(tmp_path):
    log = make_log()
    release = qv.Mdav(k=2, distance="strings", compact=True).anonymize(log)
    release.save(tmp_path / "r")
    release.save_user_map(tmp_path / "map.csv")
    known = with_user_map(qv.Release.load(tmp_path / "r"), log, tmp_path / "map.csv")
    assert [b.to_pylist() for b in known.user_map()] == [b.to_pylist() for b in release.user_map()]


def test_names_of_users_come_through_a_user_map_as_they_are(tmp_path):
    names = ['a "b"', "x,y", "two\nlines", "null", "12", " pad ", "é"]
    log = qv.read_log(pa.table({"user": names, "query": ["tea"] * len(names)}))
    release = qv.Equality(k=2, link="user").anonymize(log)
    release.save(tmp_path / "r")
    release.save_user_map(tmp_path / "map.csv")
    known = with_user_map(qv.Release.load(tmp_path / "r"), log, tmp_path / "map.csv")
    assert {row["original"] for batch in known.user_map() for row in batch.to_pylist()} == set(
        log.user_text.to_pylist()
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines, '"original-user-99",1'],
        lambda lines: [*lines[:-1], '"original-user-99",1'],
        lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",99"],
        lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",ninety"],
        lambda lines: lines[1:],
        lambda lines: lines[:1],
        lambda lines: [],
        lambda lines: [line + ",1" for line in lines],
    ],
)
def test_a_user_map_that_does_not_fit_is_refused_in_one_sentence(tmp_path, change):
    log = make_log()
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    release.save(tmp_path / "r")
    release.save_user_map(tmp_path / "map.csv")
    (tmp_path / "wrong.csv").write_text("\n".join(change((tmp_path / "map.csv").read_text().splitlines())) + "\n")
    with pytest.raises(qv.QueryveilError, match=r"wrong\.csv does not fit the release and the log; give the file") as e:
        with_user_map(qv.Release.load(tmp_path / "r"), log, tmp_path / "wrong.csv")
    assert "original-user" not in str(e.value)


def test_no_user_map_for_a_release_without_users_or_of_another_log(tmp_path):
    log = make_log()
    qv.Equality(k=2, link="user").anonymize(log, seed=1).save_user_map(tmp_path / "map.csv")
    with pytest.raises(qv.QueryveilError, match="no user ids or session ids"):
        with_user_map(qv.Equality(k=2, link="none").anonymize(log), log, tmp_path / "map.csv")
    with pytest.raises(qv.QueryveilError, match="made from another log"):
        with_user_map(qv.Equality(k=2, link="user").anonymize(log), make_log(39), tmp_path / "map.csv")
    with pytest.raises(qv.QueryveilError, match=r"none\.csv cannot be read"):
        with_user_map(qv.Equality(k=2, link="user").anonymize(log), log, tmp_path / "none.csv")


@pytest.mark.parametrize("name", ["/etc/passwd", "../lists/block", "..", "a\x1b[31m", 7, "x" * 300])
@pytest.mark.parametrize("parameter", ["block_list", "taxonomy", "key_file"])
def test_a_manifest_that_names_a_path_is_not_opened(tmp_path, parameter, name):
    qv.Equality(k=2).anonymize(make_log(), seed=1).save(tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["parameters"][parameter] = name
    path.write_text(json.dumps(manifest))
    with pytest.raises(qv.QueryveilError, match="is damaged at 'parameters'"):
        qv.Release.load(tmp_path / "r")
