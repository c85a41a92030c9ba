"""Plain CSV and TSV with a header line, and columns of any name.

CSV is quoted as in RFC 4180, TSV is not: there a lone quote is data, unless all names of the header are in quotes. A
first line such as `sep=;`, which Excel understands, names the delimiter.
"""

import csv

from queryveil.errors import QueryveilError
from queryveil.formats.delimited import SEPARATOR, Layout, delimited_lines
from queryveil.formats.rows import ReadOptions, choose_columns, known_columns
from queryveil.formats.source import Lines

_FIRST = 20
"""How many rows say whether a file is a table."""


def header(head: bytes, delimiter: str) -> list[str]:
    """The names in the first line."""
    rows = _rows(SEPARATOR.sub(b"", head, count=1) if SEPARATOR.match(head) else head, delimiter, 1)
    return [name.strip() for name in rows[0]] if rows else []


def header_of(name: str, head: bytes) -> list[str]:
    """The columns that the first line names, read as `tsv` or as `csv`."""
    return header(head, "\t" if name == "tsv" else csv_delimiter(head))


def csv_delimiter(head: bytes) -> str:
    """The delimiter of a CSV file: the one that its first lines agree about, else the most frequent in the first."""
    named = SEPARATOR.match(head)
    if named and named[1] in (b",", b";", b"|"):
        return named[1].decode()
    first = head.split(b"\n", 1)[0]
    return max(",;|", key=lambda c: (_named(head, c), _is_table(head, c), first.count(c.encode())))


def looks_like(head: bytes, delimiter: str) -> bool:
    """Whether the first line names a user column and a query column."""
    return _named(head, delimiter) == 2


def is_table(head: bytes, delimiter: str) -> bool:
    """Whether this is a table with a header: its names are usual, or its first lines have equally many fields."""
    return looks_like(head, delimiter) or _is_table(head, delimiter)


def table_lines(file: str, head: bytes, options: ReadOptions, delimiter: str, quoted: bool) -> Lines:
    """How the lines of a file that begins with a header line become rows."""
    names = header(head, delimiter)
    # A first column without a name is the number of a row, as data frames write it; those at the end come from a
    # delimiter behind each row. Neither is read.
    named = names[1:] if names[:1] == [""] else list(names)
    while named and not named[-1]:
        named.pop()
    if len(set(named)) < len(named):
        raise QueryveilError(f"{file}:1 has two columns with the same name; rename one of them.")
    chosen = {column: name for name, column in choose_columns(named, options, f"{file}:1").items()}
    columns = tuple(chosen.get(name, "") for name in names)
    quoted = quoted or in_quotes(head)
    layout = Layout(columns, (len(names),), delimiter, quoted, header=tuple(names))
    return delimited_lines(layout, options.encoding or "utf-8")


def in_quotes(head: bytes) -> bool:
    """Whether all names of a line with tabs are in quotes."""
    fields = head.split(b"\n", 1)[0].strip(b"\r").split(b"\t")
    return all(len(field) > 2 and field[:1] == field[-1:] == b'"' for field in fields)


def _named(head: bytes, delimiter: str) -> int:
    """How many of user and query the first line names."""
    names = header(head, delimiter)
    return len({"user", "query"} & set(known_columns(names))) if len(names) > 1 else 0


def _is_table(head: bytes, delimiter: str) -> bool:
    if b"\x00" in head:
        return False
    # The last line of a sample may be cut off.
    width, *others = [len(row) for row in _rows(head[: head.rfind(b"\n") + 1], delimiter, _FIRST)] or [0]
    return width > 1 and len(others) > 0 and sum(other == width for other in others) > 0.8 * len(others)


def _rows(head: bytes, delimiter: str, most: int) -> list[list[str]]:
    """The first rows; none if they are not rows at all."""
    lines = (line for line in head.decode("utf-8", "replace").split("\n") if line.strip())
    rows = (line.rstrip("\r") + "\n" for line in lines)
    quoted = delimiter != "\t" or in_quotes(head)
    found: list[list[str]] = []
    try:
        for row in csv.reader(rows, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE):
            found.append(row)
            if len(found) == most:
                break
    except csv.Error:  # not a line of CSV at all
        return []
    return found
