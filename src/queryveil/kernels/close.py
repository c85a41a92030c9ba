"""Pairs of vectors with a large cosine: all of them, or most of them where there are too many vectors.

Vectors are whole numbers, about `UNIT` long. Sums of their products stay below 2^24, where a float of four bytes holds
every whole number. So each way to multiply gives the same number, in whatever order it adds, on any processor: the
answer is the same for everybody, edge for edge.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels.types import Bools, Floats, Ints, Longs, Singles

UNIT = 1024
"""The length of a vector. Numbers of this size also fit two bytes as a float, which graphics processors multiply."""

EXACT = 300_000
"""More vectors than this are not all compared with each other, except on a graphics processor."""

CELL = 2000
"""How many vectors a cell has, about."""
_ROUNDS = 4
_SAMPLE = 25
"""How many vectors of each cell decide where its middle is."""
_ROWS, _COLUMNS = 1024, 16_384
_MANY = 1 << 24
"""Pairs that are kept apart before they are packed."""

Device = Literal["cpu", "cuda"]


def whole(vectors: Singles) -> NDArray[np.int16]:
    """Unit vectors as vectors of whole numbers."""
    found: NDArray[np.int16] = np.rint(vectors * np.float32(UNIT)).astype(np.int16)
    return found


def close(dot: Floats, one: Floats, other: Floats, theta: float) -> Bools:
    """Whether the cosine of vectors is at least theta, from their product and their squared lengths.

    All numbers are whole and below 2^53, so only the last product rounds, and it does so in one way.
    """
    found: Bools = (dot > 0) & (dot * dot >= (theta * theta) * (one * other))
    return found


def squared(vectors: NDArray[np.int16]) -> Floats:
    """The squared length of each vector."""
    found: Floats = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64).astype(np.float64)
    return found


def close_to(some: NDArray[np.int16], vectors: NDArray[np.int16], theta: float) -> Iterator[tuple[Longs, Longs]]:
    """The pairs of one of some vectors and one of all, block by block."""
    for row in range(0, len(some), _ROWS):
        for column in range(0, len(vectors), _COLUMNS):
            yield _block(some, vectors, row, column, theta)


def close_pairs(
    vectors: NDArray[np.int16],
    theta: float,
    *,
    device: Device = "cpu",
    exact: int = EXACT,
    progress: Callable[[], None] = lambda: None,
) -> tuple[Longs, Ints]:
    """For each vector the others whose cosine with it is at least theta.

    Args:
        vectors: Vectors of whole numbers, as `whole` makes them.
        theta: The least cosine, above 0.
        device: What multiplies. On `cuda` all pairs are found, whatever their number.
        exact: On `cpu`, with more vectors than this, only vectors of one cell of near ones are compared.
        progress: Called now and then.

    Returns:
        Where the neighbours of each vector start, and the neighbours, ascending.
    """
    if device == "cuda":
        from queryveil.kernels.close_cuda import pairs_on_cuda

        found = pairs_on_cuda(vectors, theta)
    else:
        found = _all_pairs(vectors, theta) if len(vectors) <= exact else _pairs_in_cells(vectors, theta)
    packed = [np.empty(0, np.int64)]
    waiting, size = [], 0
    for one, other in found:
        waiting.append(one << 32 | other)
        size += len(one)
        if size > _MANY:
            packed, waiting, size = [*packed, _distinct(waiting)], [], 0
        progress()
    pairs = _distinct([*packed, *waiting])
    low, high = pairs >> 32, pairs & 0xFFFFFFFF
    both = np.concatenate([pairs, high << 32 | low])
    both.sort()
    start = np.searchsorted(both, np.arange(len(vectors) + 1) << 32)
    return start, (both & 0xFFFFFFFF).astype(np.int32)


def _distinct(parts: list[Longs]) -> Longs:
    together = np.concatenate(parts)
    together.sort()
    return together[np.diff(together, prepend=-1) > 0]


def _block(
    some: NDArray[np.int16], vectors: NDArray[np.int16], row: int, column: int, theta: float
) -> tuple[Longs, Longs]:
    rows, columns = some[row : row + _ROWS], vectors[column : column + _COLUMNS]
    one, other = squared(rows), squared(columns)
    if len(one) == 0 or len(other) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    dot = rows.astype(np.float32) @ columns.astype(np.float32).T
    # One number that every close pair reaches; `close` alone decides.
    least = np.float32(theta * np.sqrt(one.min() * other.min()) * (1 - 1e-6))
    at = np.flatnonzero(dot.ravel() >= least)
    x, y = at // len(columns), at % len(columns)
    good = close(dot.ravel()[at].astype(np.float64), one[x], other[y], theta)
    return x[good] + row, y[good] + column


def _all_pairs(vectors: NDArray[np.int16], theta: float) -> Iterator[tuple[Longs, Longs]]:
    for row in range(0, len(vectors), _ROWS):
        for column in range(row, len(vectors), _COLUMNS):
            # Rows of a block are compared with each other as well; each pair counts once.
            x, y = _block(vectors[: row + _ROWS], vectors, row, column, theta)
            yield x[x < y], y[x < y]


def _pairs_in_cells(vectors: NDArray[np.int16], theta: float) -> Iterator[tuple[Longs, Longs]]:
    """Compare vectors that are in one cell; each is in the two cells whose middles are nearest."""
    cells = max(2, len(vectors) // CELL)
    middles = vectors[np.linspace(0, len(vectors) - 1, cells).astype(np.int64)]
    sample = vectors[:: max(1, len(vectors) // (_SAMPLE * cells))]
    for _ in range(_ROUNDS):
        middles = _middles(sample, _nearest(sample, middles, 1)[:, 0], middles)
    home = _nearest(vectors, middles, 2)
    order = np.argsort(home, axis=None, kind="stable")
    edge = np.searchsorted(home.ravel()[order], np.arange(cells + 1))
    for cell in range(cells):
        members = order[edge[cell] : edge[cell + 1]] // 2
        for one, other in _all_pairs(vectors[members], theta):
            yield np.minimum(members[one], members[other]), np.maximum(members[one], members[other])


def _nearest(vectors: NDArray[np.int16], middles: NDArray[np.int16], most: int) -> Ints:
    """The nearest middles of each vector; of equally near ones the first."""
    found = np.empty((len(vectors), most), np.int32)
    turned = middles.astype(np.float32).T
    for row in range(0, len(vectors), _ROWS):
        dot = vectors[row : row + _ROWS].astype(np.float32) @ turned
        for place in range(most):
            best = dot.argmax(axis=1)
            found[row : row + _ROWS, place] = best
            dot[np.arange(len(dot)), best] = -np.inf
    return found


def _middles(vectors: NDArray[np.int16], home: Ints, before: NDArray[np.int16]) -> NDArray[np.int16]:
    """The middle of each cell; that of an empty one stays. Sums are of whole numbers, so that they are exact."""
    order = np.argsort(home, kind="stable")
    cell, begin = np.unique(home[order], return_index=True)
    total = np.add.reduceat(vectors[order].astype(np.int64), begin, axis=0).astype(np.float64)
    length = np.sqrt((total * total).sum(axis=1, keepdims=True))
    found = before.copy()
    found[cell] = np.rint(total * (UNIT / np.maximum(length, 1))).astype(np.int16)
    return found


def has_cuda() -> bool:
    """Whether there is a graphics processor here, and the packages that use it."""
    if any(find_spec(name) is None for name in ("torch", "triton")):
        return False
    import torch

    return bool(torch.cuda.is_available())
