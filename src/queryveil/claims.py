"""What a release promises, each promise with the check that could refute it.

The checks read the released table as it stands in the file and the original log, and recompute each promise in the most
literal way. They share nothing with the methods that made the release.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from queryveil.log import QueryLog
from queryveil.text import STOP_WORDS

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Whether one promise holds."""

    claim: str
    holds: bool
    counterexample: str | None = None
    """The first thing in the release that breaks the promise; it stands in the release, so it is no secret."""


class Claim(BaseModel):
    """One promise about a release.

    `check` finds two tables in the log's engine: the log's own, and `released`, the released table with its texts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: str

    @property
    @abstractmethod
    def statement(self) -> str:
        """The promise in one sentence."""

    @abstractmethod
    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """The first counter-example in a release with these columns, or None."""

    def verdict(self, log: QueryLog, columns: Columns) -> Verdict:
        """Check, and say how it went."""
        found = self.check(log, columns)
        return Verdict(self.statement, found is None, found)


class PartOfLog(Claim):
    """Nothing is invented: no event, row or click of a query occurs more often than in the log."""

    kind: Literal["part-of-log"] = "part-of-log"

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return "No query and no click occurs in the release more often than in the log."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Compare rows and events a query, and clicks a query, address and rank."""
        rows = (
            "SELECT e.query_id AS query_id, e.event_id AS event_id, greatest(1, count(c.event_id)) AS n FROM events e"
            " LEFT JOIN clicks c ON c.event_id = e.event_id GROUP BY e.event_id, e.query_id"
        )
        checks = [("rows", "count(*)", f"SELECT query_id, sum(n) AS n FROM ({rows}) GROUP BY query_id")]
        if "event" in columns:
            checks.append(
                ("events", "count(DISTINCT event)", "SELECT query_id, count(*) AS n FROM events GROUP BY query_id")
            )
        for what, number, original in checks:
            found = _first(
                log,
                f"SELECT r.query, r.n, coalesce(o.n, 0) FROM (SELECT query, {number} AS n FROM released GROUP BY query)"
                f" r LEFT JOIN (SELECT q.query AS query, o.n AS n FROM ({original}) o JOIN queries q"
                " ON q.query_id = o.query_id) o ON o.query = r.query WHERE r.n > coalesce(o.n, 0)"
                " ORDER BY r.query LIMIT 1",
            )
            if found is not None:
                return f"the query '{found[0]}' has {found[1]} {what} in the release and {found[2]} in the log"
        if "event" in columns:
            user = 'min("user") <> max("user") OR ' if "user" in columns else ""
            found = _first(
                log,
                "SELECT event FROM released GROUP BY event"
                f" HAVING {user}min(query) <> max(query) ORDER BY event LIMIT 1",
            )
            if found is not None:
                return f"event {found[0]} has several users or queries"
        if "url" not in columns:
            return None
        for keys in (("url",), ("url", "rank")):
            names = ", ".join(keys)
            given = " AND ".join(f"{key} IS NOT NULL" for key in keys)
            same = " AND ".join(f"o.{key} = r.{key}" for key in keys)
            found = _first(
                log,
                f"SELECT r.query, r.url, r.n, coalesce(o.n, 0) FROM (SELECT query, {names}, count(*) AS n FROM released"
                f" WHERE {given} GROUP BY query, {names}) r LEFT JOIN (SELECT query, {names}, count(*) AS n FROM"
                " (SELECT q.query AS query, u.url AS url, c.rank AS rank FROM clicks c JOIN queries q"
                " ON q.query_id = c.query_id JOIN urls u ON u.url_id = c.url_id)"
                f" GROUP BY query, {names}) o ON o.query = r.query AND {same}"
                " WHERE r.n > coalesce(o.n, 0) ORDER BY r.query, r.url LIMIT 1",
            )
            if found is not None:
                where = f"the click on '{found[1]}' for '{found[0]}'" + (" at its rank" if "rank" in keys else "")
                return f"{where} occurs {found[2]} times in the release, {found[3]} in the log"
        return None


