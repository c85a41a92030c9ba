"""What every knowledge base offers: a tree, and indexes that lead from texts to its nodes."""

from dataclasses import dataclass
from pathlib import Path

from queryveil.knowledge.index import Index
from queryveil.knowledge.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A tree of topics and how texts find their place in it.

    Attributes:
        name: What it is called.
        taxonomy: The tree.
        terms: From single words to nodes.
        phrases: From the labels of nodes, also of several words, to nodes.
        hosts: From hosts of the web to nodes, where it knows any.
        folder: Where it lies, if it is a directory that was built.
    """

    name: str
    taxonomy: Taxonomy
    terms: Index
    phrases: Index
    hosts: Index | None = None
    folder: Path | None = None
