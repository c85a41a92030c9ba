"""User Behavior Insights of OpenSearch: the indices `ubi_queries` and `ubi_events`, exported as NDJSON.

A line is a document, or a document in the `_source` of a search hit; lines of the bulk format that only announce a
document are skipped. A document with an `action_name` is an event, any other a query. Clicks are the events named
`click` (or `item_click`, `product_click`); `query_id` connects them to their query, the position clicked is the rank
and the object clicked the URL. If queries say what was shown (`query_response_hit_ids`), each hit is a row, its place
is the rank, and a click belongs to the first hit with its object. Fields `device`, `country` and `language` of
`query_attributes` are kept.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.engines import DuckDB
from queryveil.formats.jsonl import first_object, json_rows
from queryveil.formats.results import NOT_SHOWN, TOO_LONG
from queryveil.formats.rows import MOST_RESULTS, BadRows, ReadOptions, Rows, Task
from queryveil.formats.source import File, blocks

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
    "hits": "/query_response_hit_ids",
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


def read(files: Sequence[File], options: ReadOptions) -> Iterator[Task]:
    """The rows of UBI exports; all files are read before the first row, because clicks are separate documents."""
    engine = DuckDB()
    bad = BadRows()
    kinds = [(name, pa.string()) for name in _FIELDS] + [("line", pa.int64()), ("file", pa.int32())]
    engine.load("documents", pa.schema(kinds), lambda: _documents(files, options, bad))
    # A query that was exported twice is one query.
    engine.materialize(
        "SELECT *, CASE WHEN json_valid(hits) THEN CASE WHEN json_type(hits) = 'ARRAY' THEN json_array_length(hits)"
        " END END AS shown FROM documents WHERE action IS NULL"
        " QUALIFY row_number() OVER (PARTITION BY id ORDER BY file, line) = 1",
        "all queries",
    )
    engine.materialize(
        "SELECT id, rank, url, line, file FROM documents WHERE action IN ('click', 'item_click', 'product_click')",
        "clicks",
    )
    lost = 'clicks b LEFT JOIN "all queries" q ON q.id = b.id WHERE q.id IS NULL'
    _count_bad(engine, files, bad, "a click without its query", lost)
    _count_bad(engine, files, bad, TOO_LONG, f'"all queries" b WHERE b.shown > {MOST_RESULTS}')
    engine.materialize(f'SELECT * FROM "all queries" WHERE coalesce(shown, 0) <= {MOST_RESULTS}', "queries")  # noqa: S608  # parts of this module
    views = engine.row("SELECT count(shown) FROM queries")[0] > 0
    if views:
        _make_views(engine, files, bad)
    results = ("c.rank", "c.url", *(["c.clicked"] if views else []))
    names = ["user", "query", "time", "rank", "url", *(["clicked"] if views else []), *EXTRAS]
    columns = [*(f'q."{name}"' for name in ("user", "query", "time")), *results, *(f"q.{name}" for name in EXTRAS)]
    selected = ", ".join(f'{column} AS "{name}"' for name, column in zip(names, columns, strict=True))
    rows = engine.stream(
        f"SELECT q.file AS file, q.line AS line, {selected} FROM queries q"  # noqa: S608  # parts of this module
        f" LEFT JOIN {'views' if views else 'clicks'} c ON q.id = c.id ORDER BY q.file, q.line",
        _BATCH,
    )
    for batch in rows:
        numbers = batch["file"].to_numpy()
        for at in np.unique(numbers):
            part = batch.filter(pa.array(numbers == at))
            found = {name: part[name] for name in names if name not in EXTRAS}
            found |= {name: part[name] for name in EXTRAS if part[name].null_count < len(part)}
            result = Rows(str(files[int(at)]), part["line"].to_numpy(), found, bad)
            bad = BadRows()
            yield partial(_same, result)
    if bad.total:  # not one good query to hang them on
        empty = {name: pa.array([], pa.string()) for name in ("user", "query")}
        yield partial(_same, Rows(str(files[0]), np.empty(0, np.int64), empty, bad))
    engine.close()


def _make_views(engine: DuckDB, files: Sequence[File], bad: BadRows) -> None:
    """Make the table of what queries showed: id, rank, url and clicked; what was clicked in a query without a list."""
    engine.materialize(
        "SELECT id, place, one ->> '$' AS url FROM (SELECT id, unnest(list) AS one, generate_subscripts(list, 1) AS"
        " place FROM (SELECT id, CAST(hits AS JSON[]) AS list FROM queries WHERE shown > 0))",
        "hits",
    )
    first = "SELECT id, url, min(place) AS place FROM hits WHERE url IS NOT NULL GROUP BY id, url"
    not_shown = (
        f"clicks b JOIN queries q ON q.id = b.id LEFT JOIN ({first}) h ON h.id = b.id AND h.url = b.url"
        " WHERE q.shown IS NOT NULL AND h.id IS NULL"
    )
    _count_bad(engine, files, bad, NOT_SHOWN, not_shown)
    engine.materialize(
        "SELECT h.id AS id, CAST(h.place AS VARCHAR) AS rank, h.url AS url, CASE WHEN c.id IS NULL THEN '0' ELSE '1'"  # noqa: S608  # parts of this module
        f" END AS clicked FROM hits h LEFT JOIN ({first}) f ON f.id = h.id AND f.place = h.place LEFT JOIN (SELECT id,"
        " url FROM clicks GROUP BY id, url) c ON c.id = f.id AND c.url = f.url UNION ALL SELECT c.id AS id, c.rank AS"
        " rank, c.url AS url, '1' AS clicked FROM clicks c JOIN queries q ON q.id = c.id WHERE q.shown IS NULL",
        "views",
    )


def _count_bad(engine: DuckDB, files: Sequence[File], bad: BadRows, kind: str, documents: str) -> None:
    """Count documents `b` that are bad, and find the first."""
    lost, file, line = engine.row(
        f"SELECT count(*), arg_min(b.file, (b.file, b.line)), arg_min(b.line, (b.file, b.line)) FROM {documents}"  # noqa: S608  # parts of this module
    )
    if lost:
        bad.add(kind, lost, f"{files[file]}:{line}")


def _same(rows: Rows) -> Rows:
    return rows


def _documents(files: Sequence[File], options: ReadOptions, bad: BadRows) -> Iterator[pa.RecordBatch]:
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
