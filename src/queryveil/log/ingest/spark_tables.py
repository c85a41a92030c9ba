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


def digest_rows(engine: Spark, extras: Sequence[str], views: bool = False) -> bytes:
    """The digest of all rows, as on one machine: each block is digested where it is."""
    kinds = ["user", "query", "url", *(f"extra {name}" for name in sorted(extras))]
    counts = ", ".join(f"(SELECT count(*) FROM {identifier(_table(kind)[0])}) AS n{i}" for i, kind in enumerate(kinds))  # noqa: S608  # names are escaped
    sizes = engine.row(f"SELECT count(*) AS n, {counts} FROM raw WHERE note IS NULL")  # noqa: S608  # names are escaped

    def digest_texts(batch: pa.RecordBatch) -> bytes:
        ids = batch["id"].to_numpy()
        order = np.argsort(ids)
        return text_block(ids[order], batch["text"].take(pa.array(order)))

    listed = (
        f'SELECT CAST({i} AS BIGINT) AS part, shiftright("{key}", {shift(size)}) AS block, "{key}" AS id,'  # noqa: S608  # names are escaped
        f' "{text}" AS text FROM {identifier(name)}'
        for i, (size, (name, key, text)) in enumerate(zip(sizes[1:], map(_table, kinds), strict=True))
    )
    texts = _digested(engine, " UNION ALL ".join(listed), digest_texts, dict(zip(kinds, sizes[1:], strict=True)))
    names = [f"{name} id" for name in sorted(extras) if sizes[1 + kinds.index(f"extra {name}")]]
    columns = ["user_id", "time", "query_id", "rank", "url_id", *(["clicked"] if views else []), *names]

    def digest(batch: pa.RecordBatch) -> bytes:
        found = [pc.fill_null(batch[name].cast(pa.int64()), NOTHING).to_numpy() for name in columns]
        return row_block(ordered(found))

    listed_columns = ", ".join(map(identifier, columns))
    rows = (
        f"SELECT CAST(0 AS BIGINT) AS part, shiftright(user_id, {shift(sizes[0])}) AS block, {listed_columns} FROM raw"  # noqa: S608  # names are escaped
        " WHERE note IS NULL"
    )
    return content(_digested(engine, rows, digest, {"results" if views else "rows": sizes[0]})[0], texts)


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
    engine.map_groups(keyed, "one", of_block, _DIGESTED, "digested")
    found = engine.fetch("SELECT part, block, digest FROM digested ORDER BY part, block")
    engine.drop("digested")
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


def dictionary(engine: Spark, kind: str, mask: int) -> dict[tuple[int, int], int]:
    """Make the table of the texts of a kind; if some share an id, return which ids they should have."""
    name, key, text = _table(kind)
    column, value = (key, text) if key != "id" else (f"{kind[6:]} id", f"{kind[6:]} text")
    column, value = identifier(column), identifier(value)
    engine.materialize(
        f'SELECT {column} AS "{key}", {value} AS "{text}" FROM raw WHERE {value} IS NOT NULL'  # noqa: S608  # names are escaped
        f" GROUP BY {column}, {value}",
        name,
    )
    if kind == "user":
        engine.map('SELECT user_id, "user" FROM users', _with_digest, _USERS, name)
    return find_clashes(engine, name, key, text, mask)


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


def make_events(engine: Spark, extras: Sequence[str], views: bool = False) -> None:
    """Number the events in the order of user, time and query, and hang the clicks on them, or the results shown."""
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
    if engine.row(f"SELECT count(*) AS n {untimed}")[0]:
        rows += f" UNION ALL SELECT {columns}, CAST({place} AS BIGINT) AS place {untimed}"
    engine.number(rows, ("user_id", "time", "query_id", "place"), "numbered", "n")
    largest = "".join(f", coalesce(max(nullif({name}, -1)), -1) AS {name}" for name in names)
    engine.materialize(
        f"SELECT n - 1 AS event_id, user_id, query_id, CASE WHEN time = {missing} THEN NULL ELSE"  # noqa: S608  # names are escaped
        f" CAST(timestamp_micros(time) AS TIMESTAMP_NTZ) END AS time{largest} FROM numbered"
        " GROUP BY n, user_id, query_id, time",
        "events",
    )
    result = "FROM numbered WHERE url_id IS NOT NULL OR rank IS NOT NULL"
    if views:
        engine.materialize(
            f"SELECT n - 1 AS event_id, user_id, query_id, rank, url_id, max(clicked) AS clicked {result}"
            " GROUP BY n, user_id, query_id, rank, url_id",
            "views",
        )
        result = "FROM (SELECT event_id + 1 AS n, user_id, query_id, rank, url_id FROM views WHERE clicked = 1) AS v"
    engine.materialize(f"SELECT n - 1 AS event_id, user_id, query_id, rank, url_id {result}", "clicks")
    engine.drop("numbered")


_TOK = pa.schema([("query_id", pa.int64()), ("position", pa.int32()), ("word_id", pa.int64())])
_WORDS = pa.schema([("word_id", pa.int64()), ("word", pa.string())])


def make_words(engine: Spark, known: dict[tuple[int, int], int], id_mask: int, language: Language) -> None:
    """Split every distinct query into words: `query_terms` and `words`."""
    queries = "SELECT query_id, query FROM queries"
    while True:
        engine.map(
            queries, partial(_distinct_words, known=known, mask=id_mask, language=language), _WORDS, "some words"
        )
        engine.materialize('SELECT word_id, word FROM "some words" GROUP BY word_id, word', "words")
        engine.drop("some words")
        clashes = find_clashes(engine, "words", "word_id", "word", id_mask)
        if not clashes:
            break
        known.update(clashes)
    engine.map(queries, partial(_query_terms, known=known, mask=id_mask, language=language), _TOK, "query_terms")


def word_ids(text: pa.Array, known: Known, mask: int) -> NDArray[np.int64]:
    """The ids of words."""
    from queryveil.kernels.digest import digests

    return ids(digests(*byte_spans(text)), known, mask)


def _query_terms(batch: pa.RecordBatch, *, known: Known, mask: int, language: Language) -> pa.RecordBatch:
    per_query, text = language.words(batch["query"])
    query = np.repeat(batch["query_id"].to_numpy(), per_query)
    position = Ragged(offsets(per_query)).within
    return pa.RecordBatch.from_arrays(
        [pa.array(query), pa.array(position.astype(np.int32)), pa.array(word_ids(text, known, mask))], schema=_TOK
    )


def _distinct_words(batch: pa.RecordBatch, *, known: Known, mask: int, language: Language) -> pa.RecordBatch:
    text = pc.unique(language.words(batch["query"]).text)
    return pa.RecordBatch.from_arrays([pa.array(word_ids(text, known, mask)), text.cast(pa.string())], schema=_WORDS)


def stats_of(engine: Spark, known: LogStats, views: bool) -> LogStats:
    """What is known of a log, with what the tables hold counted; `views` says whether there is such a table."""

    def count(table: str, what: str = "*") -> int:
        return int(engine.row(f"SELECT count({what}) AS n FROM {table}")[0])  # noqa: S608  # parts are this package's own

    return replace(
        known,
        events=count("events"),
        users=count("users"),
        queries=count("queries"),
        words=count("words"),
        clicks=count("clicks"),
        views=count("views") if views else 0,
        timed=count("events", "time"),
    )
