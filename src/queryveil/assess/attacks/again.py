"""The method of a release, run again on some rows of its log."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.assess.attacks.finding import InapplicableError
from queryveil.engines import identifier
from queryveil.errors import QueryveilError, option
from queryveil.log import LocalLog
from queryveil.methods import STEPS, Method, Pipeline, Scrub
from queryveil.release import Release
from queryveil.release.manifest import Stage, located


def method_again(release: Release, taxonomy: str | None = None) -> Method:
    """The method that made a release, with its parameters.

    Args:
        release: The release.
        taxonomy: Where the taxonomy lies that it was made with, of which the release knows only the name.

    Raises:
        InapplicableError: If it cannot be run again, with what to do.
    """
    if release.manifest.counted_on is not None:
        raise InapplicableError("its rules count users on another log, so they say nothing on some rows of this one")
    stages = release.manifest.steps
    # What was scrubbed is scrubbed before the method runs again, in a pipeline too.
    steps = [_step_again(stage, taxonomy, release.lists) for stage in stages if stage.method != Scrub.name]
    try:
        return steps[0] if len(steps) == 1 else Pipeline(steps)
    except QueryveilError as error:
        raise cannot(error) from None


def _step_again(stage: Stage, taxonomy: str | None, lists: Mapping[str, Path]) -> Method:
    name, parameters = stage.method, located(stage.parameters, lists)
    if name not in STEPS:
        raise InapplicableError(f"the method '{name}' is not known here")
    base = parameters.get("taxonomy")
    if base not in (None, "wordnet"):
        parameters["taxonomy"] = taxonomy or base
    if base not in (None, "wordnet") and not Path(parameters["taxonomy"]).exists():
        raise InapplicableError(
            f"'{name}' cannot be run again without its taxonomy '{base}'; name its folder with {option('taxonomy')}"
        )
    try:
        return STEPS[name](**parameters)
    except QueryveilError as error:
        raise cannot(error) from None


def cannot(error: QueryveilError) -> InapplicableError:
    """Why a method cannot be run again."""
    return InapplicableError(f"the method cannot be run again: {error}")


def rows_of(log: LocalLog, events: NDArray[np.integer]) -> pa.Table:
    """Some events of a log as rows, as `queryveil.read_log` takes them."""
    extras = "".join(f", x{i}.value AS {identifier(name)}" for i, name in enumerate(log.extras))
    joins = "".join(
        f" LEFT JOIN {identifier(f'extra {name}')} x{i} ON x{i}.id = e.{identifier(f'{name} id')}"
        for i, name in enumerate(log.extras)
    )
    results = ", c.rank AS rank, urls.url AS url" if log.has_results else ""
    results += ", c.clicked AS clicked" if log.has_views else ""
    if log.has_results:
        joins += f" LEFT JOIN {log.results} c ON c.event_id = e.event_id LEFT JOIN urls ON urls.url_id = c.url_id"
    time = ", e.time AS time" if log.has_times else ""
    with log.workspace() as work:
        some = work.read(pa.table({"event_id": events.astype(np.int32)}))
        return work.fetch(
            f'SELECT u."user" AS "user", q.query AS query{time}{results}{extras} FROM events e'
            f" JOIN {some} a ON a.event_id = e.event_id JOIN users u ON u.user_id = e.user_id"
            f" JOIN queries q ON q.query_id = e.query_id{joins}"
        )
