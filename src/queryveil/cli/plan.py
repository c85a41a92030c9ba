"""queryveil plan: the method and the parameters that meet a policy and keep most."""

from pathlib import Path
from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.outcome import Ending, failure, finish
from queryveil.cli.progress import progress
from queryveil.cli.reading import Reader
from queryveil.errors import QueryveilError, did_you_mean


def plan(
    reader: Reader,
    log: options.Logs,
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="AIM",
            help="What the release is for: long-tail, sessions, profiles or statistics.",
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The recipe to write; ends with .toml.")
    ],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="What the release must meet: a TOML file, or 'default' for the built-in one.",
        ),
    ] = "default",
    taxonomy: options.Taxonomy = "wordnet",
    web_directory: Annotated[
        str | None,
        typer.Option("--web-directory", help="A web directory that you built, where search looks sites up."),
    ] = None,
    budget_minutes: Annotated[
        float | None,
        typer.Option("--budget-minutes", metavar="N", help="After N minutes, use the best release found by then."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed, for everything but private noise.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier recipe.")] = False,
    as_json: options.Json = False,
) -> None:
    """Find the release that keeps most of what you need and meets a policy, and write its recipe.

    Then run 'anonymize --recipe FILE'. If nothing meets the policy, it exits with 6, says what came nearest, and
    writes no recipe. What is found is stored in a folder beside the recipe, and a run that was stopped continues from
    there. Both describe the log, so they are for people who may see the log.
    """
    from queryveil.assess.planning import AIMS
    from queryveil.assess.planning import plan as search
    from queryveil.assess.policy import load_policy
    from queryveil.files.folders import check_file
    from queryveil.knowledge import open_taxonomy

    aim = next((one for one in AIMS if one == keep), None)
    if aim is None:
        raise QueryveilError(f"There is no aim '{keep}'; {did_you_mean(keep, AIMS)}.")
    rules = load_policy(policy)
    place: Path = check_file(output, (".toml",), overwrite)
    for base in (taxonomy, web_directory):
        if base is not None:
            open_taxonomy(base)
    read = reader(log)
    with progress("Planning") as step:
        found = search(
            read,
            aim,
            policy=rules,
            taxonomy=taxonomy,
            web_directory=web_directory,
            seed=seed,
            folder=place.with_suffix(".search"),
            budget_minutes=budget_minutes,
            progress=step,
        )
    if found.configuration is not None:
        found.save(place, overwrite=overwrite)
    code: Ending | None = None if found.configuration is not None else "policy-not-met"
    if as_json:
        typer.echo(printing.json_text(found.as_dict() | failure(code, " ".join(found.reasons))))
    elif found.configuration is None:
        typer.echo(printing.printable(" ".join(found.reasons)))
        typer.echo("Nothing was written.")
    else:
        rows = [(one.name, one.keeps_text, one.why) for one in found.tried[:10]]
        printing.tables(
            f"{found.configuration.name}. " + " ".join(found.reasons),
            printing.table(f"Releases by {found.ranked_by}", ("release", "keeps", "outcome"), rows, texts=3),
            f"Written to {printing.printable(output)}. Next: queryveil anonymize LOG --recipe"
            f" {printing.printable(output)} --policy {printing.printable(policy)} -o release",
        )
    finish(code)
