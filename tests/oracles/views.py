"""Results shown, literally: which rows of results are good, what the views of a log are, and what may be released."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tests.oracles.text import normal_form


class Shown(NamedTuple):
    user: str
    query: str
    time: str | None
    rank: int | None
    url: str | None
    clicked: bool


Event = tuple[str, str, str | None]


def bad(rows: Iterable[Shown], most: int) -> dict[str, set[int]]:
    """The numbers of bad rows by kind; a row has the first kind that fits."""
    rows = list(rows)
    found: dict[str, set[int]] = defaultdict(set)
    events: dict[Event, dict[tuple[int | None, str | None], list[int]]] = defaultdict(lambda: defaultdict(list))
    bare: dict[Event, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        is_result = row.rank is not None or row.url is not None
        event = (row.user, normal_form(row.query), row.time)
        if row.clicked and not is_result:
            found["a click on what was not shown"].add(number)
        elif is_result and row.time is None:
            found["a view without an event"].add(number)
        elif is_result:
            events[event][row.rank, row.url].append(number)
        else:
            bare[event].append(number)
    for event, results in events.items():
        if len(results) > most:
            found["an over-long result list"] |= {n for numbers in results.values() for n in numbers} | {*bare[event]}
            continue
        for rank, url in results:
            if rank is not None and any(other[0] == rank and other[1] != url for other in results):
                found["a rank that repeats"] |= set(results[rank, url])
    return dict(found)


def views(rows: Iterable[Shown]) -> dict[tuple[str, str, str | None, int | None, str | None], bool]:
    """Whether each result of an event was clicked, in any of its rows."""
    found: dict[tuple[str, str, str | None, int | None, str | None], bool] = {}
    for row in rows:
        if row.rank is not None or row.url is not None:
            key = (row.user, normal_form(row.query), row.time, row.rank, row.url)
            found[key] = found.get(key, False) or row.clicked
    return found


def released(rows: Iterable[Shown], k: int) -> list[tuple[str, int | None, str, bool | None]]:
    """The query, rank, address and clicked of every view that equality releases."""
    users: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for row in rows:
        users["query", normal_form(row.query)].add(row.user)
    shown = views(rows)
    for user, query, _, rank, url in shown:
        users["url", query, url].add(user)
        users["rank", query, url, rank].add(user)
    kept = [
        (user, query, rank if rank is not None and len(users["rank", query, url, rank]) >= k else None, url, clicked)
        for (user, query, _, rank, url), clicked in shown.items()
        if url is not None and len(users["query", query]) >= k and len(users["url", query, url]) >= k
    ]
    sides: dict[tuple[str, int | None, str], dict[bool, set[str]]] = defaultdict(lambda: defaultdict(set))
    for user, query, rank, url, clicked in kept:
        sides[query, rank, url][clicked].add(user)
    return [
        (query, rank, url, clicked if min(map(len, sides[query, rank, url].values())) >= k else None)
        for _, query, rank, url, clicked in kept
    ]
