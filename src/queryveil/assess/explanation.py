"""Why a query is in a release or not."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError, option
from queryveil.log import QueryLog, local
from queryveil.methods import METHODS, Method, Pipeline, Reason
from queryveil.release import Release, check_log, loaded_release, scrub_again
from queryveil.release.manifest import PIPELINE, located
from queryveil.text import normal_form


@dataclass(frozen=True)
class Explanation:
    """What happened to a query, and the rules that decided."""

    query: str
    """In normal form."""
    rows: int
    """How many rows of the release have it."""
    reasons: tuple[Reason, ...]

    @property
    def released(self) -> bool:
        """Whether the query is in the release."""
        return self.rows > 0


def explain(release: str | Path | Release, log: QueryLog, query: str) -> Explanation:
    """Explain why a query is in a release or not.

    Raises:
        QueryveilError: If the release was made from another log, or the log is not on this machine.
    """
    log = local(log, "explain")
    release = loaded_release(release)
    manifest = release.manifest
    check_log(release, log)
    if manifest.method not in METHODS:
        raise QueryveilError(f"This queryveil does not know the method '{manifest.method}' of the release.")
    if manifest.counted_on is not None and log.counted is log:
        raise QueryveilError(
            "The users of fragments were counted on another log than the one released; give that log as well, with"
            f" {option('counted_on', python='log.counted_on(other)')}."
        )
    text = normal_form(pa.array([query]))[0].as_py()
    if text in ("", "-"):
        raise QueryveilError("An empty query, or a single dash, is not a query; give the words to search for.")
    if manifest.scrub is not None:
        issued = log.find(text) is not None
        log = local(scrub_again(release, log), "explain")
        if issued and log.find(text) is None:
            step = manifest.steps[0].method if len(manifest.steps) > 1 else None
            return Explanation(
                text, 0, (Reason("scrubbing finds no personal data in the query", False, "it found some", step),)
            )
    query_id = log.find(text)
    if query_id is None:
        return Explanation(text, 0, (Reason("somebody issued the query", False, "nobody did"),))
    rows = 0
    if "query" in release.schema.names:
        rows = sum(pc.sum(pc.equal(batch["query"], text)).as_py() or 0 for batch in release.batches())
    return Explanation(text, rows, tuple(_method(release).explain(log, query_id)))


def _method(release: Release) -> Method:
    """The method that made a release, with those of its lists that are at hand."""
    steps = [(step.method, located(step.parameters, release.lists)) for step in release.manifest.steps]
    if release.manifest.method == PIPELINE:
        return Pipeline([{"method": name, "parameters": given} for name, given in steps])
    return METHODS[steps[0][0]](**steps[0][1])
