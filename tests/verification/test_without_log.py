"""What is checked of a release without its log."""

import json

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError


@pytest.fixture
def release(tmp_path):
    log = qv.read_log(pa.table({"user": ["a", "b", "b"], "query": ["tea", "tea", "mug"]}))
    qv.Equality(k=2).anonymize(log).save(tmp_path / "r")
    return tmp_path / "r"


def test_a_whole_release_holds_and_says_what_was_not_checked(release):
    found = qv.verify_files(release)
    assert found.holds
    assert len(found.verdicts) == 6
    assert "What the release promises was not checked" in found.unchecked[0]


@pytest.mark.parametrize("name", ["report.md", "schema.json", "manifest.json"])
def test_a_file_that_was_changed_or_is_missing_does_not_hold(release, name):
    content = (release / name).read_bytes()
    (release / name).write_bytes(content + b"\n")
    assert qv.verify_files(release).code == "refuted"
    if name == "report.md":
        (release / name).unlink()
        assert qv.verify_files(release).verdicts[0].counterexample == "report.md is missing"


def test_numbers_that_do_not_fit_the_table_do_not_hold(release):
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["counts"]["rows"] += 1
    (release / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    assert qv.verify_files(release).verdicts[-1].counterexample == "it says 3, the table has 2"


def test_a_report_that_says_something_else_does_not_hold(release):
    import hashlib

    report = release / "report.md"
    report.write_text(report.read_text().replace("at least 2 users", "at least 9 users"))
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["files"]["report.md"] = hashlib.sha256(report.read_bytes()).hexdigest()
    (release / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    assert qv.verify_files(release).verdicts[-1].counterexample == "report.md reads otherwise"


def test_a_release_in_memory_has_no_files():
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"]}))
    with pytest.raises(QueryveilError, match="save it first"):
        qv.verify_files(qv.Equality(k=2).anonymize(log))
