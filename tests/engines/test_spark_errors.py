import pytest

from queryveil.engines.spark_errors import sentence_of
from queryveil.errors import command_line


def test_workers_without_queryveil_are_reported():
    error = RuntimeError("PythonException: ModuleNotFoundError: No module named 'queryveil'")
    assert "The workers of the cluster have no queryveil" in sentence_of(error, "the log")


@pytest.mark.parametrize(
    ("found", "python", "option"),
    [
        ("java.lang.OutOfMemoryError", "the Spark setting spark.executor.memory=8g", "--conf spark.executor.memory=8g"),
        ("No space left on device", "another 'work_dir'", "another --work-dir"),
        ("No FileSystem for scheme s3", "the Spark setting spark.jars.packages=", "--conf spark.jars.packages="),
    ],
)
def test_a_message_names_the_setting_in_python_and_the_option_on_the_command_line(found, python, option):
    assert python in sentence_of(RuntimeError(found), "s3://log")
    with command_line():
        assert option in sentence_of(RuntimeError(found), "s3://log")
