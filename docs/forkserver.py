"""Commands in forks of a process that has imported the package already, because imports take longer than most commands.

A `queryveil` in the folder of the server stands in for the installed one on PATH. It hands arguments, environment,
folder, umask and open files over to the server, which forks; it passes on signals, and it ends as the fork ends. A fork
has run nothing of the package when its command begins: no table, thread or file of one command is seen by another.
This is for the examples of the pages and their tests. On a terminal, output would not come line by line.
"""

import atexit
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

LATE = (
    "altair", "pandas", "phonenumbers", "pyarrow.parquet", "rich.progress", "rich.table", "scipy.stats",
    "sklearn.ensemble", "typer.rich_utils",
)  # fmt: skip
"""What the package imports inside functions and takes long. None of it starts a thread, which a fork would lack."""

COMMAND = f"""#!{sys.executable} -IS
import json, os, signal, socket, sys

signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
os.umask(umask := os.umask(0))
server = socket.socket(socket.AF_UNIX)
server.connect(os.path.join(os.path.dirname(__file__), "socket"))
request = json.dumps([sys.argv, dict(os.environ), os.getcwd(), umask]).encode()
socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
server.sendall(request)
answer = server.makefile()
command = int(answer.readline())
for number in signals:
    signal.signal(number, lambda number, frame: os.kill(command, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
code = int(answer.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""
"""What stands in for a command."""


@contextmanager
def commands(script: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """A folder with commands that start at once.

    Args:
        script: A script that serves; see `serve`.
        environment: Variables that some packages read when they are imported.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, str(script), "--serve", folder]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:  # noqa: S603
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError("The server of commands did not start.")
            yield Path(folder)
            process.stdin.close()


def serve(folder: Path, programs: Mapping[str, Callable[[], int]]) -> NoReturn:
    """Wait for commands, and run each in a fork.

    Args:
        folder: Where the commands are put; nobody else can reach it.
        programs: What they are called and what they do.
    """
    ended: list[int] = []
    atexit.register(_leave, ended)  # the first, so that it comes last
    _import_all()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        for name in programs:
            (folder / name).write_text(COMMAND)
            (folder / name).chmod(0o700)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that attend to a command
        while True:
            if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
                sys.exit()  # whoever started it has ended
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _attend(connection)
    try:
        ended.append(programs[Path(sys.argv[0]).name]())
    except SystemExit as end:
        if isinstance(end.code, int):
            ended.append(end.code)
        raise
    sys.exit(ended[0])


def _leave(ended: list[int]) -> None:
    """Leave the fork of a command at once: taking apart all that was imported takes longer than most commands."""
    if ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended[0])


def _import_all() -> None:
    """Import the package, what it imports only where it is used, and what Numba imports with the first kernel."""
    import numba

    import queryveil

    modules = [module.name for module in pkgutil.walk_packages(queryveil.__path__, "queryveil.")]
    for name in (*modules, *LATE):
        if not name.endswith("__main__"):
            with suppress(ImportError):  # an optional package may be missing
                importlib.import_module(name)
    numba.njit(lambda: None)()


def _attend(connection: socket.socket) -> None:
    """Fork for a command, wait for the fork and answer how it ended; return in the fork, as its caller wants it."""
    length, files, *_ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as lines:
        words, environment, cwd, umask = json.loads(lines.read(int.from_bytes(length, "big")))
    command = os.fork()
    if command:
        connection.sendall(b"%d\n" % command)
        _, status = os.waitpid(command, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    connection.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    os.umask(umask)
    sys.argv = words
