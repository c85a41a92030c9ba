"""Tab separated values with a header line; a quote is data."""

from queryveil.formats.rows import ReadOptions
from queryveil.formats.source import Lines
from queryveil.formats.table import header_of, is_table, table_lines

NAMED_COLUMNS = True


def sniff(head: bytes) -> bool:
    """Whether the first line names columns, between tabs."""
    return is_table(head, "\t")


def names(file: object, head: bytes) -> list[str]:
    """The names of the columns."""
    return header_of("tsv", head)


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How the lines of TSV files become rows."""
    return table_lines(file, head, options, "\t", quoted=False)
