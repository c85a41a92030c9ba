import json
import re
import shlex

import pytest


@pytest.fixture
def released(run, tmp_path):
    """A synthetic log, its release, and who is who in it."""
    log, release, secret = tmp_path / "log.tsv.gz", tmp_path / "release", tmp_path / "map.csv"
    assert run("synth", "--users", 120, "--seed", 1, "-o", log)[0] == 0
    words = ["anonymize", log, "--method", "affinity", "-k", 3, "--theta", 0.8, "--seed", 7, "--scrub", "remove"]
    assert run(*words, "-o", release, "--user-map", secret)[0] == 0
    return log, release, secret


def test_a_report_says_how_to_make_the_release_again(run, released, tmp_path):
    log, release, secret = released
    target = tmp_path / "report.html"
    code, out, err = run("report", release, "--original", log, "--user-map", secret, "-o", target, "--seed", 5)
    assert (code, err) == (0, "")
    assert "checks hold" in out
    page = target.read_text()
    assert str(tmp_path) not in page
    (command,) = re.findall(r"queryveil (anonymize LOG .*)", page)
    words = shlex.split(command.replace("LOG", str(log)).replace("map.csv", str(tmp_path / "map2.csv")))
    words[words.index("-o") + 1] = str(tmp_path / "again")
    assert run(*words)[0] == 0
    old, new = (json.loads((folder / "manifest.json").read_text()) for folder in (release, tmp_path / "again"))
    assert new == old
    assert "queryveil attack release --original LOG --user-map map.csv --seed 5" in page


def test_a_release_that_was_changed_is_reported_and_fails(run, released, tmp_path):
    log, release, _ = released
    (release / "report.md").write_text("all is well")
    code, _, _ = run("report", release, "--original", log, "-o", tmp_path / "report.html")
    assert code == 1
    assert "The release is refuted." in (tmp_path / "report.html").read_text()


def test_a_place_inside_the_release_is_refused(run, released):
    log, release, _ = released
    code, _, err = run("report", release, "--original", log, "-o", release / "report.html")
    assert code == 2
    assert "is a release" in err
    assert not (release / "report.html").exists()
