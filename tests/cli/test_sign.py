"""Signing and checking a signature on the command line."""

import json

import pytest


@pytest.fixture
def signed(run, log, tmp_path):
    """A folder with a release, a key, and a statement that was made with the log."""
    assert run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "release")[0] == 0
    code, out, _ = run("keygen", tmp_path / "key")
    assert (code, "keep it secret" in out) == (0, True)
    code, out, err = run("sign", tmp_path / "release", "--key", tmp_path / "key", "--original", log)
    assert (code, err) == (0, "")
    assert "it states what was checked" in out
    return tmp_path


def test_a_signature_is_checked_without_the_log(run, signed):
    code, out, err = run("verify", signed / "release", "--signed-by", signed / "key.pub")
    assert (code, err) == (0, "")
    assert "holds    The statement is signed by the given key." in out
    assert "stated   Method and promises: equality, checked by the signer against the original log" in out
    assert out.endswith("The release is the one that was signed.\n")


def test_with_the_log_promises_are_checked_too_and_compared_with_the_statement(run, signed, log):
    code, out, _ = run("verify", signed / "release", "--signed-by", signed / "key.pub", "--original", log)
    assert code == 0
    assert "holds    Every released query was issued by at least 2 users of the log." in out
    assert "holds    Every check that was run here agrees with the statement." in out
    assert out.endswith("The release keeps its promises.\n")


def test_a_changed_release_exits_with_1_and_says_what_changed(run, signed, log):
    (signed / "release" / "a\x1b[31m.txt").write_text("")
    words = ("verify", signed / "release", "--signed-by", signed / "key.pub", "--original", log)
    code, out, _ = run(*words)
    assert code == 1
    assert "REFUTED  The files are those that the statement names, unchanged. Counter-example: a" in out
    assert "\x1b" not in out
    assert out.endswith("The release is refuted.\n")
    code, out, _ = run(*words, "--json")
    assert (code, json.loads(out)["holds"]) == (1, False)


def test_the_statement_is_part_of_the_json(run, signed):
    words = ("verify", signed / "release", "--signed-by", signed / "key.pub", "--json")
    found = json.loads(run(*words)[1])
    assert (found["holds"], found["statement"]["method"], found["statement"]["policy"]) == (True, "equality", None)
    place = signed / "release.statement.json"
    place.write_bytes(place.read_bytes()[:-1])
    code, out, _ = run(*words)
    assert (code, json.loads(out)["statement"]) == (1, None)


def test_a_release_of_another_log_is_not_signed(run, signed, log):
    log.write_text(log.read_text() + "u-4\ttea\t2006-03-01 10:00:00\t\t\n")
    place = signed / "other.json"
    code, out, err = run("sign", signed / "release", "--key", signed / "key", "--original", log, "-o", place)
    assert (code, out, place.exists()) == (7, "", False)
    assert err == (
        "queryveil: The release was not signed, because this is not the log that the release was made from, or its"
        " manifest was changed.\n"
    )


def test_verify_needs_something_to_check_against(run, signed):
    for more in ((), ("--statement", signed / "release.statement.json")):
        code, _, err = run("verify", signed / "release", *more)
        assert code == 2
        assert "Give --original LOG" in err


def test_findings_of_an_attack_can_be_stated(run, signed, log):
    code, out, _ = run("attack", signed / "release", "--original", log, "--n-known", 1, "--json")
    assert code == 0
    (signed / "findings.json").write_text(out)
    code, _, err = run(
        "sign", signed / "release", "--key", signed / "key", "--attacks", signed / "findings.json", "--overwrite"
    )
    assert (code, err) == (0, "")
    out = run("verify", signed / "release", "--signed-by", signed / "key.pub")[1]
    assert "given to the signer, not run again" in out
