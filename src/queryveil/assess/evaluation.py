"""All measures of what a release is still good for, on one release."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from queryveil.assess.measures import (
    AboveRandom,
    Task,
    distribution,
    f_beta,
    generalization_loss,
    ncp,
    retention,
    tasks,
    user_clusters,
)
from queryveil.assess.measures.counts import pseudonym
from queryveil.assess.measures.labelled import sensitive_of
from queryveil.assess.measures.loss import any_left, cluster_retention_of, lost, released_distances, too_large
from queryveil.assess.measures.records import UserRecords, user_records
from queryveil.assess.measures.srp import GROUP, profile_retention_of, srp_of
from queryveil.errors import QueryveilError
from queryveil.knowledge import Links, Taxonomy, categorize, open_taxonomy
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.sharing import sharing
from queryveil.release import Release, check_log
from queryveil.release.summary import part_of

Tell = Callable[[str], None]

SAMPLE = 2_000
"""Most users that L looks at."""
CLUSTER = 10
"""Users of a cluster in the mean, for L. Of fewer each, nearly all are alone, and every release has the same L."""

PROFILES = "profile retention above random groups (SRP)"
CLUSTERS = "cluster retention above random groups (1 - L)"
SESSIONS = "sessions of a user are put together by the user map; a reader of the release cannot"


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
        separates: Whether releases can be ranked by it; False for a task that scores too low on the log itself, and
            for clusters of which one holds most users. `why` says so.
    """

    group: str
    measure: str
    value: float | None
    best: float
    share: bool = True
    why: str = ""
    separates: bool = True


@dataclass(frozen=True)
class Evaluation:
    """What a release is still good for, with all that is needed to measure it again."""

    method: str
    parameters: dict[str, object]
    seed: int
    """That of the measures."""
    fingerprint: str
    measured: tuple[Measured, ...]


def evaluate(
    release: Release,
    log: QueryLog,
    *,
    taxonomy: Taxonomy | str = "wordnet",
    tests: int = 2_000,
    seed: int = 0,
    sensitive: pa.Table | None = None,
    tell: Tell | None = None,
) -> Evaluation:
    """Measure what a release keeps: shares, frequencies, interests of users, and how well four tasks learn from it.

    Args:
        release: The release; SRP and L need one that was just made, or one with its user map.
        log: Its log.
        taxonomy: Where queries are looked up, for SRP, L and NCP.
        tests: On how many events of the log a task is tried.
        seed: Decides which, and which users L looks at.
        sensitive: Queries of the log with a label, for F-beta: `query` and `sensitive`, as `f_beta` takes them.
        tell: Called with what is being done.
    """
    here = local(log, "evaluate")
    check_log(release, here)
    if sensitive is not None:
        sensitive_of(sensitive)  # labels that are not understood must not wait for all the rest
    base = taxonomy if isinstance(taxonomy, Taxonomy) else open_taxonomy(taxonomy)
    with sharing(here):
        found = _measures(release, here, base, tests, seed, sensitive, tell or (lambda what: None))
        measured = tuple(_finite(one) for one in found)
    manifest = release.manifest
    return Evaluation(manifest.method, manifest.parameters, seed, here.fingerprint, measured)


def _finite(one: Measured) -> Measured:
    """A measure without what JSON cannot hold."""
    if one.value is None or math.isfinite(one.value):
        return one
    return replace(one, value=None, why=one.why or "there is nothing to divide by")


def _measures(
    release: Release, log: LocalLog, base: Taxonomy, tests: int, seed: int, sensitive: pa.Table | None, tell: Tell
) -> Iterator[Measured]:
    queries = "query" in release.schema.names
    none = "the log has none" if queries else "the release has items, not queries"
    tell("retention")
    kept = retention(release, log)
    for name in ("queries", "events", "users", "clicks", "terms"):
        label = f"distinct {name}" if name in ("queries", "terms") else name
        of = getattr(kept, name)
        why = _no_users(kept.sessions) if of is None else ""
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
        yield _task(task, release)
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


def _interests(release: Release, log: LocalLog, base: Taxonomy, seed: int) -> Iterator[Measured]:
    """SRP, L, NCP and GGD, each where it applies."""
    terms = categorize(log, base, "terms")
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
    yield from _of_users(release, log, base, terms, seed)


