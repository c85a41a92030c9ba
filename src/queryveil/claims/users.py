"""Claims about how many users stand behind what is released."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from queryveil.claims.base import Claim, ColumnNames, Count, Evidence, log_rows
from queryveil.engines import identifier
from queryveil.log import QueryLog


class QueryUsers(Claim):
    """k-anonymity of queries: each released query was issued by at least `users` users."""

    kind: Literal["query-users"] = "query-users"
    users: Count
    exact: ClassVar[str] = "Every released query was issued by at least {users} users of the log."

    def check(self, evidence: Evidence) -> str | None:
        """Count the distinct users of every released query in the log."""
        unknown = evidence.unknown_query()
        if unknown is not None:
            return f"the query '{unknown[0]}' was issued by 0 users"
        found = evidence.first(
            f"SELECT q.query AS query, o.n AS n FROM {evidence.queries} q JOIN (SELECT query_id, count(*) AS n FROM"  # noqa: S608  # parts of this module, checked numbers and escaped names
            f" (SELECT e.query_id AS query_id, e.user_id AS user_id FROM events e JOIN {evidence.queries} q"
            " ON q.query_id = e.query_id GROUP BY e.query_id, e.user_id) AS pairs GROUP BY query_id) AS o"
            f" ON o.query_id = q.query_id WHERE o.n < {self.users} ORDER BY q.query LIMIT 1"
        )
        return None if found is None else f"the query '{found[0]}' was issued by {found[1]} users"


class RowUsers(Claim):
    """Each released combination of a query, what was clicked and some metadata has at least `users` users."""

    kind: Literal["row-users"] = "row-users"
    users: Count
    columns: ColumnNames
    """The columns of the combination, beside the query."""
    clicked: bool = False
    """Whether only rows with a click are meant."""

    @model_validator(mode="after")
    def _with_url(self) -> Self:
        if (self.clicked or "rank" in self.columns) and "url" not in self.columns:
            raise ValueError("a click is known by its address")
        return self

    @property
    def _what(self) -> str:
        return "row" if not self.clicked else "rank" if "rank" in self.columns else "click"

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        names = ", ".join(("query", *self.columns))
        return f"Every released {self._what} shares its ({names}) with at least {self.users} users of the log."

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        return f"Every released {self._what} is shared by at least {self.users} users."

    def check(self, evidence: Evidence) -> str | None:
        """Count the distinct users of every released combination in the log."""
        names = ["query", *self.columns]
        missing = [name for name in self.columns if name not in evidence.columns]
        if missing:
            return None if self.clicked and "url" in missing else f"the release has no column '{missing[0]}'"
        if self.clicked and set(self.columns) <= {"url", "rank"}:
            return few_users(evidence, self.columns, self.users, "clicks")
        strange = _strange(evidence.log, [name for name in self.columns if name not in ("url", "rank")])
        if strange is not None:
            return strange
        # A merged value stands for every value, so all users with any of them share the row.
        same = " AND ".join(
            f"o.{identifier(name)} IS NOT DISTINCT FROM r.{identifier(name)}"
            if name in ("query", "url", "rank")
            else _fits(name)
            for name in names
        )
        quoted = ", ".join(map(identifier, names))
        mine = ", ".join(f"r.{identifier(name)}" for name in names)
        where = "WHERE " + " AND ".join(f"{identifier(n)} IS NOT NULL" for n in self.columns) if self.clicked else ""
        found = evidence.first(
            f"SELECT {mine}, count(DISTINCT o.user_id) AS n FROM"  # noqa: S608  # names are escaped, numbers checked
            f" (SELECT DISTINCT {quoted} FROM {evidence.released} {where}) r"
            f" LEFT JOIN ({log_rows(evidence.log, names)}) o ON {same} GROUP BY {mine}"
            f" HAVING count(DISTINCT o.user_id) < {self.users} ORDER BY ALL LIMIT 1"
        )
        return _refuted(names, found)


def few_users(evidence: Evidence, columns: Sequence[str], users: int, results: str) -> str | None:
    """The first released result that fewer users share, counted by ids.

    Args:
        evidence: The log and the release.
        columns: The columns that they share beside the query: `url`, and maybe `rank`.
        users: Least users.
        results: The table of the log that holds such results.
    """
    keys = [{"url": "url_id"}.get(name, name) for name in ("query_id", *columns)]
    ids = ", ".join(f"t.{key} AS {key}" for key in keys)
    same = " AND ".join(f"c.{key} = t.{key}" for key in keys)
    unknown = (evidence.has_unknown("query") or evidence.has_unknown("url")) and evidence.first(
        f"SELECT {', '.join(f'r.{name}' for name in ('query', *columns))}, 0 AS n FROM {evidence.released} r"  # noqa: S608  # parts of this module, checked numbers and escaped names
        f" LEFT JOIN {evidence.queries} q ON q.query = r.query LEFT JOIN {evidence.urls} u ON u.url = r.url"
        " WHERE (q.query_id IS NULL OR u.url_id IS NULL) AND "
        + " AND ".join(f"r.{name} IS NOT NULL" for name in columns)
        + " ORDER BY ALL LIMIT 1"
    )
    return _refuted(
        ("query", *columns),
        unknown
        or evidence.first(
            f"WITH ours AS (SELECT {', '.join(keys)} FROM {evidence.rows} WHERE url_id IS NOT NULL"  # noqa: S608  # parts of this module, checked numbers and escaped names
            f"{' AND rank IS NOT NULL' if 'rank' in keys else ''} GROUP BY {', '.join(keys)}),"
            f" people AS (SELECT {ids}, c.user_id AS user_id FROM {results} c JOIN ours t ON {same}"
            f" GROUP BY {', '.join(f't.{key}' for key in keys)}, c.user_id),"
            f" counted AS (SELECT {', '.join(keys)}, count(*) AS n FROM people GROUP BY {', '.join(keys)})"
            f" SELECT {', '.join({'query_id': 'q.query', 'url_id': 'u.url'}.get(key, f't.{key}') for key in keys)},"
            f" coalesce(c.n, 0) AS n FROM ours t LEFT JOIN counted c ON {same}"
            f" JOIN {evidence.queries} q ON q.query_id = t.query_id JOIN {evidence.urls} u ON u.url_id = t.url_id"
            f" WHERE coalesce(c.n, 0) < {users} ORDER BY ALL LIMIT 1"
        ),
    )


def _refuted(names: Sequence[str], found: tuple[object, ...] | None) -> str | None:
    """What is wrong with a combination of values, which is followed by the number of its users."""
    if found is None:
        return None
    values = ", ".join(f"{name} '{value}'" for name, value in zip(names, found, strict=False))
    return f"the combination {values} has {found[-1]} users"


def _fits(name: str) -> str:
    """SQL of whether a user of the log has the released value of a column; a merged one stands for all."""
    column = identifier(name)
    return f"(r.{column} = '{CombinationUsers.MERGED}' OR o.{column} IS NOT DISTINCT FROM r.{column})"


def _strange(log: QueryLog, names: list[str]) -> str | None:
    """What is wrong where a column of metadata is none of the log's."""
    wrong = next((name for name in names if name not in log.stats.extras), None)
    return None if wrong is None else f"the log has no column '{wrong}'"


