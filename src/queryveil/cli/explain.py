"""queryveil explain: why is a query in a release, or not?"""

from dataclasses import asdict
from typing import Annotated

import typer

from queryveil.cli import options


def explain(
    reader: options.Reader,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The folder of the release.", show_default=False)],
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="The query; case and spaces do not matter.", show_default=False)
    ],
    original: options.Original,
    taxonomy: options.TaxonomyOf = None,
    as_json: options.Json = False,
) -> None:
    """Explain why a query is in a release or not: every rule, and what was found for the query."""
    from queryveil.assess.explanation import explain as make
    from queryveil.knowledge import known_as
    from queryveil.release import Release

    loaded = Release.load(release)
    if taxonomy is not None:
        known_as(str(loaded.manifest.parameters.get("taxonomy")), taxonomy)
    found = make(loaded, reader(original), query)
    if as_json:
        typer.echo(options.json_text(asdict(found) | {"released": found.released}))
        return
    where = f"is in the release ({found.rows:,} rows)" if found.released else "is not in the release"
    typer.echo(f"'{options.printable(found.query)}' {where}.")
    for reason in found.reasons:
        mark = {True: "passes", False: "FAILS ", None: "      "}[reason.passed]
        typer.echo(f"  {mark}  {reason.rule}: {options.printable(reason.found)}")
