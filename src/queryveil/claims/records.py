"""Claims about releases in which all users of a group have one record."""

from typing import ClassVar, Literal

from queryveil.claims.base import Claim, Count, Evidence
from queryveil.claims.marks import marks_of


class IssuedQueries(Claim):
    """Nothing is invented: each released query was issued by somebody."""

    kind: Literal["issued-queries"] = "issued-queries"
    exact: ClassVar[str] = "Every released query was issued by a user of the log."

    def check(self, evidence: Evidence) -> str | None:
        """Look up every released query."""
        found = evidence.unknown_query()
        return None if found is None else f"the query '{found[0]}'"


class RecordUsers(Claim):
    """k-anonymity of users: each released record is that of at least `users` users."""

    kind: Literal["record-users"] = "record-users"
    users: Count
    compact: bool = False
    """Whether a record stands once, with the number of its users."""

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        if self.compact:
            return f"Every released record stands for at least {self.users} users."
        return f"Every released user has the same queries, as often, as at least {self.users - 1} others."

    def check(self, evidence: Evidence) -> str | None:
        """Compare the records of all users by sums of keyed digests of their queries."""
        if "user" not in evidence.columns:
            return "the release has no user ids"
        if self.compact:
            if "users" not in evidence.columns:
                return "the release has no column 'users'"
            found = evidence.first(
                f'SELECT "user", min(users) AS least, max(users) AS most FROM {evidence.released} GROUP BY "user"'  # noqa: S608  # a checked number
                f" HAVING min(users) < {self.users} OR min(users) <> max(users) OR count(users) < count(*)"
                ' ORDER BY "user" LIMIT 1'
            )
            return None if found is None else f"the record {found[0]} stands for {found[1]} to {found[2]} users"
        key = evidence.log.secret(0, "records")
        with evidence.log.workspace() as work:
            marks = work.map(
                f'SELECT "user", query FROM {evidence.released}',  # noqa: S608  # a table of ours
                *marks_of(key, "user", "query"),
                "marked rows",
            )
            records = work.table(
                'SELECT "user", count(*) AS n, CAST(sum(a) AS BIGINT) AS a, CAST(sum(b) AS BIGINT) AS b,'  # noqa: S608  # a table of ours
                f' CAST(sum(c) AS BIGINT) AS c, CAST(sum(d) AS BIGINT) AS d FROM {marks} GROUP BY "user"',
                "marked records",
            )
            found = evidence.first(
                f'SELECT min("user") AS one, count(*) AS users FROM {records} GROUP BY n, a, b, c, d'  # noqa: S608  # a checked number
                f" HAVING count(*) < {self.users} ORDER BY one LIMIT 1"
            )
        return None if found is None else f"the record of user {found[0]} is that of {found[1]} users"


class RecordQueries(Claim):
    """Records are mixtures: as long as the logs of their users are on average, and without copies."""

    kind: Literal["record-queries"] = "record-queries"
    users: Count
    """Least users of a group; a group has fewer than twice as many."""
    compact: bool = False
    part: bool = False
    """Whether an earlier step left out some queries of users."""

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        return (
            f"Records hold {self._as_many} queries as users issued on average, and no query more often than it was"
            f" issued, counted once a record of up to {2 * self.users - 1} users."
        )

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        return f"Records hold {self._as_many} queries as users issued on average, without copies."

    @property
    def _as_many(self) -> str:
        return "at most as many" if self.part else "as many"

    def check(self, evidence: Evidence) -> str | None:
        """Compare the number of queries, all together and each, with the log."""
        weight = "users" if self.compact else "1"
        if self.compact and "users" not in evidence.columns:
            return "the release has no column 'users'"
        (rows,) = evidence.work.row(
            f"SELECT coalesce(CAST(sum({weight}) AS BIGINT), 0) AS n FROM {evidence.released}"  # noqa: S608  # parts of this module
        )
        stats = evidence.log.stats
        # The mean of a group is rounded, so a group of n is off by n / 2 at most.
        missing = stats.events - rows
        if max(-missing, 0 if self.part else missing) * 2 > stats.users:
            return f"the records of all users hold {rows} queries, the log has {stats.events} events"
        if self.compact:
            found = evidence.first(
                f'SELECT "user", users FROM {evidence.released} WHERE users > {2 * self.users - 1}'  # noqa: S608  # a checked number
                ' ORDER BY "user" LIMIT 1'
            )
            if found is not None:
                return f"the record {found[0]} stands for {found[1]} users"
        most = 1 if self.compact else 2 * self.users - 1
        found = evidence.first(
            "SELECT r.query AS query, r.n AS n, coalesce(o.n, 0) AS typed FROM"  # noqa: S608  # a checked number
            f" (SELECT query, count(*) AS n FROM {evidence.released} GROUP BY query) AS r LEFT JOIN"
            " (SELECT q.query AS query, e.n AS n FROM queries q JOIN"
            " (SELECT query_id, count(*) AS n FROM events GROUP BY query_id) AS e"
            " ON e.query_id = q.query_id) AS o ON o.query = r.query"
            f" WHERE r.n > {most} * coalesce(o.n, 0) ORDER BY r.query LIMIT 1"
        )
        return (
            None if found is None else f"the query '{found[0]}' stands {found[1]} times, it was issued {found[2]} times"
        )


class AllUsers(Claim):
    """Nobody is left out: the release has as many users as the log."""

    kind: Literal["all-users"] = "all-users"
    compact: bool = False
    exact: ClassVar[str] = "The release stands for as many users as the log has."

    def check(self, evidence: Evidence) -> str | None:
        """Count the users of both."""
        if not {"user", *(["users"] if self.compact else [])} <= set(evidence.columns):
            return "the release has no user ids"
        one = 'SELECT "user", max(users) AS n' if self.compact else 'SELECT "user", 1 AS n'
        (released,) = evidence.work.row(
            "SELECT coalesce(CAST(sum(n) AS BIGINT), 0) AS n FROM"  # noqa: S608  # parts of this module
            f' ({one} FROM {evidence.released} GROUP BY "user") AS records'
        )
        users = evidence.log.stats.users
        return None if released == users else f"it stands for {released} users, the log has {users}"
