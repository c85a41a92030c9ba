"""The nearest of many vectors of small integers, by looking only into the cells whose middles are near.

Products of whole numbers are exact, so the answer does not depend on threads, blocks or the processor.
"""

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Ints, Longs, Singles


@helper
def _product(a: NDArray[np.int8], b: NDArray[np.int8]) -> np.int32:
    total = np.int32(0)
    for k in range(len(a)):
        total += np.int32(a[k]) * np.int32(b[k])
    return total


@helper
def _best(
    vector: NDArray[np.int8],
    others: NDArray[np.int8],
    scale: Singles,
    first: int,
    last: int,
    score: Singles,
    place: Ints,
) -> None:
    """Take others[first:last] into the best so far, which are in order; of equals, the one that came first."""
    room = len(score)
    for i in range(first, last):
        found = np.float32(_product(vector, others[i])) * scale[i]
        if found <= score[room - 1]:
            continue
        at = room - 1
        while at > 0 and score[at - 1] < found:
            score[at] = score[at - 1]
            place[at] = place[at - 1]
            at -= 1
        score[at] = found
        place[at] = i


@kernel
def nearest(
    vectors: NDArray[np.int8],
    middles: NDArray[np.int8],
    middle_scale: Singles,
    cell: Longs,
    others: NDArray[np.int8],
    scale: Singles,
    probes: int,
    most: int,
) -> tuple[Ints, Singles]:
    """The nearest of `others` to each vector: their places, -1 where there are fewer, and their products.

    Args:
        vectors: What to find neighbours of.
        middles: The middle of every cell.
        middle_scale: What a product with a middle is multiplied by.
        cell: Cell c holds others[cell[c]:cell[c + 1]].
        others: All the vectors to find, cell after cell.
        scale: What a product with one of them is multiplied by.
        probes: How many cells to look into.
        most: How many neighbours.
    """
    place = np.full((len(vectors), most), -1, np.int32)
    score = np.full((len(vectors), most), -np.inf, np.float32)
    near = np.empty(probes, np.int32)
    near_score = np.empty(probes, np.float32)
    for i in range(len(vectors)):
        near[:] = -1
        near_score[:] = -np.inf
        _best(vectors[i], middles, middle_scale, 0, len(middles), near_score, near)
        for p in range(probes):
            if near[p] >= 0:
                _best(vectors[i], others, scale, cell[near[p]], cell[near[p] + 1], score[i], place[i])
    return place, score
