"""JSON Lines: one object per line, with columns of any name; nested fields are named with dots (`client.id`).

An object may hold the list of results that were shown (`queryveil.formats.results`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.engines import locked
from queryveil.formats.results import (
    NAMES,
    PARTS,
    RESULTS,
    Lists,
    check_events,
    find_results,
    of_events,
    one_per_result,
    parts_of,
)
from queryveil.formats.rows import (
    MOST_COLUMNS,
    MOST_RESULTS,
    BadRows,
    ReadOptions,
    Rows,
    check_width,
    choose_columns,
    known_columns,
    plain_name,
)
from queryveil.formats.source import Block, Lines
from queryveil.text.arrays import from_offsets

NAMED_COLUMNS = True
_HEAD = 200
"""How many lines say whether a file has results."""
_DEEPEST = 5


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


def names(file: object, head: bytes) -> list[str]:
    """The keys of the first objects, and of the objects in them with dots."""
    keys: dict[str, None] = {}
    for line in head.split(b"\n")[:_HEAD]:
        keys.update(dict.fromkeys(_dotted(first_object(line) or {})))
    return list(keys)


def _dotted(one: Mapping[str, object], depth: int = 0) -> Iterator[str]:
    for key, value in one.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from (f"{key}.{inside}" for inside in _dotted(value, depth + 1))
        elif not isinstance(value, dict | list):
            yield key


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How JSON Lines become rows."""
    return Lines(partial(_rows, options, _shows(head, options)), options.encoding or "utf-8")


def _shows(head: bytes, options: ReadOptions) -> bool:
    """Whether the first lines say which results were shown; others, whose writer left out what is null, then do too."""
    keys: set[str] = set()
    for line in head.split(b"\n")[:_HEAD]:
        first = first_object(line)
        keys.update({} if first is None else first)
    plain = {plain_name(key) for key in keys}
    return "clicked" in known_columns(list(keys)) or bool(plain & set(NAMES)) or RESULTS in options.columns


def _rows(options: ReadOptions, shows: bool, block: Block) -> Rows:
    # Writers leave out null values, so the keys of every object of a block are collected.
    with _lines(block) as (connection, lines, bad):
        named = "SELECT text, unnest(json_keys(text)) AS key FROM good"
        some = f"SELECT DISTINCT key FROM ({named}) LIMIT {MOST_COLUMNS + 1}"  # noqa: S608  # parts of this module
        check_width(connection.execute(some).fetchall(), block.file)
        pointer = "concat('/', replace(replace(key, '~', '~0'), '/', '~1'))"
        keys = connection.execute(
            f"SELECT key, bool_or(kind IN ('OBJECT', 'ARRAY')), bool_or(kind = 'ARRAY') FROM"  # noqa: S608  # parts of this module
            f" (SELECT key, json_type(text, {pointer}) AS kind FROM ({named})) GROUP BY key ORDER BY key"
        ).fetchall()
        plain = [key for key, is_nested, _ in keys if not is_nested]
        lists = [key for key, _, is_list in keys if is_list]
        results = options.columns.get(RESULTS) or find_results(lists, options)
        events = options if results is None else of_events(options, results)
        if results is not None:  # the addresses that were clicked may be a list too
            clicked = events.columns.get("clicked") or known_columns(lists).get("clicked")
            plain += [clicked] if clicked in lists else []
        dotted = [column for column in events.columns.values() if column not in plain and "." in column]
        if not plain and not dotted:
            return Rows(block.file, lines[:0], {name: pa.array([], pa.string()) for name in ("user", "query")}, bad)
        chosen = choose_columns([*plain, *dotted], events, block.file)

        def path(column: str, known: Sequence[str] = plain) -> str:
            return _pointer([column] if column in known else column.split("."))

        paths = {name: path(column) for name, column in chosen.items()}
        if results is None:
            made = Rows(block.file, lines, _extracted(connection, paths), bad)
            if shows and "clicked" not in made.columns:
                made.columns["clicked"] = pa.nulls(len(lines), pa.string())
            return made
        check_events(chosen, block.file)
        beside = paths.pop("clicked", None)
        made = Rows(block.file, lines, _extracted(connection, paths), bad)
        return one_per_result(made, _lists(connection, path(results, lists), beside, lines, options, results))


def _lists(
    connection: duckdb.DuckDBPyConnection,
    pointer: str,
    beside: str | None,
    lines: NDArray[np.int64],
    options: ReadOptions,
    results: str,
) -> Lists:
    """The lists of results at a pointer, and the addresses that were clicked, at another."""
    counted = "SELECT coalesce(json_array_length(text, $1), 0) AS n FROM good ORDER BY line"
    count = connection.sql(counted, params=[pointer]).to_arrow_table()["n"].to_numpy().astype(np.int64)
    # Those that are too long are not taken apart.
    listed = (
        "SELECT line, unnest(list) AS one, generate_subscripts(list, 1) AS place FROM (SELECT line,"  # noqa: S608  # parts of this module
        " CAST(json_extract(text, $1) AS JSON[]) AS list FROM good"
        f" WHERE json_array_length(text, $1) BETWEEN 1 AND {MOST_RESULTS})"
    )
    keys = connection.execute(
        "SELECT DISTINCT key FROM (SELECT unnest(json_keys(one)) AS key FROM"  # noqa: S608  # parts of this module
        f" ({listed}) WHERE json_type(one) = 'OBJECT') ORDER BY key LIMIT {MOST_COLUMNS + 1}",
        [pointer],
    ).fetchall()
    check_width(keys, "A result")
    parts = parts_of([key for (key,) in keys], options, results)
    field = {name: f"one ->> ${i + 2}" for i, name in enumerate(parts)}
    alone = {"url": "one ->> '$'"}  # a result that is no object is an address
    known = {name: (field.get(name, "NULL"), alone.get(name, "NULL")) for name in PARTS}
    selected = ", ".join(
        f"CASE WHEN json_type(one) = 'OBJECT' THEN {inside} ELSE {outside} END AS {name}"
        for name, (inside, outside) in known.items()
    )
    made = connection.sql(
        f"SELECT {selected} FROM ({listed}) ORDER BY line, place",  # noqa: S608  # parts of this module
        params=[pointer, *(_pointer([key]) for key in parts.values())],
    ).to_arrow_table()
    found = {name: made[name].combine_chunks().cast(pa.string()) for name in PARTS}
    if beside is None:
        return Lists(count, found)
    clicks = connection.sql(
        "SELECT line, one ->> '$' AS url FROM (SELECT line, unnest(CASE WHEN json_type(text, $1) = 'ARRAY' THEN"
        " CAST(json_extract(text, $1) AS JSON[]) ELSE [json_extract(text, $1)] END) AS one FROM good)"
        " WHERE one ->> '$' IS NOT NULL ORDER BY line",
        params=[beside],
    ).to_arrow_table()
    at = np.searchsorted(lines, clicks["line"].to_numpy())
    return Lists(count, found, at, clicks["url"].combine_chunks().cast(pa.string()))


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