class QueryUsers(Claim):
    """k-anonymity of queries: each released query was issued by at least `users` users."""

    kind: Literal["query-users"] = "query-users"
    users: int

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return f"Every released query was issued by at least {self.users} users of the log."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Count the distinct users of every released query in the log."""
        found = _first(
            log,
            "SELECT r.query, coalesce(o.n, 0) FROM (SELECT DISTINCT query FROM released) r LEFT JOIN"
            " (SELECT q.query AS query, o.n AS n FROM (SELECT query_id, count(DISTINCT user_id) AS n FROM events"
            " GROUP BY query_id) o JOIN queries q ON q.query_id = o.query_id) o ON o.query = r.query"
            f" WHERE coalesce(o.n, 0) < {self.users} ORDER BY r.query LIMIT 1",
        )
        return None if found is None else f"the query '{found[0]}' was issued by {found[1]} users"


class RowUsers(Claim):
    """Each released combination of a query, what was clicked and some metadata has at least `users` users."""

    kind: Literal["row-users"] = "row-users"
    users: int
    columns: Columns
    """The columns of the combination, beside the query."""
    clicked: bool = False
    """Whether only rows with a click are meant."""

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        names = ", ".join(("query", *self.columns))
        rows = "click" if self.clicked else "row"
        if self.clicked and "rank" in self.columns:
            rows = "rank"
        return f"Every released {rows} shares its ({names}) with at least {self.users} users of the log."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Count the distinct users of every released combination in the log."""
        names = ["query", *self.columns]
        missing = [name for name in self.columns if name not in columns]
        if missing:
            return None if self.clicked and "url" in missing else f"the release has no column '{missing[0]}'"
        # A merged value stands for every value, so the row is shared by whoever has any of them.
        same = " AND ".join(
            f'o."{name}" IS NOT DISTINCT FROM r."{name}"'
            if name in ("query", "url", "rank")
            else f'(r."{name}" = \'{CombinationUsers.MERGED}\' OR o."{name}" IS NOT DISTINCT FROM r."{name}")'
            for name in names
        )
        quoted = ", ".join(f'"{name}"' for name in names)
        mine = ", ".join(f'r."{name}"' for name in names)
        where = "WHERE " + " AND ".join(f"{n} IS NOT NULL" for n in self.columns) if self.clicked else ""
        found = _first(
            log,
            f"SELECT {mine}, count(DISTINCT o.user_id) AS n FROM (SELECT DISTINCT {quoted} FROM released {where}) r"
            f" LEFT JOIN ({_rows(log, names)}) o ON {same} GROUP BY {mine}"
            f" HAVING count(DISTINCT o.user_id) < {self.users} ORDER BY ALL LIMIT 1",
        )
        if found is None:
            return None
        values = ", ".join(f"{name} '{value}'" for name, value in zip(names, found, strict=False))
        return f"the combination {values} has {found[-1]} users"


class CombinationUsers(Claim):
    """Each released combination of metadata values has at least `users` users."""

    kind: Literal["combination-users"] = "combination-users"
    users: int
    columns: Columns
    MERGED: ClassVar[str] = "*"
    """Stands for a value that was given up."""

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return f"Every released combination of {' x '.join(self.columns)} has at least {self.users} users."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Count users of each combination: in the release if it has users, else those of the log whom it fits."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        mine = ", ".join(f'r."{name}"' for name in self.columns)
        if "user" in columns:
            found = _first(
                log,
                f'SELECT {names}, count(DISTINCT "user") AS n FROM released GROUP BY {names}'
                f' HAVING count(DISTINCT "user") < {self.users} ORDER BY ALL LIMIT 1',
            )
        else:
            fits = " AND ".join(
                f'(r."{n}" = \'{self.MERGED}\' OR o."{n}" IS NOT DISTINCT FROM r."{n}")' for n in self.columns
            )
            found = _first(
                log,
                f"SELECT {mine}, count(DISTINCT o.user_id) AS n FROM"
                f" (SELECT DISTINCT {names} FROM released) r LEFT JOIN (SELECT DISTINCT user_id, {names} FROM"
                f" ({_rows(log, list(self.columns))})) o ON {fits} GROUP BY {mine}"
                f" HAVING count(DISTINCT o.user_id) < {self.users} ORDER BY ALL LIMIT 1",
            )
        if found is None:
            return None
        values = ", ".join(f"{name} '{value}'" for name, value in zip(self.columns, found, strict=False))
        return f"the combination {values} has {found[-1]} users"


