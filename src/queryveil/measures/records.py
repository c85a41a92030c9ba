"""The record of every user of a log, as it was released."""

import numpy as np

from queryveil.errors import QueryveilError
from queryveil.log import LocalLog, local
from queryveil.methods.microaggregation import Searches
from queryveil.release import Release, loaded


def original(release: Release, measure: str) -> LocalLog:
    """The log of a release that was just made; only that knows who is who in it."""
    if release.log is None or release.fresh_users is None or not {"user", "query"} <= set(release.schema.names):
        raise QueryveilError(
            f"{measure} needs a release that was just made, with users and queries, which still knows whose record is"
            " whose."
        )
    return local(release.log, measure)


def events(release: Release) -> str:
    """SQL that counts released events, of which one with several clicks has several rows; the table is r."""
    return "count(DISTINCT r.event)" if {"event", "url"} <= set(release.schema.names) else "count(*)"


def records(release: Release, measure: str) -> tuple[LocalLog, Searches]:
    """The log, and the released queries of each of its users; none for a user who was left out.

    Args:
        release: A release that was just made, because only that knows who is who in it.
        measure: What needs them, for the message.
    """
    log = original(release, measure)
    with loaded(release, log):
        rows = log.engine.table(
            f"SELECT f.user_id AS user_id, q.query_id AS query_id, {events(release)} AS n FROM released r"
            f' JOIN "{release.fresh_users}" f ON f."user" = r."user" JOIN queries q ON q.query = r.query'
            " GROUP BY f.user_id, q.query_id ORDER BY f.user_id, q.query_id"
        )
    start = np.searchsorted(rows["user_id"].to_numpy(), np.arange(log.n_users + 1))
    return log, Searches(start, rows["query_id"].to_numpy(), rows["n"].to_numpy())
