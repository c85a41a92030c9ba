"""Several taxonomies as one: what the first does not know, the next may."""

from collections.abc import Sequence
from functools import partial

from queryveil.errors import QueryveilError
from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.index import Finder, Layered
from queryveil.knowledge.nearest import LayeredCells
from queryveil.knowledge.tree import Tree

_Shifts = list[tuple[Taxonomy, int]]


def combine(parts: Sequence[Taxonomy]) -> Taxonomy:
    """One taxonomy of several.

    Their trees get one root in the place of their own. Of every look-up, the first taxonomy that finds something wins;
    if more categories are asked for than it has, those of the next follow.

    Args:
        parts: The taxonomies, the first to be asked first.
    """
    for at, part in enumerate(parts):
        if part.source in {other.source for other in parts[:at]}:
            raise QueryveilError(f"The taxonomy '{part.name}' is named twice; name it once.")
    shift, shifts = 0, _Shifts()
    for part in parts:
        shifts.append((part, shift))
        shift += len(part.tree) - 1
    return Taxonomy(
        name=",".join(part.name for part in parts),
        tree=Tree.under_one_root([part.tree for part in parts]),
        terms=Layered([(part.terms, shift) for part, shift in shifts]),
        phrases=Layered([(part.phrases, shift) for part, shift in shifts]),
        meanings=partial(_meanings, shifts),
        hosts=_layered([(part.hosts, shift) for part, shift in shifts]),
        labels=_layered([(part.labels, shift) for part, shift in shifts]),
        words=_layered([(part.words, shift) for part, shift in shifts]),
        parts=tuple(parts),
    )


def _layered(layers: Sequence[tuple[Finder | None, int]]) -> Layered | None:
    """The indexes of those that have one."""
    some = [(index, shift) for index, shift in layers if index is not None]
    return Layered(some) if some else None


def _meanings(shifts: _Shifts) -> LayeredCells:
    return LayeredCells([(part.meanings(), shift) for part, shift in shifts])
