"""Start Spark for the command line, after checking what it needs."""

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from queryveil.engines.spark_errors import working
from queryveil.errors import QueryveilError, require
from queryveil.files.folders import is_address
from queryveil.files.scratch import Scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
"""The oldest Java that Spark 4 runs on."""
DAEMON = "queryveil.log.ingest.spark_daemon"
"""The module that Python workers are forked from; by its name, because it is started elsewhere."""
_LONGEST_FOLDER = 60
"""In bytes: Spark adds 43 to the name of a folder, and that of a socket may have 103 on any system."""


def start(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, work_dir: str | None = None
) -> "SparkSession":
    """Start a Spark session for the command line.

    Args:
        master: Where Spark runs: `local[N]` for N cores of this machine, or the address of a cluster.
        settings: Further settings of Spark, which override the others.
        work_dir: A folder for what Spark keeps, that the driver and all workers reach.

    Raises:
        QueryveilError: If there is no Spark, no Java that it can use, or nobody at the master's address.
    """
    require("Spark", "pyspark.sql", "pandas")
    from pyspark.sql import SparkSession

    _check_java()
    _check_master(master)
    os.environ["PYSPARK_PYTHON"] = worker_python(settings or {})
    chosen = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false", "spark.python.daemon.module": DAEMON}
    scratch = Scratch()
    atexit.register(scratch.remove)
    # Spark makes a warehouse at once, used or not, by default in the current folder.
    chosen["spark.sql.warehouse.dir"] = whole(work_dir or str(scratch.path))
    if master.startswith("local"):
        # Nothing listens beyond this machine, and the driver, which does all the work, may use a third of it.
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 3 >> 20
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        chosen |= {"spark.ui.enabled": "false", "spark.driver.memory": f"{memory}m"}
        chosen |= _sockets(scratch.path)
    builder = SparkSession.builder.appName("queryveil").master(master)
    for name, value in (chosen | dict(settings or {})).items():
        builder = builder.config(name, value)
    ctrl_c = signal.getsignal(signal.SIGINT)
    with working(), _quiet():
        session = builder.getOrCreate()
    signal.signal(signal.SIGINT, ctrl_c)  # PySpark has replaced it
    return session


def _sockets(folder: Path) -> dict[str, str]:
    """Let Java and Python talk through files of a folder that is ours alone, if its name is short enough for that.

    Through the network of the machine they have stood still forever on one: both sent so much at once that its kernel
    (Linux 6.18, with BBR) delivered nothing any more.
    """
    if len(os.fsencode(folder)) > _LONGEST_FOLDER:
        return {}
    name = "spark.python.unix.domain.socket"
    return {f"{name}.enabled": "true", f"{name}.dir": str(folder)}


def worker_python(settings: Mapping[str, str]) -> str:
    """The Python of the workers; PySpark looks for the setting only in spark-submit, and else at the variable alone."""
    return settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    needed = f"Spark needs Java {JAVA} or later; install it (Debian: apt install openjdk-{JAVA}-jre-headless), or set"
    if java is None:
        where = f"at JAVA_HOME={home}" if home else "on this machine"
        raise QueryveilError(f"There is no Java {where}. {needed} JAVA_HOME.")
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if found is None or int(found.group(1)) < JAVA:
        version = f"version {found.group(1)}" if found else "of no known version"
        raise QueryveilError(f"The Java at {java} is {version}. {needed} JAVA_HOME to a newer one.")


def _check_master(master: str) -> None:
    """Refuse a master that does not exist; Spark itself would try for a minute."""
    if not re.fullmatch(r"local(\[(\d+|\*)(, *\d+)?\])?|yarn|(spark|k8s|mesos)://.+|local-cluster\[.*\]", master):
        raise QueryveilError(
            f"'{master}' is not a Spark master; give local[2], spark://HOST:7077, yarn or k8s://ADDRESS, for example."
        )
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), timeout=5):
            return
    raise QueryveilError(f"Nobody answers at {master}; check the address, and that the master runs.")


def whole(path: str) -> str:
    """A folder by its whole path or address, because Spark resolves relative ones in its own way."""
    return path.rstrip("/") if is_address(path) else str(Path(path.removeprefix("file://")).absolute())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Java prints when it starts off the terminal; no setting can prevent it."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
