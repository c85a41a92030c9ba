"""Attacks on a series: what its releases show together, and when they appear."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from queryveil.arrays import sampled
from queryveil.assess.attacks.finding import Estimate, Finding, Question, Tried, share
from queryveil.assess.attacks.run import Findings, Skipped
from queryveil.claims import AffineUsers, QueryUsers, TermUsers
from queryveil.errors import NothingToReleaseError, Progress
from queryveil.kernels.types import Bools, Longs
from queryveil.log import LocalLog, QueryLog
from queryveil.log.waiting import Waiting
from queryveil.methods import Method
from queryveil.release import Release
from queryveil.series.ledger import Ledger
from queryveil.series.state import State, method_of, queries_of, replayed

_TARGETS = 300
"""Most people that an attack is tried on."""


class _About(NamedTuple):
    label: str
    question: Question


ATTACKS = {
    "state_differencing": _About("differencing of states", "inference"),
    "newcomer": _About("newcomer attack", "inference"),
    "release_linkage": _About("linkage across releases", "linkability"),
}
"""The attacks on a series."""


class _OfSeries(Tried):
    """An attack that is found among those on a series."""

    @property
    def label(self) -> str:
        """What the attack is called in tables and reports."""
        return ATTACKS[self.attack].label

    @property
    def question(self) -> Question:
        """Which of the three questions it asks."""
        return ATTACKS[self.attack].question


@dataclass(frozen=True)
class SeriesFinding(_OfSeries, Finding):
    """What an attack on a series found."""


@dataclass(frozen=True)
class SeriesSkipped(_OfSeries, Skipped):
    """An attack on a series that was not run, and why."""


@dataclass(frozen=True)
class Exposure:
    """How many changes of published counts come from fewer users than promised, in one period."""

    period: int
    changes: int
    exposed: int
    cumulative_changes: int
    """If every release were made of the whole log so far."""
    cumulative_exposed: int


@dataclass(frozen=True)
class SeriesFindings(Findings):
    """What all attacks on a series found."""

    exposure: tuple[Exposure, ...] = ()
    """By period."""
    of: ClassVar[str] = "this series"


@dataclass(frozen=True)
class _Batch:
    """A release, with the people behind it."""

    period: int
    users_per_query: Longs
    """Distinct users of each query that left with it."""
    exposed_users: pa.Array
    """The keyed digests of users behind queries of too few."""
    linked: "_Linked | None"


@dataclass(frozen=True)
class _Linked:
    """The pseudonyms of a release: who they are, and their queries."""

    users: pa.Array
    """The keyed digest of the user of each pseudonym."""
    owner: Longs
    query: pa.Array
    """Each pair of pseudonym and distinct query."""


def attack_series(
    ledger: Ledger,
    releases: Sequence[Release],
    logs: Iterable[QueryLog],
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> SeriesFindings:
    """Try every attack on a series.

    Args:
        ledger: Its ledger.
        releases: Its releases, in their order.
        logs: The logs that were added, in their order.
        seed: Random seed.
        progress: Called with the name of each step as it begins.
    """
    settings, method = ledger.settings, method_of(ledger.settings)
    say = progress or (lambda step: None)
    k = promised(releases)
    say("making the periods again")
    batches: list[_Batch] = []
    whole: Waiting | None = None
    state = State()
    for step in replayed(ledger, releases, logs):
        whole = step.arrived.fresh if whole is None else whole.joined(step.arrived.fresh)
        state = step.after
        if step.release is not None:
            batches.append(_batch(step.period.number, step.log, step.left, k or 1, method, settings.seed))
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    exposure: tuple[Exposure, ...] = ()
    if k is None or whole is None:
        why = "needs a release that promises a number of users behind each query"
        skipped += [SeriesSkipped(name, why) for name in ("state_differencing", "newcomer")]
    else:
        say(ATTACKS["state_differencing"].label)
        found, exposure = _differencing(batches, whole, k, len(ledger.periods))
        findings.append(found)
        say(ATTACKS["newcomer"].label)
        findings += _newcomer(state, ledger, method, k, np.random.default_rng(seed), skipped)
    say(ATTACKS["release_linkage"].label)
    linked = [batch.linked for batch in batches]
    if any(one is None for one in linked) or len(linked) < 2:
        skipped.append(SeriesSkipped("release_linkage", "needs two releases with linked events; nothing is linked"))
    else:
        carried = settings.carry_pseudonyms
        findings.append(_linkage([one for one in linked if one is not None], np.random.default_rng(seed), carried))
    return SeriesFindings(method.name, tuple(findings), tuple(skipped), exposure=exposure)


def promised(releases: Sequence[Release]) -> int | None:
    """How many users a release of the series promises behind a query; None if it promises none."""
    kinds = QueryUsers, AffineUsers, TermUsers
    if any(release.manifest.private for release in releases):  # a least number of users there is not the promise
        return None
    claims = [claim for release in releases[:1] for claim in release.manifest.claims]
    return next((claim.users for kind in kinds for claim in claims if isinstance(claim, kind)), None)


def _batch(period: int, log: LocalLog, left: Bools, k: int, method: Method, seed: int) -> _Batch:
    user, query = (log.events[name].to_numpy()[left] for name in ("user_id", "query_id"))
    pairs = np.unique(query.astype(np.int64) * log.n_users + user)
    users = np.bincount(pairs // log.n_users, minlength=log.n_queries)
    few = users[pairs // log.n_users] < k
    exposed = log.user_text.take(pa.array(np.unique(pairs[few] % log.n_users)))
    linked = None
    if getattr(method.last, "link", "none") != "none":
        linked = _linked(log, method.anonymize(log, seed=seed))
    return _Batch(period, users[users > 0], exposed, linked)


def _linked(log: LocalLog, release: Release) -> _Linked | None:
    """Who is behind the pseudonyms of a release, which is made again."""
    if release.pseudonyms is None:
        return None
    column = "session" if "session" in release.schema.names else "user"
    table = pa.Table.from_batches([batch.select([column, "query"]) for batch in release.batches()])
    table = table.group_by([column, "query"]).aggregate([])
    who = log.engine.fetch(f'SELECT "user" AS pseudonym, user_id FROM {release.pseudonyms} ORDER BY pseudonym')
    known = who["pseudonym"].to_numpy()
    names = log.user_text.take(who["user_id"].combine_chunks())
    owner = np.searchsorted(known, table[column].to_numpy())
    return _Linked(names, owner, table["query"].combine_chunks())


def _differencing(
    batches: Sequence[_Batch], whole: Waiting, k: int, periods: int
) -> tuple[Finding, tuple[Exposure, ...]]:
    """Which changes between two states come from fewer than k users; the control publishes the whole log anew."""
    changes, exposed = np.zeros(periods + 1, np.int64), np.zeros(periods + 1, np.int64)
    for batch in batches:
        changes[batch.period] = len(batch.users_per_query)
        exposed[batch.period] = np.count_nonzero(batch.users_per_query < k)
    naive, naive_exposed, people = _cumulative(whole, k, periods)
    total, hits = int(changes.sum()), int(exposed.sum())
    found = SeriesFinding(
        attack="state_differencing",
        setting="",
        number=f"changes of a published count that come from fewer than {k} users",
        unit="share",
        estimate=share(hits, total),
        baseline=0.0,
        baseline_text="every change comes from as many users as are promised",
        control=share(int(naive_exposed.sum()), int(naive.sum())),
        control_text=f"all queries of {k} users of the whole log so far, released anew in every period",
        trials=total,
        beside=f"{people:,} of {len(whole.texts['user']):,} users would be behind such a change in the control,"
        f" {len(pc.unique(pa.chunked_array([b.exposed_users for b in batches], pa.large_string()))):,} in the series",
    )
    rows = zip(changes, exposed, naive, naive_exposed, strict=True)
    return found, tuple(Exposure(number, *map(int, row)) for number, row in enumerate(rows) if number)


def _cumulative(whole: Waiting, k: int, periods: int) -> tuple[Longs, Longs, int]:
    """Changes of counts by period if the whole log were released each time, those of too few users, and whose."""
    users = len(whole.texts["user"])
    query, since = whole.events["query"].astype(np.int64), whole.events["since"].astype(np.int64)
    triples = np.unique((query * (periods + 1) + since) * users + whole.events["user"])
    of_period, who = triples // users, triples % users
    query, since = of_period // (periods + 1), of_period % (periods + 1)
    # The period in which the k-th user of a query came: from then on the query is released.
    first = np.unique(query * users + who, return_index=True)[1]
    first = first[np.lexsort((since[first], query[first]))]
    start = np.searchsorted(query[first], np.arange(len(whole.texts["query"])))
    count = np.diff(np.append(start, len(first)))
    since_when = np.full(len(count), periods + 1, np.int64)
    enough = count >= k
    since_when[enough] = since[first][start[enough] + k - 1]
    later = since > since_when[query]
    changed, behind = np.unique(of_period[later], return_counts=True)
    of = changed % (periods + 1)
    few = np.isin(of_period, changed[behind < k]) & later
    return (
        np.bincount(of, minlength=periods + 1),
        np.bincount(of[behind < k], minlength=periods + 1),
        len(np.unique(who[few])),
    )


def _newcomer(
    state: State, ledger: Ledger, method: Method, k: int, rng: np.random.Generator, skipped: list[Skipped]
) -> list[Finding]:
    """Does a query appear as soon as one person issues it, if accounts of the attacker issue it before?"""
    waiting = state.waiting
    if waiting is None or len(waiting) == 0:
        skipped.append(SeriesSkipped("newcomer", "no event waits"))
        return []
    query, user = waiting.events["query"], waiting.events["user"]
    pairs = np.unique(query.astype(np.int64) * len(waiting.texts["user"]) + user)
    alone = np.flatnonzero(np.bincount(pairs // len(waiting.texts["user"])) == 1)
    targets = sampled(alone, _TARGETS, rng)
    if len(targets) == 0:
        skipped.append(SeriesSkipped("newcomer", "no query of one person alone waits"))
        return []
    theirs = np.isin(query, targets)
    _, first = np.unique(query[theirs], return_index=True)
    once = np.zeros(len(waiting), np.bool_)
    once[np.flatnonzero(theirs)[first]] = True
    found: list[Finding] = []
    for accounts in dict.fromkeys((k - 1, 2 * (k - 1))):
        planted = _planted(waiting.kept(once), accounts)
        with_victims = _appear(state, waiting.joined(planted), ledger, method, planted.texts["query"])
        without = _appear(state, waiting.kept(~theirs).joined(planted), ledger, method, planted.texts["query"])
        found.append(
            SeriesFinding(
                attack="newcomer",
                setting=f"{accounts} planted account{'s' if accounts > 1 else ''}",
                number="queries of one person that appear when that person issues them",
                unit="share",
                estimate=share(with_victims, len(targets)),
                baseline=0.0,
                baseline_text="no query of one person appears",
                control=share(without, len(targets)),
                control_text="the same accounts, and the person does not issue the query",
                trials=len(targets),
            )
        )
    return found


def _planted(victims: Waiting, accounts: int) -> Waiting:
    """The same queries, each by as many accounts of its own, without clicks."""
    n = len(victims)
    nothing = np.empty(0, np.int32)
    empty = dict.fromkeys(victims.clicks, nothing)
    made: Waiting | None = None
    for _ in range(accounts):
        names = pa.array(sorted(secrets.token_hex(16) for _ in range(n)), pa.large_string())
        one = replace(
            victims,
            events={**victims.events, "user": np.arange(n, dtype=np.int32)},
            clicks=empty,
            texts={**victims.texts, "user": names, "url": names[:0]},
            digests={**victims.digests, "url": (np.empty(0, np.uint64), np.empty(0, np.uint64))},
        ).in_order()
        made = one if made is None else made.joined(one)
    return victims if made is None else made


def _appear(state: State, waiting: Waiting, ledger: Ledger, method: Method, targets: pa.Array) -> int:
    """How many queries a next release would have."""
    log = replace(state, waiting=waiting).as_log(ledger.settings, method)
    try:
        queries = queries_of(method.anonymize(log, seed=ledger.settings.seed))
        return int(pc.sum(pc.is_in(targets, value_set=queries.cast(targets.type))).as_py() or 0)
    except NothingToReleaseError:
        return 0
    finally:
        log.close()


def _linkage(linked: Sequence[_Linked], rng: np.random.Generator, carried: bool) -> Finding:
    """Whether the pseudonym with the most similar queries in the next release is that of the same person."""
    hits = control = chance = 0.0
    trials = candidates = 0
    for one, other in pairwise(linked):
        both = np.flatnonzero(pc.is_in(one.users, value_set=other.users).to_numpy(zero_copy_only=False))
        some = sampled(both, _TARGETS, rng)
        if len(some) == 0 or len(other.users) < 2:
            continue
        texts = pc.unique(pa.concat_arrays([one.query, other.query]))
        ours, theirs = (_vectors(linked_one, texts) for linked_one in (one, other))
        near = np.asarray((ours[some] @ theirs.T).todense())
        best = near == near.max(axis=1, keepdims=True)
        who = pc.index_in(other.users, value_set=one.users.take(pa.array(some)))
        of_other = np.asarray(pc.fill_null(who, -1))
        # A person may have several pseudonyms: index_in names one place for equal names.
        place = np.asarray(pc.index_in(one.users.take(pa.array(some)), value_set=one.users.take(pa.array(some))))
        same = of_other[None, :] == place[:, None]
        if carried:  # the attacker reads it
            best = same
        hits += float(((best & same).sum(axis=1) / best.sum(axis=1)).sum())
        wrong = np.roll(same, 1, axis=0)
        control += float(((best & wrong).sum(axis=1) / best.sum(axis=1)).sum())
        chance += float(same.mean(axis=1).sum())
        trials += len(some)
        candidates = max(candidates, len(other.users))
    estimate = share(hits, trials) if trials else Estimate(0.0, 0.0, 1.0)
    return SeriesFinding(
        attack="release_linkage",
        setting="pseudonyms carry over" if carried else "",
        number="pseudonyms whose most similar pseudonym in the next release is of the same person",
        unit="share",
        estimate=estimate,
        baseline=chance / trials if trials else 0.0,
        baseline_text="a pseudonym of the next release at random",
        control=share(control, trials) if trials else None,
        control_text="the same for another person than the one who is looked for",
        trials=trials,
        details={"candidates": candidates},
    )


def _vectors(linked: _Linked, texts: pa.Array) -> csr_matrix:
    """The queries of each pseudonym as a vector of length 1, with little weight on what many have."""
    column = np.asarray(pc.index_in(linked.query, value_set=texts))
    weight = np.log(1 + len(linked.users) / np.maximum(np.bincount(column, minlength=len(texts)), 1))
    made = csr_matrix((weight[column], (linked.owner, column)), shape=(len(linked.users), len(texts)))
    norm = np.sqrt(np.asarray(made.multiply(made).sum(axis=1)).ravel())
    return csr_matrix(made.multiply(1 / np.maximum(norm, 1e-12)[:, None]))
