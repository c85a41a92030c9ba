"""Comma separated values (or semicolon, or bar) with a header line, quoted as in RFC 4180."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from queryveil.formats.rows import ReadOptions, Task
from queryveil.formats.source import sample
from queryveil.formats.table import csv_delimiter, looks_like, read_table

NAME = "csv"


def sniff(head: bytes) -> bool:
    """Whether the first line names a user and a query, between commas, semicolons or bars."""
    return looks_like(head, csv_delimiter(head))


def read(files: Sequence[Path], options: ReadOptions) -> Iterator[Task]:
    """The rows of CSV files."""
    for file in files:
        yield from read_table([file], options, csv_delimiter(sample(file)), quoted=True)
