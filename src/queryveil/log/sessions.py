"""Sessions: the events of one user without a long pause between them, in parts of a bounded size."""

from typing import Literal, NamedTuple

from queryveil.engines import Table, Workspace
from queryveil.errors import QueryveilError, option
from queryveil.log import QueryLog

Link = Literal["none", "session", "user"]


class Linking(NamedTuple):
    """How released events are linked."""

    by: Link
    gap: int = 30
    """Minutes without an event after which a new session begins."""
    events: int = 10
    """The most events of a session; a longer one is cut."""


NOTHING, USERS = Linking("none"), Linking("user")


def check_linking(log: QueryLog, linking: Linking) -> None:
    """Refuse sessions of a log without times."""
    if linking.by == "session" and not log.has_times:
        raise QueryveilError(
            "Sessions are found by the times of events, and this log has none; choose"
            f" {option('link', 'none')} or {option('link', 'user')}."
        )


def make_sessions(work: Workspace, linking: Linking) -> Table:
    """A table of event_id, user_id and session, which is the smallest event_id in it.

    All events of the log count, whether they are released or not, so that a session is the same in every release. An
    event without a time is a session of its own.
    """
    pause = f"INTERVAL '{linking.gap}' MINUTE"
    in_order = "PARTITION BY user_id ORDER BY time, event_id"
    opening = (
        f"SELECT event_id, user_id, time, CASE WHEN time <= lag(time) OVER ({in_order}) + {pause} THEN 0 ELSE 1 END"
        " AS opens FROM events WHERE time IS NOT NULL"
    )
    visits = (
        f"SELECT event_id, user_id, time, sum(opens) OVER ({in_order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT"
        f" ROW) AS visit FROM ({opening}) AS opening"
    )
    places = (
        "SELECT event_id, user_id, visit, row_number() OVER (PARTITION BY user_id, visit ORDER BY time, event_id) - 1"
        f" AS place FROM ({visits}) AS visits"
    )
    return work.table(
        "SELECT event_id, user_id, min(event_id) OVER (PARTITION BY user_id, visit, piece) AS session FROM"
        f" (SELECT event_id, user_id, visit, place - place % {linking.events} AS piece FROM ({places}) AS places)"
        " AS pieces UNION ALL SELECT event_id, user_id, event_id AS session FROM events WHERE time IS NULL",
        "all sessions",
    )
