"""Workspaces: unique names, handles that stand for tables in SQL, and nothing left behind."""

import gc

import pyarrow as pa
import pytest

from queryveil.engines import DuckDB
from queryveil.engines.workspace import Workspace


@pytest.fixture
def engine():
    engine = DuckDB(threads=1)
    yield engine
    engine.close()


def tables(engine):
    return engine.fetch("SELECT table_name AS name FROM information_schema.tables")["name"].to_pylist()


def test_a_table_stands_for_its_name_in_sql(engine):
    with Workspace(engine) as work:
        given = work.read(pa.table({"a": [1, 2, 3]}))
        some = work.table(f"SELECT a AS a FROM {given} WHERE a > 1")
        assert work.row(f"SELECT sum(a) AS total FROM {some}") == (5,)
        assert work.fetch(f"SELECT a AS a FROM {some} ORDER BY a")["a"].to_pylist() == [2, 3]


def test_tables_of_one_name_do_not_meet(engine):
    with Workspace(engine) as one, Workspace(engine) as other:
        made = [work.table(f"SELECT {i} AS i", "kept") for i, work in enumerate((one, one, other))]
        assert len({table.name for table in made}) == 3
        assert [one.row(f"SELECT i AS i FROM {table}") for table in made] == [(0,), (1,), (2,)]


def test_each_way_to_make_a_table_is_dropped_at_the_end(engine):
    schema = pa.schema([("a", pa.int64())])
    batches = pa.table({"a": [2, 1]}).to_batches()
    with Workspace(engine) as work:
        loaded = work.load(schema, lambda: iter(batches))
        work.map(f"SELECT a AS a FROM {loaded}", _same, schema)
        work.map_groups(f"SELECT a AS a FROM {loaded}", "a", _same, schema)
        numbered = work.number(f"SELECT a AS a FROM {loaded}", ["a"], "at")
        rows = [row for batch in work.ordered(numbered)() for row in batch.to_pylist()]
        assert [row["a"] for row in rows] == [1, 2]
        assert len(tables(engine)) >= 4
    assert tables(engine) == []


def test_an_error_leaves_nothing_behind(engine):
    def fails():
        with Workspace(engine) as work:
            work.table("SELECT 1 AS a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert tables(engine) == []


def test_a_forgotten_workspace_drops_its_tables(engine):
    work = Workspace(engine)
    work.table("SELECT 1 AS a")
    del work
    gc.collect()
    assert tables(engine) == []


def test_a_large_table_can_go_before_the_end(engine):
    with Workspace(engine) as work:
        large, small = work.table("SELECT 1 AS a"), work.table("SELECT 2 AS a")
        work.drop(large)
        assert tables(engine) == [small.name]


def test_the_tables_of_others_stay(engine):
    engine.materialize("SELECT 1 AS a", "events")
    with Workspace(engine) as work:
        work.table("SELECT a AS a FROM events")
    assert tables(engine) == ["events"]


def _same(batch):
    return batch
