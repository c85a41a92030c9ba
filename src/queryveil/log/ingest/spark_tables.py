"""The tables of a log on a cluster, from its numbered rows: dictionaries, events, words, and the digest of all rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from queryveil.log.ingest.content import NOTHING, Section, edges, ordered, row_block, shift, signed, text_block
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


_DIGESTED = pa.schema([("part", pa.int64()), ("block", pa.int64()), ("digest", pa.string()), ("shared", pa.bool_())])
_PARTS = 1 << 40
"""More than there are blocks on either side of 0."""


def _digest_texts(engine: Spark, sizes: Mapping[str, int]) -> tuple[list[Section], list[str]]:
    """Digest the distinct texts of each kind block by block, where they are; and the kinds with an id of two texts."""
    kinds = list(sizes)

    def of_block(batch: pa.RecordBatch) -> pa.RecordBatch:
        ids = batch["id"].to_numpy()
        order = np.argsort(ids)
        ids = ids[order]
        digest = text_block(ids, batch["text"].take(pa.array(order)))
        found = [pa.array([digest.hex()]), pa.array([bool((ids[1:] == ids[:-1]).any())])]
        return pa.RecordBatch.from_arrays([batch["part"][:1], batch["block"][:1], *found], schema=_DIGESTED)

    listed = " UNION ALL ".join(
        f'SELECT CAST({i} AS BIGINT) AS part, shiftright("{key}", {shift(size)}) AS block, "{key}" AS id,'  # noqa: S608  # names are escaped
        f' "{text}" AS text FROM {identifier(name)}'
        for i, (size, (name, key, text)) in enumerate(zip(sizes.values(), map(_table, kinds), strict=True))
    )
    keyed = f"SELECT *, part * {_PARTS} + block AS one FROM ({listed}) AS listed"  # noqa: S608  # names are escaped
    with working():  # one line for each block
        blocks = engine.sql(keyed).groupBy("one").applyInArrow(of_group(of_block, _DIGESTED), ddl(_DIGESTED)).toArrow()
    found = blocks.sort_by([("part", "ascending"), ("block", "ascending")])
    part, block, digests = found["part"].to_numpy(), found["block"].to_numpy(), found["digest"].to_pylist()
    ends = np.searchsorted(part, np.arange(len(kinds) + 1))
    sections = [
        Section(kind, sizes[kind], block[start:end], [bytes.fromhex(text) for text in digests[start:end]])
        for kind, (start, end) in zip(kinds, pairwise(ends.tolist()), strict=True)
    ]
    return sections, [kinds[at] for at in pc.unique(found.filter(found["shared"])["part"]).to_pylist()]


@dataclass(frozen=True)
class _RowBlocks:
    """Digests sorted rows block by block as they go by: the first bits of a user name the block."""

    columns: Sequence[str]
    bits: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, Sequence[str]]]:
        held: list[pa.RecordBatch] = []
        block, empty = 0, None
        for batch in batches:
            notes = []
            numbers, starts = edges(batch["user_id"].to_numpy(), self.bits)
            for number, (start, end) in zip(numbers.tolist(), pairwise(starts.tolist()), strict=True):
                if held and number != block:
                    notes.append(self._note(block, held))
                    held = []
                block = number
                held.append(batch.select(self.columns).slice(start, end - start))
            empty = batch.slice(0, 0)
            yield batch, notes
        if empty is not None:
            yield empty, [self._note(block, held)]

    def _note(self, block: int, held: list[pa.RecordBatch]) -> str:
        rows = pa.Table.from_batches(held)
        values = [pc.fill_null(rows[name].cast(pa.int64()), NOTHING).to_numpy() for name in self.columns]
        return json.dumps([block, row_block(ordered(values)).hex()])


def _table(kind: str) -> tuple[str, str, str]:
    """The table of the texts of a kind, and its columns: the id and the text."""
    return {
        "user": ("users", "user_id", "user"),
        "query": ("queries", "query_id", "query"),
        "url": ("urls", "url_id", "url"),
    }.get(kind, (kind, "id", "value"))


def dictionaries(
    engine: Spark, kinds: Sequence[str], mask: int
) -> tuple[list[Section], dict[str, dict[tuple[int, int], int]]]:
    """Make the tables of the texts of some kinds: users, queries, addresses, and extra columns.

    Returns:
        The digests of the texts of each kind, and the ids that those should have that share one.
    """
    for kind in kinds:
        name, key, text = _table(kind)
        column, value = (key, text) if key != "id" else (f"{kind[6:]} id", f"{kind[6:]} text")
        column, value = identifier(column), identifier(value)
        # Queries are kept together with what is asked about them. In a log of views, each text is there too often.
        once = kind == "query" and "clicked" not in engine.columns("raw")
        hint = f"/*+ REPARTITION({engine.parts}, query_id) */" if once else ""
        distinct = (
            f'SELECT {column} AS "{key}", {value} AS "{text}" FROM (SELECT {hint} {column}, {value} FROM raw'  # noqa: S608  # names are escaped
            f" WHERE {value} IS NOT NULL) AS given GROUP BY {column}, {value}"
        )
        if kind == "user":
            engine.map(distinct, _with_digest, _USERS, name)
        else:
            engine.materialize(distinct, name)
    counted = engine.fetch(
        " UNION ALL ".join(
            f"SELECT {i} AS kind, count(*) AS n FROM {identifier(_table(kind)[0])}"  # noqa: S608  # names are escaped
            for i, kind in enumerate(kinds)
        )
    )
    sizes = dict(zip((kinds[i] for i in counted["kind"].to_pylist()), counted["n"].to_pylist(), strict=True))
    texts, shared = _digest_texts(engine, {kind: sizes[kind] for kind in (*kinds[:3], *sorted(kinds[3:]))})
    return texts, {kind: find_clashes(engine, *_table(kind), mask) for kind in shared}


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


def make_events(
    engine: Spark, extras: Sequence[str], rows: int, texts: Sequence[Section], some_untimed: bool, views: bool = False
) -> Section:
    """Number the events in the order of user, time and query, and hang the clicks on them, or the results shown.

    They are sent to the part of their query, where all that is asked about queries finds them.

    Args:
        engine: The cluster.
        extras: The extra columns.
        rows: How many rows there are.
        texts: The digests of the texts.
        some_untimed: Whether there are rows without a time.
        views: Whether rows are results shown.

    Returns:
        The digests of the rows, as on one machine.
    """
    from queryveil.kernels.times import MISSING

    missing = f"CAST('{MISSING}' AS BIGINT)"
    names = [identifier(f"{name} id") for name in extras]
    more = "".join(f", {name}" for name in names)
    # A row without a time is an event of its own; its place among its like does not depend on the order of rows.
    order = ", ".join(f"{key} NULLS FIRST" for key in ("rank", "url_id", *(f"nullif({name}, -1)" for name in names)))
    place = f"row_number() OVER (PARTITION BY user_id, query_id ORDER BY {order})"
    columns = f"user_id, time, query_id, rank, url_id{', clicked' if views else ''}{more}"
    listed = f"SELECT {columns}, CAST(0 AS BIGINT) AS place FROM raw WHERE note IS NULL AND time <> {missing}"  # noqa: S608  # names are escaped
    untimed = f"FROM raw WHERE note IS NULL AND time = {missing}"
    if some_untimed:
        listed += f" UNION ALL SELECT {columns}, CAST({place} AS BIGINT) AS place {untimed}"
    kept = [f"{kind.name[6:]} id" for kind in texts[3:] if kind.count]
    digested = ["user_id", "time", "query_id", "rank", "url_id", *(["clicked"] if views else []), *kept]
    bits = shift(rows)
    watch = _RowBlocks(digested, bits)
    by = ("user_id", "time", "query_id", "place")
    notes = engine.number_watched(listed, by, "numbered", "n", bits=bits, watch=watch)
    moment = f"CASE WHEN time = {missing} THEN NULL ELSE CAST(timestamp_micros(time) AS TIMESTAMP_NTZ) END AS time"
    largest = "".join(f", coalesce(max(nullif({name}, -1)), -1) AS {name}" for name in names)
    # The rows of an event differ in its clicks and in extra columns alone, so without these any of them will do.
    one_row = "GROUP BY n, user_id, query_id, time" if extras else f'WHERE "{FIRST}"'
    by_query = f"SELECT /*+ REPARTITION({engine.parts}, query_id) */"
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
    blocks = sorted(map(json.loads, notes))
    digests = [bytes.fromhex(digest) for _, digest in blocks]
    return Section("results" if views else "rows", rows, np.array([block for block, _ in blocks], np.int64), digests)


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
