"""One test body on both engines: `@on_both_engines` gives a test `read`, which reads a log on DuckDB or on Spark."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

import queryveil as qv

needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None,
    reason="needs PySpark (pip install 'queryveil[spark]') and Java 17",
)
on_both_engines = pytest.mark.parametrize("read", ["duckdb", "spark"], indirect=True)
on_one_machine = pytest.mark.parametrize("read", ["duckdb"], indirect=True)
"""For what other tests compare between the engines: a few rows take Spark many seconds."""


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """A session on this machine, whose shuffles have several parts even for a few rows."""
    if needs_spark.args[0]:
        pytest.skip(needs_spark.kwargs["reason"])
    from queryveil.engines.spark_session import start

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.driver.memory": "2g",
        # Queries on a few rows cost less than compiling them; the cluster of test_cluster.py runs as it comes.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    session = start("local[2]", settings)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def read(request: pytest.FixtureRequest) -> Iterator[Callable[..., qv.QueryLog]]:
    """Reads a log from a path, or from an Arrow table, on one of the engines; the same table is read once."""
    logs: dict[int, tuple[object, qv.QueryLog]] = {}
    session = request.getfixturevalue("spark") if request.param == "spark" else None

    def call(source: pa.Table | str | Path, **options: object) -> qv.QueryLog:
        if id(source) not in logs:
            given = session.createDataFrame(source) if session and isinstance(source, pa.Table) else source
            engine = {} if session is None else {"engine": session}
            logs[id(source)] = (source, qv.read_log(given, **options, **engine))
        return logs[id(source)][1]

    yield call
    for _, log in logs.values():
        log.close()
