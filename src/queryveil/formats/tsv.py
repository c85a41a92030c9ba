"""Tab separated values with a header line; a quote is data."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from queryveil.formats.rows import ReadOptions, Task
from queryveil.formats.table import looks_like, read_table

NAME = "tsv"


def sniff(head: bytes) -> bool:
    """Whether the first line names a user and a query, between tabs."""
    return looks_like(head, "\t")


def read(files: Sequence[Path], options: ReadOptions) -> Iterator[Task]:
    """The rows of TSV files."""
    return read_table(files, options, "\t", quoted=False)
