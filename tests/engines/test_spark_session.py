import sys
from pathlib import Path

import pytest

import queryveil as qv
from queryveil.engines.spark_session import _sockets, start, worker_python
from tests.both import needs_spark


def test_no_java_and_an_old_java_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(qv.QueryveilError, match=r"There is no Java at JAVA_HOME=.*needs Java 17 or later"):
        start()
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    for printed, version in (
        ('openjdk version "11.0.2" 2019-01-15', "version 11"),
        ('java version "1.8.0_292"', "version 8"),
    ):
        java.write_text(f"#!/bin/sh\necho '{printed}' >&2\n")
        java.chmod(0o755)
        with pytest.raises(qv.QueryveilError, match=rf"is {version}. Spark needs Java 17"):
            start()


def test_a_master_that_nobody_answers_at_is_one_sentence():
    with pytest.raises(qv.QueryveilError, match=r"Nobody answers at spark://127.0.0.1:9"):
        start("spark://127.0.0.1:9")
    with pytest.raises(qv.QueryveilError, match="'sparky' is not a Spark master"):
        start("sparky")


def test_workers_run_the_python_that_is_shipped_to_them(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert worker_python({}) == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
    assert worker_python({}) == "/usr/bin/python3"
    assert worker_python({"spark.pyspark.python": "./environment/bin/python"}) == "./environment/bin/python"


def test_without_pyspark_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(qv.QueryveilError, match=r"pip install 'queryveil\[spark\]'"):
        start()


@needs_spark
def test_java_and_python_talk_through_files_of_a_folder_that_is_ours_alone(spark, tmp_path):
    """Its name must be short, because a system allows a socket a hundred characters or so."""
    settings = spark.sparkContext.getConf()
    assert settings.get("spark.python.unix.domain.socket.enabled") == "true"
    folder = Path(settings.get("spark.python.unix.domain.socket.dir"))
    assert len(str(folder)) + len("/.b8a8d1ed-9009-4ff7-9e31-c87f1cdb7388.sock") <= 103
    assert folder.stat().st_mode & 0o777 == 0o700
    spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()
    assert [one.name for one in folder.iterdir() if one.is_socket()]
    assert _sockets(tmp_path / ("long" * 20)) == {}
