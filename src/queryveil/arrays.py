"""Lists of different lengths in flat arrays: list b is values[start[b]:start[b + 1]]."""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

N = TypeVar("N", bound=np.integer)
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def offsets(sizes: NDArray[Any]) -> Longs:
    """Where each of several lists starts, if they are put one after the other, and where the last ends."""
    start = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    return start


def ranges(begin: NDArray[Any], size: NDArray[Any]) -> Longs:
    """begin[0], begin[0] + 1, ... as many as size[0], then the same for the next."""
    start = offsets(size)
    found: Longs = np.repeat(begin - start[:-1], size)
    found += np.arange(start[-1])
    return found


def sampled(values: NDArray[N], most: int, rng: np.random.Generator) -> NDArray[N]:
    """All values, or a random sample of them in ascending order if they are too many."""
    return values if len(values) <= most else np.sort(rng.choice(values, most, replace=False))


def places(keys: NDArray[Any], asked: NDArray[Any]) -> Longs:
    """The place of each number among ascending keys, -1 where it is not among them."""
    if len(keys) == 0:
        return np.full(len(asked), -1, np.int64)
    at = np.searchsorted(keys, asked).clip(0, len(keys) - 1)
    return np.where(keys[at] == asked, at, -1)


@dataclass(frozen=True, eq=False)
class Ragged:
    """Lists one after the other; a subclass adds a column of values, or several.

    Attributes:
        start: Where each list starts, the first at 0, and where the last ends.
    """

    start: Longs

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def sizes(self) -> Longs:
        """How many values each list has."""
        return np.diff(self.start)

    @property
    def owners(self) -> Longs:
        """The list of each value."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def within(self) -> Longs:
        """The place of each value in its list."""
        return np.arange(self.start[-1]) - np.repeat(self.start[:-1], self.sizes)

    def positions(self, lists: NDArray[np.integer[Any]]) -> Longs:
        """Where the values of some lists are, list after list."""
        begin = self.start[lists]
        return ranges(begin, self.start[1:][lists] - begin)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum of whole numbers, or of flags, over each list; 0 over an empty one."""
        total = np.zeros(len(values) + 1, np.cumsum(values[:0]).dtype)
        np.cumsum(values, out=total[1:])
        found: NDArray[Any] = total[self.start[1:]] - total[self.start[:-1]]
        return found
