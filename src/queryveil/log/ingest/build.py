"""From prepared rows to a QueryLog: number texts, sort rows, find events and clicks, split queries into words."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.engines import DuckDB, identifier
from queryveil.engines.memory import reserve
from queryveil.formats.rows import CANONICAL, BadRows, check_width
from queryveil.kernels.types import Ints, Longs
from queryveil.log import LocalLog, split_queries
from queryveil.log.ingest.content import NOTHING, Section, distinct, edges, row_block, shift, text_block
from queryveil.log.ingest.content import content as content_of
from queryveil.log.ingest.prepared import Prepared
from queryveil.text.columns import Column


class Builder:
    """Collects prepared rows and makes the log from them."""

    def __init__(self) -> None:
        self.user, self.query, self.url = Column(), Column(), Column()
        self.extras: dict[str, Column] = {}
        self.time: list[Longs] = []
        self.rank: list[Ints] = []
        self.bad = BadRows()
        self.empty = 0
        self.rows = 0

    def add(self, rows: Prepared) -> None:
        """Number the texts of some rows and keep the rows as integers."""
        n = len(rows.time)
        reserve(n * (28 + 4 * len(self.extras)), "The rows of this log")
        self.bad.merge(rows.bad)
        self.empty += rows.empty
        self.user.append(rows.user, rows.digests["user"], rows.checks["user"])
        self.query.append(rows.query, rows.digests["query"], rows.checks["query"])
        self.url.append_given(rows.url, rows.digests["url"], rows.checks["url"])
        for name in rows.extras:
            if name not in self.extras:
                check_width((*CANONICAL, *self.extras, name), "The log")
                self.extras[name] = Column(numbers=[np.full(self.rows, -1, np.int32)])
        for name, column in self.extras.items():
            if name in rows.extras:
                kind = f"extra {name}"
                column.append_given(rows.extras[name], rows.digests[kind], rows.checks[kind])
            else:
                column.numbers.append(np.full(n, -1, np.int32))
        self.time.append(rows.time)
        self.rank.append(rows.rank)
        self.rows += n

    def build(self, engine: DuckDB, pool: ThreadPoolExecutor) -> LocalLog:
        """Make the log of all rows that were added."""
        # The rows in order, and then events and clicks, which are fewer and narrower.
        reserve(self.rows * (60 + 4 * len(self.extras)), "The rows of this log")
        columns = {
            "user": self.user,
            "query": self.query,
            "url": self.url,
            **{name: self.extras[name] for name in sorted(self.extras)},
        }
        done = dict(zip(columns, pool.map(Column.finish, columns.values()), strict=True))
        # Copying the texts into order is left to a thread while the rows are sorted.
        texts = {name: pool.submit(column.texts, done[name].ranks) for name, column in columns.items()}
        rows = {f"{name}_id": pa.chunked_array(done[name].ids) for name in ("user", "query", "url")}
        rows |= {f"{name} id": pa.chunked_array(done[name].ids) for name in self.extras}
        rows |= {"time": pa.chunked_array(self.time), "rank": pa.chunked_array(self.rank)}
        low = {name: column.low(done[name].ranks) for name, column in columns.items()}
        first_seen = done["user"].ranks  # texts are numbered as they come
        ids = dict(zip(low, pool.map(distinct, low.values()), strict=True))
        self.time, self.rank = [], []
        self.user = self.query = self.url = Column()
        del done, columns
        events, clicks, digested = _events(engine, pool, pa.table(rows), list(self.extras), ids)
        text = {name: copied.result() for name, copied in texts.items()}
        content = content_of(
            digested,
            [
                _digest_texts(pool, f"extra {name}" if name in self.extras else name, ids[name], text[name])
                for name in text
            ],
        )
        return LocalLog(
            engine=engine,
            events=events,
            clicks=clicks,
            query_text=text["query"],
            url_text=text["url"],
            user_text=text["user"],
            user_digest=low["user"],
            first_seen=first_seen,
            extras={name: text[name] for name in self.extras},
            tokens=split_queries(text["query"], pool),
            content=content,
            rows=self.rows,
            bad_rows=self.bad,
            empty_rows=self.empty,
        )


def _events(
    engine: DuckDB, pool: ThreadPoolExecutor, rows: pa.Table, extras: list[str], ids: dict[str, Longs]
) -> tuple[pa.Table, pa.Table, Section]:
    """Turn rows into events, ordered by user, time and query, and their clicks; and digest the rows."""
    from queryveil.kernels.events import find_events
    from queryveil.kernels.times import MISSING

    engine.read("rows", rows)
    names = ", ".join(map(identifier, rows.column_names))
    keys = "".join(f", {identifier(f'{name} id')}" for name in sorted(extras))
    table = engine.fetch(f"SELECT {names} FROM rows ORDER BY user_id, time, query_id, rank, url_id{keys}")  # noqa: S608  # names are escaped
    engine.drop("rows")
    digested = _digest_rows(pool, table, sorted(extras), ids)
    columns = ("user_id", "query_id", "time", "rank", "url_id")
    events, clicks = find_events(*pool.map(lambda name: table[name].to_numpy(), columns))
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
    return pa.table(event_columns), pa.table(click_columns), digested


def _digest_rows(pool: ThreadPoolExecutor, table: pa.Table, extras: list[str], ids: dict[str, Longs]) -> Section:
    """Digest rows in order; an extra column without a value is left out."""
    lookup = {name: np.append(found, NOTHING) for name, found in ids.items()}  # so that id -1 is what is missing
    named = [("user", "user_id"), ("query", "query_id"), ("url", "url_id")]
    named += [(name, f"{name} id") for name in extras if len(ids[name])]
    columns = {name: table[column].to_numpy() for name, column in named}
    plain = {name: table[name].to_numpy() for name in ("time", "rank")}
    blocks, users = edges(ids["user"], shift(len(table)))
    starts = np.searchsorted(columns["user"], users)

    def digest(at: int) -> bytes:
        rows = slice(starts[at], starts[at + 1])
        made = {name: lookup[name][column[rows]] for name, column in columns.items()}
        made |= {name: column[rows].astype(np.int64) for name, column in plain.items()}
        first = ("user", "time", "query", "rank", "url")
        return row_block(made[name] for name in (*first, *(name for name in made if name not in first)))

    return Section("rows", len(table), blocks, list(pool.map(digest, range(len(blocks)))))


def _digest_texts(pool: ThreadPoolExecutor, name: str, ids: Longs, texts: pa.Array) -> Section:
    blocks, starts = edges(ids, shift(len(ids)))

    def digest(at: int) -> bytes:
        start, end = starts[at], starts[at + 1]
        return text_block(ids[start:end], texts.slice(start, end - start))

    return Section(name, len(ids), blocks, list(pool.map(digest, range(len(blocks)))))


def _nullable(values: NDArray[Any], missing: int) -> pa.Array:
    wrong = values == missing
    return pa.array(values, mask=wrong) if wrong.any() else pa.array(values)
