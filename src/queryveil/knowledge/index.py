"""From texts to nodes: sorted digests, so that an index of millions opens at once and is searched on disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Ragged, offsets, ranges
from queryveil.kernels.digest import digests
from queryveil.kernels.order import digest_order
from queryveil.kernels.types import Ints, Longs, ULongs
from queryveil.text import Language
from queryveil.text.arrays import byte_spans

Form = Callable[[pa.Array], pa.Array]
"""Turns texts into another spelling that the index may have; null if there is none."""


@dataclass(frozen=True, eq=False)
class Index(Ragged):
    """Texts and, for each, some nodes, best first. Only the 128-bit digests of the texts are stored.

    Attributes:
        start: The nodes of entry e are node[start[e]:start[e + 1]].
        low: The first halves of the digests, ascending.
        high: Their second halves.
        node: Nodes.
        forms: Other spellings to try, in this order, for a text that is not found as it is.
    """

    low: ULongs
    high: ULongs
    node: Ints
    forms: Sequence[Form] = ()

    @classmethod
    def of(cls, texts: pa.Array, nodes: Ints, *forms: Form, most: int | None = None) -> "Index":
        """An index of pairs: a text that occurs several times keeps its first nodes, in their order.

        Args:
            texts: The texts.
            nodes: Their nodes.
            forms: Other spellings to try.
            most: How many nodes a text keeps; by default all.
        """
        return cls.of_digests(*digests(*byte_spans(texts)), nodes, *forms, most=most)

    @classmethod
    def of_digests(cls, low: ULongs, high: ULongs, nodes: Ints, *forms: Form, most: int | None = None) -> "Index":
        """The same from the two halves of the digests of texts."""
        order = digest_order(low, high)  # equal ones stay in their order
        low, high = low[order], high[order]
        is_new = np.ones(len(low), bool)
        is_new[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        start = np.append(np.flatnonzero(is_new), len(low)).astype(np.int64)
        size = np.minimum(np.diff(start), most or len(low))
        kept = nodes[order][ranges(start[:-1], size)].astype(np.int32)
        return cls(offsets(size), low[is_new], high[is_new], kept, forms)

    @classmethod
    def of_labels(
        cls, labels: pa.Array, nodes: Ints, language: Language, *forms: Form, most: int | None = None
    ) -> "Index":
        """An index that also finds labels by the stems of their words; a label with the exact spelling wins.

        Args:
            labels: The labels, the better of two alike first.
            nodes: Their nodes.
            language: Their language.
            forms: Other spellings to try before the stems.
            most: How many nodes a label keeps; by default all.
        """
        stems = language.stem_phrases(labels)
        other = pc.not_equal(stems, labels)
        texts = pa.concat_arrays([labels, stems.filter(other)])
        both = np.concatenate([nodes, nodes[other.to_numpy(zero_copy_only=False)]])
        return cls.of(texts, both, *forms, language.stem_phrases, most=most)

    def with_forms(self, *forms: Form) -> "Index":
        """The same index, with other spellings to try."""
        return replace(self, forms=forms)

    def look_up(self, texts: pa.Array, most: int) -> tuple[Longs, Ints]:
        """The first nodes of texts: those of texts[i] are found[start[i]:start[i + 1]]."""
        return self.nodes_of(self.find(texts), most)

    def nodes_of(self, entry: Longs, most: int) -> tuple[Longs, Ints]:
        """The first nodes of entries, -1 for none: those of entry[i] are found[start[i]:start[i + 1]]."""
        known = entry >= 0
        begin = self.start[np.where(known, entry, 0)]
        size = np.where(known, np.minimum(self.start[entry + 1] - begin, most), 0)
        return offsets(size), self.node[ranges(begin, size)]

    def find(self, texts: pa.Array) -> Longs:
        """The entry of each text, as it is or in another form; -1 if it has none."""
        found = self._exactly(texts)
        for form in self.forms:
            missing = np.flatnonzero(found < 0)
            if len(missing) == 0:
                break
            found[missing] = self._exactly(form(texts.take(pa.array(missing))))
        return found

    def first(self, texts: pa.Array) -> Ints:
        """The best node of each text; -1 if it has none."""
        entry = self.find(texts)
        nodes = np.full(len(entry), -1, np.int32)
        nodes[entry >= 0] = self.node[self.start[entry[entry >= 0]]]
        return nodes

    def _exactly(self, texts: pa.Array) -> Longs:
        low, high = digests(*byte_spans(texts))
        # Neighbours in the order of the digests are neighbours in memory.
        order = digest_order(low, high)
        entry = np.searchsorted(self.low, low[order])
        inside = entry < len(self.low)
        entry[~inside] = 0
        same = inside & (self.low[entry] == low[order]) & (self.high[entry] == high[order]) if len(self) else inside
        found = np.empty(len(low), np.int64)
        found[order] = np.where(same, entry, -1)
        if texts.null_count:
            found[texts.is_null().to_numpy(zero_copy_only=False)] = -1
        return found


@dataclass(frozen=True, eq=False)
class Layered:
    """Indexes of several trees that are one: a text has the nodes of the first that finds it, then those of the next.

    Attributes:
        layers: The indexes, and what is added to their nodes; the roots are one.
    """

    layers: Sequence[tuple["Index | Layered", int]]

    def look_up(self, texts: pa.Array, most: int) -> tuple[Longs, Ints]:
        """The first nodes of texts: those of texts[i] are found[start[i]:start[i + 1]]."""
        return in_layers(texts, most, [(index.look_up, shift) for index, shift in self.layers])


Finder = Index | Layered
"""Leads from texts to nodes."""


def in_layers(
    texts: pa.Array, most: int, layers: Sequence[tuple[Callable[[pa.Array, int], tuple[Longs, Ints]], int]]
) -> tuple[Longs, Ints]:
    """The first nodes of texts in several trees that are one, the first that finds a text before the next.

    Args:
        texts: The texts.
        most: Most nodes of each.
        layers: How texts are looked up in each tree, and what is added to its nodes; the roots are one.
    """
    found = Gathered(len(texts))
    missing = np.arange(len(texts))
    for look_up, shift in layers:
        start, node = look_up(texts.take(pa.array(missing)), most)
        found.add(missing, start, np.where(node > 0, node + shift, node).astype(np.int32))
        missing = np.flatnonzero(found.size < most)
        if len(missing) == 0:
            break
    return found.first(most)


class Gathered:
    """The nodes of texts that are looked up in several ways."""

    def __init__(self, texts: int) -> None:
        self.size = np.zeros(texts, np.int64)
        self._owner: list[Longs] = []
        self._node: list[Ints] = []

    def add(self, places: Longs, start: Longs, node: Ints) -> None:
        """Add nodes: those of the text at places[i] are node[start[i]:start[i + 1]]."""
        self._owner.append(np.repeat(places, np.diff(start)))
        self._node.append(node)
        self.size[places] += np.diff(start)

    def first(self, most: int) -> tuple[Longs, Ints]:
        """The first nodes of every text, in the order in which they were added."""
        owner = np.concatenate([np.zeros(0, np.int64), *self._owner])
        node = np.concatenate([np.zeros(0, np.int32), *self._node])
        every = Ragged(offsets(self.size))
        kept = np.argsort(owner, kind="stable")[every.within < most]
        return offsets(np.minimum(self.size, most)), node[kept]
