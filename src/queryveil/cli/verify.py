"""queryveil verify: does a release keep its promises?"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress
from queryveil.cli.reading import AnyReader, in_language_of, read_counted
from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from queryveil.assess.signing import SignedVerification
    from queryveil.log import QueryLog
    from queryveil.verification.verifier import Verification

_REFUTED = "The release is refuted."


def verify(
    reader: AnyReader,
    release: options.ReleaseFolder,
    original: options.MaybeOriginal = None,
    certificate: options.Certificate = None,
    signed_by: Annotated[
        str | None,
        typer.Option(
            "--signed-by",
            metavar="KEY.pub",
            help="Check that the owner of this public key signed the release; needs no log.",
        ),
    ] = None,
    statement: Annotated[
        str | None,
        typer.Option(
            "--statement", metavar="FILE", help="The signed statement.", show_default="RELEASE.statement.json"
        ),
    ] = None,
    taxonomy: options.TaxonomyOf = None,
    lists: options.Lists = None,
    rebuild: Annotated[
        bool | None,
        typer.Option(
            "--rebuild/--no-rebuild",
            help="Make the release again and compare it; without its certificate, all but the pseudonyms.",
            show_default="where possible",
        ),
    ] = None,
    counted_on: options.CountedOn = None,
    as_json: options.Json = False,
) -> None:
    """Check a release against the log it was made from: files, fingerprint, counts, and every claim.

    With --signed-by, check that it is the release that the owner of a key signed, with or without the log. Exits with 0
    if everything holds; otherwise with 1 and the first counter-example of each broken promise.
    """
    from queryveil.assess.signing import verify_signature
    from queryveil.claims.certificates import load_certificate
    from queryveil.files.folders import is_address
    from queryveil.release import Release
    from queryveil.verification.rebuild import verify as check
    from queryveil.verification.verifier import Verification

    given = load_certificate(certificate) if certificate is not None else None
    signed = None if signed_by is None else verify_signature(release, signed_by, statement=statement)
    if signed is None and (original is None or statement is not None):
        raise QueryveilError("Give --original LOG to check what is promised, --signed-by KEY.pub to check who signed.")
    if signed is not None and (original is None or not signed.holds):
        show_verdicts(
            Verification(signed.verdicts), "The release is the one that was signed.", _REFUTED, as_json, signed
        )
    read: Callable[[Sequence[str]], QueryLog] = reader
    if not is_address(release):
        loaded = Release.load(release)  # a wrong folder must fail before the log is read
        options.use_taxonomy(loaded, taxonomy)
        read = in_language_of(reader, loaded)
    log = read_counted(read, original or (), counted_on)
    with progress("Checking"):
        found = check(release, log, certificate=given, lists=lists or (), rebuild=rebuild)
    if signed is not None:
        found = replace(found, verdicts=(*signed.verdicts, *found.verdicts, *signed.repeated(found)))
    show_verdicts(found, "The release keeps its promises.", _REFUTED, as_json, signed)


def show_verdicts(
    found: "Verification", held: str, refuted: str, as_json: bool, signed: "SignedVerification | None" = None
) -> NoReturn:
    """Print the verdicts and what a statement says, and exit.

    Args:
        found: What was checked.
        held: What to say if everything holds.
        refuted: What to say if not.
        as_json: Whether to print JSON.
        signed: What was found about the signature, if there is one.
    """
    stated = None if signed is None or signed.statement is None else signed.statement.predicate
    if as_json:
        more = {} if signed is None else {"statement": None if stated is None else stated.model_dump(mode="json")}
        typer.echo(printing.json_text({"holds": found.holds} | asdict(found) | more))
    else:
        for verdict in found.verdicts:
            headline, *exact = map(printing.printable, verdict.lines)
            because = (
                f" Counter-example: {printing.printable(verdict.counterexample)}." if verdict.counterexample else ""
            )
            how = f" ({printing.printable(verdict.how)})" if verdict.how else ""
            kept = "holds  " if verdict.holds else "REFUTED"
            typer.echo("\n         ".join([f"{kept}  {headline}", *exact]) + how + because)
        for sentence in found.unchecked:
            typer.echo(f"open     {printing.printable(sentence)}")
        # A statement is about the files that were signed, so it is shown only if these are the files.
        for line in stated.sentences if stated is not None and signed is not None and signed.holds else ():
            typer.echo(f"stated   {printing.printable(line)}")
        as_far = f"{held.removesuffix('.')}, as far as it was checked." if found.unchecked else held
        typer.echo(as_far if found.holds else refuted)
    raise typer.Exit(0 if found.holds else 1)
