"""Recipes: a method and its parameters in a TOML file, shipped or the caller's own.

method = "equality"
seed = 1                # optional

[parameters]
k = 5

A pipeline has steps instead, each with a method and its parameters:

[[steps]]
method = "affinity"
parameters = { k = 5, theta = 0.8 }

[[steps]]
method = "odp"

What the publisher says about each release that it makes is optional as well:

[about]
title = "Frequent queries"
source = "example.com, site search"
contact = "data@example.com"

How the log is read can be said as well, if its files do not say so:

[input]
format = "csv"
columns = { user = "cookie", query = "typed" }
encoding = "latin-1"
time_format = "%d/%m/%Y %H:%M"
language = "de"
"""

import json
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from queryveil.errors import QueryveilError, QueryveilWarning, did_you_mean, renamed
from queryveil.formats.input import Input
from queryveil.release.about import About
from queryveil.release.earlier import changed_defaults, translated
from queryveil.release.manifest import PIPELINE


class RecipeStep(BaseModel):
    """A step of a pipeline."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    method: str
    parameters: dict[str, Any] = {}


class RecipeInput(Input):
    """How a log is read, as a recipe says."""

    language: str | list[str] | None = None
    """The languages of its queries, or `auto`."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `read_log`; those that nothing is said about are left out."""
        return {name: value for name, value in self if value}


class Recipe(BaseModel):
    """What a recipe file says."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    method: str = PIPELINE
    seed: int | None = None
    parameters: dict[str, Any] = {}
    steps: list[RecipeStep] = Field(default=[], exclude=True)
    about: About | None = None
    input: RecipeInput | None = None

    @model_validator(mode="after")
    def _method_or_steps(self) -> Self:
        if (self.method == PIPELINE) != bool(self.steps) or (self.steps and self.parameters):
            raise ValueError("a recipe has either a method with its parameters, or steps")
        return self


_RENAMED = {"thirty-five": "dma-30-5", "rare-term-and-length": "dma-draft-2026"}
"""Recipes by their names in version 0.1."""


def shipped() -> dict[str, str]:
    """The recipes that come with queryveil: name -> text."""
    folder = files("queryveil.methods") / "recipes"
    return {
        entry.name.removesuffix(".toml"): entry.read_text("utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".toml")
    }


def load_recipe(name: str) -> Recipe:
    """Read a recipe: the name of a shipped one, or the path of a file."""
    known = shipped()
    if name in _RENAMED:
        renamed(f"The recipe '{name}'", f"'{_RENAMED[name]}'")
        name = _RENAMED[name]
    if name in known:
        text = known[name]
    else:
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise QueryveilError(
                f"There is no recipe '{name}', built in or as a readable file; {did_you_mean(name, known)}."
            ) from None
    try:
        recipe = Recipe.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise QueryveilError(f"The recipe {name} is not TOML: {error}.") from None
    except ValidationError as error:
        problem = error.errors()[0]
        where = f" at '{'.'.join(map(str, problem['loc']))}'" if problem["loc"] else ""
        raise QueryveilError(
            f"The recipe {name} has a fault{where} ({problem['msg'].lower()}); it holds a method and a table"
            " [parameters], or several [[steps]], and a seed and tables [input] and [about] if you like."
        ) from None
    if recipe.steps:
        return recipe.model_copy(update={"parameters": {"steps": [step.model_dump() for step in recipe.steps]}})
    parameters, changes = translated(recipe.method, recipe.parameters)
    changes += changed_defaults(recipe.method, parameters)
    if changes:
        warnings.warn(
            f"The recipe {name} may be of version 0.1, where some things meant something else: {'; '.join(changes)}.",
            QueryveilWarning,
            stacklevel=2,
        )
    return recipe.model_copy(update={"parameters": parameters})


def recipe_text(steps: Sequence[tuple[str, Mapping[str, Any]]], seed: int | None = None) -> str:
    """A recipe as TOML, which `load_recipe` reads.

    Args:
        steps: Methods with their parameters, in order; parameters that are None are off, and are left out.
        seed: The random seed. A recipe that has one is as secret as the seed.

    Example:
        >>> print(recipe_text([("equality", {"k": 5, "jitter": None})], seed=1), end="")
        method = "equality"
        seed = 1
        <BLANKLINE>
        [parameters]
        k = 5
    """
    given = [(name, {key: _toml(value) for key, value in each.items() if value is not None}) for name, each in steps]
    head = [] if seed is None else [f"seed = {seed}"]
    if len(given) == 1:
        ((method, parameters),) = given
        lines = [f"method = {_toml(method)}", *head, "", "[parameters]", *(f"{k} = {v}" for k, v in parameters.items())]
        return "\n".join(lines) + "\n"
    for method, parameters in given:
        inside = ", ".join(f"{key} = {value}" for key, value in parameters.items())
        head += ["", "[[steps]]", f"method = {_toml(method)}", f"parameters = {{ {inside} }}"]
    return "\n".join(head).lstrip("\n") + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    # TOML escapes as JSON does, but for one character that it does not allow as it is.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
