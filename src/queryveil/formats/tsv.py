"""Tab separated values with a header line; a quote is data."""

from queryveil.formats.rows import ReadOptions
from queryveil.formats.source import Lines
from queryveil.formats.table import looks_like, table_lines

NAMED_COLUMNS = True


def sniff(head: bytes) -> bool:
    """Whether the first line names a user and a query, between tabs."""
    return looks_like(head, "\t")


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How the lines of TSV files become rows."""
    return table_lines(file, head, options, "\t", quoted=False)
