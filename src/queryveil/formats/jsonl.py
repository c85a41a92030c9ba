"""JSON Lines: one object per line, with columns of any name; nested fields are named with dots (`client.id`)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.engines import locked
from queryveil.formats.rows import MOST_COLUMNS, BadRows, ReadOptions, Rows, check_width, choose_columns
from queryveil.formats.source import Block, Lines
from queryveil.text.arrays import from_offsets

NAMED_COLUMNS = True


def sniff(head: bytes) -> bool:
    """Whether the first line is a JSON object."""
    return first_object(head) is not None


def first_object(head: bytes) -> dict[str, object] | None:
    """The object on the first line that is not blank."""
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                return None
            return value if isinstance(value, dict) else None
    return None


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How JSON Lines become rows."""
    return Lines(partial(_rows, options), options.encoding or "utf-8")


def _rows(options: ReadOptions, block: Block) -> Rows:
    # Writers leave out null values, so the keys of every object of a block are collected.
    with _lines(block) as (connection, lines, bad):
        named = "SELECT text, unnest(json_keys(text)) AS key FROM good"
        some = f"SELECT DISTINCT key FROM ({named}) LIMIT {MOST_COLUMNS + 1}"  # noqa: S608  # parts of this module
        check_width(connection.execute(some).fetchall(), block.file)
        pointer = "concat('/', replace(replace(key, '~', '~0'), '/', '~1'))"
        keys = connection.execute(
            f"SELECT key, bool_or(json_type(text, {pointer}) IN ('OBJECT', 'ARRAY')) FROM ({named})"  # noqa: S608  # parts of this module
            " GROUP BY key ORDER BY key"
        ).fetchall()
        plain = [key for key, is_nested in keys if not is_nested]
        dotted = [column for column in options.columns.values() if column not in plain and "." in column]
        if not plain and not dotted:
            return Rows(block.file, lines[:0], {name: pa.array([], pa.string()) for name in ("user", "query")}, bad)
        chosen = choose_columns([*plain, *dotted], options, block.file)
        paths = {name: _pointer(column.split(".") if column in dotted else [column]) for name, column in chosen.items()}
        return Rows(block.file, lines, _extracted(connection, paths), bad)


def json_rows(block: Block, paths: Mapping[str, str]) -> Rows:
    """The fields at some JSON pointers (RFC 6901), of every line of a block."""
    with _lines(block) as (connection, lines, bad):
        return Rows(block.file, lines, _extracted(connection, paths), bad)


@contextmanager
def _lines(block: Block) -> Iterator[tuple[duckdb.DuckDBPyConnection, NDArray[np.int64], BadRows]]:
    """The lines of a block that are JSON objects, as a table `good`, with their numbers."""
    from queryveil.kernels.split import gather, split

    data = np.frombuffer(block.data, np.uint8)
    # No line of JSON has a raw newline, so any byte that is not in it can be the delimiter.
    fields = split(data, 0, False, 1, block.first_line)
    bad = BadRows()
    bad.add("over-long line", int(block.overlong > 0), f"{block.file}:{block.overlong}")
    if not fields.valid.all():
        wrong = ~fields.valid
        bad.add("undecodable bytes", int(wrong.sum()), f"{block.file}:{fields.line[wrong.argmax()]}")
    keep = np.flatnonzero(fields.valid)
    lines = from_offsets(*gather(data, fields.first[keep, None], fields.last[keep, None], 0, False))
    numbers = fields.line[keep]
    with locked({"threads": 1}) as connection:
        connection.register("lines", pa.table({"text": lines, "line": numbers}))
        # Only valid lines are extracted: another would raise an error that quotes the line.
        valid = connection.sql(
            "SELECT line, coalesce(json_type(text) = 'OBJECT', false) AS ok FROM"
            " (SELECT line, CASE WHEN json_valid(text) THEN text END AS text FROM lines) ORDER BY line"
        ).to_arrow_table()
        ok = valid["ok"].to_numpy()
        if not ok.all():
            bad.add("not a JSON object", int((~ok).sum()), f"{block.file}:{numbers[(~ok).argmax()]}")
        connection.register("good", pa.table({"text": lines, "line": numbers}).filter(pa.array(ok)))
        yield connection, numbers[ok], bad


def _extracted(connection: duckdb.DuckDBPyConnection, paths: Mapping[str, str]) -> dict[str, pa.Array]:
    selected = ", ".join(f"text ->> ${i + 1} AS c{i}" for i in range(len(paths)))
    query = f"SELECT {selected} FROM good ORDER BY line"  # noqa: S608  # parts of this module
    found = connection.sql(query, params=list(paths.values())).to_arrow_table()
    return {name: found[f"c{i}"].combine_chunks() for i, name in enumerate(paths)}


def _pointer(keys: Sequence[str]) -> str:
    # A pointer works with any key: also an empty one, and one with quotes, dots or spaces.
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
