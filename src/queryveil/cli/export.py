"""queryveil export: a release in the layout that its readers load."""

from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress


def export(
    release: options.ReleaseFolder,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder to write.")],
    format: Annotated[str, typer.Option(help="parquet, csv, or ubi for documents of OpenSearch UBI.")] = "parquet",
    partition_by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,...",
            help="Columns whose values become folders, such as period,country; period is the month of the time.",
            show_default="one file",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write a release as Parquet or CSV in partitions, or as documents of UBI, with a data dictionary beside it.

    The files of the release must be those of its manifest; check with 'verify' what it promises. The folder is for
    readers, and is not a release itself.
    """
    from queryveil.release.export import export as write

    columns = options.listed(partition_by)
    with progress("Exporting"):
        write(release, output, format=format, partition_by=columns)
    if as_json:
        typer.echo(printing.json_text({"export": output, "format": format, "partition_by": columns}))
        return
    typer.echo(f"Written to {printing.printable(output)}; its schema.json says what the columns are.")