def _no_users(sessions: int | None) -> str:
    return "no user ids released" + ("" if sessions is None else f"; {sessions:,} sessions")


def _task(task: Task, release: Release) -> Measured:
    within = task.task == "suggestion" and pseudonym(release) == "session"
    notes = (
        "the release has nothing to learn from" if task.released is None else "",
        task.unranked,
        "learnt from queries within one session" if within else "",
    )
    name = f"{task.task}, {task.score}"
    return Measured("task", name, task.released, task.original, why=_noted(*notes), separates=not task.unranked)


def _of_users(release: Release, log: LocalLog, base: Taxonomy, terms: Links, seed: int) -> Iterator[Measured]:
    """SRP and L, as in the papers and corrected for groups at random: what needs to know who is who."""
    levels = [f"users' interests left, level {level} (SRP)" for level in range(1, min(2, base.tree.height) + 1)]
    lost_label = "information loss (L)"
    try:
        found = user_records(release, "It")
    except QueryveilError as error:
        why = _not_linked(release) or str(error)
        for label in (*levels, PROFILES, lost_label, CLUSTERS):
            yield Measured("interests", label, None, float(label != lost_label), why=why)
        return
    note = SESSIONS if pseudonym(release) == "session" else ""
    yield from _srp(found, terms, levels, note)
    yield _profiles(found, terms, seed, note)
    yield from _clusters(found, log, categorize(log, base, "phrases"), lost_label, seed, note)


def _not_linked(release: Release) -> str:
    """Why nothing can be said of the interests of single users, if it is for the kind of the release."""
    linked = pseudonym(release) is not None and "query" in release.schema.names
    return "" if linked else "it is for releases of queries with user or session ids"


def _srp(found: UserRecords, terms: Links, labels: list[str], note: str) -> Iterator[Measured]:
    """SRP as in the paper, level by level."""
    for label, level in zip(labels, srp_of(found, terms, len(labels)), strict=True):
        why = note if level.users else "no user of the log has a category on this level; name another taxonomy"
        yield Measured("interests", label, level.mean if level.users else None, 1.0, why=why)


def _profiles(found: UserRecords, terms: Links, seed: int, note: str) -> Measured:
    try:
        kept = profile_retention_of(found, terms, seed)
    except QueryveilError as error:
        return Measured("interests", PROFILES, None, 1.0, why=str(error))
    why = (
        f"level {kept.level} of the taxonomy, the first on which groups of {GROUP} users at random keep at most half;"
        f" {_beside(kept)}"
    )
    return Measured("interests", PROFILES, kept.value, 1.0, why=_noted(why, note))


def _clusters(
    found: UserRecords, log: LocalLog, phrases: Links, label: str, seed: int, note: str
) -> Iterator[Measured]:
    """L as in the paper, and corrected; where any record has a category left."""
    try:
        average, ward = (
            user_clusters(log, phrases, size=CLUSTER, sample=SAMPLE, seed=seed, linkage=linkage)
            for linkage in ("average", "ward")
        )
        if not any_left(found, average):
            raise QueryveilError("no released record has a category")
    except QueryveilError as error:
        yield Measured("interests", label, None, 0.0, why=str(error))
        yield Measured("interests", CLUSTERS, None, 1.0, why=str(error))
        return
    far = released_distances(found, average)
    unclear = too_large(average)
    yield Measured("interests", label, lost(far, average), 0.0, why=_noted(unclear, note), separates=not unclear)
    try:
        kept = cluster_retention_of(found, far, ward, seed)
    except QueryveilError as error:
        yield Measured("interests", CLUSTERS, None, 1.0, why=str(error))
        return
    why = f"{ward.count:,} clusters of {len(ward.users):,} users by Ward's method; {_beside(kept)}"
    yield Measured("interests", CLUSTERS, kept.value, 1.0, why=_noted(why, note))


def _beside(kept: AboveRandom) -> str:
    return f"before the correction {part_of(kept.kept)}, groups at random {part_of(kept.random)}"


def _noted(*notes: str) -> str:
    return "; ".join(note.rstrip(".") for note in notes if note)
