"""The random numbers that the compiled loops of this package draw.

Importing this module imports numba, so it is imported only where logs are made. Draws are counter based
(SplitMix64): the name of a stream is its purpose (a seed and a user, or a topic and a rank), never the
time of the draw, so the same seed gives the same bytes for any chunks and threads.
"""

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import helper, kernel

Stream = NDArray[np.uint64]

# A whole number as Python writes it, or as the kernels pass it on.
Whole = int | np.int64 | np.uint64


@helper
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finalizer of SplitMix64): a bijection without visible pattern."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@helper
def key(a: Whole, b: Whole) -> np.uint64:
    """Name a stream, or a page of results, by two numbers."""
    return mix(mix(np.uint64(a) + np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(b))


@kernel
def stream(a: Whole, b: Whole) -> Stream:
    """Open the stream of draws named by two numbers."""
    state = np.empty(1, np.uint64)
    state[0] = key(a, b)
    return state


@kernel
def bits(rng: Stream) -> np.uint64:
    """Draw 64 random bits."""
    rng[0] += np.uint64(0x9E3779B97F4A7C15)
    return mix(rng[0])


@helper
def uniform(rng: Stream) -> float:
    """Draw a number in [0, 1)."""
    return float(bits(rng) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@helper
def below(rng: Stream, n: int) -> int:
    """Draw a whole number in [0, n)."""
    return int(uniform(rng) * n)


@helper
def normal(rng: Stream) -> float:
    """Draw from the standard normal distribution (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform(rng)))
    return float(radius * np.cos(2.0 * np.pi * uniform(rng)))


@kernel
def zipf(rng: Stream, n: int, slope: float, shift: float) -> int:
    """Draw a rank in [0, n) from the Zipf-Mandelbrot law, p(rank) ~ (rank + 1 + shift) ** -slope.

    The law is taken as a density and inverted in closed form, so that n may be in the billions. The slope
    must not be 1.
    """
    power = 1.0 - slope
    low = (1.0 + shift) ** power
    high = (n + 1.0 + shift) ** power
    rank = int((low + uniform(rng) * (high - low)) ** (1.0 / power) - shift) - 1
    return min(max(rank, 0), n - 1)


@helper
def pick(rng: Stream, cumulative: NDArray[np.float64]) -> int:
    """Draw an index from cumulative weights that end in 1."""
    return min(int(np.searchsorted(cumulative, uniform(rng), side="right")), len(cumulative) - 1)
