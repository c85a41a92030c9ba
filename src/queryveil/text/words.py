"""The words of queries: white-space separated parts without the punctuation around them."""

import sys
import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import offsets, ranges
from queryveil.text.arrays import byte_spans, from_offsets


class Words(NamedTuple):
    """The words of an array of queries, query after query."""

    per_query: NDArray[np.int64]
    """How many words each query has."""
    text: pa.Array
    """All words, in order."""


@cache
def _word_characters(ascii_only: bool) -> NDArray[np.bool_]:
    # Marks count as letters: in many scripts a word ends in one (a vowel sign), and it is not punctuation.
    size = 128 if ascii_only else sys.maxunicode + 1
    kinds = (unicodedata.category(chr(c))[0] for c in range(size))
    table = np.fromiter((kind in "LMN" for kind in kinds), np.bool_, size)
    table[ord("&")] = True
    return table


def split_at_blanks(texts: pa.Array) -> Words:
    """Cut texts in normal form into words, for languages that put blanks between them.

    A word is a white-space separated part, stripped at both ends of everything that is neither letter, digit nor `&`;
    parts that become empty are dropped.
    """
    from queryveil.kernels.words import split_words

    data, starts, ends = byte_spans(texts)
    # The table of all Unicode takes a while to make, and most logs are ASCII.
    table = _word_characters(len(data) == 0 or int(data.max()) < 128)
    per_query, offsets, out = split_words(data, starts, ends, table)
    return Words(per_query, from_offsets(offsets, out))


def without_phrases(texts: pa.Array, phrases: pa.Array) -> pa.Array:
    """Texts in normal form without the phrases that stand in them between blanks."""
    blank = pa.scalar(" ", pa.large_string())
    split = pc.split_pattern(texts, " ")
    word, size = split.flatten(), pc.list_value_length(split).to_numpy()
    owner = np.repeat(np.arange(len(texts)), size)
    gone = np.zeros(len(word), np.bool_)
    for length in np.unique(pc.count_substring(phrases, " ").to_numpy() + 1).tolist():
        many = max(len(word) - length + 1, 0)
        runs = pc.binary_join_element_wise(
            *(word.slice(at, many) for at in range(length)), pa.scalar(" ", pa.large_string())
        )
        there = pc.is_in(runs, value_set=phrases).to_numpy(zero_copy_only=False)
        begin = np.flatnonzero(there & (owner[:many] == owner[length - 1 : length - 1 + many]))
        gone[ranges(begin, np.full(len(begin), length))] = True
    left = offsets(np.bincount(owner[~gone], minlength=len(texts)))
    lists = pa.ListArray.from_arrays(pa.array(left.astype(np.int32)), word.filter(pa.array(~gone)))
    return pc.binary_join(lists, blank)
