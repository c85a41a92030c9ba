"""A ledger in a folder of a cluster's file system (HDFS, ...), reached through Spark's Hadoop client.

Such file systems rename to a new name in one step, but not all replace a file in one step. So every change writes a
file of its own, `ledger-N.json`, and the one with the largest number is the ledger. They also have no locks that end
with a process: a killed run leaves its lock, which a person removes.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from queryveil.engines.hadoop import HadoopFolder
from queryveil.engines.spark import Spark
from queryveil.errors import QueryveilError
from queryveil.files.folders import Folder
from queryveil.series.ledger import Ledger, LedgerFolder, is_left, no_ledger

_LOCK = "lock"
_NUMBERED = re.compile(r"ledger-(\d{1,9})\.json")
_UNFINISHED = ".queryveil-"


class RemoteLedgerFolder(LedgerFolder):
    """The folder of a ledger on a cluster.

    Args:
        engine: The cluster.
        address: The folder, such as `hdfs://host/path`.
        at: The folder of a release with a given path or address.
    """

    engine = "spark"

    def __init__(self, engine: Spark, address: str, at: Callable[[str], Folder]) -> None:
        self._folder = HadoopFolder(engine, address)
        self._at = at

    def __str__(self) -> str:
        return str(self._folder)

    def uri(self, name: str) -> str:
        """The address of something in it."""
        return self._folder.uri(name)

    def holds(self, place: Folder) -> bool:
        """Whether a folder is inside the ledger."""
        return f"{place}/".startswith(f"{self}/")

    def make(self, ledger: Ledger) -> None:
        """Make a new one."""
        if self._folder.exists():
            raise QueryveilError(f"{self} exists already; choose another place for the ledger.", code="exists")
        self._folder.make()
        if not self._folder.is_private():
            self._folder.remove()
            raise QueryveilError(
                f"The file system of {self} does not keep the ledger, with its unpublished queries, from others; choose"
                " one with permissions, such as HDFS."
            )
        self._write(ledger)

    def stage(self, ledger: Ledger, save: Callable[[str], tuple[int, int]]) -> tuple[int, int]:
        """Write what waits after a change, beside what waits now; return what `save` returns."""
        return save(self.uri(ledger.waiting))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        taken = QueryveilError(
            f"The ledger {self} is in use by another process; wait until that ends. If it was killed, remove"
            f" {self.uri(_LOCK)} first."
        )
        if _LOCK in self._folder.names():
            raise taken
        try:
            self._folder.write(_LOCK, b"")  # fails if somebody else was faster
        except QueryveilError:
            raise (taken if _LOCK in self._folder.names() else no_ledger(str(self))) from None
        try:
            yield
        finally:
            self._folder.delete(_LOCK)

    def _read(self) -> bytes:
        """The file with the ledger."""
        numbers = self._numbers()
        if not numbers:
            raise FileNotFoundError(str(self))
        return self._folder.read(_numbered(max(numbers)))

    def _numbers(self) -> list[int]:
        return [int(found[1]) for found in map(_NUMBERED.fullmatch, self._folder.names()) if found]

    def _write(self, ledger: Ledger, *, overwrite: bool = False) -> None:
        self._put(_numbered(ledger.changes), ledger.model_dump_json(indent=1).encode())
        if self.read() != ledger:
            raise QueryveilError(f"The ledger {self} was changed by another process in the meantime; look at it first.")

    def _has(self, name: str) -> bool:
        """Whether something is in the folder."""
        return name in self._folder.names()

    def _keep_copy(self, staged: Folder) -> None:
        """Nothing: there a release is moved in one step, and nobody else removes what was staged."""

    def _drop_copy(self) -> None:
        """Nothing, because there is no copy."""

    def _copy_back(self, release: Folder) -> bool:
        """Never, because there is no copy."""
        return False

    def _get(self, name: str) -> bytes:
        return self._folder.read(name)

    def _put(self, name: str, content: bytes) -> None:
        """Write a new small file whole."""
        unfinished = f"{_UNFINISHED}{uuid.uuid4().hex[:12]}"
        self._folder.write(unfinished, content)
        self._folder.rename(unfinished, name)

    def _drop(self, name: str) -> None:
        self._folder.delete(name)

    def _check(self) -> None:
        if not self._folder.exists() or not self._numbers():
            raise no_ledger(str(self))
        if not self._folder.is_private():
            raise QueryveilError(
                f"The ledger {self} can be read or changed by others; it holds unpublished queries, so make it yours"
                " alone first, with permissions 700."
            )

    def _tidy(self, ledger: Ledger) -> None:
        """Remove what killed changes left."""
        now = _numbered(ledger.changes)
        for name in self._folder.names():
            old = name != now and _NUMBERED.fullmatch(name) is not None
            if old or name.startswith(_UNFINISHED) or is_left(name, ledger):
                self._folder.remove_inside(name)


def _numbered(changes: int) -> str:
    return f"ledger-{changes}.json"
