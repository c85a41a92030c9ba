"""Options that several verbs share."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from queryveil.release import Release

N = TypeVar("N", int, float)

Logs = Annotated[
    list[str], typer.Argument(metavar="LOG", help="The log: a file, several, a folder, or a quoted pattern.")
]
ReleaseFolder = Annotated[str, typer.Argument(metavar="RELEASE", help="The folder of the release.")]
_ORIGINAL = typer.Option("--original", metavar="LOG", help="The original log; repeat for several files.")
Original = Annotated[list[str], _ORIGINAL]
MaybeOriginal = Annotated[list[str] | None, _ORIGINAL]
CountedOn = Annotated[
    list[str] | None,
    typer.Option(
        "--counted-on",
        metavar="LOG",
        help="Another log on which rules count the users of fragments, such as 13 months; repeat for several files.",
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
        metavar="FILE",
        help="A list that the release was made with; repeat for several.",
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
        help="Exit with 1 unless this policy is met: a TOML file, or 'default' for the built-in one.",
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
Seed = Annotated[int, typer.Option("--seed", help="Random seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


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