class TermUsers(Claim):
    """Each word of a released query was used by at least `users` users."""

    kind: Literal["term-users"] = "term-users"
    users: int

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return f"Every word of a released query was used by at least {self.users} users of the log."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Count the distinct users of every word of every released query."""
        found = _first(
            log,
            "WITH used AS (SELECT t.word_id AS word_id, count(DISTINCT e.user_id) AS n FROM events e JOIN tok t"
            " ON t.query_id = e.query_id GROUP BY t.word_id)"
            " SELECT r.query, w.word, used.n FROM (SELECT DISTINCT query FROM released) r JOIN queries q"
            " ON q.query = r.query JOIN tok t ON t.query_id = q.query_id JOIN used ON used.word_id = t.word_id"
            f" JOIN words w ON w.word_id = t.word_id WHERE used.n < {self.users} ORDER BY r.query, w.word LIMIT 1",
        )
        return None if found is None else f"the word '{found[1]}' of '{found[0]}' was used by {found[2]} users"


class QuerySpelling(Claim):
    """What released queries look like."""

    kind: Literal["query-spelling"] = "query-spelling"
    max_characters: int | None = None
    max_terms: int | None = None
    no_digits: bool = False
    no_at: bool = False

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        parts = []
        if self.max_characters is not None:
            parts.append(f"has at most {self.max_characters} characters")
        if self.max_terms is not None:
            parts.append(f"has at most {self.max_terms} words")
        parts += ["holds no digit"] * self.no_digits + ["holds no @"] * self.no_at
        listed = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
        return f"Every released query {listed}."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Look at every released query."""
        wrong = []
        if self.max_characters is not None:
            wrong.append(f"length(r.query) > {self.max_characters}")
        if self.max_terms is not None:
            wrong.append(f"coalesce(t.n, 0) > {self.max_terms}")
        wrong += ["regexp_matches(r.query, '\\p{Nd}')"] * self.no_digits
        wrong += ["contains(r.query, '@')"] * self.no_at
        found = _first(
            log,
            "SELECT r.query FROM (SELECT DISTINCT query FROM released) r LEFT JOIN queries q ON q.query = r.query"
            " LEFT JOIN (SELECT query_id, count(*) AS n FROM tok GROUP BY query_id) t ON t.query_id = q.query_id"
            f" WHERE {' OR '.join(wrong)} ORDER BY r.query LIMIT 1",
        )
        return None if found is None else f"the query '{found[0]}'"


