"""Tell the events and the clicks in rows that are sorted by user, time and query."""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.times import MISSING
from queryveil.kernels.types import Ints, Longs


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
