"""Tell the events, the clicks and the results shown in rows that are sorted by user, time and query."""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.times import MISSING
from queryveil.kernels.types import Flags, Ints, Longs


class Events(NamedTuple):
    """The events, and the row that each one starts at."""

    start: Longs
    user: Ints
    query: Ints
    time: Longs


class Clicks(NamedTuple):
    """The clicks, with the user and the query of the event they hang on."""

    event: Ints
    user: Ints
    query: Ints
    rank: Ints
    url: Ints


@kernel
def find_events(user: Ints, query: Ints, time: Longs, rank: Ints, url: Ints) -> tuple[Events, Clicks]:
    """Cut sorted rows into events and clicks.

    An event is a run of rows with the same user, time and query; a row without a time is an event of its own. A row
    with a rank or an address (neither is negative) is a click.
    """
    n = len(user)
    events = clicks = 0
    for i in range(n):
        same = i > 0 and user[i] == user[i - 1] and query[i] == query[i - 1] and time[i] == time[i - 1]
        events += not same or time[i] == MISSING
        clicks += url[i] >= 0 or rank[i] >= 0
    start = np.empty(events, np.int64)
    event_user, event_query = np.empty(events, np.int32), np.empty(events, np.int32)
    event_time = np.empty(events, np.int64)
    click_event = np.empty(clicks, np.int32)
    click_user, click_query = np.empty(clicks, np.int32), np.empty(clicks, np.int32)
    click_rank, click_url = np.empty(clicks, np.int32), np.empty(clicks, np.int32)
    events = clicks = 0
    for i in range(n):
        same = i > 0 and user[i] == user[i - 1] and query[i] == query[i - 1] and time[i] == time[i - 1]
        if not same or time[i] == MISSING:
            start[events] = i
            event_user[events], event_query[events], event_time[events] = user[i], query[i], time[i]
            events += 1
        if url[i] >= 0 or rank[i] >= 0:
            click_event[clicks] = events - 1
            click_user[clicks], click_query[clicks] = user[i], query[i]
            click_rank[clicks], click_url[clicks] = rank[i], url[i]
            clicks += 1
    return (
        Events(start, event_user, event_query, event_time),
        Clicks(click_event, click_user, click_query, click_rank, click_url),
    )


REPEATED, TOO_MANY = 1, 2
"""What is wrong with a result: another one of the event has its rank, or the event has too many."""


@kernel
def find_bad_views(user: Ints, query: Ints, time: Longs, rank: Ints, url: Ints, most: int) -> Flags:
    """What is wrong with every row of results, 0 if nothing is.

    Rows are sorted by user, time, query, rank and address. All rows of an event with more than `most` results are bad,
    and all results of an event that share their rank with another address. The same result twice is one result.
    """
    n = len(user)
    bad = np.zeros(n, np.int8)
    start = 0
    while start < n:
        end, shown = start, 0
        while end < n and user[end] == user[start] and query[end] == query[start] and time[end] == time[start]:
            is_result = rank[end] >= 0 or url[end] >= 0
            again = end > start and rank[end] == rank[end - 1] and url[end] == url[end - 1]
            shown += is_result and not again
            end += 1
        first = start
        for i in range(start, end):
            if shown > most:
                bad[i] = TOO_MANY
                continue
            if rank[i] != rank[first]:
                first = i
            if rank[i] >= 0 and url[i] != url[first]:
                bad[first : i + 1] = REPEATED
        start = end
    return bad


@kernel
def merge_views(event: Ints, rank: Ints, url: Ints, clicked: Flags) -> tuple[Longs, Flags]:
    """Where each result of an event first stands in sorted results, and whether it was clicked in any of its rows."""
    place, was_clicked = np.empty(len(event), np.int64), np.empty(len(event), np.int8)
    views = 0
    for i in range(len(event)):
        if i > 0 and event[i] == event[i - 1] and rank[i] == rank[i - 1] and url[i] == url[i - 1]:
            was_clicked[views - 1] |= clicked[i]
            continue
        place[views], was_clicked[views] = i, clicked[i]
        views += 1
    return place[:views], was_clicked[:views]
