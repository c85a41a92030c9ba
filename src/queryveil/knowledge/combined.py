"""Several taxonomies as one: what the first does not know, the next may."""

from collections.abc import Sequence

from queryveil.errors import QueryveilError
from queryveil.knowledge.base import Taxonomy, in_one_tree
from queryveil.knowledge.index import Finder, Layered
from queryveil.knowledge.nearest import LayeredCells
from queryveil.knowledge.tree import Tree


def combine(parts: Sequence[Taxonomy]) -> Taxonomy:
    """One taxonomy of several.

    Their trees get one root in the place of their own. The first taxonomy that finds a text wins; if more categories
    are asked for than it has, those of the next follow.

    Args:
        parts: The taxonomies, the first to be asked first.
    """
    for at, part in enumerate(parts):
        if part.source in {other.source for other in parts[:at]}:
            raise QueryveilError(f"The taxonomy '{part.name}' is named twice; name it once.")
    name, tree = ",".join(part.name for part in parts), Tree.under_one_root([part.tree for part in parts])
    layers = in_one_tree(parts)

    def layered(indexes: Sequence[Finder | None]) -> Layered | None:
        """The indexes of those that have one."""
        some = [(index, shift) for index, (_, shift) in zip(indexes, layers, strict=True) if index is not None]
        return Layered(some) if some else None

    return Taxonomy(
        name=name,
        tree=tree,
        terms=Layered([(part.terms, shift) for part, shift in layers]),
        phrases=Layered([(part.phrases, shift) for part, shift in layers]),
        meanings=lambda: LayeredCells([(part.meanings(), shift) for part, shift in layers]),
        hosts=layered([part.hosts for part in parts]),
        labels=layered([part.labels for part in parts]),
        words=layered([part.words for part in parts]),
        parts=tuple(parts),
    )
