"""queryveil taxonomy: browse a taxonomy."""

from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.outcome import failure, finish

Name = Annotated[str, typer.Argument(metavar="TAXONOMY", help="wordnet, a web directory, or several with commas.")]


def show(
    name: Name,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A word, a phrase, or a site.")],
    categories: Annotated[int, typer.Option("--categories", min=1, help="How many nodes to show.")] = 5,
    neighbours: Annotated[int, typer.Option("--neighbours", min=0, help="How many neighbours to show.")] = 10,
    as_json: options.Json = False,
) -> None:
    """Show where a text is in a taxonomy: the path to it, the nodes below it, and those beside it."""
    from queryveil.knowledge import open_taxonomy
    from queryveil.knowledge.places import places

    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    missing = f"'{printing.printable(text)}' is not in {printing.printable(name)}."
    found = places(open_taxonomy(name), text, categories)
    if as_json:
        nodes = {"text": text, "nodes": [place.as_dict() for place in found]}
        typer.echo(printing.json_text(nodes | failure(None if found else "not-found", missing)))
    elif not found:
        printing.tables(missing)
    if not found:
        finish("not-found")
    if as_json:
        return
    for place in found:
        printing.tables(f"{printing.printable(' > '.join(place.path))}   (as {place.found_as})")
        for what, names in (("below", place.below), ("beside", place.beside)):
            if names and neighbours:
                more = f", and {len(names) - neighbours:,} more" if len(names) > neighbours else ""
                printing.tables(f"  {what}: {printing.printable(', '.join(names[:neighbours]))}{more}")
