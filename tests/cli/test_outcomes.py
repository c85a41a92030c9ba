"""Exit codes, errors as JSON, and what verbs say on standard error."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import queryveil as qv
from queryveil.cli import VERBS, build, progress
from queryveil.cli.outcome import EXITS
from queryveil.engines import duckdb
from queryveil.errors import Done, QueryveilError, Step

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.fixture
def release(run, log, tmp_path):
    """A release of the log."""
    assert run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r")[0] == 0
    return tmp_path / "r"


@pytest.fixture
def other(log, tmp_path):
    """Another log."""
    path = tmp_path / "other.tsv"
    path.write_text(log.read_text() + "u-9\ttea\t2006-03-02 10:00:00\t\t\n")
    return path


def refuted(release):
    """Change a release so that all digests fit and a promise does not hold."""
    manifest = release / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"k": 2', '"k": 3').replace('"users": 2', '"users": 3'))


def reached(run, log, release, other, tmp_path, monkeypatch):
    """The exit code and the JSON of a command line for each code."""
    policy = tmp_path / "policy.toml"
    policy.write_text("max_linkage = 0.0\n")
    again = ["anonymize", log, "--method", "equality", "-o", release, "-k"]
    yield "exists", run(*again, 2, "--json")
    yield "empty", run(*again[:-2], tmp_path / "e", "-k", 4, "--json")
    yield "policy-not-met", run(*again[:-2], tmp_path / "p", "-k", 2, "--link", "user", "--policy", policy, "--json")
    yield "bad-input", run(*again, 1, "--json")
    yield "usage", run(*again, 2, "--magic", "--json")
    yield "other-log", run("verify", release, "--original", other, "--json")
    yield "not-found", run("taxonomy", "show", "wordnet", "xyzzy", "--json")
    refuted(release)
    yield "refuted", run("verify", release, "--original", log, "--json")
    monkeypatch.setattr("queryveil.assess.profiles.profile", lambda log: 1 // 0)
    yield "bug", run("profile", log, "--json")

    def interrupted(log):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    monkeypatch.setattr("queryveil.cli._stopped", [])
    monkeypatch.setattr("queryveil.assess.profiles.profile", interrupted)
    try:
        yield "stopped", run("profile", log, "--json")
    finally:
        duckdb.stopping.clear()  # else nothing else could be asked in this process


def test_every_documented_code_is_reached(run, log, release, other, tmp_path, monkeypatch):
    section = DOCS.read_text("utf-8").split("## Exit codes")[1].split("\n## ")[0]
    table = re.findall(r"^\| (\d+) \|(.*?)\|", section, re.MULTILINE)
    documented = {code: int(number) for number, codes in table for code in re.findall(r"`([a-z-]+)`", codes)}
    assert documented == EXITS
    seen = {}
    for code, (number, out, err) in reached(run, log, release, other, tmp_path, monkeypatch):
        found = json.loads(out)["error"]
        assert (found["code"], bool(found["message"])) == (code, True), err
        seen[code] = number
    assert seen == EXITS


def test_a_forged_manifest_is_never_accepted(run, release, log):
    manifest = release / "manifest.json"
    stated = json.loads(manifest.read_text())
    stated["input_counts"]["events"] += 1
    manifest.write_text(json.dumps(stated, indent=2) + "\n")
    code, out, _ = run("verify", release, "--original", log)
    assert code == 7
    assert "This is not the log that the release was made from, or its manifest was changed." in out


def test_a_certificate_says_that_it_is_another_log_of_the_same_size(run, log, tmp_path):
    made, keys = tmp_path / "r", tmp_path / "r.certificate"
    run("anonymize", log, "--method", "equality", "-k", 2, "-o", made, "--certificate", keys)
    log.write_text(log.read_text().replace("my secret", "my sekret"))
    code, out, _ = run("verify", made, "--original", log, "--certificate", keys, "--json")
    found = json.loads(out)
    assert (code, found["other_log"], found["error"]["code"]) == (7, True, "other-log")


@pytest.mark.parametrize("words", [["profile", "LOG"], ["profile", "LOG", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_no_refutation(log, words):
    reader, writer = os.pipe()
    os.close(reader)
    given = [str(log) if word == "LOG" else word for word in words]
    ended = subprocess.run([sys.executable, "-m", "queryveil.cli", *given], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, b"")


def test_errors_in_python_have_the_same_codes(log, tmp_path):
    read = qv.read_log(log)
    release = qv.Equality(k=2).anonymize(read)
    release.save(tmp_path / "r")
    with pytest.raises(QueryveilError, match="exists already") as found:
        release.save(tmp_path / "r")
    assert found.value.code == "exists"
    with pytest.raises(QueryveilError) as found:
        qv.Equality(k=4).anonymize(read)
    assert found.value.code == "empty"


def test_json_of_a_release_is_what_was_written(run, log, tmp_path):
    code, out, _ = run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r", "--json")
    found = json.loads(out)
    assert (code, found["manifest"]) == (0, json.loads((tmp_path / "r" / "manifest.json").read_text()))
    assert found["verdicts"]
    assert all(verdict["holds"] for verdict in found["verdicts"])


def test_events_have_steps_rows_and_seconds_and_nothing_of_the_log(run, log, tmp_path):
    words = ("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r", "--seed", 1)
    _, _, err = run(*words, "--log-format", "json", "--verbose")
    events = [json.loads(line) for line in err.splitlines()]
    done = {event["step"]: event for event in events if event["event"] == "done"}
    assert done["Reading"]["rows"] == 6
    assert all(event["seconds"] >= 0 for event in done.values())
    assert [event["event"] for event in events].count("warning") == 1
    assert not any(text in err for text in ("secret", "tea", "u-1"))
    _, _, err = run(*words, "--overwrite", "--quiet")
    assert (err.count("\n"), err.startswith("Warning: The seed 1 can be guessed.")) == (1, True)
    _, _, err = run("profile", log, "--verbose")
    assert re.match(r"Reading: done, 6 rows, \d+\.\d s\n", err)


def test_an_error_is_an_event_even_if_the_options_are_wrong(run):
    _, out, err = run("profile", "--log-format", "json", "--magic")
    assert (out, json.loads(err)["code"]) == ("", "usage")
    assert run("profile", "x", "--log-format", "xml")[2].startswith("queryveil: There is no log format 'xml'")


def test_long_work_says_how_far_it_is_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setattr(progress, "style", progress.Style())
    with progress.progress("Reading") as update:
        update(Done(1500, 0.25))
        time.sleep(0.1)
    with progress.progress("Attacking") as update:
        update(Step("linkage", 1, 4))
        time.sleep(0.1)
    lines = capsys.readouterr().err.splitlines()
    assert "Reading: 1,500 rows, 25.0 %, 0 s" in lines
    assert "Attacking: linkage, step 2 of 4 (25.0 %), 0 s" in lines


def test_the_time_that_is_left_follows_from_the_share(monkeypatch):
    work = progress._Work("Reading", "rows")
    monkeypatch.setattr(work, "began", time.monotonic() - 60)
    work.update(Done(1000, 0.25))
    assert work.parts == ["1,000 rows", "25.0 %", "about 3 min left"]


def test_a_terminal_has_one_line_that_goes(monkeypatch, capsys):
    monkeypatch.setattr(progress, "style", progress.Style())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.progress("Reading") as update:
        update(Done(10, 0.5))
    assert "Reading: " not in capsys.readouterr().err


WORDS = [
    *([verb] for verb in VERBS),
    *(["anonymize", "--method", name] for name in ("rules", "affinity", "counts", "zealous", "hash", "mdav")),
    *(["series", verb] for verb in ("init", "add", "status", "verify", "attack", "links", "forget")),
    ["taxonomy", "show"],
    ["web-directory", "build"],
    ["series"],
    [],
]


def test_help_fits_80_columns_and_nothing_is_clipped(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words in WORDS:
        code, out, _ = run(*words, "--help")
        assert code == 0
        assert "…" not in out
        # Three dots at the end of a line would be a sentence that was cut; those of LOG... say that there may be more.
        assert not re.search(r"(?<![,\]A-Z])\.\.\.$", out, re.MULTILINE), words
        assert max(map(len, out.splitlines())) <= 80, words
        assert "<" not in re.sub(r"\d<=x<=\d+|<=", "", out), words


def test_every_verb_takes_the_options_for_messages(run):
    for words in WORDS[:-2]:
        assert "--log-format" in run(*words, "--help")[1], words
    assert build([]) is not None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["anonymise"], "Did you mean 'anonymize'?"),
        (["series", "ad"], "Did you mean 'add'?"),
        (["profile", "x", "--thread", "2"], "There is no option --thread; did you mean '--threads'? See '"),
        (["anonymize", "x", "--metod", "equality", "-o", "r"], "did you mean '--method'?"),
        (["anonymize", "x", "--method", "equalty", "-o", "r"], "did you mean 'equality'?"),
        (["anonymize", "x", "--method", "equality", "--tetha", "0.5", "-o", "r"], "did you mean '--theta'?"),
        (["anonymize", "x", "--recipe", "dma-305", "-o", "r"], "did you mean 'dma-30-5'?"),
        (
            ["anonymize", "x", "--method", "equality", "--theta", "1", "-o", "r"],
            "--theta belongs to affinity, not to equality;",
        ),
        (["anonymize", "x", "--recipe", "publish-queries", "--theta", "1", "-o", "r"], "takes only -k"),
    ],
)
def test_what_is_nearly_right_is_suggested(run, words, sentence):
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_k_is_the_same_everywhere(run, log, tmp_path):
    for flag in ("-k", "--k"):
        assert run("sweep", log, flag, "2", "--theta", "0.9", "--json")[0] == 0
        words = ("anonymize", log, "--method", "equality", flag, 2, "--then", "columns", "--time", "day", "--overwrite")
        assert run(*words, "-o", tmp_path / "r")[0] == 0
    _, out, _ = run(
        "anonymize", log, "--method", "equality", "--k=2", "--then=odp", "--k=3", "-o", tmp_path / "s", "--json"
    )
    assert [step["parameters"]["k"] for step in json.loads(out)["manifest"]["parameters"]["steps"]] == [2, 3]


def test_lists_are_given_with_commas_or_again_and_again(run, log, tmp_path):
    found = []
    for given in (["--by", "query,period"], ["--by", "query", "--by", "period"]):
        words = (
            "anonymize",
            log,
            "--method",
            "counts",
            *given,
            "--period",
            "day",
            "--min-row-users",
            2,
            "--overwrite",
            "--json",
        )
        found.append(json.loads(run(*words, "-o", tmp_path / "r")[1])["manifest"]["parameters"]["by"])
    assert found == [["query", "period"], ["query", "period"]]


def test_a_file_whose_name_has_a_comma_is_one_file(run, log, release, tmp_path):
    odd = tmp_path / "a,b.tsv"
    odd.write_text(log.read_text())
    assert run("verify", release, "--original", odd)[0] == 0
    half = log.read_text().splitlines(keepends=True)
    (tmp_path / "one.tsv").write_text("".join(half[:4]))
    (tmp_path / "two.tsv").write_text(half[0] + "".join(half[4:]))
    assert run("verify", release, "--original", f"{tmp_path / 'one.tsv'},{tmp_path / 'two.tsv'}")[0] == 0
