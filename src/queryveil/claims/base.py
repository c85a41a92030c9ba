"""What a claim is, and how a check asks its question."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from queryveil.claims.certificates import Certificate
from queryveil.engines import Table, Workspace, identifier
from queryveil.formats.rows import is_column_name
from queryveil.log import QueryLog

Columns = tuple[str, ...]

MOST = 1 << 62
"""More than there is of anything, and no more than every engine counts to."""
Count = Annotated[int, Field(ge=1, le=MOST)]
"""A number of users, or of whatever else a claim counts."""


def _names(columns: Columns) -> Columns:
    if not all(map(is_column_name, columns)):
        raise ValueError("a column has a name that no column of a log has")
    if len({name.casefold() for name in columns}) < len(columns):
        raise ValueError("a column is named twice")
    return columns


ColumnNames = Annotated[Columns, AfterValidator(_names)]
"""Columns that a claim is about: a manifest may name anything, so only what can be a name is taken for one."""


@dataclass(frozen=True)
class Verdict:
    """Whether one promise holds."""

    claim: str
    holds: bool
    counterexample: str | None = None
    """The first thing in the release that breaks the promise; it stands in the release, so it is no secret."""
    how: str | None = None
    """What was done to find out, where there is more than one way."""
    headline: str | None = None
    """The promise in at most fifteen words; None for what the verifier checks beside the promises."""

    @property
    def lines(self) -> list[str]:
        """The headline, and the exact promise if it says more."""
        return list(dict.fromkeys([self.headline or self.claim, self.claim]))


class Evidence:
    """What a check sees: the log, the released table, and ids of the log for the released texts.

    Attributes:
        log: The original log.
        work: Where tables live until all claims are checked; a check makes its own in a workspace of its own.
        columns: The columns of the released table.
        released: The released table with its texts.
        certificate: What the maker of the release hands to the verifier; nothing in it is believed.
        lists: The lists that the release was made with, as far as they are at hand, by the names of their files.
    """

    def __init__(
        self,
        log: QueryLog,
        work: Workspace,
        columns: Columns,
        released: Table,
        certificate: Certificate | None = None,
        lists: Mapping[str, Path] | None = None,
    ) -> None:
        self.log, self.work, self.columns = log, work, columns
        self.released, self.certificate, self.lists = released, certificate, lists or {}
        self._once: dict[Hashable, Any] = {}

    def once(self, what: Hashable, make: Callable[[], Any]) -> Any:
        """What several claims need: made by the first of them."""
        if what not in self._once:
            self._once[what] = make()
        return self._once[what]

    @cached_property
    def queries(self) -> Table:
        """The released queries that are in the log: query_id and query."""
        return self._known("query")

    @cached_property
    def urls(self) -> Table:
        """The released addresses that are in the log: url_id and url."""
        return self._known("url")

    @cached_property
    def rows(self) -> Table:
        """The released rows with the query_id and url_id of their texts, NULL for a text of no log."""
        joins, selected = "", []
        for name in self.columns:
            if name == "clicked":  # as the log has it
                selected.append("CASE WHEN r.clicked THEN 1 WHEN NOT r.clicked THEN 0 END AS clicked")
                continue
            if name not in ("query", "url"):
                selected.append(f"r.{identifier(name)} AS {identifier(name)}")
                continue
            joins += f" LEFT JOIN {self.queries if name == 'query' else self.urls} {name}_ ON {name}_.{name} = r.{name}"
            selected.append(f"{name}_.{name}_id AS {name}_id")
        return self.work.table(f"SELECT {', '.join(selected)} FROM {self.released} r{joins}", "released rows")  # noqa: S608  # parts of this module, checked numbers and escaped names

    @cached_property
    def events(self) -> Table:
        """The released events: event, a query_id of its rows, and whether they have several queries or pseudonyms."""
        one = {"user": '"user"', "session": "session", "query": "query_id"}
        several = [f"min({name}) <> max({name})" for column, name in one.items() if column in self.columns]
        return self.work.table(
            f"SELECT event, min(query_id) AS query_id, {' OR '.join(several)} AS several FROM {self.rows}"  # noqa: S608  # parts of this module
            " GROUP BY event",
            "released events",
        )

    def events_of_queries(self) -> str:
        """SQL of query_id and n, the released events of each query of the log, or rows if events have no numbers."""
        if "event" not in self.columns:
            events, each = self.rows, "count(*)"
        elif self.work.row(f"SELECT count(CASE WHEN several THEN 1 END) AS n FROM {self.events}") == (0,):  # noqa: S608  # a table of ours
            events, each = self.events, "count(*)"
        else:
            events, each = self.rows, "count(DISTINCT event)"
        return f"SELECT query_id, {each} AS n FROM {events} WHERE query_id IS NOT NULL GROUP BY query_id"  # noqa: S608  # parts of this module

    def distinct(self, name: str) -> int:
        """How many different values a column of the released table has."""
        return int(self.once(("distinct", name), lambda: self._distinct(name)))

    def _distinct(self, name: str) -> int:
        if name == "event" and "events" in vars(self):  # a claim has made them
            return int(self.work.row(f"SELECT count(event) AS n FROM {self.events}")[0])  # noqa: S608  # a table of ours
        column = identifier(name)
        grouped = f"SELECT {column} FROM {self.released} WHERE {column} IS NOT NULL GROUP BY {column}"  # noqa: S608  # names are escaped
        return int(self.work.row(f"SELECT count(*) AS n FROM ({grouped}) AS grouped")[0])  # noqa: S608  # names are escaped

    def has_unknown(self, name: str) -> bool:
        """Whether a released text, a `query` or a `url`, is none of the log."""
        return bool(self.once(("unknown", name), lambda: self._has_unknown(name)))

    def _has_unknown(self, name: str) -> bool:
        (rows, texts) = self.work.row(f"SELECT count(*) AS n, count({name}) AS texts FROM {self.released}")  # noqa: S608  # parts of this module, checked numbers and escaped names
        (ids,) = self.work.row(f"SELECT count({name}_id) AS ids FROM {self.rows}")  # noqa: S608  # parts of this module, checked numbers and escaped names
        return bool(ids < (rows if name == "query" and not self._has_totals else texts))

    @property
    def _has_totals(self) -> bool:
        """Whether rows may be totals over all queries, which have none."""
        return "total" in self.columns

    def unknown_query(self) -> tuple[object, ...] | None:
        """The first released query that is none of the log, and its rows; None if all are."""
        if not self.has_unknown("query"):
            return None
        return self.first(
            f"SELECT r.query AS query, r.n AS n FROM (SELECT query, count(*) AS n FROM {self.released} GROUP BY query)"  # noqa: S608  # parts of this module, checked numbers and escaped names
            f" AS r LEFT JOIN {self.queries} q ON q.query = r.query WHERE q.query_id IS NULL"
            f"{' AND r.query IS NOT NULL' if self._has_totals else ''} ORDER BY r.query LIMIT 1"
        )

    def first(self, sql: str) -> tuple[object, ...] | None:
        """The first row of a query, None if it has none."""
        rows = self.work.fetch(sql).to_pylist()
        return tuple(rows[0].values()) if rows else None

    def unequal(self, released: str, original: str) -> tuple[object, ...] | None:
        """The first size that release and log do not have equally often, and how often each has it.

        Args:
            released: SQL of size and n, how often the release has it.
            original: The same for the log.
        """
        return self.first(
            "SELECT size, CAST(sum(released) AS BIGINT) AS released, CAST(sum(original) AS BIGINT) AS original FROM"  # noqa: S608  # parts of this package
            f" (SELECT size, n AS released, 0 AS original FROM ({released}) AS a UNION ALL"
            f" SELECT size, 0 AS released, n AS original FROM ({original}) AS b) AS ab GROUP BY size"
            " HAVING sum(released) <> sum(original) ORDER BY size LIMIT 1"
        )

    def _known(self, name: Literal["query", "url"]) -> Table:
        given = f"SELECT {name} FROM {self.released} WHERE {name} IS NOT NULL GROUP BY {name}"  # noqa: S608  # parts of this module
        return self.log.known_texts(self.work, given, name)


class Claim(BaseModel):
    """One promise about a release."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: str
    exact: ClassVar[str]
    """The promise in one sentence; `{users}` stands for the field of that name."""
    short: ClassVar[str] = ""
    """The same in at most fifteen words, if the sentence has more."""
    of_words: ClassVar[bool] = False
    """Whether it depends on how queries are cut into words, which another dictionary does otherwise."""

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        return self.exact.format_map(dict(self))

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        return self.short.format_map(dict(self)) or self.statement

    @abstractmethod
    def check(self, evidence: Evidence) -> str | None:
        """The first counter-example in a release, or None."""

    def verdict(self, evidence: Evidence) -> Verdict:
        """Check, and say how it went."""
        found = self.check(evidence)
        return Verdict(self.statement, found is None, found, headline=self.headline)


