"""QueryLog: who searched for what, when, and what they clicked, as integer tables.

Ids are whole numbers in the order of the texts' digests, so that they follow from the content and not from the order of
rows or files. An event is a distinct (user, query, time); clicks hang on events. A row without a time cannot be told
from another search for the same words, so it is an event of its own.
"""

import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from queryveil.engines import Batches, DuckDB, Engine, identifier
from queryveil.errors import QueryveilError
from queryveil.files.folders import Folder, LocalFolder, local_folder
from queryveil.formats import BadRows, writers
from queryveil.text import normal_form, words
from queryveil.text.arrays import byte_spans
from queryveil.text.columns import Column, Digests
from queryveil.text.masks import MASKS

_SLICE = 500_000

_DERIVED = {
    "searchers": ((), "SELECT query_id, user_id, count(*) AS events FROM events GROUP BY query_id, user_id"),
    "per_query": (
        ("searchers",),
        "SELECT query_id, count(*) AS users, CAST(sum(events) AS BIGINT) AS events FROM searchers GROUP BY query_id",
    ),
    "word_users": (
        ("searchers",),
        "SELECT word_id, count(*) AS users FROM (SELECT tok.word_id AS word_id, searchers.user_id AS user_id"
        " FROM searchers JOIN tok ON tok.query_id = searchers.query_id GROUP BY tok.word_id, searchers.user_id)"
        " AS pairs GROUP BY word_id",
    ),
    "rarest": (
        ("word_users",),
        "SELECT tok.query_id AS query_id, min(word_users.users) AS users FROM tok JOIN word_users"
        " ON word_users.word_id = tok.word_id GROUP BY tok.query_id",
    ),
    "masked": (
        (),
        "SELECT query_id FROM queries WHERE " + " OR ".join(f"instr(query, '{mask}') > 0" for mask in MASKS),
    ),
}
"""Tables that are made when they are first needed: which others each needs, and its SQL."""


class Hits(BaseModel):
    """How much of a log holds something of a kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    queries: int
    """Distinct queries."""
    events: int
    urls: int = 0
    """Distinct addresses that were clicked."""
    clicks: int = 0
    """Clicks on these addresses."""


class Size(BaseModel):
    """How much there is in a log."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    queries: int
    """Distinct queries."""
    events: int
    users: int
    clicks: int


