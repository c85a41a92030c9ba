"""Find for every released record the people whose known searches are most like it."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Floats, Ints, Longs

_SAME = 1 - 1e-9
"""Scores this near to the best are equal: the last digits of a sum decide nothing."""


@kernel
def credits(
    start: Longs,
    item: Ints,
    weight: Floats,
    known: tuple[Longs, Ints, Floats],
    passed: tuple[Longs, Ints],
    claim: tuple[Longs, Ints],
    people: int,
) -> tuple[Floats, Floats]:
    """The probability that a record is linked to a person: 1 / |G| for the |G| best matches, else 0.

    A record that nobody's known searches have anything in common with is linked to anybody: 1 / people.

    Args:
        start: The items of record r are item[start[r]:start[r + 1]].
        item: Items.
        weight: What each entry adds to a score; above 0.
        known: Of every item, where its people start, the people, and the factor of each, above 0.
        passed: Of every record, where the people start who are passed over, and these people.
        claim: Of every record, where the people start to look for behind it, and these people.
        people: How many people there are.

    Returns:
        The probability of every person to look for; and for each record how far the best score lies above the next, as
        a share of it: 0 if several are best, -1 if nobody has anything in common with it.
    """
    post, person, factor = known
    out = np.zeros(len(claim[1]), np.float64)
    sure = np.full(len(start) - 1, -1.0)
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
        for i in range(passed[0][r], passed[0][r + 1]):
            score[passed[1][i]] = 0
        best, next_, same = 0.0, 0.0, 0
        for i in range(met):
            best = max(best, score[touched[i]])
        for i in range(met):
            if score[touched[i]] >= best * _SAME:
                same += 1
            else:
                next_ = max(next_, score[touched[i]])
        if best > 0:
            sure[r] = 1 - next_ / best if same == 1 else 0.0
        for i in range(claim[0][r], claim[0][r + 1]):
            if best == 0:
                out[i] = 1 / people
            elif score[claim[1][i]] >= best * _SAME:
                out[i] = 1 / same
        for i in range(met):
            score[touched[i]] = 0
    return out, sure
