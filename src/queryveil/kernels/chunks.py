"""Cut queries into noun phrases, by the kinds of their words."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Bytes, Ints, Longs

NOUN, QUALIFIER, EITHER, VERB, BREAK, DETERMINER, LEADS_VERB = range(7)
"""Kinds of words: a noun; what may stand before one; either; a verb that may be a noun; what ends a phrase; what ends a
phrase and is followed by a noun (`the`); what ends a phrase and is followed by a verb (`to`, `we`)."""


@kernel
def noun_phrases(kind: Bytes, word: Ints, start: Longs) -> tuple[Longs, Longs, Longs]:
    """The longest runs of qualifiers and nouns that end in a noun.

    Args:
        kind: The kind of every word.
        word: The words of all queries.
        start: Those of query q are word[start[q]:start[q + 1]].

    Returns:
        Where each phrase begins and ends in `word`, and how many phrases each query has.
    """
    n = len(start) - 1
    begins = np.empty(len(word), np.int64)
    ends = np.empty(len(word), np.int64)
    count = np.zeros(n, np.int64)
    found = 0
    for q in range(n):
        begin, end = start[q], start[q]  # the run at hand, and the end of its last noun
        before = BREAK
        for at in range(start[q], start[q + 1] + 1):
            k = BREAK if at == start[q + 1] else kind[word[at]]
            if k == VERB:
                after = BREAK if at + 1 == start[q + 1] else kind[word[at + 1]]
                # In a query a verb is mostly meant as a noun, unless its neighbours say otherwise: `how to tie`,
                # `sell my house`, `play chess`; but `a tie`, `travel to italy`.
                opens = at == start[q] and after != BREAK and after != LEADS_VERB
                k = BREAK if before == LEADS_VERB or opens or after == DETERMINER else EITHER
            before = k
            if k >= BREAK:
                if end > begin:
                    begins[found] = begin
                    ends[found] = end
                    found += 1
                    count[q] += 1
                begin = end = at + 1
            elif k != QUALIFIER:
                end = at + 1
    return begins[:found], ends[:found], count


@kernel
def join_words(data: Bytes, starts: Longs, ends: Longs, word: Ints, begin: Longs, end: Longs) -> tuple[Ints, Bytes]:
    """The texts of runs of words, with a blank between words: offsets and bytes."""
    offsets = np.zeros(len(begin) + 1, np.int32)
    for i in range(len(begin)):
        size = end[i] - begin[i] - 1
        for at in range(begin[i], end[i]):
            size += ends[word[at]] - starts[word[at]]
        offsets[i + 1] = offsets[i] + size
    out = np.empty(offsets[-1], np.uint8)
    to = 0
    for i in range(len(begin)):
        for at in range(begin[i], end[i]):
            if at > begin[i]:
                out[to] = 32
                to += 1
            for b in range(starts[word[at]], ends[word[at]]):
                out[to] = data[b]
                to += 1
    return offsets, out
