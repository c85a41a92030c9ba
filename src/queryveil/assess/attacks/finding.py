"""What an attack finds: a number with its interval, beside a baseline and a control."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any, Literal

import numpy as np

from queryveil.arrays import Floats
from queryveil.errors import QueryveilError
from queryveil.text.show import percent

LEVEL = 0.95
"""How often an interval holds the true value."""
ROUNDS = 1_000
_FEW = 10
_LEAST_SURE = 20
_LEAST_RECALL = 1e-4

Question = Literal["singling out", "linkability", "inference"]
Unit = Literal["share", "index", "accounts", "rate"]


class InapplicableError(QueryveilError):
    """An attack that this release leaves no room for, or that lacks what it needs."""


class NoUserMapError(InapplicableError):
    """An attack that needs to know who is who."""

    def __init__(self) -> None:
        super().__init__("needs the user map")


@dataclass(frozen=True)
class Estimate:
    """A number, and the interval that holds the true one 95 times in 100."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Tried:
    """An attack that was tried, by its id in the registry."""

    attack: str

    @property
    def label(self) -> str:
        """What the attack is called in tables and reports."""
        from queryveil.assess.attacks.registry import ATTACKS

        return ATTACKS[self.attack].label

    @property
    def question(self) -> Question:
        """Which of the three questions it asks."""
        from queryveil.assess.attacks.registry import ATTACKS

        return ATTACKS[self.attack].question


@dataclass(frozen=True)
class Finding(Tried):
    """What an attack found."""

    setting: str
    """What the attacker knows or does, where there is a choice; else empty."""
    number: str
    """What the estimate is, in words."""
    unit: Unit
    """A share from 0 to 1, an index of at most 1, a number of accounts, or a share shown as so many in 100,000."""
    estimate: Estimate
    baseline: float
    baseline_text: str
    """What the baseline is, in words."""
    control: Estimate | None
    control_text: str
    """What the control is, in words, or why there is none."""
    trials: int
    """How many people, pairs, queries or groups it was tried on."""
    beside: str = ""
    """What else it found, in words."""
    examples: tuple[str, ...] = ()
    """What it looks like, masked."""
    details: Mapping[str, float | int | str] = field(default_factory=dict)
    correlation: float = 0.0
    """How the trials of the estimate and of the control go together, where they are the same people; from -1 to 1."""
    gave_up: bool = False
    """Whether it ended before it found anything, which is no success whatever the number."""
    loss: float | None = None
    """The Anonymity Loss Coefficient, at most 1; None where the attack makes no predictions about people."""

    @property
    def title(self) -> str:
        """What the attack is called, with what its attacker knows."""
        return ", ".join(part for part in (self.label, self.setting) if part)

    @property
    def succeeds(self) -> bool:
        """Whether it is above the baseline and the control by more than chance.

        The baseline is a known number, so the interval must lie above it. A control is an estimate like the attack, so
        the interval of their difference must lie above 0. For a number of accounts: whether fewer do than the release
        promises.
        """
        if self.gave_up:
            return False
        if self.unit == "accounts":
            return self.estimate.value < self.baseline
        if self.estimate.low <= self.baseline:
            return False
        return self.control is None or least_gain(self.estimate, self.control, self.correlation) > 0

    def as_dict(self) -> dict[str, Any]:
        """The finding as plain values, for JSON."""
        return asdict(self) | {
            "label": self.label,
            "question": self.question,
            "examples": list(self.examples),
            "details": dict(self.details),
            "succeeds": self.succeeds,
        }


def shown(value: float, unit: Unit) -> str:
    """A number with its unit, for a reader."""
    if unit == "accounts":
        return f"{value:,.0f}"
    if unit == "index":
        return f"{value:.3f}"
    if unit == "rate":
        return f"{100_000 * value:,.0f} in 100,000"
    return percent(value)


def estimated(estimate: Estimate, unit: Unit) -> str:
    """An estimate with its interval, for a reader."""
    if unit == "accounts":
        return shown(estimate.value, unit)
    low, high = (
        shown(bound, unit).removesuffix(" %").removesuffix(" in 100,000") for bound in (estimate.low, estimate.high)
    )
    return f"{shown(estimate.value, unit)} ({low} to {high})"


