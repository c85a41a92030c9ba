"""Find for every released record the original records that have most in common with it."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Floats, Ints, Longs


@kernel
def chances(
    start: Longs,
    query: Ints,
    times: Longs,
    issued: tuple[Longs, Ints, Ints],
    truth_start: Longs,
    truth: Ints,
    users: int,
) -> Floats:
    """The probability that a user is found behind his record: 1 / |G| if he is among the |G| best matches, else 0.

    Args:
        start: The queries of record r are query[start[r]:start[r + 1]].
        query: Queries.
        times: How often.
        issued: Of every query, where its users start, the users, and how often each issued it.
        truth_start: The users behind record r are truth[truth_start[r]:truth_start[r + 1]].
        truth: Users.
        users: How many users the log has.
    """
    out = np.zeros(len(truth), np.float64)
    row = np.zeros(users, np.int64)
    touched = np.empty(users, np.int32)
    post, user, count = issued
    for r in range(len(start) - 1):
        met = 0
        for i in range(start[r], start[r + 1]):
            for p in range(post[query[i]], post[query[i] + 1]):
                if row[user[p]] == 0:
                    touched[met] = user[p]
                    met += 1
                row[user[p]] += min(times[i], count[p])
        best, same = np.int64(0), users  # a record that has nothing in common with anybody fits all
        for i in range(met):
            if row[touched[i]] > best:
                best, same = row[touched[i]], 0
            same += row[touched[i]] == best
        for i in range(truth_start[r], truth_start[r + 1]):
            if row[truth[i]] == best:
                out[i] = 1 / same
        for i in range(met):
            row[touched[i]] = 0
    return out
