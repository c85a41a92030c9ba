"""Files of a log: found, decompressed, and cut into blocks of complete rows."""

import bz2
import glob
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa

from queryveil.errors import QueryveilError, option
from queryveil.files.folders import is_address
from queryveil.formats.rows import Rows, Task

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

    def tasks(self, file: Path) -> Iterator[Task]:
        """The rows of a file."""
        for block in blocks(file, delimiter=self.delimiter, quoted=self.quoted, encoding=self.encoding):
            yield partial(self.parse, block)


def is_beside(name: str) -> bool:
    """Whether a file of a folder is hidden, or lies beside a log, by its name."""
    return _BESIDE.search(name) is not None


def find_files(paths: Sequence[str | Path]) -> list[Path]:
    """The files that a file, a folder or a glob pattern means, in order of their names."""
    found: list[Path] = []
    for path in paths:
        place = Path(path)
        if place.is_dir():
            inside = sorted(p for p in place.iterdir() if p.is_file() and not is_beside(p.name))
            if not inside:
                raise QueryveilError(f"There is no file in the folder {place}; name the files of the log.")
            found += inside
        elif place.is_file():
            found.append(place)
        elif place.exists():
            raise QueryveilError(f"{place} is not a regular file, and a log is read more than once; save it first.")
        else:
            matches = sorted(Path(p) for p in glob.glob(str(path)) if Path(p).is_file())
            if not matches and is_address(path):
                spark = option("engine", "spark", python="a Spark session as 'engine'")
                raise QueryveilError(f"{path} is not on this machine; read it with {spark}, or copy it here.")
            if not matches:
                raise QueryveilError(
                    f"There is no file {place}; check the path, or quote a pattern such as 'log-*.gz'."
                )
            found += matches
    return found


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file opened for reading, decompressed as its first bytes say."""
    kind = "file"
    try:
        with path.open("rb") as raw:
            head = raw.read(6)
        for magic, (name, opener) in _MAGIC.items():
            if head.startswith(magic):
                kind = name + " file"
                with cast("IO[bytes]", opener(path)) as stream:
                    yield stream
                return
        with path.open("rb") as stream:
            yield stream
    except _DECODING_ERRORS as error:
        raise QueryveilError(f"The {kind} {path} is cut off or damaged; fetch or compress it again.") from error
    except OSError as error:
        raise QueryveilError(f"The file {path} cannot be read ({error.strerror or kind + ' is damaged'}).") from error


def sample(path: Path) -> bytes:
    """The first bytes of a file, decompressed, from which its format is detected."""
    with opened(path) as stream:
        head = stream.read(SAMPLE)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise QueryveilError(f"The file {path} is UTF-16; convert it to UTF-8 first.")
    return head


def recode(data: bytes | memoryview, encoding: str) -> bytes | memoryview:
    """Bytes of another encoding as UTF-8; what cannot be decoded stays invalid, so its row is reported as bad."""
    if encoding == "utf-8":
        return data
    return bytes(data).decode(encoding, "surrogateescape").encode("utf-8", "surrogatepass")


def blocks(path: Path, *, delimiter: str = "\n", quoted: bool = False, encoding: str = "utf-8") -> Iterator[Block]:
    """The file as blocks of complete rows, in order."""
    from queryveil.kernels.split import last_row_end

    line = 1
    rest = b""
    overlong = 0  # where a row that is too long began, until it is reported
    inside = False  # still in that row
    with opened(path) as stream:
        data = stream.read(BLOCK).removeprefix(b"\xef\xbb\xbf")
        while data:
            if inside:
                start = data.find(b"\n") + 1
                inside = not start
                line += not inside
                data = data[start:] if start else b""
            end = last_row_end(np.frombuffer(data, np.uint8), ord(delimiter), quoted)
            if end:
                yield Block(str(path), recode(memoryview(data)[:end], encoding), line, overlong)
                line += data.count(b"\n", 0, end)
                overlong = 0
            rest = data[end:]
            if len(rest) > BLOCK:
                if overlong:
                    yield Block(str(path), b"", line, overlong)
                overlong, inside = line, True
                line += rest.count(b"\n")
                rest = b""
            more = stream.read(BLOCK)
            data = rest + more if more else b""
    if rest or overlong:
        yield Block(str(path), recode(rest, encoding), line, overlong)
