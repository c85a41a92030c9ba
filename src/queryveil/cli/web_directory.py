"""queryveil web-directory: taxonomies from the dumps of web directories."""

from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress


def build(
    dump: Annotated[
        list[str],
        typer.Argument(
            metavar="DUMP",
            help="structure.rdf.u8 and content.rdf.u8, Curlie's two tables, one table of paths and addresses or names,"
            " or SKOS as N-Triples.",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The folder to make, such as odp.qvd.")],
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out",
            metavar="NAME,...",
            help="Top categories to leave out, such as World,Regional.",
            show_default="nothing",
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            "--language",
            metavar="CODE,...",
            help="Language of its texts, such as de; several with commas.",
        ),
    ] = "en",
    map_world: Annotated[
        bool,
        typer.Option("--map-world", help="Put categories of World into the English ones that they are linked to."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier web directory.")] = False,
    as_json: options.Json = False,
) -> None:
    """Make a taxonomy from the dump of a web directory or another tree. This is done once; opening it later is quick.

    Files may be compressed. Entries that cannot be read are left out and counted.
    """
    from queryveil.knowledge.directory import build_directory

    with progress("Building", "sites") as update:
        about = build_directory(
            dump,
            output,
            leave_out=options.listed(leave_out),
            language=language,
            map_world=map_world,
            overwrite=overwrite,
            progress=update,
        )
    if as_json:
        typer.echo(printing.json_text(about))
        return
    left_out = about.pop("left_out")
    names = ("categories", "levels", "sites", "hosts", "terms", "names")
    rows = [(name, f"{about[name]:,}") for name in names if about[name]] + [
        (what if what.startswith("mended") else f"left out: {what}", f"{n:,}") for what, n in left_out.items()
    ]
    shown = printing.printable(output)
    printing.tables(
        printing.table(f"The {'web directory' if about['sites'] else 'taxonomy'} {shown}", ("", ""), rows),
        f"To categorize a log with it:  queryveil categorize LOG --taxonomy {shown}",
    )
