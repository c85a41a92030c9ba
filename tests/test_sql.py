"""Names and numbers that others wrote become part of SQL, and must stay names and numbers."""

import json
from contextlib import suppress

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import queryveil as qv
from queryveil.claims import CLAIMS, AnyClaim, CombinationUsers, RowUsers
from queryveil.claims.base import Evidence, log_rows
from queryveil.engines import DuckDB, identifier
from queryveil.errors import QueryveilError
from queryveil.files.folders import LocalFolder, RemoteFolder
from tests.both import on_both_engines
from tests.strategies import examples

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
ODD = ['a"b', "a`b", "it's", "a\\", 'a\\"', "a.b", 'a""', '"', "``", "a\\'b", "a;b", "a--b", "a/*b", "é ü", "x\ny"]
NOSY = "device) FROM events; COPY (SELECT * FROM users) TO 'stolen.csv'; DELETE FROM events; SELECT (device --"
ATTACKS = [
    "COPY events TO 'stolen.csv'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT content FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "ATTACH 'stolen.db' AS stolen",
    "EXPORT DATABASE 'stolen'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM secret",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET python_enable_replacements = true",
    "SET temp_directory = '/'",
]


def events(rows: int = 12, **extras: list[str]) -> pa.Table:
    columns = {
        "user": [f"u{i % 6}" for i in range(rows)],
        "query": [f"q{i // 6}" for i in range(rows)],
        "time": [f"2006-03-{i + 1:02} 10:00:00" for i in range(rows)],
        "rank": ["1"] * rows,
        "url": ["http://a.org"] * rows,
    }
    return pa.table(columns | extras)


@settings(max_examples=examples(13))
@given(NAMES)
def test_any_name_stays_a_name(name):
    engine = DuckDB(threads=1)
    quoted = identifier(name)
    engine.materialize(f"SELECT 7 AS {quoted}", f"extra {name}")
    engine.number(f"SELECT r.{quoted} FROM {identifier(f'extra {name}')} r", (name,), name, "n")
    assert engine.fetch(f"SELECT {quoted}, n FROM {quoted}").to_pylist() == [{name: 7, "n": 1}]
    engine.drop(name, f"extra {name}")
    assert engine.fetch("SELECT table_name FROM duckdb_tables()").num_rows == 0
    engine.close()


def test_a_name_with_a_nul_is_refused():
    with pytest.raises(QueryveilError, match="holds a NUL"):
        identifier("a\0b")


def test_any_name_stays_a_name_on_spark(spark):
    from queryveil.engines.spark import Spark

    engine = Spark(spark)
    odd = [name for name in ODD if "\n" not in name]
    every = ", ".join(f"{i} AS {identifier(name)}" for i, name in enumerate(odd))
    assert engine.fetch(f"SELECT {every}").to_pylist() == [{name: i for i, name in enumerate(odd)}]
    for name in odd[:6]:
        engine.read(name, pa.table({name: [7]}))
        assert engine.fetch(f"SELECT t.{identifier(name)}, 'a\"b' AS text FROM {identifier(name)} t").to_pylist() == [
            {name: 7, "text": 'a"b'}
        ]
        engine.drop(name)
    engine.close()


