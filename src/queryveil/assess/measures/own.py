"""How much of a record comes from its own users."""

import numpy as np
import pyarrow as pa

from queryveil.assess.measures.records import records
from queryveil.methods.microaggregation.common import Searches
from queryveil.methods.microaggregation.interests import own_counts
from queryveil.release import Release


def own_queries(release: Release) -> pa.Table:
    """For every record that users share: how many of its queries they issued themselves.

    A record of `Mdav` holds queries that were drawn from the whole log. Where most of them are those of its own users,
    it hides them less.

    Args:
        release: A release that was just made, because only that knows who is who in it.

    Returns:
        One row per record: `users`, `queries` and `own`, repetitions counted, those with the highest share first. It is
        not for the public.
    """
    log, released = records(release, "The origin of queries")
    known: dict[bytes, int] = {}
    group = np.full(log.n_users, -1, np.int32)
    holder: list[int] = []
    for user in np.flatnonzero(released.sizes).tolist():
        here = slice(released.start[user], released.start[user + 1])
        record = released.query[here].tobytes() + released.times[here].tobytes()
        if record not in known:
            holder.append(user)
        group[user] = known.setdefault(record, len(known))
    mine = released.take(np.array(holder, np.int64))
    own, size = own_counts(
        Searches.of(log), group, np.repeat(mine.owners, mine.times), np.repeat(mine.query, mine.times)
    )
    users = np.bincount(group[group >= 0], minlength=len(holder))
    order = np.argsort(-own / np.maximum(size, 1), kind="stable")
    return pa.table({"users": users[order], "queries": size[order], "own": own[order]})
