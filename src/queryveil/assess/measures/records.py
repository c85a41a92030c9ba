"""The record of every user of a log, as it was released.

Where pseudonyms stand for sessions, the record of a user is all of their sessions put together, by the secret user map.
A reader of the release cannot do that: what is measured on such records is a bound of what they can learn of users.
"""

from dataclasses import dataclass

import numpy as np

from queryveil.arrays import Longs
from queryveil.assess.measures.counts import pseudonym, record_digests, shares_records
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog, local
from queryveil.methods import METHODS
from queryveil.methods.microaggregation.common import Searches
from queryveil.methods.scrub import Scrub
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
        given: Those of them that a user could give to a shared record: all, unless earlier steps of a pipeline chose
            queries; then those that are released of them.
        released: The queries of each user in the release; none for a user who was left out.
        group: Users with the same number share a record; -1 for a user who was left out.
        shared: Whether the release has records that several users share.
        by_repetition: Whether users give the queries that they repeat most to a record that they share, or any.
    """

    log: LocalLog
    issued: Searches
    given: Searches
    released: Searches
    group: Longs
    shared: bool
    by_repetition: bool


def user_records(release: Release, measure: str) -> UserRecords:
    """What every user of a log has in it, and in a release that was just made.

    Args:
        release: A release that was just made, because only that knows who is who in it.
        measure: What needs the records, for the message.
    """
    log, released = records(release, measure)
    members = log.engine.fetch(f"SELECT user_id FROM {release.pseudonyms} GROUP BY user_id")["user_id"].to_numpy()
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
    issued = given = Searches.of(log)
    if sum(step.method != Scrub.name for step in release.manifest.steps) > 1:
        known = np.zeros(log.n_queries, np.bool_)
        known[released.query] = True
        chosen = known[issued.query]
        start = np.concatenate([[0], np.cumsum(chosen)])[issued.start]
        given = Searches(start, issued.query[chosen], issued.times[chosen])
    return UserRecords(log, issued, given, released, group, shared, by_repetition)


def records(release: Release, measure: str) -> tuple[LocalLog, Searches]:
    """The log, and the released queries of each of its users; none for a user who was left out.

    Args:
        release: A release that was just made, because only that knows who is who in it.
        measure: What needs them, for the message.
    """
    log = original(release, measure)
    with loaded(release, log) as released:
        rows = log.engine.fetch(
            f"SELECT f.user_id AS user_id, q.query_id AS query_id, {events(release)} AS n FROM {released} r"
            f' JOIN {release.pseudonyms} f ON f."user" = r."{pseudonym(release)}"'
            " JOIN queries q ON q.query = r.query"
            " GROUP BY f.user_id, q.query_id ORDER BY f.user_id, q.query_id"
        )
    start = np.searchsorted(rows["user_id"].to_numpy(), np.arange(log.n_users + 1))
    return log, Searches(start, rows["query_id"].to_numpy(), rows["n"].to_numpy())
