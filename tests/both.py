"""One test body on both engines: `@on_both_engines` gives a test `read`, which reads a log on DuckDB or on Spark."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import queryveil as qv

on_both_engines = pytest.mark.parametrize("read", ["duckdb", "spark"], indirect=True)


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """A session on this machine, whose shuffles have several parts even for a few rows."""
    pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'queryveil[spark]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, and there is none")
    from queryveil.engines.spark import start

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # For a few rows, compiling every step to Java code takes far longer than doing it.
    settings = {
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.memory": "2g",
    }
    session = start("local[2]", settings)
    yield session
    session.stop()


@pytest.fixture
def read(request: pytest.FixtureRequest) -> Iterator[Callable[..., qv.QueryLog]]:
    """Reads a log from a path, or from rows as an Arrow table, on one of the engines."""
    logs = []
    session = request.getfixturevalue("spark") if request.param == "spark" else None

    def call(source: pa.Table | str | Path, **options: object) -> qv.QueryLog:
        if session is not None:
            source = session.createDataFrame(source) if isinstance(source, pa.Table) else source
            options["engine"] = session
        logs.append(qv.read_log(source, **options))
        return logs[-1]

    yield call
    for log in logs:
        log.close()
