"""The categories of queries, and how much of a log they cover."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Ragged, offsets
from queryveil.kernels.types import Ints, Longs, Singles
from queryveil.knowledge.tree import Nodes, Tree
from queryveil.text import normal_form


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
        n_filled: How many items, the last ones, were not looked up for their text; see `filled`.
    """

    tree: Tree
    item: Ints
    items: pa.Array
    first: Longs
    node: Nodes
    confidence: Singles
    n_filled: int = 0

    @classmethod
    def found(cls, tree: Tree, items: "Items", first: Longs, node: Nodes) -> "Links":
        """Links from the nodes of the distinct items, as `Index.nodes_of` returns them."""
        return cls(items.start, tree, items.item, items.texts, first, node, np.ones(len(node), np.float32))

    def nodes(self) -> tuple[Longs, Nodes]:
        """The nodes of every query, all those of all its items: those of query q are found[start[q]:start[q + 1]]."""
        of_item = Ragged(self.first)
        return offsets(of_item.sizes[self.item])[self.start], self.node[of_item.positions(self.item)]

    def filled(self, other: "Links") -> "Links":
        """These links; a query without a node has the items of other links of the same queries as well.

        The items of other links are no noun phrases or terms, so they count for queries, and not in shares of items.
        """
        bare = np.flatnonzero(np.diff(self.nodes()[0]) == 0)
        used, item = np.unique(other.item[other.positions(bare)], return_inverse=True)
        owner = np.concatenate([self.owners, np.repeat(bare, other.sizes[bare])])
        order = np.argsort(owner, kind="stable")
        of_item = Ragged(other.first)
        place = of_item.positions(used)
        return Links(
            start=offsets(np.bincount(owner, minlength=len(self))),
            tree=self.tree,
            item=np.concatenate([self.item, item + len(self.items)])[order].astype(np.int32),
            items=pa.concat_arrays([self.items, other.items.take(pa.array(used))]),
            first=np.concatenate([self.first, self.first[-1] + offsets(of_item.sizes[used])[1:]]),
            node=np.concatenate([self.node, other.node[place]]),
            confidence=np.concatenate([self.confidence, other.confidence[place]]),
            n_filled=self.n_filled + len(used),
        )

    def coverage(self, events: Longs, issued: pa.Table | None = None) -> list["Coverage"]:
        """The share with any category, and the share with a category at each level (figure 2 of erola2011).

        Args:
            events: How many events each query has.
            issued: Who issued what, for the share of users: columns user_id, from 0 on, and query_id.
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
        of_user = None
        if issued is not None:
            user = issued["user_id"].to_numpy()
            of_user = np.full(int(user.max(initial=-1)) + 1, -1, np.int32)
            np.maximum.at(of_user, user, of_query[issued["query_id"].to_numpy()])
        own = deepest[: len(self.items) - self.n_filled]
        occurring = own[self.item[self.item < len(own)]]
        total = max(int(events.sum()), 1)
        rows = []
        for level in range(max(int(of_query.max(initial=0)), 0) + 1):
            rows.append(
                Coverage(
                    level=level,
                    items=float((own >= level).mean()) if len(own) else 0.0,
                    occurrences=float((occurring >= level).mean()) if len(occurring) else 0.0,
                    queries=float((of_query >= level).mean()) if len(self) else 0.0,
                    events=float(events[of_query >= level].sum() / total),
                    users=float((of_user >= level).mean()) if of_user is not None and len(of_user) else None,
                )
            )
        return rows

    def accuracy(self, topics: pa.Array) -> list["Accuracy"]:
        """How often the first category of a query is right, at each level of the topics.

        Args:
            topics: The path of the true topic of each query, such as `Top/Arts/Music`; null if it is not known.
        """
        coded = topics.dictionary_encode()
        true = np.array([*(self.tree.find(path) for path in coded.dictionary.to_pylist()), -1], np.int32)
        true = true[coded.indices.fill_null(len(true) - 1).to_numpy()]
        start, node = self.nodes()
        some = np.diff(start) > 0
        first = np.full(len(self), -1, np.int32)
        first[some] = node[start[:-1][some]]
        rows = []
        for level in range(1, int(self.tree.depth[true[true >= 0]].max(initial=0)) + 1):
            topic = self.tree.at_level(true, level)
            known = topic >= 0
            right = known & (self.tree.at_level(first, level) == topic)
            rows.append(
                Accuracy(
                    level=level,
                    of_categorized=float(right.sum() / max(int((known & some).sum()), 1)),
                    of_all=float(right.sum() / max(int(known.sum()), 1)),
                )
            )
        return rows


def topics_of(queries: pa.Array, table: pa.Table) -> pa.Array:
    """The true topic of each query, from a table with the columns query and topic; null if it is not known."""
    known = normal_form(table["query"].combine_chunks().cast(pa.string()))
    return table["topic"].combine_chunks().cast(pa.string()).take(pc.index_in(queries, value_set=known))


@dataclass(frozen=True)
class Coverage:
    """The shares of a log with a category at a level or deeper; level 0 means any category."""

    level: int
    items: float
    """Of distinct items that were looked up."""
    occurrences: float
    """Of the items of all distinct queries."""
    queries: float
    """Of distinct queries."""
    events: float
    users: float | None = None
    """Of users, those with such a query."""


@dataclass(frozen=True)
class Accuracy:
    """How often the first category of a distinct query is below its true topic at a level."""

    level: int
    of_categorized: float
    """Of those that have a category."""
    of_all: float


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
