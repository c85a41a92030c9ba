"""Spark for a verb: its jobs are cancelled by a signal, and it is stopped when the verb ends."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from queryveil.cli.progress import progress, show_step
from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from queryveil.engines.spark import Spark

opened = ExitStack()
"""What holds tables on a cluster, to be closed when the verb ends."""

_cancel: list[Callable[[], None]] = []
"""Cancel the jobs of a cluster."""
_stopping = threading.Event()


def start_spark(master: str, settings: Mapping[str, str], work_dir: str | None) -> "Spark":
    """Start Spark, until the verb ends."""
    from queryveil.engines.spark import Spark
    from queryveil.engines.spark_session import start

    with progress("Starting Spark"):
        session = start(master, settings, work_dir)
        opened.callback(session.stop)
        engine = Spark(session, work_dir=work_dir)
        engine.progress = _next_step
        opened.callback(engine.close)
        _cancel.append(session.sparkContext.cancelAllJobs)
        opened.callback(_cancel.clear)
    return engine


def _next_step(name: str) -> None:
    if _stopping.is_set():
        raise QueryveilError("Stopped.")
    show_step(name)


def stop_jobs() -> bool:
    """Cancel all jobs on a cluster, now and from now on; returns whether there is a cluster."""
    if _cancel:
        _stopping.set()
        threading.Thread(target=_keep_cancelling, daemon=True).start()
    return bool(_cancel)


def _keep_cancelling() -> None:
    while _cancel:
        for cancel in _cancel.copy():
            with suppress(Exception):
                cancel()
        time.sleep(0.5)
