"""queryveil fragments: the list of fragments that stay allowed."""

import datetime
from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress
from queryveil.cli.reading import AnyReader


def fragments(
    reader: AnyReader,
    log: options.Logs,
    output: Annotated[str, typer.Option("--output", "-o", help="The list to write, ending with .tsv.")],
    min_users: Annotated[int, typer.Option(min=2, help="Least distinct users of a fragment.")] = 50,
    words: Annotated[int, typer.Option(min=1, max=5, help="Longest run of words that is a fragment.")] = 2,
    keep: Annotated[
        str | None, typer.Option(metavar="FILE", help="An earlier list, whose fragments stay, with their dates.")
    ] = None,
    since: Annotated[
        datetime.datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="The date of new fragments.", show_default="today"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier list.")] = False,
    as_json: options.Json = False,
) -> None:
    """List the words and runs of words that enough users typed, for 'anonymize --fragment-list'.

    Only its owner can read the list. Keep it from one release to the next, and do not publish it.
    """
    from queryveil.files.folders import check_file
    from queryveil.methods.rule_fragments import list_fragments

    check_file(output, (".tsv",), overwrite)  # before the log is read
    read = reader(log)
    with progress("Counting"):
        day = None if since is None else since.date()
        n = list_fragments(read, output, min_users=min_users, words=words, since=day, keep=keep, overwrite=overwrite)
    if as_json:
        typer.echo(printing.json_text({"list": output, "fragments": n}))
        return
    typer.echo(f"Written to {printing.printable(output)}: {n:,} fragments that stay allowed. Keep it private.")
