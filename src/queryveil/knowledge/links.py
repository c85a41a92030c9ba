"""The categories of queries, and how much of a log they cover."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queryveil.arrays import Ragged, offsets
from queryveil.kernels.types import Ints, Longs, Singles
from queryveil.knowledge.tree import Nodes, Tree


@dataclass(frozen=True, eq=False)
class Links(Ragged):
    """Queries, the items that were looked up for them (terms, phrases, hosts), and the nodes of every item.

    Most items occur in many queries, so each is looked up and kept once.

    Attributes:
        start: The items of query q are item[start[q]:start[q + 1]].
        tree: The taxonomy.
        item: Places in `items`.
        items: The text of every distinct item.
        first: The nodes of item i are node[first[i]:first[i + 1]], best first.
        node: Nodes.
        confidence: The confidence of each node, from 0 to 1; 1 for a match of words.
    """

    tree: Tree
    item: Ints
    items: pa.Array
    first: Longs
    node: Nodes
    confidence: Singles

    @classmethod
    def found(cls, tree: Tree, items: "Items", first: Longs, node: Nodes) -> "Links":
        """Links from the nodes of the distinct items, as `Index.nodes_of` returns them."""
        return cls(items.start, tree, items.item, items.texts, first, node, np.ones(len(node), np.float32))

    def nodes(self) -> tuple[Longs, Nodes]:
        """The nodes of every query, all those of all its items: those of query q are found[start[q]:start[q + 1]]."""
        of_item = Ragged(self.first)
        return offsets(of_item.sizes[self.item])[self.start], self.node[of_item.positions(self.item)]

    def coverage(self, events: Longs) -> list["Coverage"]:
        """The share with any category, and the share with a category at each level (figure 2 of erola2011).

        Args:
            events: How many events each query has.
        """
        deepest = np.full(len(self.items), -1, np.int32)
        some = np.flatnonzero(np.diff(self.first))
        if len(some):
            # Items without a node have an empty range, which `reduceat` would take for one of the next item.
            deepest[some] = np.maximum.reduceat(self.tree.depth[self.node], self.first[:-1][some])
        of_query = np.full(len(self), -1, np.int32)
        some = np.flatnonzero(self.sizes)
        if len(some):
            of_query[some] = np.maximum.reduceat(deepest[self.item], self.start[:-1][some])
        total = max(int(events.sum()), 1)
        rows = []
        for level in range(max(int(of_query.max(initial=0)), 0) + 1):
            rows.append(
                Coverage(
                    level=level,
                    items=float((deepest >= level).mean()) if len(deepest) else 0.0,
                    occurrences=float((deepest[self.item] >= level).mean()) if len(self.item) else 0.0,
                    queries=float((of_query >= level).mean()) if len(self) else 0.0,
                    events=float(events[of_query >= level].sum() / total),
                )
            )
        return rows


@dataclass(frozen=True)
class Coverage:
    """The shares of a log with a category at a level or deeper; level 0 means any category."""

    level: int
    items: float
    """Of distinct items."""
    occurrences: float
    """Of the items of all distinct queries."""
    queries: float
    """Of distinct queries."""
    events: float


@dataclass(frozen=True, eq=False)
class Items(Ragged):
    """What is looked up for queries: the distinct texts, and which of them each query has."""

    item: Ints
    texts: pa.Array

    @classmethod
    def of(cls, per_query: Longs, texts: pa.Array) -> "Items":
        """The distinct items of queries."""
        coded = texts.dictionary_encode()
        return cls(offsets(per_query), coded.indices.to_numpy(), coded.dictionary)
