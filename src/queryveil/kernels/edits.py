"""How far the strings of one user are from those of all others."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.semantic import ONE
from queryveil.kernels.types import Ints, Longs


@kernel
def nearest(steps: Ints, mine: Longs, places: Longs, count: Longs, size: Longs) -> Longs:
    """The mean distance of each string to the nearest of the other user, in units of 2**-32.

    Args:
        steps: The edit distance of each string of the one user to all strings.
        mine: Which strings these are.
        places: A row for each user: which strings he has.
        count: How many.
        size: The length of every string.
    """
    out = np.empty(len(places), np.int64)
    back = np.empty(len(mine), np.int64)
    for u in range(len(places)):
        back[:] = 2 * ONE
        total = np.int64(0)
        for j in range(count[u]):
            other = places[u, j]
            best = np.int64(2 * ONE)
            for i in range(len(mine)):
                longer = max(size[mine[i]], size[other], 1)
                far = np.int64(steps[i, other]) * ONE // longer
                best = min(best, far)
                back[i] = min(back[i], far)
            total += best
        out[u] = (total + back.sum()) // (count[u] + len(mine))
    return out
