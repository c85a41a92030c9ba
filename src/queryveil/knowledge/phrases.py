"""The noun phrases of queries.

A tagger for texts without sentences: the kind of a word is its most frequent tag in the corpora of WordNet, and a word
that WordNet does not know is a noun, because in queries those are names. A phrase is the longest run of adjectives,
participles, numbers and nouns that ends in a noun; function words, adverbs and verbs end it. Words are tagged once
each, and the rest is one pass over integers.
"""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import offsets
from queryveil.kernels import chunks
from queryveil.kernels.types import Bytes, Longs
from queryveil.knowledge.wordnet import table, wordnet
from queryveil.text import STOP_WORDS, words
from queryveil.text.arrays import byte_spans, from_offsets

# Function words that are not stop words, because affinity must not drop them.
_BREAKS = """
    & above across against along among and around behind below beneath beside besides beyond d despite down except how's
    let's ll n near onto per re s since t than though throughout toward towards unless unlike upon v ve versus via vs
    what's when whether who's within without
"""
_LEADERS = """
    can can't cannot could did didn't do does doesn't don't he i let may might must she should that they to we what
    which who will won't would you
"""
_DETERMINERS = "a an her his its my our some the their this your"


@cache
def _kinds_of_words() -> tuple[pa.Array, Bytes]:
    """Words whose kind is known, and their kinds."""
    columns = table()
    word, tag = columns["word"], columns["tag"].to_numpy(zero_copy_only=False)
    nominal = wordnet().terms.find(word) >= 0
    kind = np.full(len(word), chunks.BREAK, np.uint8)
    kind[tag == "a"] = chunks.QUALIFIER
    kind[tag == "A"] = chunks.EITHER
    kind[(tag == "r") & nominal] = chunks.QUALIFIER
    kind[(tag == "v") & nominal] = chunks.VERB
    own = dict.fromkeys([*STOP_WORDS, *_BREAKS.split()], chunks.BREAK)
    own |= dict.fromkeys(_LEADERS.split(), chunks.LEADS_VERB) | dict.fromkeys(_DETERMINERS.split(), chunks.DETERMINER)
    known = pa.concat_arrays([pa.array(list(own)), word])
    return known, np.concatenate([np.array(list(own.values()), np.uint8), kind])


def kinds(words: pa.Array) -> Bytes:
    """The kind of each word, see `kernels.chunks`."""
    known, kind = _kinds_of_words()
    place = pc.index_in(words, value_set=known).fill_null(-1).to_numpy()
    found = np.where(place >= 0, kind[place], chunks.NOUN).astype(np.uint8)
    number = pc.match_substring_regex(words, r"^[\d.,:/-]+$").to_numpy(zero_copy_only=False)
    found[number & (place < 0)] = chunks.EITHER
    return found


def noun_phrases(queries: pa.Array) -> tuple[Longs, pa.Array]:
    """The noun phrases of queries in normal form.

    Returns:
        How many each query has, and all of them in order.

    Example:
        >>> noun_phrases(pa.array(["diving in the mediterranean", "cheap hotels near new york"]))[1].to_pylist()
        ['diving', 'mediterranean', 'cheap hotels', 'new york']
    """
    split = words(queries)
    distinct = split.text.dictionary_encode()
    word = distinct.indices.to_numpy()
    start = offsets(split.per_query)
    begin, end, count = chunks.noun_phrases(kinds(distinct.dictionary), word, start)
    return count, from_offsets(*chunks.join_words(*byte_spans(distinct.dictionary), word, begin, end))
