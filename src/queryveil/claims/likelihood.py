"""How well a released table fits the stated noise, by tests that hold for every size.

Each test is an *e-value*: the likelihood of what was released under some other way to make it, divided by the
likelihood under the stated noise. Whatever the other way is, the expectation of this ratio under the stated noise is
at most 1. So it is 1 / a or more with probability a at most (Markov's inequality; Vovk and Wang, E-values:
calibration, combination and applications, Annals of Statistics 49, 2021). This needs no large numbers, no
randomisation for discrete noise and no independence between tests: a weighted mean of e-values is one again.
Therefore the other ways may be many. Here they are the noise scaled, shifted, left out, left out for a part, rounded,
repeated; and, where none of these is right, shares and histograms that are learned from the table itself, each row
from the rows before it.

Where the stated likelihood is not known exactly, an upper bound of it stands in its place; that makes ratios smaller.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

FINE = 16
"""Bins per scale in which shares are compared."""
REACH = 24
"""Scales around the threshold that have bins of their own; what is farther away is in the outermost bins."""
EXACT = 4096.0
"""Up to this scale Gaussian tails are summed up; above, they are those of the continuous one, to 9 digits."""
_SHARES = (1.0, 0.5, 0.1, 0.02)
"""On which part of the things the noise may be another."""
_SCALES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.5, 2.0, 4.0, 8.0)
"""By how much the noise may be scaled; 0 is none."""
_ROUNDED = (2, 5, 10, 20, 25, 50, 100, 1000)
"""To what counts may be rounded."""


@dataclass(frozen=True)
class Noise:
    """Discrete Laplace or discrete Gaussian noise, its probabilities as logarithms.

    Attributes:
        kind: `laplace` or `gaussian`.
        scale: b of Laplace, sigma of Gaussian noise; 0 is no noise.
    """

    kind: str
    scale: float

    def log_mass(self, k: Floats) -> Floats:
        """Of being k."""
        if self.scale == 0:
            return _log(k == 0)
        if self.kind == "laplace":
            p = math.exp(-1 / self.scale)
            return math.log1p(-p) - math.log1p(p) - np.abs(k) / self.scale
        log_norm = math.log(self._table.total) if self.scale < EXACT else math.log(self.scale * math.sqrt(2 * math.pi))
        return -(k**2) / (2 * self.scale**2) - log_norm

    def log_tail(self, k: Floats) -> Floats:
        """Of being at least k; of Gaussian noise far out an upper bound. By symmetry also of being at most -k."""
        if self.scale == 0:
            return _log(k <= 0)
        if self.kind == "laplace":
            log_half = math.log1p(math.exp(-1 / self.scale))
            above = -np.maximum(k, 1) / self.scale - log_half
            return np.where(k >= 1, above, np.log1p(-np.exp((np.minimum(k, 0) - 1) / self.scale - log_half)))
        from scipy.special import log_ndtr

        if self.scale >= EXACT:
            return np.asarray(log_ndtr(-(k - 0.5) / self.scale))
        reach = self._table.reach
        inside = self._table.log_tail[np.clip(k, -reach, reach).astype(np.int64) + reach]
        # The tail of discrete Gaussian noise is below the continuous one, one step earlier (Canonne et al. 2020).
        return np.where(k > reach, log_ndtr(-(k - 1) / self.scale), inside)

    def beyond(self, probability: float) -> int:
        """A number that the noise reaches with at most this probability."""
        if self.kind == "laplace":
            return math.ceil(-self.scale * math.log(probability))
        from scipy.special import ndtri

        return math.ceil(-self.scale * float(ndtri(probability))) + 1

    @cached_property
    def _table(self) -> "_Table":
        reach = math.ceil(36 * self.scale)
        mass = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * self.scale**2))
        above = np.cumsum(mass[::-1])[::-1]
        return _Table(reach, float(mass.sum()), _log(above / above[0]))


@dataclass(frozen=True)
class _Table:
    reach: int
    total: float
    log_tail: Floats


def _log(values: NDArray[np.bool_] | Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, np.float64))


def _mixed(share: float, one: Floats, other: Floats) -> Floats:
    """The logarithm of a mixture: `share` of one, the rest of the other."""
    if share >= 1:
        return one
    return np.logaddexp(math.log(share) + one, math.log1p(-share) + other)


def log_mean(values: Floats) -> float:
    """The logarithm of the mean of numbers whose logarithms are given."""
    top = float(values.max(initial=-np.inf))
    return top if math.isinf(top) else top + math.log(float(np.exp(values - top).mean()))


@dataclass(frozen=True)
class Chosen:
    """What was released of the things that have noise, in bins by their sums: the number of things is no secret here.

    Attributes:
        noise: The noise.
        things: How many things there are in each bin; what bin a thing is in follows from the log alone.
        released: How many of them were released.
        log_stated: The logarithm of the probability of what was released of each bin, an upper bound.
        log_before: The same of what must have been released before, whatever the bin.
    """

    noise: Noise
    things: Longs
    released: Longs
    log_stated: Floats
    log_before: float = 0.0

    def evidence(self) -> float:
        """The logarithm of an e-value against the stated noise and threshold."""
        from scipy.special import betaln

        # The share of each bin is whatever it is: a mixture of all of them (Krichevsky and Trofimov 1981).
        found = []
        for per in (1, FINE // 2):
            things, released, stated = (
                np.add.reduceat(values, np.arange(0, len(values), per))
                for values in (self.things, self.released, self.log_stated)
            )
            learned = betaln(released + 0.5, things - released + 0.5) - betaln(0.5, 0.5) - stated
            learned = learned[things > 0]
            found += [learned.sum() - self.log_before, log_mean(learned)]
        curves = self._curves() - float(self.log_stated.sum()) - self.log_before
        return log_mean(np.array([*found, log_mean(curves)]))

    def _curves(self) -> Floats:
        """The likelihood under other scales and thresholds, for all things or some."""
        middle = (np.arange(len(self.things)) + 0.5 - len(self.things) / 2) / FINE * self.noise.scale
        there = self.things > 0
        middle, released, dropped = middle[there], self.released[there], (self.things - self.released)[there]
        shifts = np.arange(-REACH, REACH + 0.1, 0.25) * self.noise.scale
        least = np.ceil(shifts[:, None] - middle[None, :])
        found = []
        for scale in (*_SCALES, 1.0):
            other = Noise(self.noise.kind, scale * self.noise.scale)
            above, below = other.log_tail(least), other.log_tail(1 - least)
            for blurred in (1e-4, 1e-2):
                logs = np.maximum(above, math.log(blurred)) @ released + np.maximum(below, math.log(blurred)) @ dropped
                found.append(logs - math.log1p(blurred) * (released + dropped).sum())
        return np.concatenate(found)


@dataclass(frozen=True)
class Counted:
    """Released noisy counts, in the order of the table.

    Attributes:
        noise: The noise.
        count: What was released.
        low: The least that the count without noise can be.
        high: The most that it can be.
        floor: The least count that is released.
        censored: Whether what is below the floor was raised to it; otherwise it was dropped.
        others: What somebody else may have counted: all users, all events.
        text: The place of each thing in an order of texts.
    """

    noise: Noise
    count: Floats
    low: Floats
    high: Floats
    floor: int
    censored: bool
    others: tuple[Floats, ...]
    text: Longs

    @cached_property
    def exact(self) -> Floats:
        """The count without noise, or the middle of where it can be."""
        return np.floor((self.low + self.high) / 2)

    def log_of(self, noise: Noise, exact: Floats) -> Floats:
        """The logarithm of the probability of each count, given that it is released."""
        mass = noise.log_mass(self.count - exact)
        if self.censored:
            return np.where(self.count <= self.floor, noise.log_tail(exact - self.floor), mass)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(mass), mass, mass - noise.log_tail(self.floor - exact))

    @cached_property
    def log_stated(self) -> Floats:
        """The same for the stated noise, an upper bound.

        The likeliest count is the one nearest to the released one: noise has one peak, and with Laplace noise this also
        holds where counts below the floor were dropped.
        """
        if self.censored:
            at_floor = self.noise.log_tail(self.low - self.floor)
            nearest = self.noise.log_mass(self.count - np.clip(self.count, self.low, self.high))
            return np.where(self.count <= self.floor, at_floor, nearest)
        return self.log_of(self.noise, np.clip(self.count, self.low, self.high))


def evidence_of_counts(parts: list[Counted]) -> float:
    """The logarithm of an e-value against the stated noise of counts."""
    stated = np.concatenate([part.log_stated for part in parts])
    own = np.concatenate([part.log_of(part.noise, part.exact) for part in parts])
    found = [
        float((_mixed(share, one, own) - stated).sum())
        for one in (*_scaled(parts), *_rounded(parts), *_repeated(parts))
        for share in _SHARES
        if share < 1 or not np.isneginf(one).any()
    ]
    learned = [float((own - stated).sum()) + _histogram(parts, bins) for bins in (4, 16, 64)]
    return log_mean(np.array([log_mean(np.array(found)), log_mean(np.array(learned))]))


def _scaled(parts: list[Counted]) -> list[Floats]:
    """Noise of other scales, on the stated counts or on others."""
    return [
        np.concatenate(
            [
                part.log_of(Noise(part.noise.kind, scale * part.noise.scale), (part.exact, *part.others)[of])
                for part in parts
            ]
        )
        for of in range(1 + len(parts[0].others))
        for scale in (*_SCALES, 1.0)
        if of or scale != 1.0
    ]


def _rounded(parts: list[Counted]) -> list[Floats]:
    """Noisy counts rounded down, or to the nearest."""
    found = []
    for to in _ROUNDED:
        for below in (0, to // 2):
            logs = []
            for part in parts:
                start = part.count - below - part.exact
                between = np.exp(part.noise.log_tail(start)) - np.exp(part.noise.log_tail(start + to))
                least = 0.0 if part.censored else part.noise.log_tail(part.floor - part.exact)
                # Cells that reach below the floor belong to counts that were not released, so this adds up to less
                # than 1 where the floor is no multiple; where it is one, nothing is lost.
                cell = np.where(start >= part.floor - part.exact, between, 0.0)
                logs.append(np.where(part.count % to == 0, _log(cell) - least, -np.inf))
            found.append(np.concatenate(logs))
    return found


def _repeated(parts: list[Counted]) -> list[Floats]:
    """The noise of a thing before: of any one, or of the neighbour in the order of texts, of counts, of the table."""
    noise = np.concatenate([part.count - part.exact for part in parts])
    text = np.concatenate([part.text for part in parts])
    exact = np.concatenate([part.exact for part in parts])
    n = len(noise)
    found = []
    for order in (np.arange(n), np.lexsort([np.arange(n), text]), np.lexsort([text, exact])):
        equal = np.zeros(n, np.bool_)
        equal[order[1:]] = noise[order[1:]] == noise[order[:-1]]
        found.append(_log(equal))
    by_noise = np.argsort(noise, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(noise[by_noise]) != 0)) if n else np.empty(0, np.int64)
    before = np.empty(n)
    before[by_noise] = np.arange(n) - np.repeat(starts, np.diff(np.append(starts, n)))
    found.append(_log(before / np.maximum(np.arange(n), 1)))
    return found


def _histogram(parts: list[Counted], bins: int) -> float:
    """How much likelier the counts are under a histogram of where in its distribution each one falls.

    The histogram is learned from the rows before. A discrete value covers a stretch of its distribution, and has the
    mean of the histogram over it.
    """
    edges = np.linspace(0, 1, bins + 1)
    covered, width = [], []
    for part in parts:
        whole = 0.0 if part.censored else part.noise.log_tail(part.floor - part.exact)
        high = np.exp(np.minimum(part.noise.log_tail(part.count - part.exact) - whole, 0))
        low = np.exp(np.minimum(part.noise.log_tail(part.count + 1 - part.exact) - whole, 0))
        if part.censored:
            high = np.where(part.count <= part.floor, 1.0, high)
        inside = np.minimum(high[:, None], edges[None, 1:]) - np.maximum(low[:, None], edges[None, :-1])
        # A stretch too narrow for floating point lies in one bin.
        narrow = high - low <= 1e-12
        inside = np.maximum(inside, 0.0)
        inside[narrow] = 0.0
        inside[narrow, np.minimum((high[narrow] * bins).astype(np.int64), bins - 1)] = 1.0
        covered.append(inside)
        width.append(inside.sum(axis=1))
    share = np.concatenate(covered) / np.concatenate(width)[:, None]
    seen = np.cumsum(share, axis=0) - share
    density = (seen + 0.5) / (np.arange(len(share))[:, None] + 0.5 * bins) * bins
    return float(np.log((share * density).sum(axis=1)).sum())
