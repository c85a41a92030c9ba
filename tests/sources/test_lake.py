"""Delta and Iceberg tables, on this machine and on an S3 server."""

import shutil

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError

OLD = pa.table({"user": ["a", "a", "b"], "query": ["tea", "my secret", "tea"], "day": ["1", "1", "2"]})
NEW = pa.table({"user": ["c", "c"], "query": ["mug", "tea"], "day": ["2", "3"]})
LEFT = pa.concat_tables([OLD.filter(pa.array([True, False, True])), NEW])


@pytest.fixture(scope="module")
def kept():
    """What a log of the rows that are left is."""
    return qv.read_log(LEFT).stats.content


def delta(place, **more):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(place, OLD, partition_by=["day"], **more)
    deltalake.write_deltalake(place, NEW, mode="append", **more)
    deltalake.DeltaTable(place, **more).delete("query = 'my secret'")


def test_a_delta_table_has_no_rows_that_were_deleted(kept, tmp_path):
    delta(tmp_path / "log")
    assert len(list((tmp_path / "log").rglob("*.parquet"))) > 3
    assert qv.read_log(tmp_path / "log").stats.content == kept
    assert qv.read_log(str(tmp_path / "log") + "/").stats.content == kept


def test_a_delta_table_in_a_store(kept, bucket):
    delta("s3://bucket/log", storage_options={"allow_http": "true", "aws_s3_allow_unsafe_rename": "true"})
    assert qv.read_log("s3://bucket/log").stats.content == kept


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    pytest.importorskip("pyiceberg")
    pytest.importorskip("sqlalchemy", reason="the catalog of the test needs sqlalchemy")
    monkeypatch.setenv("PYICEBERG_CATALOG__MINE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__MINE__URI", f"sqlite:///{tmp_path}/catalog.db")
    return tmp_path


def iceberg(warehouse, properties=None):
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("mine", uri=f"sqlite:///{warehouse[1]}/catalog.db", warehouse=warehouse[0], **properties or {})
    catalog.create_namespace("web")
    table = catalog.create_table("web.log", OLD.schema)
    table.append(OLD)
    table.append(NEW)
    table.delete("query = 'my secret'")
    location = table.metadata_location
    catalog.close()
    return location


def test_an_iceberg_table_by_its_metadata_by_its_folder_and_by_its_catalog(kept, catalog, monkeypatch):
    from pyiceberg.utils.config import Config

    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # it was read with the package
    location = iceberg((f"file://{catalog}/warehouse", catalog)).removeprefix("file://")
    assert qv.read_log(location).stats.content == kept
    assert qv.read_log("iceberg://mine/web.log").stats.content == kept
    folder, _, name = location.rpartition("/metadata/")
    with pytest.raises(QueryveilError, match="does not say which version is the present one"):
        qv.read_log(folder)
    hint = f"{folder}/metadata/version-hint.text"
    with open(hint, "w") as file:
        file.write(name.removesuffix(".metadata.json"))
    assert qv.read_log(folder).stats.content == kept
    with pytest.raises(QueryveilError, match=r"There is no Iceberg table at iceberg://mine/web\.nothing"):
        qv.read_log("iceberg://mine/web.nothing")


def test_an_iceberg_table_in_a_store(kept, catalog, bucket):
    endpoint = {"s3.endpoint": f"http://127.0.0.1:{bucket.port}", "s3.region": "us-east-1"}
    location = iceberg(("s3://bucket/warehouse", catalog), endpoint)
    assert location.startswith("s3://")
    assert qv.read_log(location).stats.content == kept
    with pytest.raises(QueryveilError, match="does not say which version"):
        qv.read_log(location.rpartition("/metadata/")[0])


def test_what_is_damaged_is_one_sentence(tmp_path):
    delta(tmp_path / "log")
    next((tmp_path / "log").rglob("day=3/*.parquet")).write_bytes(b"my secret")
    with pytest.raises(QueryveilError, match=r"The Delta table .* cannot be read") as caught:
        qv.read_log(tmp_path / "log")
    assert "secret" not in str(caught.value)
    shutil.rmtree(tmp_path / "log" / "_delta_log")
    (tmp_path / "log" / "_delta_log").mkdir()
    with pytest.raises(QueryveilError, match="Delta table"):
        qv.read_log(tmp_path / "log")


def test_two_tables_are_not_read_as_one(tmp_path):
    delta(tmp_path / "log")
    with pytest.raises(QueryveilError, match="read it alone"):
        qv.read_log([tmp_path / "log", tmp_path / "log"])


def test_a_catalog_that_is_not_known(catalog):
    with pytest.raises(QueryveilError, match=r"The Iceberg table iceberg://other/web\.log cannot be read"):
        qv.read_log("iceberg://other/web.log")
