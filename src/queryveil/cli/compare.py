"""queryveil compare: all methods on one log."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli import options, printing
from queryveil.cli.outcome import Ending, failure, finish
from queryveil.cli.progress import progress, style
from queryveil.cli.reading import Reader
from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from queryveil.assess.comparison import Board, Comparison

_SIGNS = {"waiting": "·", "at work": "▸", "done": "✓", "empty": "∅", "failed": "✗"}
_COLUMNS = ("release", "policy", "queries", "tail", "profiles", "terms", "risk")


def compare(
    reader: Reader,
    log: options.Logs,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="The folder for configurations, tables and the report.")
    ],
    methods: Annotated[str, typer.Option("--methods", metavar="NAME,...", help="Which methods, or all.")] = "all",
    k: Annotated[str, typer.Option("-k", "--k", metavar="K,...", help="Values of k, for methods with one.")] = (
        "2,5,10,20"
    ),
    epsilon: Annotated[
        str, typer.Option("--epsilon", metavar="E,...", help="Values of epsilon, for methods with one.")
    ] = "1,10",
    taxonomy: options.Taxonomy = "wordnet",
    web_directory: Annotated[
        str | None,
        typer.Option("--web-directory", help="A web directory that you built, where search looks sites up."),
    ] = None,
    tests: options.Tests = 2_000,
    seed: Annotated[int, typer.Option("--seed", help="Random seed, for everything but private noise.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=16, help="How many configurations at a time.")] = 2,
    policy: options.Policy = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a comparison of another log, seed or version.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compare all methods on one log: what each keeps, what each gives away, and which serves an aim best.

    Only releases that meet the policy are recommended; with --policy, it exits with 6 if none does. A configuration
    is stored when it is finished, and a run that was stopped continues from there. The folder describes the
    log, so it is for people who may see the log.
    """
    from queryveil.assess.comparison import grid, recommend
    from queryveil.assess.policy import load_policy
    from queryveil.knowledge import open_taxonomy
    from queryveil.reports import check_packages
    from queryveil.reports import compare as run

    check_packages()
    rules = load_policy(policy)
    ks, epsilons = options.numbers("-k", k, int, least=2), options.numbers("--epsilon", epsilon, float)
    named = None if methods == "all" else options.listed(methods)
    for place in (taxonomy, web_directory):
        if place is not None:
            open_taxonomy(place)
    grid(named, ks=ks, epsilons=epsilons)
    if min(epsilons) <= 0:
        raise QueryveilError(f"--epsilon takes numbers above 0. Got '{epsilon}' instead.")
    read = reader(log)
    with _live() as board:
        found = run(
            read,
            output,
            methods=named,
            ks=ks,
            epsilons=epsilons,
            taxonomy=taxonomy,
            web_directory=web_directory,
            tests=tests,
            seed=seed,
            threads=jobs,
            policy=rules,
            overwrite=overwrite,
            progress=board,
        )
    code: Ending | None = "policy-not-met" if policy is not None and not found.meeting else None
    if as_json:
        judged = {config.name: found.judgement(config.name) for config in found.configurations}
        result = {
            "fingerprint": found.fingerprint,
            "seed": found.seed,
            "configurations": [asdict(config) for config in found.configurations],
            "rows": [asdict(row) for row in found.rows],
            "frontiers": [asdict(frontier) for frontier in found.frontiers],
            "policy": found.policy.model_dump(),
            "judgements": {name: one.as_dict() for name, one in judged.items() if one is not None},
            "recommendations": [asdict(one) for one in recommend(found)],
        }
        typer.echo(printing.json_text(result | failure(code, "No release meets the policy.")))
        finish(code)
    shown = printing.printable(output)
    printing.tables(
        *_parts(found),
        f"\nTo read: {shown}/report.html. Every number: {shown}/measures.parquet, {shown}/measures.csv.",
    )
    finish(code)


@contextmanager
def _live() -> Iterator[Any]:
    """A table on the terminal that shows how far every method is; elsewhere a line now and then."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if not console.is_terminal or style.quiet or style.events:
        with progress("Comparing") as update:
            yield lambda board: update(str(board))
        return
    boards: list[Board] = []
    with Live(
        get_renderable=lambda: _board(boards[0]) if boards else "",
        console=console,
        transient=True,
        refresh_per_second=4,
    ):
        yield boards.append


def _board(board: "Board") -> Any:
    from rich.table import Table

    states = board.states
    table = Table.grid(padding=(0, 2))
    table.title = f"Comparing: {board}"
    for method in dict.fromkeys(config.method for config in board.configurations):
        mine = [place for place, config in enumerate(board.configurations) if config.method == method]
        now = next((board.configurations[place].name for place in mine if states[place] == "at work"), "")
        table.add_row(method, " ".join(_SIGNS[states[place]] for place in mine), now)
    return table


def _parts(found: "Comparison") -> list[Any]:
    from queryveil.assess.comparison import recommend

    on = {name for frontier in found.frontiers for name in frontier.configurations}
    rows = []
    for config in found.configurations:
        if config.status != "done":
            continue
        kept, risk = found.kept(config.name), found.risk(config.name)
        rows.append(
            (
                config.name + (" *" if config.name in on else ""),
                "meets" if found.meets(config.name) else "-",
                *(_share(kept[name]) for name in ("distinct queries", "tail", "profiles", "terms")),
                "not measured" if risk is None else _share(risk),
            )
        )
    parts: list[Any] = [printing.table("What is kept, and what an attacker learns", _COLUMNS, rows)]
    parts += [
        "policy: whether the release meets it; queries: distinct ones that are kept; tail: the same of those of fewer"
        " than 5 users; profiles: retention above random groups (SRP); terms: their precision (1 - NCP); risk: unknown"
        " query texts that an attacker with half of a person's history attributes to the right person.",
        "* on a frontier: of the releases of linked events no other keeps as much at less risk, or more at as much.\n",
    ]
    parts += [f"Not ranked by {measure}: {why}." for measure, why in found.unranked.items()]
    wrong = [config for config in found.configurations if config.status != "done" or not config.holds]
    for why in dict.fromkeys(config.why for config in wrong):
        parts.append(f"{'; '.join(config.name for config in wrong if config.why == why)}: {printing.printable(why)}")
    parts.append(f"\nReleases that meet the policy: {len(found.meeting)} of {len(rows)}.")
    parts += [f"\n{one.aim}: {one.configuration or 'none'}. {one.reason}" for one in recommend(found)]
    return parts


def _share(value: float | None) -> str:
    from queryveil.text.show import percent

    return "-" if value is None else percent(value)
