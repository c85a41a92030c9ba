"""How often a release has every query of its log."""

import numpy as np
from numpy.typing import NDArray

from queryveil.log import LocalLog
from queryveil.release import Release, loaded

Longs = NDArray[np.int64]


def released_counts(release: Release, log: LocalLog) -> Longs:
    """For every query of the log, for how many events it stands in the release.

    An event counts once, however many clicks it has; a record that is written once counts for all of its users; a count
    that was released counts as it is.
    """
    found = np.zeros(log.n_queries, np.int64)
    columns = release.schema.names
    if "query" not in columns:
        return found
    number = "count(*)"
    if "count" in columns:
        number = "sum(r.count)"
    elif "users" in columns:
        number = "sum(r.users)"
    elif "event" in columns:
        number = "count(DISTINCT r.event)"
    with loaded(release, log):
        rows = log.engine.table(
            f"SELECT q.query_id AS query_id, CAST({number} AS BIGINT) AS n FROM released r"
            " JOIN queries q ON q.query = r.query GROUP BY q.query_id"
        )
    found[rows["query_id"].to_numpy()] = rows["n"].to_numpy()
    return found
