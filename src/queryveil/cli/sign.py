"""queryveil sign: a signed statement about a release."""

from functools import partial
from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.reading import Reader, as_released, read_counted


def sign(
    reader: Reader,
    release: options.ReleaseFolder,
    key: Annotated[str, typer.Option("--key", metavar="KEY", help="The private key, as 'keygen' makes it.")],
    original: options.MaybeOriginal = None,
    certificate: options.Certificate = None,
    attacks: options.Attacks = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="Sign only if this policy is met: a TOML file, or 'default'. Needs --original and --attacks.",
        ),
    ] = None,
    counted_on: options.CountedOn = None,
    lists: options.Lists = None,
    taxonomy: options.TaxonomyOf = None,
    reviewer: Annotated[
        str | None, typer.Option("--reviewer", metavar="NAME", help="Also state who reviewed the release.")
    ] = None,
    reviewed_on: Annotated[
        str | None,
        typer.Option("--reviewed-on", metavar="DATE", help="When, such as 2026-05-01.", show_default="today"),
    ] = None,
    comment: Annotated[str, typer.Option("--comment", help="What the reviewer says about it.")] = "",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="The statement, ending with .json.", show_default="RELEASE.statement.json"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier statement.")] = False,
    as_json: options.Json = False,
) -> None:
    """Sign a release: write a statement with the SHA-256 of its files and what is known about it.

    With --original the release is checked first; without it, the statement says that nothing was checked. The statement
    includes the SHA-256 of every --list. Exits with 1 and signs nothing if a check fails, with 6 if the --policy
    is not met.
    """
    from queryveil.assess.policy import load_policy
    from queryveil.assess.signing import Review
    from queryveil.assess.signing import sign as write
    from queryveil.claims.certificates import load_certificate
    from queryveil.release import Release

    rules = None if policy is None else load_policy(policy)
    if taxonomy is not None:
        options.use_taxonomy(Release.load(release), taxonomy)
    log = None
    if original is not None:
        log = partial(read_counted, as_released(reader, Release.load(release)), original, counted_on)
    place = write(
        release,
        key,
        log=log,
        certificate=None if certificate is None else load_certificate(certificate),
        attacks=attacks or (),
        policy=rules,
        lists=lists or (),
        review=None if reviewer is None else Review.by(reviewer, comment, reviewed_on),
        output=output,
        overwrite=overwrite,
    )
    if as_json:
        typer.echo(printing.json_text({"statement": str(place), "checked": original is not None}))
        return
    what = "what was checked" if original is not None else "that nothing was checked (give --original to check)"
    typer.echo(f"Written to {printing.printable(str(place))}; it states {what}. Publish it with the release.")
