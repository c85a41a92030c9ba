"""What a claim is, and how a check asks its question."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from queryveil.claims.certificates import Certificate
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
    how: str | None = None
    """What was done to find out, where there is more than one way."""


class Claim(BaseModel):
    """One promise about a release.

    `check` finds two tables in the log's engine: the log's own, and `released`, the released table with its texts. If
    it is `by_ids`, it finds those of `with_ids` too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: str
    by_ids: ClassVar[bool] = False
    """Whether the check compares ids, which are looked up once for all claims."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """The promise in one sentence."""

    @abstractmethod
    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """The first counter-example in a release with these columns, or None."""

    def verdict(self, log: QueryLog, columns: Columns, certificate: Certificate | None = None) -> Verdict:
        """Check, and say how it went."""
        found = self.check(log, columns)
        return Verdict(self.statement, found is None, found)


class Checked(NamedTuple):
    """What a check found."""

    counterexample: str | None
    how: str | None = None
    """What was done."""


class WitnessedClaim(Claim):
    """A promise that a certificate makes quick to check."""

    @abstractmethod
    def look(self, log: QueryLog, columns: Columns, certificate: Certificate | None) -> Checked:
        """The first counter-example, and what was done; nothing in the certificate is believed."""

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """The first counter-example in a release with these columns, found without a certificate."""
        return self.look(log, columns, None).counterexample

    def verdict(self, log: QueryLog, columns: Columns, certificate: Certificate | None = None) -> Verdict:
        """Check, and say how it went."""
        found, how = self.look(log, columns, certificate)
        return Verdict(self.statement, found is None, found, how)


@contextmanager
def with_ids(log: QueryLog, columns: Columns, claims: Sequence[Claim]) -> Iterator[None]:
    """Have ids of the log for the released texts, if a claim needs them.

    | table         | columns                                                                                     |
    |---------------|---------------------------------------------------------------------------------------------|
    | claim_queries | query_id, query: the released queries that are in the log                                   |
    | claim_urls    | url_id, url: the released addresses that are in the log                                     |
    | claim_rows    | the released rows with the query_id and url_id of their texts, NULL for a text of no log    |
    """
    if not any(claim.by_ids for claim in claims):
        yield
        return
    joins, wanted, made = "", [], ["claim_rows"]
    for name in columns:
        if name not in ("query", "url"):
            wanted.append(f"r.{identifier(name)} AS {identifier(name)}")
            continue
        table, texts = f"claim_{_TEXTS[name]}", _TEXTS[name]
        log.engine.materialize(
            f"SELECT t.{name}_id AS {name}_id, t.{name} AS {name} FROM {texts} t"  # noqa: S608  # parts of this module, checked numbers and escaped names
            f" JOIN (SELECT {name} FROM released GROUP BY {name}) AS r ON r.{name} = t.{name}",
            table,
        )
        made.append(table)
        joins += f" LEFT JOIN {table} ON {table}.{name} = r.{name}"
        wanted.append(f"{table}.{name}_id AS {name}_id")
    log.engine.materialize(f"SELECT {', '.join(wanted)} FROM released r{joins}", "claim_rows")  # noqa: S608  # parts of this module, checked numbers and escaped names
    try:
        yield
    finally:
        log.engine.drop(*made)


_TEXTS = {"query": "queries", "url": "urls"}


def has_unknown(log: QueryLog, name: str) -> bool:
    """Whether a released text, a `query` or a `url`, is none of the log."""
    (texts,) = log.engine.row(f"SELECT count({name}) AS n FROM released")  # noqa: S608  # parts of this module, checked numbers and escaped names
    (rows, ids) = log.engine.row(f"SELECT count(*) AS n, count({name}_id) AS ids FROM claim_rows")  # noqa: S608  # parts of this module, checked numbers and escaped names
    return bool(ids < (rows if name == "query" else texts))


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
