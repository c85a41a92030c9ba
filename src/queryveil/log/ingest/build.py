"""From prepared rows to a QueryLog: number texts, sort rows, find events and clicks, split queries into words."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.engines import DuckDB, identifier
from queryveil.engines.memory import reserve
from queryveil.formats.input import ReadAs
from queryveil.formats.rows import CANONICAL, BadRows, check_width
from queryveil.kernels.types import Bools, Ints, Longs
from queryveil.log import LocalLog, split_queries
from queryveil.log.ingest.content import NOTHING, Section, distinct, edges, row_block, shift, text_block
from queryveil.log.ingest.content import content as content_of
from queryveil.log.ingest.prepared import Prepared
from queryveil.log.ingest.views import Results, bad_views, merged
from queryveil.text.columns import Column
from queryveil.text.detection import SAMPLE, resolved


class Builder:
    """Collects prepared rows and makes the log from them.

    Args:
        languages: The languages of its queries, or `AUTO`.
        read_as: How its files are read.
    """

    def __init__(self, languages: Sequence[str], read_as: ReadAs) -> None:
        self.languages = languages
        self.read_as = read_as
        self.user, self.query, self.url = Column(), Column(), Column()
        self.extras: dict[str, Column] = {}
        self.time: list[Longs] = []
        self.rank: list[Ints] = []
        self.results = Results()
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
        self.results.add(rows)
        self.rows += n

    def build(self, engine: DuckDB, pool: ThreadPoolExecutor, refuse: Callable[["Builder"], None]) -> LocalLog:
        """Make the log of all rows that were added.

        Args:
            engine: Where its tables will be.
            pool: Threads.
            refuse: Raises if the log has too many bad rows. Results are checked when all rows of an event are known.
        """
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
        if self.results.views:
            rows["clicked"] = self.results.clicked
        low = {name: column.low(done[name].ranks) for name, column in columns.items()}
        first_seen = done["user"].ranks  # texts are numbered as they come
        self.time, self.rank = [], []
        self.user = self.query = self.url = Column()
        del done, columns
        table = _sorted(engine, pa.table(rows), sorted(self.extras))
        used: dict[str, Bools] = {}
        if self.results.views:
            bad, found = bad_views(engine, table, pa.table(rows), self.results)
            self.bad.merge(found)
            self.rows -= found.total
            refuse(self)
            if found.total:
                used, table = _without(table.filter(pa.array(~bad)), {name: len(low[name]) for name in low})
                first_seen = _renumbered(used["user"])[first_seen[used["user"][first_seen]]]
                low = {name: low[name][still] for name, still in used.items()}
        self.results = Results()
        ids = dict(zip(low, pool.map(distinct, low.values()), strict=True))
        digested = _digest_rows(pool, table, sorted(self.extras), ids)
        events, clicks, views = _events(pool, table, list(self.extras))
        text = {name: copied.result() for name, copied in texts.items()}
        text |= {name: text[name].filter(pa.array(still)) for name, still in used.items()}
        language = resolved(self.languages, lambda: text["query"][:SAMPLE])
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
            views=views,
            query_text=text["query"],
            url_text=text["url"],
            user_text=text["user"],
            user_digest=low["user"],
            first_seen=first_seen,
            extras={name: text[name] for name in self.extras},
            tokens=split_queries(text["query"], pool, language),
            content=content,
            rows=self.rows,
            bad_rows=self.bad,
            empty_rows=self.empty,
            language=language,
            read_as=self.read_as,
        )


def _sorted(engine: DuckDB, rows: pa.Table, extras: list[str]) -> pa.Table:
    """The rows by user, time and query, then by everything else that they have."""
    engine.read("rows", rows)
    names = ", ".join(map(identifier, rows.column_names))
    keys = ["user_id", "time", "query_id", "rank", "url_id", *(["clicked"] if "clicked" in rows.column_names else [])]
    keys += [identifier(f"{name} id") for name in extras]
    table = engine.fetch(f"SELECT {names} FROM rows ORDER BY {', '.join(keys)}")  # noqa: S608  # names are escaped
    engine.drop("rows")
    return table


def _without(table: pa.Table, sizes: dict[str, int]) -> tuple[dict[str, Bools], pa.Table]:
    """Which texts rows still have after some were left out, and the rows with new ids for these."""
    used = {}
    for name, size in sizes.items():
        column = f"{name}_id" if f"{name}_id" in table.column_names else f"{name} id"
        ids = table[column].to_numpy()
        used[name] = np.zeros(size + 1, np.bool_)
        used[name][ids] = True  # id -1, which is no value, is the last place
        used[name] = used[name][:size]
        new = np.append(_renumbered(used[name]), np.int32(-1))[ids]
        table = table.set_column(table.column_names.index(column), column, pa.array(new))
    return used, table


def _renumbered(used: Bools) -> Ints:
    """The new id of each text, if those that are not used are left out."""
    return np.cumsum(used, dtype=np.int32) - np.int32(1)


def _events(pool: ThreadPoolExecutor, table: pa.Table, extras: list[str]) -> tuple[pa.Table, pa.Table, pa.Table | None]:
    """Turn sorted rows into events, their clicks and, if rows are results shown, these as well."""
    from queryveil.kernels.events import find_events
    from queryveil.kernels.times import MISSING

    columns = ("user_id", "query_id", "time", "rank", "url_id")
    events, results = find_events(*pool.map(lambda name: table[name].to_numpy(), columns))
    event_columns = {
        "event_id": pa.array(np.arange(len(events.start), dtype=np.int32)),
        "user_id": pa.array(events.user),
        "query_id": pa.array(events.query),
        "time": _nullable(events.time, MISSING).view(pa.timestamp("us")),
    }
    for name in extras:
        # Rows of one event should agree; where they do not, the largest id wins, whatever the order of rows.
        event_columns[f"{name} id"] = pa.array(np.maximum.reduceat(table[f"{name} id"].to_numpy(), events.start))
    if "clicked" not in table.column_names:
        return pa.table(event_columns), _results(*results), None
    is_result = (table["rank"].to_numpy() >= 0) | (table["url_id"].to_numpy() >= 0)
    views, clicked = merged(results, table["clicked"].to_numpy()[is_result])
    clicks = _results(*(column[clicked == 1] for column in views))
    return pa.table(event_columns), clicks, _results(*views).append_column("clicked", pa.array(clicked))


def _results(event: Ints, user: Ints, query: Ints, rank: Ints, url: Ints) -> pa.Table:
    columns = {"event_id": event, "user_id": user, "query_id": query}
    return pa.table({**columns, "rank": _nullable(rank, -1), "url_id": _nullable(url, -1)})


def _digest_rows(pool: ThreadPoolExecutor, table: pa.Table, extras: list[str], ids: dict[str, Longs]) -> Section:
    """Digest rows in order; an extra column without a value is left out."""
    lookup = {name: np.append(found, NOTHING) for name, found in ids.items()}  # so that id -1 is what is missing
    named = [("user", "user_id"), ("query", "query_id"), ("url", "url_id")]
    named += [(name, f"{name} id") for name in extras if len(ids[name])]
    columns = {name: table[column].to_numpy() for name, column in named}
    first = ["user", "time", "query", "rank", "url", *(["clicked"] if "clicked" in table.column_names else [])]
    plain = {name: table[name].to_numpy() for name in first if name not in columns}
    blocks, users = edges(ids["user"], shift(len(table)))
    starts = np.searchsorted(columns["user"], users)

    def digest(at: int) -> bytes:
        rows = slice(starts[at], starts[at + 1])
        made = {name: lookup[name][column[rows]] for name, column in columns.items()}
        made |= {name: column[rows].astype(np.int64) for name, column in plain.items()}
        return row_block(made[name] for name in (*first, *(name for name in made if name not in first)))

    return Section(
        "results" if "clicked" in first else "rows", len(table), blocks, list(pool.map(digest, range(len(blocks))))
    )


def _digest_texts(pool: ThreadPoolExecutor, name: str, ids: Longs, texts: pa.Array) -> Section:
    blocks, starts = edges(ids, shift(len(ids)))

    def digest(at: int) -> bytes:
        start, end = starts[at], starts[at + 1]
        return text_block(ids[start:end], texts.slice(start, end - start))

    return Section(name, len(ids), blocks, list(pool.map(digest, range(len(blocks)))))


def _nullable(values: NDArray[Any], missing: int) -> pa.Array:
    wrong = values == missing
    return pa.array(values, mask=wrong) if wrong.any() else pa.array(values)
