"""The options of `anonymize` that come from the method's own declaration of its parameters."""

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.errors import QueryveilError, did_you_mean

if TYPE_CHECKING:
    from queryveil.methods import Method
    from queryveil.methods.recipe import Recipe


def method_named(words: list[str], lenient: bool) -> "type[Method] | None":
    """The method of `--method NAME`, or of the recipe."""
    from queryveil.methods import METHODS
    from queryveil.methods.recipe import load_recipe

    name = _value_of("--method", words)
    recipe = _value_of("--recipe", words)
    try:
        if recipe is not None:
            name = name or load_recipe(recipe).method
        if name is None:
            raise QueryveilError(f"Name a method with --method ({', '.join(METHODS)}), or a recipe with --recipe.")
        if name not in METHODS:
            raise QueryveilError(f"There is no method '{name}'; {did_you_mean(name, METHODS)}.")
    except QueryveilError:
        if lenient:
            return None
        raise
    return METHODS[name]


def _value_of(option: str, words: list[str]) -> str | None:
    """The last value given for an option, as the parser takes it."""
    found = None
    for word, following in zip(words, [*words[1:], None], strict=True):
        if word == option:
            found = following
        elif word.startswith(option + "="):
            found = word.removeprefix(option + "=")
    return found


def options_of(method: "type[Method]") -> list[inspect.Parameter]:
    """The options for the parameters of a method."""
    from queryveil.methods import parameters_of

    result = []
    for parameter in parameters_of(method):
        flag = "--" + parameter.name.replace("_", "-")
        names = [f"-{parameter.name}" if len(parameter.name) == 1 else flag]
        kind: Any = parameter.kind
        if kind is bool:
            names = [f"{flag}/--{'allow' + flag[4:] if flag.startswith('--no-') else 'no-' + flag[2:]}"]
        kind = list[kind] if parameter.many else kind
        default = ", ".join(parameter.default) if parameter.many else parameter.default
        bounds = f" ({parameter.expected})" if parameter.choices or parameter.bounds else ""
        option = typer.Option(
            *names,
            help=parameter.help[:1].upper() + parameter.help[1:] + bounds + ".",
            show_default="off" if default is None or default is False else str(default),
            rich_help_panel=f"Parameters of {method.name}",
        )
        result.append(_keyword(parameter.name, Annotated[kind | None, option], None))
        if kind is not bool:
            # Hidden, because the epilog lists it. Parameters that cannot be off have one too, for a clear message.
            without = typer.Option(off_option(parameter.name), hidden=True)
            result.append(_keyword(f"without_{parameter.name}", Annotated[bool, without], False))
    return result


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def off_option(name: str) -> str:
    """The option that switches a parameter off."""
    return "--no-" + name.replace("_", "-")


def configured(method: "type[Method]", recipe: "Recipe | None", given: dict[str, Any]) -> "Method":
    """The method with the parameters of the recipe, and those of the command line in their place.

    Args:
        method: The method.
        recipe: The recipe that was named.
        given: The values of the options that `options_of` made.

    Raises:
        QueryveilError: If a parameter is wrong, or switched off where that is impossible.
    """
    if recipe is not None and recipe.method != method.name:
        raise QueryveilError(
            f"--method is {method.name}, but the recipe is for {recipe.method}; leave one of them out."
        )
    named = {name: given[name] for name in method.model_fields if given[name] not in (None, [])}
    off = _switched_off(method, given, named)
    result = method(**{**(recipe.parameters if recipe is not None else {}), **named, **off})
    for name in off:
        if getattr(result, name) is not None:
            raise QueryveilError(
                f"{off_option(name)} has no effect, because {method.name} then sets {name} to {getattr(result, name)}"
                " itself; leave it out."
            )
    return result


def _switched_off(method: "type[Method]", given: dict[str, Any], named: dict[str, Any]) -> dict[str, None]:
    """The parameters that the command line switches off, whatever the recipe says."""
    from queryveil.methods import parameters_of

    off = [parameter for parameter in parameters_of(method) if given.get(f"without_{parameter.name}")]
    for parameter in off:
        if not parameter.optional:
            raise QueryveilError(
                f"{off_option(parameter.name)} is not possible, because {method.name} needs {parameter.name};"
                " leave it out."
            )
        if parameter.name in named:
            flag = "--" + parameter.name.replace("_", "-")
            raise QueryveilError(
                f"{flag} and {off_option(parameter.name)} contradict each other; leave one of them out."
            )
    return dict.fromkeys(parameter.name for parameter in off)
