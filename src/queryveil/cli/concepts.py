"""queryveil concepts: the frequent word runs of a log."""

from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress
from queryveil.cli.reading import Reader


def concepts(
    reader: Reader,
    log: options.Logs,
    top: Annotated[int, typer.Option("--top", min=1, help="How many to show.")] = 50,
    words: Annotated[
        int | None,
        typer.Option("--words", min=1, max=3, help="Only concepts of this many words.", show_default="1 to 3"),
    ] = None,
    concept_min_users: options.ConceptMinUsers = None,
    as_json: options.Json = False,
) -> None:
    """List the concepts of a log: runs of one to three words that many users type, the largest weight first.

    The weight of one word grows with the events that hold it. The weight of two or three is their mutual information:
    how much more often they occur together than by chance.
    """
    from queryveil.methods.affinity.concepts import default_concept_min_users, mine_concepts

    read = reader(log)
    least = concept_min_users or default_concept_min_users(read)
    with progress("Counting"):
        found = mine_concepts(read, least)
    chosen = [i for i in range(len(found)) if words in (None, found.order[i])]
    chosen = sorted(chosen, key=lambda i: -found.weight[i])
    rows = [
        {
            "concept": found.text(i),
            "words": int(found.order[i]),
            "weight": round(float(found.weight[i]), 4),
            "users": int(found.users[i]),
            "events": int(found.events[i]),
        }
        for i in chosen[:top]
    ]
    if as_json:
        typer.echo(printing.json_text({"concept_min_users": least, "concepts": len(chosen), "top": rows}))
        return
    cells = [
        (
            printing.printable(str(row["concept"])),
            str(row["words"]),
            f"{row['weight']:.2f}",
            f"{row['users']:,}",
            f"{row['events']:,}",
        )
        for row in rows
    ]
    title = f"{len(chosen):,} concepts of at least {least:,} users" + ("" if len(chosen) <= top else f", the top {top}")
    printing.tables(printing.table(title, ("concept", "words", "weight", "users", "events"), cells))
