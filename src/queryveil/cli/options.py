"""Options that several verbs share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from queryveil.errors import QueryveilError
from queryveil.files.folders import is_address

if TYPE_CHECKING:
    from queryveil.release import Release
    from queryveil.release.about import About

N = TypeVar("N", int, float)


def listed(given: Sequence[str] | str | None) -> list[str]:
    """A list that was given with commas, or by an option that was repeated, or both."""
    parts = [given] if isinstance(given, str) else given or ()
    return [part.strip() for one in parts for part in one.split(",") if part.strip()]


def _files(given: list[str] | None) -> list[str] | None:
    """The same for files: an address, and a file whose own name has a comma, stay whole."""
    if not given:
        return given
    return [part for one in given for part in ([one] if is_address(one) or Path(one).exists() else listed(one))]


Logs = Annotated[
    list[str], typer.Argument(metavar="LOG", help="The log: a file, several, a folder, or a quoted pattern.")
]
ReleaseFolder = Annotated[str, typer.Argument(metavar="RELEASE", help="The folder of the release.")]
_ORIGINAL = typer.Option(
    "--original", metavar="LOG,...", help="The original log; several files with commas.", callback=_files
)
Original = Annotated[list[str], _ORIGINAL]
MaybeOriginal = Annotated[list[str] | None, _ORIGINAL]
CountedOn = Annotated[
    list[str] | None,
    typer.Option(
        "--counted-on",
        metavar="LOG,...",
        help="Another log on which rules count the users of fragments, such as 13 months; several files with commas.",
        callback=_files,
        show_default="the log itself",
    ),
]
Certificate = Annotated[
    str | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        help="The file that 'anonymize --certificate' wrote; its seed allows checks of the fingerprint and every byte.",
    ),
]
Lists = Annotated[
    list[str] | None,
    typer.Option(
        "--list",
        metavar="FILE,...",
        help="A list that the release was made with; several with commas.",
        callback=_files,
    ),
]
Taxonomy = Annotated[
    str,
    typer.Option(
        "--taxonomy",
        help="Where queries are looked up: wordnet, a web directory that you built, or several with commas.",
    ),
]
TaxonomyOf = Annotated[
    str | None,
    typer.Option("--taxonomy", help="The taxonomy that the release was made with, if it is not in the current folder."),
]
UserMap = Annotated[
    str | None,
    typer.Option(
        "--user-map",
        metavar="FILE",
        help="The user map that 'anonymize --user-map' wrote; without it, many attacks and measures cannot run.",
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="Exit with 6 unless this policy is met: a TOML file, or 'default' for the built-in one.",
    ),
]
Vectors = Annotated[
    str,
    typer.Option(
        "--vectors",
        metavar="words|concepts",
        help="Compare queries by concepts and all other words, or by concepts only (weaker).",
    ),
]
Similarity = Annotated[
    str,
    typer.Option(
        "--similarity",
        metavar="S,...",
        help="What makes two queries similar, any of them: words, meaning, clicks.",
    ),
]
ThetaMeaning = Annotated[float, typer.Option("--theta-meaning", help="Least cosine of similar meanings.")]
ThetaClicks = Annotated[float, typer.Option("--theta-clicks", help="Least cosine of clicked addresses.")]
ConceptMinUsers = Annotated[
    int | None,
    typer.Option(
        "--concept-min-users",
        min=2,
        help="Least users of a concept, independent of k.",
        show_default="0.01 % of users, at least 5",
    ),
]
Tests = Annotated[int, typer.Option("--tests", help="On how many events of the log a task is tried.", min=1)]
Attacks = Annotated[
    list[str] | None,
    typer.Option(
        "--attacks",
        metavar="FILE,...",
        help="Findings to include, as 'attack --json' prints them; several files with commas.",
        callback=_files,
    ),
]
_ABOUT = "About the release"
Title = Annotated[str | None, typer.Option("--title", help="What the release is called.", rich_help_panel=_ABOUT)]
Source = Annotated[str | None, typer.Option("--source", help="Where the log comes from.", rich_help_panel=_ABOUT)]
Contact = Annotated[str | None, typer.Option("--contact", help="Whom to ask about it.", rich_help_panel=_ABOUT)]
Published = Annotated[
    str | None,
    typer.Option("--published", metavar="DATE", help="The day of publication.", rich_help_panel=_ABOUT),
]
Covers = Annotated[
    str | None,
    typer.Option(
        "--covers",
        metavar="FROM/TO",
        help="The first and last day of the log, such as 2026-01-01/2026-03-31.",
        rich_help_panel=_ABOUT,
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def about(recipe: "About | None" = None, **given: str | None) -> "About | None":
    """What the publisher says: what the recipe has, with the options in its place; None if nothing is said."""
    from queryveil.release.about import About

    words = {} if recipe is None else recipe.model_dump(exclude_none=True)
    words |= {name: text for name, text in given.items() if text is not None}
    return About.of(**words) if words else None


def use_taxonomy(release: "Release", taxonomy: str | None) -> None:
    """Find the taxonomy of a release at the place that `TaxonomyOf` names; a wrong place fails here."""
    if taxonomy is not None:
        from queryveil.knowledge import known_as, open_taxonomy

        open_taxonomy(taxonomy)
        for step in release.manifest.steps:
            known_as(str(step.parameters.get("taxonomy")), taxonomy)


def numbers(option: str, given: str, kind: type[N], *, least: int | None = None) -> list[N]:
    """Numbers with commas between them.

    Args:
        option: The option they were given for.
        given: What was given.
        kind: Their type.
        least: The smallest that is allowed.
    """
    try:
        found = [kind(part) for part in given.split(",")]
    except ValueError:
        found = []
    if not found or (least is not None and min(found) < least):
        noun = "whole numbers" if kind is int else "numbers"
        bound = "" if least is None else f" of at least {least}"
        raise QueryveilError(f"{option} takes {noun}{bound} with commas between them. Got '{given}' instead.")
    return found
