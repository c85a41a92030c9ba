"""Users, events, views and clicks of each combination of some columns, as tables of whole numbers.

A combination is known by its keys: `query_id`, `url_id` and `rank` of a result, `meta`, the number of a combination of
metadata values after rare ones were merged, and `period`, the first day as yyyymmdd. A missing address or rank is -1.
Of a total the number of its metadata is `part`, because it may be by only some of these columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from queryveil.engines import Table, Workspace, identifier
from queryveil.log import QueryLog

Period = Literal["day", "week", "month"]

OF_RESULTS = ("url", "rank")
"""Columns of a result; all others are columns of an event."""
GIVEN = ("query", *OF_RESULTS, "period")
"""Columns that are no metadata."""
MISSING = -1
"""The key of an event without a result, and of a result without an address or rank."""
NUMBERS = ("views", "clicks", "ranked")
"""What a user may contribute to a row beside events: results shown, results clicked, and results with a rank."""

UNCLICKED = "unclicked_users"
"""How many users have a view that they did not click: those behind the difference of views and clicks."""
COUNTED = ("users", "events", *NUMBERS, "ranks", *(f"{name}_users" for name in NUMBERS), UNCLICKED)
"""What is counted of each combination, and how many users contribute to each of `NUMBERS`."""


def metadata_of(columns: Sequence[str]) -> list[str]:
    """The columns that are metadata."""
    return [name for name in columns if name not in GIVEN]


def keys_of(columns: Sequence[str], meta: str = "meta") -> list[str]:
    """The keys of a combination of these columns; `meta` is the key of its metadata."""
    named = {"query": "query_id", "url": "url_id", "rank": "rank"}
    keys = [key for name, key in named.items() if name in columns]
    keys += [meta] if metadata_of(columns) else []
    return [*keys, *(["period"] if "period" in columns else [])]


def first_day(unit: Period) -> str:
    """SQL of the first day of the period of an event e, as the whole number yyyymmdd."""
    day = f"CAST(date_trunc('{unit}', e.time) AS DATE)"
    return f"CAST(year({day}) * 10000 + month({day}) * 100 + day({day}) AS INTEGER)"


def day_texts(work: Workspace, numbers: str) -> Table:
    """The table of period and text, `2006-03-01` for 20060301, of SQL of all periods."""
    found = work.fetch(f"SELECT period FROM ({numbers}) AS periods GROUP BY period ORDER BY period")["period"]
    texts = [f"{day // 10000:04}-{day // 100 % 100:02}-{day % 100:02}" for day in found.to_pylist()]
    return work.read(pa.table({"period": found.cast(pa.int32()), "text": pa.array(texts, pa.string())}), "periods")


@dataclass(frozen=True)
class Tally:
    """Counts the events of a log by some of the columns that were chosen.

    Attributes:
        log: The log.
        columns: The columns that were chosen. An event without a time is left out if `period` is one of them.
        period: The unit of periods.
        within: The query_id of the queries that count; None for all.
        merged: For each combination of metadata in the log, its `NAME id`, `meta` and `part`; None without metadata.
        totals: The columns that totals are by.
    """

    log: QueryLog
    columns: Sequence[str]
    period: Period
    within: Table | None
    merged: Table | None
    totals: Sequence[str] = ()

    def keys(self, *, totals: bool) -> list[str]:
        """The keys of a row, which has those of its total too, or of a total."""
        by = keys_of(self.totals, "part")
        return by if totals else [*keys_of(self.columns), *(["part"] if "part" in by else [])]

    def pairs(self, work: Workspace, *, totals: bool = False) -> Table:
        """What each user contributes to each row, or total: user_id, the keys, events, and `NUMBERS` and ranks."""
        keys = self.keys(totals=totals)
        of_result = [key for key in keys if key in keys_of(OF_RESULTS)]
        of_event = [key for key in keys if key not in of_result]
        with self.log.workspace() as steps:
            rows = self._by_result(steps, of_event, of_result) if of_result else self._by_event(of_event)
            names = ", ".join(["user_id", *keys])
            sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in ("events", *NUMBERS, "ranks"))
            return work.table(f"SELECT {names}, {sums} FROM ({rows}) AS rows_ GROUP BY {names}", "counts by user")

    def _by_result(self, work: Workspace, of_event: Sequence[str], keys: Sequence[str]) -> str:
        """SQL of one row for each event and each address or rank of its results, or for an event without any."""
        names = ", ".join(keys)
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in (*NUMBERS, "ranks"))
        # One click after the other on the same address is one event. Most queries have few users and do not count. An
        # event has one query; tables are kept together by it.
        counting = "" if self.within is None else f" JOIN {self.within} w ON w.query_id = e.query_id"
        results = work.table(
            f"SELECT query_id, event_id, {names}, {sums} FROM (SELECT e.* FROM ({self._results}) AS e{counting}) AS r"
            f" GROUP BY query_id, event_id, {names}",
            "results of events",
        )
        named = ", ".join(f"coalesce(r.{key}, {MISSING}) AS {key}" for key in keys)
        numbers = ", ".join(f"coalesce(r.{name}, 0) AS {name}" for name in (*NUMBERS, "ranks"))
        return (
            f"SELECT {self._event_keys(of_event)}, {named}, 1 AS events, {numbers} FROM events e{self._joins}"
            f" LEFT JOIN {results} r ON r.query_id = e.query_id AND r.event_id = e.event_id{self._where}"
        )

    def _by_event(self, of_event: Sequence[str]) -> str:
        """SQL of one row for each event and one for each result."""
        keys, numbers = self._event_keys(of_event), (*NUMBERS, "ranks")
        nothing, something = (", ".join(f"{sql}{name}" for name in numbers) for sql in ("0 AS ", "r."))
        events = f"SELECT {keys}, 1 AS events, {nothing} FROM events e{self._joins}{self._where}"
        if not self.log.has_results:
            return events
        if self.merged is None and "period" not in self.columns:  # a result knows its user and its query
            results, something = f"({self._results}) AS e", something.replace("r.", "e.")
        else:
            results = f"({self._results}) AS r JOIN events e ON e.query_id = r.query_id AND e.event_id = r.event_id"
        return f"{events} UNION ALL SELECT {keys}, 0 AS events, {something} FROM {results}{self._joins}{self._where}"

    def _event_keys(self, keys: Sequence[str]) -> str:
        """SQL of user_id and some keys of an event e."""
        known = {"query_id": "e.query_id", "meta": "m.meta", "part": "m.part", "period": first_day(self.period)}
        return ", ".join(["e.user_id AS user_id", *(f"{known[key]} AS {key}" for key in keys)])

    @property
    def _results(self) -> str:
        """SQL of the results that the log has, with what each adds to `NUMBERS` and to the sum of ranks."""
        views, clicks = ("1", "CAST(clicked AS INTEGER)") if self.log.has_views else ("0", "1")
        return (
            f"SELECT event_id, user_id, query_id, url_id, rank, {views} AS views, {clicks} AS clicks,"
            f" CASE WHEN rank IS NULL THEN 0 ELSE 1 END AS ranked, coalesce(rank, 0) AS ranks FROM {self.log.results}"
        )

    @property
    def _joins(self) -> str:
        """SQL that leaves only the events that count, and finds the combination of metadata of each."""
        joins = "" if self.within is None else f" JOIN {self.within} w ON w.query_id = e.query_id"
        if self.merged is not None:
            ids = [identifier(f"{name} id") for name in metadata_of(self.columns)]
            joins += f" JOIN {self.merged} m ON {' AND '.join(f'm.{name} = e.{name}' for name in ids)}"
        return joins

    @property
    def _where(self) -> str:
        return " WHERE e.time IS NOT NULL" if "period" in self.columns else ""


def added_up(work: Workspace, pairs: Table, keys: Sequence[str], name: str) -> Table:
    """What all users contribute to each combination: its users, and of each of `NUMBERS` also how many contribute."""
    sums = ", ".join(f"CAST(sum({column}) AS BIGINT) AS {column}" for column in ("events", *NUMBERS, "ranks"))
    users = ", ".join(
        f"CAST(sum(CASE WHEN {some} THEN 1 ELSE 0 END) AS BIGINT) AS {column}"
        for column, some in (*((f"{name}_users", f"{name} > 0") for name in NUMBERS), (UNCLICKED, "views > clicks"))
    )
    names = ", ".join(keys)
    return work.table(f"SELECT {names}, count(*) AS users, {sums}, {users} FROM {pairs} GROUP BY {names}", name)
