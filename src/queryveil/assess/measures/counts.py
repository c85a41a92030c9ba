"""How often a release has every query of its log."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Longs
from queryveil.claims import RecordUsers
from queryveil.engines import Table
from queryveil.log import LocalLog
from queryveil.log.draws import keyed
from queryveil.release import Release, loaded

_KEY = b"records, counted"


def released_counts(release: Release, log: LocalLog) -> Longs:
    """For every query of the log, for how many events it stands in the release.

    An event counts once, however many clicks it has; a record that is written once counts for all of its users; a count
    that was released counts as it is.
    """
    found = np.zeros(log.n_queries, np.int64)
    if "query" not in release.schema.names:
        return found
    with loaded(release, log) as released:
        rows = log.engine.fetch(counted(release, released))
    found[rows["query_id"].to_numpy()] = rows["n"].to_numpy()
    return np.minimum(found, log.events_per_query) if "events" in release.schema.names else found


def counted(release: Release, released: Table) -> str:
    """SQL of query_id and n: for how many events each query of the log stands in a release of queries."""
    columns, number = release.schema.names, "count(*)"
    if "events" in columns:  # several rows of a query may count the same event
        number = f"sum(CASE WHEN {'r.total' if 'total' in columns else '0'} = 0 THEN r.events END)"
    elif "count" in columns:
        number = "sum(r.count)"
    elif "users" in columns:
        number = "sum(r.users)"
    elif "event" in columns:
        number = "count(DISTINCT r.event)"
    return (
        f"SELECT q.query_id AS query_id, CAST(coalesce({number}, 0) AS BIGINT) AS n FROM {released} r"
        " JOIN queries q ON q.query = r.query GROUP BY q.query_id"
    )


def pseudonym(release: Release) -> str | None:
    """The column of the pseudonyms that link released rows: `user` or `session`; None where nothing links them."""
    return next((name for name in ("user", "session") if name in release.schema.names), None)


def shares_records(release: Release) -> bool:
    """Whether several users have the same record, so that what one of them did stands there several times."""
    return any(isinstance(claim, RecordUsers) for claim in release.manifest.claims)


def record_queries(release: Release, log: LocalLog, number: str) -> pa.Table:
    """For every `record` of a release its queries of the log (`query_id`), and `n`, SQL that counts rows of r."""
    record_id = f'r."{pseudonym(release)}"'
    with loaded(release, log) as released:
        return log.engine.fetch(
            f"SELECT {record_id} AS record, q.query_id AS query_id, {number} AS n FROM {released} r"
            f" JOIN queries q ON q.query = r.query GROUP BY {record_id}, q.query_id ORDER BY record, query_id"
        )


def records_once(release: Release, log: LocalLog) -> tuple[Longs, Longs, Longs]:
    """Records of a release, the queries of the log in them, and how often; a record that users share is there once.

    Args:
        release: A release of queries with pseudonyms of users or of sessions; a session is a record of its own.
        log: Its log.
    """
    rows = record_queries(release, log, "count(*)")
    record, query, n = (rows[name].to_numpy().astype(np.int64) for name in ("record", "query_id", "n"))
    if not shares_records(release) or len(record) == 0:
        return record, query, n
    first = np.flatnonzero(np.diff(record, prepend=record[0] - 1))
    once = np.zeros(len(first), np.bool_)
    once[np.unique(record_digests(first, query, n), return_index=True)[1]] = True
    here = np.repeat(once, np.diff(np.append(first, len(record))))
    return record[here], query[here], n[here]


def record_digests(first: Longs, query: NDArray[np.integer], n: Longs) -> NDArray[np.uint64]:
    """A number for every record, the same for records with the same queries.

    Args:
        first: Where each record begins; none is empty.
        query: The queries of the records.
        n: How often each stands there.
    """
    if not len(first):
        return np.empty(0, np.uint64)
    return np.add.reduceat(keyed(_KEY, ((query.astype(np.int64) << 20) + n).view(np.uint64)), first)
