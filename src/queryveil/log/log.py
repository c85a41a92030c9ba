"""QueryLog: who searched for what, when, and what they clicked, as integer tables.

Ids are whole numbers in the order of the texts' digests, so that they follow from the content and not from the order of
rows or files. An event is a distinct (user, query, time); clicks belong to events. A row without a time may be another
search for the same words, so it is an event of its own.
"""

import hashlib
import hmac
import threading
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

import numpy as np
import pyarrow as pa

from queryveil.engines import Batches, Engine, Table, Workspace
from queryveil.errors import QueryveilError, option
from queryveil.files.folders import Folder
from queryveil.kernels.types import Longs
from queryveil.log.sharing import Shared
from queryveil.log.stats import LogStats, Scrub
from queryveil.text import Language
from queryveil.text.masks import MASKS
from queryveil.text.scripts import scripts_of
from queryveil.text.tabular import html_facts


@dataclass(frozen=True)
class Part:
    """What `QueryLog.only`, or `QueryLog.rewritten`, made a log from."""

    of: "QueryLog"
    purpose: str | None
    """What decided which queries are in it; None if queries were rewritten, so that they have ids of their own."""
    users: Longs | None
    """The id of each user in the log that it is a part of; None if it is the same."""


DERIVED = {
    "query_users": (
        (),
        "SELECT query_id, user_id, count(*) AS events FROM events GROUP BY query_id, user_id",
    ),
    "per_query": (
        ("query_users",),
        "SELECT query_id, count(*) AS users, CAST(sum(events) AS BIGINT) AS events FROM query_users GROUP BY query_id",
    ),
    "word_users": (
        ("query_users",),
        "SELECT word_id, count(*) AS users FROM (SELECT t.word_id AS word_id, u.user_id AS user_id FROM query_users u"
        " JOIN query_terms t ON t.query_id = u.query_id GROUP BY t.word_id, u.user_id) AS pairs GROUP BY word_id",
    ),
    "rarest": (
        ("word_users",),
        "SELECT query_terms.query_id AS query_id, min(word_users.users) AS users FROM query_terms JOIN word_users"
        " ON word_users.word_id = query_terms.word_id GROUP BY query_terms.query_id",
    ),
    "masked": (
        (),
        "SELECT query_id FROM queries WHERE " + " OR ".join(f"instr(query, '{mask}') > 0" for mask in MASKS),
    ),
}
"""Tables that are made when they are first needed: which others each needs, and its SQL."""


TEXTS = {"query": "queries", "url": "urls"}
"""The table of each kind of text."""


