"""A series of releases by equality, literally: lists of events that wait, and sets of users."""

from collections import defaultdict
from typing import NamedTuple


class Event(NamedTuple):
    """A search."""

    user: str
    query: str
    time: int


class Simulated(NamedTuple):
    """What happens in one period."""

    released: list[Event]
    expired: list[Event]
    waiting: list[Event]


def simulate(periods: list[list[Event]], k: int, retention: int | None = None) -> list[Simulated]:
    """Every period: old events expire, new ones come, and the queries of k users leave with all their events."""
    waiting: list[Event] = []
    found = []
    end = None
    for fresh in periods:
        end = max([event.time for event in fresh] + ([] if end is None else [end]))
        expired = [event for event in waiting if retention is not None and event.time < end - retention]
        waiting = [event for event in waiting if event not in expired] + fresh
        users = defaultdict(set)
        for event in waiting:
            users[event.query].add(event.user)
        released = [event for event in waiting if len(users[event.query]) >= k]
        waiting = [event for event in waiting if len(users[event.query]) < k]
        found.append(Simulated(released, expired, waiting))
    return found
