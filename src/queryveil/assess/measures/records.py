"""The record of every user of a log, as it was released.

Where pseudonyms stand for sessions, the record of a user is all of their sessions put together, by the secret user map.
A reader of the release cannot do that: what is measured on such records is a bound of what they can learn of users.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from queryveil.arrays import Longs
from queryveil.assess.measures.counts import pseudonym, record_digests, shares_records
from queryveil.engines import Table
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog, local
from queryveil.methods import METHODS
from queryveil.methods.microaggregation.common import Searches
from queryveil.release import Release, loaded


def original(release: Release, measure: str) -> LocalLog:
    """The log of a release that was just made; only that knows who is who in it."""
    queries = "query" in release.schema.names and pseudonym(release) is not None
    if release.log is None or release.pseudonyms is None or not queries:
        raise QueryveilError(
            f"{measure} needs a release that was just made, with users and queries, which still knows whose record is"
            " whose."
        )
    return local(release.log, measure)


def events(release: Release) -> str:
    """SQL that counts released events, of which one with several clicks has several rows; the table is r."""
    return "count(DISTINCT r.event)" if {"event", "url"} <= set(release.schema.names) else "count(*)"


@dataclass(frozen=True, eq=False)
class UserRecords:
    """What every user of a log has in it, and in a release of it.

    Attributes:
        log: The log.
        issued: The queries of each user in the log.
        released: The queries of each user in the release; none for a user who was left out.
        group: Users with the same number share a record; -1 for a user who was left out.
        shared: Whether the release has records that several users share.
        by_repetition: Whether users give the queries that they repeat most to a record that they share, or any.
    """

    log: LocalLog
    issued: Searches
    released: Searches
    group: Longs
    shared: bool
    by_repetition: bool


@contextmanager
def _who(release: Release, measure: str, log: LocalLog | None) -> Iterator[tuple[LocalLog, Table]]:
    """The log that a release is measured against, and who is who in it by the ids of that log."""
    made = original(release, measure)
    who = release.pseudonyms
    assert who is not None  # noqa: S101  # as original ensures
    if log is None or log is made or made.part is None or made.part.of is not log:
        yield made, who
        return
    with log.workspace() as work:
        yield log, made.in_whole(who, work)  # a pipeline scrubbed the log


def user_records(release: Release, measure: str, log: LocalLog | None = None) -> UserRecords:
    """What every user of a log has in it, and in a release that was just made.

    Args:
        release: A release that was just made, because only that knows who is who in it.
        measure: What needs the records, for the message.
        log: The log that it is measured against, if a pipeline scrubbed it first; by default the one it was made from.
    """
    with _who(release, measure, log) as (here, who):
        members = here.engine.fetch(f"SELECT user_id FROM {who} GROUP BY user_id")["user_id"].to_numpy()
    log, released = records(release, measure, log)
    group = np.full(log.n_users, -1, np.int64)
    group[members] = np.arange(len(members))
    shared = shares_records(release)
    if shared:
        # Users who share a record have it each under a pseudonym of their own, unless it is written once.
        some = np.flatnonzero(released.sizes)
        digest = record_digests(released.start[some], released.query, released.times)
        group[:] = -1
        group[some] = np.unique(digest, return_inverse=True)[1]
    by_repetition = getattr(METHODS.get(release.manifest.last.method), "by_repetition", False)
    return UserRecords(log, Searches.of(log), released, group, shared, by_repetition)


def records(release: Release, measure: str, log: LocalLog | None = None) -> tuple[LocalLog, Searches]:
    """The log, and the released queries of each of its users; none for a user who was left out.

    Args:
        release: A release that was just made, because only that knows who is who in it.
        measure: What needs them, for the message.
        log: As for `user_records`.
    """
    with _who(release, measure, log) as (here, who), loaded(release, here) as released:
        rows = here.engine.fetch(
            f"SELECT f.user_id AS user_id, q.query_id AS query_id, {events(release)} AS n FROM {released} r"
            f' JOIN {who} f ON f."user" = r."{pseudonym(release)}"'
            " JOIN queries q ON q.query = r.query"
            " GROUP BY f.user_id, q.query_id ORDER BY f.user_id, q.query_id"
        )
    start = np.searchsorted(rows["user_id"].to_numpy(), np.arange(here.n_users + 1))
    return here, Searches(start, rows["query_id"].to_numpy(), rows["n"].to_numpy())
