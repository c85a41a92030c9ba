"""The options of `anonymize` that come from the method's own declaration of its parameters."""

import inspect
from difflib import get_close_matches
from itertools import cycle
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from queryveil.cli.options import listed
from queryveil.errors import QueryveilError, did_you_mean

if TYPE_CHECKING:
    from queryveil.methods import Method
    from queryveil.methods.recipe import Recipe


class Chosen(NamedTuple):
    """What the command line says how to anonymize.

    Attributes:
        method: The method of `--method` or of the recipe.
        then: The methods of every `--then`, in order.
    """

    method: "type[Method]"
    then: "tuple[type[Method], ...]" = ()

    @property
    def options(self) -> "list[inspect.Parameter]":
        """The options for the parameters of all of them."""
        found = options_of(self.method)
        for place, method in enumerate(self.then, 1):
            found += options_of(method, place)
        return found


def chosen_by(words: list[str], lenient: bool) -> Chosen | None:
    """What `--method NAME`, the recipe and every `--then NAME` name; None if that is wrong and `lenient`."""
    from queryveil.methods import METHODS, STEPS, Pipeline
    from queryveil.methods.recipe import load_recipe, shipped

    name = _value_of("--method", words)
    recipe = _value_of("--recipe", words)
    then = [following for word, following in _thens(words)]
    try:
        if recipe is not None:
            name = name or load_recipe(recipe).method
        known = [known for known in METHODS if known != Pipeline.name]
        if name is None:
            _misspelt(words)
        if name is None or (name == Pipeline.name and recipe is None):
            raise QueryveilError(f"Name a method with --method ({', '.join(known)}), or a recipe with --recipe.")
        for one in then if name == Pipeline.name else (name, *then):
            if one in shipped():
                raise QueryveilError(f"'{one}' is a recipe, not a method; use --recipe {one}.")
            if one not in STEPS:
                raise QueryveilError(f"There is no method '{one}'; {did_you_mean(one, STEPS)}.")
        if name == Pipeline.name and then:
            raise QueryveilError("The recipe has steps of its own; write further ones into it, and leave --then out.")
        if not then and name != Pipeline.name and not STEPS[name].alone:
            raise QueryveilError(
                f"{name} protects nobody by itself; use it with other steps: --method NAME --then NAME."
            )
    except QueryveilError:
        if lenient:
            return None
        raise
    return Chosen(METHODS[name] if name == Pipeline.name else STEPS[name], tuple(STEPS[one] for one in then))


def _misspelt(words: list[str]) -> None:
    """Refuse an option that is almost --method or --recipe, before one of these is missed."""
    for word in (word.partition("=")[0] for word in words if word.startswith("--")):
        if get_close_matches(word, ("--method", "--recipe"), 1, 0.75):
            raise QueryveilError(f"There is no option {word}; {did_you_mean(word, ('--method', '--recipe'))}.")


def belongs_to(flag: str, words: list[str]) -> str | None:
    """What to say about an option that the chosen method does not have, if other methods have it."""
    from queryveil.methods import STEPS, Pipeline

    chosen = chosen_by(words, True)
    owners = [name for name, method in STEPS.items() if any(flag in _flags(one) for one in options_of(method))]
    if chosen is None or not owners:
        return None
    if chosen.method is Pipeline:
        return f"{flag} belongs to {_any_of(owners)}, and a recipe with steps takes only -k; write it into the recipe."
    named = _any_of([chosen.method.name, *(method.name for method in chosen.then)])
    return f"{flag} belongs to {_any_of(owners)}, not to {named}; leave it out, or choose another --method."


def every_flag() -> list[str]:
    """The options of all methods, with which a misspelt one is compared."""
    from queryveil.methods import STEPS

    found = (flag for method in STEPS.values() for one in options_of(method) for flag in _flags(one))
    return list(dict.fromkeys(found))


