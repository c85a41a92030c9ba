"""Files of a log: found, decompressed, and cut into blocks of complete rows."""

import bz2
import codecs
import glob
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import IO, Any, cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from queryveil.errors import QueryveilError, option
from queryveil.files.folders import is_address
from queryveil.formats.rows import Rows, Task
from queryveil.sources import RemoteFile, files_at

File = Path | RemoteFile
"""A file of a log, on this machine or elsewhere."""

BLOCK = 16 << 20
SAMPLE = 1 << 16

_MAGIC: dict[bytes, tuple[str, Any]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\x00": ("xz", lzma.open),
    b"\x28\xb5\x2f\xfd": ("zstd", lambda path: pa.input_stream(path, compression="zstd")),
}
# Files of a folder that lie beside a log, such as U500k_README.txt of the AOL collection, and hidden ones.
_BESIDE = re.compile(r"^[._]|(?<![a-z])(readme|licen[cs]e|copying|md5sums?|sha\d*sums?)(?![a-z])", re.IGNORECASE)
_PARTITION = re.compile(r"([^=]+)=(.*)", re.DOTALL)
"""A folder of a partitioned log, such as `day=2026-01-01`."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks of the encodings that have more than one byte for each character; the longer ones first."""
_INVALID = "queryveil.invalid"
# A character that UTF-8 cannot have, so that its row is reported as bad.
codecs.register_error(_INVALID, lambda error: ("\udcff", cast(UnicodeDecodeError, error).end))
_DECODING_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


@dataclass(frozen=True)
class Block:
    """Whole rows of one file."""

    file: str
    data: bytes | memoryview
    first_line: int
    overlong: int = 0
    """The line number of a row that is too long and was skipped before this block; 0 if none."""


@dataclass(frozen=True)
class Lines:
    """How the lines of a file become rows."""

    parse: Callable[[Block], Rows]
    encoding: str = "utf-8"
    delimiter: str = "\n"
    quoted: bool = False

    def tasks(self, file: File) -> Iterator[Task]:
        """The rows of a file."""
        for block in blocks(file, delimiter=self.delimiter, quoted=self.quoted, encoding=self.encoding):
            yield partial(self.parse, block)


def is_beside(name: str) -> bool:
    """Whether a file of a folder is hidden, or lies beside a log, by its name."""
    return _BESIDE.search(name) is not None


def find_files(paths: Sequence[str | Path]) -> list[File]:
    """The files that a file, a folder, a glob pattern or an address means, in order of their names."""
    found: list[File] = []
    for path in paths:
        if is_address(path):
            found += [file for file in files_at(str(path)) if not is_beside(file.name)]
            continue
        place = Path(path)
        if place.is_dir():
            inside = sorted(_inside(place))
            if not inside:
                raise QueryveilError(f"There is no file in the folder {place}; name the files of the log.")
            found += inside
        elif place.is_file():
            found.append(place)
        elif place.exists():
            raise QueryveilError(f"{place} is not a regular file, and a log is read more than once; save it first.")
        else:
            matches = sorted(Path(p) for p in glob.glob(str(path)) if Path(p).is_file())
            if not matches:
                raise QueryveilError(
                    f"There is no file {place}; check the path, or quote a pattern such as 'log-*.gz'."
                )
            found += matches
    return found


def _inside(folder: Path) -> Iterator[Path]:
    """The files of a log in a folder, and in those below it that are partitions (`day=2026-01-01`)."""
    for path in folder.iterdir():
        if path.is_file() and not is_beside(path.name):
            yield path
        elif path.is_dir() and _PARTITION.fullmatch(path.name) and not path.name.startswith((".", "_")):
            yield from _inside(path)


def roots(paths: Sequence[str | Path]) -> list[PurePath]:
    """The folders below which a log may be partitioned: what the caller named, of a pattern the part without any."""
    found = []
    for path in paths:
        parts = PurePath(path).parts
        fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        found.append(PurePath(*(parts if Path(path).exists() else parts[:fixed])))
    return found


def partitions(file: str, below: Sequence[PurePath]) -> dict[str, str]:
    """What the folders of a partitioned log say about a file, such as `{"day": "2026-01-01"}`.

    Args:
        file: The file.
        below: Only folders below these count, so that a log may be anywhere.
    """
    root = next((root for root in below if PurePath(file).is_relative_to(root)), PurePath(file))
    folders = PurePath(file).relative_to(root).parts[:-1]
    found = [match.groups() for match in map(_PARTITION.fullmatch, folders) if match]
    return {unquote(name): "" if value == _NO_VALUE else unquote(value) for name, value in found}


class Meter:
    """How much of the files of a log is read, in bytes as they are stored, for those who wait.

    Attributes:
        whole: The bytes of all files.
    """

    def __init__(self, files: Sequence[File]) -> None:
        local = all(isinstance(file, Path) for file in files)  # others have no size until they are read
        self.whole = sum(file.stat().st_size for file in files if isinstance(file, Path)) if local else 0
        self._done = 0
        self._file: IO[bytes] | None = None

    @property
    def share(self) -> float | None:
        """The share that is read, from 0 to 1; None if nothing says so."""
        if not self.whole or (self._file is None and not self._done):
            return None
        return min(1.0, (self._done + (self._file.tell() if self._file is not None else 0)) / self.whole)

    @contextmanager
    def reading(self, file: IO[bytes], size: int) -> Iterator[None]:
        """While a file is read."""
        self._file = file
        try:
            yield
        finally:
            self._file = None
            self._done += size


metered: ContextVar[Meter | None] = ContextVar("metered", default=None)
"""What measures how much is read, if anybody asks for it."""


