"""An empirical audit of differential privacy: does a method leak more about one user than it claims?

Two neighbouring logs are anonymized many times; one of them has one more user. If an event is more likely with this
user than without, beyond what epsilon and delta allow, the claim is refuted. The exact bounds of Clopper and Pearson
(Biometrika 26, 1934) say how much more likely it is at least. The step from there to epsilon is that of Zeyu Ding et
al., Detecting Violations of Differential Privacy, CCS 2018, and Matthew Jagielski et al., Auditing Differentially
Private Machine Learning, NeurIPS 2020.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Longs
from queryveil.errors import QueryveilError
from queryveil.log.ingest import read_log
from queryveil.methods import DpSet, Zealous

_REPEATED = 3
"""How often the added user issues each of their queries; they may count for each of them only once."""


@dataclass(frozen=True)
class Trial:
    """One pair of neighbouring logs.

    Attributes:
        users: How many users issue the same queries as the one who is added.
        event: What was searched for, in words.
        with_user: In how many of the runs it occurred on the log with this user.
        without: In how many it occurred on the log without this user.
        runs: How many runs were made on each log for it.
        epsilon: The lower bound that follows.
    """

    users: int
    event: str
    with_user: int
    without: int
    runs: int
    epsilon: float


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        epsilon: With the given confidence the method is not private for any smaller epsilon, at its delta.
        claimed: The epsilon that it claims.
        delta: Its delta.
        confidence: The confidence of the lower bound.
        trials: The pairs of logs that were tried.
    """

    epsilon: float
    claimed: float
    delta: float
    confidence: float
    trials: tuple[Trial, ...]

    @property
    def holds(self) -> bool:
        """Whether the claim is not refuted."""
        return self.epsilon <= self.claimed


def audit(
    method: Zealous | DpSet, *, runs: int = 1_000, confidence: float = 0.99, users: Sequence[int] | None = None
) -> Audit:
    """Search for a violation of what a method claims.

    All runs on a log are done at once, on one log with that many copies of it. The copies have users, words and
    addresses of their own, and do not affect each other, because every step of the methods is by user or by query. So
    the audit covers everything from reading a log to the released table. In each copy some users issue the same d
    queries, as many others issue d other queries, and the added user issues all of them repeatedly, more than a user
    may count for. The event is chosen on one half of the runs and counted on the other.

    Args:
        method: The method, with its parameters. A small d makes the sharpest audit, and the fastest.
        runs: How many runs on each log. Each is a log of about 2 d times as many rows as the threshold is in users.
        confidence: The confidence of the lower bound.
        users: How many users issue the same queries, one number for each pair of logs. By default there are three: one
            where noise decides, one where one more user lifts the queries over the first threshold and, if counts have
            noise of their own, one where all queries are released.

    Returns:
        The lower bound on epsilon, and whether it exceeds the claim.

    Raises:
        QueryveilError: If nothing can be learned in this way, or the method is not differentially private.
    """
    if not isinstance(method, Zealous | DpSet):
        raise QueryveilError("An audit takes Zealous or DpSet with its parameters; no other method has an epsilon.")
    if runs < 2:
        raise QueryveilError(f"The 'runs' of an audit must be at least 2. Got {runs} instead.")
    if not 0 < confidence < 1:
        raise QueryveilError(f"The 'confidence' of an audit must be in (0, 1). Got {confidence} instead.")
    levels = tuple(users) if users is not None else _levels(method)
    if not levels or min(levels) < 0:
        raise QueryveilError(f"The 'users' of an audit must be some numbers of at least 0. Got {levels} instead.")
    claim = method.claim
    doubt = (1 - confidence) / len(levels)
    trials = tuple(_trial(method, level, runs, claim.delta, doubt) for level in levels)
    return Audit(max(trial.epsilon for trial in trials), claim.epsilon, claim.delta, confidence, trials)


def _levels(method: Zealous | DpSet) -> tuple[int, ...]:
    """Where to search: where one more user lifts queries over a threshold, somewhat below, and high above.

    High above is for counts with noise of their own. With several rounds the last one decides, because it has the
    lowest threshold.
    """
    steps = {step.of: step for step in method.claim.steps}
    levels = []
    for step in (steps[of] for of in ("n-grams", "queries") if of in steps):
        each = step.gives(step.d)
        threshold = step.threshold or 0
        far = [0, 0.5, 2, *([-3] if "counts" in steps else [])]
        sums = [step.pre_threshold, *(threshold - scales * step.scale for scales in far)]
        levels += [math.ceil(least / each) - 1 for least in sums]
    return tuple(sorted({max(0, level) for level in levels}))