class CombinationUsers(Claim):
    """Each released combination of metadata values has at least `users` users."""

    kind: Literal["combination-users"] = "combination-users"
    users: Count
    columns: Annotated[ColumnNames, Field(min_length=1)]
    short: ClassVar[str] = "Every released combination of metadata has at least {users} users."
    MERGED: ClassVar[str] = "*"
    """Stands for a value that was given up."""

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        return f"Every released combination of {' x '.join(self.columns)} has at least {self.users} users."

    def check(self, evidence: Evidence) -> str | None:
        """Count the users of each combination: in the release if it has users, else all of the log that it fits."""
        missing = next((name for name in self.columns if name not in evidence.columns), None)
        if missing is not None:
            return f"the release has no column '{missing}'"
        strange = _strange(evidence.log, list(self.columns))
        if strange is not None:
            return strange
        names = ", ".join(map(identifier, self.columns))
        mine = ", ".join(f"r.{identifier(name)}" for name in self.columns)
        if "user" in evidence.columns:
            found = evidence.first(
                f'SELECT {names}, count(DISTINCT "user") AS n FROM {evidence.released} GROUP BY {names}'  # noqa: S608  # names are escaped, numbers checked
                f' HAVING count(DISTINCT "user") < {self.users} ORDER BY ALL LIMIT 1'
            )
        else:
            fits = " AND ".join(map(_fits, self.columns))
            found = evidence.first(
                f"SELECT {mine}, count(DISTINCT o.user_id) AS n FROM"  # noqa: S608  # names are escaped, numbers checked
                f" (SELECT DISTINCT {names} FROM {evidence.released}) r LEFT JOIN (SELECT DISTINCT user_id, {names}"
                f" FROM ({log_rows(evidence.log, list(self.columns))})) o ON {fits} GROUP BY {mine}"
                f" HAVING count(DISTINCT o.user_id) < {self.users} ORDER BY ALL LIMIT 1"
            )
        return _refuted(self.columns, found)


class TermUsers(Claim):
    """Each word of a released query was used by at least `users` users."""

    kind: Literal["term-users"] = "term-users"
    of_words: ClassVar[bool] = True
    users: Count
    exact: ClassVar[str] = "Every word of a released query was used by at least {users} users of the log."
    short: ClassVar[str] = "Every word of a released query was used by at least {users} users."

    def check(self, evidence: Evidence) -> str | None:
        """Count the distinct users of every word of every released query."""
        found = evidence.first(
            "WITH used AS (SELECT t.word_id AS word_id, count(DISTINCT e.user_id) AS n FROM events e JOIN query_terms t"  # noqa: S608  # a checked number
            " ON t.query_id = e.query_id GROUP BY t.word_id)"
            f" SELECT q.query, w.word, used.n FROM {evidence.queries} q JOIN query_terms t ON t.query_id = q.query_id"
            " JOIN used ON used.word_id = t.word_id JOIN words w ON w.word_id = t.word_id"
            f" WHERE used.n < {self.users} ORDER BY q.query, w.word LIMIT 1"
        )
        return None if found is None else f"the word '{found[1]}' of '{found[0]}' was used by {found[2]} users"
