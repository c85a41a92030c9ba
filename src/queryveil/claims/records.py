"""Claims about releases in which all users of a group have one record."""

from typing import Literal

import numpy as np
import pyarrow as pa

from queryveil.claims.base import Claim, Columns, Count, first
from queryveil.log import QueryLog


class IssuedQueries(Claim):
    """Nothing is invented: each released query was issued by somebody."""

    kind: Literal["issued-queries"] = "issued-queries"

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return "Every released query was issued by a user of the log."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Look up every released query."""
        found = first(
            log,
            "SELECT r.query AS query FROM (SELECT query FROM released GROUP BY query) AS r LEFT JOIN queries q"
            " ON q.query = r.query WHERE q.query_id IS NULL ORDER BY r.query LIMIT 1",
        )
        return None if found is None else f"the query '{found[0]}'"


class RecordUsers(Claim):
    """k-anonymity of users: each released record is that of at least `users` users."""

    kind: Literal["record-users"] = "record-users"
    users: Count
    compact: bool = False
    """Whether a record stands once, with the number of its users."""

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        if self.compact:
            return f"Every released record stands for at least {self.users} users."
        return f"Every released user has the same queries, as often, as at least {self.users - 1} others."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Compare the records of all users by sums of keyed digests of their queries."""
        if "user" not in columns:
            return "the release does not tell users apart"
        if self.compact:
            if "users" not in columns:
                return "the release has no column 'users'"
            found = first(
                log,
                'SELECT "user", min(users) AS least, max(users) AS most FROM released GROUP BY "user"'  # noqa: S608  # a checked number
                f" HAVING min(users) < {self.users} OR min(users) <> max(users) OR count(users) < count(*)"
                ' ORDER BY "user" LIMIT 1',
            )
            return None if found is None else f"the record {found[0]} stands for {found[1]} to {found[2]} users"
        key = np.frombuffer(log.secret(0, "records"), np.uint64)
        log.engine.map('SELECT "user", query FROM released', _Marks(int(key[0]), int(key[1])), _MARKED, "marks")
        log.engine.materialize(
            'SELECT "user", count(*) AS n, CAST(sum(a) AS BIGINT) AS a, CAST(sum(b) AS BIGINT) AS b,'
            ' CAST(sum(c) AS BIGINT) AS c, CAST(sum(d) AS BIGINT) AS d FROM marks GROUP BY "user"',
            "marked",
        )
        found = first(
            log,
            'SELECT min("user") AS one, count(*) AS users FROM marked GROUP BY n, a, b, c, d'  # noqa: S608  # a checked number
            f" HAVING count(*) < {self.users} ORDER BY one LIMIT 1",
        )
        log.engine.drop("marks", "marked")
        return None if found is None else f"the record of user {found[0]} is that of {found[1]} users"


_MARKED = pa.schema([("user", pa.int64()), *((name, pa.int64()) for name in "abcd")])


class _Marks:
    """Marks every row by four numbers of 31 bits that follow from its query, so that their sums tell records apart."""

    def __init__(self, one: int, other: int) -> None:
        self.keys = (one, other)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        from queryveil.kernels.digest import digests
        from queryveil.log.draws import keyed
        from queryveil.text.arrays import byte_spans

        key = np.array(self.keys, np.uint64).tobytes()
        numbers = [keyed(key, half) for half in digests(*byte_spans(batch["query"].cast(pa.string())))]
        marks = [part.astype(np.int64) for n in numbers for part in (n >> np.uint64(33), n & np.uint64(0x7FFFFFFF))]
        return pa.RecordBatch.from_arrays([batch["user"].cast(pa.int64()), *map(pa.array, marks)], schema=_MARKED)


class RecordQueries(Claim):
    """Records are mixtures: as long as the logs of their users are on average, and without copies."""

    kind: Literal["record-queries"] = "record-queries"
    users: Count
    """Least users of a group; a group has fewer than twice as many."""
    compact: bool = False

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            "Records hold as many queries as users issued on average, and no query more often than it was issued,"
            f" counted once a record of up to {2 * self.users - 1} users."
        )

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Compare the number of queries, all together and each, with the log."""
        weight = "users" if self.compact else "1"
        if self.compact and "users" not in columns:
            return "the release has no column 'users'"
        (rows,) = log.engine.row(f"SELECT coalesce(CAST(sum({weight}) AS BIGINT), 0) AS n FROM released")  # noqa: S608  # parts of this module
        # The mean of a group is rounded, so a group of n is off by n / 2 at most.
        if abs(rows - log.facts.events) * 2 > log.facts.users:
            return f"the records of all users hold {rows} queries, the log has {log.facts.events} events"
        if self.compact:
            found = first(
                log,
                f'SELECT "user", users FROM released WHERE users > {2 * self.users - 1} ORDER BY "user" LIMIT 1',  # noqa: S608  # a checked number
            )
            if found is not None:
                return f"the record {found[0]} stands for {found[1]} users"
        most = 1 if self.compact else 2 * self.users - 1
        found = first(
            log,
            "SELECT r.query AS query, r.n AS n, coalesce(o.n, 0) AS typed FROM"  # noqa: S608  # a checked number
            " (SELECT query, count(*) AS n FROM released GROUP BY query) AS r LEFT JOIN"
            " (SELECT q.query AS query, e.n AS n FROM queries q JOIN"
            " (SELECT query_id, count(*) AS n FROM events GROUP BY query_id) AS e"
            " ON e.query_id = q.query_id) AS o ON o.query = r.query"
            f" WHERE r.n > {most} * coalesce(o.n, 0) ORDER BY r.query LIMIT 1",
        )
        return (
            None if found is None else f"the query '{found[0]}' stands {found[1]} times, it was issued {found[2]} times"
        )


class AllUsers(Claim):
    """Nobody is left out: the release has as many users as the log."""

    kind: Literal["all-users"] = "all-users"
    compact: bool = False

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return "The release stands for as many users as the log has."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Count the users of both."""
        if not {"user", *(["users"] if self.compact else [])} <= set(columns):
            return "the release does not tell users apart"
        one = 'SELECT "user", max(users) AS n' if self.compact else 'SELECT "user", 1 AS n'
        (released,) = log.engine.row(
            f'SELECT coalesce(CAST(sum(n) AS BIGINT), 0) AS n FROM ({one} FROM released GROUP BY "user") AS records'  # noqa: S608  # parts of this module
        )
        users = log.facts.users
        return None if released == users else f"it stands for {released} users, the log has {users}"
