"""Tables of counts, as docs/methods/counts.md says, literally: events as dictionaries, sets of users."""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

Event = dict[str, Any]
"""user, query, time (a datetime or None), metadata by name, and results: (url, rank, shown, clicked)."""
Order = Callable[[str, Any], int]
"""The place of a value of a column among all of its values."""
GIVEN = ("query", "url", "rank", "period")
MERGED = "*"


class Table(NamedTuple):
    """Which rows and totals there are, each with its numbers, and what is published of them."""

    cells: dict[tuple, dict[str, Any]]
    totals: dict[tuple, dict[str, Any]]


def first_day(time: dt.datetime, unit: str) -> str:
    day = time.date()
    if unit == "week":
        day -= dt.timedelta(days=day.weekday())
    return (day.replace(day=1) if unit == "month" else day).isoformat()


def merge(events: list[Event], names: list[str], least: int, order: Order) -> dict[tuple, tuple]:
    """What each combination of metadata becomes."""
    owner = [tuple(event[name] for name in names) for event in events]
    now = {one: one for one in owner}

    def users() -> dict[tuple, set]:
        found = defaultdict(set)
        for event, one in zip(events, owner, strict=True):
            found[now[one]].add(event["user"])
        return found

    for place in reversed(range(len(names))):
        found = users()
        for one, became in now.items():
            if len(found[became]) < least:
                now[one] = (*became[:place], MERGED, *became[place + 1 :])
    while True:
        found = users()
        enough = [one for one in found if len(found[one]) >= least]
        if len(enough) == len(found) or not enough:
            return now

        def place_of(one: tuple) -> list[int]:
            return [
                -2 if value == MERGED else -1 if value is None else order(name, value)
                for name, value in zip(names, one, strict=True)
            ]

        smallest = min(enough, key=lambda one: (len(found[one]), place_of(one)))
        now = {one: (MERGED,) * len(names) if became == smallest else became for one, became in now.items()}


def numbers_of(
    events: list[Event], columns: tuple[str, ...], values: Callable[[Event, Any], tuple]
) -> dict[tuple, dict[str, Any]]:
    """For each combination its users, its events and its results, each with its user."""
    found: dict[tuple, dict[str, Any]] = {}
    for place, event in enumerate(events):
        parts = [([result], result) for result in event["results"]] or [([], None)]
        if not {"url", "rank"} & set(columns):
            parts = [(event["results"], None)]
        for results, result in parts:
            at = found.setdefault(values(event, result), {"users": set(), "events": set(), "results": []})
            at["users"].add(event["user"])
            at["events"].add(place)
            at["results"] += [(event["user"], rank, shown, clicked) for _, rank, shown, clicked in results]
    return found


def counts(
    events: list[Event],
    *,
    columns: tuple[str, ...],
    least: int,
    query_users: int,
    metadata_users: int,
    period: str,
    totals: tuple[str, ...],
    secondary: bool,
    order: Order,
) -> Table:
    """All rows and totals, with `shown` and `NAME_shown`."""
    issued = defaultdict(set)
    for event in events:
        issued[event["query"]].add(event["user"])
    kept = {query for query, users in issued.items() if len(users) >= query_users or "query" not in columns}
    if "period" in columns:
        events = [event for event in events if event["time"] is not None]
    if not totals or "query" in totals:
        events = [event for event in events if event["query"] in kept]
    names = [name for name in columns if name not in GIVEN]
    became = merge(events, names, metadata_users, order) if names else {}

    def value(event: Event, result: tuple | None, name: str) -> Any:
        if name == "url":
            return result and result[0]
        if name == "rank":
            return result and result[1]
        if name == "period":
            return first_day(event["time"], period)
        if name == "query":
            return event["query"]
        return became[tuple(event[one] for one in names)][names.index(name)]

    def by(some: tuple[str, ...]) -> dict[tuple, dict]:
        found = numbers_of(events, some, lambda event, result: tuple(value(event, result, name) for name in some))
        return {key: summed(numbers) for key, numbers in found.items()}

    cells, sums = by(columns), by(totals) if totals else {}
    for rows, some in ((cells, columns), (sums, totals)):
        for key, row in rows.items():
            row["shown"] = len(row["users"]) >= least and ("query" not in some or key[some.index("query")] in kept)
            for name in ("views", "clicks", "ranked"):
                behind = [len(row[f"{name}_users"]), len(row["unclicked_users"]) if name == "clicks" else 0]
                row[f"{name}_shown"] = row["shown"] and all(n == 0 or n >= least for n in behind)
            row["users_shown"] = True
    for key, total in sums.items() if secondary else ():
        below = {
            one: row
            for one, row in cells.items()
            if all(one[columns.index(name)] == value for name, value in zip(totals, key, strict=True))
        }
        hidden = set().union(*(row["users"] for row in below.values() if not row["shown"]))
        if total["shown"] and 0 < len(hidden) < least:
            more = min(
                (one for one, row in below.items() if row["shown"]),
                key=lambda one: (len(cells[one]["users"]), cells[one]["events"], places(columns, one, order)),
            )
            cells[more]["shown"] = False
        elsewhere = [total["users"] - row["users"] for row in below.values() if row["shown"]]
        total["users_shown"] = not any(0 < len(users) < least for users in elsewhere)
    return Table(cells, sums)


