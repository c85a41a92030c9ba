"""Claims about tables of counts: the numbers are right, enough users are behind each, and hidden ones stay hidden."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from queryveil.claims.base import MOST, Claim, ColumnNames, Count, Evidence
from queryveil.claims.recount import TAKEN, Counting, Recount
from queryveil.engines import Table

_NUMBERS = ("views", "clicks")
_OF_RESULTS = (*_NUMBERS, "mean_rank")
_LARGEST_RANK = 2**31
QUOTE = '"'


class _OfTable(Claim):
    """A promise about a table of counts."""

    columns: Annotated[ColumnNames, Field(min_length=1)]
    users: Count
    query_users: Count | None = None
    metadata_users: Count | None = None
    period: Literal["day", "week", "month"] | None = None
    totals: ColumnNames = ()

    @model_validator(mode="after")
    def _totals_of_columns(self) -> Self:
        if not set(self.totals) < set(self.columns) or ("period" in self.columns) != (self.period is not None):
            raise ValueError("totals are by some of the columns, and a period has a length")
        if self.totals and {"url", "rank"} & set(self.columns):
            raise ValueError("an event has several results, so totals and rows of results do not go together")
        if any(name.casefold() in TAKEN for name in self.columns):
            raise ValueError("a column has a name that the table needs itself")
        return self

    def recount(self, evidence: Evidence) -> Recount:
        """The table counted again; all claims of a release share it."""
        how = Counting(self.columns, self.query_users, self.metadata_users, self.period, self.totals)
        found: Recount = evidence.once(how, lambda: Recount(evidence, how))
        return found

    def check(self, evidence: Evidence) -> str | None:
        """The first counter-example, if the columns are those of the log and the table."""
        extras = evidence.log.stats.extras
        metadata = Counting(self.columns, None, None, None, ()).metadata
        missing = next((name for name in metadata if name not in extras), None)
        if missing is not None:
            return f"the log has no column '{missing}'"
        missing = next((name for name in self.columns if name not in evidence.columns), None)
        if missing is not None or ("total" in evidence.columns) != bool(self.totals):
            return (
                f"the release has no column '{missing or 'total'}'" if missing or self.totals else "the column 'total'"
            )
        beside = next((name for name in _OF_RESULTS if self.totals and name in evidence.columns), None)
        return f"the column '{beside}' beside totals" if beside else self.look(evidence, self.recount(evidence))

    @abstractmethod
    def look(self, evidence: Evidence, again: Recount) -> str | None:
        """The first counter-example, given the table counted again."""

    def kinds(self) -> list[tuple[bool, Sequence[str]]]:
        """Rows and, if there are any, totals: whether it is totals, and by which columns they are counted."""
        return [(False, self.columns), *([(True, self.totals)] if self.totals else [])]

    def joined(self, again: Recount, totals: bool, columns: Sequence[str]) -> str:
        """SQL of the released rows k, or totals, each beside what the log has for it, o."""
        same = " AND ".join(f"o.{key} IS NOT DISTINCT FROM k.{key}" for key in again.how.keys(columns))
        ours = f"(SELECT * FROM {again.released} WHERE total = {int(totals)}) AS k"  # noqa: S608  # a table of ours
        return f"{ours} LEFT JOIN {again.rows(totals=totals)} o ON {same}"

    def named(self, evidence: Evidence, again: Recount, rows: str, wrong: str, number: str) -> str | None:
        """A released row as a reader finds it in the table, with a number of it; None if there is none.

        Args:
            evidence: The log and the released table.
            again: The table counted again.
            rows: SQL of rows, of which k are the released ones.
            wrong: SQL of whether something is wrong with a row.
            number: SQL of what it is.
        """
        keys = again.how.keys(self.columns)
        order = ", ".join(f"k.{key}" for key in keys)
        selected = ", ".join(f"k.{key} AS {key}" for key in keys)
        found = evidence.first(
            f"SELECT k.total AS total, {selected}, {number} AS wrong FROM {rows} WHERE {wrong}"  # noqa: S608  # parts of this package
            f" ORDER BY k.total, {order} LIMIT 1"
        )
        if found is None:
            return None
        total, *values, what = found
        shown = []
        for key, value in zip(keys, values, strict=True):
            if key in ("query_id", "url_id") and value is not None:
                text = "query" if key == "query_id" else "url"
                texts = evidence.first(
                    f"SELECT {text} FROM {'queries' if text == 'query' else 'urls'} WHERE {key} = {value}"  # noqa: S608  # whole numbers of the log's own tables
                )
                value = f"{text} '{texts[0]}'" if texts else None
            elif value is not None:
                value = f"{'period' if key == 'day' else key.strip(QUOTE)} '{value}'"
            shown += [str(value)] if value is not None else []
        row = "total" if total else "row"
        return f"the {row} {', '.join(shown)} {what}" if shown else f"a {row} {what}"


class CountedRows(_OfTable):
    """Nothing is invented: each row stands once, with the numbers that it has in the log."""

    kind: Literal["counted-rows"] = "counted-rows"
    base: Annotated[int, Field(ge=2, le=MOST)] | None = None
    """All counts are rounded to its nearest multiple."""
    band: bool = False
    """Whether users are published as bands."""

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        by = f"({', '.join(self.columns)})"
        near = "" if self.base is None else f", rounded to the nearest multiple of {self.base}"
        totals = f", and every total by ({', '.join(self.totals)})" if self.totals else ""
        return f"Every released combination of {by}{totals} stands once, with the numbers it has in the log{near}."

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        return "Every row stands once, with the numbers it has in the log."

    def look(self, evidence: Evidence, again: Recount) -> str | None:
        """Compare every number with the log."""
        names = ", ".join(f"k.{key}" for key in again.how.keys(self.columns))
        wrong = self.named(evidence, again, f"{again.released} k", "k.known = 0", "'is none of the log'")
        if wrong is not None:
            return wrong
        twice = evidence.first(
            f"SELECT k.total AS total, count(*) AS n FROM {again.released} k GROUP BY k.total, {names}"  # noqa: S608  # parts of this module
            " HAVING count(*) > 1 LIMIT 1"
        )
        if twice is not None:
            return f"a {'total' if twice[0] else 'row'} stands {twice[1]} times"
        if "mean_rank" in evidence.columns:
            odd = f"NOT (k.mean_rank >= 0 AND k.mean_rank < {_LARGEST_RANK})"
            wrong = self.named(evidence, again, f"{again.released} k", odd, "'has a mean rank that is none'")
            if wrong is not None:
                return wrong
        for totals, columns in self.kinds():
            joined = self.joined(again, totals, columns)
            for name in ("users", "events", *_NUMBERS):
                if name in evidence.columns:
                    fine = self._fits(f"k.{name}", f"o.{name}")
                    if name in _NUMBERS or (totals and name == "users"):
                        fine = f"k.{name} IS NULL OR ({fine})"
                    number = f"concat('has ', coalesce(CAST(k.{name} AS STRING), 'no'), ' {name}')"
                    wrong = self.named(evidence, again, joined, f"NOT coalesce({fine}, 1 = 0)", number)
                    if wrong is not None:
                        return f"{wrong}, which it has not in the log"
            wrong = self._band(evidence, again, joined) or self._mean(evidence, again, joined, totals)
            if wrong is not None:
                return wrong
        return None

    def _fits(self, stated: str, found: str) -> str:
        """SQL of whether a stated number is the one of the log, rounded if it is to be."""
        if self.base is None:
            return f"{stated} = {found}"
        half = f"2 * ({stated} - {found}) <= {self.base} AND 2 * ({found} - {stated}) < {self.base}"
        return f"{stated} % {self.base} = 0 AND {half}"

    def _band(self, evidence: Evidence, again: Recount, joined: str) -> str | None:
        """A row whose band does not hold its users."""
        if not self.band:
            return None
        rows = f"{joined} LEFT JOIN {_bands(evidence)} b ON b.text = k.users_band"
        withheld = "k.total = 1 AND k.users_band IS NULL"
        wrong = f"NOT ({withheld}) AND NOT coalesce(o.users >= b.low AND o.users <= b.high, 1 = 0)"
        return self.named(evidence, again, rows, wrong, "'has a band of users which is not that of the log'")

    def _mean(self, evidence: Evidence, again: Recount, joined: str, totals: bool) -> str | None:
        """A row whose mean rank is not that of the log, to a hundredth; a total has none."""
        if "mean_rank" not in evidence.columns:
            return None
        hundredths = "CAST(round(k.mean_rank * 100) AS BIGINT)"
        low = f"2 * o.ranked * {hundredths}"
        right = (
            f"k.mean_rank = CAST({hundredths} AS DOUBLE) / 100 AND o.ranked > 0 AND {low} <= 200 * o.ranks + o.ranked"
            f" AND 200 * o.ranks + o.ranked < {low} + 2 * o.ranked"
        )
        fine = "1 = 0" if totals else f"coalesce({right}, 1 = 0)"
        wrong = f"k.mean_rank IS NOT NULL AND NOT ({fine})"
        return self.named(evidence, again, joined, wrong, "'has a mean rank which it has not in the log'")


def _bands(evidence: Evidence) -> Table:
    """The bands: 1, 2-4, 5-9, 10-19, 20-49, 50-99 and so on."""
    rows: list[dict[str, Any]] = []
    low = 1
    while low < 10**13:
        for times, after in ((1, 2), (2, 5), (5, 10)):
            first, last = low * times, low * after - 1
            rows.append({"text": str(first) if first == last else f"{first}-{last}", "low": first, "high": last})
        low *= 10
    return evidence.work.read(pa.Table.from_pylist(rows), "bands")


class CellUsers(_OfTable):
    """Each row, and each number in it, is that of at least `users` users, or of nobody."""

    kind: Literal["cell-users"] = "cell-users"
    short: ClassVar[str] = "Every row, and every number in it, is of at least {users} users."

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        rows = f"row, that is, ({', '.join(self.columns)}), " + ("and every total " if self.totals else "")
        return (
            f"Every {rows}has at least {self.users} users of the log; its views, its clicks, its views that were not"
            f" clicked and its mean rank are those of at least {self.users} users, or 0, or withheld."
        )

    def look(self, evidence: Evidence, again: Recount) -> str | None:
        """Count the users behind every number."""
        for totals, columns in self.kinds():
            joined = self.joined(again, totals, columns)
            few = f"NOT coalesce(o.users >= {self.users}, 1 = 0)"
            wrong = self.named(evidence, again, joined, few, _users("coalesce(o.users, 0)"))
            if wrong is not None:
                return wrong
            for name, counted in (
                *((name, name) for name in _NUMBERS),
                ("clicks", "unclicked"),
                ("mean_rank", "ranked"),
            ):
                if name not in evidence.columns:
                    continue
                few = f"k.{name} IS NOT NULL AND o.{counted}_users BETWEEN 1 AND {self.users - 1}"
                wrong = self.named(evidence, again, joined, few, _users(f"o.{counted}_users"))
                if wrong is not None:
                    what = "views that were not clicked" if counted == "unclicked" else name.replace("_", " ")
                    return f"{wrong} behind its {what}"
        return None


def _users(number: str) -> str:
    return f"concat('has ', CAST({number} AS STRING), ' users')"


class HiddenRows(_OfTable):
    """Nothing about few users follows from totals: what a total says of hidden rows is of at least `users` users."""

    kind: Literal["hidden-rows"] = "hidden-rows"
    short: ClassVar[str] = "Totals minus published rows leave hidden rows of at least {users} users."

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        return (
            f"The events of a total by ({', '.join(self.totals)}) minus those of the published rows below it are of at"
            f" least {self.users} users, or 0, and its users minus those of any one such row are at least {self.users},"
            " or 0, or withheld."
        )

    def look(self, evidence: Evidence, again: Recount) -> str | None:
        """Count the users of what is hidden below every total, and those who are not in one of its rows."""
        return self._left(evidence, again) or self._elsewhere(evidence, again)

    def _left(self, evidence: Evidence, again: Recount) -> str | None:
        """A total whose events minus those of its rows are of few users."""
        keys, by = again.how.keys(self.columns), again.how.keys(self.totals)
        same = " AND ".join(f"k.{key} IS NOT DISTINCT FROM p.{key}" for key in keys)
        groups = ", ".join(f"p.{key}" for key in by)
        named = ", ".join(f"p.{key} AS {key}" for key in by)
        with evidence.log.workspace() as work:
            few = work.table(
                f"SELECT {', '.join(by)}, count(*) AS n FROM (SELECT {named}, p.user_id AS user_id"  # noqa: S608  # parts of this module
                f" FROM {again.people(totals=False)} p LEFT JOIN (SELECT {', '.join(keys)}, 1 AS there"
                f" FROM {again.released} WHERE total = 0) AS k ON {same}"
                f" WHERE k.there IS NULL GROUP BY {groups}, p.user_id) AS people"
                f" GROUP BY {', '.join(by)} HAVING count(*) < {self.users}",
                "few hidden users",
            )
            beside = " AND ".join(f"f.{key} IS NOT DISTINCT FROM k.{key}" for key in by)
            rows = f"{again.released} k JOIN {few} f ON {beside}"
            wrong = self.named(
                evidence, again, rows, "k.total = 1", "concat('gives away ', CAST(f.n AS STRING), ' users')"
            )
        return wrong and f"{wrong} by its events"

    def _elsewhere(self, evidence: Evidence, again: Recount) -> str | None:
        """A total whose users minus those of one of its rows are few."""
        users = "users_band" if "users_band" in evidence.columns else "users"
        keys, by = again.how.keys(self.columns), again.how.keys(self.totals)
        below, of_row, of_total = (
            " AND ".join(f"{one}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in some)
            for one, other, some in (("k", "r", by), ("o", "r", keys), ("t", "r", by))
        )
        rows = (
            f"{again.released} k JOIN (SELECT * FROM {again.released} WHERE total = 0) AS r ON {below}"  # noqa: S608  # tables of ours
            f" JOIN {again.rows(totals=False)} o ON {of_row} JOIN {again.rows(totals=True)} t ON {of_total}"
        )
        few = f"k.total = 1 AND k.{users} IS NOT NULL AND t.users - o.users BETWEEN 1 AND {self.users - 1}"
        number = "concat('gives away ', CAST(t.users - o.users AS STRING), ' users by its users')"
        return self.named(evidence, again, rows, few, number)


class RoundedCounts(Claim):
    """Each count is a multiple of `base`."""

    kind: Literal["rounded-counts"] = "rounded-counts"
    base: Annotated[int, Field(ge=2, le=MOST)]
    exact: ClassVar[str] = "Every number of users, events, views and clicks is a multiple of {base}."

    def check(self, evidence: Evidence) -> str | None:
        """Look at every number."""
        for name in ("users", "events", *_NUMBERS):
            if name not in evidence.columns:
                continue
            found = evidence.first(
                f"SELECT {name} FROM {evidence.released} WHERE {name} % {self.base} <> 0 ORDER BY {name} LIMIT 1"  # noqa: S608  # a word of this module and a checked number
            )
            if found is not None:
                return f"a row has {found[0]} {name}"
        return None