class Scrub(BaseModel):
    """How a log was scrubbed, and what was found."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    how: Literal["remove", "mask"]
    kinds: tuple[str, ...]
    rare_term_users: int | None
    hits: dict[str, Hits]
    """By kind; a query or an address that holds several kinds counts for each."""
    total: Hits
    """What holds anything at all."""
    left_out: Hits = Hits(queries=0, events=0)
    """Of that, what is not in the scrubbed log: with `remove` all of it, with `mask` queries with no word left."""
    log: Size | None = None
    """How much there was before; None where it is not told."""

    @property
    def untold(self) -> "Scrub":
        """The same without how much was found, which is exact, and so nothing for a differentially private release."""
        nothing = Hits(queries=0, events=0)
        return self.model_copy(update={"hits": {}, "total": nothing, "left_out": nothing, "log": None})


@dataclass(frozen=True)
class Facts:
    """What is known of a log as a whole."""

    rows: int
    """Rows that were read and kept. Of a scrubbed log, the rows in which it could be written without loss: one a click,
    and one an event without a click; rows that told the same event twice are not told apart there."""
    events: int
    users: int
    queries: int
    words: int
    """Distinct words."""
    clicks: int
    timed: int
    """Events that have a time."""
    extras: tuple[str, ...]
    """The names of the extra columns."""
    empty_rows: int
    """Rows whose query was empty, which are no events."""
    bad_rows: BadRows
    """Rows that were left out, by kind."""
    content: bytes
    """A digest of all rows, whatever their order; of a scrubbed log, those of the original."""
    scrub: Scrub | None = None
    """How the log was scrubbed, if it was."""


class QueryLog(ABC):
    """A query log, made by `read_log`; immutable.

    The tables, as the engine knows them:

    | table   | columns                                                                     |
    |---------|-----------------------------------------------------------------------------|
    | events  | event_id, user_id, query_id, time, and one `NAME id` for each extra column  |
    | clicks  | event_id, user_id, query_id, rank, url_id                                   |
    | users   | user_id, user, digest                                                       |
    | queries | query_id, query                                                             |
    | urls    | url_id, url                                                                 |
    | tok     | query_id, position, word_id                                                 |
    | words   | word_id, word                                                               |
    | extra NAME | id, value                                                                |

    and, once `need` has asked for them:

    | table      | columns                                                                 |
    |------------|-------------------------------------------------------------------------|
    | searchers  | query_id, user_id, events: who issued what, and how often               |
    | per_query  | query_id, users, events                                                 |
    | word_users | word_id, users                                                          |
    | rarest     | query_id, users: the users of its rarest word; no row without a word    |
    | masked     | query_id: the queries that hold a mask                                  |

    Attributes:
        engine: Where the tables live.
        facts: How many of everything there are.
        id_type: The type of ids.
    """

    id_type: pa.DataType

    def __init__(self, engine: Engine, facts: Facts) -> None:
        self.engine = engine
        self.facts = facts
        self._made: set[str] = set()

    def __repr__(self) -> str:
        facts = self.facts
        return f"<QueryLog: {facts.events:,} events, {facts.users:,} users, {facts.queries:,} distinct queries>"

    @property
    def n_users(self) -> int:
        """How many users the log has."""
        return self.facts.users

    @property
    def n_queries(self) -> int:
        """How many distinct queries the log has."""
        return self.facts.queries

    @property
    def has_times(self) -> bool:
        """Whether any event has a time."""
        return self.facts.timed > 0

    @property
    def has_clicks(self) -> bool:
        """Whether there is any click."""
        return self.facts.clicks > 0

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the content that does not depend on the order of rows, nor on files and formats.

        A scrubbed log keeps the fingerprint of the original. It is not for publication: whoever has all rows but one
        finds the last by trying. `keyed_fingerprint` is.
        """
        return hashlib.sha256(b"fingerprint" + self.facts.content).hexdigest()

    def keyed_fingerprint(self, seed: int) -> str:
        """A digest of the content that says nothing to those who do not have the seed of the release."""
        return hmac.new(b"fingerprint|%d" % seed, self.facts.content, hashlib.sha256).hexdigest()

    def secret(self, seed: int, *purpose: str) -> bytes:
        """Sixteen bytes that follow from the seed, a purpose and the whole content of the log.

        The seed of a release is secret, but somebody may choose one that is easily guessed. Draws that a reader of the
        release must not repeat, such as pseudonyms, are therefore keyed by the log as well, which the reader does not
        have. A scrubbed log has other draws than the original, so that releases of the two do not line up.
        """
        if self.facts.scrub is not None:
            purpose = (*purpose, self.facts.scrub.model_dump_json())
        return hashlib.sha256(
            b"|".join([*(part.encode() for part in purpose), str(seed).encode(), self.facts.content])
        ).digest()[:16]

    def need(self, *names: str) -> None:
        """Have some of the tables that are made on demand."""
        for name in names:
            if name not in self._made:
                needs, query = _DERIVED[name]
                self.need(*needs)
                self._make(name, query)
                self._made.add(name)

    def _make(self, name: str, query: str) -> None:
        self.engine.materialize(query, name)

    @abstractmethod
    def texts(self, rows: str, schema: pa.Schema, queries: str = "queries") -> Batches:
        """Rows that `Engine.number` kept, with the texts of their query_id and url_id.

        Args:
            rows: What they are called.
            schema: The columns wanted: `query`, `url` and any that the rows have.
            queries: The table that has the text of each query_id.
        """

    @abstractmethod
    def write(self, folder: Folder, table: str, format: str, schema: pa.Schema, batches: Batches) -> None:
        """Write a released table into a folder."""

    @abstractmethod
    def folder(self, path: str | Path) -> Folder:
        """A folder that the engine of the log reaches."""

    @abstractmethod
    def rewritten(self, texts: str, urls: str, scrub: Scrub) -> "QueryLog":
        """This log with other queries and fewer clicks, in tables of its own.

        Events are numbered anew in the order of user, time and query, users and queries without an event are gone, and
        the fingerprint stays.

        Args:
            texts: SQL of query_id, text and same: what each query becomes, NULL if its events are left out, and whether
                that is what it was. Clicks hang on queries that stay the same alone, because an address often repeats
                what was masked.
            urls: SQL of url_id: clicks on these addresses are left out, and their events stay.
            scrub: What is known of the change.
        """

    @cached_property
    def lengths(self) -> pa.Table:
        """How many distinct `queries` and how many `events` have so many `words`."""
        self.need("per_query")
        return self.engine.table(
            "SELECT words, count(*) AS queries, CAST(sum(events) AS BIGINT) AS events FROM"
            " (SELECT p.events AS events, coalesce(t.words, 0) AS words FROM per_query p LEFT JOIN"
            " (SELECT query_id, count(*) AS words FROM tok GROUP BY query_id) AS t ON t.query_id = p.query_id) AS long"
            " GROUP BY words ORDER BY words"
        )

    def frequencies(self, kept: str | None = None) -> pa.Table:
        """How many distinct `queries` and `events` belong to queries of so many `users`.

        Queries of a scrubbed log that hold a mask stand for several queries, and count under 0 users.

        Args:
            kept: SQL of query_id and n, the released events of each query; gives `kept_queries` and `kept_events`.
        """
        self.need("per_query")
        users, joined = "p.users", ""
        if self.facts.scrub is not None and self.facts.scrub.how == "mask":
            self.need("masked")
            users = "CASE WHEN m.query_id IS NULL THEN p.users ELSE 0 END"
            joined = " LEFT JOIN masked m ON m.query_id = p.query_id"
        some = kept or "SELECT query_id, 0 AS n FROM per_query WHERE query_id IS NULL"
        return self.engine.table(
            f"SELECT {users} AS users, count(*) AS queries, CAST(sum(p.events) AS BIGINT) AS events,"
            " count(k.n) AS kept_queries, CAST(coalesce(sum(k.n), 0) AS BIGINT) AS kept_events FROM per_query p"
            f" LEFT JOIN ({some}) AS k ON k.query_id = p.query_id{joined} GROUP BY {users} ORDER BY {users}"
        )

    def ngrams(self, n: int, *, min_users: int = 1) -> pa.Table:
        """Every run of n words that occurs in a query, with how often and by whom it is used.

        Args:
            n: How many words.
            min_users: Leave out runs of fewer distinct users.

        Returns:
            A row an n-gram: word_1 to word_n (word ids, in order), `occurrences` (over events, counting an n-gram twice
            that a query holds twice), `events` that hold it, and distinct `users`.
        """
        self.need("per_query", "word_users")
        words = range(1, n + 1)
        gram = ", ".join(f"word_{i}" for i in words)
        # The words of a shared run are shared themselves, so that runs with any other need not be looked at.
        self.engine.materialize(
            "SELECT tok.query_id AS query_id, tok.position AS position, tok.word_id AS word_id FROM tok"
            f" JOIN word_users w ON w.word_id = tok.word_id WHERE w.users >= {min_users}",
            "shared_tok",
        )
        parts = ", ".join(f"t{i}.word_id AS word_{i}" for i in words)
        keys = ", ".join(f"t{i}.word_id" for i in words)
        joins = "".join(
            f" JOIN shared_tok t{i} ON t{i}.query_id = t1.query_id AND t{i}.position = t1.position + {i - 1}"
            for i in words[1:]
        )
        self.engine.materialize(
            f"SELECT t1.query_id AS query_id, {parts}, count(*) AS times FROM shared_tok t1{joins}"
            f" GROUP BY t1.query_id, {keys}",
            "grams",
        )
        named = ", ".join(f"grams.word_{i} AS word_{i}" for i in words)
        of_gram = ", ".join(f"grams.word_{i}" for i in words)
        # A run has no more users than its queries have together; most runs fall here, before users are told apart.
        self.engine.materialize(
            f"SELECT {named}, CAST(sum(grams.times * per_query.events) AS BIGINT) AS occurrences,"
            " CAST(sum(per_query.events) AS BIGINT) AS events FROM grams JOIN per_query"
            f" ON per_query.query_id = grams.query_id GROUP BY {of_gram} HAVING sum(per_query.users) >= {min_users}",
            "seen",
        )
        same = " AND ".join(f"grams.word_{i} = seen.word_{i}" for i in words)
        used = (
            f"SELECT {gram}, count(*) AS users FROM (SELECT {named}, searchers.user_id AS user_id FROM grams"
            f" JOIN seen ON {same} JOIN searchers ON searchers.query_id = grams.query_id"
            f" GROUP BY {of_gram}, searchers.user_id) AS gram_users GROUP BY {gram} HAVING count(*) >= {min_users}"
        )
        if n == 1:
            used = f"SELECT word_id AS word_1, users FROM word_users WHERE users >= {min_users}"
        same = " AND ".join(f"used.word_{i} = seen.word_{i}" for i in words)
        columns = ", ".join(f"seen.word_{i} AS word_{i}" for i in words)
        found = self.engine.table(
            f"SELECT {columns}, seen.occurrences AS occurrences, seen.events AS events, used.users AS users"
            f" FROM seen JOIN ({used}) AS used ON {same} ORDER BY {', '.join(f'seen.word_{i}' for i in words)}"
        )
        self.engine.drop("grams", "seen", "shared_tok")
        return found

    def close(self) -> None:
        """Let go of the log's tables."""
        self.engine.close()


