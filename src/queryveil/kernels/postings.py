"""Lists turned round: from the features of users to the users of features."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Bools, Ints, Longs


@kernel
def postings(start: Longs, feature: Ints, value: Ints, features: int, alive: Bools) -> tuple[Longs, Ints, Ints]:
    """The living users of every feature, ascending, and their values.

    Args:
        start: The features of user u are feature[start[u]:start[u + 1]].
        feature: Features.
        value: What the user has of each.
        features: How many features there are.
        alive: Whether a user counts.

    Returns:
        Where the users of each feature start, the users, and their values.
    """
    post = np.zeros(features + 1, np.int64)
    for u in range(len(start) - 1):
        if alive[u]:
            for i in range(start[u], start[u + 1]):
                post[feature[i] + 1] += 1
    for f in range(features):
        post[f + 1] += post[f]
    at = post.copy()
    user = np.empty(post[-1], np.int32)
    values = np.empty(post[-1], np.int32)
    for u in range(len(start) - 1):
        if alive[u]:
            for i in range(start[u], start[u + 1]):
                user[at[feature[i]]] = u
                values[at[feature[i]]] = value[i]
                at[feature[i]] += 1
    return post, user, values
