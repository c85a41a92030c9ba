"""queryveil explain: why is a query in a release, or not?"""

from dataclasses import asdict
from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress
from queryveil.cli.reading import Reader, as_released, read_counted


def explain(
    reader: Reader,
    release: options.ReleaseFolder,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query; case and spaces do not matter.")],
    original: options.Original,
    taxonomy: options.TaxonomyOf = None,
    counted_on: options.CountedOn = None,
    lists: options.Lists = None,
    as_json: options.Json = False,
) -> None:
    """Explain why a query is in a release or not: every rule, and what was found for the query."""
    from queryveil.assess.explanation import explain as make
    from queryveil.release import Release

    loaded = Release.load(release, lists=lists or ())
    options.use_taxonomy(loaded, taxonomy)
    log = read_counted(as_released(reader, loaded), original, counted_on)
    with progress("Explaining"):
        found = make(loaded, log, query)
    if as_json:
        typer.echo(printing.json_text(asdict(found) | {"released": found.released}))
        return
    where = f"is in the release ({found.rows:,} rows)" if found.released else "is not in the release"
    typer.echo(f"'{printing.printable(found.query)}' {where}.")
    for reason in found.reasons:
        mark = {True: "passes", False: "FAILS ", None: "      "}[reason.passed]
        step = "" if reason.step is None else f"{reason.step}: "
        typer.echo(f"  {mark}  {step}{reason.rule}: {printing.printable(reason.found)}")
