"""All measures of what a release is still good for, on one release."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from queryveil.errors import QueryveilError
from queryveil.knowledge import Knowledge, link, open_knowledge
from queryveil.log import LocalLog, QueryLog, local
from queryveil.measures import (
    distribution,
    f_beta,
    generalization_loss,
    information_loss,
    ncp,
    retention,
    srp,
    tasks,
    user_clusters,
)
from queryveil.release import Release

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """One number.

    Attributes:
        group: Such as `retention`.
        measure: Such as `distinct queries`.
        value: What was found; None where the measure does not apply.
        best: What the log itself has.
        share: Whether it is a share, to be shown in per cent.
        why: Why it does not apply, or what is to be known of it.
    """

    group: str
    measure: str
    value: float | None
    best: float
    share: bool = True
    why: str = ""


@dataclass(frozen=True)
class Evaluation:
    """What a release is still good for, with all that is needed to measure it again."""

    method: str
    parameters: dict[str, object]
    seed: int
    """That of the release."""
    fingerprint: str
    measured: tuple[Measured, ...]


def evaluate(
    release: Release,
    log: QueryLog,
    *,
    knowledge: Knowledge | str = "wordnet",
    tests: int = 2_000,
    seed: int = 0,
    sensitive: pa.Table | None = None,
    tell: Tell | None = None,
) -> Evaluation:
    """Measure what a release keeps: shares, frequencies, interests of users, and how well four tasks learn from it.

    Args:
        release: The release; SRP and L need one that was just made, or one with its user map.
        log: Its log.
        knowledge: Where queries are looked up, for SRP, L and NCP.
        tests: On how many events of the log a task is tried.
        seed: Decides which, and which users L looks at.
        sensitive: Queries of the log with a label, for F-beta: `query` and `sensitive`, as `f_beta` takes them.
        tell: Called with what is being done.
    """
    here = local(log, "evaluate")
    if release.manifest.input_fingerprint != here.fingerprint:
        raise QueryveilError("The release was made from another log than this one; give the log it was made from.")
    base = knowledge if isinstance(knowledge, Knowledge) else open_knowledge(knowledge)
    measured = tuple(_measures(release, here, base, tests, seed, sensitive, tell or (lambda what: None)))
    manifest = release.manifest
    return Evaluation(manifest.method, manifest.parameters, manifest.seed, here.fingerprint, measured)


def _measures(
    release: Release, log: LocalLog, base: Knowledge, tests: int, seed: int, sensitive: pa.Table | None, tell: Tell
) -> Iterator[Measured]:
    queries = "query" in release.schema.names
    none = "the log has none" if queries else "the release has items, not queries"
    tell("retention")
    kept = retention(release, log)
    for name in ("queries", "events", "users", "clicks", "terms"):
        label = f"distinct {name}" if name in ("queries", "terms") else name
        of = getattr(kept, name)
        applies = (queries or name == "users") and of.of > 0
        yield Measured("retention", label, of.share if applies else None, 1.0, why="" if applies else none)
    for band in kept.bands if queries else ():
        if band.queries:
            yield Measured("retention", f"distinct queries of {band.label}", band.kept_queries / band.queries, 1.0)
    tell("distribution")
    found = distribution(release, log)
    for label, value, best in (
        ("distance of query frequencies (Jensen-Shannon)", found.queries, 0.0),
        ("distance of term frequencies (Jensen-Shannon)", found.terms, 0.0),
        ("rank correlation of the 1,000 most frequent queries", found.ranks, 1.0),
    ):
        applies = queries and not math.isnan(value)
        why = "there is one frequency alone, so that there are no ranks" if queries else none
        yield Measured("distribution", label, value if applies else None, best, share=False, why="" if applies else why)
    tell("interests")
    yield from _interests(release, log, base, seed)
    tell("tasks")
    for task in tasks(release, log, tests=tests, seed=seed):
        why = "" if task.released is not None else "the release has nothing to learn from"
        yield Measured("task", f"{task.task}, {task.score}", task.released, task.original, why=why)
    if sensitive is not None:
        tell("labelled queries")
        for beta in (1.0, 0.1):
            yield _f_beta(release, log, sensitive, beta)


def _f_beta(release: Release, log: LocalLog, sensitive: pa.Table, beta: float) -> Measured:
    label = f"harmless queries released, and only these (F of beta {beta:g})"
    try:
        found = f_beta(release, log, sensitive, beta)
    except QueryveilError as error:
        return Measured("labelled", label, None, 1.0, share=False, why=str(error))
    return Measured("labelled", label, found.value, found.original, share=False)


def _interests(release: Release, log: LocalLog, base: Knowledge, seed: int) -> Iterator[Measured]:
    """SRP, L, NCP and GGD, each where it applies."""
    terms = link(log, base, "terms")
    names = release.schema.names
    if "node" in names and "user" in names and release.manifest.method != "wngen":
        loss = generalization_loss(release, log, terms)
        yield Measured("interests", "distortion per item (GGD)", loss.per_item, 0.0)
    else:
        yield Measured("interests", "distortion per item (GGD)", None, 0.0, why="it is for bags of items, one a user")
    try:
        yield Measured("interests", "normalized certainty penalty (NCP)", ncp(release, log, terms), 0.0)
    except QueryveilError as error:
        yield Measured("interests", "normalized certainty penalty (NCP)", None, 0.0, why=str(error))
    both = "users' interests left (SRP), information loss (L)"
    if not {"user", "query"} <= set(names):
        yield Measured("interests", both, None, 1.0, why="they are for releases of queries that tell users apart")
        return
    try:
        for level in srp(release, terms, min(2, base.taxonomy.height)):
            yield Measured("interests", f"users' interests left, level {level.level} (SRP)", level.mean, 1.0)
        clusters = user_clusters(log, link(log, base, "phrases"), sample=2_000, seed=seed)
        yield Measured("interests", "information loss (L)", information_loss(release, clusters) / 100, 0.0)
    except QueryveilError as error:
        yield Measured("interests", both, None, 1.0, why=str(error))
