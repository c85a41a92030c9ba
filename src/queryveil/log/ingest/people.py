"""Whether the users of a log are people: a session id in their place makes each person count several times."""

import numpy as np

from queryveil.errors import option
from queryveil.formats.rows import names_a_session
from queryveil.log import LocalLog, QueryLog
from queryveil.text.show import printable

_HOUR, _DAY = 3_600_000_000, 86_400_000_000
_FEWEST, _DAYS, _SHARE = 200, 3, 0.95
"""At least so many users with several events, so many days, and so large a share of these users within an hour. Of
people with a cookie, far more come back within days."""


def session_warning(log: QueryLog) -> str | None:
    """A sentence about a log whose users look like sessions, by the name of the column or by their times; else None."""
    means = (
        "A person with several sessions counts several times, so k users may be fewer than k people; name a column that"
        f" stays the same for a person with {option('columns', {'user': 'NAME'})}, if there is one."
    )
    column = None if log.stats.read_as is None else log.stats.read_as.columns.get("user")
    if column is not None and names_a_session(column):
        return (
            f"The {log.n_users:,} users of the log are in column '{printable(column)}', which looks like the id of a"
            f" session. {means}"
        )
    share, days = _short(log) if isinstance(log, LocalLog) else (0.0, 0)
    if share < _SHARE:
        return None
    return (
        f"{100 * share:.1f} % of the users with several events have all of them within an hour, in a log of {days:,}"
        f" days, so users look like sessions. {means}"
    )


def _short(log: LocalLog) -> tuple[float, int]:
    """The share of users with several events who have all of them within an hour, and the days of the log."""
    timed = log.events["time"].is_valid().to_numpy()
    time = log.events["time"].cast("int64").to_numpy(zero_copy_only=False)[timed].astype(np.int64)
    user = log.events["user_id"].to_numpy()[timed]
    if len(time) == 0 or time.max() - time.min() < _DAYS * _DAY:
        return 0.0, 0
    # Events are in the order of users and times.
    first = np.flatnonzero(np.append(True, user[1:] != user[:-1]))
    last = np.append(first[1:], len(user)) - 1
    several = last > first
    if np.count_nonzero(several) < _FEWEST:
        return 0.0, 0
    short = time[last[several]] - time[first[several]] <= _HOUR
    return float(short.mean()), int((time.max() - time.min()) // _DAY) + 1
