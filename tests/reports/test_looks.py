import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

from queryveil.methods import METHODS
from queryveil.methods.recipe import shipped
from queryveil.reports.looks import COLOURS, looks, looks_of_methods

STYLE = (files("queryveil.reports") / "templates" / "style.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", part)) for part in STYLE.split("@media screen and (prefers")[:2]
)
EVERY = [*METHODS, *shipped()]

# What people without red or green cones see: Machado, Oliveira, Fernandes 2009, table 1, severity 1.
PROTAN = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTAN = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]


def linear(colour):
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def seen(colour, eyes=None):
    """A colour in the space OKLab, in which distances are about what people see."""
    light = linear(colour) if eyes is None else np.clip(np.array(eyes) @ linear(colour), 0, 1)
    cones = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ light
    )
    return (
        np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        )
        @ cones
    )


def contrast(one, other):
    high, low = sorted((linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_no_two_methods_or_recipes_share_a_colour():
    found = looks_of_methods(EVERY)
    assert len({colour for colour, _ in found.values()}) == len(EVERY)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_differ_and_stand_out(theme):
    colours = [theme[name] for name in COLOURS]
    assert min(np.linalg.norm(seen(a) - seen(b)) for a, b in combinations(colours, 2)) > 0.08
    assert min(contrast(colour, theme["page"]) for colour in colours) > 2.2


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("eyes", [PROTAN, DEUTAN], ids=["protan", "deutan"])
def test_colours_of_the_same_shape_differ_for_all_eyes(theme, eyes):
    found = looks(map(str, range(len(COLOURS)))).values()
    pairs = [(theme[a], theme[b]) for (a, shape), (b, other) in combinations(found, 2) if shape == other]
    assert len(pairs) == 24
    assert min(np.linalg.norm(seen(a, eyes) - seen(b, eyes)) for a, b in pairs) > 0.1


def test_a_method_looks_the_same_in_every_report():
    alone = looks_of_methods(["odp"])["odp"]
    assert looks_of_methods(["my own pipeline", "equality", "odp"])["odp"] == alone


def test_what_is_not_known_gets_colours_that_are_free():
    others = [f"pipeline {i}" for i in range(len(COLOURS) - 2)]
    found = looks_of_methods(["odp", *others, "equality"])
    assert len({colour for colour, _ in found.values()}) == len(COLOURS)
    assert len(looks_of_methods(map(str, range(100)))) == 100


def test_every_colour_and_shape_has_its_mark_in_the_key():
    for colour, shape in looks(map(str, range(len(COLOURS)))).values():
        assert f".mark.{colour} {{" in STYLE
        assert shape == "square" or re.search(rf"\.mark\.{shape}\b", STYLE)
