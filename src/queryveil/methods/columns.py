"""Columns beside the query: clicks or views, times and metadata, as far as enough users share them.

A column is released only if a rule covers it: clicks by a least number of users who made the same click (views by those
who were shown the same), times by rounding, metadata by a least number of users with the same values. Users are counted
in the whole log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from queryveil.claims import Claim, CombinationUsers, PartOfLog, RowUsers, TimesRounded
from queryveil.engines import Table, Workspace, identifier
from queryveil.errors import QueryveilError, option
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason, check_k
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.queries import QueryMethod, Selection, Speaker, click_claims, clicks_of, link_claims
from queryveil.methods.rule_metadata import merged_values, metadata_columns, missing_columns
from queryveil.release import Release
from queryveil.release.making import of_events

Least = Annotated[int, Field(ge=2)]
Rounding = Literal["drop", "day", "week"]
_ROW_METADATA = ("device", "country")


@dataclass(frozen=True)
class Beside:
    """What is released beside queries.

    Attributes:
        row_users: Least users of a released row, that is, a (query, url, device, country); None releases all rows.
        click_users: Least users of a released click; None releases none.
        time: How times are rounded.
        metadata_users: Least users of a released combination of metadata values; None releases none.
        metadata: Metadata columns that count together, most important first.
    """

    row_users: int | None
    click_users: int | None
    time: Rounding
    metadata_users: int | None
    metadata: tuple[str, ...]

    @property
    def publishes(self) -> bool:
        """Whether anything is released beside queries, or rows are dropped by it."""
        least = (self.row_users, self.click_users, self.metadata_users)
        return self.time != "drop" or any(users is not None for users in least)

    def release(
        self,
        method: LinkedMethod,
        log: QueryLog,
        work: Workspace,
        chosen: Selection,
        speaker: Speaker,
        *,
        seed: int,
    ) -> Release:
        """Release the events of chosen queries with these columns.

        Args:
            method: The method that has these as its parameters.
            log: The log.
            work: Where tables are made.
            chosen: The queries.
            speaker: Who makes the release, with all that is promised about queries.
            seed: Random seed.
        """
        metadata = [] if self.metadata_users is None else metadata_columns(log, self.metadata)
        for name in ("min_row_users", "min_click_users", *(["min_metadata_users"] if metadata else [])):
            if name in type(method).model_fields:
                check_k(method, log.n_users, name=name)
        if self.time != "drop" and not log.has_times:
            raise QueryveilError(f"{option('time', self.time)} needs times, and the log has none; leave it out.")
        row_metadata = self.row_metadata(log)
        carried = [*(["time"] if self.time != "drop" else []), *dict.fromkeys([*metadata, *row_metadata])]
        rows = work.table(self.rows(log, chosen.queries, row_metadata), "kept rows")
        merged = None
        if metadata and self.metadata_users is not None:
            merged = merged_values(log, work, rows, metadata, self.metadata_users)
        notes = [] if self.metadata_users is None else missing_columns(self.metadata, metadata)
        claims = (PartOfLog(), *speaker.claims, *self._claims(log, row_metadata, metadata))
        links = link_claims(method.linking, whole=self.row_users is None)
        return of_events(
            log,
            self._events(rows, carried, metadata, merged),
            self._clicks(log, chosen.queries, rows) if log.has_results else None,
            linking=method.linking,
            carried=carried,
            **speaker.method.describe([*claims, *links], seed, [*chosen.notes, *notes], chosen.certified),
        )

    def row_metadata(self, log: QueryLog) -> list[str]:
        """The metadata that is part of a row."""
        return [name for name in _ROW_METADATA if name in log.stats.extras] if self.row_users is not None else []

    def rows(self, log: QueryLog, queries: Table, row_metadata: Sequence[str]) -> str:
        """SQL of the rows of some queries that may be released: event_id, query_id, rank, url_id; of views clicked."""
        if self.row_users is None:
            return (
                "SELECT e.event_id AS event_id, e.query_id AS query_id, CAST(NULL AS INTEGER) AS rank,"
                f" CAST(NULL AS BIGINT) AS url_id FROM events e JOIN {queries} r ON r.query_id = e.query_id"
            )
        ids = [identifier(f"{name} id") for name in row_metadata]
        meta = "".join(f", e.{name} AS {name}" for name in ids)
        clicked = ", c.clicked AS clicked" if log.has_views else ""
        rows = (
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id, c.rank AS rank,"
            f" c.url_id AS url_id{clicked}, coalesce(c.url_id, -1) AS url_key{meta} FROM events e JOIN {queries} r"
            f" ON r.query_id = e.query_id LEFT JOIN {log.results} c ON c.query_id = e.query_id"
            " AND c.event_id = e.event_id"
        )
        keys = ["query_id", "url_key", *ids]
        names = ", ".join(keys)
        shared = (
            f"SELECT {names} FROM (SELECT {names}, user_id FROM ({rows}) AS r GROUP BY {names}, user_id) AS pairs"
            f" GROUP BY {names} HAVING count(*) >= {self.row_users}"
        )
        same = " AND ".join(f"shared.{key} = rows_.{key}" for key in keys)
        return (
            "SELECT rows_.event_id AS event_id, rows_.query_id AS query_id, rows_.rank AS rank, rows_.url_id AS url_id"
            f"{clicked.replace('c.', 'rows_.')} FROM ({rows}) AS rows_ JOIN ({shared}) AS shared ON {same}"
        )

    def _clicks(self, log: QueryLog, queries: Table, rows: Table) -> str | None:
        """SQL of the clicks or views that are released; None if none are."""
        if self.click_users is None or self.row_users is None:
            return None if self.click_users is None else clicks_of(log, queries, self.click_users)
        clicked = ", k.clicked AS clicked" if log.has_views else ""
        results = (
            "(SELECT k.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id, k.rank AS rank,"
            f" k.url_id AS url_id{clicked} FROM {rows} k JOIN events e ON e.query_id = k.query_id"
            " AND e.event_id = k.event_id WHERE k.url_id IS NOT NULL)"
        )
        return clicks_of(log, queries, self.click_users, results)

    def _events(self, rows: Table, carried: Sequence[str], metadata: Sequence[str], merged: Table | None) -> str:
        """SQL of the released events with their carried columns; `merged` has the released values of metadata."""
        selected, joins = "", ""
        for given in carried:
            name, key, table, x = map(identifier, (given, f"{given} id", f"extra {given}", f"x {given}"))
            if given == "time":
                selected += f", CAST(date_trunc('{self.time}', e.time) AS TIMESTAMP) AS time"
            elif given in metadata:
                selected += f", m.{name} AS {name}"
            else:
                selected += f", {x}.value AS {name}"
                joins += f" LEFT JOIN {table} AS {x} ON {x}.id = e.{key}"
        if merged is not None:
            ids = [identifier(f"{name} id") for name in metadata]
            joins += f" JOIN {merged} m ON " + " AND ".join(f"m.{name} = e.{name}" for name in ids)
        return (
            f"SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id{selected} FROM events e"
            f" JOIN (SELECT query_id, event_id FROM {rows} GROUP BY query_id, event_id) AS k"
            f" ON k.query_id = e.query_id AND k.event_id = e.event_id{joins}"
        )

    def _claims(self, log: QueryLog, row_metadata: Sequence[str], metadata: Sequence[str]) -> list[Claim]:
        claims: list[Claim] = []
        clicked = click_claims(self.click_users, log)
        if self.row_users is not None:
            columns = (*(["url"] if clicked else []), *row_metadata)
            claims.append(RowUsers(users=self.row_users, columns=columns))
        # What every row promises about its address need not be said again of clicks.
        claims += clicked if self.row_users is None or self.row_users != self.click_users else clicked[1:]
        if self.time != "drop":
            claims.append(TimesRounded(unit=self.time))
        if metadata and self.metadata_users is not None:
            claims.append(CombinationUsers(users=self.metadata_users, columns=tuple(metadata)))
        return claims


class Columns(QueryMethod):
    """Release clicks, times and metadata of the queries that earlier steps of a pipeline chose.

    It drops no query, so it is a step after a method that protects queries, and not a method by itself.
    """

    name: ClassVar[str] = "columns"
    plain: ClassVar[str] = "Clicks, days or weeks, and metadata are beside a query where enough people share them."
    summary: ClassVar[str] = "keep clicks, times and metadata that enough users share (after another step)"
    alone: ClassVar[bool] = False

    min_click_users: Least | None = Field(
        None,
        description="least distinct users of a released click; other clicks are left out and their events stay",
    )
    min_row_users: Least | None = Field(
        None, description="least distinct users of a released row, that is, a (query, url, device, country)"
    )
    time: Rounding = Field("drop", description="drop times, or round them down to a day or week")
    min_metadata_users: Least | None = Field(
        None, description="least users of a released combination of metadata values; rarer values are merged"
    )
    metadata: tuple[str, ...] = Field(
        ("country", "device", "language"),
        description="metadata columns that count together, most important first: the last is merged first",
    )

    @model_validator(mode="after")
    def _keeps_something(self) -> Self:
        least = (self.min_click_users, self.min_row_users, self.min_metadata_users)
        if least == (None, None, None) and (self.time, self.link) == ("drop", "none"):
            raise ValueError(
                "Columns needs at least one thing to keep or link, such as"
                f" {option('min_click_users', 5)} or {option('time', 'day')}."
            )
        return self

    @property
    def beside(self) -> Beside:
        """What it releases beside queries."""
        return Beside(self.min_row_users, self.min_click_users, self.time, self.min_metadata_users, self.metadata)

    def select(self, log: QueryLog, work: Workspace, within: Table | None = None) -> Selection:
        """Drop no query."""
        assert within is not None  # noqa: S101  # a pipeline does not begin with it
        return Selection(within)

    def claims(self, log: QueryLog) -> list[Claim]:
        """Nothing about queries."""
        return []

    def publish(self, log: QueryLog, work: Workspace, chosen: Selection, speaker: Speaker, *, seed: int) -> Release:
        """Release what passes the rules about clicks, rows, times and metadata."""
        return self.beside.release(self, log, work, chosen, speaker, seed=seed)

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """Nothing about queries, unless all their rows are rare."""
        return [] if self.min_row_users is None else [explain_rows(self.beside, log, query_id)]


def explain_rows(beside: Beside, log: LocalLog, query_id: int) -> Reason:
    """How many rows of a query enough users share."""
    row_metadata = beside.row_metadata(log)
    with log.workspace() as work:
        query = work.read(pa.table({"query_id": [query_id]}), "query")
        (kept,) = work.row(f"SELECT count(*) AS n FROM ({beside.rows(log, query, row_metadata)}) AS kept")
        (total,) = work.row(
            f"SELECT count(*) AS n FROM events e LEFT JOIN {log.results} c ON c.event_id = e.event_id"
            f" WHERE e.query_id = {query_id}"
        )
    names = ", ".join(("query", "url", *row_metadata))
    rule = f"rows whose ({names}) is shared by at least {beside.row_users} users"
    return Reason(rule, kept > 0, f"{kept} of its {total} rows are")