def test_sql_on_spark_reaches_no_file(spark, tmp_path):
    from queryveil.engines.spark import Spark

    engine = Spark(spark)
    with pytest.raises(QueryveilError):
        engine.fetch(f'SELECT * FROM text."{tmp_path}"')
    engine.close()


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_engine_reaches_nothing_but_its_tables(attack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = pa.table({"word": ["secret"]})
    engine = DuckDB(threads=1)
    engine.read("events", secret)
    with pytest.raises(duckdb.Error):
        engine.row(attack)
    assert list(tmp_path.iterdir()) == []
    engine.close()


def test_a_closed_engine_still_spills(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = DuckDB(memory_limit=30 * 2**20, threads=1)
    engine.materialize("SELECT range AS a, hash(range) AS b FROM range(4000000)", "big")
    (folder,) = tmp_path.iterdir()
    assert sum(file.stat().st_size for file in folder.iterdir()) > 1e6
    assert engine.row("SELECT count(*) AS n FROM big") == (4_000_000,)
    engine.close()


VALID = {
    "affine-sessions": {
        "users": 2,
        "theta": 0.9,
        "vectors": "words",
        "concept_min_users": 2,
        "sessions": {"gap": 30, "events": 10},
    },
    "affine-users": {"users": 2, "theta": 0.9, "vectors": "words", "concept_min_users": 2, "min_term_users": 2},
    "allowed-queries": {"listed": "allow.txt"},
    "bag-users": {"users": 2, "taxonomy": "wordnet", "tree": "0"},
    "blocked-words": {"listed": "block.txt"},
    "cell-users": {"users": 2, "columns": ["device", "period"], "query_users": 2, "metadata_users": 2, "period": "day"},
    "clicked-sites": {"documents": 1, "sites": 1},
    "clicked-users": {"users": 2},
    "combination-users": {"users": 2, "columns": ["device"]},
    "concept-users": {"users": 2, "taxonomy": "wordnet", "tree": "0"},
    "counted-rows": {"users": 2, "columns": ["query", "device"], "query_users": 2, "metadata_users": 2, "base": 5},
    "decided-queries": {"listed": "decisions.jsonl"},
    "differential-privacy": {
        "epsilon": 1.0,
        "delta": 1e-6,
        "steps": [{"of": "queries", "noise": "laplace", "d": 1, "scale": 1.0, "threshold": 20}],
    },
    "hashed-words": {"sessions": {"gap": 30, "events": 10}},
    "hidden-rows": {"users": 2, "columns": ["query", "device"], "totals": ["query"], "metadata_users": 2},
    "linked-events": {"sessions": {"gap": 30, "events": 10}},
    "private-counts": {
        "epsilon": 1.0,
        "delta": 1e-6,
        "steps": [{"of": "rows", "noise": "laplace", "d": 1, "scale": 1.0, "threshold": 20}],
        "columns": ["query", "period"],
        "period": "day",
    },
    "query-spelling": {"max_characters": 5, "max_terms": 5, "lifted": "decisions.jsonl"},
    "query-users": {"users": 2},
    "record-queries": {"users": 2},
    "record-users": {"users": 2},
    "rounded-counts": {"base": 2},
    "row-users": {"users": 2, "columns": ["device", "url", "rank"], "clicked": True},
    "fragment-users": {"users": 2, "words": 2, "noun_phrases": True, "counted_on": False, "listed": None},
    "term-users": {"users": 2},
    "times-rounded": {"unit": "day"},
    "view-users": {"users": 2, "ranks": True},
}
"""A claim of every kind with all fields that others could fill in."""
PAYLOADS = [NOSY, f'"{NOSY}', f"day'; {NOSY}", "0; DROP TABLE events", "stolen\0", "-1", 10**400, -1, 1.5, None, [], {}]


def places(value, path=()):
    """Every place in a claim that holds a text or a number."""
    if isinstance(value, dict):
        return [found for key, part in value.items() for found in places(part, (*path, key))]
    if isinstance(value, list):
        return [found for i, part in enumerate(value) for found in places(part, (*path, i))]
    return [path]


def changed(claim, path, payload):
    copy = json.loads(json.dumps(claim))
    inner = copy
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = payload
    return copy


def checked(claim, log, columns, released):
    with log.workspace() as work:
        return claim.check(Evidence(log, work, columns, work.read(released)))


def test_every_kind_of_claim_is_attacked():
    without_fields = {"all-users", "disjoint-clicks", "issued-queries", "part-of-log"}
    assert set(CLAIMS) == set(VALID) | without_fields


@pytest.mark.parametrize("kind", VALID)
def test_no_claim_runs_what_its_fields_say(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = qv.read_log(events(device=["phone"] * 12))
    released = events(device=["phone"] * 12).append_column("event", [list(range(12))])
    columns = (*events().column_names, "device", "event", *(name for name in PAYLOADS if isinstance(name, str)))
    adapter = TypeAdapter(AnyClaim)
    adapter.validate_python(VALID[kind] | {"kind": kind})
    refused = 0
    for path in places(VALID[kind]):
        for payload in PAYLOADS:
            try:
                claim = adapter.validate_json(json.dumps(changed(VALID[kind], path, payload) | {"kind": kind}))
            except ValidationError:
                refused += 1
                continue
            with suppress(QueryveilError):  # there is no such taxonomy
                checked(claim, log, columns, released)
    assert refused > 0
    assert log.engine.row("SELECT count(*) AS n FROM events") == (12,)
    assert list(tmp_path.iterdir()) == []
    log.close()


LIKE_SQL = NOSY.replace(".", "")  # Spark takes no dots
TABLE = events(**{LIKE_SQL: ["a"] * 6 + ["b"] * 6})


def test_a_log_with_a_column_that_is_called_like_sql_is_released(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = qv.read_log(TABLE)
    release = qv.Rules(min_row_users=2, min_metadata_users=2, metadata=(LIKE_SQL,)).anonymize(log, seed=1)
    verdicts = release.save(tmp_path / "r")
    assert any(LIKE_SQL in verdict.claim and verdict.holds for verdict in verdicts)
    assert qv.verify(tmp_path / "r", log).holds
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert log.engine.row("SELECT count(*) AS n FROM events") == (12,)


@on_both_engines
def test_a_column_that_is_called_like_sql_is_a_column(read):
    log = read(TABLE)
    claim = CombinationUsers(users=2, columns=(LIKE_SQL,))
    found = checked(claim, log, (LIKE_SQL,), pa.table({LIKE_SQL: ["a", "*", "c"]}))
    assert found == f"the combination {LIKE_SQL} 'c' has 0 users"
    assert log.engine.row("SELECT count(*) AS n FROM events") == (12,)


@on_both_engines
@pytest.mark.parametrize("name", ['device" IS NULL); DELETE FROM events; --', "device`) FROM events --", "device'"])
def test_a_name_that_was_never_checked_is_still_a_name(read, name):
    log = read(TABLE)
    claims = (kind.model_construct(users=2, columns=(name,)) for kind in (RowUsers, CombinationUsers))
    found = [checked(claim, log, (name,), pa.table({"query": ["tea"]})) for claim in claims]
    assert found[0] == f"the log has no column '{name}'"
    assert found[1] is not None
    with pytest.raises((duckdb.CatalogException, QueryveilError)):
        log.engine.fetch(log_rows(log, [name]))
    assert log.engine.row("SELECT count(*) AS n FROM events") == (12,)


def test_columns_of_a_claim_are_names_each_once():
    for columns in (['a"b'], [""], ["a\x1b"], ["device", "Device"], ["rank"]):
        with pytest.raises(ValidationError):
            RowUsers(users=2, columns=columns)
    with pytest.raises(ValidationError):
        CombinationUsers(users=2, columns=())


def test_a_number_beyond_all_logs_is_no_parameter():
    with pytest.raises(QueryveilError, match="'k' parameter of Equality is larger than any log"):
        qv.Equality(k=10**20)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "r"
    log = qv.read_log(events(device=["phone"] * 12))
    qv.Rules(min_row_users=2, min_metadata_users=2, metadata=("device",)).anonymize(log, seed=1).save(folder)
    return folder, log


@pytest.fixture
def forged(saved, tmp_path):
    """Changes the manifest of a release."""

    def forge(change):
        folder = tmp_path / "r"
        folder.mkdir()
        for file in saved[0].iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        manifest = json.loads((folder / "manifest.json").read_text())
        change(manifest)
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return folder

    return forge


def test_a_manifest_copies_no_log(forged, saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def change(manifest):
        for claim in manifest["claims"]:
            if "columns" in claim:
                claim["columns"] = [f'device" FROM released); {NOSY}']

    with pytest.raises(QueryveilError, match="is damaged at 'claims"):
        qv.verify(forged(change), saved[1])
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


class Elsewhere(LocalFolder, RemoteFolder):
    """A folder of this machine as if it were not."""

    def open_table(self, name):
        raise AssertionError(f"{name} is opened")


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(
    "name",
    ["../log.parquet", "/etc/passwd", "..", "a\0b", "*.parquet", "{a,b}", "a/../b", "a//b", "hdfs://h/a", "", "\n"],
)
def test_a_release_names_only_files_that_are_its_own(forged, name, remote):
    kind = Elsewhere if remote else LocalFolder
    folder = forged(lambda manifest: manifest["files"].update({name: "0"}))
    with pytest.raises(QueryveilError, match="which no release has"):
        qv.Release.load(kind(folder))
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"][name]
    (folder / "manifest.json").write_text(json.dumps(manifest | {"table": name}))
    with pytest.raises(QueryveilError, match=r"which no release has|lacks its table"):
        qv.Release.load(kind(folder))