def share(hits: float, trials: int) -> Estimate:
    """A share, with the interval of Clopper and Pearson.

    Args:
        hits: How many trials succeeded. It may also be a sum of chances, each from 0 to 1: they vary less than hits
            with the same mean, so the interval is then wider than it need be.
        trials: How many there were.
    """
    from scipy.special import betaincinv

    if trials == 0:
        return Estimate(0.0, 0.0, 1.0)
    hits = min(hits, trials)
    tail = (1 - LEVEL) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return Estimate(hits / trials, low, high)


def anonymity_loss(precision: float, recall: float, baseline: float) -> float:
    """The Anonymity Loss Coefficient: what an attacker gains of what there is to gain beyond the baseline.

    Paul Francis, David Wagner, Towards better attribute inference vulnerability measures, arXiv:2507.01710 (2025), with
    their constants: precision P at recall R counts as (1 - (log R / log 0.0001)^3) P.

    Args:
        precision: How many predictions are right.
        recall: For how many people or queries the attacker predicts at all.
        baseline: How many predictions about all of them would be right without the release.
    """
    return _loss(np.array([precision]), np.array([recall]), baseline)


def surest_loss(right: Floats, sure: Floats, baseline: float) -> float:
    """The coefficient of an attacker who predicts only where they are sure: the largest over all thresholds.

    Args:
        right: The probability that each prediction is right.
        sure: How sure the attacker is of each.
        baseline: How many predictions would be right without the release.
    """
    n, order = len(right), np.argsort(-sure, kind="stable")
    last = np.append(np.flatnonzero(np.diff(sure[order])), n - 1)
    last = last[(last >= _LEAST_SURE - 1) | (last == n - 1)]  # of a few predictions, all may be right by chance
    made = last + 1
    return _loss(np.cumsum(right[order])[last] / made, made / n, baseline)


def _loss(precision: Floats, recall: Floats, baseline: float) -> float:
    if baseline >= 1:
        return 0.0
    counted = precision * (1 - (np.log(np.maximum(recall, _LEAST_RECALL)) / np.log(_LEAST_RECALL)) ** 3)
    return float((counted.max() - baseline) / (1 - baseline))


def least_gain(found: Estimate, control: Estimate, correlation: float = 0.0) -> float:
    """The low end of the interval of a difference, from the intervals of both sides.

    The distances to the ends that matter are squared and added, as in Robert G. Newcombe, Interval estimation for the
    difference between independent proportions, Statistics in Medicine 17 (1998), method 10; for the same people in
    both, as in his method for paired data in the same volume. Where there is no difference, it is above 0 in
    at most 2.5 of 100 cases for shares, and in about 3 for means, whose bootstrap is a little narrow. To ask for two
    intervals apart would be much stricter than that.

    Args:
        found: What the attack found.
        control: What the control found.
        correlation: How the two go together, from -1 to 1.
    """
    below, above = found.value - found.low, control.high - control.value
    return found.value - control.value - sqrt(max(below**2 + above**2 - 2 * correlation * below * above, 0.0))


def mean(values: Floats, seed: int, least: float, most: float) -> Estimate:
    """A mean, with the percentile interval of the bootstrap.

    Args:
        values: The values.
        seed: Random seed.
        least: The least that a value can be.
        most: The most that a value can be. Of a few values, the interval is all that is possible.
    """
    rng = np.random.default_rng(seed)
    n = len(values)
    if n < _FEW:
        return Estimate(float(values.mean()), least, most)
    found = [float(values[rng.integers(0, n, n)].mean()) for _ in range(ROUNDS)]
    return Estimate(float(values.mean()), *_percentiles(np.array(found)))


def f1(right: int, wrong: int, missed: int, other: int, seed: int) -> Estimate:
    """The F1 of a classifier, with the percentile interval of the bootstrap.

    Args:
        right: Pairs rightly said to be of one person.
        wrong: Pairs wrongly said to be.
        missed: Pairs wrongly said not to be.
        other: Pairs rightly said not to be.
        seed: Random seed.
    """
    table = np.array([right, wrong, missed, other])
    drawn = np.random.default_rng(seed).multinomial(table.sum(), table / table.sum(), ROUNDS)
    both = np.vstack([table, drawn])
    twice = 2 * both[:, 0]
    found = twice / np.maximum(twice + both[:, 1] + both[:, 2], 1)
    return Estimate(float(found[0]), *_percentiles(found[1:]))


def _percentiles(found: Floats) -> tuple[float, float]:
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
