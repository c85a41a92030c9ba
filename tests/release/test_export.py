import json
import os

import duckdb
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.release import export as module

USERS = [f"u{i}" for i in range(8)]
LOG = pa.table(
    {
        "user": USERS * 2,
        "query": ["=tea"] * 8 + ["mug"] * 8,
        "time": ["2006-03-05 10:00:00"] * 8 + ["2006-05-05 10:00:00"] * 8,
        "rank": [1] * 8 + [None] * 8,
        "url": ["http://a.org"] * 8 + [None] * 8,
        "country": (["NL"] * 4 + ["a/b=%*"] * 2 + [None] * 2) * 2,
    }
)
METHOD = qv.Rules(
    min_row_users=2, min_metadata_users=2, time="day", metadata=["country"], link="user", min_query_users=2
)


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("export") / "release"
    METHOD.anonymize(qv.read_log(LOG), seed=1).save(folder)
    return str(folder)


def rows_of(release: str) -> list[tuple]:
    found = qv.Release.load(release).to_arrow().to_pylist()
    return sorted((row["event"], row["query"], row["country"] or "unknown", str(row["time"])[:7]) for row in found)


def shown(rows: list[dict]) -> list[tuple]:
    assert all(row["period"] == str(row["time"])[:7] for row in rows)
    return sorted((row["event"], row["query"], row["country"], row["period"]) for row in rows)


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """The lines of the docs name their files from the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("inside")
def test_one_line_loads_an_export_in_partitions(release):
    qv.export(release, "export", partition_by=["period", "country"])
    loaded = duckdb.sql("FROM 'export/data/**/*.parquet'").to_arrow_table().to_pylist()
    assert shown(loaded) == rows_of(release)
    pandas = pytest.importorskip("pandas")
    assert shown(pandas.read_parquet("export/data").to_dict("records")) == rows_of(release)
    assert sorted(os.listdir("export/data")) == ["period=2006-03", "period=2006-05"]
    assert "country=a%2Fb%3D%25%2A" in os.listdir("export/data/period=2006-03")


@pytest.mark.usefixtures("inside")
def test_csv_is_safe_in_a_spreadsheet(release):
    qv.export(release, "export", format="csv", partition_by=["period", "country"])
    loaded = duckdb.sql("FROM read_csv('export/data/**/*.csv')").to_arrow_table().to_pylist()
    unescaped = [row | {"query": row["query"].removeprefix("'")} for row in loaded]
    assert {row["query"] for row in loaded} == {"'=tea", "mug"}
    assert shown(unescaped) == rows_of(release)


def test_ubi_documents_are_a_log_again(release, tmp_path):
    qv.export(release, tmp_path / "e", format="ubi")
    queries = [json.loads(line) for line in (tmp_path / "e/data/ubi_queries.ndjson").read_text().splitlines()]
    assert queries[0].keys() == {"query_id", "client_id", "user_query", "timestamp", "query_attributes"}
    log, made = qv.read_log(tmp_path / "e/data"), qv.Release.load(release).manifest.counts
    assert (log.stats.events, log.stats.users, log.stats.clicks) == (made.events, made.users, made.clicks)
    assert log.stats.extras == ("country",)


def test_without_pseudonyms_every_search_is_of_a_client_of_its_own(tmp_path):
    qv.Equality(k=2).anonymize(qv.read_log(LOG.select(["user", "query"]))).save(tmp_path / "r")
    qv.export(tmp_path / "r", tmp_path / "e", format="ubi")
    assert os.listdir(tmp_path / "e/data") == ["ubi_queries.ndjson"]
    first = json.loads((tmp_path / "e/data/ubi_queries.ndjson").read_text().splitlines()[0])
    assert first == {"query_id": "1", "client_id": "1", "user_query": first["user_query"]}


def test_ubi_documents_of_views_are_a_log_again(tmp_path):
    shown = {"user": USERS * 2, "query": ["tea"] * 16, "time": ["2006-03-05 10:00:00"] * 16, "rank": [1] * 8 + [2] * 8}
    addresses = {"url": ["http://a.org"] * 8 + ["http://b.org"] * 8, "clicked": ([1] * 4 + [0] * 4) * 2}
    log = qv.read_log(pa.table(shown | addresses))
    method = qv.Rules(min_query_users=2, min_row_users=2, time="day", link="user")
    made = method.anonymize(log, seed=1)
    made.save(tmp_path / "r")
    qv.export(tmp_path / "r", tmp_path / "e", format="ubi")
    again = qv.read_log(tmp_path / "e/data")
    assert (again.stats.views, again.stats.clicks) == (log.stats.views, log.stats.clicks) == (16, 8)
    columns = ["query", "rank", "url", "clicked"]
    one, other = (one.to_arrow().select(columns).to_pylist() for one in (made, method.anonymize(again, seed=1)))
    assert sorted(map(repr, one)) == sorted(map(repr, other))


def test_the_dictionary_of_an_export_says_where_it_is_from(release, tmp_path):
    qv.export(release, tmp_path / "e", partition_by=["period"])
    found = json.loads((tmp_path / "e" / "schema.json").read_text())
    assert found["partitionedBy"] == ["period"]
    assert [field["name"] for field in found["fields"]][-1] == "period"
    assert len(found["source"]["manifest_sha256"]) == 64


def test_the_same_release_gives_the_same_files(release, tmp_path):
    for name in ("a", "b"):
        qv.export(release, tmp_path / name, partition_by=["country"])
    files = [sorted(path.relative_to(tmp_path / name) for path in (tmp_path / name).rglob("*")) for name in ("a", "b")]
    assert files[0] == files[1]
    same = [(tmp_path / name / files[0][-1]).read_bytes() for name in ("a", "b")]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"format": "xml"}, "There is no export format 'xml'"),
        ({"partition_by": ["query"]}, "cannot be partitioned by 'query'; there are country, period"),
        ({"partition_by": ["country", "country"]}, "names a column twice"),
        ({"partition_by": ["country"], "format": "ubi"}, "have no partitions"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(release, tmp_path, given, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence):
        qv.export(release, tmp_path / "e", **given)
    assert os.listdir(tmp_path) == []


def test_values_that_are_no_folders_are_refused(release, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_PARTITIONS", 2)
    with pytest.raises(qv.QueryveilError, match="more than 2 combinations of values"):
        qv.export(release, tmp_path / "e", partition_by=["country"])
    monkeypatch.setattr(module, "MOST_PARTITIONS", 9)
    monkeypatch.setattr(module, "UNKNOWN", "NL")
    with pytest.raises(qv.QueryveilError, match="Some rows have no country, and others have 'NL'"):
        qv.export(release, tmp_path / "e", partition_by=["country"])
    monkeypatch.setattr(module, "UNKNOWN", "unknown")
    monkeypatch.setattr(module, "_HIVE_MISSING", "NL")
    with pytest.raises(qv.QueryveilError, match="which readers take for a missing one"):
        qv.export(release, tmp_path / "e", partition_by=["country"])
    monkeypatch.setattr(module, "_HIVE_MISSING", "")
    monkeypatch.setattr(module, "_LONGEST", 1)
    with pytest.raises(qv.QueryveilError, match="A value of country is too long"):
        qv.export(release, tmp_path / "e", partition_by=["country"])
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("inside")
def test_totals_over_all_periods_have_a_folder_of_their_own():
    made = qv.Counts(by=["query", "period"], totals=["query"], min_row_users=2).anonymize(qv.read_log(LOG), seed=1)
    made.save("release")
    qv.export("release", "export", partition_by=["period"])
    assert sorted(os.listdir("export/data")) == ["period=2006-03-01", "period=2006-05-01", "period=all"]
    assert duckdb.sql("SELECT DISTINCT total FROM 'export/data/period=all/*.parquet'").fetchall() == [(1,)]


def test_nothing_is_replaced_or_added_to_a_release(release, tmp_path):
    (tmp_path / "e").mkdir()
    with pytest.raises(qv.QueryveilError, match="exists already"):
        qv.export(release, tmp_path / "e")
    with pytest.raises(qv.QueryveilError, match="is in the folder of the release"):
        qv.export(release, f"{release}/e")
    with pytest.raises(qv.QueryveilError, match="does not exist; make it first"):
        qv.export(release, tmp_path / "x" / "e")
    with pytest.raises(qv.QueryveilError, match="save it first"):
        qv.export(METHOD.anonymize(qv.read_log(LOG)), tmp_path / "f")


def test_a_changed_release_is_not_exported(tmp_path):
    METHOD.anonymize(qv.read_log(LOG), seed=1).save(tmp_path / "r")
    (tmp_path / "r" / "report.md").write_text("All is well.")
    with pytest.raises(qv.QueryveilError, match="are not those that its manifest names"):
        qv.export(tmp_path / "r", tmp_path / "e")


def test_an_empty_release_has_columns(tmp_path):
    log = qv.read_log(LOG.select(["user", "query"]))
    qv.Rules(min_query_users=2, max_characters=1).anonymize(log).save(tmp_path / "r", allow_empty=True)
    qv.export(tmp_path / "r", tmp_path / "e")
    assert duckdb.sql(f"FROM '{tmp_path}/e/data/*.parquet'").columns == ["event", "query"]
