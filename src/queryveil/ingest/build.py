"""From prepared rows to a QueryLog: number texts, sort rows, tell events and clicks, split queries into words."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.engines import DuckDB
from queryveil.formats import BadRows
from queryveil.ingest.prepared import Digests, Prepared
from queryveil.log import LocalLog, Tokens
from queryveil.text import words
from queryveil.text.arrays import byte_spans
from queryveil.text.spool import Spool

_SLICE = 500_000


@dataclass
class _Column:
    """One text column: its numbers row by row, and its distinct texts."""

    numbers: list[NDArray[np.int32]] = field(default_factory=list)
    spool: Spool = field(default_factory=Spool)

    def __post_init__(self) -> None:
        from queryveil.kernels.intern import Interner

        self.interner = Interner()

    def add(self, texts: pa.Array, found: Digests) -> NDArray[np.int32]:
        numbers, fresh = self.interner.add(*found)
        if len(fresh):
            self.spool.append(texts.take(pa.array(fresh)))
        return numbers

    def append(self, texts: pa.Array, found: Digests) -> None:
        self.numbers.append(self.add(texts, found))

    def append_given(self, texts: pa.Array, found: Digests) -> None:
        """As `append`, but the empty text is no value and gets -1."""
        given = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
        numbers = np.full(len(texts), -1, np.int32)
        if given.any():
            low, high = found
            numbers[given] = self.add(texts.filter(pa.array(given)), (low[given], high[given]))
        self.numbers.append(numbers)

    def finish(self) -> "_Finished":
        """Turn numbers into ids; the texts are put in the order of the ids by `texts`."""
        ranks = self.interner.ranks()
        lookup = np.append(ranks, np.int32(-1))  # so that number -1 stays -1
        ids = [lookup[numbers] for numbers in self.numbers]
        self.numbers = []
        return _Finished(ids, ranks)

    def texts(self, ranks: NDArray[np.int32]) -> pa.Array:
        """The text of each id."""
        order = np.empty(len(ranks), np.int64)
        order[ranks] = np.arange(len(ranks))
        return self.spool.ordered(order)


class _Finished(NamedTuple):
    """A text column with ids."""

    ids: list[NDArray[np.int32]]
    """The id of each row."""
    ranks: NDArray[np.int32]
    """The id of each number."""


class Builder:
    """Gathers prepared rows and makes the log of them."""

    def __init__(self) -> None:
        self.user, self.query, self.url = _Column(), _Column(), _Column()
        self.extras: dict[str, _Column] = {}
        self.time: list[NDArray[np.int64]] = []
        self.rank: list[NDArray[np.int32]] = []
        self.bad = BadRows()
        self.empty = 0
        self.rows = 0
        self.sum_low = self.sum_high = 0

    def add(self, rows: Prepared) -> None:
        """Number the texts of some rows and keep the rows as integers."""
        n = len(rows.time)
        self.bad.merge(rows.bad)
        self.empty += rows.empty
        self.user.append(rows.user, rows.digests["user"])
        self.query.append(rows.query, rows.digests["query"])
        self.url.append_given(rows.url, rows.digests["url"])
        for name in rows.extras:
            if name not in self.extras:
                self.extras[name] = _Column(numbers=[np.full(self.rows, -1, np.int32)])
        for name, column in self.extras.items():
            if name in rows.extras:
                column.append_given(rows.extras[name], rows.digests[f"extra {name}"])
            else:
                column.numbers.append(np.full(n, -1, np.int32))
        self.time.append(rows.time)
        self.rank.append(rows.rank)
        self.sum_low += int(rows.content[0].sum(dtype=np.uint64))
        self.sum_high += int(rows.content[1].sum(dtype=np.uint64))
        self.rows += n

    def build(self, engine: DuckDB, pool: ThreadPoolExecutor) -> LocalLog:
        """Make the log of all rows that were added."""
        content = b"".join((total % 2**64).to_bytes(8, "little") for total in (self.sum_low, self.sum_high, self.rows))
        columns = {"user": self.user, "query": self.query, "url": self.url, **self.extras}
        done = dict(zip(columns, pool.map(_Column.finish, columns.values()), strict=True))
        # Copying the texts into order is left to a thread while the rows are sorted.
        texts = {name: pool.submit(column.texts, done[name].ranks) for name, column in columns.items()}
        rows = {f"{name}_id": pa.chunked_array(done[name].ids) for name in ("user", "query", "url")}
        rows |= {f"{name} id": pa.chunked_array(done[name].ids) for name in self.extras}
        rows |= {"time": pa.chunked_array(self.time), "rank": pa.chunked_array(self.rank)}
        user_ranks = done["user"].ranks
        user_digest = np.empty(len(user_ranks), np.uint64)
        user_digest[user_ranks] = self.user.interner.digests()[0]
        self.time, self.rank = [], []
        self.user = self.query = self.url = _Column()
        del done, columns
        events, clicks = _events(engine, pool, pa.table(rows), list(self.extras))
        text = {name: copied.result() for name, copied in texts.items()}
        return LocalLog(
            engine=engine,
            events=events,
            clicks=clicks,
            query_text=text["query"],
            url_text=text["url"],
            user_text=text["user"],
            user_digest=user_digest,
            extras={name: text[name] for name in self.extras},
            tokens=_tokens(text["query"], pool),
            content=content,
            rows=self.rows,
            bad_rows=self.bad,
            empty_rows=self.empty,
        )


def _events(engine: DuckDB, pool: ThreadPoolExecutor, rows: pa.Table, extras: list[str]) -> tuple[pa.Table, pa.Table]:
    """Rows into events, ordered by user, time and query, and the clicks that hang on them."""
    from queryveil.kernels.events import find_events
    from queryveil.kernels.times import MISSING

    engine.read("rows", rows)
    names = ", ".join(f'"{name}"' for name in rows.column_names)
    keys = "".join(f', "{name} id"' for name in extras)
    table = engine.table(f"SELECT {names} FROM rows ORDER BY user_id, time, query_id, rank, url_id{keys}")
    engine.drop("rows")
    wanted = ("user_id", "query_id", "time", "rank", "url_id")
    events, clicks = find_events(*pool.map(lambda name: table[name].to_numpy(), wanted))
    event_columns = {
        "event_id": pa.array(np.arange(len(events.start), dtype=np.int32)),
        "user_id": pa.array(events.user),
        "query_id": pa.array(events.query),
        "time": _nullable(events.time, MISSING).view(pa.timestamp("us")),
    }
    for name in extras:
        # Rows of one event should agree; where they do not, the largest id wins, whatever the order of rows.
        event_columns[f"{name} id"] = pa.array(np.maximum.reduceat(table[f"{name} id"].to_numpy(), events.start))
    click_columns = {
        "event_id": pa.array(clicks.event),
        "user_id": pa.array(clicks.user),
        "query_id": pa.array(clicks.query),
        "rank": _nullable(clicks.rank, -1),
        "url_id": _nullable(clicks.url, -1),
    }
    return pa.table(event_columns), pa.table(click_columns)


def _nullable(values: NDArray[Any], missing: int) -> pa.Array:
    wrong = values == missing
    return pa.array(values, mask=wrong) if wrong.any() else pa.array(values)


def _tokens(queries: pa.Array, pool: ThreadPoolExecutor) -> Tokens:
    from queryveil.kernels.digest import digests

    def split(start: int) -> tuple[NDArray[np.int64], pa.Array, Digests]:
        per_query, text = words(queries.slice(start, _SLICE))
        return per_query, text, digests(*byte_spans(text))

    column = _Column()
    counts = [np.zeros(1, np.int64)]
    for per_query, text, found in pool.map(split, range(0, len(queries), _SLICE)):
        counts.append(per_query)
        column.append(text, found)
    ids, ranks = column.finish()
    word = np.concatenate(ids) if ids else np.empty(0, np.int32)
    return Tokens(np.cumsum(np.concatenate(counts)), word, column.texts(ranks))
