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
"""

import tomllib
import warnings
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from queryveil.errors import QueryveilError, QueryveilWarning, did_you_mean, renamed
from queryveil.release.earlier import changed_defaults, translated
from queryveil.release.manifest import PIPELINE


class RecipeStep(BaseModel):
    """A step of a pipeline."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    method: str
    parameters: dict[str, Any] = {}


class Recipe(BaseModel):
    """What a recipe file says."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    method: str = PIPELINE
    seed: int | None = None
    parameters: dict[str, Any] = {}
    steps: list[RecipeStep] = Field(default=[], exclude=True)

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
            f"The recipe {name} has a fault{where} ({problem['msg'].lower()}); it holds a"
            " method and a table [parameters], or several [[steps]], and a seed if you like."
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
