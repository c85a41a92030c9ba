"""What is guessed about a log is shown, kept and used again; a forged manifest decides nothing."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryveil.errors import QueryveilError
from queryveil.formats.input import Input
from queryveil.log.ingest import read_log
from queryveil.release import Release
from queryveil.release.manifest import Manifest, written

UNUSUAL = "row;wer;was;wann\n" + "".join(
    f"{n};u{n % 3};{'tea' if n < 9 else 'my secret'};0{n % 9 + 1}/01/2026 10:00\n" for n in range(10)
)
"""No column has a usual name, and days could be months. Nobody but u0 typed `my secret`."""
COLUMNS = "user=wer,query=was,time=wann"


@pytest.fixture
def unusual(tmp_path):
    (tmp_path / "log.csv").write_bytes(UNUSUAL.encode("utf-16-le"))
    return tmp_path / "log.csv"


@pytest.fixture
def usual(tmp_path):
    path = tmp_path / "usual.csv"
    rows = (f"{n},u{n % 3},{'tea' if n < 9 else 'my secret'}\n" for n in range(10))
    path.write_text("row,visitor_id,search_term\n" + "".join(rows))
    return path


def released(run, log, folder, *options):
    code, _, err = run("anonymize", log, "--method", "equality", "-k", 2, "-o", folder, *options)
    assert code == 0, err
    return folder


def forged(folder, **fields):
    """Change the manifest of a release."""
    path = folder / "manifest.json"
    values = json.loads(path.read_text("utf-8")) | fields
    path.write_bytes(written(Manifest.model_validate(values)))


def test_what_was_found_by_name_is_shown_with_the_way_to_say_otherwise(run, usual):
    code, _, err = run("profile", usual)
    assert code == 0
    assert err == (
        "queryveil: found by the names of columns: user=visitor_id, query=search_term; for others, use --columns"
        " NAME=COLUMN,...\n"
    )
    assert run("profile", usual, "--columns", "user=visitor_id,query=search_term")[2] == ""
    _, _, err = run("profile", usual, "--log-format", "json")
    notes = [one["message"] for one in map(json.loads, err.splitlines()) if one["event"] == "note"]
    assert [note.partition(":")[0] for note in notes] == ["found by the names of columns"]


def test_a_time_format_that_was_found_is_shown(run, tmp_path):
    (tmp_path / "log.csv").write_text("user,query,time\nu,a,25.01.2026\n")
    code, out, err = run("profile", tmp_path / "log.csv")
    assert (code, err) == (0, "queryveil: times are read as '%d.%m.%Y'; for another format, use --time-format.\n")
    assert "2026-01-25" in out


def test_a_recipe_says_how_its_log_is_read(run, unusual, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'method = "equality"\n[parameters]\nk = 2\n[input]\nencoding = "utf-16-le"\ntime_format = "%d/%m/%Y %H:%M"\n'
        'columns = { user = "wer", query = "was", time = "row" }\n'
    )
    code, _, err = run("anonymize", unusual, "--recipe", recipe, "--columns", "time=wann", "-o", tmp_path / "r")
    assert code == 0, err
    kept = Release.load(tmp_path / "r").manifest.input
    assert kept is not None
    assert kept.model_dump(exclude_none=True) == {
        "columns": {"user": "wer", "query": "was", "time": "wann"},
        "encoding": "utf-16-le",
        "time_format": "%d/%m/%Y %H:%M",
    }
    recipe.write_text('method = "equality"\n[input]\nencoding = "hex"\n')
    code, _, err = run("anonymize", unusual, "--recipe", recipe, "-o", tmp_path / "other")
    assert code == 2
    assert "has a fault at 'input.encoding'" in err


def test_the_manifest_is_used_again_for_all_but_the_user(run, unusual, tmp_path):
    release = released(
        run, unusual, tmp_path / "r", "--columns", COLUMNS, "--encoding", "utf-16-le", "--time-format", "%d/%m/%Y %H:%M"
    )
    assert str(tmp_path) not in (release / "manifest.json").read_text("utf-8")
    for verb in (("verify", release), ("explain", release, "tea"), ("evaluate", release)):
        code, _, err = run(*verb, "--original", unusual)
        assert code == 2
        assert "Nothing but the manifest of the release says that the user is in column 'wer'" in err
        assert "--columns user=wer." in err
        code, _, err = run(*verb, "--original", unusual, "--columns", "user=wer")
        assert code == 0, err
        assert "named by the manifest of the release: query=was, time=wann;" in err
        assert "the manifest of the release names the encoding utf-16-le; for another, use --encoding." in err
        assert "the manifest of the release reads times as '%d/%m/%Y %H:%M'; for another format, use" in err


def test_usual_names_need_no_options_at_all(run, usual, tmp_path):
    release = released(run, usual, tmp_path / "r")
    code, out, _ = run("verify", release, "--original", usual)
    assert code == 0
    assert "The release keeps its promises" in out


def test_a_forged_manifest_cannot_make_every_row_a_user(run, usual, tmp_path):
    # As a forger would: each row is a user, so that `my secret` seems to be typed by as many as one likes.
    text = usual.read_text()
    usual.write_text(text + "10,u0,my secret\n11,u0,my secret\n")
    release = released(run, usual, tmp_path / "r", "--columns", "user=row")
    assert "my secret" in {row["query"] for row in Release.load(release).to_arrow().to_pylist()}
    code, out, err = run("verify", release, "--original", usual)
    assert code == 2
    assert "says that the user is in column 'row', but by its name column 'visitor_id' looks like it" in err
    assert "holds" not in out
    for mapping in ({}, {"user": "visitor_id"}, {"other": "row"}, {"query": "search_term"}):
        forged(release, input={"columns": mapping} if mapping else None)
        code, out, err = run("verify", release, "--original", usual)
        assert code == 7, (mapping, err)  # not the log that it was made from
        assert "keeps its promises" not in out
    # An auditor may look at the release in the forger's way, but has to say so.
    assert run("verify", release, "--original", usual, "--columns", "user=row")[0] == 0


@pytest.mark.parametrize("name", ["x", "url", "results", "time"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_forged_manifest_cannot_take_the_column_of_users_away(run, tmp_path, form, name):
    rows = [
        {"session_id": f"s{n}", "user_id": f"u{n % 3}", "query": "tea" if n < 9 else "my secret"} for n in range(12)
    ]
    log = tmp_path / f"log.{form}"
    if form == "csv":
        log.write_text("session_id,user_id,query\n" + "".join(",".join(row.values()) + "\n" for row in rows))
    elif form == "jsonl":
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), log)
    release = released(run, log, tmp_path / "r", "--columns", "user=session_id")
    forged(release, input={"columns": {name: "user_id"}})
    code, out, err = run("verify", release, "--original", log)
    assert (code, out) == (2, "")
    assert f"says that column 'user_id' is the {name}, but it is the user; say which" in err
    with pytest.raises(QueryveilError, match="but it is the user"):
        read_log(pa.Table.from_pylist(rows), stated=Release.load(release).manifest.input)


@pytest.mark.parametrize("key", ["a.b.c.d.e.f.g.h", "late.id"])
def test_a_forged_manifest_cannot_name_a_user_that_is_deep_or_late(run, tmp_path, key):
    deep = {"id": 1}
    for part in reversed("abcdefg"):
        deep = {part: deep}
    rows = [{"session": {"id": f"s{n}"}, "query": "tea"} for n in range(300)]
    rows[250] |= {"late": {"id": "x"}, "a": deep["a"]}
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    release = released(run, log, tmp_path / "r", "--columns", "user=session.id")
    forged(release, input={"columns": {"user": key}})
    code, out, err = run("verify", release, "--original", log)
    assert (code, out) == (2, "")
    assert "the user is in a column that is not at the beginning of the log; name the column with --columns" in err


def test_a_forged_list_of_results_does_not_hide_the_user(tmp_path):
    rows = [{"session_id": f"s{n}", "who": {"a": {"id": f"u{n % 3}"}}, "query": "tea"} for n in range(9)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(tmp_path / "log.jsonl", columns={"user": "who.a.id"}, stated=Input(columns={"results": "who.a"}))
    assert log.n_users == 3


def test_files_whose_users_are_in_another_column_are_refused(run, tmp_path):
    (tmp_path / "a.csv").write_text("user_id,query\nu,tea\n")
    for header in ("session_id,query", "user_id,q", "user,user_id,query"):
        (tmp_path / "b.csv").write_text(f"{header}\n{','.join('x' for _ in header.split(','))}\n")
        code, _, err = run("profile", tmp_path / "a.csv", tmp_path / "b.csv")
        assert code == 2
        assert f"at the beginning of the log, but not in {tmp_path / 'b.csv'}:1;" in err


def test_a_forged_format_and_a_forged_encoding_are_noticed(run, tmp_path):
    log = tmp_path / "log.tsv"
    log.write_text("user\tquery\ttime\n" + "".join(f"u{n % 3}\ttea\t2026-01-0{n + 1} 10:00:00\n" for n in range(9)))
    release = released(run, log, tmp_path / "r")
    forged(release, input={"format": "aol"})
    code, _, err = run("verify", release, "--original", log)
    assert code == 2
    assert "The log looks like tsv, but the manifest of the release says that it is aol" in err
    for encoding in ("utf-16-le", "gbk", "cp1252"):  # the log shows that it is none of them
        forged(release, input={"encoding": encoding})
        code, _, err = run("verify", release, "--original", log)
        assert (code, "encoding" in err) == (0, False)
    forged(release, input={"columns": {"user": "time"}})
    assert run("verify", release, "--original", log)[0] == 2


def test_a_forged_name_is_not_offered_to_a_shell(run, usual, tmp_path):
    release = released(run, usual, tmp_path / "r")
    forged(release, input={"columns": {"user": "$(touch x)"}})
    err = run("verify", release, "--original", usual)[2]
    assert "say which with --columns user=NAME or --columns user=visitor_id." in err
    usual.write_text(usual.read_text().replace("visitor_id", "$(touch x)"))
    assert "say so with --columns 'user=$(touch x)'." in run("verify", release, "--original", usual)[2]


def test_a_manifest_says_how_times_are_written_only_where_it_is_open(tmp_path):
    def first(times, format):
        table = pa.table({"user": ["u"] * len(times), "query": ["tea"] * len(times), "time": times})
        log = read_log(table, stated=Input(time_format=format))
        return str(log.engine.row("SELECT min(time) AS t FROM events")[0])[:10], log.stats.read_as.stated

    assert first(["2026-01-02"], "%Y-%d-%m") == ("2026-01-02", ())  # a usual form
    assert first(["25/01/2026", "02/03/2026"], "%m/%d/%Y") == ("2026-01-25", ())  # shown by the rows
    assert first(["02/01/2026"], "%d/%m/%Y") == ("2026-01-02", ("time_format",))
    assert first(["02|01|2026"], "%d|%m|%Y") == ("2026-01-02", ("time_format",))


@pytest.mark.parametrize("name", ["\x1b[2J", 'a"b', "x" * 300])
def test_names_of_a_hostile_manifest_are_refused(run, usual, tmp_path, name):
    release = released(run, usual, tmp_path / "r")
    path = release / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"input": {"columns": {"query": name}}}))
    code, out, err = run("verify", release, "--original", usual)
    assert code == 2
    assert "\x1b" not in out + err
