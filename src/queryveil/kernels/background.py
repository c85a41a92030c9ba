"""Find for every released record the people whose known searches are most like it."""

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import kernel

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

_SAME = 1 - 1e-9
"""Scores this near to the best are equal: the last digits of a sum decide nothing."""


@kernel
def credits(
    start: Longs,
    item: Ints,
    weight: Floats,
    known: tuple[Longs, Ints, Floats],
    claim_start: Longs,
    claim: Ints,
    people: int,
) -> Floats:
    """The probability that a record is linked to a person: 1 / |G| for the |G| best matches, else 0.

    A record that nobody's known searches have anything in common with is linked to anybody: 1 / people.

    Args:
        start: The items of record r are item[start[r]:start[r + 1]].
        item: Items.
        weight: What each entry adds to a score.
        known: Of every item, where its people start, the people, and the factor of each.
        claim_start: The people to look for behind record r are claim[claim_start[r]:claim_start[r + 1]].
        claim: People.
        people: How many people there are.

    Returns:
        The probability of every entry of `claim`.
    """
    post, person, factor = known
    out = np.zeros(len(claim), np.float64)
    score = np.zeros(people, np.float64)
    touched = np.empty(people, np.int32)
    for r in range(len(start) - 1):
        met = 0
        for i in range(start[r], start[r + 1]):
            for p in range(post[item[i]], post[item[i] + 1]):
                if score[person[p]] == 0:
                    touched[met] = person[p]
                    met += 1
                score[person[p]] += weight[i] * factor[p]
        best = 0.0
        for i in range(met):
            best = max(best, score[touched[i]])
        same = 0
        for i in range(met):
            same += score[touched[i]] >= best * _SAME
        for i in range(claim_start[r], claim_start[r + 1]):
            if met == 0:
                out[i] = 1 / people
            elif score[claim[i]] >= best * _SAME:
                out[i] = 1 / same
        for i in range(met):
            score[touched[i]] = 0
    return out
