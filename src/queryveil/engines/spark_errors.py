"""What went wrong in Spark, as one sentence of our own: Spark's messages may quote a value of the log."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from queryveil.errors import QueryveilError, option
from queryveil.files.folders import is_address

_OPEN, _END = "queryveil says: ", " (end of what queryveil says)"
_SENTENCE = re.compile(re.escape(_OPEN) + "(.*?)" + re.escape(_END), re.DOTALL)


@contextmanager
def on_worker() -> Iterator[None]:
    """Mark a message of ours that is raised in a task, so that the driver finds it in what Spark reports."""
    try:
        yield
    except QueryveilError as error:
        raise RuntimeError(f"{_OPEN}{error}{_END}") from None


@contextmanager
def working(where: str = "the log") -> Iterator[None]:
    """Replace the message of an error in Spark, because it may quote a value of the log."""
    try:
        yield
    except QueryveilError:
        raise
    except Exception as error:
        raise QueryveilError(sentence_of(error, where)) from None


def sentence_of(error: Exception, where: str) -> str:
    """What went wrong in Spark, without what it quotes."""
    text = str(error)
    ours = _SENTENCE.search(text)
    if ours is not None:
        return ours.group(1)
    if "No module named 'queryveil'" in text:
        return (
            "The workers of the cluster have no queryveil; give them the same environment as the driver, as the docs "
            "say under 'Spark'."
        )
    signs = ("OutOfMemory", "MemoryError", "ExecutorLost", "exit code 137", "memory limits", "exited unexpectedly")
    if any(sign in text for sign in signs):
        return (
            "An executor ran out of memory or was lost more often than Spark tries again; give executors more memory "
            f"with {_setting('spark.executor.memory=8g')} (with a local master: spark.driver.memory), or fewer cores."
        )
    if "PATH_NOT_FOUND" in text or "Path does not exist" in text:
        return f"Spark finds no file at {where}; check the path, and that all workers reach it."
    if "No space left on device" in text:
        return (
            f"A disk of the cluster is full; free some space, or give another {option('work_dir')} or spark.local.dir."
        )
    if "PARQUET_TYPE_ILLEGAL" in text:
        return f"Spark does not read a type of {where}, such as times in nanoseconds; write them in microseconds."
    if "COLUMN_ALREADY_EXISTS" in text:
        return f"Two columns of {where} have the same name but for case; give each a name of its own."
    if "No FileSystem for scheme" in text or "ClassNotFoundException" in text:
        add = _setting("spark.jars.packages=...")
        return f"Spark has no connector for {where}; add it with {add}, or name another place."
    if "Connection refused" in text and is_address(where):
        return f"Nobody answers at {where}; check the address."
    if "Connection refused" in text or "SparkContext was shut down" in text or "stopped SparkContext" in text:
        return "The connection to Spark is lost; look at the master, and start again."
    condition = getattr(error, "getCondition", lambda: None)()
    kind = condition if isinstance(condition, str) else type(error).__name__
    return f"Spark could not finish a step ({kind}); its own log says where."


def _setting(text: str) -> str:
    return option("conf", text, python=f"the Spark setting {text}")
