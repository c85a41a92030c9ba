"""queryveil evaluate: what the notes under its tables say."""

import json

import pytest

import queryveil as qv


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    qv.generate(folder / "log.tsv", users=150, seed=1)
    return folder / "log.tsv"


def test_notes_say_what_was_corrected_and_what_does_not_separate(run, log, tmp_path):
    release, users = tmp_path / "release", tmp_path / "map.csv"
    options = ("--method", "equality", "-k", 2, "--link", "session", "--user-map", users)
    assert run("anonymize", log, *options, "-o", release)[0] == 0
    measured = ("evaluate", release, "--original", log, "--user-map", users, "--tests", 200)
    code, out, err = run(*measured)
    assert code == 0, err
    assert "Note: profile retention above random groups (SRP): level " in out
    assert "Note: cluster retention above random groups (1 - L): " in out
    assert "Does not separate releases: suggestion, hit@10: the log itself scores" in out
    assert "Not measured: users: no user ids released; " in out
    together = "profile retention (SRP), level 1; profile retention (SRP), level 2"
    assert together in out
    found = {one["label"]: one for one in json.loads(run(*measured, "--json")[1])["measured"]}
    assert found["suggestion, hit@10"]["separates"] is False
    assert found["completion, MRR"]["separates"] is True
    assert found["profile retention above random groups (SRP)"]["best"] == 1
