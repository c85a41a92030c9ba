"""What every taxonomy offers: a tree, and indexes that lead from texts to its nodes."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from queryveil.knowledge.index import Index
from queryveil.knowledge.nearest import Cells
from queryveil.knowledge.tree import Tree

MOST_CATEGORIES = 10
"""How many nodes a text leads to, at most."""


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A tree of topics and how texts find their place in it.

    Attributes:
        name: What it is called.
        taxonomy: The tree.
        terms: From single words to nodes.
        phrases: From the labels of nodes, also of several words, to nodes.
        meanings: Gives the vectors of the nodes, for linking by what a query means.
        hosts: From hosts of the web to nodes, where it knows any.
        folder: Where it lies, if it is a directory that was built.
    """

    name: str
    tree: Tree
    terms: Index
    phrases: Index
    meanings: Callable[[], Cells]
    hosts: Index | None = None
    folder: Path | None = None

    @cached_property
    def digest(self) -> str:
        """A digest of the tree, by which the verifier knows that it looks at the same one."""
        tree = self.tree
        names = "\n".join(tree.names.to_pylist())
        return hashlib.sha256(tree.depth.tobytes() + names.encode()).hexdigest()
