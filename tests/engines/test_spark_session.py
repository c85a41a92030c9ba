import sys

import pytest

import queryveil as qv
from queryveil.engines.spark_session import start, worker_python


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
