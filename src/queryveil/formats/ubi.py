"""User Behavior Insights of OpenSearch: the indices `ubi_queries` and `ubi_events`, exported as NDJSON.

A line is a document, or a document in the `_source` of a search hit; lines of the bulk format that only announce a
document are skipped. A document with an `action_name` is an event, any other a query. Clicks are the events named
`click` (or `item_click`, `product_click`); `query_id` connects them to their query, the position clicked is the rank
and the object clicked the URL. Fields `device`, `country` and `language` of `query_attributes` are kept.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.engines import DuckDB
from queryveil.formats.jsonl import first_object, json_rows
from queryveil.formats.rows import BadRows, ReadOptions, Rows, Task
from queryveil.formats.source import blocks

NAMED_COLUMNS = False
EXTRAS = ("device", "country", "language")
_BATCH = 250_000
_FIELDS = {
    "id": "/query_id",
    "user": "/client_id",
    "query": "/user_query",
    "time": "/timestamp",
    "action": "/action_name",
    "url": "/event_attributes/object/object_id",
    "rank": "/event_attributes/position/ordinal",
    **{name: f"/query_attributes/{name}" for name in EXTRAS},
}


def sniff(head: bytes) -> bool:
    """Whether the first document has the fields that every UBI document has."""
    first = first_object(head)
    if first is None:
        return False
    announced = first.get("index") or first.get("create")
    if isinstance(announced, dict):
        return str(announced.get("_index", "")).startswith("ubi_")
    source = first.get("_source", first)
    return isinstance(source, dict) and "query_id" in source and "client_id" in source


def read(files: Sequence[Path], options: ReadOptions) -> Iterator[Task]:
    """The rows of UBI exports; all files are read before the first row, because clicks are separate documents."""
    engine = DuckDB()
    bad = BadRows()
    kinds = [(name, pa.string()) for name in _FIELDS] + [("line", pa.int64()), ("file", pa.int32())]
    engine.load("documents", pa.schema(kinds), lambda: _documents(files, options, bad))
    clicks = "SELECT id, rank, url, line, file FROM documents WHERE action IN ('click', 'item_click', 'product_click')"
    # A query that was exported twice is one query.
    queries = (
        "SELECT * FROM documents WHERE action IS NULL"
        " QUALIFY row_number() OVER (PARTITION BY id ORDER BY file, line) = 1"
    )
    lost, file, line = engine.row(
        f"SELECT count(*), arg_min(c.file, (c.file, c.line)), arg_min(c.line, (c.file, c.line)) FROM ({clicks}) c"  # noqa: S608  # parts of this module
        f" LEFT JOIN ({queries}) q ON q.id = c.id WHERE q.id IS NULL"
    )
    if lost:
        bad.add("a click without its query", lost, f"{files[file]}:{line}")
    extras = ", ".join(f"q.{name} AS {name}" for name in EXTRAS)
    rows = engine.stream(
        'SELECT q.file AS file, q.line AS line, q."user" AS "user", q.query AS query, q.time AS time,'  # noqa: S608  # parts of this module
        f" c.rank AS rank, c.url AS url, {extras} FROM ({queries}) q LEFT JOIN ({clicks}) c ON q.id = c.id"
        " ORDER BY q.file, q.line",
        _BATCH,
    )
    for batch in rows:
        numbers = batch["file"].to_numpy()
        for at in np.unique(numbers):
            part = batch.filter(pa.array(numbers == at))
            columns = {name: part[name] for name in ("user", "query", "time", "rank", "url")}
            columns |= {name: part[name] for name in EXTRAS if part[name].null_count < len(part)}
            result = Rows(str(files[int(at)]), part["line"].to_numpy(), columns, bad)
            bad = BadRows()
            yield partial(_same, result)
    if bad.total:  # not one good query to hang them on
        empty = {name: pa.array([], pa.string()) for name in ("user", "query")}
        yield partial(_same, Rows(str(files[0]), np.empty(0, np.int64), empty, bad))
    engine.close()


def _same(rows: Rows) -> Rows:
    return rows


def _documents(files: Sequence[Path], options: ReadOptions, bad: BadRows) -> Iterator[pa.RecordBatch]:
    paths = _FIELDS | {f"_{name}": f"/_source{path}" for name, path in _FIELDS.items()}
    paths |= {"index": "/index", "create": "/create"}
    for number, file in enumerate(files):
        for block in blocks(file, encoding=options.encoding or "utf-8"):
            found = json_rows(block, paths)
            bad.merge(found.bad)
            columns = {name: pc.coalesce(found.columns[name], found.columns[f"_{name}"]) for name in _FIELDS}
            announced = pc.is_valid(pc.coalesce(found.columns["index"], found.columns["create"]))
            announced = pc.and_(announced, pc.is_null(columns["id"]))
            columns["line"] = pa.array(found.line)
            columns["file"] = pa.array(np.full(len(found.line), number, np.int32))
            yield pa.RecordBatch.from_pydict(columns).filter(pc.invert(announced))
