"""queryveil verify: does a release hold what it promises?"""

from dataclasses import asdict
from typing import Annotated

import typer

from queryveil.cli import options


def verify(
    reader: options.AnyReader,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The release directory.", show_default=False)],
    original: options.Original,
    knowledge: options.KnowledgeOf = None,
    rebuild: Annotated[
        bool | None,
        typer.Option(
            "--rebuild/--no-rebuild",
            help="Make the release again and compare; without its seed, whatever the pseudonyms are.",
            show_default="where possible",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check a release against the log it was made from: files, fingerprint, counts, and every claim.

    Exits with 0 if everything holds, with 1 and the first counter-example of each broken promise if not.
    """
    from queryveil.files import is_address
    from queryveil.knowledge import known_as, open_knowledge
    from queryveil.release import Release
    from queryveil.verification import verify as check

    if not is_address(release):
        made = Release.load(release)  # a release that is none must not wait for the log
        if knowledge is not None:
            open_knowledge(knowledge)
            known_as(str(made.manifest.parameters.get("knowledge")), knowledge)
    log = reader(original)
    with options.working("Checking"):
        found = check(release, log, rebuild=rebuild)
    if as_json:
        typer.echo(options.json_text(asdict(found) | {"holds": found.holds}))
    else:
        for verdict in found.verdicts:
            because = (
                f" Counter-example: {options.printable(verdict.counterexample)}." if verdict.counterexample else ""
            )
            typer.echo(f"{'holds  ' if verdict.holds else 'REFUTED'}  {verdict.claim}{because}")
        for sentence in found.unchecked:
            typer.echo(f"open     {options.printable(sentence)}")
        typer.echo("The release holds what it promises." if found.holds else "The release is refuted.")
    raise typer.Exit(0 if found.holds else 1)
