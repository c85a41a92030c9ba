"""queryveil categorize: the categories of queries, and how much of a log they cover."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli import options, printing, resolvers
from queryveil.cli.labels import Truth, read_topics
from queryveil.cli.progress import progress
from queryveil.cli.reading import Reader
from queryveil.errors import QueryveilError, did_you_mean

if TYPE_CHECKING:
    from queryveil.knowledge import Links

_ITEMS = {"terms": "terms", "phrases": "phrases", "text": "phrases", "domains": "sites", "embedding": None}


def categorize(
    reader: Reader,
    log: options.Logs,
    taxonomy: Annotated[
        str, typer.Option("--taxonomy", help="wordnet, a web directory, or several with commas.")
    ] = "wordnet",
    linker: Annotated[
        str, typer.Option("--linker", help="What to look up: terms, phrases, text, domains or embedding.")
    ] = "terms",
    categories: Annotated[
        int, typer.Option("--categories", min=1, max=10, help="Most categories of each term, phrase or site.")
    ] = 1,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", help="Least confidence of a category, from 0 to 1, for embedding.")
    ] = 0.4,
    resolver: resolvers.Named = None,
    send_queries_to: resolvers.SendTo = None,
    cache: resolvers.Cache = None,
    rate: resolvers.Rate = None,
    timeout: resolvers.Timeout = None,
    truth: Truth = None,
    examples: Annotated[int, typer.Option("--examples", min=0, help="How many queries to show.")] = 10,
    as_json: options.Json = False,
) -> None:
    """Find the category of each query in a taxonomy, and show how much of the log that covers.

    It shows queries of the log as they were typed, so it is for people who may see the log.
    """
    from queryveil.knowledge import LINKERS, hosts_needed, open_taxonomy, topics_of
    from queryveil.knowledge import categorize as run
    from queryveil.text.show import percent

    topics = None if truth is None else read_topics(truth)

    if linker not in LINKERS:
        raise QueryveilError(f"There is no linker '{linker}'; {did_you_mean(linker, LINKERS)}.")
    base = open_taxonomy(taxonomy)
    if linker == "domains":
        hosts_needed(base)
    elif resolver or send_queries_to:
        raise QueryveilError("--resolver and --send-queries-to are for --linker domains.")
    chosen = resolvers.chosen(resolver, base, send_queries_to, cache, rate, timeout)
    read = reader(log)
    with progress("Categorizing", "queries") as update:
        found = run(
            read, base, linker, categories=categories, min_confidence=min_confidence, resolver=chosen, progress=update
        )
        read.ensure_tables("query_users")
        issued = read.engine.fetch("SELECT user_id, query_id FROM query_users")
        covered = found.coverage(read.events_per_query, issued)
        right = [] if topics is None else found.accuracy(topics_of(read.query_text, topics))
    shown = _examples(found, read.query_text, read.events_per_query, examples)
    if as_json:
        result = {"taxonomy": base.name, "linker": linker, "coverage": [row.__dict__ for row in covered]}
        if topics is not None:
            result["accuracy"] = [row.__dict__ for row in right]
        typer.echo(printing.json_text(result | {"examples": shown}))
        return
    items = _ITEMS[linker]
    shares = {f"distinct {items}": "items", f"{items} of queries": "occurrences"} if items else {}
    shares |= {"distinct queries": "queries", "events": "events", "users": "users"}
    cells = [
        (
            f"level {row.level}" if row.level else "categorized",
            *(percent(getattr(row, share)) for share in shares.values()),
        )
        for row in covered
    ]
    title = f"What {printing.printable(base.name)} covers of {read.n_queries:,} distinct queries, by {linker}"
    parts: list[Any] = [printing.table(title, ("", *shares), cells)]
    if topics is not None:
        title = "How often the first category of a query is its topic"
        cells = [(f"level {row.level}", percent(row.of_categorized), percent(row.of_all)) for row in right]
        parts.append(printing.table(title, ("", "of those with a category", "of all"), cells))
    if shown:
        lines = [(_short(str(row["query"])), printing.printable(_line(row["nodes"], linker))) for row in shown]
        parts.append(
            printing.table("The most frequent queries and their categories", ("query", "categories"), lines, texts=2)
        )
    printing.tables(*parts)


def _short(query: str) -> str:
    from queryveil.text.show import shortened

    return printing.printable(shortened(query, 80))


def _examples(found: "Links", queries: Any, events: Any, most: int) -> list[dict[str, Any]]:
    """The most frequent queries, ties broken by the smallest id, and the nodes of their items."""
    import numpy as np

    order = np.lexsort((np.arange(len(events)), -events))[:most]
    shown = []
    for q in order.tolist():
        nodes = [
            {
                "item": found.items[int(item)].as_py(),
                "node": found.tree.path(int(found.node[at]), between=" > "),
                "confidence": round(float(found.confidence[at]), 3),
            }
            for item in found.item[found.start[q] : found.start[q + 1]]
            for at in range(found.first[item], found.first[item + 1])
        ]
        shown.append({"query": queries[q].as_py(), "nodes": nodes})
    return shown


def _line(nodes: list[dict[str, Any]], linker: str) -> str:
    """The nodes of a query, with their confidence if they were found by meaning."""
    shown = [
        f"{node['node']} ({node['confidence']:.2f})" if linker == "embedding" else str(node["node"]) for node in nodes
    ]
    return "; ".join(shown) or "-"
