"""Counts: tables of how many users, events, views and clicks each combination of chosen columns has.

Thresholds and secondary suppression are those of official statistics: Anco Hundepool et al., Statistical Disclosure
Control, Wiley 2012, chapter 4. Noise and partition selection are those of ZEALOUS (see `methods/private/zealous.py`).
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from queryveil.claims import (
    CellUsers,
    Claim,
    CombinationUsers,
    CountedRows,
    HiddenRows,
    IssuedQueries,
    PrivateCounts,
    QueryUsers,
    RoundedCounts,
)
from queryveil.claims.recount import TAKEN
from queryveil.engines import Table, Workspace, identifier
from queryveil.errors import QueryveilError, option, parameter
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import DELTA, Method, Reason, check_k, enough_users
from queryveil.methods.columns import Least
from queryveil.methods.counts.hiding import Shown, hide_more, shown_cells
from queryveil.methods.counts.noisy import accounting, noisy_rows, private_claim
from queryveil.methods.counts.published import Values, table_columns, table_rows
from queryveil.methods.counts.tally import GIVEN, OF_RESULTS, Period, Tally, added_up, metadata_of
from queryveil.methods.private.common import UNSEEDED, delta_warning, prepare
from queryveil.methods.private.contributions import Keep
from queryveil.methods.rule_metadata import merged_values, metadata_columns
from queryveil.release import Release
from queryveil.release.making import of_table

_DAYS = {"day": 1, "week": 7, "month": 28}
"""The fewest days of a period."""


class Counts(Method):
    """Release how many users, events, views and clicks each combination of chosen columns has."""

    name: ClassVar[str] = "counts"
    summary: ClassVar[str] = "release a table of counts by query, address, rank, metadata and period"
    plain: ClassVar[str] = "It holds numbers of people, searches and clicks, each counted over several people."
    makes = "counts"
    fits_aol: ClassVar[bool] = False

    by: tuple[str, ...] = Field(
        ("query",),
        description="columns that rows are counted by: query, url, rank, period and metadata columns of the log, most"
        " important first",
    )
    min_row_users: Least = Field(5, description="least distinct users of a released row, and of each number in it")
    min_query_users: Least | None = Field(
        None, description="least distinct users of a released query; by default as many as of a row"
    )
    min_metadata_users: Least | None = Field(
        None,
        description="least users of a released combination of metadata values; rarer values are merged; by default as"
        " many as of a row",
    )
    period: Period = Field("month", description="length of a period, if rows are counted by period")
    users: Literal["exact", "band"] = Field("exact", description="publish exact numbers of users, or bands")
    totals: tuple[str, ...] = Field(
        (), description="some of the columns: publish totals by these too, over all values of the others"
    )
    secondary: bool = Field(
        True,
        description="hide further rows below a total, or its users, so that it says nothing about few users",
    )
    base: Annotated[int, Field(ge=2)] | None = Field(
        None, description="round all counts to multiples of this number, at most twice the least users of a row"
    )
    epsilon: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="publish only numbers of users, with noise, such that the table is differentially private",
    )
    delta: float = Field(DELTA, gt=0, lt=1, description="probability that the promise of noise fails")
    max_rows_per_user: int = Field(20, ge=1, le=10_000, description="with noise, most rows that a user counts in (d)")
    keep: Keep = Field(
        "frequent",
        description="with noise, which rows of a user count: those with most of their events, their first ones, or"
        " random ones",
    )

    @model_validator(mode="after")
    def _has_columns(self) -> Self:
        for name, given in (("by", self.by), ("totals", self.totals)):
            if len(set(given)) < len(given):
                raise ValueError(f"{parameter('Counts', name)} names a column twice; name it once.")
        if not self.by:
            raise ValueError(f"Counts needs a column to count by, such as {option('by', 'query')}.")
        wrong = next((name for name in self.totals if name not in self.by), None)
        if wrong is not None or len(self.totals) == len(self.by):
            why = "all columns" if wrong is None else f"'{wrong}', by which rows are not counted"
            raise ValueError(f"{parameter('Counts', 'totals')} names {why}; name some of {option('by')}.")
        results = next((name for name in OF_RESULTS if name in self.by), None)
        if self.totals and results is not None:
            raise ValueError(
                f"{parameter('Counts', 'totals')} cannot go with '{results}' in {option('by')}: an event has several"
                " results, so totals minus rows would give hidden rows away; leave one of them out."
            )
        if self.base is not None and self.base > 2 * self.min_row_users:
            raise ValueError(
                f"{parameter('Counts', 'base')} is {self.base}, which rounds rows of {self.min_row_users} users to 0;"
                f" choose at most {2 * self.min_row_users}, or a larger {option('min_row_users')}."
            )
        return self

    @model_validator(mode="after")
    def _noise_alone(self) -> Self:
        given = {"min_query_users": None, "min_metadata_users": None, "totals": (), "base": None, "users": "exact"}
        beside = next((name for name, default in given.items() if getattr(self, name) != default), None)
        if self.private and beside is not None:
            raise ValueError(
                f"{parameter('Counts', beside)} has no place in a table with noise, which is protected by noise alone;"
                f" leave {option(beside)} or {option('epsilon')} out."
            )
        return self

    @property
    def private(self) -> bool:
        """Whether numbers have noise."""
        return self.epsilon is not None

    @property
    def claim(self) -> PrivateCounts:
        """What a table with noise promises."""
        return private_claim(self)

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """Never with noise, because it is random."""
        return "never" if self.private else "always"

    @property
    def query_users(self) -> int:
        """Least users of a released query."""
        return self.min_query_users or self.min_row_users

    @property
    def metadata_users(self) -> int:
        """Least users of a released combination of metadata."""
        return self.min_metadata_users or self.min_row_users

    @classmethod
    def grid(cls, ks: Sequence[int], epsilons: Sequence[float]) -> list[tuple[str, dict[str, Any]]]:
        """Counts of queries, for each k."""
        return [(f"k = {k}", {"min_row_users": k}) for k in ks]

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Count, hide, and publish the rest."""
        for name in ("min_row_users", "min_query_users", "min_metadata_users"):
            check_k(self, log.n_users, name=name)
        notes = self.check_columns(log)
        if self.private:
            prepare(log)
            notes += [accounting(self), UNSEEDED]
        with log.workspace() as work:
            rows = noisy_rows(self, log, work) if self.private else table_rows(self, work, *self.shown(log, work))
            return of_table(log, rows, columns=table_columns(self, log), **self.describe(self.claims(log), seed, notes))

    def shown(self, log: QueryLog, work: Workspace) -> tuple[Shown, Values]:
        """All rows and totals with what is published of each, and the values of combinations of metadata."""
        least = self.min_row_users
        kept = self._kept(log, work) if "query" in self.by else None
        all_queries = kept is not None and self.totals and "query" not in self.totals  # totals count all of them
        within = None if all_queries else kept
        merged, texts = self._merged(log, work, within)
        tally = Tally(log, self.by, self.period, within, merged, self.totals)
        keys, by = tally.keys(totals=False), tally.keys(totals=True)
        with log.workspace() as steps:
            pairs = tally.pairs(steps)
            cells = added_up(steps, pairs, keys, "counts")
            if not self.totals:
                steps.drop(pairs)
                return Shown(shown_cells(work, cells, keys, least), None), texts
            shown = shown_cells(work, cells, keys, least, kept if all_queries else None)
            totals = added_up(steps, tally.pairs(steps, totals=True), by, "totals")
            alone = Shown(shown, shown_cells(work, totals, by, least))
            if not self.secondary:
                return alone, texts
            return hide_more(work, pairs, alone, keys, by, least), texts

    def claims(self, log: QueryLog) -> list[Claim]:
        """What it promises."""
        if self.private:
            return [*([IssuedQueries()] if "query" in self.by else []), self.claim]
        metadata = metadata_of(self.by)
        counted = {
            "columns": self.by,
            "users": self.min_row_users,
            "query_users": self.query_users if "query" in self.by else None,
            "metadata_users": self.metadata_users if metadata else None,
            "period": self.period if "period" in self.by else None,
            "totals": self.totals,
        }
        claims: list[Claim] = [CountedRows(**counted, base=self.base, band=self.users == "band"), CellUsers(**counted)]
        if "query" in self.by:
            claims.insert(0, QueryUsers(users=self.query_users))
        if metadata:
            claims.append(CombinationUsers(users=self.metadata_users, columns=tuple(metadata)))
        if self.totals and self.secondary:
            claims.append(HiddenRows(**counted))
        return [*claims, *([] if self.base is None else [RoundedCounts(base=self.base)])]

    def check_columns(self, log: QueryLog) -> list[str]:
        """Refuse columns that the log does not have, and say how many events are left out for want of a time."""
        metadata = metadata_of(self.by)
        missing = next((name for name in metadata if name not in log.stats.extras), None)
        results = next((name for name in OF_RESULTS if name in self.by), None)
        if missing is not None:
            raise QueryveilError(
                f"{parameter('Counts', 'by')} names '{missing}', and the log has no such column; name some of"
                f" {', '.join(GIVEN)} and the metadata columns of the log."
            )
        metadata_columns(log, metadata)
        taken = next((name for name in metadata if name.casefold() in TAKEN), None)
        if taken is not None:
            raise QueryveilError(
                f"A metadata column cannot be called '{taken}', which a table of counts needs; rename it."
            )
        if results is not None and not log.has_results:
            raise QueryveilError(
                f"{parameter('Counts', 'by')} names '{results}', and the log has no clicks or views; leave it out."
            )
        if "period" not in self.by:
            return []
        if not log.has_times:
            raise QueryveilError(f"{parameter('Counts', 'by')} names 'period', and the log has no times; leave it out.")
        first, last = log.engine.row("SELECT min(time) AS first, max(time) AS last FROM events")
        days = (last.date() - first.date()).days + 1
        if days < _DAYS[self.period]:
            raise QueryveilError(
                f"The log covers {days} day{'s' if days > 1 else ''}, which is not a whole {self.period}; choose a"
                f" shorter period with {option('period', 'day')}, or leave 'period' out of {option('by')}."
            )
        untimed = log.stats.events - log.stats.timed
        return [f"Left out: {untimed:,} events without a time, which belong to no period."] if untimed else []

    def warnings(self, log: QueryLog) -> list[str]:
        """What only the publisher should know, because it reveals something exact about the log."""
        return delta_warning(self.delta, log) if self.private else []

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """How many users issued the query, and how many of its rows enough users share."""
        if self.private:
            rule = f"with noise of scale {self.claim.steps[0].scale:g} the users of a row reach {self.claim.needed}"
            return [Reason(rule, None, f"{int(log.users_per_query[query_id])} issued the query")]
        reasons = [enough_users(log, query_id, self.query_users)] if "query" in self.by else []
        with log.workspace() as work:
            shown, _ = self.shown(log, work)
            query = f" WHERE query_id = {query_id}" if "query" in self.by else ""
            rows, kept = work.row(
                f"SELECT count(*) AS n, coalesce(CAST(sum(shown) AS BIGINT), 0) AS shown FROM {shown.cells}{query}"
            )
        names = ", ".join(self.by)
        rule = f"rows whose ({names}) is shared by at least {self.min_row_users} users"
        return [*reasons, Reason(rule, kept > 0, f"{kept} of its {rows} rows are released")]

    def _kept(self, log: QueryLog, work: Workspace) -> Table:
        """The queries of enough users."""
        log.ensure_tables("per_query")
        return work.table(
            f"SELECT query_id FROM per_query WHERE users >= {self.query_users}", "queries of enough users"
        )

    def _merged(self, log: QueryLog, work: Workspace, within: Table | None) -> tuple[Table | None, Values]:
        """The number of each combination of metadata after merging, and the values of each number."""
        names = metadata_of(self.by)
        if not names:
            return None, {}
        joined = "" if within is None else f" JOIN {within} w ON w.query_id = e.query_id"
        timed = " WHERE e.time IS NOT NULL" if "period" in self.by else ""
        with log.workspace() as steps:
            rows = steps.table(
                f"SELECT e.query_id AS query_id, e.event_id AS event_id FROM events e{joined}{timed}",
                "events that count",
            )
            (n,) = steps.row(f"SELECT count(*) AS n FROM {rows}")
            if not n:
                return self._numbered(work, steps.fetch(_no_metadata(names)))
            merged = merged_values(log, steps, rows, names, self.metadata_users)
            asked = ", ".join(map(identifier, [*(f"{name} id" for name in names), *names]))
            return self._numbered(work, steps.fetch(f"SELECT {asked} FROM {merged}"))

    def _numbered(self, work: Workspace, merged: pa.Table) -> tuple[Table, Values]:
        """Number the released combinations of values in the order of their texts, missing ones last."""
        names = metadata_of(self.by)
        found = merged.select([f"{name} id" for name in names])
        values: dict[str, Table] = {}
        for key, some in (("meta", names), ("part", [name for name in names if name in self.totals])):
            rows = list(zip(*(merged[name].to_pylist() for name in some), strict=True)) if some else [()] * len(merged)
            order = sorted(set(rows), key=lambda row: [(value is None, value or "") for value in row])
            number = {row: place for place, row in enumerate(order)}
            found = found.append_column(key, pa.array([number[row] for row in rows], pa.int32()))
            texts = {name: pa.array([row[place] for row in order], pa.string()) for place, name in enumerate(some)}
            numbers = pa.array(range(len(order)), pa.int32())
            values[key] = work.read(pa.table({key: numbers, **texts}), "metadata values")
        return work.read(found, "metadata by id"), values


def _no_metadata(names: Sequence[str]) -> str:
    ids = ", ".join(f"e.{identifier(f'{name} id')} AS {identifier(f'{name} id')}" for name in names)
    texts = ", ".join(f"CAST(NULL AS STRING) AS {identifier(name)}" for name in names)
    return f"SELECT {ids}, {texts} FROM events e WHERE 1 = 0"
