"""What the command line does with paths: hostile names, over-long ones, and what killed runs left at them."""

import os
import signal
import subprocess
import sys
import unicodedata

import pytest

BAD = "a\x1b[31m\x07b\x7f\x9b2J\u202ec\nd"
"""Colours, a bell, a deletion, the C1 form of ESC, an override of direction, a line of its own."""


def assert_harmless(text: str) -> None:
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"]
    assert "\nd" not in text


def test_names_of_files_do_not_steer_the_terminal(run, log, tmp_path):
    place = tmp_path / BAD
    place.mkdir()
    bad = log.rename(place / f"{BAD}.tsv")
    with bad.open("a") as file:
        file.write("".join(f"u-{i % 9}\tcup\t2006-03-01 10:00:00\t\t\n" for i in range(200)) + "only one field\n")
    release, equality = place / f"{BAD}-r", ("--method", "equality", "-k", "2")
    for words, code in (
        (("profile", bad), 0),
        (("profile", place / "no\x1b[2J"), 2),
        (("anonymize", bad, *equality, "-o", release), 0),
        (("anonymize", bad, *equality, "-o", release), 4),
        (("anonymize", bad, "--recipe", place / "none\x1b.toml", "-o", "x"), 2),
        (("anonymize", bad, *equality, "-o", place / "r2", "--link", "user", "--user-map", place / "no" / "map"), 2),
        (("verify", release, "--original", bad), 0),
        (("verify", place, "--original", bad), 2),
        (("keygen", place / f"{BAD}.key"), 0),
        (("sign", release, "--key", place / f"{BAD}.key"), 0),
        (("sweep", bad, "-k", "2", "--theta", "0.9", "--chart", place / f"{BAD}.svg"), 0),
        (("synth", "--users", "100", "-o", place / f"{BAD}2.tsv"), 0),
        (("link", bad, "--taxonomy", place / "odp\x1b"), 2),
    ):
        found = run(*words)
        assert found[0] == code, found
        assert_harmless(found[1] + found[2])
        assert "\N{REPLACEMENT CHARACTER}" in found[1] + found[2]


def test_a_name_that_is_no_text_is_shown_all_the_same(run, log, tmp_path):
    release = os.fsdecode(os.fsencode(tmp_path) + b"/r\xff")
    code, out, err = run("anonymize", log, "--method", "equality", "-k", 2, "-o", release)
    assert (code, err) == (0, "")
    assert "r\N{REPLACEMENT CHARACTER}; its report.md" in out


@pytest.mark.parametrize("long", ["n" * 300, "n/" * 3000])
@pytest.mark.parametrize(
    "words",
    [
        "profile LONG",
        "anonymize LOG --method equality -k 2 -o LONG",
        "anonymize LOG --method equality -k 2 -o OUT --user-map LONG",
        "anonymize LOG --recipe LONG -o OUT",
        "anonymize LOG --method equality -k 2 -o OUT --policy LONG",
        "anonymize LOG --method rules --allow-list LONG -o OUT",
        "anonymize LOG --method hash --key-file LONG -o OUT",
        "verify LONG --original LOG",
        "sweep LOG -k 2 --chart LONG.svg",
        "neighbours LOG -q tea --draw LONG.svg",
        "compare LOG -o LONG --methods equality",
        "report LONG --original LOG -o OUT.html",
        "synth --users 100 -o LONG.tsv",
        "synth --users 100 -o OUT.tsv --truth LONG",
        "categorize LOG --taxonomy LONG",
        "web-directory build LONG -o OUT",
        "web-directory build LOG -o LONG",
        "reproduce erola2011 LOG -o LONG",
    ],
)
def test_a_path_that_is_too_long_is_one_sentence(run, log, tmp_path, words, long):
    for name, text in (("LOG", log), ("OUT", tmp_path / "out"), ("LONG", long)):
        words = words.replace(name, str(text))
    code, out, err = run(*words.split())
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith("queryveil: ")
    assert err.count("\n") == 1
    assert [path for path in tmp_path.iterdir() if path != log] == []


def test_the_next_run_removes_what_a_killed_one_left(run, log, tmp_path, monkeypatch):
    code = (
        "import os, signal, sys, queryveil.release.checks as r\n"
        "r.check_claims = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from queryveil.cli import main; main()\n"
    )
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    out.mkdir()
    temporary.mkdir()
    words = ["anonymize", log, "--method", "equality", "-k", "2", "-o", out / "r"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    killed = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], env=environment, capture_output=True, timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    (staged,), (spilled,) = out.iterdir(), temporary.iterdir()
    assert (staged / "made" / "log.parquet").exists()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert run(*words)[0] == 0
    assert [path.name for path in out.iterdir()] == ["r"]
    assert not spilled.exists()
