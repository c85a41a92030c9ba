"""The nodes of a tree whose meaning is nearest to that of a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels.nearest import nearest
from queryveil.kernels.types import Ints, Longs, Singles

PROBES = 12
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Cells:
    """Vectors sorted into cells of near ones (spherical k-means), so that few need to be compared.

    Attributes:
        middles: The middle of every cell, as small integers.
        middle_scale: What its products are multiplied by.
        cell: Cell c holds order[cell[c]:cell[c + 1]].
        order: The places of the vectors, cell after cell.
        vectors: The vectors in that order, as small integers.
        scale: What their products are multiplied by.
    """

    middles: NDArray[np.int8]
    middle_scale: Singles
    cell: Longs
    order: Longs
    vectors: NDArray[np.int8]
    scale: Singles

    @classmethod
    def of(cls, vectors: Singles) -> "Cells":
        """Sort unit vectors into about as many cells as a cell holds vectors."""
        small, scale = _small(vectors)
        n = max(1, round(len(vectors) ** 0.5))
        # Nodes near each other in the tree are near in meaning, so every n-th node is a good start.
        middles = vectors[np.linspace(0, len(vectors) - 1, n).astype(np.int64)]
        sample = np.arange(0, len(vectors), max(1, len(vectors) // (50 * n)))
        for _ in range(_ROUNDS):
            home = _home(small[sample], *_small(middles))
            sums = np.zeros((n, vectors.shape[1]), np.float64)
            np.add.at(sums, home, vectors[sample])
            middles = np.where(sums.any(axis=1, keepdims=True), unit(sums), middles).astype(np.float32)
        middle, middle_scale = _small(middles)
        home = _home(small, middle, middle_scale)
        order = np.argsort(home, kind="stable")
        cell = np.searchsorted(home[order], np.arange(n + 1))
        return cls(middle, middle_scale, cell.astype(np.int64), order, small[order], scale[order])

    def nearest(self, vectors: Singles, most: int) -> tuple[Longs, Singles]:
        """The places of the nearest vectors to each, -1 where there are fewer, and their cosines."""
        small, scale = _small(vectors)
        most = min(most, len(self.order))
        probes = min(PROBES, len(self.middles))
        place, score = nearest(
            small, self.middles, self.middle_scale, self.cell, self.vectors, self.scale, probes, most
        )
        found = np.where(place >= 0, self.order[place], -1)
        return found, score * scale[:, None]


class Nearest(Protocol):
    """Finds the vectors that are nearest to others."""

    def nearest(self, vectors: Singles, most: int) -> tuple[Longs, Singles]:
        """The places of the nearest vectors to each, -1 where there are fewer, and their cosines."""


@dataclass(frozen=True, eq=False)
class LayeredCells:
    """The vectors of several trees that are one.

    Attributes:
        layers: The vectors of each, and what is added to its nodes; the roots are one.
    """

    layers: Sequence[tuple[Nearest, int]]

    def nearest(self, vectors: Singles, most: int) -> tuple[Longs, Singles]:
        """The places of the nearest vectors to each, -1 where there are fewer, and their cosines."""
        parts = [(cells.nearest(vectors, most), shift) for cells, shift in self.layers]
        place = np.hstack([np.where(found > 0, found + shift, found) for (found, _), shift in parts])
        cosine = np.hstack([np.where(found >= 0, near, -2) for (found, near), _ in parts]).astype(np.float32)
        best = np.argsort(-cosine, axis=1, kind="stable")[:, :most]
        return np.take_along_axis(place, best, 1), np.take_along_axis(cosine, best, 1)


def unit(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors of length one in the same directions; zeros stay zeros."""
    length = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    found: NDArray[Any] = vectors / np.where(length > 0, length, 1).astype(vectors.dtype)
    return found


def _small(vectors: Singles) -> tuple[NDArray[np.int8], Singles]:
    """Vectors as integers of one byte, and what to multiply them with."""
    scale = np.maximum(np.abs(vectors).max(axis=1, initial=0), 1e-9).astype(np.float32) / np.float32(127)
    return np.rint(vectors / scale[:, None]).astype(np.int8), scale


def _home(vectors: NDArray[np.int8], middles: NDArray[np.int8], scale: Singles) -> Ints:
    """The nearest middle of each vector."""
    whole = np.array([0, len(middles)], np.int64)
    one, one_scale = np.zeros((1, vectors.shape[1]), np.int8), np.ones(1, np.float32)
    return nearest(vectors, one, one_scale, whole, middles, scale, 1, 1)[0][:, 0]
