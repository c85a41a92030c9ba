"""Claims about releases of hashed words, as far as they can be checked without the key."""

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims.base import Claim, Columns, first
from queryveil.log import QueryLog

_FORM = "^[0-9a-f]{16}( [0-9a-f]{16})*$"
_RUNS = pa.schema([("length", pa.int64()), ("n", pa.int64()), ("query", pa.string())])
_TOKENS = pa.schema([("token", pa.string()), ("n", pa.int64())])


class HashedWords(Claim):
    """Tokens stand in the place of words, one for each, and occur as words do."""

    kind: Literal["hashed-words"] = "hashed-words"

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            "Every event whose query has a word is released with as many tokens as there are words and nothing else; as"
            " many distinct tokens as words occur, equally often, and no word of the log is among them."
        )

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Compare what can be counted without the key: events, lengths, users, tokens."""
        engine = log.engine
        if "url" in columns and engine.row("SELECT count(url) + count(rank) AS n FROM released")[0]:
            return "a click is released"
        grouped = "SELECT query, count(*) AS n FROM released GROUP BY query"
        engine.map(grouped, _measured, _RUNS, "runs")
        engine.map(grouped, _cut, _TOKENS, "cut")
        found = self._refuted(log, columns)
        engine.drop("runs", "cut")
        return found

    def _refuted(self, log: QueryLog, columns: Columns) -> str | None:
        wrong = first(log, "SELECT query FROM runs WHERE length = 0 ORDER BY query LIMIT 1")
        if wrong is not None:
            return f"the query '{wrong[0]}' is not made of tokens"
        tokens = "SELECT token, CAST(sum(n) AS BIGINT) AS n FROM cut GROUP BY token"
        wrong = first(log, f"SELECT t.token AS token FROM ({tokens}) AS t JOIN words w ON w.word = t.token LIMIT 1")
        if wrong is not None:
            return f"the token '{wrong[0]}' is a word of the log"
        long = "SELECT query_id, count(*) AS length FROM tok GROUP BY query_id"
        events = "SELECT query_id, user_id, count(*) AS n FROM events GROUP BY query_id, user_id"
        word = (
            "SELECT t.word_id AS word_id, CAST(sum(e.n) AS BIGINT) AS n FROM tok t JOIN"
            f" ({events}) AS e ON e.query_id = t.query_id GROUP BY t.word_id"
        )
        compared = [
            (
                "events have {} words",
                "SELECT length AS size, CAST(sum(n) AS BIGINT) AS n FROM runs GROUP BY length",
                f"SELECT l.length AS size, CAST(sum(e.n) AS BIGINT) AS n FROM ({long}) AS l JOIN ({events}) AS e"
                " ON e.query_id = l.query_id GROUP BY l.length",
            ),
            (
                "words occur {} times",
                f"SELECT n AS size, count(*) AS n FROM ({tokens}) AS t GROUP BY n",
                f"SELECT n AS size, count(*) AS n FROM ({word}) AS w GROUP BY n",
            ),
        ]
        if "user" in columns:
            mine = 'SELECT "user", count(*) AS n FROM released GROUP BY "user"'
            theirs = (
                f"SELECT e.user_id AS user_id, CAST(sum(e.n) AS BIGINT) AS n FROM ({events}) AS e JOIN ({long}) AS l"
                " ON l.query_id = e.query_id GROUP BY e.user_id"
            )
            compared.append(
                (
                    "users have {} events",
                    f"SELECT n AS size, count(*) AS n FROM ({mine}) AS r GROUP BY n",
                    f"SELECT n AS size, count(*) AS n FROM ({theirs}) AS o GROUP BY n",
                )
            )
        for what, released, original in compared:
            both = (
                "SELECT size, CAST(sum(released) AS BIGINT) AS released, CAST(sum(original) AS BIGINT) AS original FROM"
                f" (SELECT size, n AS released, 0 AS original FROM ({released}) AS a UNION ALL"
                f" SELECT size, 0 AS released, n AS original FROM ({original}) AS b) AS ab GROUP BY size"
            )
            row = first(
                log, f"SELECT size, released, original FROM ({both}) AS c WHERE released <> original ORDER BY size"
            )
            if row is not None:
                return f"{row[1]} {what.format(row[0])} in the release, {row[2]} in the log"
        return None


def _measured(batch: pa.RecordBatch) -> pa.RecordBatch:
    """How many tokens each query is made of; 0 if it is not made of tokens."""
    query = pc.fill_null(batch["query"].cast(pa.string()), "")
    formed = pc.match_substring_regex(query, _FORM)
    length = pc.if_else(formed, pc.add(pc.count_substring(query, " "), 1), 0)
    return pa.RecordBatch.from_arrays([length.cast(pa.int64()), batch["n"].cast(pa.int64()), query], schema=_RUNS)


def _cut(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The tokens of each query, one by one."""
    parts = pc.split_pattern(pc.fill_null(batch["query"].cast(pa.string()), ""), " ")
    n = batch["n"].cast(pa.int64()).take(pc.list_parent_indices(parts))
    return pa.RecordBatch.from_arrays([pc.list_flatten(parts), n], schema=_TOKENS)
