"""Plain CSV and TSV with a header line, and columns of any name.

CSV is quoted as in RFC 4180, TSV is not: there a lone quote is data.
"""

import csv

from queryveil.errors import QueryveilError
from queryveil.formats.delimited import Layout, delimited_lines
from queryveil.formats.rows import ReadOptions, choose_columns, known_columns
from queryveil.formats.source import Lines, recode


def header(head: bytes, delimiter: str) -> list[str]:
    """The fields of the first line."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip(b"\r")
    text = first.decode("utf-8", "replace")
    if delimiter == "\t":
        return [name.strip() for name in text.split(delimiter)]
    try:
        return [name.strip() for name in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:  # not a line of CSV at all: it names no column
        return []


def header_of(name: str, head: bytes) -> list[str]:
    """The columns that the first line names, read as `tsv` or as `csv`."""
    return header(head, "\t" if name == "tsv" else csv_delimiter(head))


def csv_delimiter(head: bytes) -> str:
    """The most frequent of the usual delimiters in the first line."""
    first = head.split(b"\n", 1)[0]
    return max(",;|", key=lambda c: first.count(c.encode()))


def looks_like(head: bytes, delimiter: str) -> bool:
    """Whether the first line names a user column and a query column."""
    names = header(head, delimiter)
    return len(names) > 1 and {"user", "query"} <= set(known_columns(names))


def table_lines(file: str, head: bytes, options: ReadOptions, delimiter: str, quoted: bool) -> Lines:
    """How the lines of a file that begins with a header line become rows."""
    encoding = options.encoding or "utf-8"
    names = header(bytes(recode(head.split(b"\n", 1)[0], encoding)), delimiter)
    if len(set(names)) < len(names):
        raise QueryveilError(f"{file}:1 has two columns with the same name; rename one of them.")
    chosen = {column: name for name, column in choose_columns(names, options, f"{file}:1").items()}
    columns = tuple(chosen[name] for name in names)
    layout = Layout(columns, (len(names),), delimiter, quoted, header=tuple(names))
    return delimited_lines(layout, encoding)
