"""What a claim is, and how a check asks its question."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from queryveil.engines import identifier
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


def first(log: QueryLog, sql: str) -> tuple[object, ...] | None:
    """The first row of a query, None if it has none."""
    rows = log.engine.table(sql).to_pylist()
    return tuple(rows[0].values()) if rows else None


def log_rows(log: QueryLog, names: list[str]) -> str:
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
            table, x, key = (identifier(found) for found in (f"extra {name}", f"x{name}", f"{name} id"))
            joins += f" LEFT JOIN {table} AS {x} ON {x}.id = e.{key}"
            wanted.append(f"{x}.value AS {identifier(name)}")
    return f"SELECT {', '.join(wanted)} FROM events e{joins}"  # noqa: S608  # names are escaped