@contextmanager
def opened(path: File, meter: Meter | None = None) -> Iterator[IO[bytes]]:
    """A file opened for reading, decompressed as its first bytes say."""
    kind = "file"
    try:
        with path.open("rb") if isinstance(path, Path) else path.open() as raw:
            head = raw.peek(6)
            with meter.reading(raw, path.stat().st_size) if meter and isinstance(path, Path) else nullcontext():
                for magic, (name, opener) in _MAGIC.items():
                    if head.startswith(magic):
                        kind = name + " file"
                        with cast("IO[bytes]", opener(raw)) as stream:
                            yield stream
                        return
                yield raw
    except _DECODING_ERRORS as error:
        raise QueryveilError(f"The {kind} {path} is cut off or damaged; fetch or compress it again.") from error
    except OSError as error:
        raise QueryveilError(f"The file {path} cannot be read ({error.strerror or kind + ' is damaged'}).") from error


def sample(path: File, encoding: str | None = None) -> bytes:
    """The first bytes of a file, decompressed and in UTF-8, from which its format is detected."""
    with opened(path) as stream:
        return Stream(stream, encoding or "utf-8", str(path)).read(SAMPLE).removeprefix(codecs.BOM_UTF8)


def marked(head: bytes) -> str | None:
    """The encoding that a byte order mark names, if it is one with several bytes for each character."""
    return next((encoding for mark, encoding in _MARKS.items() if head.startswith(mark)), None)


def agreed_encoding(files: Sequence[File], stated: str | None) -> str | None:
    """The encoding that a manifest states, if the files are in none that shows.

    A manifest may come from anybody, and text in a wrong encoding has other users. So it is not used for files with
    a byte order mark, nor if what is not ASCII is UTF-8.
    """
    if stated is None:
        return None
    known = [_is_utf8(file) for file in files]
    return stated if False in known and True not in known else None


def _is_utf8(file: File) -> bool | None:
    """Whether the first part of a file that is not ASCII is UTF-8, or marked as UTF-16 or UTF-32; None if all is."""
    with opened(file) as stream:
        data = stream.read(SAMPLE)
        if marked(data) is not None:
            return True
        while data:
            known = is_utf8(data)
            if known is not None:
                return known
            data = stream.read(SAMPLE)
    return None


def is_utf8(data: bytes) -> bool | None:
    """Whether the beginning of a text is UTF-8; None if it is ASCII."""
    if b"\0" in data:  # characters of several bytes
        return False
    if data.isascii():
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # the last character may be cut off
    except UnicodeDecodeError:
        return False
    return True


def is_wide(encoding: str | None) -> bool:
    """Whether an encoding has several bytes for each character, so that lines cannot be found before decoding."""
    return encoding is not None and codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def recode(data: bytes | memoryview, encoding: str) -> bytes | memoryview:
    """Bytes of another encoding as UTF-8; what cannot be decoded stays invalid, so its row is reported as bad."""
    if encoding == "utf-8":
        return data
    return bytes(data).decode(encoding, _INVALID).encode("utf-8", "surrogatepass")


class Stream:
    """A file in UTF-8, whatever its encoding is.

    Args:
        stream: The file.
        encoding: Its encoding.
        where: The file, for messages.
    """

    def __init__(self, stream: IO[bytes], encoding: str, where: str) -> None:
        self._stream = stream
        self._head = stream.read(4)
        found = marked(self._head) if encoding == "utf-8" else encoding
        if encoding in _MARKS.values() and self._head and marked(self._head) != encoding:
            raise QueryveilError(
                f"The file {where} has no byte order mark of {encoding}; name the order of its bytes with"
                f" {option('encoding', encoding + '-le')} or {option('encoding', encoding + '-be')}."
            )
        self._decoder = None if found is None else codecs.getincrementaldecoder(found)(_INVALID)

    def read(self, size: int) -> bytes:
        """About as many bytes; none at the end."""
        while True:
            head, self._head = self._head, b""
            data = head + self._stream.read(size - len(head))
            if self._decoder is None:
                return data
            text = self._decoder.decode(data, final=not data)
            if text or not data:
                return text.encode("utf-8", "surrogatepass")


def blocks(
    path: File,
    *,
    delimiter: str = "\n",
    quoted: bool = False,
    encoding: str = "utf-8",
    through: Callable[[bytes], bytes] | None = None,
) -> Iterator[Block]:
    """The file as blocks of complete rows in UTF-8, in order.

    Args:
        path: The file.
        delimiter: The character between fields.
        quoted: Whether a field in quotes may hold newlines.
        encoding: The encoding of the file.
        through: Turns the text, part after part, into one that has lines.
    """
    from queryveil.kernels.split import last_row_end

    line = 1
    rest = b""
    overlong = 0  # where a row that is too long began, until it is reported
    inside = False  # still in that row
    with opened(path, metered.get()) as raw:
        stream = Stream(raw, encoding, str(path))

        def read() -> bytes:
            data = stream.read(BLOCK)
            return data if through is None else through(data)

        data = read().removeprefix(codecs.BOM_UTF8)
        while data:
            if inside:
                start = data.find(b"\n") + 1
                inside = not start
                line += not inside
                data = data[start:] if start else b""
            end = last_row_end(np.frombuffer(data, np.uint8), ord(delimiter), quoted)
            if end:
                yield Block(str(path), memoryview(data)[:end], line, overlong)
                line += data.count(b"\n", 0, end)
                overlong = 0
            rest = data[end:]
            if len(rest) > BLOCK:
                if overlong:
                    yield Block(str(path), b"", line, overlong)
                overlong, inside = line, True
                line += rest.count(b"\n")
                rest = b""
            more = read()
            data = rest + more if more else b""
    if rest or overlong:
        yield Block(str(path), rest, line, overlong)
