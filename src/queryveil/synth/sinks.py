"""Where a log is written to: one sink for each format, chosen by the ending of the file's name."""

import gzip
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.synth.chunk import Chunk
from queryveil.synth.rows import HEADER, VIEWS_HEADER
from queryveil.synth.tables import LOG_SCHEMA, VIEWS_SCHEMA


class Sink(Protocol):
    """Takes the log chunk by chunk."""

    def write(self, chunk: Chunk) -> None:
        """Append a chunk."""

    def close(self) -> None:
        """Finish the file."""


class _Lines:
    """AOL lines, or lines of results, plain or compressed."""

    def __init__(self, path: Path, ending: str, *, views: bool) -> None:
        self._stack = ExitStack()
        if ending == ".tsv.zst":
            self._file = self._stack.enter_context(pa.CompressedOutputStream(str(path), "zstd"))
        else:
            self._file = self._stack.enter_context(path.open("wb"))
        if ending == ".tsv.gz":
            # No name and no time in the header: the same seed must give the same bytes.
            plain = self._file
            self._file = self._stack.enter_context(gzip.GzipFile("", "wb", 5, plain, mtime=0))
        self._file.write(VIEWS_HEADER if views else HEADER)

    def write(self, chunk: Chunk) -> None:
        self._file.write(chunk.lines)

    def close(self) -> None:
        self._stack.close()


class _Parquet:
    """A Parquet file, one row group per chunk."""

    def __init__(self, path: Path, *, views: bool) -> None:
        self._writer = pq.ParquetWriter(path, VIEWS_SCHEMA if views else LOG_SCHEMA, compression="zstd")

    def write(self, chunk: Chunk) -> None:
        self._writer.write_table(chunk.table)

    def close(self) -> None:
        self._writer.close()


def open_sink(path: Path, ending: str, *, views: bool) -> Sink:
    """Open a file for the log."""
    return _Parquet(path, views=views) if ending == ".parquet" else _Lines(path, ending, views=views)
