"""A log in the memory of one machine."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Ragged, offsets
from queryveil.engines import Batches, DuckDB, Table, Workspace, identifier
from queryveil.errors import NothingToReleaseError, QueryveilError, option
from queryveil.files.folders import Folder, LocalFolder
from queryveil.formats import writers
from queryveil.formats.input import ReadAs
from queryveil.formats.rows import BadRows
from queryveil.kernels.types import Ints, Longs, ULongs
from queryveil.log.log import DERIVED, Part, QueryLog, check_is_log
from queryveil.log.stats import LogStats, Scrub, SeriesPlace
from queryveil.sources import folder_at
from queryveil.text import Language, normal_form
from queryveil.text.arrays import byte_spans
from queryveil.text.columns import Column, Digests
from queryveil.text.scripts import scripts_of

_SLICE = 500_000

NOTHING_SELECTED = (
    "Nothing is left of the log after the first steps of the pipeline; lower their thresholds, or leave one out."
)
NOTHING_LEFT = "Nothing is left of the log, because every event was scrubbed; scrub fewer kinds, or fewer rare words."


@dataclass(frozen=True, eq=False)
class Tokens(Ragged):
    """The words of every distinct query: those of query q are word[start[q]:start[q + 1]]."""

    word: Ints
    text: pa.Array
    """The word of each word id."""


class LocalLog(QueryLog):
    """A log in the memory of this machine: the same tables, and their columns as arrays for compiled loops.

    Ids are dense, from 0.

    Attributes:
        events: The events as an Arrow table, ordered by user, time and query.
        clicks: The clicks as an Arrow table.
        views: The results shown as an Arrow table; None if the log has clicks alone.
        query_text: The query of each query id, in normal form.
        url_text: The address of each url id.
        user_text: The name of each user id.
        first_seen: The user ids in the order in which the rows of the log first name them.
        extras: For each extra column the values of its ids; id -1 means no value.
        tokens: The words of each query.
    """

    engine: DuckDB
    id_type = pa.int32()

    def __init__(
        self,
        *,
        engine: DuckDB,
        events: pa.Table,
        clicks: pa.Table,
        query_text: pa.Array,
        url_text: pa.Array,
        user_text: pa.Array,
        user_digest: ULongs,
        first_seen: Ints,
        extras: Mapping[str, pa.Array],
        tokens: Tokens,
        content: bytes,
        rows: int,
        bad_rows: BadRows,
        empty_rows: int,
        language: Language,
        scrub: Scrub | None = None,
        series: SeriesPlace | None = None,
        views: pa.Table | None = None,
        read_as: ReadAs | None = None,
    ) -> None:
        stats = LogStats(
            rows=rows,
            events=len(events),
            users=len(user_text),
            queries=len(query_text),
            words=len(tokens.text),
            clicks=len(clicks),
            timed=len(events) - events["time"].null_count,
            extras=tuple(extras),
            empty_rows=empty_rows,
            bad_rows=bad_rows,
            content=content,
            scrub=scrub,
            series=series,
            views=0 if views is None else len(views),
            read_as=read_as,
        )
        super().__init__(engine, stats, language)
        self.events = events
        self.clicks = clicks
        self.views = views if self.has_views else None
        self.query_text = query_text
        self.url_text = url_text
        self.user_text = user_text
        self.first_seen = first_seen
        self.extras = dict(extras)
        self.tokens = tokens
        engine.read("events", events)
        engine.read("clicks", clicks)
        if self.views is not None:
            engine.read("views", self.views)
        engine.read("users", _dictionary("user", user_text).append_column("digest", pa.array(user_digest)))
        engine.read("queries", _dictionary("query", query_text))
        engine.read("urls", _dictionary("url", url_text))
        engine.read("words", _dictionary("word", tokens.text))
        engine.read("query_terms", _query_terms(tokens))
        for name, values in self.extras.items():
            engine.read(f"extra {name}", pa.table({"id": np.arange(len(values), dtype=np.int32), "value": values}))

    def _make(self, name: str, query: str) -> None:
        if name == "query_users":
            self.engine.read(name, self.query_users)
        elif name == "per_query":
            columns = {"users": self.users_per_query, "events": self.events_per_query}
            self.engine.read(name, pa.table({"query_id": np.arange(self.n_queries, dtype=np.int32), **columns}))
        else:
            super()._make(name, query)

    @cached_property
    def scripts(self) -> int:
        """The scripts of its words, as bits in the order of `queryveil.text.scripts.SCRIPTS`."""
        return int(np.bitwise_or.reduce(scripts_of(self.tokens.text), initial=0))

    @cached_property
    def query_users(self) -> pa.Table:
        """Who issued what, and how often: each (query_id, user_id) once, in no order."""
        return self.engine.fetch(DERIVED["query_users"][1])

    @cached_property
    def users_per_query(self) -> Longs:
        """How many distinct users issued each query."""
        return np.bincount(self.query_users["query_id"].to_numpy(), minlength=self.n_queries)

    @cached_property
    def events_per_query(self) -> Longs:
        """How many events each query has."""
        return np.bincount(self.events["query_id"].to_numpy(), minlength=self.n_queries)

    @cached_property
    def users_per_word(self) -> Longs:
        """How many distinct users used each word."""
        self.ensure_tables("word_users")
        return self._column("word_users", "word_id", self.stats.words)

    @cached_property
    def rarest_word(self) -> Longs:
        """Users of the rarest word of each query; 0 for a query without a word."""
        self.ensure_tables("rarest")
        return self._column("rarest", "query_id", self.n_queries)

    def _column(self, name: str, key: str, size: int) -> Longs:
        found = self.engine.fetch(f"SELECT {key}, users FROM {name}")
        users = np.zeros(size, np.int64)
        users[found[key].to_numpy()] = found["users"].to_numpy()
        return users

    def texts(self, rows: Table, schema: pa.Schema, queries: Table | None = None) -> Batches:
        """Rows with their texts, which are looked up batch by batch."""
        numbers = self.engine.ordered(rows.name)
        text, ids = self.query_text, None
        if queries is not None:
            known = self.engine.fetch(f"SELECT query_id, query FROM {queries} ORDER BY query_id").combine_chunks()
            text, ids = known["query"].combine_chunks(), known["query_id"].to_numpy()

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in numbers():
                found = {name: batch[name] for name in batch.schema.names}
                if "query" in schema.names:
                    place = batch["query_id"] if ids is None else pa.array(np.searchsorted(ids, batch["query_id"]))
                    found["query"] = text.take(place).cast(pa.string())
                if "url" in schema.names:
                    found["url"] = self.url_text.take(batch["url_id"]).cast(pa.string())
                yield pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)

        return batches

    def items(self, work: Workspace, rows: Table, schema: pa.Schema, names: pa.Array) -> Batches:
        """Rows with the names of their nodes, which are looked up batch by batch."""
        numbers = work.ordered(rows)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in numbers():
                node = batch["query_id"]
                found = {name: batch[name] for name in batch.schema.names} | {"item": names.take(node), "node": node}
                arrays = [found[field.name].cast(field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        return batches

    def write(self, folder: Folder, table: str, format: str, schema: pa.Schema, batches: Batches) -> None:
        """Write a released table to a file."""
        assert isinstance(folder, LocalFolder)  # noqa: S101  # where a release is staged
        place = folder.path / table
        place.touch(0o600)
        writers.write(place, format, schema, batches())

    def folder(self, path: str | Path) -> Folder:
        """A folder on this machine, or in an object store."""
        return folder_at(path)

    def rewritten(self, texts: str, urls: str, scrub: Scrub) -> "LocalLog":
        """This log with other queries: texts are numbered as on reading, and rows sorted again."""
        from queryveil.kernels.digest import digests

        old = self.engine.fetch(f"SELECT query_id, text, same FROM ({texts}) AS texts ORDER BY query_id")
        text = old["text"].combine_chunks().cast(pa.large_string())
        column = Column()
        for start in range(0, len(text), _SLICE):
            some = pc.fill_null(text.slice(start, _SLICE), "")
            column.append_given(some, digests(*byte_spans(some)))  # no query is empty, so what is empty is gone
        ids, ranks = column.finish()
        query_text = column.texts(ranks)
        extras = "".join(f", e.{name} AS {name}" for name in (identifier(f"{extra} id") for extra in self.extras))
        with self.workspace() as work:
            columns = {"query_id": old["query_id"], "new_id": pa.chunked_array(ids), "same": old["same"]}
            rewritten = work.read(pa.table(columns))
            rows = work.fetch(
                f"SELECT e.event_id AS event_id, e.user_id AS user_id, r.new_id AS query_id, e.time AS time{extras}"
                f" FROM events e JOIN {rewritten} r ON r.query_id = e.query_id WHERE r.new_id >= 0"
                " ORDER BY user_id, time NULLS FIRST, r.new_id, event_id"
            ).combine_chunks()
            if len(rows) == 0:
                raise QueryveilError(NOTHING_LEFT)
            event = pa.array(np.arange(len(rows), dtype=np.int32))
            renumbered = work.read(pa.table({"event_id": rows["event_id"], "new_id": event}))
            kept = {
                table: work.fetch(
                    "SELECT n.new_id AS event_id, c.user_id AS user_id, r.new_id AS query_id, c.rank AS rank,"
                    f" c.url_id AS url_id{clicked} FROM {table} c JOIN {renumbered} n ON n.event_id = c.event_id"
                    f" JOIN {rewritten} r ON r.query_id = c.query_id"
                    f" LEFT JOIN ({urls}) AS gone ON gone.url_id = c.url_id"
                    " WHERE r.same AND gone.url_id IS NULL ORDER BY n.new_id, rank NULLS FIRST, url_id NULLS FIRST"
                ).combine_chunks()
                for table, clicked in self.result_tables
            }
        there = np.zeros(self.n_users, np.bool_)
        there[rows["user_id"].to_numpy()] = True
        new_user = np.cumsum(there, dtype=np.int32) - np.int32(1)
        digest = self.engine.fetch("SELECT digest FROM users ORDER BY user_id")["digest"].to_numpy()
        rows = rows.set_column(0, "event_id", event)

        def renumber(table: pa.Table) -> pa.Table:
            return table.set_column(1, "user_id", pa.array(new_user[table["user_id"].to_numpy()]))

        engine = self.engine.beside()
        with ThreadPoolExecutor(engine.threads) as pool:
            tokens = split_queries(query_text, pool, self.language)
        made = LocalLog(
            engine=engine,
            events=renumber(rows),
            clicks=renumber(kept["clicks"]),
            views=renumber(kept["views"]) if self.has_views else None,
            query_text=query_text,
            url_text=self.url_text,
            user_text=self.user_text.filter(pa.array(there)),
            user_digest=digest[there],
            first_seen=new_user[self.first_seen[there[self.first_seen]]],
            extras=self.extras,
            tokens=tokens,
            content=self.stats.content,
            rows=_n_rows(rows, kept[self.results]),
            bad_rows=self.stats.bad_rows,
            empty_rows=self.stats.empty_rows,
            language=self.language,
            scrub=scrub,
            series=self.stats.series,
            read_as=self.stats.read_as,
        )
        made.part = Part(self, None, np.flatnonzero(there))
        return made

    def only(self, queries: Table, purpose: str) -> "LocalLog":
        """The events of some queries; only the ids of events and users are new."""
        wanted = np.zeros(self.n_queries, np.bool_)
        wanted[self.engine.fetch(f"SELECT query_id FROM {queries}")["query_id"].to_numpy()] = True
        stays = wanted[self.events["query_id"].to_numpy()]
        if not stays.any():
            raise NothingToReleaseError(NOTHING_SELECTED)
        users = np.unique(self.events["user_id"].to_numpy()[stays])
        new_event, new_user = np.cumsum(stays) - 1, np.full(self.n_users, -1, np.int32)
        new_user[users] = np.arange(len(users), dtype=np.int32)

        def renumbered(table: pa.Table) -> pa.Table:
            event, user = (table[name].to_numpy() for name in ("event_id", "user_id"))
            some = table.filter(pa.array(stays[event]))
            some = some.set_column(0, "event_id", pa.array(new_event[event[stays[event]]].astype(np.int32)))
            return some.set_column(1, "user_id", pa.array(new_user[user[stays[event]]]))

        events, clicks = renumbered(self.events), renumbered(self.clicks)
        views = None if self.views is None else renumbered(self.views)
        digest = self.engine.fetch("SELECT digest FROM users ORDER BY user_id")["digest"].to_numpy()
        first = new_user[self.first_seen]
        part = LocalLog(
            engine=self.engine.beside(),
            events=events,
            clicks=clicks,
            views=views,
            query_text=self.query_text,
            url_text=self.url_text,
            user_text=self.user_text.take(pa.array(users)),
            user_digest=digest[users],
            first_seen=first[first >= 0],
            extras=self.extras,
            tokens=self.tokens,
            content=self.stats.content,
            rows=_n_rows(events, clicks if views is None else views),
            bad_rows=self.stats.bad_rows,
            empty_rows=self.stats.empty_rows,
            language=self.language,
            scrub=self.stats.scrub,
            series=self.stats.series,
            read_as=self.stats.read_as,
        )
        part.part = Part(self, purpose, users.astype(np.int64))
        return part

    def in_whole(self, table: Table, work: Workspace) -> Table:
        """A table of user_id and "user", with the ids of users in the whole."""
        assert self.part is not None and self.part.users is not None  # noqa: S101, PT018
        found = self.engine.fetch(f'SELECT user_id, "user" FROM {table}')
        ids = self.part.users[found["user_id"].to_numpy()].astype(np.int32)
        return work.read(found.set_column(0, "user_id", pa.array(ids)), "pseudonyms")

    def find(self, query: str) -> int | None:
        """The id of a query, without regard to case and spaces; None if nobody issued it."""
        at = pc.index(self.query_text, normal_form(pa.array([query]))[0].cast(pa.large_string())).as_py()
        return None if at < 0 else int(at)


def split_queries(queries: pa.Array, pool: ThreadPoolExecutor, language: Language) -> Tokens:
    """Split every query into words, and number these in the order of their digests."""
    from queryveil.kernels.digest import digests

    def split(start: int) -> tuple[Longs, pa.Array, Digests]:
        per_query, text = language.words(queries.slice(start, _SLICE))
        return per_query, text, digests(*byte_spans(text))

    column = Column()
    counts = [np.empty(0, np.int64)]
    for per_query, text, found in pool.map(split, range(0, len(queries), _SLICE)):
        counts.append(per_query)
        column.append(text, found)
    ids, ranks = column.finish()
    word = np.concatenate(ids) if ids else np.empty(0, np.int32)
    return Tokens(offsets(np.concatenate(counts)), word, column.texts(ranks))


def local(log: QueryLog, what: str) -> LocalLog:
    """The log, if it is in the memory of this machine.

    Raises:
        QueryveilError: If it is on a cluster, where `what` cannot be done, or no log.
    """
    check_is_log(log, what)
    if not isinstance(log, LocalLog):
        raise refusal(what)
    return log


def refusal(what: str) -> QueryveilError:
    """The error that `what` cannot be done on a cluster."""
    return QueryveilError(f"{what} needs a log in the memory of one machine; read it without {option('engine')}.")


def _n_rows(events: pa.Table, results: pa.Table) -> int:
    """How many rows a log has when it is written: one per result, and one per event without any."""
    return len(events) + len(results) - int(pc.count_distinct(results["event_id"]).as_py())


def _dictionary(name: str, text: pa.Array) -> pa.Table:
    return pa.table({f"{name}_id": np.arange(len(text), dtype=np.int32), name: text})


def _query_terms(tokens: Tokens) -> pa.Table:
    query, position = tokens.owners.astype(np.int32), tokens.within.astype(np.int32)
    return pa.table({"query_id": query, "position": position, "word_id": tokens.word})
