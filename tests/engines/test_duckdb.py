import gc
import os
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from queryveil.engines import DuckDB, locked, memory
from queryveil.errors import QueryveilError


def test_the_spill_folder_is_private_and_goes_with_the_engine(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = DuckDB()
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    engine.close()
    assert not folder.exists()


def test_a_forgotten_engine_cleans_up_too(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = DuckDB()
    del engine
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_engine_spilled_is_private_and_goes_with_the_next_start(tmp_path, monkeypatch):
    code = (
        "import os, signal; from queryveil.engines import DuckDB; engine = DuckDB(memory_limit=20_000_000, threads=1)\n"
        "engine.materialize(\"SELECT 'secret' || range AS s FROM range(3000000)\", 't')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=120, check=False).returncode == -9
    (folder,) = tmp_path.iterdir()
    assert [file for file in folder.rglob("duckdb_temp*") if file.stat().st_size > 0]
    # The folder keeps others out, whatever the permissions of DuckDB's own files.
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = DuckDB()
    assert [path.name for path in tmp_path.iterdir()] == [engine._spill.name]
    engine.close()
    assert list(tmp_path.iterdir()) == []


def test_verbs():
    engine = DuckDB(threads=1)
    engine.read("t", pa.table({"a": [3, 1, 2]}))
    assert engine.fetch("SELECT a AS a FROM t ORDER BY a")["a"].to_pylist() == [1, 2, 3]
    assert engine.row("SELECT sum(a) AS s FROM t") == (6,)
    engine.materialize("SELECT a AS a FROM t WHERE a > 1", "big")
    assert sum(len(batch) for batch in engine.stream("SELECT a AS a FROM big", 1)) == 2
    engine.load("copy", pa.schema([("b", pa.int64())]), lambda: iter(pa.table({"b": [1]}).to_batches()))
    assert engine.row("SELECT count(*) AS n FROM copy") == (1,)
    engine.drop("big", "copy")
    engine.drop("t")
    engine.close()


def test_too_little_memory_is_one_sentence_without_data(monkeypatch):
    small = {"max_temp_directory_size": "1MB"}
    monkeypatch.setattr("queryveil.engines.duckdb.locked", lambda config: locked(config | small))
    engine = DuckDB(memory_limit=20_000_000, threads=1)
    monkeypatch.setattr(engine, "_spill", Path("/some/where"))
    with pytest.raises(QueryveilError, match="do not fit into 20 MB of memory") as caught:
        engine.materialize("SELECT 'secret' || range AS s FROM range(5000000) ORDER BY hash(range)", "t")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("threads", [0, -1, 100_000])
def test_a_senseless_number_of_threads_is_refused(threads):
    with pytest.raises(QueryveilError, match=f"must be between 1 and .* Got {threads} instead"):
        DuckDB(threads=threads)


def test_a_full_memory_names_the_limit_that_was_given(monkeypatch):
    monkeypatch.setattr(memory, "_limit", 600_000_000)
    engine = DuckDB(threads=1)
    with (
        pytest.raises(QueryveilError, match=r"into 300 MB \(half of the memory limit of 600 MB\) of memory"),
        engine._work(),
    ):
        raise duckdb.OutOfMemoryException


def test_what_is_dropped_in_the_middle_of_a_result_goes_at_its_end():
    engine = DuckDB(threads=1)
    engine.materialize("SELECT range AS a FROM range(10)", "one")
    engine.read("other", pa.table({"a": [1]}))
    rows = engine.stream("SELECT a FROM one", 4)
    assert next(rows).num_rows == 4
    engine.drop("one", "other")  # as the garbage collector does
    assert sum(batch.num_rows for batch in rows) == 6
    for name in ("one", "other"):
        with pytest.raises(duckdb.CatalogException):
            engine.fetch(f"SELECT * FROM {name}")
    engine.close()
