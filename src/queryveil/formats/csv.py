"""Comma separated values (or semicolon, or bar) with a header line, quoted as in RFC 4180."""

from queryveil.formats.rows import ReadOptions
from queryveil.formats.source import Lines
from queryveil.formats.table import csv_delimiter, header_of, is_table, table_lines

NAMED_COLUMNS = True


def sniff(head: bytes) -> bool:
    """Whether the first line names columns, between commas, semicolons or bars."""
    return is_table(head, csv_delimiter(head))


def names(file: object, head: bytes) -> list[str]:
    """The names of the columns."""
    return header_of("csv", head)


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How the lines of CSV files become rows."""
    return table_lines(file, head, options, csv_delimiter(head), quoted=True)
