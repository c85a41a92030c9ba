"""What is secret in an address is in no message, wherever the address is given."""

import pytest

from queryveil.files.folders import shown
from tests.cli.conftest import log, run  # noqa: F401

EQUALITY = ("--method", "equality", "-k", 2, "--link", "none", "-o", "OUT")


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("postgresql://bob:pa/ss@127.0.0.1:1/db", "postgresql://127.0.0.1:1/db"),
        ("https://bob:pa/s@s@host/x?key=secret#y", "https://host/x"),
        ("https://bob:pa?ss@host/x", "https://***"),
        ("https://host/x?key=se@cret", "https://***"),
        ("s3://bob:pa/ss@bucket/x", "s3://bucket/x"),
        ("s3://bucket/a@b/part-?.tsv", "s3://bucket/a@b/part-?.tsv"),
        ("s3://bucket/x?key=secret", "s3://bucket/x"),
        ("s3://bob:pa?s=s@bucket/x", "s3://***"),
        ("here/a@b?c", "here/a@b?c"),
    ],
)
def test_what_is_shown_of_an_address(address, seen):
    assert shown(address) == seen


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("profile", "postgresql://bob:pa/ss@127.0.0.1:1/db", "--from-sql", "SELECT 1"), "postgresql://127.0.0.1:1/db"),
        (("profile", "https://bob:pa/ss@localhost:1/x"), "https://localhost:1/x is not an address"),
        (("profile", "s3://bob:pa/ss@bucket/x"), "s3://bucket/x must be written as s3://BUCKET/NAME"),
        (("verify", "RELEASE", "--original", "https://bob:pa,ss@localhost:1/x"), "https://localhost:1/x"),
        (("series", "init", "s3://bob:pass@h/x", "--recipe", "publish-queries"), "The ledger s3://h/x is not"),
        (("report", "RELEASE", "--original", "LOG", "-o", "s3://bob:pass@h/x.html"), "s3://h/x.html is not on this"),
        (("anonymize", "LOG", "--user-map", "s3://bob:pass@h/x", *EQUALITY), "s3://h/x is not on this"),
        (("anonymize", "LOG", "--certificate", "s3://bob:pass@h/x", *EQUALITY), "s3://h/x is not on this"),
        (("profile", "sqlite:///nofile?key=pass", "--from-sql", "SELECT 1"), "There is no file at sqlite:///nofile;"),
    ],
)
def test_no_password_is_printed(run, log, tmp_path, words, sentence):  # noqa: F811
    if "postgresql" in words[1]:
        pytest.importorskip("adbc_driver_postgresql")
    if "RELEASE" in words:
        assert run("anonymize", log, "--method", "equality", "-k", 2, "--link", "none", "-o", tmp_path / "r")[0] == 0
    given = {"RELEASE": tmp_path / "r", "LOG": log, "OUT": tmp_path / "out"}
    code, out, err = run(*(given.get(word, word) for word in words))
    assert code == 2
    assert sentence in err
    assert not any(part in out + err for part in ("bob", "pa/", "pa,", "pass", "ss@"))


def test_commas_of_an_address_stay(run, log, tmp_path):  # noqa: F811
    assert run("anonymize", log, "--method", "equality", "-k", 2, "--link", "none", "-o", tmp_path / "r")[0] == 0
    code, _, err = run("verify", tmp_path / "r", "--original", "opensearch+http://localhost:1/ubi_queries,ubi_events")
    assert code == 2
    assert "opensearch://localhost:1/ubi_queries " in err
