"""What every taxonomy offers: a tree, and indexes that lead from texts to its nodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from queryveil.knowledge.index import Finder
from queryveil.knowledge.nearest import Nearest
from queryveil.knowledge.tree import Tree

MOST_CATEGORIES = 10
"""Most nodes of a text."""


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A tree of topics, and how to find the nodes of texts in it.

    Attributes:
        name: Its name.
        tree: The tree.
        terms: From single words to nodes.
        phrases: From the labels of nodes, also of several words, to nodes.
        meanings: Returns the vectors of the nodes, to categorize queries by their meaning.
        hosts: From hosts of the web to nodes, if it knows any.
        labels: From whole labels to nodes, if a phrase may have function words that a label has: `cats and dogs`.
        words: From single words to nodes, if a phrase that no label fits is looked up by its words.
        folder: Its folder, if it was built.
        parts: The taxonomies that it was combined from, the first to be asked first.
    """

    name: str
    tree: Tree
    terms: Finder
    phrases: Finder
    meanings: Callable[[], Nearest]
    hosts: Finder | None = None
    labels: Finder | None = None
    words: Finder | None = None
    folder: Path | None = None
    parts: tuple["Taxonomy", ...] = ()

    @property
    def layers(self) -> list[tuple["Taxonomy", int]]:
        """Its parts, or itself, and what is added to their nodes, except to their roots."""
        return in_one_tree(self.parts or (self,))

    @property
    def source(self) -> str:
        """What `open_taxonomy` takes to open it again."""
        return ",".join(part.source for part in self.parts) or str(self.folder or self.name)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of all that was built of it."""
        own = (self.folder,) if self.folder is not None else ()
        return (*own, *(folder for part in self.parts for folder in part.folders))

    @property
    def sites(self) -> Path | None:
        """Where its sites can be searched, those of the first part that has any."""
        if self.parts:
            return next((part.sites for part in self.parts if part.sites is not None), None)
        return self.folder / "sites" if self.folder is not None and self.hosts is not None else None

    @property
    def digest(self) -> str:
        """A digest of the tree, by which the verifier knows that it uses the same one."""
        return self.tree.digest


def in_one_tree(parts: Sequence[Taxonomy]) -> list[tuple[Taxonomy, int]]:
    """Taxonomies, and what is added to their nodes in the tree of all of them, except to their roots."""
    sizes = [0, *accumulate(len(part.tree) - 1 for part in parts)]
    return list(zip(parts, sizes[:-1], strict=True))
