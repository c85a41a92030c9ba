"""The file: format, seeds, chunks, errors."""

import gzip
import re
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryveil import profile, read_log
from queryveil.errors import QueryveilError
from queryveil.synth import generate, make

LINE = re.compile(r"\d+\t[^\t\n]+\t2006-\d\d-\d\d \d\d:\d\d:\d\d\t(\d*)\t(http://www\.[a-z0-9]+\.(com|org|net))?")


def test_rows_are_in_aol_format(made):
    header, *lines = made.log.read_text("ascii").splitlines()
    assert header == "AnonID\tQuery\tQueryTime\tItemRank\tClickURL"
    assert len(lines) == made.summary.rows
    for line in lines:
        match = LINE.fullmatch(line)
        assert match, line
        assert bool(match[1]) == bool(match[2])


def test_queries_are_in_normal_form(made):
    assert made.sql("select query from log where query <> lower(trim(query)) or contains(query, '  ')") == []


def test_summary_counts_what_was_written(made):
    counts = made.sql("select count(distinct user), count(distinct (user, query, time)), count(*), count(url) from log")
    summary = made.summary
    assert counts == [(summary.users, summary.events, summary.rows, summary.clicks)]


def test_rows_of_an_event_stand_together_and_time_moves_on(made):
    rows = made.sql("select user, query, time from log")
    for before, after in pairwise(rows):
        assert before == after or before[0] != after[0] or before[2] < after[2]


def test_same_seed_same_bytes(tmp_path):
    for name in ("a.tsv.gz", "b.tsv.gz"):
        generate(tmp_path / name, users=300, seed=5)
    assert (tmp_path / "a.tsv.gz").read_bytes() == (tmp_path / "b.tsv.gz").read_bytes()


def test_other_seed_other_log(tmp_path):
    for seed in (1, 2):
        generate(tmp_path / f"{seed}.tsv", users=300, seed=seed)
    assert (tmp_path / "1.tsv").read_bytes() != (tmp_path / "2.tsv").read_bytes()


def test_chunks_do_not_show(tmp_path, monkeypatch):
    generate(tmp_path / "one.tsv", users=300, seed=5, truth=tmp_path / "one")
    monkeypatch.setattr(make, "USERS_A_CHUNK", 37)
    generate(tmp_path / "many.tsv", users=300, seed=5, truth=tmp_path / "many")
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "many.tsv").read_bytes()
    assert pq.read_table(tmp_path / "one/queries.parquet") == pq.read_table(tmp_path / "many/queries.parquet")


def test_more_users_only_add_users(tmp_path):
    generate(tmp_path / "few.tsv", users=100, seed=5)
    generate(tmp_path / "more.tsv", users=200, seed=5)
    assert (tmp_path / "more.tsv").read_bytes().startswith((tmp_path / "few.tsv").read_bytes())


def test_all_formats_hold_the_same_rows(tmp_path):
    for ending in ("tsv", "tsv.gz", "tsv.zst", "parquet"):
        generate(tmp_path / f"log.{ending}", users=200, seed=3)
    plain = (tmp_path / "log.tsv").read_bytes()
    assert gzip.decompress((tmp_path / "log.tsv.gz").read_bytes()) == plain
    with pa.input_stream(str(tmp_path / "log.tsv.zst"), compression="zstd") as file:
        assert file.read() == plain
    table = pq.read_table(tmp_path / "log.parquet")
    lines = [
        f"{row['user']}\t{row['query']}\t{row['time']}\t{row['rank'] or ''}\t{row['url'] or ''}"
        for row in table.to_pylist()
    ]
    assert lines == plain.decode().splitlines()[1:]


def test_parquet_columns(tmp_path):
    generate(tmp_path / "log.parquet", users=200, seed=3)
    table = pq.read_table(tmp_path / "log.parquet")
    assert table.column_names == ["user", "query", "time", "rank", "url", "device", "country", "language"]
    assert table.schema.field("time").type == pa.timestamp("us")
    assert table.schema.field("rank").type == pa.int32()
    for name in ("device", "country", "language"):
        per_user = table.group_by("user").aggregate([(name, "count_distinct")])
        assert set(per_user[f"{name}_count_distinct"].to_pylist()) == {1}
        assert len(table[name].unique()) > 1


def test_gzip_header_holds_no_time_and_no_name(tmp_path):
    generate(tmp_path / "log.tsv.gz", users=100)
    header = (tmp_path / "log.tsv.gz").read_bytes()[:10]
    assert header[3] == 0
    assert header[4:8] == bytes(4)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("log.csv", {"users": 100}, r"must end in .tsv, .tsv.gz, .tsv.zst, .parquet. Got log.csv"),
        ("log.tsv", {"users": 99}, r"must be from 100 to 5,000,000. Got 99 instead"),
        ("log.tsv", {"users": 5_000_001}, r"Got 5,000,001 instead"),
        ("log.tsv", {"users": 100, "seed": -1}, r"'seed' parameter"),
        ("none/log.tsv", {"users": 100}, r"does not exist"),
    ],
)
def test_what_the_caller_can_mend(tmp_path, name, options, message):
    with pytest.raises(QueryveilError, match=message):
        generate(tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_kept_unless_overwriting_is_asked_for(tmp_path):
    log, truth = tmp_path / "log.tsv", tmp_path / "truth"
    log.write_text("mine")
    with pytest.raises(QueryveilError, match="exists"):
        generate(log, users=100)
    assert log.read_text() == "mine"
    truth.mkdir()
    (truth / "notes.txt").write_text("mine")
    with pytest.raises(QueryveilError, match="exists"):
        generate(tmp_path / "new.tsv", users=100, truth=truth)
    generate(log, users=100, truth=truth, overwrite=True)
    assert log.read_text().startswith("AnonID")
    assert sorted(file.name for file in truth.iterdir()) == [
        "content.rdf.u8", "notes.txt", "queries.parquet", "structure.rdf.u8",
    ]  # fmt: skip


def test_interruption_leaves_nothing_behind(tmp_path):
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path / "log.parquet", users=100, truth=tmp_path / "truth", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_one_sentence_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(make, "save_directory", full)
    with pytest.raises(QueryveilError, match=r"could not be written to .*: No space left on device\."):
        generate(tmp_path / "log.tsv", users=100, truth=tmp_path / "truth")
    assert list(tmp_path.iterdir()) == []


def test_progress_ends_at_all_users(tmp_path, monkeypatch):
    monkeypatch.setattr(make, "USERS_A_CHUNK", 100)
    seen = []
    generate(tmp_path / "log.tsv", users=250, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(100, 250), (200, 250), (250, 250)]


@pytest.mark.parametrize("ending", [".tsv", ".parquet"])
def test_views_show_ten_results_of_the_same_events_and_clicks(tmp_path, ending):
    logs = {}
    for views in (False, True):
        summary = generate(tmp_path / f"{views}{ending}", users=100, seed=3, views=views)
        logs[views] = read_log(tmp_path / f"{views}{ending}")
        assert (logs[views].stats.rows, logs[views].stats.clicks) == (summary.rows, summary.clicks)
    clicks, shown = logs[False], logs[True]
    assert shown.stats.views == 10 * shown.stats.events
    assert shown.clicks["rank"].equals(clicks.clicks["rank"])
    assert shown.events["time"].equals(clicks.events["time"])
    by_rank = [one.clicks / one.views for one in profile(shown).ranks if one.rank in ("1", "2", "9")]
    assert by_rank[0] > by_rank[1] > by_rank[2]
