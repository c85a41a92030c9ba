"""A table of counts, counted again from the log: all its rows and totals, and who contributes to each."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from queryveil.claims.base import Columns, Evidence
from queryveil.claims.users import CombinationUsers
from queryveil.engines import Table, identifier

NOT_METADATA = ("query", "url", "rank", "period")
NUMBERS = ("views", "clicks", "ranked")
_KEYS = {"query": "query_id", "url": "url_id", "rank": "rank", "period": "day"}
_MERGED, _MISSING = -2, -1
TAKEN = (
    *("user", "user_id", "event", "event_id", "query_id", "url_id", "time", "day", "place", "shown", "clicked"),
    *("result_rank", "ranked", "ranks", "total", "known", "users", "users_band", "events", "views", "clicks"),
    *("mean_rank", "meta", "part"),
)
"""Names that no column of metadata of such a table has."""


class Counting(NamedTuple):
    """How a table is counted.

    Attributes:
        columns: The columns that rows are counted by.
        query_users: Least users of a query; None if rows are not counted by query.
        metadata_users: Least users of a combination of metadata; None without metadata.
        period: The unit of periods; None without periods.
        totals: The columns that totals are by.
    """

    columns: Columns
    query_users: int | None
    metadata_users: int | None
    period: str | None
    totals: Columns

    @property
    def metadata(self) -> list[str]:
        """The columns of metadata."""
        return [name for name in self.columns if name not in NOT_METADATA]

    def keys(self, columns: Sequence[str]) -> list[str]:
        """SQL of the columns by which the numbers of some columns are known here."""
        named = [key for name, key in _KEYS.items() if name in columns]
        return [*named, *(identifier(name) for name in self.metadata if name in columns)]


class Recount:
    """Everything that a table of counts could hold.

    Attributes:
        evidence: The log and the released table.
        how: How the table is counted.
    """

    def __init__(self, evidence: Evidence, how: Counting) -> None:
        self.evidence, self.how, self.work = evidence, how, evidence.work

    @cached_property
    def released(self) -> Table:
        """The released rows: total, the keys, their numbers, and `known`: 1 unless a text is none of the log.

        A total has no value in the columns that it is not by, and the mark for merged values in metadata.
        """
        how, columns = self.how, self.evidence.columns
        total = "r.total" if "total" in columns else "0"
        given = {"query": "query_.query_id", "url": "url_.url_id", "rank": "r.rank", "period": "d.day"}
        selected, joins, known = [f"{total} AS total"], "", [f"{total} BETWEEN 0 AND {int(bool(how.totals))}"]
        if "query" in how.columns:
            joins += f" LEFT JOIN {self.evidence.queries} query_ ON query_.query = r.query"
        if "url" in how.columns:
            joins += f" LEFT JOIN {self.evidence.urls} url_ ON url_.url = r.url"
        joins += f" LEFT JOIN {self._days} d ON d.text = r.period" if "period" in how.columns else ""
        for name in how.columns:
            column = identifier(name)
            selected.append(f"{given.get(name, f'r.{column}')} AS {_KEYS.get(name, column)}")
            known.append(f"(r.{column} IS NULL) = ({given.get(name, f'r.{column}')} IS NULL)")
            if name not in how.totals:
                blank = "IS NULL" if name in _KEYS else f"= '{CombinationUsers.MERGED}'"
                known.append(f"({total} = 0 OR r.{column} {blank})")
        numbers = [
            name for name in ("users", "users_band", "events", "views", "clicks", "mean_rank") if name in columns
        ]
        selected += [f"r.{name} AS {name}" for name in numbers]
        return self.work.table(
            f"SELECT {', '.join(selected)}, CASE WHEN {' AND '.join(known)} THEN 1 ELSE 0 END AS known"  # noqa: S608  # names are escaped
            f" FROM {self.evidence.released} r{joins}",
            "released counts",
        )

    def people(self, *, totals: bool) -> Table:
        """What each user contributes to each row, or total: user_id, the keys, events, and numbers of results."""
        return self._total_people if totals else self._row_people

    def rows(self, *, totals: bool) -> Table:
        """All rows, or totals, of the log: keys, users, events, numbers of results and how many users have any."""
        return self._total_rows if totals else self._rows_of_log

    @cached_property
    def _row_people(self) -> Table:
        return self._people(self.how.columns)

    @cached_property
    def _total_people(self) -> Table:
        return self._people(self.how.totals)

    @cached_property
    def _rows_of_log(self) -> Table:
        return self._added(self._row_people, self.how.columns)

    @cached_property
    def _total_rows(self) -> Table:
        return self._added(self._total_people, self.how.totals)

    def _people(self, columns: Sequence[str]) -> Table:
        names = ", ".join([*self.how.keys(columns), "user_id"])
        of_event = (
            f"SELECT {names}, event_id, CAST(sum(shown) AS BIGINT) AS views, CAST(sum(clicked) AS BIGINT) AS clicks,"  # noqa: S608  # parts of this module
            " count(result_rank) AS ranked, coalesce(CAST(sum(result_rank) AS BIGINT), 0) AS ranks"
            f" FROM {self._log_rows} GROUP BY {names}, event_id"
        )
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in (*NUMBERS, "ranks"))
        return self.work.table(
            f"SELECT {names}, count(*) AS events, {sums} FROM ({of_event}) AS of_event GROUP BY {names}",  # noqa: S608  # parts of this module
            "people of counts",
        )

    def _added(self, people: Table, columns: Sequence[str]) -> Table:
        names = ", ".join(self.how.keys(columns))
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in ("events", *NUMBERS, "ranks"))
        having = ", ".join(f"count(CASE WHEN {name} > 0 THEN 1 END) AS {name}_users" for name in NUMBERS)
        having += ", count(CASE WHEN views > clicks THEN 1 END) AS unclicked_users"
        return self.work.table(
            f"SELECT {names}, count(*) AS users, {sums}, {having} FROM {people} GROUP BY {names}",  # noqa: S608  # parts of this module
            "counts of the log",
        )

    @cached_property
    def _events(self) -> Table:
        """The events that are counted: event_id, user_id, query_id, day, and the ids of metadata."""
        how = self.how
        ids = "".join(f", e.{name} AS {name}" for name in self._ids)
        day = f"CAST(date_trunc('{how.period}', e.time) AS DATE)" if how.period else "CAST(NULL AS DATE)"
        joined, timed = "", " WHERE e.time IS NOT NULL" if how.period else ""
        if how.query_users is not None and not (how.totals and "query" not in how.totals):
            joined = (
                " JOIN (SELECT query_id FROM (SELECT query_id, user_id FROM events GROUP BY query_id, user_id) AS pairs"  # noqa: S608  # a checked number
                f" GROUP BY query_id HAVING count(*) >= {how.query_users}) AS q ON q.query_id = e.query_id"
            )
        return self.work.table(
            f"SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id, {day} AS day{ids}"  # noqa: S608  # one of three words, and escaped names
            f" FROM events e{joined}{timed}",
            "events that count",
        )

    @cached_property
    def _log_rows(self) -> Table:
        """One row for each result of a counted event, or for an event without results, with all keys."""
        joined = values = ""
        there = "CASE WHEN r.event_id IS NULL THEN 0 ELSE 1 END"
        shown, clicked = (there, "coalesce(r.clicked, 0)") if self.evidence.log.has_views else ("0", there)
        if self.how.metadata:
            joined = f" JOIN {self._merged} m ON " + " AND ".join(f"m.{name} = e.{name}" for name in self._ids)
            values = "".join(f"m.{name} AS {name}, " for name in map(identifier, self.how.metadata))
        return self.work.table(
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id, e.day AS day,"  # noqa: S608  # names are escaped
            f" {values}r.url_id AS url_id, r.rank AS rank, r.rank AS result_rank, {shown} AS shown,"
            f" {clicked} AS clicked FROM {self._events} e{joined}"
            f" LEFT JOIN {self.evidence.log.results} r ON r.query_id = e.query_id AND r.event_id = e.event_id",
            "rows of the log",
        )

    @property
    def _ids(self) -> list[str]:
        return [identifier(f"{name} id") for name in self.how.metadata]

    @cached_property
    def _days(self) -> Table:
        """The text of the first day of each period."""
        days = self.work.fetch(f"SELECT day FROM {self._events} GROUP BY day ORDER BY day")["day"]  # noqa: S608  # a table of ours
        texts = pa.array([day.isoformat() for day in days.to_pylist()], pa.string())
        return self.work.read(pa.table({"day": days.cast(pa.date32()), "text": texts}), "days")

    @cached_property
    def _merged(self) -> Table:
        """The ids of each combination of metadata of the log, and its values after merging by the rule.

        In combinations of too few users the last column is merged, then the one before it, and so on. While the
        completely merged ones have too few users together, the smallest other one joins them.
        """
        names, least = self.how.metadata, self.how.metadata_users or 1
        ids = ", ".join(self._ids)
        who = self.work.table(f"SELECT user_id, {ids} FROM {self._events} GROUP BY user_id, {ids}", "users of metadata")  # noqa: S608  # names are escaped
        found = self.work.fetch(f"SELECT {ids} FROM {who} GROUP BY {ids} ORDER BY {ids}")  # noqa: S608  # names are escaped
        combinations = list(zip(*(found[f"{name} id"].to_pylist() for name in names), strict=True))
        now = list(combinations)
        for place in reversed(range(len(names))):
            users = self._users(who, found, now)
            now = [one if users[one] >= least else (*one[:place], _MERGED, *one[place + 1 :]) for one in now]
        while now:
            users = self._users(who, found, now)
            enough = [one for one in users if users[one] >= least]
            if len(enough) in (0, len(users)):
                break
            smallest = min(enough, key=lambda one: (users[one], [_order(value) for value in one]))  # used at once
            now = [(_MERGED,) * len(names) if one == smallest else one for one in now]
        for place, name in enumerate(names):
            texts = self.work.fetch(f"SELECT id, value FROM {identifier(f'extra {name}')}")  # noqa: S608  # names are escaped
            text: dict[int, str | None] = dict(zip(texts["id"].to_pylist(), texts["value"].to_pylist(), strict=True))
            text |= {_MERGED: CombinationUsers.MERGED, _MISSING: None}
            found = found.append_column(name, pa.array([text[one[place]] for one in now], pa.string()))
        return self.work.read(found, "merged metadata")

    def _users(self, who: Table, found: pa.Table, now: list[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
        """How many users have each combination."""
        number = {one: place for place, one in enumerate(dict.fromkeys(now))}
        mapping = self.work.read(
            found.append_column("place", pa.array([number[one] for one in now], pa.int64())), "merging"
        )
        same = " AND ".join(f"g.{name} = w.{name}" for name in self._ids)
        counted = self.work.fetch(
            "SELECT place, count(*) AS users FROM (SELECT g.place AS place, w.user_id AS user_id"  # noqa: S608  # names are escaped
            f" FROM {who} w JOIN {mapping} g ON {same} GROUP BY g.place, w.user_id) AS people GROUP BY place"
        )
        self.work.drop(mapping)
        users = dict(zip(counted["place"].to_pylist(), counted["users"].to_pylist(), strict=True))
        return {one: users[place] for one, place in number.items()}


def _order(value: int) -> tuple[int, int]:
    """Merged values come first, then missing ones, then the others by id."""
    return {_MERGED: (0, 0), _MISSING: (1, 0)}.get(value, (2, value))
