import hashlib
import json

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.claims import CLAIMS
from queryveil.release.dictionary import _ABOUT, _MEANINGS, columns_of, data_dictionary
from queryveil.release.manifest import written

LOG = pa.table(
    {
        "user": list("abcabc"),
        "query": ["tea"] * 6,
        "time": [f"2006-03-0{i} 10:00:00" for i in range(1, 7)],
        "rank": [1] * 6,
        "url": ["http://a.org"] * 6,
        "country": ["NL"] * 5 + ["US"],
    }
)
METHOD = qv.Rules(min_row_users=2, min_metadata_users=2, time="week", metadata=["country"])


@pytest.fixture(scope="module")
def log() -> qv.QueryLog:
    return qv.read_log(LOG)


def test_every_column_has_a_meaning_and_what_was_done_to_it(log):
    found = {column.name: column for column in columns_of(METHOD.anonymize(log).manifest)}
    assert list(found) == ["event", "query", "time", "country", "rank", "url"]
    assert [column.type for column in found.values()] == [
        "integer",
        "string",
        "datetime",
        "string",
        "integer",
        "string",
    ]
    assert found["time"].treatment == ("Every released time is rounded down to the week.",)
    assert found["country"].treatment[0].endswith("are replaced by *.")
    assert found["country"].treatment[-1] == "Every released combination of country has at least 2 users."
    assert "Numbered anew" in found["event"].treatment[0]


def test_it_is_json_that_follows_from_the_manifest(log, tmp_path):
    METHOD.anonymize(log, seed=1).save(tmp_path / "r")
    manifest = qv.Release.load(tmp_path / "r").manifest
    text = (tmp_path / "r" / "schema.json").read_bytes()
    assert text == data_dictionary(manifest)
    assert [field["name"] for field in json.loads(text)["fields"]] == list(manifest.columns)


def test_another_dictionary_is_refuted_although_its_digest_is_right(log, tmp_path):
    METHOD.anonymize(log, seed=1).save(tmp_path / "r")
    file = tmp_path / "r" / "schema.json"
    file.write_text(file.read_text().replace("rounded down to the week", "exact"))
    manifest = qv.Release.load(tmp_path / "r").manifest
    files = manifest.files | {"schema.json": hashlib.sha256(file.read_bytes()).hexdigest()}
    (tmp_path / "r" / "manifest.json").write_bytes(written(manifest.model_copy(update={"files": files})))
    assert qv.verify(tmp_path / "r", log).verdicts[-1].counterexample == "schema.json is written otherwise"
    file.unlink()
    del files["schema.json"]
    (tmp_path / "r" / "manifest.json").write_bytes(written(manifest.model_copy(update={"files": files})))
    assert "and report.md and schema.json beside" in qv.verify(tmp_path / "r", log).verdicts[-1].counterexample


def test_columns_of_a_shared_record_and_of_tokens_are_named_as_such(log):
    def of(method: qv.Rules, column: str) -> str:
        return next(one.meaning for one in columns_of(method.anonymize(log, seed=1).manifest) if one.name == column)

    assert of(qv.Equality(k=2, link="user"), "user") == _MEANINGS["user"]
    assert "token" in of(qv.Hash(link="user"), "query")


def test_every_claim_about_a_column_is_placed():
    whole = {"part-of-log", "issued-queries", "all-users"}  # about the table, not about a column
    assert set(CLAIMS) == set(_ABOUT) | whole | {"row-users", "combination-users"}
