"""All measures of what a release is still good for, on one release."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from queryveil.errors import QueryveilError
from queryveil.knowledge import Knowledge, Links, link, open_knowledge
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
from queryveil.measures.labelled import sensitive_of
from queryveil.measures.loss import any_left
from queryveil.release import Release

Tell = Callable[[str], None]

CLUSTER = 10
"""Users of a cluster in the mean, for L. Of fewer each, nearly all are alone, and every release has the same L."""


@dataclass(frozen=True)
class Measured:
    """One number.

    Attributes:
        group: Such as `retention`.
        measure: Such as `distinct queries`.
        value: What was found; None where the measure does not apply. Always finite.
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
    if sensitive is not None:
        sensitive_of(sensitive)  # labels that are not understood must not wait for all the rest
    base = knowledge if isinstance(knowledge, Knowledge) else open_knowledge(knowledge)
    found = _measures(release, here, base, tests, seed, sensitive, tell or (lambda what: None))
    measured = tuple(_finite(one) for one in found)
    manifest = release.manifest
    return Evaluation(manifest.method, manifest.parameters, manifest.seed, here.fingerprint, measured)


def _finite(one: Measured) -> Measured:
    """A measure without what JSON cannot hold."""
    if one.value is None or math.isfinite(one.value):
        return one
    return replace(one, value=None, why=one.why or "there is nothing to divide by")


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
        why = "users are not told apart" if of is None else ""
        if not why and (of.of == 0 or not (queries or name == "users")):
            why = none
        yield Measured("retention", label, None if why else of.share, 1.0, why=why)
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
    yield from _left(release, terms, min(2, base.taxonomy.height))
    yield _loss(release, log, link(log, base, "phrases"), seed)


def _left(release: Release, terms: Links, levels: int) -> Iterator[Measured]:
    """SRP, level by level."""
    labels = [f"users' interests left, level {level} (SRP)" for level in range(1, levels + 1)]
    try:
        found = srp(release, terms, levels)
    except QueryveilError as error:
        yield from (Measured("interests", label, None, 1.0, why=_apart(release) or str(error)) for label in labels)
        return
    for label, level in zip(labels, found, strict=True):
        why = "" if level.users else "no user of the log has a category on this level; name another knowledge base"
        yield Measured("interests", label, level.mean if level.users else None, 1.0, why=why)


def _loss(release: Release, log: LocalLog, phrases: Links, seed: int) -> Measured:
    """L, where any record has a category left."""
    label = "information loss (L)"
    try:
        clusters = user_clusters(log, phrases, size=CLUSTER, sample=2_000, seed=seed)
        if not any_left(release, clusters):
            return Measured("interests", label, None, 0.0, why="no released record has a category")
        return Measured("interests", label, information_loss(release, clusters) / 100, 0.0)
    except QueryveilError as error:
        return Measured("interests", label, None, 0.0, why=_apart(release) or str(error))


def _apart(release: Release) -> str:
    """Why nothing can be said of the interests of single users, if it is for the kind of the release."""
    told = {"user", "query"} <= set(release.schema.names)
    return "" if told else "it is for releases of queries that tell users apart"
