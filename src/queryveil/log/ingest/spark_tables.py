"""The tables of a log on a cluster, from its numbered rows: dictionaries, events, words, and the digest of all rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets
from queryveil.engines import identifier
from queryveil.engines.spark import Spark
from queryveil.engines.spark_errors import working
from queryveil.engines.spark_tasks import FIRST, ddl, of_group
from queryveil.errors import QueryveilError
from queryveil.log import LogStats
from queryveil.log.ingest.content import NOTHING, Section, content, ordered, row_block, shift, signed, text_block
from queryveil.text import Language
from queryveil.text.arrays import byte_spans
from queryveil.text.columns import Digests

Known = Mapping[tuple[int, int], int]
"""The ids of texts whose own id another text has too, by digest."""


def ids(found: Digests, known: Known, mask: int) -> NDArray[np.int64]:
    """The ids of texts with these digests: the first half, as a signed number in the same order."""
    low, high = found
    result = low & np.uint64(mask)
    for (a, b), number in known.items():
        result[(low == np.uint64(a)) & (high == np.uint64(b))] = np.uint64(number)
    return signed(result)


_DIGESTED = pa.schema([("part", pa.int64()), ("block", pa.int64()), ("digest", pa.string())])
_PARTS = 1 << 40
"""More than there are blocks on either side of 0."""


def digest_rows(
    engine: Spark, extras: Sequence[str], rows: int, texts: Mapping[str, int], views: bool = False
) -> bytes:
    """The digest of all rows, as on one machine: each block is digested where it is.

    Args:
        engine: The cluster.
        extras: The extra columns.
        rows: How many rows there are.
        texts: How many distinct texts there are of each kind.
        views: Whether rows are results shown.
    """
    sizes = {kind: texts[kind] for kind in ("user", "query", "url", *(f"extra {name}" for name in sorted(extras)))}

    def digest_texts(batch: pa.RecordBatch) -> bytes:
        ids = batch["id"].to_numpy()
        order = np.argsort(ids)
        return text_block(ids[order], batch["text"].take(pa.array(order)))

    listed = (
        f'SELECT CAST({i} AS BIGINT) AS part, shiftright("{key}", {shift(size)}) AS block, "{key}" AS id,'  # noqa: S608  # names are escaped
        f' "{text}" AS text FROM {identifier(name)}'
        for i, (size, (name, key, text)) in enumerate(zip(sizes.values(), map(_table, sizes), strict=True))
    )
    found = _digested(engine, " UNION ALL ".join(listed), digest_texts, sizes)
    names = [f"{name} id" for name in sorted(extras) if sizes[f"extra {name}"]]
    columns = ["user_id", "time", "query_id", "rank", "url_id", *(["clicked"] if views else []), *names]

    def digest(batch: pa.RecordBatch) -> bytes:
        values = [pc.fill_null(batch[name].cast(pa.int64()), NOTHING).to_numpy() for name in columns]
        return row_block(ordered(values))

    listed_columns = ", ".join(map(identifier, columns))
    listed_rows = (
        f"SELECT CAST(0 AS BIGINT) AS part, shiftright(user_id, {shift(rows)}) AS block, {listed_columns} FROM raw"  # noqa: S608  # names are escaped
        " WHERE note IS NULL"
    )
    return content(_digested(engine, listed_rows, digest, {"results" if views else "rows": rows})[0], found)


def _digested(
    engine: Spark, rows: str, digest: Callable[[pa.RecordBatch], bytes], sizes: Mapping[str, int]
) -> list[Section]:
    """Digest lists block by block.

    Args:
        engine: The cluster.
        rows: SQL of part, the number of the list, block, and what the function needs.
        digest: The digest of a block.
        sizes: What the lists are called, and how long they are.
    """

    def of_block(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [batch["part"][:1], batch["block"][:1], pa.array([digest(batch).hex()])]
        return pa.RecordBatch.from_arrays(columns, schema=_DIGESTED)

    keyed = f"SELECT *, part * {_PARTS} + block AS one FROM ({rows}) AS listed"  # noqa: S608  # names are escaped
    with working():  # one line for each block
        blocks = engine.sql(keyed).groupBy("one").applyInArrow(of_group(of_block, _DIGESTED), ddl(_DIGESTED)).toArrow()
    found = blocks.sort_by([("part", "ascending"), ("block", "ascending")])
    part, block, digests = found["part"].to_numpy(), found["block"].to_numpy(), found["digest"].to_pylist()
    edges = np.searchsorted(part, np.arange(len(sizes) + 1))
    return [
        Section(name, size, block[start:end], [bytes.fromhex(text) for text in digests[start:end]])
        for (name, size), (start, end) in zip(sizes.items(), pairwise(edges.tolist()), strict=True)
    ]


def _table(kind: str) -> tuple[str, str, str]:
    """The table of the texts of a kind, and its columns: the id and the text."""
    return {
        "user": ("users", "user_id", "user"),
        "query": ("queries", "query_id", "query"),
        "url": ("urls", "url_id", "url"),
    }.get(kind, (kind, "id", "value"))


def dictionaries(
    engine: Spark, kinds: Sequence[str], mask: int
) -> tuple[dict[str, int], dict[str, dict[tuple[int, int], int]]]:
    """Make the tables of the texts of some kinds.

    Returns:
        How many texts there are of each kind, and the ids that those should have that share one.
    """
    for kind in kinds:
        name, key, text = _table(kind)
        column, value = (key, text) if key != "id" else (f"{kind[6:]} id", f"{kind[6:]} text")
        column, value = identifier(column), identifier(value)
        # Queries are kept together with what is asked about them. In a log of views, each text is there too often.
        hint = "/*+ REPARTITION(query_id) */" if kind == "query" and "clicked" not in engine.columns("raw") else ""
        distinct = (
            f'SELECT {column} AS "{key}", {value} AS "{text}" FROM (SELECT {hint} {column}, {value} FROM raw'  # noqa: S608  # names are escaped
            f" WHERE {value} IS NOT NULL) AS given GROUP BY {column}, {value}"
        )
        if kind == "user":
            engine.map(distinct, _with_digest, _USERS, name)
        else:
            engine.materialize(distinct, name)
    listed = " UNION ALL ".join(
        f'SELECT {i} AS kind, "{key}" AS id FROM {identifier(name)}'  # noqa: S608  # names are escaped
        for i, (name, key, _) in enumerate(map(_table, kinds))
    )
    found = engine.fetch(
        "SELECT kind, CAST(sum(n) AS BIGINT) AS texts, max(n) AS most FROM"  # noqa: S608  # names are escaped
        f" (SELECT kind, id, count(*) AS n FROM ({listed}) AS listed GROUP BY kind, id) AS ids GROUP BY kind"
    ).to_pylist()
    sizes = dict.fromkeys(kinds, 0) | {kinds[row["kind"]]: row["texts"] for row in found}
    shared = [kinds[row["kind"]] for row in found if row["most"] > 1]
    return sizes, {kind: find_clashes(engine, *_table(kind), mask) for kind in shared}


_USERS = pa.schema([("user_id", pa.int64()), ("user", pa.string()), ("digest", pa.int64())])


def _with_digest(batch: pa.RecordBatch) -> pa.RecordBatch:
    from queryveil.kernels.digest import digests

    low = digests(*byte_spans(batch["user"]))[0].view(np.int64)
    return pa.RecordBatch.from_arrays([batch["user_id"], batch["user"], pa.array(low)], schema=_USERS)


def find_clashes(engine: Spark, name: str, key: str, text: str, mask: int) -> dict[tuple[int, int], int]:
    """The ids of texts that share one, side by side in the order of their digests."""
    from queryveil.kernels.digest import digests

    table = identifier(name)
    found = engine.fetch(
        f'SELECT t."{key}" AS id, t."{text}" AS text FROM {table} t JOIN (SELECT "{key}" FROM {table}'  # noqa: S608  # names are escaped
        f' GROUP BY "{key}" HAVING count(*) > 1) AS twice ON twice."{key}" = t."{key}"'
    )
    if len(found) == 0:
        return {}
    low, high = digests(*byte_spans(found["text"].combine_chunks()))
    by_id: dict[int, list[tuple[int, int]]] = {}
    for number, a, b in zip(found["id"].to_pylist(), low.tolist(), high.tolist(), strict=True):
        by_id.setdefault(number, []).append((a, b))
    result = {}
    for number, clash in by_id.items():
        if len(set(clash)) < len(clash):
            raise QueryveilError(
                "Two texts of the log have the same digest, which does not happen unless it is forged."
            )
        base = (number & 2**64 - 1) ^ 2**63
        for place, both in enumerate(sorted(clash)):
            result[both] = base + place
    return result


def make_events(engine: Spark, extras: Sequence[str], some_untimed: bool, views: bool = False) -> None:
    """Number the events in the order of user, time and query, and hang the clicks on them, or the results shown.

    They are sent to the part of their query, where all that is asked about queries finds them.
    """
    from queryveil.kernels.times import MISSING

    missing = f"CAST('{MISSING}' AS BIGINT)"
    names = [identifier(f"{name} id") for name in extras]
    more = "".join(f", {name}" for name in names)
    # A row without a time is an event of its own; its place among its like does not depend on the order of rows.
    order = ", ".join(f"{key} NULLS FIRST" for key in ("rank", "url_id", *(f"nullif({name}, -1)" for name in names)))
    place = f"row_number() OVER (PARTITION BY user_id, query_id ORDER BY {order})"
    columns = f"user_id, time, query_id, rank, url_id{', clicked' if views else ''}{more}"
    rows = f"SELECT {columns}, CAST(0 AS BIGINT) AS place FROM raw WHERE note IS NULL AND time <> {missing}"  # noqa: S608  # names are escaped
    untimed = f"FROM raw WHERE note IS NULL AND time = {missing}"
    if some_untimed:
        rows += f" UNION ALL SELECT {columns}, CAST({place} AS BIGINT) AS place {untimed}"
    engine.number(rows, ("user_id", "time", "query_id", "place"), "numbered", "n")
    moment = f"CASE WHEN time = {missing} THEN NULL ELSE CAST(timestamp_micros(time) AS TIMESTAMP_NTZ) END AS time"
    largest = "".join(f", coalesce(max(nullif({name}, -1)), -1) AS {name}" for name in names)
    # The rows of an event differ in its clicks and in extra columns alone, so without these any of them will do.
    one_row = "GROUP BY n, user_id, query_id, time" if extras else f'WHERE "{FIRST}"'
    by_query = "SELECT /*+ REPARTITION(query_id) */"
    engine.materialize(
        f"{by_query} n - 1 AS event_id, user_id, query_id, {moment}{largest} FROM numbered {one_row}",
        "events",
    )
    result = "FROM numbered WHERE url_id IS NOT NULL OR rank IS NOT NULL"
    if views:
        engine.materialize(
            f"{by_query} n - 1 AS event_id, user_id, query_id, rank, url_id, max(clicked) AS clicked {result}"
            " GROUP BY n, user_id, query_id, rank, url_id",
            "views",
        )
        result = "FROM (SELECT event_id + 1 AS n, user_id, query_id, rank, url_id FROM views WHERE clicked = 1) AS v"
    engine.materialize(f"{by_query} n - 1 AS event_id, user_id, query_id, rank, url_id {result}", "clicks")
    engine.drop("numbered")


_TERMS = pa.schema([("query_id", pa.int64()), ("position", pa.int32()), ("word_id", pa.int64()), ("word", pa.string())])


def make_words(engine: Spark, known: dict[tuple[int, int], int], id_mask: int, language: Language) -> None:
    """Split every distinct query into words: `query_terms` and `words`."""
    while True:
        split = partial(_split, known=known, mask=id_mask, language=language)
        engine.map("SELECT query_id, query FROM queries", split, _TERMS, "split queries")
        engine.materialize(
            'SELECT word_id, word FROM "split queries" WHERE word IS NOT NULL GROUP BY word_id, word', "words"
        )
        clashes = find_clashes(engine, "words", "word_id", "word", id_mask)
        if not clashes:
            break
        known.update(clashes)
    engine.view('SELECT query_id, position, word_id FROM "split queries"', "query_terms")


def word_ids(text: pa.Array, known: Known, mask: int) -> NDArray[np.int64]:
    """The ids of words."""
    from queryveil.kernels.digest import digests

    return ids(digests(*byte_spans(text)), known, mask)


def _split(batch: pa.RecordBatch, *, known: Known, mask: int, language: Language) -> pa.RecordBatch:
    """The words of some queries; the text of a word is with one of the rows that have it, which is enough."""
    per_query, text = language.words(batch["query"])
    distinct = text.dictionary_encode()
    codes = distinct.indices.to_numpy()
    other = np.ones(len(codes), np.bool_)
    other[np.unique(codes, return_index=True)[1]] = False
    columns = {
        "query_id": np.repeat(batch["query_id"].to_numpy(), per_query),
        "position": Ragged(offsets(per_query)).within.astype(np.int32),
        "word_id": word_ids(distinct.dictionary, known, mask)[codes],
        "word": pc.if_else(pa.array(other), None, text.cast(pa.string())),
    }
    return pa.RecordBatch.from_pydict(columns, schema=_TERMS)


def stats_of(engine: Spark, known: LogStats, views: bool) -> LogStats:
    """What is known of a log, with what the tables hold counted; `views` says whether there is such a table."""
    tables = ("events", "users", "queries", "words", "clicks", *(["views"] if views else []))
    counted = engine.fetch(
        " UNION ALL ".join(
            f"SELECT '{name}' AS name, count(*) AS n, count({'time' if name == 'events' else '*'}) AS timed FROM {name}"  # noqa: S608  # parts are this package's own
            for name in tables
        )
    ).to_pylist()
    counts = {row["name"]: row["n"] for row in counted}
    timed = next(row["timed"] for row in counted if row["name"] == "events")
    return replace(known, **{"views": 0} | counts, timed=timed)
