"""queryveil evaluate: what is a release still good for?"""

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

from queryveil.cli import options, printing
from queryveil.cli.labels import Sensitive, read_labels
from queryveil.cli.progress import progress
from queryveil.cli.reading import AnyReader, opened

if TYPE_CHECKING:
    from queryveil.assess.evaluation import Measured


def epilog(words: list[str]) -> str | None:
    """The end of the help: all measures, by group."""
    if "evaluate" not in words:
        return None
    from queryveil.assess.measures import GROUPS, MEASURES

    groups: dict[str, dict[str, str]] = {title: {} for title in GROUPS.values()}
    for one in MEASURES.values():
        groups[GROUPS[one.group]][one.id] = one.summary
    return printing.listed(groups)


def evaluate(
    reader: AnyReader,
    release: options.ReleaseFolder,
    original: options.Original,
    user_map: options.UserMap = None,
    taxonomy: options.Taxonomy = "wordnet",
    tests: options.Tests = 2_000,
    sensitive: Sensitive = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Measure what a release keeps, and how well common tasks learn from it, beside the log itself."""
    from queryveil.assess.evaluation import evaluate as measure
    from queryveil.knowledge import open_taxonomy

    base = open_taxonomy(taxonomy)
    labels = None if sensitive is None else read_labels(sensitive)
    made, log = opened(reader, release, original, user_map)
    with progress("Evaluating") as step:
        found = measure(made, log, taxonomy=base, tests=tests, seed=seed, sensitive=labels, progress=step)
    if as_json:
        typer.echo(printing.json_text(asdict(found) | {"measured": [one.as_dict() for one in found.measured]}))
        return
    parts: list[Any] = []
    for group, measured in groupby(found.measured, key=lambda one: one.group):
        some = list(measured)
        rows = [(one.label, one.shown(one.value), one.shown(one.best)) for one in some]
        parts.append(printing.table(group.capitalize(), ("", "release", "log"), rows))
        parts += _notes(some)
    printing.tables(*parts)


def _notes(measured: "list[Measured]") -> list[str]:
    """Notes about measures; those with the same note share a line."""
    notes: dict[tuple[str, str], list[str]] = {}
    for one in measured:
        kind = "Not measured" if one.value is None else "Note" if one.separates else "Does not separate releases"
        if one.why:
            notes.setdefault((kind, one.why), []).append(one.label)
    return [f"{kind}: {'; '.join(names)}: {why}" for (kind, why), names in notes.items()]