class QueryLog(ABC):
    """A query log, made by `read_log`; immutable, so that any number of threads may use it.

    The tables, as the engine knows them:

    | table   | columns                                                                     |
    |---------|-----------------------------------------------------------------------------|
    | events  | event_id, user_id, query_id, time, and one `NAME id` for each extra column  |
    | clicks  | event_id, user_id, query_id, rank, url_id                                   |
    | views   | event_id, user_id, query_id, rank, url_id, clicked (0 or 1)                 |
    | users   | user_id, user, digest                                                       |
    | queries | query_id, query                                                             |
    | urls    | url_id, url                                                                 |
    | query_terms     | query_id, position, word_id                                                 |
    | words   | word_id, word                                                               |
    | extra NAME | id, value                                                                |

    The table `views` has the results that were shown, and exists only in a log that says so; `clicks` are those that
    were clicked, in every log. And, once `ensure_tables` has asked for them:

    | table      | columns                                                                 |
    |------------|-------------------------------------------------------------------------|
    | query_users  | query_id, user_id, events: who issued what, and how often               |
    | per_query  | query_id, users, events                                                 |
    | word_users | word_id, users                                                          |
    | rarest     | query_id, users: the users of its rarest word; no row without a word    |
    | masked     | query_id: the queries that hold a mask                                  |

    Attributes:
        engine: Where the tables are.
        stats: How many of everything there are.
        language: The language of its queries, maybe several together.
        id_type: The type of ids.
        kept: What several methods or measures need of it; see `queryveil.log.sharing`.
        part: What it was made from, if that is another log.
    """

    id_type: pa.DataType

    def __init__(self, engine: Engine, stats: LogStats, language: Language) -> None:
        self.engine = engine
        self.stats = stats
        self.language = language
        self._made: set[str] = set()
        self._making = threading.RLock()
        self.kept = Shared()
        self.part: Part | None = None
        self._counted: QueryLog | None = None

    def __repr__(self) -> str:
        stats = self.stats
        return f"<QueryLog: {stats.events:,} events, {stats.users:,} users, {stats.queries:,} distinct queries>"

    def _repr_html_(self) -> str:
        stats = self.stats
        facts: dict[str, object] = {
            "rows": stats.rows,
            "events": stats.events,
            "users": stats.users,
            "distinct queries": stats.queries,
            "distinct words": stats.words,
            **({"views": stats.views} if self.has_views else {}),
            "clicks": stats.clicks,
            "events with a time": stats.timed,
            "extra columns": len(stats.extras),  # not their names, which may be data in a file without a header
            "empty rows": stats.empty_rows,
            **{f"bad rows: {kind}": count for kind, count in stats.bad_rows.count.items()},
        }
        if stats.scrub is not None:
            facts["scrubbed"] = f"{stats.scrub.how}: {', '.join(stats.scrub.kinds)}"
        return html_facts("Query log", facts.items())

    @property
    def n_users(self) -> int:
        """How many users the log has."""
        return self.stats.users

    @property
    def n_queries(self) -> int:
        """How many distinct queries the log has."""
        return self.stats.queries

    @property
    def has_times(self) -> bool:
        """Whether any event has a time."""
        return self.stats.timed > 0

    @property
    def has_clicks(self) -> bool:
        """Whether there is any click."""
        return self.stats.clicks > 0

    @property
    def has_views(self) -> bool:
        """Whether the log says which results were shown, clicked or not."""
        return self.stats.views > 0

    @property
    def results(self) -> str:
        """The table of the results that the log knows: `views` if it has them, else `clicks`."""
        return "views" if self.has_views else "clicks"

    @property
    def result_tables(self) -> list[tuple[str, str]]:
        """The tables of results, and SQL of the column of an alias `c` that the second one has beside the first."""
        return [("clicks", ""), *([("views", ", c.clicked AS clicked")] if self.has_views else [])]

    @property
    def has_results(self) -> bool:
        """Whether there is any result, shown or clicked."""
        return self.has_views or self.has_clicks

    @cached_property
    def scripts(self) -> int:
        """The scripts of its words, as bits in the order of `queryveil.text.scripts.SCRIPTS`."""
        with self.workspace() as work:
            found = work.map("SELECT word FROM words", _scripts_of_words, _BITS, "scripts")
            distinct = work.fetch(f"SELECT bits FROM {found} GROUP BY bits")["bits"].to_numpy()
        return int(np.bitwise_or.reduce(distinct, initial=0))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the content that does not depend on the order of rows, nor on files and formats.

        A scrubbed log keeps the fingerprint of the original. Do not publish it: somebody with all rows but one can find
        the last row by trying. Publish `keyed_fingerprint` instead.
        """
        return hashlib.sha256(b"fingerprint" + self.stats.content).hexdigest()

    def keyed_fingerprint(self, seed: int) -> str:
        """A digest of the content that says nothing without the seed of the release."""
        return hmac.new(b"fingerprint|%d" % seed, self.stats.content, hashlib.sha256).hexdigest()

    def list_key(self, seed: int) -> bytes:
        """A key for digests of lists that are not published: nobody can try short lists without the seed and the log.

        The log alone would not do: somebody who knows the list and all rows but one could find the last row by trying.
        It is the same for a scrubbed log and for a part of a log.
        """
        return hmac.new(b"list|%d" % seed, self.stats.content, hashlib.sha256).digest()

    def secret(self, seed: int, *purpose: str) -> bytes:
        """Sixteen bytes that follow from the seed, a purpose and the whole content of the log.

        The seed of a release is secret, but somebody may choose one that is easily guessed. Draws that a reader of the
        release must not repeat, such as pseudonyms, are therefore keyed by the log as well, which the reader does not
        have. A scrubbed log, and a part of a log, have other draws than the original, so that their releases cannot be
        matched.
        """
        if self.part is not None and self.part.purpose is not None:
            purpose = (*purpose, self.part.purpose)
        if self.stats.scrub is not None:
            # Another version of a package that finds the same is no reason for another release.
            purpose = (*purpose, self.stats.scrub.model_copy(update={"packages": {}}).model_dump_json())
        return hashlib.sha256(
            b"|".join([*(part.encode() for part in purpose), str(seed).encode(), self.stats.content])
        ).digest()[:16]

    def ensure_tables(self, *names: str) -> None:
        """Make some of the tables that are made on demand, unless they exist."""
        with self._making:
            for name in names:
                if name not in self._made:
                    needs, query = DERIVED[name]
                    self.ensure_tables(*needs)
                    self._make(name, query)
                    self._made.add(name)

    def workspace(self) -> Workspace:
        """Tables for one job on this log, with unique names; they are dropped when it ends."""
        return Workspace(self.engine)

    def _make(self, name: str, query: str) -> None:
        self.engine.materialize(query, name)

    @abstractmethod
    def texts(self, rows: Table, schema: pa.Schema, queries: Table | None = None) -> Batches:
        """Rows that `Workspace.number` kept, with the texts of their query_id and url_id.

        Args:
            rows: The rows.
            schema: The columns wanted: `query`, `url` and any that the rows have.
            queries: The table that has the text of each query_id; by default that of the log.
        """

    def known_texts(self, work: Workspace, given: str, name: Literal["query", "url"]) -> Table:
        """Those of some texts that are queries or addresses of the log, with their ids.

        Args:
            work: The workspace of the table.
            given: SQL of the texts, each once, in a column `query` or `url`.
            name: Which of the two.
        """
        texts = TEXTS[name]
        return work.table(
            f"SELECT t.{name}_id AS {name}_id, t.{name} AS {name} FROM {texts} t JOIN ({given}) AS g"
            f" ON g.{name} = t.{name}",
            f"known {texts}",
        )

    @abstractmethod
    def items(self, work: Workspace, rows: Table, schema: pa.Schema, names: pa.Array) -> Batches:
        """Rows that `Workspace.number` kept, with their query_id, a node of a tree, as `node` and its name as `item`.

        Args:
            work: The workspace of the rows.
            rows: The rows.
            schema: The columns wanted: `item`, `node` and any that the rows have.
            names: The name of every node.
        """

    @abstractmethod
    def write(self, folder: Folder, table: str, format: str, schema: pa.Schema, batches: Batches) -> None:
        """Write a released table into a folder."""

    @abstractmethod
    def folder(self, path: str | Path) -> Folder:
        """A folder that the engine of the log can reach."""

    @abstractmethod
    def rewritten(self, texts: str, urls: str, scrub: Scrub) -> "QueryLog":
        """This log with other queries, and fewer clicks and views, in tables of its own.

        Events are renumbered in the order of user, time and query, users and queries without an event are dropped, and
        the fingerprint stays.

        Args:
            texts: SQL of query_id, text and same: what each query becomes, NULL if its events are left out, and whether
                it stays the same. Only clicks and views of queries that stay the same are kept, because an address
                often repeats what was masked.
            urls: SQL of url_id: clicks and views of these addresses are left out, and their events stay.
            scrub: How the log was scrubbed.
        """

    @abstractmethod
    def only(self, queries: Table, purpose: str) -> "QueryLog":
        """The events of some queries, as a log of its own with the same ids of queries, words and addresses.

        Users without such an event are dropped, and the fingerprint stays.

        Args:
            queries: The query_id of each.
            purpose: What decided which queries these are; draws depend on it.
        """

    @abstractmethod
    def in_whole(self, table: Table, work: Workspace) -> Table:
        """A table of user_id and "user", with the ids that users have in the log that this one was made from.

        Args:
            table: The table, on the engine of this log.
            work: A workspace of the other.
        """

    @property
    def whole(self) -> "QueryLog":
        """The log with the same ids of queries that this one is a part of, or itself."""
        return self if self.part is None or self.part.purpose is None else self.part.of

    def counted_on(self, other: "QueryLog") -> Self:
        """This log, with another one in which rules count the users of fragments, such as 13 months around a day."""
        check_is_log(other, "counted_on")
        if other.language.ids != self.language.ids:
            raise QueryveilError(
                f"The log was read in {self.language.id} and the one to count on in {other.language.id}, which have"
                f" other words; read both with {option('language', ','.join(self.language.ids))}."
            )
        beside = copy(self)
        beside._counted = other
        return beside

    @property
    def counted(self) -> "QueryLog":
        """The log in which rules count the users of fragments: the one that `counted_on` named, or itself."""
        if self._counted is not None:
            return self._counted
        made_from = None if self.part is None else self.part.of
        return self if made_from is None or made_from.counted is made_from else made_from.counted

    @cached_property
    def lengths(self) -> pa.Table:
        """For each number of `words`, how many distinct `queries` and `events` have it."""
        self.ensure_tables("per_query")
        return self.engine.fetch(
            "SELECT words, count(*) AS queries, CAST(sum(events) AS BIGINT) AS events FROM"
            " (SELECT p.events AS events, coalesce(t.words, 0) AS words FROM per_query p LEFT JOIN"
            " (SELECT query_id, count(*) AS words FROM query_terms GROUP BY query_id) AS t"
            " ON t.query_id = p.query_id) AS long GROUP BY words ORDER BY words"
        )

    def frequencies(self, kept: str | None = None) -> pa.Table:
        """For each number of `users`, how many distinct `queries` they issued and how many `events` these have.

        Queries of a scrubbed log that hold a mask stand for several queries, and count under 0 users.

        Args:
            kept: SQL of query_id and n, the released events of each query; gives `kept_queries` and `kept_events`.
        """
        self.ensure_tables("per_query")
        users, joined = "p.users", ""
        if self.stats.scrub is not None and self.stats.scrub.how == "mask":
            self.ensure_tables("masked")
            users = "CASE WHEN m.query_id IS NULL THEN p.users ELSE 0 END"
            joined = " LEFT JOIN masked m ON m.query_id = p.query_id"
        some = kept or "SELECT query_id, 0 AS n FROM per_query WHERE query_id IS NULL"
        return self.engine.fetch(
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
            One row per n-gram: word_1 to word_n (word ids, in order), `occurrences` (over events, counting an n-gram
            twice if a query has it twice), `events` that have it, and distinct `users`.
        """
        self.ensure_tables("per_query", "word_users")
        words = range(1, n + 1)
        with self.workspace() as work:
            # The words of a shared run are shared themselves, so runs with other words can be skipped. A table of their
            # own may be small enough to be sent to where the words of queries are.
            frequent = work.table(f"SELECT word_id FROM word_users WHERE users >= {min_users}", "frequent words")
            shared = work.table(
                "SELECT t.query_id AS query_id, t.position AS position, t.word_id AS word_id FROM query_terms t"
                f" JOIN {frequent} w ON w.word_id = t.word_id",
                "shared words",
            )
            parts = ", ".join(f"t{i}.word_id AS word_{i}" for i in words)
            keys = ", ".join(f"t{i}.word_id" for i in words)
            joins = "".join(
                f" JOIN {shared} t{i} ON t{i}.query_id = t1.query_id AND t{i}.position = t1.position + {i - 1}"
                for i in words[1:]
            )
            grams = work.table(
                f"SELECT t1.query_id AS query_id, {parts}, count(*) AS times FROM {shared} t1{joins}"
                f" GROUP BY t1.query_id, {keys}",
                "runs of words",
            )
            named = ", ".join(f"g.word_{i} AS word_{i}" for i in words)
            of_gram = ", ".join(f"g.word_{i}" for i in words)
            # A run has no more users than its queries have together; this drops most runs before users are counted.
            seen = work.table(
                f"SELECT {named}, CAST(sum(g.times * p.events) AS BIGINT) AS occurrences, CAST(sum(p.events) AS BIGINT)"
                f" AS events FROM {grams} g JOIN per_query p ON p.query_id = g.query_id GROUP BY {of_gram}"
                f" HAVING sum(p.users) >= {min_users}",
                "frequent runs",
            )
            gram = ", ".join(f"word_{i}" for i in words)
            same = " AND ".join(f"g.word_{i} = s.word_{i}" for i in words)
            used = (
                f"SELECT {gram}, count(*) AS users FROM (SELECT {named}, u.user_id AS user_id FROM {grams} g"
                f" JOIN {seen} s ON {same} JOIN query_users u ON u.query_id = g.query_id"
                f" GROUP BY {of_gram}, u.user_id) AS gram_users GROUP BY {gram} HAVING count(*) >= {min_users}"
            )
            if n == 1:
                used = f"SELECT word_id AS word_1, users FROM word_users WHERE users >= {min_users}"
            same = " AND ".join(f"used.word_{i} = s.word_{i}" for i in words)
            columns = ", ".join(f"s.word_{i} AS word_{i}" for i in words)
            return work.fetch(
                f"SELECT {columns}, s.occurrences AS occurrences, s.events AS events, used.users AS users"
                f" FROM {seen} s JOIN ({used}) AS used ON {same} ORDER BY {', '.join(f's.word_{i}' for i in words)}"
            )

    def close(self) -> None:
        """Drop the log's tables."""
        self.engine.close()


_BITS = pa.schema([("bits", pa.int64())])


def _scripts_of_words(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(np.unique(scripts_of(batch["word"])))], schema=_BITS)


def check_is_log(log: object, what: str) -> None:
    """Refuse anything but a log, most of all its path.

    Args:
        log: What was given.
        what: What needs a log; the beginning of the sentence.

    Raises:
        QueryveilError: If it is something else.
    """
    if not isinstance(log, QueryLog):
        raise QueryveilError(f"{what} needs a log: give what read_log returned. Got a {type(log).__name__} instead.")
