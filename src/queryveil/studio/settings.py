"""What is chosen: the steps of a release as methods, as a form, as a recipe, and as a command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from queryveil.assess.grid import KS, THETAS, WORD_USERS
from queryveil.errors import QueryveilError, did_you_mean
from queryveil.methods import (
    METHODS,
    STEPS,
    Affinity,
    Equality,
    Method,
    Parameter,
    Pipeline,
    Rules,
    Scrub,
    parameters_of,
)
from queryveil.methods.recipe import RecipeStep, load_recipe, recipe_text, shipped
from queryveil.release.manifest import Stage
from queryveil.studio.project import Reading

SLIDERS: dict[str, tuple[float | None, ...]] = {
    "k": KS,
    "theta": THETAS,
    "min_term_users": (None, *WORD_USERS),
}
"""Parameters with a slider, and its positions; None stands for the default."""
_ON = "on"


@dataclass(frozen=True)
class Field:
    """A parameter in the form."""

    name: str
    """In the form: the place of the step, and the parameter."""
    parameter: Parameter
    value: Any

    @property
    def slider(self) -> tuple[str, ...]:
        """The positions of its slider, with its value among them; empty if it has none."""
        known = SLIDERS.get(self.parameter.name, ())
        if not known or self.value in known:
            return tuple("" if one is None else f"{one:g}" for one in known)
        numbers = sorted({one for one in (*known, self.value) if one is not None})
        return (*([""] if None in known else []), *(f"{one:g}" for one in numbers))

    @property
    def position(self) -> int:
        """Where its slider stands."""
        return self.slider.index("" if self.value is None else f"{self.value:g}")

    @property
    def text(self) -> str:
        """Its value as a form has it."""
        if self.value is None:
            return ""
        return ", ".join(map(str, self.value)) if self.parameter.many else str(self.value)


def method_of(steps: Sequence[RecipeStep]) -> Method:
    """The method that some steps are.

    Raises:
        QueryveilError: If a parameter is wrong, or the steps make no sense together.
    """
    if len(steps) == 1:
        (only,) = steps
        if only.method not in STEPS:
            raise QueryveilError(f"There is no method '{only.method}'; {did_you_mean(only.method, STEPS)}.")
        if not STEPS[only.method].alone:
            raise QueryveilError(f"{only.method} protects nobody by itself; add another step.")
        return STEPS[only.method](**only.parameters)
    return Pipeline([step.model_dump() for step in steps])


def check_kept(steps: Sequence[RecipeStep]) -> None:
    """Refuse steps that no form can have made; the file of a project may have been edited.

    Raises:
        QueryveilError: If there is no step, no such method, or a parameter is wrong.
    """
    if not steps:
        raise QueryveilError("The project has no steps; name another folder.")
    for step in steps:
        if step.method not in STEPS:
            raise QueryveilError(f"The project has an unknown method '{step.method}'; name another folder.")
        if step.parameters:
            STEPS[step.method](**step.parameters)


def begun_with(name: str) -> list[RecipeStep]:
    """The steps of a method with its defaults, or of a built-in recipe."""
    if name in shipped():
        recipe = load_recipe(name)
        if recipe.steps:
            return list(recipe.steps)
        return [RecipeStep(method=recipe.method, parameters=recipe.parameters)]
    if name not in METHODS or name == Pipeline.name:
        raise QueryveilError(f"There is no method '{name}'; {did_you_mean(name, METHODS)}.")
    return [RecipeStep(method=name, parameters={"k": 5} if "k" in METHODS[name].model_fields else {})]


def fields_of(steps: Sequence[RecipeStep]) -> list[tuple[RecipeStep, list[Field], list[Field]]]:
    """The form: for each step its sliders, and its other parameters."""
    found = []
    for place, step in enumerate(steps):
        every = [
            Field(f"{place}.{one.name}", one, step.parameters.get(one.name, one.default))
            for one in parameters_of(STEPS[step.method])
        ]
        sliders = [field for field in every if field.slider]
        found.append((step, sliders, [field for field in every if not field.slider]))
    return found


def steps_of(form: Mapping[str, str], before: Sequence[RecipeStep]) -> list[RecipeStep]:
    """The steps that a form says; what it does not name stays as it was.

    Raises:
        QueryveilError: If a number is none.
    """
    found = []
    for place, step in enumerate(before):
        parameters = dict(step.parameters)
        for one in parameters_of(STEPS[step.method]):
            name = f"{place}.{one.name}"
            if one.kind is bool and f"{place}.form" in form:
                parameters[one.name] = form.get(name) == _ON
            elif f"{name}.at" in form:
                parameters[one.name] = _value(one, _slid_to(form, name))
            elif name in form:
                parameters[one.name] = _value(one, form[name])
        found.append(RecipeStep(method=step.method, parameters=_given(step.method, parameters)))
    return found


def _given(method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without those that are off by default anyway."""
    defaults = {one.name: one.default for one in parameters_of(STEPS[method])}
    return {name: value for name, value in parameters.items() if value != defaults.get(name) or name in SLIDERS}


