"""Which concepts each query holds: its vector."""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bools, Ints, Longs


@helper
def _find(keys: Longs, key: np.int64) -> int:
    # The place of a key among sorted keys, -1 if it is not there.
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low] == key else -1


@kernel
def concept_vectors(
    start: Longs,
    word: Ints,
    single: Ints,
    pair_key: Longs,
    pair: Ints,
    prefix_key: Longs,
    triple_key: Longs,
    triple: Ints,
    is_key: Bools,
) -> tuple[Longs, Ints]:
    """The concepts of every query, each once, ascending; none for a query that holds no key concept.

    Args:
        start: Where the words of each query start.
        word: The words of all queries.
        single: The concept of each word, -1 if it is none.
        pair_key: Sorted (first << 32 | second) of two-word concepts.
        pair: Their concepts.
        prefix_key: Sorted (first << 32 | second) that some three-word concept opens with.
        triple_key: Sorted (place in prefix_key << 32 | third) of three-word concepts.
        triple: Their concepts.
        is_key: Which concepts are key concepts.

    Returns:
        Where the concepts of each query start, and the concepts.
    """
    queries = len(start) - 1
    starts = np.zeros(queries + 1, np.int64)
    out = np.empty(3 * len(word), np.int32)
    size = 0
    for query in range(queries):
        begin, holds_key = size, False
        for at in range(start[query], start[query + 1]):
            for n in range(1, 4):
                concept = -1
                if n == 1:
                    concept = single[word[at]]
                elif at + n <= start[query + 1]:
                    key = np.int64(word[at]) << 32 | np.int64(word[at + 1])
                    if n == 2:
                        place = _find(pair_key, key)
                        if place >= 0:
                            concept = pair[place]
                    else:
                        prefix = _find(prefix_key, key)
                        if prefix >= 0:
                            place = _find(triple_key, np.int64(prefix) << 32 | np.int64(word[at + 2]))
                            if place >= 0:
                                concept = triple[place]
                if concept < 0:
                    continue
                holds_key |= is_key[concept]
                # Into its place among the few that the query has so far, unless it is there already.
                spot = size
                while spot > begin and out[spot - 1] > concept:
                    spot -= 1
                if spot > begin and out[spot - 1] == concept:
                    continue
                for i in range(size, spot, -1):
                    out[i] = out[i - 1]
                out[spot] = concept
                size += 1
        if not holds_key:
            size = begin
        starts[query + 1] = size
    return starts, out[:size].copy()
