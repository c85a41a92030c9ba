"""Comma separated values (or semicolon, or bar) with a header line, quoted as in RFC 4180."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from queryveil.formats.rows import ReadOptions, Task
from queryveil.formats.source import sample
from queryveil.formats.table import looks_like, read_table

NAME = "csv"


def sniff(head: bytes) -> bool:
    """Whether the first line names a user and a query, between commas, semicolons or bars."""
    return looks_like(head, _delimiter(head))


def read(files: Sequence[Path], options: ReadOptions) -> Iterator[Task]:
    """The rows of CSV files."""
    for file in files:
        yield from read_table([file], options, _delimiter(sample(file)), quoted=True)


def _delimiter(head: bytes) -> str:
    first = head.split(b"\n", 1)[0]
    return max(",;|", key=lambda c: first.count(c.encode()))