NOTHING_LEFT = "Nothing is left of the log: every event was scrubbed; scrub fewer kinds, or fewer rare words."


@dataclass(frozen=True)
class Tokens:
    """The words of every distinct query: those of query q are word[start[q]:start[q + 1]]."""

    start: NDArray[np.int64]
    word: NDArray[np.int32]
    text: pa.Array
    """The word of each word id."""

    @property
    def per_query(self) -> NDArray[np.int64]:
        """How many words each query has."""
        return np.diff(self.start)


class LocalLog(QueryLog):
    """A log in the memory of this machine: the same tables, and their columns as arrays for compiled loops.

    Ids are dense, from 0.

    Attributes:
        events: The events as an Arrow table, ordered by user, time and query.
        clicks: The clicks as an Arrow table.
        query_text: The query of each query id, in normal form.
        url_text: The address of each url id.
        user_text: The name of each user id.
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
        user_digest: NDArray[np.uint64],
        extras: Mapping[str, pa.Array],
        tokens: Tokens,
        content: bytes,
        rows: int,
        bad_rows: BadRows,
        empty_rows: int,
        scrub: Scrub | None = None,
    ) -> None:
        facts = Facts(
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
        )
        super().__init__(engine, facts)
        self.events = events
        self.clicks = clicks
        self.query_text = query_text
        self.url_text = url_text
        self.user_text = user_text
        self.extras = dict(extras)
        self.tokens = tokens
        engine.read("events", events)
        engine.read("clicks", clicks)
        engine.read("users", _dictionary("user", user_text).append_column("digest", pa.array(user_digest)))
        engine.read("queries", _dictionary("query", query_text))
        engine.read("urls", _dictionary("url", url_text))
        engine.read("words", _dictionary("word", tokens.text))
        engine.read("tok", _tok(tokens))
        for name, values in self.extras.items():
            engine.read(f"extra {name}", pa.table({"id": np.arange(len(values), dtype=np.int32), "value": values}))

    def _make(self, name: str, query: str) -> None:
        if name == "searchers":
            self.engine.read(name, self.searchers)
        elif name == "per_query":
            columns = {"users": self.users_per_query, "events": self.events_per_query}
            self.engine.read(name, pa.table({"query_id": np.arange(self.n_queries, dtype=np.int32), **columns}))
        else:
            super()._make(name, query)

    @cached_property
    def searchers(self) -> pa.Table:
        """Who issued what, and how often: each (query_id, user_id) once, in no order."""
        return self.engine.table(_DERIVED["searchers"][1])

    @cached_property
    def users_per_query(self) -> NDArray[np.int64]:
        """How many distinct users issued each query."""
        return np.bincount(self.searchers["query_id"].to_numpy(), minlength=self.n_queries)

    @cached_property
    def events_per_query(self) -> NDArray[np.int64]:
        """How many events each query has."""
        return np.bincount(self.events["query_id"].to_numpy(), minlength=self.n_queries)

    @cached_property
    def users_per_word(self) -> NDArray[np.int64]:
        """How many distinct users used each word."""
        self.need("word_users")
        return self._column("word_users", "word_id", self.facts.words)

    @cached_property
    def rarest_word(self) -> NDArray[np.int64]:
        """Users of the rarest word of each query; 0 for a query without a word, which no user vouches for."""
        self.need("rarest")
        return self._column("rarest", "query_id", self.n_queries)

    def _column(self, name: str, key: str, size: int) -> NDArray[np.int64]:
        found = self.engine.table(f"SELECT {key}, users FROM {name}")
        users = np.zeros(size, np.int64)
        users[found[key].to_numpy()] = found["users"].to_numpy()
        return users

    def texts(self, rows: str, schema: pa.Schema, queries: str = "queries") -> Batches:
        """Rows with their texts, which are looked up as the rows leave."""
        numbers = self.engine.ordered(rows)
        text, ids = self.query_text, None
        if queries != "queries":
            known = self.engine.table(
                f"SELECT query_id, query FROM {identifier(queries)} ORDER BY query_id"
            ).combine_chunks()
            text, ids = known["query"].combine_chunks(), known["query_id"].to_numpy()

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in numbers():
                found = {name: batch[name] for name in batch.schema.names}
                place = batch["query_id"] if ids is None else pa.array(np.searchsorted(ids, batch["query_id"]))
                found["query"] = text.take(place).cast(pa.string())
                if "url" in schema.names:
                    found["url"] = self.url_text.take(batch["url_id"]).cast(pa.string())
                yield pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)

        return batches

    def write(self, folder: Folder, table: str, format: str, schema: pa.Schema, batches: Batches) -> None:
        """Write a released table to a file."""
        place = local_folder(str(folder)).path / table
        place.touch(0o600)
        writers.write(place, format, schema, batches())

    def folder(self, path: str | Path) -> LocalFolder:
        """A folder on this machine."""
        return local_folder(path)

    def rewritten(self, texts: str, urls: str, scrub: Scrub) -> "LocalLog":
        """This log with other queries: texts are numbered as on reading, and rows sorted again."""
        from queryveil.kernels.digest import digests

        old = self.engine.table(f"SELECT query_id, text, same FROM ({texts}) AS texts ORDER BY query_id")
        text = old["text"].combine_chunks().cast(pa.large_string())
        column = Column()
        for start in range(0, len(text), _SLICE):
            some = pc.fill_null(text.slice(start, _SLICE), "")
            column.append_given(some, digests(*byte_spans(some)))  # no query is empty, so what is empty is gone
        ids, ranks = column.finish()
        query_text = column.texts(ranks)
        columns = {"query_id": old["query_id"], "new_id": pa.chunked_array(ids), "same": old["same"]}
        self.engine.read("rewritten", pa.table(columns))
        extras = "".join(f", e.{name} AS {name}" for name in (identifier(f"{extra} id") for extra in self.extras))
        rows = self.engine.table(
            f"SELECT e.event_id AS event_id, e.user_id AS user_id, r.new_id AS query_id, e.time AS time{extras}"
            " FROM events e JOIN rewritten r ON r.query_id = e.query_id WHERE r.new_id >= 0"
            " ORDER BY user_id, time NULLS FIRST, r.new_id, event_id"
        ).combine_chunks()
        if len(rows) == 0:
            raise QueryveilError(NOTHING_LEFT)
        there = np.zeros(self.n_users, np.bool_)
        there[rows["user_id"].to_numpy()] = True
        new_user = np.cumsum(there, dtype=np.int32) - np.int32(1)
        event = pa.array(np.arange(len(rows), dtype=np.int32))
        self.engine.read("renumbered", pa.table({"event_id": rows["event_id"], "new_id": event}))
        clicks = self.engine.table(
            "SELECT n.new_id AS event_id, c.user_id AS user_id, r.new_id AS query_id, c.rank AS rank,"
            " c.url_id AS url_id FROM clicks c JOIN renumbered n ON n.event_id = c.event_id"
            " JOIN rewritten r ON r.query_id = c.query_id"
            f" LEFT JOIN ({urls}) AS gone ON gone.url_id = c.url_id"
            " WHERE r.same AND gone.url_id IS NULL ORDER BY n.new_id, rank NULLS FIRST, url_id NULLS FIRST"
        ).combine_chunks()
        digest = self.engine.table("SELECT digest FROM users ORDER BY user_id")["digest"].to_numpy()
        self.engine.drop("rewritten", "renumbered")
        rows = rows.set_column(0, "event_id", event)

        def renumber(table: pa.Table) -> pa.Table:
            return table.set_column(1, "user_id", pa.array(new_user[table["user_id"].to_numpy()]))

        engine = self.engine.beside()
        with ThreadPoolExecutor(engine.threads) as pool:
            tokens = split_queries(query_text, pool)
        return LocalLog(
            engine=engine,
            events=renumber(rows),
            clicks=renumber(clicks),
            query_text=query_text,
            url_text=self.url_text,
            user_text=self.user_text.filter(pa.array(there)),
            user_digest=digest[there],
            extras=self.extras,
            tokens=tokens,
            content=self.facts.content,
            rows=len(rows) + len(clicks) - pc.count_distinct(clicks["event_id"]).as_py(),
            bad_rows=self.facts.bad_rows,
            empty_rows=self.facts.empty_rows,
            scrub=scrub,
        )

    def find(self, query: str) -> int | None:
        """The id of a query, in whatever spelling of case and blanks; None if nobody issued it."""
        at = pc.index(self.query_text, normal_form(pa.array([query]))[0].cast(pa.large_string())).as_py()
        return None if at < 0 else int(at)


def split_queries(queries: pa.Array, pool: ThreadPoolExecutor) -> Tokens:
    """Split every query into words, and number these in the order of their digests."""
    from queryveil.kernels.digest import digests

    def split(start: int) -> tuple[NDArray[np.int64], pa.Array, Digests]:
        per_query, text = words(queries.slice(start, _SLICE))
        return per_query, text, digests(*byte_spans(text))

    column = Column()
    counts = [np.zeros(1, np.int64)]
    for per_query, text, found in pool.map(split, range(0, len(queries), _SLICE)):
        counts.append(per_query)
        column.append(text, found)
    ids, ranks = column.finish()
    word = np.concatenate(ids) if ids else np.empty(0, np.int32)
    return Tokens(np.cumsum(np.concatenate(counts)), word, column.texts(ranks))


def local(log: QueryLog, what: str) -> LocalLog:
    """The log, if it is in the memory of this machine.

    Raises:
        QueryveilError: If it is on a cluster, where `what` cannot be done.
    """
    if not isinstance(log, LocalLog):
        raise QueryveilError(f"{what} needs a log in the memory of one machine; read it without 'engine'.")
    return log


def _dictionary(name: str, text: pa.Array) -> pa.Table:
    return pa.table({f"{name}_id": np.arange(len(text), dtype=np.int32), name: text})


def _tok(tokens: Tokens) -> pa.Table:
    per_query = tokens.per_query
    query = np.repeat(np.arange(len(per_query), dtype=np.int32), per_query)
    position = (np.arange(len(tokens.word)) - np.repeat(tokens.start[:-1], per_query)).astype(np.int32)
    return pa.table({"query_id": query, "position": position, "word_id": tokens.word})