class Checked(NamedTuple):
    """What a check found."""

    counterexample: str | None
    how: str | None = None
    """What was done."""


class WitnessedClaim(Claim):
    """A promise that a certificate makes quick to check."""

    @abstractmethod
    def look(self, evidence: Evidence) -> Checked:
        """The first counter-example, and what was done."""

    def check(self, evidence: Evidence) -> str | None:
        """The first counter-example in a release, or None."""
        return self.look(evidence).counterexample

    def verdict(self, evidence: Evidence) -> Verdict:
        """Check, and say how it went."""
        found, how = self.look(evidence)
        return Verdict(self.statement, found is None, found, how, self.headline)


def sizes_of(counted: str) -> str:
    """SQL of size and n, from SQL whose column n has the size of each thing."""
    return f"SELECT n AS size, count(*) AS n FROM ({counted}) AS counted GROUP BY n"  # noqa: S608  # parts of this package


def log_rows(log: QueryLog, names: list[str]) -> str:
    """SQL of the log's rows with their texts: the user id, and the columns asked for."""
    joins, selected = "", ["e.user_id AS user_id"]
    for name in names:
        if name == "query":
            joins += " JOIN queries q ON q.query_id = e.query_id"
            selected.append("q.query AS query")
        elif name == "url":
            joins += f" LEFT JOIN {log.results} c ON c.query_id = e.query_id AND c.event_id = e.event_id"
            joins += " LEFT JOIN urls u ON u.url_id = c.url_id"
            selected.append("u.url AS url")
        elif name == "rank":  # never without the url, whose join it shares
            selected.append("c.rank AS rank")
        else:
            table, x, key = (identifier(found) for found in (f"extra {name}", f"x{name}", f"{name} id"))
            joins += f" LEFT JOIN {table} AS {x} ON {x}.id = e.{key}"
            selected.append(f"{x}.value AS {identifier(name)}")
    return f"SELECT {', '.join(selected)} FROM events e{joins}"  # noqa: S608  # names are escaped