def places(columns: tuple[str, ...], key: tuple, order: Order) -> tuple:
    """The place of a row among rows of the same numbers."""
    value = dict(zip(columns, key, strict=True))
    ids = [
        -1 if value[name] is None else order(name, value[name]) for name in ("query", "url", "rank") if name in value
    ]
    metadata = [(value[name] is None, value[name] or "") for name in columns if name not in GIVEN]
    return ids, metadata, value.get("period", "")


def summed(numbers: dict[str, Any]) -> dict[str, Any]:
    results = numbers["results"]
    return {
        "users": set(numbers["users"]),
        "events": len(numbers["events"]),
        "views": sum(shown for _, _, shown, _ in results),
        "clicks": sum(clicked for _, _, _, clicked in results),
        "ranks": [rank for _, rank, _, _ in results if rank is not None],
        "views_users": {user for user, _, shown, _ in results if shown},
        "clicks_users": {user for user, _, _, clicked in results if clicked},
        "unclicked_users": {user for user, _, shown, clicked in results if shown and not clicked},
        "ranked_users": {user for user, rank, _, _ in results if rank is not None},
    }


def mean(ranks: list[int]) -> float:
    """To the nearest hundredth, halves up."""
    return (200 * sum(ranks) + len(ranks)) // (2 * len(ranks)) / 100


def rounded(number: int, base: int | None) -> int:
    if base is None:
        return number
    below = number - number % base
    return below + base if 2 * (number - below) >= base else below


def band(number: int) -> str:
    low = 1
    while True:
        for first, last in ((low, 2 * low - 1), (2 * low, 5 * low - 1), (5 * low, 10 * low - 1)):
            if first <= number <= last:
                return str(first) if first == last else f"{first}-{last}"
        low *= 10


def published(table: Table, columns: tuple[str, ...], totals: tuple[str, ...], base: int | None, bands: bool) -> set:
    """The published rows: total, the value of each column, users, events, views, clicks, mean rank."""
    found = set()
    for total, rows, some in ((0, table.cells, columns), (1, table.totals, totals)):
        for key, row in rows.items():
            if not row["shown"]:
                continue
            value = dict(zip(some, key, strict=True))
            blank = {name: None if name in GIVEN else MERGED for name in columns}
            users = len(row["users"])
            stated = band(users) if bands else rounded(users, base)
            numbers = [stated if row["users_shown"] else None, rounded(row["events"], base)]
            numbers += [rounded(row[name], base) if row[f"{name}_shown"] else None for name in ("views", "clicks")]
            numbers.append(mean(row["ranks"]) if row["ranks"] and row["ranked_shown"] and not total else None)
            found.add((total, *((blank | value)[name] for name in columns), *numbers))
    return found
