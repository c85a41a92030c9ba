"""Which column is what: the beginning of a log whose format is not detected, masked, for a person to say so."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.errors import QueryveilError
from queryveil.formats import FORMATS
from queryveil.formats.detection import detect_head
from queryveil.formats.input import checked_encoding
from queryveil.formats.json import lines_of
from queryveil.formats.rows import CANONICAL, MOST_COLUMNS, known_columns
from queryveil.formats.source import File, find_files, sample
from queryveil.formats.table import csv_delimiter, header_of
from queryveil.reports.examples import shape
from queryveil.studio.project import Reading
from queryveil.text.show import printable, shortened

NAMED = ("csv", "tsv", "json", "jsonl", "parquet")
"""Formats whose columns can be named."""
_ROWS, _LONGEST = 5, 24


@dataclass(frozen=True)
class Preview:
    """The beginning of a log.

    Attributes:
        format: What it probably is.
        columns: The names of its columns.
        rows: Its first rows, with the first letter of each text.
    """

    format: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def shapes(self) -> tuple[str, ...]:
        """The names as they are shown while texts are masked: a file without a header has somebody's query there."""
        if self.format not in ("csv", "tsv"):
            return self.columns
        known = known_columns(self.columns).values()
        return tuple(name if name in known else shape(name, set(), whole=False) for name in self.columns)

    @property
    def roles(self) -> tuple[str, ...]:
        """What a column can be."""
        return CANONICAL


def preview(paths: Sequence[str], format: str | None, encoding: str | None = None) -> Preview:
    """Look at the beginning of the first file of a log.

    Args:
        paths: The log.
        format: Its format, if somebody said so.
        encoding: Its encoding, if somebody said so; names of columns are in it too.
    """
    file = find_files(paths)[0]
    head = sample(file, checked_encoding(encoding))
    known = format or _guessed(str(file), head)
    if known == "parquet":
        return Preview(known, _parquet(file), ())
    if known in ("json", "jsonl"):
        return replace(_objects(lines_of(head) if known == "json" else head), format=known)
    if known not in NAMED:
        return Preview(known, (), ())
    columns = tuple(printable(name) for name in header_of(known, head))[:MOST_COLUMNS]
    lines = head.decode("utf-8", "replace").splitlines()[1 : _ROWS + 1]
    delimiter = "\t" if known == "tsv" else csv_delimiter(head)
    return Preview(known, columns, tuple(_row(line, delimiter, len(columns)) for line in lines))


def mapped(paths: Sequence[str], form: Mapping[str, str], before: Reading) -> Reading:
    """How a log is to be read, as a form says: `format`, and for the number of each column its role."""
    format = form.get("format", "")
    if format not in FORMATS:
        raise QueryveilError(f"Choose a format: {', '.join(FORMATS)}.")
    encoding = form.get("encoding", "").strip() or None
    names = preview(paths, format, encoding).columns
    columns: dict[str, str] = {}
    for place, name in enumerate(names):
        role = form.get(f"role.{place}", "")
        if role and role not in CANONICAL:
            raise QueryveilError("A column has no such role; load the page again.")
        if role in columns:
            raise QueryveilError(f"Two columns are chosen as {role}; choose one.")
        if role:
            columns[role] = name
    if format in NAMED and columns and not {"user", "query"} <= columns.keys():
        raise QueryveilError("Choose which column has the users, and which the queries.")
    language = form.get("language", "").strip() or None
    times = form.get("time_format", "").strip() or None
    named = {"format": format, "columns": columns, "language": language, "encoding": encoding, "time_format": times}
    return before.model_copy(update=named)


def _guessed(file: str, head: bytes) -> str:
    try:
        return detect_head(file, head)
    except QueryveilError:
        first = head.split(b"\n", 1)[0].strip()
        if first.startswith(b"{"):
            return "jsonl"
        return "tsv" if b"\t" in first else "csv"


def _parquet(file: File) -> tuple[str, ...]:
    try:
        return tuple(pq.read_schema(file if isinstance(file, Path) else file.open()).names)[:MOST_COLUMNS]
    except (pa.ArrowException, OSError):
        raise QueryveilError(f"{file} is not a Parquet file; choose another format.") from None


def _objects(head: bytes) -> Preview:
    """The keys of the first objects."""
    found: list[dict[str, object]] = []
    for line in head.splitlines()[:_ROWS]:
        try:
            one = json.loads(line)
        except (ValueError, RecursionError):
            continue
        found += [one] if isinstance(one, dict) else []
    columns = tuple(dict.fromkeys(printable(key) for one in found for key in one))[:MOST_COLUMNS]
    return Preview("jsonl", columns, tuple(tuple(_hidden(str(one.get(key, ""))) for key in columns) for one in found))


def _row(line: str, delimiter: str, width: int) -> tuple[str, ...]:
    try:
        cells = line.split(delimiter) if delimiter == "\t" else next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        cells = []
    return tuple(_hidden(cell) for cell in [*cells, *[""] * width][:width])


def _hidden(text: str) -> str:
    """The shape of a text: digits and signs stay what they are, and of a word one sees how long it is."""
    kinds = ("#" if c.isdigit() else "·" if c.isalpha() else c for c in printable(text))
    return shortened("".join(kinds), _LONGEST)
