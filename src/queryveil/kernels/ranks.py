"""Choose the best few of every group."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Longs


@kernel
def best_of(start: Longs, first: Longs, then: Longs, most: int) -> tuple[Longs, Longs]:
    """The places of the best of every group: largest `first`, of equals largest `then`, of equals the earliest.

    Args:
        start: Group g is start[g] to start[g + 1].
        first: What decides.
        then: What decides among equals.
        most: How many places a group keeps.

    Returns:
        Where the places of each group start, and the places.
    """
    groups = len(start) - 1
    out_start = np.zeros(groups + 1, np.int64)
    for g in range(groups):
        out_start[g + 1] = out_start[g] + min(most, start[g + 1] - start[g])
    out = np.empty(out_start[-1], np.int64)
    for g in range(groups):
        base, size, room = out_start[g], 0, out_start[g + 1] - out_start[g]
        for i in range(start[g], start[g + 1]):
            at = size
            while at > 0:
                other = out[base + at - 1]
                if first[other] > first[i] or (first[other] == first[i] and then[other] >= then[i]):
                    break
                at -= 1
            if at == room:
                continue
            size = min(size + 1, room)
            for j in range(size - 1, at, -1):
                out[base + j] = out[base + j - 1]
            out[base + at] = i
    return out_start, out
