"""A log on a cluster brought here: all of a small one, and of a large one some users, with what a release has of them.

Which rows of a release belong to some users depends on the release. Where it is known who is behind which record, they
are the records of these users; where users share records, users are drawn in whole groups. Rows that nothing links
belong to nobody: of each query as many of them are taken as these users have of its events.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa

from queryveil.assess.measures.counts import pseudonym, shares_records
from queryveil.engines import Table, Workspace, identifier
from queryveil.errors import QueryveilError, option
from queryveil.log import LocalLog, QueryLog
from queryveil.log.draws import drawn
from queryveil.log.spark import SparkLog
from queryveil.release import Release, as_of, check_log, loaded

USERS = 5_000
"""Most users that are brought here, so that neither memory nor time grows with the log."""
EVENTS = 3_000_000
"""Most events of a log of so few users that is brought here whole."""


class NoSampleError(QueryveilError):
    """A release of which nothing belongs to some users alone."""


@dataclass(frozen=True)
class Sample:
    """Some users, or all.

    Attributes:
        release: What a release has of them.
        log: Their log.
        share: How many of how many they are; empty if the whole log is here, row by row.
    """

    release: Release
    log: LocalLog
    share: str


def at_hand(release: Release, log: QueryLog) -> tuple[Release, QueryLog]:
    """A release and its log as they are; if the log is on Spark and has few users, both brought here."""
    if isinstance(log, LocalLog) or not _is_small(cast(SparkLog, log), USERS):
        return release, log
    made = as_of(release, log)
    check_log(made, log)
    here = _all(made, cast(SparkLog, log))
    return (release, log) if here.share else (replace(here.release, folder=release.folder), here.log)


def bring(release: Release, log: SparkLog, seed: int, users: int | None = None) -> Sample:
    """Bring a log and its release here: all of it if it has few users, else users drawn at random.

    Args:
        release: A release.
        log: Its log.
        seed: Random seed; the same users are drawn whatever the cluster.
        users: Most users to draw; by default 5,000.

    Raises:
        NoSampleError: If the log has more users, and it cannot be said which rows of the release belong to some.
    """
    users = USERS if users is None else users
    check_log(release, log)
    if _is_small(log, users):
        return _all(release, log)
    with log.workspace() as work, loaded(release, log) as released:
        if not _is_known(release, log):
            _check_unlinked(release)
            some = _users(log, work, seed, users)
            return _part(release, log, some, _rows_of_queries(release, log, work, released, some))
        if shares_records(release):
            some = _groups(release, log, work, released, seed, users)
        else:
            some = _users(log, work, seed, users)
        return _part(release, log, some, _rows_of_users(release, work, released, some))


def _is_small(log: SparkLog, users: int) -> bool:
    """Whether all of a log fits here, and it is all that its release was made from."""
    return log.n_users <= users and log.stats.events <= EVENTS and log.counted is log


def _is_known(release: Release, log: SparkLog) -> bool:
    """Whether it is known who is behind which record."""
    return pseudonym(release) is not None and release.pseudonyms is not None and release.log is log


def _check_unlinked(release: Release) -> None:
    """Refuse a release that has records of unknown people, or no events."""
    if pseudonym(release) is not None:
        wanted = option("user_map", "FILE", python="Release.load(path, log=log, user_map=FILE)")
        raise NoSampleError(
            f"of a log on Spark, a sample of users is looked at, which needs the user map of the release: {wanted}"
        )
    if release.manifest.kind != "events":
        raise NoSampleError(
            "of a log on Spark, a sample of users is looked at, and no row of this release belongs to some users alone"
        )


def _all(release: Release, log: SparkLog) -> Sample:
    with log.workspace() as work:
        here = log.brought(work.table("SELECT user_id FROM users", "all users"))
    rows = pa.Table.from_batches(release.batches(), release.schema)
    # A log that was scrubbed has the fingerprint of the one before, which is not here.
    share = "" if here.fingerprint == log.fingerprint else f"all {log.n_users:,} users"
    return Sample(_here(release, log, here, rows), here, share)


def _part(release: Release, log: SparkLog, some: Table, rows: pa.Table) -> Sample:
    here = log.brought(some)
    share = f"{here.n_users:,} of {log.n_users:,} users, drawn at random"
    return Sample(_here(release, log, here, rows), here, share)


def _here(release: Release, log: SparkLog, here: LocalLog, rows: pa.Table) -> Release:
    """Rows of a release as one of a log here, which knows who is who if it was known."""
    kept = here.workspace()
    pseudonyms = _brought_map(release, log, here, kept) if _is_known(release, log) else None
    return replace(
        release,
        batches=rows.cast(release.schema).to_batches,
        log=here,
        folder=None,
        pseudonyms=pseudonyms,
        measured=None,
        workspace=kept,
    )


def _brought_map(release: Release, log: SparkLog, here: LocalLog, kept: Workspace) -> Table:
    """Who is who among the users who are here; ids of users are others here than on the cluster."""
    names = here.engine.fetch('SELECT "user" AS name FROM users')
    with log.workspace() as work:
        who = work.fetch(
            f'SELECT u."user" AS original, f."user" AS released FROM {release.pseudonyms} f JOIN users u'
            f' ON u.user_id = f.user_id JOIN {work.read(names)} n ON n.name = u."user"'
        )
    return kept.table(
        f'SELECT u.user_id AS user_id, w.released AS "user" FROM {kept.read(who)} w JOIN users u'
        ' ON u."user" = w.original',
        "pseudonyms",
    )


def _draws(log: SparkLog, work: Workspace, seed: int) -> Table:
    """A random number for every user."""
    key = log.secret(seed, "sample of users")
    schema = pa.schema([("user_id", log.id_type)])
    return work.map("SELECT user_id, digest FROM users", *drawn(schema, "digest", key), "draws")


def _users(log: SparkLog, work: Workspace, seed: int, users: int) -> Table:
    """Some users at random."""
    draws = _draws(log, work, seed)
    return work.table(f"SELECT user_id FROM {draws} ORDER BY draw, user_id LIMIT {users}", "sampled users")


def _groups(release: Release, log: SparkLog, work: Workspace, released: Table, seed: int, users: int) -> Table:
    """The users of some records that several share, at random, because those who share a record hide each other.

    Ids of queries are digests here, so their number, extremes and sum distinguish records.
    """
    records = work.table(
        f'SELECT r."{pseudonym(release)}" AS record, count(*) AS n, min(q.query_id) AS least, max(q.query_id) AS most,'
        f" sum(q.query_id % 1000000007) AS total FROM {released} r LEFT JOIN queries q ON q.query = r.query"
        f' GROUP BY r."{pseudonym(release)}"',
        "shared records",
    )
    key = "r.n, r.least, r.most, r.total"
    members = f'{records} r JOIN {release.pseudonyms} f ON f."user" = r.record'
    groups = work.table(
        f"SELECT {key}, min(f.user_id) AS first_id, count(*) AS users FROM {members} GROUP BY {key}", "groups"
    )
    drawn_groups = work.fetch(
        f"SELECT g.first_id AS first_id, g.users AS users FROM {groups} g JOIN {_draws(log, work, seed)} d"
        f" ON d.user_id = g.first_id ORDER BY d.draw, g.first_id LIMIT {users}"
    )
    within = np.cumsum(drawn_groups["users"].to_numpy()) <= users
    within[:1] = True
    chosen = work.read(drawn_groups.filter(pa.array(within)).select(["first_id"]))
    same = " AND ".join(f"g.{name} = r.{name}" for name in ("n", "least", "most", "total"))
    return work.table(
        f"SELECT f.user_id AS user_id FROM {members} JOIN {groups} g ON {same} JOIN {chosen} c"
        " ON c.first_id = g.first_id GROUP BY f.user_id",
        "sampled groups",
    )


def _rows_of_users(release: Release, work: Workspace, released: Table, some: Table) -> pa.Table:
    """The records of some users; one that several of them share is there once."""
    return work.fetch(
        f'SELECT {_columns(release)} FROM {released} r JOIN (SELECT f."user" AS id FROM {release.pseudonyms} f'
        f' JOIN {some} s ON s.user_id = f.user_id GROUP BY f."user") AS f ON f.id = r."{pseudonym(release)}"'
    )


def _rows_of_queries(release: Release, log: SparkLog, work: Workspace, released: Table, some: Table) -> pa.Table:
    """Of each query that some users issued as many released events, in proportion, as they have of its events.

    Released events are in random order, so every so many of them is a random choice.
    """
    log.ensure_tables("per_query")
    theirs = work.table(
        f"SELECT e.query_id AS query_id, count(*) AS mine FROM events e JOIN {some} s ON s.user_id = e.user_id"
        " GROUP BY e.query_id",
        "events of the sample",
    )
    events = work.number(
        f"SELECT q.query_id AS query_id, r.event AS event, t.mine AS mine, p.events AS events FROM {released} r"
        f" JOIN queries q ON q.query = r.query JOIN {theirs} t ON t.query_id = q.query_id"
        " JOIN per_query p ON p.query_id = q.query_id GROUP BY q.query_id, r.event, t.mine, p.events",
        ("query_id", "event"),
        "n",
    )
    chosen = work.table(
        f"SELECT e.event AS event FROM {events} e JOIN (SELECT query_id, min(n) AS first_n FROM {events}"
        " GROUP BY query_id) AS f ON f.query_id = e.query_id WHERE"
        " floor((e.n - f.first_n + 1) * e.mine / e.events) > floor((e.n - f.first_n) * e.mine / e.events)",
        "released events of the sample",
    )
    return work.fetch(f"SELECT {_columns(release)} FROM {released} r JOIN {chosen} c ON c.event = r.event")


def _columns(release: Release) -> str:
    return ", ".join(f"r.{identifier(name)} AS {identifier(name)}" for name in release.schema.names)
