"""An empirical audit of differential privacy: does a method leak more of one user than it claims?

Two neighbouring logs, one of which has a user more, are anonymized many times. An event that is likelier with him than
without, beyond what epsilon and delta allow, refutes the claim. How much likelier it is at least, is told by the exact
bounds of Clopper and Pearson (Biometrika 26, 1934); the way from there to epsilon is that of Zeyu Ding et al.,
Detecting Violations of Differential Privacy, CCS 2018, and Matthew Jagielski et al., Auditing Differentially Private
Machine Learning, NeurIPS 2020.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.errors import QueryveilError
from queryveil.ingest import read_log
from queryveil.methods import DpSet, Zealous

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Trial:
    """One pair of neighbouring logs.

    Attributes:
        users: How many users issue the same queries as the one who is added.
        event: What was looked for, in words.
        with_user: In how many of the runs it occurred on the log with him.
        without: In how many it occurred on the log without him.
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
        confidence: How sure the lower bound is.
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
    method: Zealous | DpSet, *, runs: int = 10_000, confidence: float = 0.99, users: Sequence[int] | None = None
) -> Audit:
    """Look for a violation of what a method claims.

    All runs on a log are one: it holds so many copies of the log, with users, words and addresses of their own, that
    do not touch each other, because every step of the methods is by user or by query. So the audit sees everything,
    from reading a log to the released table. In each copy some users issue the same d queries, and the one who is added
    issues them too. An event is chosen on one half of the runs, and counted on the other.

    Args:
        method: The method, with its parameters. A small d makes the sharpest audit.
        runs: How many runs on each log.
        confidence: How sure the lower bound must be.
        users: How many users issue the same queries, one number a pair of logs; by default such that noise decides, and
            such that one user more brings the queries across the first threshold.

    Returns:
        The lower bound on epsilon, and whether it exceeds the claim.
    """
    if runs < 2:
        raise QueryveilError(f"The 'runs' of an audit must be at least 2. Got {runs} instead.")
    claim = method.claim
    levels = tuple(users) if users is not None else _levels(method)
    doubt = (1 - confidence) / len(levels)
    trials = tuple(_trial(method, level, runs, claim.delta, doubt) for level in levels)
    return Audit(max(trial.epsilon for trial in trials), claim.epsilon, claim.delta, confidence, trials)


def _levels(method: Zealous | DpSet) -> tuple[int, ...]:
    """Where to look: a half, one and two scales of noise below the last threshold, and right below the first one."""
    step = next(step for step in reversed(method.claim.steps) if step.of == "queries")
    each = 1 if step.noise == "laplace" else math.isqrt(step.unit**2 // step.d)
    threshold = step.threshold or 0
    below = [math.floor((threshold - far * step.scale) / each) for far in (0.5, 1, 2)]
    return tuple(sorted({max(0, level) for level in (*below, math.ceil(step.first / each) - 1)}))


def _trial(method: Zealous | DpSet, users: int, runs: int, delta: float, doubt: float) -> Trial:
    found = [_scores(method, users + more, runs) for more in (1, 0)]
    half = runs // 2
    best = max(
        (
            (_bound(*_occurred(found, slice(0, half), name, least), half, delta, doubt), name, least)
            for name in found[0]
            for least in _edges(found[0][name][:half])
        ),
        default=(0.0, "released", 1),
    )
    _, name, least = best
    left = runs - half
    occurred = _occurred(found, slice(half, runs), name, least)
    epsilon = _bound(*occurred, left, delta, doubt)
    what = {"released": f"at least {least} rows are released", "counted": f"the counts add up to at least {least}"}[
        name
    ]
    return Trial(users, what, *occurred, left, epsilon)


def _scores(method: Zealous | DpSet, users: int, runs: int) -> dict[str, Longs]:
    """In each run: how many rows are released, and what their counts add up to."""
    copy = np.repeat(np.arange(runs), method.d)
    which = np.tile(np.arange(method.d), runs)
    words = [f"a{j}x{i} b{j}x{i}" for i, j in zip(copy.tolist(), which.tolist(), strict=True)]
    queries = pa.array(words)
    # Somebody else searches too, so that the log is never empty.
    place = np.tile(np.arange(len(words)), users)
    owner = np.repeat(np.arange(users), len(words)) * runs + copy[place]
    texts = queries.take(pa.array(place))
    log = read_log(
        pa.table(
            {
                "user": pa.concat_arrays([pa.array(owner).cast(pa.string()), pa.array(["other"])]),
                "query": pa.concat_arrays([texts, pa.array(["other"])]),
                "url": pa.concat_arrays([texts, pa.array(["other"])]),
            }
        )
    )
    released = np.zeros(runs, np.int64)
    counts = np.zeros(runs, np.int64)
    for batch in method.anonymize(log).batches():
        at = pc.fill_null(pc.index_in(batch["query"], queries), -1).to_numpy()
        run = copy[at[at >= 0]]
        released += np.bincount(run, minlength=runs)
        if "count" in batch.schema.names:
            np.add.at(counts, run, batch["count"].to_numpy()[at >= 0])
    log.close()
    return {"released": released, "counted": counts}


def _edges(scores: Longs) -> list[int]:
    """Where events may be cut: at most forty places, none of them below all scores."""
    return [int(edge) for edge in np.unique(np.quantile(scores, np.linspace(0, 1, 41), method="nearest"))]


def _occurred(found: list[dict[str, Longs]], runs: slice, name: str, least: int) -> tuple[int, int]:
    """How often a score is at least so high, with the user and without."""
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
