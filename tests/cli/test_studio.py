"""queryveil studio: what is wrong is said before anything is made, and a signal ends it."""

import signal
import subprocess
import sys

import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text("user,query\n" + "".join(f"u{u},cats\n" for u in range(6)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Give a LOG to make a release of"),
        (["log.csv", "--release", "r"], "Give a LOG to make a release of"),
        (["--original", "log.csv"], "Give a LOG to make a release of"),
        (["log.csv", "--user-map", "m"], "belong to a release"),
        (["--release", "r", "--original", "log.csv"], "There is no release in r"),
        (["log.csv", "--policy", "no.toml"], "no readable policy file"),
        (["log.csv", "--columns", "user"], "--columns takes NAME=COLUMN pairs"),
        (["log.csv", "--project", "no/p"], "cannot be made"),
        (["https://me:secret@localhost/log.csv"], "reads files of this machine"),
        (["--release", "r", "--original", "s3://bucket/log.csv"], "reads files of this machine"),
        (["log.csv", "--from-sql", "SELECT 1"], "reads files of this machine"),
    ],
)
def test_what_is_wrong_is_said_at_once(home, run, words, sentence):
    code, _, err = run("studio", *words, "--no-browser")
    assert (code, sentence in err, "secret" in err) == (2, True, False), err
    assert [path.name for path in home.iterdir()] == ["log.csv"]


def test_it_says_where_it_is_and_ends_by_a_signal_without_a_trace(home):
    command = [sys.executable, "-m", "queryveil.cli", "studio", "log.csv", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        first, address = process.stdout.readline(), process.stdout.readline()
        assert "may see the log" in first
        assert address.startswith("Open http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")
    project = home / "log.studio"
    assert project.stat().st_mode & 0o777 == 0o700
    assert "open.html" not in [path.name for path in project.iterdir()]


def test_options_that_a_project_ignores_are_named(home, run, monkeypatch):
    monkeypatch.setattr("queryveil.studio.serve", lambda session, **named: session.close())
    said = [run("studio", "log.csv", *words)[::2] for words in ([], [], ["--format", "tsv"])]
    assert [(code, "are ignored" in err) for code, err in said] == [(0, False), (0, False), (0, True)]
