"""JSON Lines: one object a line, with columns of any name; nested fields are named by dots (`client.id`)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from queryveil.errors import QueryveilError
from queryveil.formats.rows import BadRows, ReadOptions, Rows, Task, choose_columns
from queryveil.formats.source import Block, blocks, sample
from queryveil.text.arrays import from_offsets

NAME = "jsonl"


def sniff(head: bytes) -> bool:
    """Whether the first line is a JSON object."""
    return first_object(head) is not None


def first_object(head: bytes) -> dict[str, object] | None:
    """The object on the first line that is not blank."""
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.strip():
            try:
                value = json.loads(line)
            except ValueError:
                return None
            return value if isinstance(value, dict) else None
    return None


def read(files: Sequence[Path], options: ReadOptions) -> Iterator[Task]:
    """The rows of JSON Lines files; the first object of a file says what the columns are."""
    for file in files:
        first = first_object(sample(file))
        if first is None:
            raise QueryveilError(f"{file}:1 is not a JSON object; is this really JSON Lines?")
        dotted = [column for column in options.columns.values() if column not in first and "." in column]
        names = [name for name, value in first.items() if not isinstance(value, dict | list)] + dotted
        chosen = choose_columns(names, options, f"{file}:1")
        paths = {name: "." + _quoted(column) for name, column in chosen.items()}
        paths |= {name: _path(column) for name, column in chosen.items() if column in dotted}
        for block in blocks(file, encoding=options.encoding or "utf-8"):
            yield partial(json_rows, block, paths)


def json_rows(block: Block, paths: Mapping[str, str]) -> Rows:
    """The fields at some JSON paths, of every line of a block."""
    from queryveil.kernels.split import gather, split

    data = np.frombuffer(block.data, np.uint8)
    # No line of JSON holds a raw newline, so that any byte that is not in it serves as delimiter.
    fields = split(data, 0, False, 1, block.first_line)
    bad = BadRows()
    bad.add("over-long line", int(block.overlong > 0), f"{block.file}:{block.overlong}")
    if not fields.valid.all():
        wrong = ~fields.valid
        bad.add("undecodable bytes", int(wrong.sum()), f"{block.file}:{fields.line[wrong.argmax()]}")
    keep = np.flatnonzero(fields.valid)
    lines = from_offsets(*gather(data, fields.first[keep, None], fields.last[keep, None], 0, False))
    numbers = fields.line[keep]
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("lines", pa.table({"text": lines, "line": numbers}))
        # Extraction is asked of valid lines alone: on another it would be an error that quotes the line.
        wanted = ", ".join(f"text ->> {_literal('$' + path)} AS {_quoted(name)}" for name, path in paths.items())
        found = connection.sql(
            f"SELECT ok, line{', ' if wanted else ''}{wanted} FROM (SELECT line, ok, CASE WHEN ok THEN text END AS text"
            " FROM (SELECT line, text, coalesce(json_valid(text) AND json_type(text) = 'OBJECT', false) AS ok"
            " FROM (SELECT line, CASE WHEN json_valid(text) THEN text END AS text FROM lines))) ORDER BY line"
        ).to_arrow_table()
    ok = found["ok"].to_numpy()
    number = found["line"].to_numpy()
    if not ok.all():
        bad.add("not a JSON object", int((~ok).sum()), f"{block.file}:{number[(~ok).argmax()]}")
    good = found.filter(pa.array(ok))
    columns = {name: good[name].combine_chunks() for name in paths}
    return Rows(block.file, number[ok], columns, bad)


def _path(dotted: str) -> str:
    return "".join("." + _quoted(part) for part in dotted.split("."))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
