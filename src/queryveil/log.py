"""QueryLog: who searched for what, when, and what they clicked, as integer tables.

Ids are dense integers in the order of the texts' digests, so that they follow from the content and not from the
order of rows or files. An event is a distinct (user, query, time); clicks hang on events. A row without a time
cannot be told from another search for the same words, so it is an event of its own.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.engines import DuckDB
from queryveil.formats import BadRows
from queryveil.text import normal_form


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


class QueryLog:
    """A query log, made by `read_log`; immutable.

    The tables, as the engine knows them:

    | table   | columns                                                                     |
    |---------|-----------------------------------------------------------------------------|
    | events  | event_id, user_id, query_id, time, and one `NAME id` for each extra column  |
    | clicks  | event_id, user_id, query_id, rank, url_id                                   |
    | queries | query_id, query                                                             |
    | urls    | url_id, url                                                                 |
    | tok     | query_id, position, word_id                                                 |
    | searchers | query_id, user_id: who issued what, each once; made when it is first needed |
    | words   | word_id, word                                                               |
    | extra NAME | id, value                                                                |

    Attributes:
        engine: Where the tables live.
        events: The events as an Arrow table, ordered by user, time and query.
        clicks: The clicks as an Arrow table.
        query_text: The query of each query id, in normal form.
        url_text: The address of each url id.
        extras: For each extra column the values of its ids; id -1 means no value.
        tokens: The words of each query.
        has_times: Whether any event has a time.
        bad_rows: Rows that were left out, by kind.
        empty_rows: Rows whose query was empty, which are no events.
        rows: Rows that were read and kept.
    """

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
    ) -> None:
        self.engine = engine
        self.events = events
        self.clicks = clicks
        self.query_text = query_text
        self.url_text = url_text
        self.user_text = user_text
        self.user_digest = user_digest
        self.extras = dict(extras)
        self.tokens = tokens
        self.rows = rows
        self.bad_rows = bad_rows
        self.empty_rows = empty_rows
        self._content = content
        self.has_times = events["time"].null_count < len(events)
        engine.read("events", events)
        engine.read("clicks", clicks)
        engine.read("queries", _dictionary("query", query_text))
        engine.read("urls", _dictionary("url", url_text))
        engine.read("words", _dictionary("word", tokens.text))
        engine.read("tok", _tok(tokens))
        for name, values in self.extras.items():
            engine.read(f"extra {name}", pa.table({"id": np.arange(len(values), dtype=np.int32), "value": values}))

    def __repr__(self) -> str:
        return f"<QueryLog: {len(self.events):,} events, {self.n_users:,} users, {self.n_queries:,} distinct queries>"

    @property
    def n_users(self) -> int:
        """How many users the log has."""
        return len(self.user_text)

    @property
    def n_queries(self) -> int:
        """How many distinct queries the log has."""
        return len(self.query_text)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the content that does not depend on the order of rows, nor on files and formats."""
        return hashlib.sha256(b"fingerprint" + self._content).hexdigest()

    def secret(self, seed: int, *purpose: str) -> bytes:
        """Sixteen bytes that follow from the seed, a purpose and the whole content of the log.

        Releases publish their seed. Draws that must not be repeated by a reader of the release, such as the order of
        fresh user ids, are therefore keyed by the log as well, which the reader does not have.
        """
        return hashlib.sha256(
            b"|".join([*(part.encode() for part in purpose), str(seed).encode(), self._content])
        ).digest()[:16]

    @cached_property
    def searchers(self) -> pa.Table:
        """Who issued what: each (query_id, user_id) once, in no order; the engine knows it as `searchers`."""
        found = self.engine.table("SELECT query_id, user_id FROM events GROUP BY query_id, user_id")
        self.engine.read("searchers", found)
        return found

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
        _ = self.searchers  # makes the table known
        found = self.engine.table(
            "SELECT word_id, count(*) AS n FROM (SELECT tok.word_id AS word_id, searchers.user_id AS user_id"
            " FROM searchers JOIN tok ON tok.query_id = searchers.query_id GROUP BY tok.word_id, searchers.user_id)"
            " AS word_users GROUP BY word_id"
        )
        users = np.zeros(len(self.tokens.text), np.int64)
        users[found["word_id"].to_numpy()] = found["n"].to_numpy()
        return users

    def ngrams(self, n: int, *, min_users: int = 1) -> pa.Table:
        """Every run of n words that occurs in a query, with how often and by whom it is used.

        Args:
            n: How many words.
            min_users: Leave out runs of fewer distinct users.

        Returns:
            A row an n-gram: word_1 to word_n (word ids, in order), `occurrences` (over events, counting an n-gram twice
            that a query holds twice), `events` that hold it, and distinct `users`.
        """
        words = range(1, n + 1)
        gram = ", ".join(f"word_{i}" for i in words)
        # The words of a shared run are shared themselves, so that runs with any other need not be looked at.
        shared = np.flatnonzero(self.users_per_word >= min_users)
        self.engine.read("shared", pa.table({"word_id": pa.array(shared, pa.int32())}))
        self.engine.read(
            "per_query",
            pa.table({"query_id": np.arange(self.n_queries, dtype=np.int32), "events": self.events_per_query,
                      "users": self.users_per_query}),
        )  # fmt: skip
        self.engine.materialize(
            "SELECT tok.query_id AS query_id, tok.position AS position, tok.word_id AS word_id FROM tok"
            " JOIN shared ON shared.word_id = tok.word_id",
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
            users = pa.table({"word_1": pa.array(shared, pa.int32()), "users": self.users_per_word[shared]})
            self.engine.read("word_users", users)
            used = "SELECT word_1, users FROM word_users"
        same = " AND ".join(f"used.word_{i} = seen.word_{i}" for i in words)
        columns = ", ".join(f"seen.word_{i} AS word_{i}" for i in words)
        found = self.engine.table(
            f"SELECT {columns}, seen.occurrences AS occurrences, seen.events AS events, used.users AS users"
            f" FROM seen JOIN ({used}) AS used ON {same} ORDER BY {', '.join(f'seen.word_{i}' for i in words)}"
        )
        self.engine.drop("grams", "seen", "shared_tok")
        for name in ("shared", "per_query", *(["word_users"] if n == 1 else [])):
            self.engine.forget(name)
        return found

    def find(self, query: str) -> int | None:
        """The id of a query, in whatever spelling of case and blanks; None if nobody issued it."""
        at = pc.index(self.query_text, normal_form(pa.array([query]))[0].cast(pa.large_string())).as_py()
        return None if at < 0 else int(at)

    def close(self) -> None:
        """Let go of the log's tables."""
        self.engine.close()


def _dictionary(name: str, text: pa.Array) -> pa.Table:
    return pa.table({f"{name}_id": np.arange(len(text), dtype=np.int32), name: text})


def _tok(tokens: Tokens) -> pa.Table:
    per_query = tokens.per_query
    query = np.repeat(np.arange(len(per_query), dtype=np.int32), per_query)
    position = (np.arange(len(tokens.word)) - np.repeat(tokens.start[:-1], per_query)).astype(np.int32)
    return pa.table({"query_id": query, "position": position, "word_id": tokens.word})
