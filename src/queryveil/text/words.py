"""The words of queries: white-space separated parts without the punctuation around them."""

import sys
import unicodedata
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import offsets, ranges
from queryveil.text.arrays import byte_spans, from_offsets

if TYPE_CHECKING:
    from queryveil.text.languages import Language


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


def holding(queries: pa.Array, phrases: pa.Array, language: "Language") -> pa.Array:
    """Which queries hold one of the phrases as a run of whole words."""
    per_query, held_words = language.words(queries)
    per_phrase, parts = language.words(phrases)
    # Words as numbers: the place of each among the words of the phrases.
    known = pc.unique(parts)
    word = pc.index_in(held_words, known).fill_null(-1).to_numpy()
    ids = pc.index_in(parts, known).to_numpy()
    query = np.repeat(np.arange(len(queries)), per_query)
    held = np.zeros(len(queries), np.bool_)
    for mark in phrases.filter(pa.array(per_phrase == 0)).to_pylist():
        # Only punctuation, so there is no word to compare: the text itself is searched for.
        held |= pc.match_substring(queries, mark).to_numpy(zero_copy_only=False)
    phrase_ids = [ids[a:b] for a, b in pairwise(offsets(per_phrase).tolist()) if b > a]
    openings = np.unique([phrase[0] for phrase in phrase_ids])
    # Only places where a phrase could begin are examined, sorted by that word.
    places = np.flatnonzero(np.isin(word, openings))
    places = places[np.argsort(word[places], kind="stable")]
    opening = word[places]
    for phrase in phrase_ids:
        at = places[np.searchsorted(opening, phrase[0]) : np.searchsorted(opening, phrase[0], "right")]
        at = at[at + len(phrase) <= len(word)]
        for offset, expected in enumerate(phrase):
            at = at[(word[at + offset] == expected) & (query[at + offset] == query[at])]
        held[query[at]] = True
    return pa.array(held)
