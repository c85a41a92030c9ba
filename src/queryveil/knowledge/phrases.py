"""The noun phrases of queries.

A tagger for texts without sentences: the kind of an English word is its most frequent tag in the corpora of WordNet,
and a word that WordNet does not know is a noun, because in queries those are names. A phrase is the longest run of
adjectives, participles, numbers and nouns that ends in a noun; function words, adverbs and verbs end it. Words are
tagged once each, and the rest is one pass over integers.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import offsets
from queryveil.kernels import chunks
from queryveil.kernels.types import Bytes, Longs
from queryveil.knowledge.index import Finder
from queryveil.knowledge.wordnet import nouns, table
from queryveil.text import Language
from queryveil.text.arrays import byte_spans, from_offsets


def _wordnet_kinds() -> tuple[pa.Array, Bytes]:
    columns = table()
    word, tag = columns["word"], columns["tag"].to_numpy(zero_copy_only=False)
    nominal = nouns().find(word) >= 0
    kind = np.full(len(word), chunks.BREAK, np.uint8)
    kind[tag == "a"] = chunks.QUALIFIER
    kind[tag == "A"] = chunks.EITHER
    kind[(tag == "r") & nominal] = chunks.QUALIFIER
    kind[(tag == "v") & nominal] = chunks.VERB
    return word, kind


_LEXICONS = {"en": _wordnet_kinds}
"""Words and their kinds, by language; in a language without an entry, all words but its function words are nouns."""


@cache
def _kinds_of_words(language: Language) -> tuple[pa.Array, Bytes]:
    """Words whose kind is known, and their kinds."""
    own = dict.fromkeys(language.stop_words | language.phrase_ends, chunks.BREAK)
    own |= dict.fromkeys(language.before_verbs, chunks.LEADS_VERB)
    own |= dict.fromkeys(language.determiners, chunks.DETERMINER)
    word, kind = pa.array(list(own), pa.string()), np.fromiter(own.values(), np.uint8, len(own))
    for id in set(language.ids) & _LEXICONS.keys():
        more, kinds = _LEXICONS[id]()
        word, kind = pa.concat_arrays([word, more]), np.concatenate([kind, kinds])
    return word, kind


def _kinds(words: pa.Array, language: Language) -> Bytes:
    """The kind of each word, see `kernels.chunks`."""
    known, kind = _kinds_of_words(language)
    place = pc.index_in(words, value_set=known).fill_null(-1).to_numpy()
    found = np.where(place >= 0, kind[place], chunks.NOUN).astype(np.uint8)
    number = pc.match_substring_regex(words, r"^[\d.,:/-]+$").to_numpy(zero_copy_only=False)
    found[number & (place < 0)] = chunks.EITHER
    return found


class _Cut(NamedTuple):
    """The words of queries, and where noun phrases begin and end among them."""

    per_query: Longs
    words: pa.DictionaryArray
    begin: Longs
    end: Longs
    phrases: Longs
    """How many each query has."""


def _cut(queries: pa.Array, language: Language) -> _Cut:
    split = language.words(queries)
    distinct = split.text.dictionary_encode()
    kinds = _kinds(distinct.dictionary, language)
    found = chunks.noun_phrases(kinds, distinct.indices.to_numpy(), offsets(split.per_query))
    return _Cut(split.per_query, distinct, *found)


def noun_phrase_places(queries: pa.Array, language: Language) -> tuple[Longs, Longs, Longs]:
    """Where the noun phrases of queries in normal form are.

    Returns:
        For each phrase, in order: the place of its query, that of its first word among the words of the query, from 0,
        and how many words it has.

    Example:
        >>> from queryveil.text import language
        >>> [part.tolist() for part in noun_phrase_places(pa.array(["cheap hotels near new york"]), language("en"))]
        [[0, 0], [0, 3], [2, 2]]
    """
    cut = _cut(queries, language)
    query = np.repeat(np.arange(len(queries)), cut.phrases)
    return query, cut.begin - offsets(cut.per_query)[query], cut.end - cut.begin


def noun_phrases(queries: pa.Array, language: Language, labels: Finder | None = None) -> tuple[Longs, pa.Array]:
    """The noun phrases of queries in normal form.

    Args:
        queries: The queries.
        language: Their language.
        labels: Labels that may be phrases although they have function words, such as `cats and dogs`.

    Returns:
        How many each query has, and all of them in order.

    Example:
        >>> from queryveil.text import language
        >>> queries = pa.array(["diving in the mediterranean", "cheap hotels near new york"])
        >>> noun_phrases(queries, language("en"))[1].to_pylist()
        ['diving', 'mediterranean', 'cheap hotels', 'new york']
    """
    cut = _cut(queries, language)
    distinct, word = cut.words, cut.words.indices.to_numpy()
    begin, end, count = cut.begin, cut.end, cut.phrases

    def texts(begin: Longs, end: Longs) -> pa.Array:
        return from_offsets(*chunks.join_words(*byte_spans(distinct.dictionary), word, begin, end))

    if labels is not None:
        begin, end, count = _join_labels(begin, end, count, texts, labels)
    return count, texts(begin, end)


def _join_labels(
    begin: Longs, end: Longs, count: Longs, texts: Callable[[Longs, Longs], pa.Array], labels: Finder
) -> tuple[Longs, Longs, Longs]:
    """Two phrases and the function words between them become one if a label ends it; words before that may be left.

    Args:
        begin: Where each phrase begins.
        end: Where it ends.
        count: How many phrases each query has.
        texts: The texts from some places to others.
        labels: The labels.
    """
    query = np.repeat(np.arange(len(count)), count)
    left = np.flatnonzero(query[1:] == query[:-1])  # with the next phrase
    join = np.zeros(len(begin), np.bool_)
    skipped = 0
    while len(left):
        start, _ = labels.look_up(texts(begin[left] + skipped, end[left + 1]), 1)
        is_label = np.diff(start) > 0
        join[left[is_label]] = True
        skipped += 1
        left = left[~is_label]
        left = left[begin[left] + skipped < end[left]]
    # Of three phrases in a row of which each two could be joined, the first two are.
    joined = np.flatnonzero(join)
    fresh = np.flatnonzero(np.diff(joined, prepend=-2) > 1)
    run = np.repeat(fresh, np.diff(np.append(fresh, len(joined))))
    joined = joined[(np.arange(len(joined)) - run) % 2 == 0]
    end = end.copy()
    end[joined] = end[joined + 1]
    kept = np.delete(np.arange(len(begin)), joined + 1)
    return begin[kept], end[kept], count - np.bincount(query[joined], minlength=len(count))
