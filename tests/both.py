"""One test body on both engines: `@on_both_engines` gives a test `read`, which reads a log on DuckDB or on Spark."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

import queryveil as qv
from tests.strategies import weekly

needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None,
    reason="needs PySpark (pip install 'queryveil[spark]') and Java 17",
)
on_both_engines = pytest.mark.parametrize("read", ["duckdb", "spark"], indirect=True)
on_both_engines_weekly = pytest.mark.parametrize("read", ["duckdb", pytest.param("spark", marks=weekly)], indirect=True)
"""For what is rarely done on Spark and takes it long: there it runs once a week."""
on_one_machine = pytest.mark.parametrize("read", ["duckdb"], indirect=True)
"""For what other tests compare between the engines: a few rows take Spark many seconds."""

QUICK = {
    # Queries on a few rows cost less than compiling them. Java gives the cheap compiler a small cache, which overflows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -Xmn600m",
    "spark.driver.memory": "1500m",
    # Every sort and every hash table asks for a page of 64 MiB at first.
    "spark.buffer.pageSize": "1m",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.ui.explainMode": "simple",
}
"""Settings for a Spark that sees a few hundred rows."""

PARTS = {
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    # The engine asks for twice as many parts of a shuffle.
    "spark.default.parallelism": "1",
    "spark.sql.files.minPartitionNum": "2",
    "spark.sql.leafNodeDefaultParallelism": "2",
}
"""Even a few rows are in several parts: in two, because each part costs as much as a thousand rows."""


def as_options(settings: Mapping[str, str]) -> list[str]:
    """Settings of Spark as words of the command line."""
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """A session on this machine; one worker runs all tests that need it."""
    if needs_spark.args[0]:
        pytest.skip(needs_spark.kwargs["reason"])
    from queryveil.engines.spark_session import start

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = start("local[2]", QUICK | PARTS)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def read_on_spark(spark: object) -> Iterator[Callable[..., qv.QueryLog]]:
    """Reads a log on Spark; files that test the same table share its log."""
    with _reader(lambda table: spark.createDataFrame(table), {"engine": spark}) as call:
        yield call


@pytest.fixture(scope="module")
def read(request: pytest.FixtureRequest) -> Iterator[Callable[..., qv.QueryLog]]:
    """Reads a log from a path, or from an Arrow table, on one of the engines; the same table is read once."""
    if request.param == "spark":
        yield request.getfixturevalue("read_on_spark")
        return
    with _reader(lambda table: table, {}) as call:
        yield call


@contextmanager
def _reader(given: Callable[[pa.Table], object], engine: Mapping[str, object]) -> Iterator[Callable[..., qv.QueryLog]]:
    logs: dict[int, tuple[object, qv.QueryLog]] = {}

    def call(source: pa.Table | str | Path, **options: object) -> qv.QueryLog:
        if id(source) not in logs:
            found = given(source) if isinstance(source, pa.Table) else source
            logs[id(source)] = (source, qv.read_log(found, **options, **engine))
        return logs[id(source)][1]

    yield call
    for _, log in logs.values():
        log.close()
