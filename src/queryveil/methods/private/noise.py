"""Noise and budgets of differential privacy, by OpenDP. Nothing here is seeded.

A sum is released in three steps: sums below a first threshold are dropped, the others get noise, and noisy sums below
a second threshold are dropped. One user adds to at most d sums. Let M be this on a log, and M' on the log with one user
more; a sum is *crossed* if it reaches the first threshold only with them. Then, for any set of releases:

- Without the crossed sums M' is M on sums that differ by what this user contributes, so it is as private as its noise.
- A crossed sum is at most first - 1 plus what the user contributes. The second threshold is chosen such that a crossed
  sum is released with probability at most delta_t. The noise of crossed sums is independent of the rest, so the
  probability of any set without them is at least 1 - delta_t times what it would be.

Both ways this adds delta_t to the delta of the noise, and nothing to epsilon. For one step this is Korolova et al. 2009
(Laplace) and Gopi et al. 2020 (Gaussian); with a first threshold above 1, Goetz et al. 2012. It holds as well when
several such steps follow each other, each knowing what the steps before it released: epsilon, rho and delta add up.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.errors import QueryveilError, option, require

Longs = NDArray[np.int64]

_LARGEST = 1e15
"""No log has so many users that noise of a larger scale leaves anything of it."""
WHOLE = 1 << 20
"""The length of a user's contribution, as a whole number: sums of whole numbers do not depend on their order."""


def opendp() -> Any:
    """OpenDP, ready to use.

    Raises:
        QueryveilError: If it is not installed.
    """
    require("Differentially private noise", "opendp.prelude")
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def laplace(values: Longs, scale: float) -> Longs:
    """Whole numbers with discrete Laplace noise."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array(dp.m.make_laplace(*space, scale=scale)(values), np.int64)


def gaussian(values: Longs, scale: float) -> Longs:
    """Whole numbers with discrete Gaussian noise."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    return np.array(dp.m.make_gaussian(*space, scale=scale)(values), np.int64)


class Noisy:
    """A function for `Engine.map`: noise on the column `n`, and only the rows that reach a threshold.

    Without a threshold all rows stay, and a sum below 1 becomes 1, because the rows are known to exist. It may run in
    another process, which then uses the entropy of its own machine.
    """

    def __init__(self, keys: pa.Schema, kind: str, scale: float, threshold: int | None) -> None:
        self.schema = keys.append(pa.field("n", pa.int64()))
        self.kind, self.scale, self.threshold = kind, scale, threshold

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are released, with noisy sums."""
        exact = batch["n"].to_numpy().astype(np.int64)
        noisy = (laplace if self.kind == "laplace" else gaussian)(exact, self.scale) if len(exact) else exact
        columns = [batch[name].cast(self.schema.field(name).type) for name in self.schema.names[:-1]]
        if self.threshold is None:
            return pa.RecordBatch.from_arrays([*columns, pa.array(np.maximum(noisy, 1))], schema=self.schema)
        rows = pa.RecordBatch.from_arrays([*columns, pa.array(noisy)], schema=self.schema)
        return rows.filter(pa.array(noisy >= self.threshold))


def laplace_threshold(d: int, scale: float, delta: float, first: int) -> int:
    """The least threshold for which one user's d counts cost at most delta.

    Raises:
        QueryveilError: If the noise would be larger than any log.
    """
    if scale > _LARGEST:
        raise QueryveilError(f"Noise of scale {scale:g} is larger than any log; choose a larger {option('epsilon')}.")
    p = math.exp(-1 / scale)
    one = -math.expm1(math.log1p(-delta) / d)
    least = first + max(1, math.floor(-scale * math.log(one * (1 + p))))
    while laplace_delta(d, scale, least, first) > delta:
        least += max(1, round(scale * 1e-12))
    return least


def laplace_delta(d: int, scale: float, threshold: int, first: int) -> float:
    """What a threshold costs: the probability that noise lifts one of d counts of `first` to it."""
    p = math.exp(-1 / scale)
    return -math.expm1(d * math.log1p(-math.exp(-(threshold - first) / scale) / (1 + p)))


def gaussian_threshold(d: int, scale: float, delta: float, first: int) -> int:
    """The least threshold for which one user, who spreads `WHOLE` over at most d sums, costs at most delta.

    The more sums a user adds to, the less they add to each, so the worst number is searched for.
    """
    from scipy.special import ndtri

    n = np.arange(1, d + 1)
    one = -np.expm1(math.log1p(-delta) / n)
    return first + math.ceil(float((WHOLE / np.sqrt(n) - scale * ndtri(one)).max()))


@lru_cache
def rho_of(epsilon: float, delta: float) -> float:
    """The rho of zero-concentrated privacy that is (epsilon, delta)-private, by OpenDP's conversion."""
    dp = opendp()
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T=float)

    def private(scale: float) -> bool:
        made = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale))
        return bool(made.map(1.0).delta(epsilon) <= delta)

    low, high = 1e-3, 1.0
    while not private(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if private(middle) else (middle, high)
    return 1 / (2 * high * high)
