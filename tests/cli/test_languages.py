"""Languages on the command line."""

import json

import pytest

LOG = "user,query\n" + "".join(f"u{i},wetter in köln\nu{i},北京天气\n" for i in range(6))


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.csv").write_text(LOG, "utf-8")
    return tmp_path / "log.csv"


def test_verify_reads_the_log_in_the_language_of_the_release(run, log, tmp_path):
    release = tmp_path / "release"
    assert run("anonymize", log, "--method", "equality", "--language", "de,zh", "-o", release)[0] == 0
    assert json.loads((release / "manifest.json").read_text("utf-8"))["language"]["ids"] == ["de", "zh"]
    assert run("verify", release, "--original", log)[0] == 0
    code, _, err = run("verify", release, "--original", log, "--language", "en")
    assert code == 2
    assert "made in the languages de,zh, and the log was read in en; read it with --language de,zh." in err


def test_an_unknown_language_and_a_wrong_encoding_are_one_sentence(run, log, tmp_path):
    code, _, err = run("profile", log, "--language", "germn")
    assert code == 2
    assert err.startswith("queryveil: There is no language 'germn'; did you mean 'de'? ")
    (tmp_path / "mixed.csv").write_bytes(b"user,query\n" + b"a,tea\n" * 3 + "b,köln\n".encode("latin-1") * 3)
    code, _, err = run("profile", tmp_path / "mixed.csv")
    assert code == 2
    assert err.count("\n") == 1
    assert "--encoding" in err


def test_profile_shows_scripts(run, log):
    code, out, _ = run("profile", log, "--language", "zh,de")
    assert code == 0
    assert "Scripts" in out
    assert "han" in out


def test_a_series_reads_every_log_in_the_languages_that_it_began_with(run, log, tmp_path):
    (tmp_path / "recipe.toml").write_text('method = "equality"\n[parameters]\nk = 5\n', "utf-8")
    ledger = tmp_path / "ledger"
    assert run("series", "init", ledger, "--recipe", tmp_path / "recipe.toml", "--language", "de")[0] == 0
    code, _, err = run("series", "add", ledger, log, "--language", "fr", "-o", tmp_path / "one")
    assert code == 2
    assert "The series is in the languages de, and the log was read in fr; read it with --language de." in err
    assert run("series", "add", ledger, log, "-o", tmp_path / "one")[0] == 0
    assert json.loads((tmp_path / "one" / "manifest.json").read_text("utf-8"))["language"]["ids"] == ["de"]
