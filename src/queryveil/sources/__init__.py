"""Where rows come from when they are not in files of this machine.

A source gives files, which are named streams of bytes (`RemoteFile`), or a table as Arrow batches (`ArrowSource`).
Bytes are then read like files of this machine: the same formats, the same compression. `SOURCES` says which module
knows which addresses. What is secret in an address, such as a password, stays out of every message (`shown`).
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from queryveil.errors import QueryveilError, option
from queryveil.files.folders import Folder, LocalFolder, is_address, local_folder, shown

if TYPE_CHECKING:
    import pyarrow as pa

STORES = ("s3", "gs", "az")
"""Object stores, which can also be written to."""
SOURCES = {
    **dict.fromkeys(STORES, "stores"),
    **dict.fromkeys(("https", "http"), "web"),
    **dict.fromkeys(("opensearch", "opensearch+http"), "opensearch"),
}
"""Which module lists the files at an address, by its scheme: `find(address)` returns them."""

UNFINISHED = ".queryveil-unfinished"
"""What is in a folder of an object store while a release is put together there."""
_FIRST, _PART = 1 << 17, 16 << 20
"""How many bytes are asked for at once: few for the beginning of a file, then more and more."""


class RemoteFile(ABC):
    """A file that is not on this machine.

    Args:
        address: Its address, as messages may show it.
    """

    def __init__(self, address: str) -> None:
        self._shown = address

    def __str__(self) -> str:
        return self._shown

    @property
    def name(self) -> str:
        """Its name without what is before it."""
        return self._shown.rstrip("/").rpartition("/")[2]

    @abstractmethod
    def open(self) -> io.BufferedReader:
        """Its bytes from the beginning; each call reads them anew."""


class ArrowSource(NamedTuple):
    """A table that a library or a server hands over in batches."""

    where: str
    """What it is, for messages."""
    schema: "pa.Schema"
    batches: "Iterator[pa.RecordBatch]"


class Parts(io.RawIOBase):
    """A file of known size whose parts are fetched when they are read; only the last part is kept in memory.

    One request after the other, each of a bounded size: a slow reader holds no connection open, and little is lost when
    a request fails.
    """

    def __init__(self) -> None:
        self._at = 0
        self._start = 0
        self._data: bytes | memoryview = b""
        self._step = _FIRST

    @property
    def size(self) -> int:
        """How many bytes it has."""
        raise NotImplementedError

    def fetch(self, start: int, end: int) -> bytes | memoryview:
        """The bytes from `start` up to `end`, which is not beyond its size."""
        raise NotImplementedError

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on reading from another place."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence, self.size if whence else 0)
        return self._at

    def tell(self) -> int:
        """Where it is read next."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; fewer than asked for at the end of a part."""
        room = memoryview(buffer).cast("B")
        if not room or self._at >= self.size:
            return 0
        end = self._start + len(self._data)
        if not self._start <= self._at < end:
            self._step = min(_PART, self._step * 4) if self._at == end else _FIRST
            last = min(self.size, self._at + max(self._step, min(len(room), _PART)))
            self._data = self.fetch(self._at, last)
            self._start = self._at
            if len(self._data) != last - self._at:
                raise OSError("a part has another length than was asked for")
        part = memoryview(self._data)[self._at - self._start :][: len(room)]
        room[: len(part)] = part
        self._at += len(part)
        return len(part)


def files_at(address: str) -> list[RemoteFile]:
    """The files that an address means, in order of their names.

    Raises:
        QueryveilError: If no source knows such addresses, or there is no file.
    """
    found: list[RemoteFile] = import_module(f"queryveil.sources.{_module_of(address)}").find(address)
    return found


def table_at(paths: "Sequence[str | Path]", sql: str | None = None) -> ArrowSource | None:
    """The table that an address means: that of a query, or a table of a data lake; None if it means files.

    Args:
        paths: Where the log is.
        sql: A query, if the log is in a database.
    """
    if sql is not None:
        if len(paths) != 1 or not is_address(paths[0]):
            raise QueryveilError(
                f"{option('from_sql', python='sql')} is for one database, given as the log by its address, such as"
                " postgresql://HOST/NAME or sqlite:///FILE."
            )
        from queryveil.sources.sql import rows_of

        return rows_of(str(paths[0]), sql)
    from queryveil.sources.lake import table_at

    found = [table for table in map(table_at, paths) if table is not None]
    if found and len(paths) > 1:
        raise QueryveilError(f"{found[0].where} is a table of its own; read it alone.")
    return found[0] if found else None


def _module_of(address: str) -> str:
    scheme = address.partition("://")[0].lower()
    if scheme not in SOURCES:
        spark = option("engine", "spark", python="a Spark session as 'engine'")
        sql = option("from_sql", python="'sql'")
        known = ", ".join(f"{name}://" for name in SOURCES)
        raise QueryveilError(
            f"No source knows addresses such as {shown(address)}; there are {known}, databases with {sql}, and what a"
            f" cluster reaches with {spark}."
        )
    return SOURCES[scheme]


def is_store(path: str | Path) -> bool:
    """Whether a path is in an object store that is reached from this machine."""
    return str(path).partition("://")[0].lower() in STORES and is_address(path)


def folder_at(path: str | Path) -> Folder:
    """A folder on this machine, or in an object store."""
    if not is_store(path):
        return local_folder(path)
    from queryveil.sources.stores import StoreFolder

    return StoreFolder(str(path))


def copy_of(path: str | Path | Folder) -> Folder:
    """A folder that can be read on this machine: itself, or a private copy of one in an object store.

    The copy is removed with the last use of what this returns.
    """
    folder = path if isinstance(path, Folder) else folder_at(path)
    if isinstance(folder, LocalFolder):
        return folder
    from queryveil.sources.stores import StoreFolder

    return folder.copy() if isinstance(folder, StoreFolder) else folder
