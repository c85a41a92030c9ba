"""Comma separated values (or semicolon, or bar) with a header line, quoted as in RFC 4180."""

from queryveil.formats.rows import ReadOptions
from queryveil.formats.source import Lines
from queryveil.formats.table import csv_delimiter, looks_like, table_lines

NAMED_COLUMNS = True


def sniff(head: bytes) -> bool:
    """Whether the first line names a user and a query, between commas, semicolons or bars."""
    return looks_like(head, csv_delimiter(head))


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How the lines of CSV files become rows."""
    return table_lines(file, head, options, csv_delimiter(head), quoted=True)
