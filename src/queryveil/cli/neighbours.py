"""queryveil neighbours: the queries that are similar to one."""

from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress
from queryveil.cli.reading import Reader


def neighbours(
    reader: Reader,
    log: options.Logs,
    query: Annotated[str, typer.Option("--query", "-q", help="The query, in any spelling.")],
    theta: Annotated[float, typer.Option("--theta", help="Least cosine of similar queries.")] = 0.9,
    max_vertices: Annotated[
        int, typer.Option("--max-vertices", min=1, help="Most queries in the graph; V_max in the paper.")
    ] = 2000,
    vectors: options.Vectors = "words",
    concept_min_users: options.ConceptMinUsers = None,
    min_term_users: Annotated[int, typer.Option("--min-term-users", help="Least users of every word.")] = 5,
    similarity: options.Similarity = "words",
    theta_meaning: options.ThetaMeaning = 0.85,
    theta_clicks: options.ThetaClicks = 0.8,
    top: Annotated[int, typer.Option("--top", min=1, help="How many to show.")] = 30,
    draw: Annotated[
        str | None, typer.Option("--draw", metavar="FILE", help="Draw the graph to this .svg file.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier drawing.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show the queries that are similar to one query, and the anonymity degree of each.

    The graph grows from the query to its neighbours and on to theirs, until it is complete or has --max-vertices
    queries. It shows queries of the log as they were typed, released or not, so it is for people who may see the log.
    """
    from queryveil.assess.neighbourhoods import neighbourhood
    from queryveil.files.folders import check_file
    from queryveil.methods import Affinity

    rest = {
        "vectors": vectors,
        "concept_min_users": concept_min_users,
        "min_term_users": min_term_users,
        "similarity": tuple(similarity.split(",")),
        "theta_meaning": theta_meaning,
        "theta_clicks": theta_clicks,
    }
    Affinity(theta=theta, **rest)  # a wrong parameter must fail before the log is read
    if draw is not None:
        check_file(draw, (".svg",), overwrite)
    read = reader(log)
    with progress("Growing the graph"):
        found = neighbourhood(read, query, theta=theta, max_vertices=max_vertices, **rest)
    if draw is not None:
        found.save_drawing(draw, overwrite=overwrite)
    if as_json:
        typer.echo(printing.json_text(found.as_dict()))
        return
    rows = [
        (printing.printable(n.query), f"{n.users:,}", _degree(n.degree), f"{n.steps:,}") for n in found.queries[:top]
    ]
    whole = f"{len(found.queries):,} queries" + ("" if len(found.queries) <= top else f", the first {top}")
    exactness = (
        "This is the complete component, so the degrees are exact."
        if found.whole
        else "The graph was cut, so the degrees are lower bounds."
    )
    parts = [printing.table(whole, ("query", "users", "degree", "steps"), rows), exactness]
    if draw is not None:
        parts.append(f"Drawn in {printing.printable(draw)}, for people who may see the log.")
    printing.tables(*parts)


def _degree(degree: int) -> str:
    from queryveil.assess.neighbourhoods import MOST_DEGREE

    return f"{degree:,}" + (" or more" if degree == MOST_DEGREE else "")