class TimesRounded(Claim):
    """Times are rounded down to a day or a week."""

    kind: Literal["times-rounded"] = "times-rounded"
    unit: Literal["day", "week"]

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return f"Every released time is rounded down to the {self.unit}."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Look at every released time."""
        found = _first(
            log,
            f"SELECT time FROM released WHERE time IS NOT NULL AND time <> date_trunc('{self.unit}', time)"
            " ORDER BY time LIMIT 1",
        )
        return None if found is None else f"the time {found[0]}"


class AffineUsers(Claim):
    """k-theta-affinity: users stand behind each released query and the released queries affine to it."""

    kind: Literal["affine-users"] = "affine-users"
    users: int
    theta: float
    min_users: int
    min_term_users: int
    SAMPLE: ClassVar[int] = 2000
    """How many released queries with a concept are compared with all others; a log of this size is checked whole."""

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            f"Behind every released query and the released queries affine to it (cosine of concepts at least"
            f" {self.theta}) stand at least {self.users} users, or that many issued the query itself."
        )

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Mine the concepts anew, and count the users of affine released queries, query by query."""
        self._vectors(log)
        # Queries are numbered by a digest of their text, so the first ones are as good as drawn by lot.
        found = _first(
            log,
            "WITH ours AS (SELECT DISTINCT q.query_id AS query_id, r.query AS query FROM released r"
            " JOIN queries q ON q.query = r.query),"
            " vec AS (SELECT v.query_id AS query_id, v.concept AS concept, v.w AS w FROM claim_vectors v"
            " JOIN ours ON ours.query_id = v.query_id),"
            " total AS (SELECT query_id, sum(w) AS w FROM vec GROUP BY query_id),"
            " people AS (SELECT DISTINCT query_id, user_id FROM events),"
            " rare AS (SELECT word_id FROM (SELECT DISTINCT t.word_id AS word_id, p.user_id AS user_id FROM tok t"
            f" JOIN people p ON p.query_id = t.query_id) GROUP BY word_id HAVING count(*) < {self.min_term_users}),"
            f" drawn AS (SELECT query_id FROM total ORDER BY query_id LIMIT {self.SAMPLE}),"
            " common AS (SELECT a.query_id AS one, b.query_id AS other, sum(a.w) AS w FROM vec a JOIN drawn"
            " ON drawn.query_id = a.query_id JOIN vec b ON b.concept = a.concept GROUP BY a.query_id, b.query_id),"
            " near AS (SELECT c.one AS one, c.other AS other FROM common c JOIN total x ON x.query_id = c.one"
            " JOIN total y ON y.query_id = c.other WHERE CAST(c.w AS DOUBLE) * CAST(c.w AS DOUBLE) >="
            f" {self.theta * self.theta!r}::DOUBLE * (CAST(x.w AS DOUBLE) * CAST(y.w AS DOUBLE))),"
            " behind AS (SELECT n.one AS query_id, count(DISTINCT p.user_id) AS n FROM near n"
            " JOIN people p ON p.query_id = n.other GROUP BY n.one),"
            " alone AS (SELECT p.query_id AS query_id, count(*) AS n FROM people p JOIN ours"
            " ON ours.query_id = p.query_id LEFT JOIN total t ON t.query_id = p.query_id WHERE t.query_id IS NULL"
            " GROUP BY p.query_id)"
            f" SELECT ours.query, bad.n FROM (SELECT query_id, n FROM behind WHERE n < {self.users} UNION ALL"
            f" SELECT query_id, n FROM alone WHERE n < {self.users} UNION ALL"
            " SELECT t.query_id, 0 FROM tok t JOIN rare ON rare.word_id = t.word_id JOIN total ON total.query_id ="
            " t.query_id) AS bad JOIN ours ON ours.query_id = bad.query_id ORDER BY ours.query LIMIT 1",
        )
        log.engine.forget("claim_vectors")
        return None if found is None else f"the query '{found[0]}' has {found[1]} users behind it"

    def _vectors(self, log: QueryLog) -> None:
        """Make `claim_vectors`: the concepts of each query with their squared weights, in the plainest way."""
        words = log.tokens.text.to_pylist()
        grams: dict[tuple[int, ...], tuple[int, int]] = {}
        totals = {}
        for n in (1, 2, 3):
            counted = log.ngrams(n)
            totals[n] = sum(counted["occurrences"].to_pylist())
            frequent = counted.filter(pc.greater_equal(counted["users"], self.min_users))
            for row in frequent.to_pylist():
                gram = tuple(row[f"word_{i}"] for i in range(1, n + 1))
                grams[gram] = (row["occurrences"], row["events"])
        share: dict[tuple[int, ...], float] = {gram: found[0] / totals[len(gram)] for gram, found in grams.items()}
        weight: dict[tuple[int, ...], float] = {}
        for gram, (_, events) in grams.items():
            if all(words[word] in STOP_WORDS for word in gram):
                continue
            if len(gram) == 1:
                weight[gram] = np.log2(events + 1.0)
            elif len(gram) == 2:
                weight[gram] = np.log2(share[gram] / (share[gram[:1]] * share[gram[1:]]) + 1)
            else:
                x, y, z = (share[(word,)] for word in gram)
                apart = x * y * z + x * share[gram[1:]] + share[gram[:2]] * z
                weight[gram] = np.log2(share[gram] / apart + 1)
        squared = {gram: int(np.rint(w * w * 2.0**20)) for gram, w in weight.items()}
        number = {gram: i for i, gram in enumerate(squared)}
        tokens = log.tokens
        rows: list[tuple[int, int, int]] = []
        for query in range(log.n_queries):
            parts = tokens.word[tokens.start[query] : tokens.start[query + 1]].tolist()
            held = {tuple(parts[i : i + n]) for n in (1, 2, 3) for i in range(len(parts) - n + 1)} & number.keys()
            rows += [(query, number[gram], squared[gram]) for gram in held]
        columns = zip(*rows, strict=True) if rows else ([], [], [])
        arrays = [pa.array(column, pa.int64()) for column in columns]
        log.engine.read("claim_vectors", pa.table(arrays, ["query_id", "concept", "w"]))


AnyClaim = Annotated[
    AffineUsers | PartOfLog | QueryUsers | RowUsers | CombinationUsers | TermUsers | QuerySpelling | TimesRounded,
    Field(discriminator="kind"),
]


def _first(log: QueryLog, sql: str) -> tuple[object, ...] | None:
    rows = log.engine.table(sql).to_pylist()
    return tuple(rows[0].values()) if rows else None


def _rows(log: QueryLog, names: list[str]) -> str:
    """SQL of the log's rows with their texts: the user id, and the columns asked for."""
    joins, wanted = "", ["e.user_id AS user_id"]
    for name in names:
        if name == "query":
            joins += " JOIN queries q ON q.query_id = e.query_id"
            wanted.append("q.query AS query")
        elif name == "url":
            joins += " LEFT JOIN clicks c ON c.event_id = e.event_id LEFT JOIN urls u ON u.url_id = c.url_id"
            wanted.append("u.url AS url")
        elif name == "rank":  # never without the url, whose join it shares
            wanted.append("c.rank AS rank")
        else:
            joins += f' LEFT JOIN "extra {name}" AS "x{name}" ON "x{name}".id = e."{name} id"'
            wanted.append(f'"x{name}".value AS "{name}"')
    return f"SELECT {', '.join(wanted)} FROM events e{joins}"
