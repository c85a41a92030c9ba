"""How lines and points of charts look: a colour and a shape each.

The colours are variables of the page's style, which sets them for light, dark and print. Two things that have the same
shape differ in colour for people who cannot distinguish red and green, too.
"""

from collections.abc import Iterable, Mapping
from itertools import chain, count

from queryveil.methods import METHODS
from queryveil.methods.recipe import shipped

COLOURS = tuple(f"c{i}" for i in range(1, 25))
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-left", "triangle-right")

Look = tuple[str, str]
"""A colour and a shape."""
Looks = Mapping[str, Look]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each of some names, in their order; no colour comes twice unless there are more names than colours."""
    return {name: _look(i) for i, name in enumerate(dict.fromkeys(names))}


def looks_of_methods(names: Iterable[str]) -> dict[str, Look]:
    """A look for each of some methods and recipes: the same in every report, and no colour comes twice."""
    every = list(dict.fromkeys(names))
    known = [*METHODS, *shipped()]
    places = {name: known.index(name) for name in every if name in known}
    free = chain((i for i in range(len(COLOURS)) if i not in places.values()), count())
    return {name: _look(places[name] if name in places else next(free)) for name in every}


def _look(place: int) -> Look:
    return COLOURS[place % len(COLOURS)], SHAPES[place % len(SHAPES)]