def _trial(method: Zealous | DpSet, users: int, runs: int, delta: float, doubt: float) -> Trial:
    found = [_scores(method, users, more, runs) for more in (1, 0)]
    half = runs // 2
    _, what, least = max(
        (_bound(*_occurred(found, slice(0, half), what, least), half, delta, doubt), what, least)
        for what in found[0]
        for least in _edges(found[0][what][:half])
    )
    left = runs - half
    occurred = _occurred(found, slice(half, runs), what, least)
    epsilon = _bound(*occurred, left, delta, doubt)
    return Trial(users, f"{what}: at least {least}", *occurred, left, epsilon)


def _scores(method: Zealous | DpSet, users: int, more: int, runs: int) -> dict[str, Longs]:
    """In each run: how many rows are released, and the sum of their counts; of the user's first queries, and of all."""
    wide = 2 * method.max_queries_per_user
    copy, which = np.divmod(np.arange(runs * wide), wide)
    # As many words as an n-gram has, so that a query is one n-gram.
    words = range(max(1, method.ngrams if isinstance(method, DpSet) else 1))
    names = [f"{j}x{i}" for i, j in zip(copy.tolist(), which.tolist(), strict=True)]
    queries = pa.array([" ".join(f"{'abc'[word]}{name}" for word in words) for name in names])
    place = np.concatenate([np.tile(np.arange(len(names)), users), np.tile(np.arange(len(names)), more * _REPEATED)])
    group_events = users * len(names)
    mate = np.repeat(np.arange(users), len(names))
    # The two groups of users are separate, and so is the user who issues the queries of both.
    owner = (2 * mate + which[place[:group_events]] // method.max_queries_per_user) * runs + copy[place[:group_events]]
    owner = np.append(owner, 2 * users * runs + copy[place[group_events:]])
    when = which[place] + wide * np.append(
        np.zeros(group_events, np.int64), np.arange(len(place) - group_events) // len(names)
    )
    texts = queries.take(pa.array(place))
    # Somebody else searches too, so that the log is never empty.
    log = read_log(
        pa.table(
            {
                "user": pa.concat_arrays([pa.array(owner).cast(pa.string()), pa.array(["other"])]),
                "query": pa.concat_arrays([texts, pa.array(["other"])]),
                "time": pa.array(np.append(when, 0)).cast(pa.timestamp("s")),
                "url": pa.concat_arrays([texts, pa.array(["other"])]),
            }
        )
    )
    scores = {
        f"{what} {of}": np.zeros(runs, np.int64)
        for what in ("the rows released", "the sum of counts")
        for of in ("of the user's first queries", "of all queries", "of clicks")
    }
    for batch in method.anonymize(log).batches():
        at = pc.fill_null(pc.index_in(batch["query"], queries), -1).to_numpy()
        known = at >= 0
        clicked = batch["url"].is_valid().to_numpy(False) if "url" in batch.schema.names else np.zeros_like(known)
        count = batch["count"].to_numpy() if "count" in batch.schema.names else np.zeros(len(at), np.int64)
        parts = {
            "of the user's first queries": known & ~clicked & (which[at] < method.max_queries_per_user),
            "of all queries": known & ~clicked,
            "of clicks": known & clicked,
        }
        for of, rows in parts.items():
            np.add.at(scores[f"the rows released {of}"], copy[at[rows]], 1)
            np.add.at(scores[f"the sum of counts {of}"], copy[at[rows]], count[rows])
    log.close()
    return scores


def _edges(scores: Longs) -> list[int]:
    """The thresholds of events: at most forty, none of them below all scores."""
    return [int(edge) for edge in np.unique(np.quantile(scores, np.linspace(0, 1, 41), method="nearest"))]


def _occurred(found: list[dict[str, Longs]], runs: slice, name: str, least: int) -> tuple[int, int]:
    """How often a score reaches a threshold, with the user and without."""
    with_user, without = (int((scores[name][runs] >= least).sum()) for scores in found)
    return with_user, without


def _bound(with_user: int, without: int, runs: int, delta: float, doubt: float) -> float:
    """The least epsilon that these numbers allow, for the event and for its opposite, either way."""
    each = doubt / 4
    return max(
        _one_way(with_user, without, runs, delta, each),
        _one_way(without, with_user, runs, delta, each),
        _one_way(runs - without, runs - with_user, runs, delta, each),
        _one_way(runs - with_user, runs - without, runs, delta, each),
    )


def _one_way(likely: int, unlikely: int, runs: int, delta: float, doubt: float) -> float:
    from scipy.special import betaincinv

    low = float(betaincinv(likely, runs - likely + 1, doubt)) if likely else 0.0
    high = float(betaincinv(unlikely + 1, runs - unlikely, 1 - doubt)) if unlikely < runs else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
