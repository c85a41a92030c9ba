"""The options of every verb for what it says on standard error."""

from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any

import typer

from queryveil.cli.progress import style
from queryveil.cli.reading import keywords, with_options
from queryveil.errors import QueryveilError, did_you_mean

PANEL = "Messages"
_FORMATS = ("text", "json")


def messages(
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress and no notes; warnings and errors stay.", rich_help_panel=PANEL)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name every step, and how long it took.", rich_help_panel=PANEL)
    ] = False,
    log_format: Annotated[
        str,
        typer.Option(
            "--log-format",
            metavar="FORMAT",
            help="What is written to standard error: text, or json for one object a line.",
            rich_help_panel=PANEL,
        ),
    ] = "text",
) -> None:
    """Set how to speak."""
    if quiet and verbose:
        raise QueryveilError("--quiet and --verbose contradict each other; leave one of them out.")
    if log_format not in _FORMATS:
        raise QueryveilError(f"There is no log format '{log_format}'; {did_you_mean(log_format, _FORMATS)}.")
    style.quiet, style.verbose, style.events = quiet, verbose, log_format == "json"


def with_messages(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that also takes these options."""
    own = keywords(messages)

    def run(**given: Any) -> None:
        messages(**{option.name: given.pop(option.name) for option in own})
        verb(**given)

    return with_options(run, [*keywords(verb), *own], verb.__doc__)


def options(words: list[str]) -> list[str]:
    """The part of a command line that may be options."""
    return words[: words.index("--")] if "--" in words else words


def prepare(words: list[str]) -> None:
    """Set how to speak until the command line is understood, for what is wrong with it."""
    given = options(words)
    style.quiet, style.verbose = "--quiet" in given, False
    style.events = "--log-format=json" in given or ("--log-format", "json") in pairwise(given)