def _slid_to(form: Mapping[str, str], name: str) -> str:
    """The value at the position of a slider."""
    positions, at = form.get(f"{name}.values", "").split(","), form[f"{name}.at"]
    if not (at.isascii() and at.isdigit() and len(at) < 10) or int(at) >= len(positions):
        raise QueryveilError("The slider has no such position; load the page again.")
    return positions[int(at)]


def _value(parameter: Parameter, text: str) -> Any:
    text = text.strip()
    if parameter.many:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if not text:
        return None if parameter.optional else parameter.default
    try:
        return parameter.kind(text)
    except ValueError:
        raise QueryveilError(f"'{parameter.name}' must be {parameter.expected}.") from None


def slid(steps: Sequence[RecipeStep | Stage]) -> Equality | Affinity | None:
    """The step whose counts follow from tables, if there is one."""
    found = next((step for step in steps if step.method in (Equality.name, Affinity.name)), None)
    if found is None:
        return None
    return Equality(**found.parameters) if found.method == Equality.name else Affinity(**found.parameters)


def beside_sliders(method: Equality | Affinity) -> dict[str, Any]:
    """The parameters of affinity that tables are made for, beside those with a slider."""
    like = method if isinstance(method, Affinity) else Affinity(link=method.link)
    return {name: value for name, value in like.parameters().items() if name not in SLIDERS}


def decided_steps(steps: Sequence[RecipeStep], decisions: Path) -> list[RecipeStep]:
    """The steps with a list of decisions: scrubbing and rules follow them, and rules are added if there are none."""
    given = {"decisions": decisions}
    if not any(step.method == Rules.name for step in steps):
        first = int(steps[0].method == Scrub.name)
        steps = [*steps[:first], RecipeStep(method=Rules.name), *steps[first:]]
    return [
        step.model_copy(update={"parameters": step.parameters | given})
        if step.method in (Rules.name, Scrub.name)
        else step
        for step in steps
    ]


def written_recipe(steps: Sequence[RecipeStep], seed: int | None) -> str:
    """The recipe that makes a release again; with a seed byte by byte."""
    method = method_of(steps)
    # Lists are files of the publisher, which a manifest names without their folders.
    places = [{name: str(path) for name, path in part.lists.items()} for part in method.parts]
    found = [(part.name, part.parameters() | place) for part, place in zip(method.parts, places, strict=True)]
    return recipe_text(found, seed)


def reading_options(reading: Reading) -> list[str]:
    """The options that say how a log is read."""
    words = []
    if reading.format is not None:
        words += ["--format", reading.format]
    if reading.columns:
        words += ["--columns", ",".join(f"{name}={column}" for name, column in reading.columns.items())]
    for name in ("encoding", "time_format", "language"):
        if getattr(reading, name) is not None:
            words += [f"--{name.replace('_', '-')}", getattr(reading, name)]
    if reading.max_bad_rows != Reading().max_bad_rows:
        words += ["--max-bad-rows", f"{reading.max_bad_rows:g}"]
    return words
