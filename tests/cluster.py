"""A real standalone cluster on loopback: one master and some workers, each in a process group of its own."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path


class Cluster:
    """Spark's own master and workers, from the scripts of the package.

    Args:
        folder: Where they write their logs and scratch files.
        workers: How many.
    """

    def __init__(self, folder: Path, workers: int = 2) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.master = f"spark://127.0.0.1:{port}"
        self._processes = [self._start("master.Master", "--port", str(port))]
        _wait_for(port)
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Start one more worker."""
        scratch = self._folder / f"worker-{len(self._processes) - 1}"
        self._processes.append(
            self._start(
                "worker.Worker", "--port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(scratch),
                self.master,
            )
        )  # fmt: skip

    def _start(self, role: str, *words: str) -> subprocess.Popen[bytes]:
        command = [self._home / "bin" / "spark-class", f"org.apache.spark.deploy.{role}", "--host", "127.0.0.1"]
        environment = os.environ | {"SPARK_HOME": str(self._home), "PYSPARK_PYTHON": sys.executable}
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*command, "--webui-port", "0", *words],
                stdout=log, stderr=log, env=environment, cwd=self._folder, start_new_session=True,
            )  # fmt: skip

    def kill_worker(self, number: int) -> None:
        """Kill a worker and all that runs on it, as if its machine had gone."""
        os.killpg(self._processes[1 + number].pid, signal.SIGKILL)

    def close(self) -> None:
        """End all that still runs."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(port: int) -> None:
    for _ in range(300):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the master does not start")
