"""All measures of what a release is still good for, on one release."""

import math
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from queryveil.assess.arguments import at_least
from queryveil.assess.measures import GROUPS, MEASURES, Assessment
from queryveil.assess.measures.labelled import sensitive_of
from queryveil.assess.measures.notes import noted
from queryveil.assess.measures.registry import Group, Measure, Value
from queryveil.errors import Progress, QueryveilError, Step, old_names
from queryveil.knowledge import Taxonomy, open_taxonomy
from queryveil.log import LocalLog, QueryLog, check_is_log
from queryveil.log.sharing import sharing
from queryveil.release import Release, as_of, check_log, loaded_release
from queryveil.text.show import percent
from queryveil.text.tabular import Tabular, html_rows

if TYPE_CHECKING:
    from queryveil.log.spark import SparkLog


@dataclass(frozen=True)
class Measured:
    """One number.

    Attributes:
        measure: The id of the measure in the registry.
        detail: Which of several numbers of the measure it is, such as a level or a frequency band; else empty.
        value: What was found; None where the measure does not apply. Always finite.
        best: What the log itself has.
        why: Why it does not apply, or what is to be known of it.
        separates: Whether releases can be ranked by it; False for a task that scores too low on the log itself, and
            for clusters of which one holds most users. `why` says so.
    """

    measure: str
    detail: str
    value: float | None
    best: float
    why: str = ""
    separates: bool = True

    @property
    def label(self) -> str:
        """What it is called in tables and reports."""
        return label_of(self.measure, self.detail)

    @property
    def group(self) -> Group:
        """Its group."""
        return MEASURES[self.measure].group

    @property
    def share(self) -> bool:
        """Whether it is a share, which is shown in per cent."""
        return MEASURES[self.measure].unit == "share"

    def shown(self, value: float | None) -> str:
        """A value of this measure for a reader."""
        if value is None:
            return "-"
        return percent(value) if self.share else f"{value:.3f}"

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self) | {"label": self.label, "group": self.group, "share": self.share}


def label_of(measure: str, detail: str) -> str:
    """What a number is called in tables and reports."""
    label = MEASURES[measure].label
    between = " " if label.endswith(" of") else ", "
    return f"{label}{between}{detail}" if detail else label


@dataclass(frozen=True)
class Evaluation(Tabular):
    """What a release is still good for, with all that is needed to measure it again."""

    method: str
    parameters: dict[str, object]
    seed: int
    """That of the measures."""
    fingerprint: str
    measured: tuple[Measured, ...]

    def to_arrow(self) -> pa.Table:
        """One row per number."""
        return pa.Table.from_pylist([one.as_dict() for one in self.measured], schema=_SCHEMA)

    def _repr_html_(self) -> str:
        rows = [(one.group, one.label, one.shown(one.value), one.shown(one.best), one.why) for one in self.measured]
        names = ("group", "measure", "release", "log", "note")
        return html_rows(f"Evaluation of a release by {self.method}", names, rows, ("release", "log"))


_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("group", "measure", "label", "detail")),
        *((name, pa.float64()) for name in ("value", "best")),
        ("why", pa.string()),
    ]
)


@old_names(knowledge="taxonomy", tell="progress")
def evaluate(
    release: str | Path | Release,
    log: QueryLog,
    *,
    taxonomy: Taxonomy | str = "wordnet",
    tests: int = 2_000,
    seed: int = 0,
    sensitive: pa.Table | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure what a release keeps: shares, frequencies, interests of users, and how well four tasks learn from it.

    Args:
        release: The release, or its folder; SRP and L need one that was just made, or one with its user map.
        log: Its log. A large one on Spark is counted there, and other measures are of a sample of users.
        taxonomy: Where queries are looked up, for SRP, L and NCP.
        tests: On how many events of the log a task is tried.
        seed: Random seed.
        sensitive: Queries of the log with a label, for F-beta: `query` and `sensitive`, as `f_beta` takes them.
        progress: Called with what is being done.
    """
    check_is_log(log, "evaluate")
    at_least(1, "evaluate", "tests", tests)
    made = as_of(loaded_release(release), log)
    check_log(made, log)
    if sensitive is not None:
        sensitive_of(sensitive)  # labels that are not understood must not wait for all the rest
    base = taxonomy if isinstance(taxonomy, Taxonomy) else open_taxonomy(taxonomy)
    progress = progress or (lambda what: None)
    if isinstance(log, LocalLog):
        with sharing(log):
            measured = tuple(_measures(Assessment(made, log, base, tests, seed, sensitive), progress))
    else:
        measured = tuple(_on_spark(made, cast("SparkLog", log), base, tests, seed, sensitive, progress))
    manifest = made.manifest
    return Evaluation(manifest.method, manifest.parameters, seed, log.fingerprint, measured)


def _on_spark(
    release: Release,
    log: "SparkLog",
    taxonomy: Taxonomy,
    tests: int,
    seed: int,
    sensitive: pa.Table | None,
    progress: Progress,
) -> Iterator[Measured]:
    """A small log here; of a large one what tables of all of it show, and the rest on a sample, which says so."""
    from queryveil.assess.sampling import NoSampleError, bring

    try:
        some = bring(release, log, seed)
    except NoSampleError as error:
        some, why = None, str(error)
    if some is not None and not some.share:
        with sharing(some.log):
            yield from _measures(Assessment(some.release, some.log, taxonomy, tests, seed, sensitive), progress)
        return
    # These two groups ask the engine alone, so they take any log.
    yield from _measures(Assessment(release, cast(LocalLog, log), taxonomy, tests, seed), progress, _BY_TABLES)
    others = [one for one in GROUPS if one not in _BY_TABLES and (one != "labelled" or sensitive is not None)]
    if some is None:
        yield from (finite(one, Value(None, why)) for one in MEASURES.values() if one.group in others)
        return
    with sharing(some.log):
        on = Assessment(some.release, some.log, taxonomy, tests, seed, sensitive)
        for one in _measures(on, progress, others):
            yield replace(one, why=noted(f"on {some.share}", one.why))


_BY_TABLES: tuple[Group, ...] = ("retention", "distribution")
"""Groups of measures that are counted in tables of the whole log, however large it is."""


def _measures(on: Assessment, progress: Progress, groups: Collection[Group] = tuple(GROUPS)) -> Iterator[Measured]:
    for place, group in enumerate(GROUPS):
        if group not in groups:
            continue
        mine = [one for one in MEASURES.values() if one.group == group]
        if mine and (group != "labelled" or on.sensitive is not None):
            progress(Step(group, place, len(GROUPS)))
        for one in mine:
            try:
                values = list(one.of(on))
            except QueryveilError as error:
                values = [Value(None, str(error))]
            yield from (finite(one, value) for value in values)


def finite(measure: Measure, found: Value) -> Measured:
    """What a measure found, without what JSON cannot hold."""
    best = found.best if found.best is not None else float(measure.better == "higher")
    if found.value is None or math.isfinite(found.value):
        return Measured(measure.id, found.detail, found.value, best, found.why, found.separates)
    why = found.why or "there is nothing to divide by"
    return Measured(measure.id, found.detail, None, best, why, found.separates)
