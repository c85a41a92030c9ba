"""By which texts a category is found: its label, other names, parts of `X and Y`, and words of its path.

A category called `Swimming and Diving` below `Water Sports` is found by its label and the stems of that, by `diving`,
by `diving swimming`, and by `water sports diving`.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Ragged, offsets
from queryveil.kernels.digest import digests
from queryveil.kernels.types import Ints, Longs, ULongs
from queryveil.knowledge.tree import Tree
from queryveil.text import Language
from queryveil.text.arrays import byte_spans

_BAG = "\x01"  # no text in normal form has it, so bags of words and labels do not get mixed up
_PART = 100_000


class Names(NamedTuple):
    """Names of categories, in normal form."""

    text: pa.Array
    node: Ints

    def take(self, places: Longs) -> "Names":
        """Some of them."""
        return Names(self.text.take(pa.array(places)), self.node[places])

    def parts(self) -> Iterator["Names"]:
        """All of them in parts, at least one, so that what is made of their texts need not fit into memory at once."""
        for begin in range(0, max(len(self.node), 1), _PART):
            yield Names(self.text[begin : begin + _PART], self.node[begin : begin + _PART])


class Keys(NamedTuple):
    """Texts by which categories are found, as the two halves of their digests, and the categories."""

    low: ULongs
    high: ULongs
    node: Ints


def keys(tree: Tree, own: Names, other: Names, language: Language) -> Keys:
    """All texts by which categories are found, the better of two alike first.

    Of other names and of paths there are many more than categories, so their texts are made and digested in parts.

    Args:
        tree: The tree.
        own: The labels of categories, the better of two alike first.
        other: Other names of categories, the same way.
        language: Their language.
    """
    listed = own.text
    if language.conjunctions:
        listed = _tidy(pc.replace_substring_regex(own.text, "[,;]", f" {language.conjunctions[0]} "), language)
    own = Names(_tidy(own.text, language), own.node)
    parts = _parts(Names(listed, own.node), language)
    tidy, stems = partial(_tidy, language=language), partial(label_stems, language=language)
    bags = Names(word_bag(own.text, language), own.node)
    # A category without a word that means something, such as `A` among letters, says nothing about a path.
    meant = np.flatnonzero(bags.text.is_valid().to_numpy(zero_copy_only=False))
    variants = _joined([own.take(meant), parts])
    rank = np.empty(len(tree), np.int64)
    rank[own.node] = np.arange(len(own.node))
    variants = variants.take(np.argsort(rank[variants.node], kind="stable"))
    found = [
        *_digested(own),
        *_digested(own, stems),
        *_digested(other, tidy),
        *_digested(other, tidy, stems),
        *_digested(parts, stems),
        *_digested(bags.take(meant)),
        *(key for path in _paths(tree, variants, language) for key in _digested(path)),
    ]
    return _once(Keys(*(np.concatenate(column) for column in zip(*found, strict=True))))


def label_stems(texts: pa.Array, language: Language) -> pa.Array:
    """Labels or phrases by the stems of their words, with one word for all that say `and`."""
    for word in language.conjunctions[1:]:
        texts = pc.replace_substring(texts, f" {word} ", f" {language.conjunctions[0]} ")
    return language.stem_phrases(texts)


def word_bag(texts: pa.Array, language: Language) -> pa.Array:
    """The distinct stems of the words that mean something, in the order of the alphabet; null if there is none."""
    split = language.words(texts)
    coded = split.text.dictionary_encode()
    ignored = pa.array(sorted({*language.stop_words, *language.conjunctions}), pa.string())
    meant = pc.invert(pc.is_in(coded.dictionary, value_set=ignored)).to_numpy(zero_copy_only=False)
    stems = language.stem(coded.dictionary).dictionary_encode()
    order = pc.array_sort_indices(stems.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    word = coded.indices.to_numpy()
    kept = np.flatnonzero(meant[word]) if len(word) else np.zeros(0, np.int64)
    owner = np.repeat(np.arange(len(texts)), split.per_query)[kept]
    pairs = np.unique(owner << 32 | rank[stems.indices.to_numpy()[word[kept]]])
    size = np.bincount(pairs >> 32, minlength=len(texts))
    words = stems.dictionary.take(pa.array(order[pairs & 0xFFFFFFFF]))
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets(size), pa.int32()), words), " ")
    return pc.if_else(pa.array(size > 0), pc.binary_join_element_wise(_BAG, joined, ""), pa.scalar(None, pa.string()))


def _tidy(texts: pa.Array, language: Language) -> pa.Array:
    """Labels as the words of queries are written: without punctuation around them."""
    split = language.words(texts)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets(split.per_query), pa.int32()), split.text), " ")


def _parts(names: Names, language: Language) -> Names:
    """What is joined in labels such as `X and Y`."""
    if not language.conjunctions:
        return names.take(np.zeros(0, np.int64))
    either = "|".join(map(re.escape, language.conjunctions))
    some = np.flatnonzero(pc.match_substring_regex(names.text, f" (?:{either}) ").to_numpy(zero_copy_only=False))
    joined = names.take(some)
    lists = pc.split_pattern_regex(joined.text, f" (?:(?:{either}) )+")
    size = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    found = Names(lists.flatten(), np.repeat(joined.node, size))
    # A part alone must mean something.
    return found.take(np.flatnonzero(word_bag(found.text, language).is_valid().to_numpy(zero_copy_only=False)))


def _paths(tree: Tree, names: Names, language: Language) -> Iterator[Names]:
    """The words of a name together with those of a name above it."""
    by_node = np.argsort(names.node, kind="stable")
    of_node = Ragged(np.searchsorted(names.node[by_node], np.arange(len(tree) + 1)))
    for begin in range(0, len(names.node), _PART):
        node = names.node[begin : begin + _PART]
        start, above = tree.ancestors(node)
        name = begin + Ragged(start).owners
        further = (above > 0) & (above != names.node[name])
        name, above = name[further], above[further]
        size = of_node.sizes[above]
        here, there = np.repeat(name, size), by_node[of_node.positions(above)]
        both = pc.binary_join_element_wise(names.text.take(pa.array(here)), names.text.take(pa.array(there)), " ")
        yield Names(word_bag(both, language), names.node[here])


def _joined(parts: list[Names]) -> Names:
    return Names(pa.concat_arrays([part.text for part in parts]), np.concatenate([part.node for part in parts]))


def _digested(names: Names, *forms: Callable[[pa.Array], pa.Array]) -> Iterator[Keys]:
    """The digests of names in some form, at least one part."""
    for part in names.parts():
        text = part.text
        for form in forms:
            text = form(text)
        yield Keys(*digests(*byte_spans(text)), part.node)


def _once(found: Keys) -> Keys:
    """Each pair of a text and a category once, where it is first."""
    order = np.lexsort((found.node, found.high, found.low))
    fresh = np.ones(len(order), bool)
    fresh[1:] = np.any([np.diff(column[order]) != 0 for column in found], axis=0)
    first = np.sort(order[fresh])
    return Keys(found.low[first], found.high[first], found.node[first])
