"""queryveil verify: does a release keep its promises?"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from queryveil.cli import options, printing
from queryveil.cli.outcome import failure, finish
from queryveil.cli.progress import progress
from queryveil.cli.reading import AnyReader, as_released, read_counted
from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from queryveil.assess.signing import SignedVerification
    from queryveil.log import QueryLog
    from queryveil.verification.verifier import Verification

_REFUTED = "The release is refuted."
_FILES = "The files are complete and unchanged; what the release promises was not checked."


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
    files_only: Annotated[
        bool,
        typer.Option("--files-only", help="Without the log, check only that the files are complete and unchanged."),
    ] = False,
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

    With --signed-by, check that it is the release that the owner of a key signed, with or without the log. With
    --files-only, check what the files alone show. Exits with 0 if everything holds; with 7 if the log is not the one
    that the release was made from; otherwise with 1 and the first counter-example of each broken promise.
    """
    from queryveil.assess.signing import verify_signature
    from queryveil.claims.certificates import load_certificate
    from queryveil.files.folders import is_address
    from queryveil.release import Release
    from queryveil.sources import is_store
    from queryveil.verification import Verification, verify_files
    from queryveil.verification import verify as check

    given = load_certificate(certificate) if certificate is not None else None
    # One in an object store is fetched once, and looked at here.
    spark = reader.keywords["engine"] == "spark"
    checked = Release.load(release) if is_store(release) and not spark else release
    signed = None if signed_by is None else verify_signature(checked, signed_by, statement=statement)
    if signed is None and ((original is None and not files_only) or statement is not None):
        raise QueryveilError(
            "Give --original LOG to check what is promised, --signed-by KEY.pub to check who signed, or --files-only to"
            " check only the files."
        )
    if files_only and original is not None:
        raise QueryveilError("--files-only is for those without the log; leave it or --original out.")
    if files_only and (signed is None or signed.holds):
        with progress("Checking"):
            found = verify_files(checked)
        verdicts = (*(signed.verdicts if signed is not None else ()), *found.verdicts)
        show_verdicts(replace(found, verdicts=verdicts), _FILES, _REFUTED, as_json, signed)
    if signed is not None and (original is None or not signed.holds):
        show_verdicts(
            Verification(signed.verdicts), "The release is the one that was signed.", _REFUTED, as_json, signed
        )
    read: Callable[[Sequence[str]], QueryLog] = reader
    if isinstance(checked, Release) or not is_address(checked):
        # A wrong folder must fail before the log is read.
        loaded = checked if isinstance(checked, Release) else Release.load(checked)
        options.use_taxonomy(loaded, taxonomy)
        read = as_released(reader, loaded)
    log = read_counted(read, original or (), counted_on)
    with progress("Checking"):
        found = check(checked, log, certificate=given, lists=lists or (), rebuild=rebuild)
    if signed is not None:
        found = replace(found, verdicts=(*signed.verdicts, *found.verdicts, *signed.repeated(found)))
    as_far = ", as far as it was checked" if found.unchecked else ""
    show_verdicts(found, f"The release keeps its promises{as_far}.", _REFUTED, as_json, signed)


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
    from queryveil.verification.verifier import OTHER_LOG

    stated = None if signed is None or signed.statement is None else signed.statement.predicate
    if found.other_log:
        refuted = OTHER_LOG[0].upper() + OTHER_LOG[1:]
    if as_json:
        more = {} if signed is None else {"statement": None if stated is None else stated.model_dump(mode="json")}
        typer.echo(printing.json_text({"holds": found.holds} | asdict(found) | more | failure(found.code, refuted)))
    else:
        for verdict in found.verdicts:
            headline, *exact = map(printing.printable, verdict.lines)
            because = (
                f" Counter-example: {printing.printable(verdict.counterexample)}." if verdict.counterexample else ""
            )
            how = f" ({printing.printable(verdict.how)})" if verdict.how else ""
            kept = "holds  " if verdict.holds else "differs" if found.other_log else "REFUTED"
            typer.echo("\n         ".join([f"{kept}  {headline}", *exact]) + how + because)
        for sentence in found.unchecked:
            typer.echo(f"open     {printing.printable(sentence)}")
        # A statement is about the files that were signed, so it is shown only if these are the files.
        for line in stated.sentences if stated is not None and signed is not None and signed.holds else ():
            typer.echo(f"stated   {printing.printable(line)}")
        typer.echo(held if found.holds else refuted)
    finish(found.code)
