"""queryveil verify: does a release hold what it promises?"""

from dataclasses import asdict
from typing import Annotated

import typer

from queryveil.cli import options


def verify(
    reader: options.AnyReader,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The release directory.", show_default=False)],
    original: options.Original,
    certificate: Annotated[
        str | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="What 'anonymize --certificate' wrote; it makes checks quicker and is not believed.",
            show_default=False,
        ),
    ] = None,
    knowledge: options.KnowledgeOf = None,
    as_json: options.Json = False,
) -> None:
    """Check a release against the log it was made from: files, fingerprint, counts, and every claim.

    Exits with 0 if everything holds, with 1 and the first counter-example of each broken promise if not.
    """
    from queryveil.certificates import load_certificate
    from queryveil.files import is_address
    from queryveil.knowledge import known_as, open_knowledge
    from queryveil.release import Release
    from queryveil.verifier import verify as check

    given = load_certificate(certificate) if certificate is not None else None
    if not is_address(release):
        made = Release.load(release)  # a release that is none must not wait for the log
        if knowledge is not None:
            open_knowledge(knowledge)
            known_as(str(made.manifest.parameters.get("knowledge")), knowledge)
    log = reader(original)
    with options.working("Checking"):
        found = check(release, log, certificate=given)
    if as_json:
        typer.echo(options.json_text({"holds": found.holds, "verdicts": [asdict(v) for v in found.verdicts]}))
    else:
        for verdict in found.verdicts:
            because = (
                f" Counter-example: {options.printable(verdict.counterexample)}." if verdict.counterexample else ""
            )
            how = f" ({options.printable(verdict.how)})" if verdict.how else ""
            typer.echo(f"{'holds  ' if verdict.holds else 'REFUTED'}  {verdict.claim}{how}{because}")
        typer.echo("The release holds what it promises." if found.holds else "The release is refuted.")
    raise typer.Exit(0 if found.holds else 1)
