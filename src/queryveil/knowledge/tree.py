"""A tree of topics in flat arrays.

Nodes are numbered in first-child order: the root is 0, a node's first child follows it, and all that is below node n is
n + 1 to end[n] - 1. The depth of the root is 0, so that level 1 of a directory is its top categories.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from queryveil.errors import QueryveilError
from queryveil.kernels import trees
from queryveil.kernels.types import Floats, Ints, Longs

Nodes = Ints


@dataclass(frozen=True, eq=False)
class Tree:
    """An immutable tree.

    Attributes:
        parent: The node above each; -1 for the root.
        depth: How many nodes are above each.
        end: One more than the last node below each.
        leaves: How many leaves are at or below each (M_p).
        names: The name of each.

    Example:
        >>> food = Tree.from_paths(pa.array(["fruit/apple", "fruit/orange", "meat/beef"]), root="food")
        >>> [food.path(node) for node in food.children(0)]
        ['fruit', 'meat']
        >>> food.lm([1])
        array([0.5])
    """

    parent: Nodes
    depth: Nodes
    end: Nodes
    leaves: Nodes
    names: pa.Array

    @classmethod
    def from_parents(cls, parent: NDArray[np.integer[Any]], names: pa.Array) -> tuple["Tree", Longs]:
        """A tree from the place of each node's parent, -1 for the root.

        Returns:
            The tree, and the place that each of its nodes had; children keep the order of their places.
        """
        parents = parent.astype(np.int64)
        if len(parents) and (parents.min() < -1 or parents.max() >= len(parents)):
            raise QueryveilError(f"A parent must be the place of a node, from 0 to {len(parents) - 1:,}, or -1.")
        roots = np.flatnonzero(parents < 0)
        if len(roots) != 1:
            names_of_roots = " and ".join(f"'{names[int(i)]}'" for i in roots[:2])
            what = f"it has {len(roots):,}: {names_of_roots}" if len(roots) else "none of its nodes is without a parent"
            raise QueryveilError(f"A tree has one root, but {what}; give every other node its parent.")
        order = trees.preorder(parents, int(roots[0]))
        if len(order) < len(parents):
            raise QueryveilError(
                f"The tree has a cycle: {_cycle(parents, order, names)}; give one of these nodes another parent."
            )
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        above = parents[order]
        above[1:] = place[above[1:]]
        return cls._sorted(above.astype(np.int32), names.take(pa.array(order))), order

    @classmethod
    def from_depths(cls, depth: NDArray[np.integer[Any]], names: pa.Array) -> "Tree":
        """A tree from the depths of its nodes in first-child order, which determine it."""
        # The parent of a node is the last one before it that is one level up.
        parent = np.full(len(depth), -1, np.int32)
        for level in range(1, int(depth.max()) + 1):
            above = np.flatnonzero(depth == level - 1)
            here = np.flatnonzero(depth == level)
            parent[here] = above[np.searchsorted(above, here) - 1]
        return cls._sorted(parent, names)

    @classmethod
    def _sorted(cls, parent: Nodes, names: pa.Array) -> "Tree":
        for values in (arrays := (parent, *trees.measures(parent))):
            values.flags.writeable = False
        return cls(*arrays, names)

    @classmethod
    def from_table(cls, table: pa.Table) -> "Tree":
        """A tree from a table with one row per node: columns `node`, `parent` (null for the root) and maybe `name`.

        Raises:
            QueryveilError: If it is not one tree: two roots or none, a node twice, a missing parent, or a cycle.
        """
        missing = {"node", "parent"} - set(table.column_names)
        if missing:
            raise QueryveilError(f"The table of the tree has no column {' and no '.join(map(repr, sorted(missing)))}.")
        if len(table) == 0:
            raise QueryveilError("The table of the tree has no rows.")
        node = _plain(table["node"])
        if node.null_count:
            raise QueryveilError("A row of the tree has no 'node'; give every node a unique name or number.")
        names = (_plain(table["name"]) if "name" in table.column_names else node).cast(pa.string())
        names = pc.coalesce(names, node.cast(pa.string()))
        above = _plain(table["parent"])
        if pa.types.is_floating(above.type):  # as pandas has numbers of which one is missing
            above = pc.if_else(pc.is_nan(above), pa.scalar(None, above.type), above)
        try:
            above = above.cast(node.type)
        except pa.ArrowInvalid:
            raise QueryveilError(
                f"The column 'parent' of the tree holds {above.type}, 'node' {node.type}; give both the same type."
            ) from None
        twice = pc.value_counts(node)
        twice = twice.filter(pc.greater(twice.field("counts"), 1))
        if len(twice):
            raise QueryveilError(f"The tree has the node '{twice[0]['values']}' {twice[0]['counts']} times; keep one.")
        parent = pc.index_in(above, value_set=node)
        orphan = pc.and_(pc.is_valid(above), pc.is_null(parent))
        if pc.any(orphan).as_py():
            at = pc.index(orphan, True).as_py()
            raise QueryveilError(f"The node '{node[at]}' has the parent '{above[at]}', which is not a node; add it.")
        return cls.from_parents(parent.fill_null(-1).to_numpy(zero_copy_only=False), names)[0]

    @classmethod
    def from_paths(cls, paths: pa.Array, *, root: str = "Top") -> "Tree":
        """A tree from the paths of its nodes, such as `Arts/Music`; nodes on the way need no path of their own."""
        known = {"": 0}
        parent, names = [-1], [root]
        for path in paths.to_pylist():
            above = 0
            at = 0
            while at <= len(path):
                cut = path.find("/", at)
                cut = len(path) if cut < 0 else cut
                here = known.setdefault(path[:cut], len(names))
                if here == len(names):
                    parent.append(above)
                    names.append(path[at:cut])
                above, at = here, cut + 1
        return cls.from_parents(np.array(parent), pa.array(names))[0]

    @classmethod
    def under_one_root(cls, trees: Sequence["Tree"], *, root: str = "Top") -> "Tree":
        """Several trees as one, whose root takes the place of theirs, so that all nodes stay on their levels.

        Node n > 0 of a tree becomes n plus the number of nodes of the trees before it, roots not counted.
        """
        parents, shift = [np.array([-1], np.int32)], 0
        for tree in trees:
            above = tree.parent[1:]
            parents.append(np.where(above > 0, above + shift, 0).astype(np.int32))
            shift += len(tree) - 1
        names = pa.concat_arrays([pa.array([root]), *(tree.names[1:] for tree in trees)])
        return cls._sorted(np.concatenate(parents), names)

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def height(self) -> int:
        """The depth of the deepest node."""
        return int(self.depth.max())

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of its shape and names, by which two trees are known to be the same."""
        names = "\n".join(self.names.to_pylist())
        return hashlib.sha256(self.depth.tobytes() + names.encode()).hexdigest()

    def children(self, node: int) -> list[int]:
        """The nodes right below one, in order."""
        found, at = [], node + 1
        while at < self.end[node]:
            found.append(at)
            at = int(self.end[at])
        return found

    def line(self, node: int) -> list[int]:
        """The nodes from the root to one."""
        found: list[int] = self.ancestors([node])[1][::-1].tolist()
        return found

    def path(self, node: int, *, between: str = "/") -> str:
        """The names from level 1 down to a node; that of the root for itself."""
        return between.join(self.names[i].as_py() for i in self.line(node)[1:] or [0])

    def find(self, path: str) -> int:
        """The node of a path such as `Top/Arts/Music_Bands`, with or without the root; -1 if there is none."""
        node = 0
        for name in path.replace("_", " ").removeprefix("Top/").split("/"):
            node = next((child for child in self.children(node) if self.names[child].as_py() == name), -1)
            if node < 0:
                return -1
        return node

    def ancestors(self, nodes: ArrayLike) -> tuple[Longs, Nodes]:
        """Each node and what is above it, up to the root: those of nodes[i] are found[start[i]:start[i + 1]]."""
        return trees.ancestors(self.parent, self.depth, self._nodes(nodes, least=0))

    def at_level(self, nodes: ArrayLike, level: int) -> Nodes:
        """The ancestor at a level, the node itself included; -1 where a node, or -1 in its place, is not that deep."""
        if level < 0:
            raise QueryveilError(f"A level must be at least 0. Got {level} instead.")
        return trees.at_level(self.parent, self.depth, self._nodes(nodes), level)

    def lca(self, a: ArrayLike, b: ArrayLike) -> Nodes:
        """The lowest common ancestor of each pair of nodes."""
        first, second = np.broadcast_arrays(self._nodes(a, least=0), self._nodes(b, least=0))
        return trees.lca(self.parent, self.end, first.copy(), second.copy())

    def lm(self, nodes: ArrayLike) -> Floats:
        """What it costs to publish a node instead of a leaf below it: LM(p) = (M_p - 1) / (M - 1).

        -1, for nothing at all, costs as much as the root.
        """
        place = np.maximum(self._nodes(nodes), 0)
        return (self.leaves[place] - 1) / max(int(self.leaves[0]) - 1, 1)

    def ncp(self, terms: ArrayLike, released: ArrayLike) -> Floats:
        """The normalized certainty penalty of publishing nodes instead of others.

        Args:
            terms: The node of each term.
            released: What is published for it; -1 if nothing is.

        Returns:
            0 for a term published as it is, 1 for one that is not published, else the share of all leaves below.
        """
        term, shown = self._nodes(terms), self._nodes(released)
        cost = self.leaves[shown] / self.leaves[0]
        found: Floats = np.where(shown < 0, 1.0, np.where(shown == term, 0.0, cost))
        return found

    def _nodes(self, nodes: ArrayLike, least: int = -1) -> Nodes:
        """Nodes for the kernels, which do not check whether they are in the tree."""
        found = np.ascontiguousarray(nodes, dtype=np.int32)
        if found.size and not (least <= found.min() and found.max() < len(self)):
            raise QueryveilError(f"A node must be from {least} to {len(self) - 1:,}.")
        return found


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, without a dictionary."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks()


def _cycle(parent: Longs, reached: Longs, names: pa.Array) -> str:
    """The names along a cycle."""
    lost = np.ones(len(parent), bool)
    lost[reached] = False
    at, seen = int(np.flatnonzero(lost)[0]), dict[int, None]()
    while at not in seen:
        seen[at] = None
        at = int(parent[at])
    way = list(seen)
    turn = [*way[way.index(at) :], at]
    shown = [f"'{names[i]}'" for i in turn]
    return " < ".join(shown if len(shown) <= 8 else [*shown[:4], "...", *shown[-3:]])
