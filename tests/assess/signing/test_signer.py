"""What is stated about a release, and what is not signed."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryveil as qv
from queryveil.assess.attacks import Finding, Findings
from queryveil.assess.attacks.finding import Estimate
from queryveil.assess.signing import NotSignedError
from queryveil.assess.signing.files import sha256_of
from queryveil.assess.signing.statement import CHECKED, GIVEN, UNCHECKED, WITHHELD
from tests.assess.signing.signed import findings, holds, stated
from tests.fuzz.forging import mend


def test_what_was_signed_holds(home):
    assert holds(home)


def test_the_same_input_gives_the_same_bytes(home, tmp_path):
    again = qv.sign(home / "release", home / "key", output=tmp_path / "again.json")
    assert again.read_bytes() == (home / "release.statement.json").read_bytes()


def test_without_the_log_a_statement_says_that_nothing_was_checked(home):
    checks = stated(home / "release.statement.json")["predicate"]["checks"]
    assert checks == {"state": UNCHECKED, "verdicts": []}


def test_with_the_log_a_statement_holds_the_verdicts_and_they_can_be_repeated(copy, log):
    place = qv.sign(copy / "release", copy / "key", log=log, output=copy / "checked.json")
    found = qv.verify(copy / "release", log)
    checks = stated(place)["predicate"]["checks"]
    assert checks["state"] == CHECKED
    assert [(one["claim"], one["holds"]) for one in checks["verdicts"]] == [(v.claim, v.holds) for v in found.verdicts]
    signed = qv.verify_signature(copy / "release", copy / "key.pub", statement=place)
    assert [verdict.holds for verdict in signed.repeated(found)] == [True]
    fewer = type(found)(found.verdicts[:-1])
    assert [verdict.holds for verdict in signed.repeated(fewer)] == [True]
    other = type(found)((replace(found.verdicts[0], holds=False),))
    assert [verdict.holds for verdict in signed.repeated(other)] == [False]


def test_a_release_that_a_check_refutes_is_not_signed(copy, log):
    table = copy / "release" / "log.parquet"
    rows = pq.read_table(table)
    # An event that nobody issued, in files that agree with each other.
    pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), table)
    mend(copy / "release", qv.Release.load(copy / "release").manifest)
    with pytest.raises(NotSignedError, match="a check refutes what it promises"):
        qv.sign(copy / "release", copy / "key", log=log, output=copy / "checked.json")
    assert not (copy / "checked.json").exists()


def test_a_release_is_not_signed_with_another_log(copy):
    other = qv.read_log(pa.table({"user": ["a"], "query": ["tea"]}))
    with pytest.raises(NotSignedError, match="this is not the log that the release was made from"):
        qv.sign(copy / "release", copy / "key", log=other, output=copy / "checked.json")
    assert not (copy / "checked.json").exists()


def test_a_release_whose_files_are_not_those_of_its_manifest_is_not_signed(copy):
    (copy / "release" / "extra.txt").write_text("the log")
    with pytest.raises(qv.QueryveilError, match="not those that its manifest names"):
        qv.sign(copy / "release", copy / "key", output=copy / "other.json")


def test_findings_are_stated_without_examples(copy, log):
    place = findings(log, copy / "findings.json")
    (attacks,) = stated(qv.sign(copy / "release", copy / "key", attacks=[place], overwrite=True))["predicate"][
        "attacks"
    ]
    assert attacks["state"] == GIVEN
    assert {one["attack"] for one in attacks["findings"]} == {"unique_queries", "history_linkage"}
    assert not {"examples", "details", "beside"} & attacks["findings"][0].keys()
    assert holds(copy)


def test_findings_of_another_release_are_refused(copy, log):
    place = findings(log, copy / "findings.json", manifest="0" * 64)
    with pytest.raises(qv.QueryveilError, match="those of another release"):
        qv.sign(copy / "release", copy / "key", attacks=[place], overwrite=True)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"manifest_sha256": 1, "findings": [1]}', "[" * 100_000])
def test_a_file_without_findings_is_refused(copy, content):
    (copy / "findings.json").write_text(content)
    with pytest.raises(qv.QueryveilError, match="no findings of attacks"):
        qv.sign(copy / "release", copy / "key", attacks=[copy / "findings.json"], overwrite=True)


def test_a_policy_that_is_not_met_is_not_signed(copy, log):
    place = findings(log, copy / "findings.json")
    with pytest.raises(NotSignedError, match="planted accounts"):
        qv.sign(
            copy / "release",
            copy / "key",
            log=log,
            attacks=[place],
            policy=qv.load_policy(),
            output=copy / "other.json",
        )
    assert not (copy / "other.json").exists()


def test_a_policy_that_is_met_is_stated_with_its_rules(copy, log):
    def found(name, unit, value, setting=""):
        estimate = Estimate(value, value, value)
        return Finding(name, setting, "what it found", unit, estimate, 0.0, "", None, "", 1)

    tried = (
        found("history_linkage", "share", 0.01, "random half"),
        found("sybil", "accounts", 5),
        found("personal_data", "rate", 0.0),
    )
    digest = sha256_of(copy / "release", "manifest.json")
    place = copy / "findings.json"
    place.write_text(json.dumps({"manifest_sha256": digest} | Findings("equality", tried, ()).as_dict()))
    rules = qv.load_policy()
    signed = qv.sign(copy / "release", copy / "key", log=log, attacks=[place], policy=rules, overwrite=True)
    policy = stated(signed)["predicate"]["policy"]
    assert (policy["meets"], policy["rules"]) == (True, rules.model_dump())
    assert {"id": "linkage", "limit": rules.max_linkage, "met": True} in policy["criteria"]
    assert holds(copy)


def test_a_policy_needs_the_log_and_findings(copy):
    with pytest.raises(qv.QueryveilError, match="needs checks and attacks"):
        qv.sign(copy / "release", copy / "key", policy=qv.load_policy(), overwrite=True)


def test_exact_numbers_about_the_log_are_withheld_of_a_differentially_private_release(tmp_path, log):
    qv.Zealous(epsilon=100.0, delta=0.1).anonymize(log).save(tmp_path / "release", allow_empty=True)
    qv.new_key(tmp_path / "key")
    place = findings(log, tmp_path / "findings.json")
    (attacks,) = stated(qv.sign(tmp_path / "release", tmp_path / "key", attacks=[place]))["predicate"]["attacks"]
    assert attacks == {"state": WITHHELD, "sha256": None, "findings": [], "skipped": []}


def test_lists_of_a_release_are_stated_by_their_digest(tmp_path, log):
    block = tmp_path / "block.txt"
    block.write_text("mug\n")
    qv.Rules(min_query_users=5, block_list=block).anonymize(log).save(tmp_path / "release")
    qv.new_key(tmp_path / "key")
    without = stated(qv.sign(tmp_path / "release", tmp_path / "key"))
    assert without["predicate"]["lists"] == {"block_list": {"name": "block.txt", "sha256": None, "entries": 1}}
    given = stated(qv.sign(tmp_path / "release", tmp_path / "key", lists=[block], overwrite=True))
    assert given["predicate"]["lists"]["block_list"]["sha256"] == sha256_of(tmp_path, "block.txt")
    with pytest.raises(qv.QueryveilError, match=r"without a list 'key\.pub'"):
        qv.sign(tmp_path / "release", tmp_path / "key", lists=[tmp_path / "key.pub"], overwrite=True)


def test_the_list_of_names_is_stated_where_a_log_was_scrubbed(tmp_path, log):
    qv.Equality(k=5).anonymize(qv.scrub(log)).save(tmp_path / "release")
    qv.new_key(tmp_path / "key")
    lists = stated(qv.sign(tmp_path / "release", tmp_path / "key"))["predicate"]["lists"]
    assert lists["scrubbing"]["name"] == "names.parquet"


def test_a_statement_is_never_written_into_a_release(home):
    with pytest.raises(qv.QueryveilError, match="is a release"):
        qv.sign(home / "release", home / "key", output=home / "release" / "statement.json")
    with pytest.raises(qv.QueryveilError, match="is a release"):
        qv.new_key(home / "release" / "key")


def test_a_statement_is_not_replaced_unasked(home):
    with pytest.raises(qv.QueryveilError, match="exists already"):
        qv.sign(home / "release", home / "key")
