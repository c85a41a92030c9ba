"""A session of Spark Connect that is passed in; PySpark needs gRPC for it, which queryveil does not install."""

import os
import subprocess
import sys

import pytest

from tests.both import QUICK, needs_spark
from tests.strategies import weekly


@weekly
@needs_spark
def test_through_connect_the_release_is_the_same(tmp_path):
    pytest.importorskip("grpc", reason="needs gRPC: pip install 'pyspark[connect]'")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    run = subprocess.run(
        [sys.executable, "-c", "from tests.engines.test_connect import connect; connect()", tmp_path],
        capture_output=True, text=True, env=environment, cwd=os.getcwd(), check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    assert run.stdout.endswith("all is well\n")


def connect() -> None:
    """Make, verify and save a release; the server runs in this process, so it has one of its own."""
    from pathlib import Path

    from pyspark.sql import SparkSession

    import queryveil as qv
    from tests.engines.test_cluster import rows_of
    from tests.engines.test_engines import OTHER_TABLE

    folder = Path(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local[1]")
    for name, value in (QUICK | {"spark.ui.enabled": "false"}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    local = qv.read_log(OTHER_TABLE)
    log = qv.read_log(session.createDataFrame(OTHER_TABLE), engine=session)
    release = qv.Equality(k=3).anonymize(log, seed=2)
    assert rows_of(release).equals(rows_of(qv.Equality(k=3).anonymize(local, seed=2)))
    release.save(folder / "release")
    for each in (local, log):
        found = qv.verify(folder / "release", each)
        assert found.holds, found
    with pytest.raises(qv.QueryveilError, match="Spark Connect gives no access to the file system of hdfs://name/r"):
        release.save("hdfs://name/r")
    log.close()
    assert [database.name for database in session.catalog.listDatabases()] == ["default"]
    session.stop()
    print("all is well")