def _any_of(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _thens(words: list[str]) -> list[tuple[int, str]]:
    """Where every `--then` is, and the method behind it."""
    found = []
    for place, word in enumerate(words):
        if word == "--then" and place + 1 < len(words):
            found.append((place, words[place + 1]))
        elif word.startswith("--then="):
            found.append((place, word.removeprefix("--then=")))
    return found


def named_by_step(words: list[str]) -> list[str]:
    """The command line with the options behind each `--then NAME` named after its step, if they are those of NAME."""
    from queryveil.methods import STEPS

    found, thens = list(words), _thens(words)
    named = [_value_of("--method", words), *(name for _, name in thens)]
    owners = {flag: name for name in named if name in STEPS for one in options_of(STEPS[name]) for flag in _flags(one)}
    for number, (place, name) in enumerate(thens, 1):
        if name not in STEPS:
            continue
        both = zip(options_of(STEPS[name]), options_of(STEPS[name], number), strict=True)
        # A step has no short options, so its only name stands for both.
        flags = {
            flag: name for plain, own in both for flag, name in zip(_flags(plain), cycle(_flags(own)), strict=False)
        }
        end = thens[number][0] if number < len(thens) else len(words)
        for at in range(place + 1, end):
            flag, equals, value = words[at].partition("=")
            if len(words[at]) > 2 and words[at][:2] in flags and words[at][1] != "-":  # as in -k5
                flag, equals, value = words[at][:2], "=", words[at][2:].removeprefix("=")
            if flag in flags:
                found[at] = flags[flag] + equals + value
            elif flag in owners:  # it would silently be taken for that of another step
                raise QueryveilError(f"{name} has no option {flag}; write it behind {owners[flag]}, which has.")
    return found


def _flags(option: inspect.Parameter) -> list[str]:
    """All words that give an option."""
    given = option.annotation.__metadata__[0]
    # Typer takes the first name for a default until it sees that the option is part of an annotation.
    return [flag for words in (given.default, *(given.param_decls or ())) for flag in words.split("/")]


def _value_of(option: str, words: list[str]) -> str | None:
    """The last value given for an option, as the parser takes it."""
    found = None
    for word, following in zip(words, [*words[1:], None], strict=True):
        if word == option:
            found = following
        elif word.startswith(option + "="):
            found = word.removeprefix(option + "=")
    return found


def options_of(method: "type[Method]", step: int = 0) -> list[inspect.Parameter]:
    """The options for the parameters of a method.

    Args:
        method: The method.
        step: Behind which `--then` it is named; 0 for that of `--method`. `named_by_step` makes the words that these
            options have then.
    """
    from queryveil.methods import Pipeline, parameters_of

    if method is Pipeline:
        each = typer.Option("-k", "--k", help="The k of every step that has one.", show_default="that of the recipe")
        return [_keyword("k", Annotated[int | None, each], None)]
    behind = f"--then-{step}-" if step else "--"
    prefix = f"then_{step}_" if step else ""
    result = []
    for parameter in parameters_of(method):
        name = parameter.name.replace("_", "-")
        flag = behind + name
        names = [f"-{name}", flag] if len(name) == 1 and not step else [flag]
        kind: Any = parameter.kind
        if kind is bool:
            names = [f"{flag}/{behind}{'allow' + name[2:] if name.startswith('no-') else 'no-' + name}"]
        kind = list[str] if parameter.many else kind
        default = ", ".join(parameter.default or ()) if parameter.many else parameter.default
        bounds = f" ({parameter.expected})" if parameter.choices or parameter.bounds else ""
        option = typer.Option(
            *names,
            help=parameter.help[:1].upper() + parameter.help[1:] + bounds + ".",
            show_default="off" if default in (None, False, "") else str(default),
            rich_help_panel=f"Parameters of {method.name}",
        )
        result.append(_keyword(prefix + parameter.name, Annotated[kind | None, option], None))
        if kind is not bool:
            # Hidden, because the epilog lists it. Parameters that cannot be off have one too, for a clear message.
            without = typer.Option(behind + off_option(parameter.name)[2:], hidden=True)
            result.append(_keyword(f"{prefix}without_{parameter.name}", Annotated[bool, without], False))
    return result


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def off_option(name: str) -> str:
    """The option that switches a parameter off."""
    return "--no-" + name.replace("_", "-")


def configured(chosen: Chosen, recipe: "Recipe | None", given: dict[str, Any]) -> "Method":
    """The method with the parameters of the recipe, and those of the command line in their place.

    Args:
        chosen: The method, and those that follow it.
        recipe: The recipe that was named.
        given: The values of the options of `chosen`.

    Raises:
        QueryveilError: If a parameter is wrong, switched off where that is impossible, or steps make no sense.
    """
    from queryveil.methods import Pipeline
    from queryveil.methods.pipeline import with_parameters

    if chosen.method is Pipeline:
        assert recipe is not None  # noqa: S101
        _same_method(chosen.method, recipe)
        steps = recipe.parameters["steps"]
        if given["k"] is None:
            return Pipeline(steps)
        changed = [with_parameters(step, {"k": given["k"]}) for step in steps]
        if not any("k" in step["parameters"] for step in changed):
            raise QueryveilError("No step of the recipe has a k; leave -k out.")
        return Pipeline(changed)
    first = _configured(chosen.method, recipe, given)
    others = []
    for place, method in enumerate(chosen.then, 1):
        prefix = f"then_{place}_"
        mine = {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}
        others.append(_configured(method, None, mine))
    return Pipeline([first, *others]) if others else first


def _same_method(method: "type[Method]", recipe: "Recipe") -> None:
    if recipe.method != method.name:
        raise QueryveilError(
            f"--method is {method.name}, but the recipe is for {recipe.method}; leave one of them out."
        )


def _configured(method: "type[Method]", recipe: "Recipe | None", given: dict[str, Any]) -> "Method":
    """One method, with the parameters of the recipe and of the command line."""
    from queryveil.methods import parameters_of

    if recipe is not None:
        _same_method(method, recipe)
    many = {parameter.name for parameter in parameters_of(method) if parameter.many}
    named = {
        name: listed(given[name]) if name in many else given[name]
        for name in method.model_fields
        if given[name] not in (None, [])
    }
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
