"""queryveil sweep: what each k and theta would release."""

from itertools import product
from typing import Annotated, Any

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress
from queryveil.cli.reading import Reader


def sweep(
    reader: Reader,
    log: options.Logs,
    k: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--k",
            metavar="K,...",
            help="Values of k, the least distinct users.",
            show_default="2,5,10,20,50, up to the users of the log",
        ),
    ] = None,
    theta: Annotated[
        str, typer.Option("--theta", metavar="T,...", help="Values of theta, the least cosine.")
    ] = "0.9,0.8",
    vectors: options.Vectors = "words",
    concept_min_users: options.ConceptMinUsers = None,
    min_term_users: Annotated[
        int | None, typer.Option("--min-term-users", help="Least users of every word.", show_default="k")
    ] = None,
    min_query_users: Annotated[int, typer.Option("--min-query-users", help="Least users of the query itself.")] = 1,
    max_new_users: Annotated[
        int | None,
        typer.Option("--max-new-users", help="Most new accounts that count as users of a query.", show_default="all"),
    ] = None,
    similarity: options.Similarity = "words",
    theta_meaning: options.ThetaMeaning = 0.85,
    theta_clicks: options.ThetaClicks = 0.8,
    chart: Annotated[
        str | None,
        typer.Option("--chart", metavar="FILE", help="Draw a chart to this .svg, .png or .html file."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier chart.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show what equality and affinity would release for several k and theta, in one run.

    It shows the share of distinct queries and of events, as tables and as a chart.
    """
    from queryveil.assess.drawings import check_chart
    from queryveil.assess.sweeps import sweep as make
    from queryveil.methods import Affinity
    from queryveil.text.show import percent

    ks = None if k is None else options.numbers("-k", k, int)
    thetas = options.numbers("--theta", theta, float)
    rest = {
        "vectors": vectors,
        "concept_min_users": concept_min_users,
        "min_term_users": min_term_users,
        "min_query_users": min_query_users,
        "max_new_users": max_new_users,
        "similarity": tuple(similarity.split(",")),
        "theta_meaning": theta_meaning,
        "theta_clicks": theta_clicks,
    }
    for one_k, one_theta in product(ks or [2], thetas):  # a wrong parameter must fail before the log is read
        Affinity(k=one_k, theta=one_theta, **rest)
    if chart is not None:
        check_chart(chart, overwrite=overwrite)
    read = reader(log)
    with progress("Sweeping"):
        found = make(read, ks=ks, thetas=thetas, **rest)
    if chart is not None:
        found.save_chart(chart, overwrite=overwrite)
    if as_json:
        typer.echo(printing.json_text(found.as_dict()))
        return
    methods = list(dict.fromkeys(point.method for point in found.points))
    by = {(point.method, point.k): point for point in found.points}
    parts: list[Any] = []
    for title, whole, name in (
        (f"Distinct queries released, of {found.queries:,}", found.queries, "queries"),
        (f"Events released, of {found.events:,}", found.events, "events"),
    ):
        rows = [
            (str(k), *(f"{getattr(by[m, k], name):,} ({percent(getattr(by[m, k], name) / whole)})" for m in methods))
            for k in dict.fromkeys(point.k for point in found.points)
        ]
        parts.append(printing.table(title, ("k", *methods), rows))
    parts.append(f"{found.points[0].concepts:,} concepts of at least {found.points[0].concept_min_users:,} users.")
    if found.points[0].concepts == 0:
        parts.append("There is no concept, so every query falls back to equality.")
    if chart is not None:
        parts.append(f"Drawn in {printing.printable(chart)}.")
    printing.tables(*parts)
