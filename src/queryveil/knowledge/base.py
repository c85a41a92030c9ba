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
"""Most nodes of a text."""


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A tree of topics, and how to find the nodes of texts in it.

    Attributes:
        name: Its name.
        taxonomy: The tree.
        terms: From single words to nodes.
        phrases: From the labels of nodes, also of several words, to nodes.
        meanings: Returns the vectors of the nodes, to categorize queries by their meaning.
        hosts: From hosts of the web to nodes, if it knows any.
        folder: Its folder, if it is a web directory.
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
        """A digest of the tree, by which the verifier knows that it uses the same one."""
        tree = self.tree
        names = "\n".join(tree.names.to_pylist())
        return hashlib.sha256(tree.depth.tobytes() + names.encode()).hexdigest()
