"""A column of texts while it is read: every distinct text gets a number, and in the end an id."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.errors import QueryveilError
from queryveil.text.spool import Spool

Digests = tuple[NDArray[np.uint64], NDArray[np.uint64]]
Check = NDArray[np.uint64] | None


@dataclass
class Column:
    """One text column: its numbers row by row, and its distinct texts."""

    numbers: list[NDArray[np.int32]] = field(default_factory=list)
    spool: Spool = field(default_factory=Spool)

    def __post_init__(self) -> None:
        from queryveil.kernels.intern import Interner

        self.interner = Interner()

    def add(self, texts: pa.Array, found: Digests, check: Check = None) -> NDArray[np.int32]:
        """Give texts their numbers, and keep those that are new.

        Args:
            texts: The texts.
            found: Their digests, which distinguish them.
            check: Other digests of them; texts with the same number must have the same.
        """
        numbers, fresh = self.interner.add(*found, check)
        if check is not None and (numbers < 0).any():
            raise QueryveilError(
                "Two different texts of the log have the same digest, which does not happen by chance: somebody made"
                " them so; leave out their rows, or change one of the texts."
            )
        if len(fresh):
            self.spool.append(texts.take(pa.array(fresh)))
        return numbers

    def append(self, texts: pa.Array, found: Digests, check: Check = None) -> None:
        """Add rows."""
        self.numbers.append(self.add(texts, found, check))

    def append_given(self, texts: pa.Array, found: Digests, check: Check = None) -> None:
        """As `append`, but the empty text is no value and gets -1."""
        given = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
        numbers = np.full(len(texts), -1, np.int32)
        if given.any():
            low, high = found
            some = check if check is None else check[given]
            numbers[given] = self.add(texts.filter(pa.array(given)), (low[given], high[given]), some)
        self.numbers.append(numbers)

    def finish(self) -> "Finished":
        """Turn numbers into ids; the texts are put in the order of the ids by `texts`."""
        ranks = self.interner.ranks()
        lookup = np.append(ranks, np.int32(-1))  # so that number -1 stays -1
        ids = [lookup[numbers] for numbers in self.numbers]
        self.numbers = []
        return Finished(ids, ranks)

    def low(self, ranks: NDArray[np.int32]) -> NDArray[np.uint64]:
        """The first half of the digest of each id."""
        low = np.empty(len(ranks), np.uint64)
        low[ranks] = self.interner.digests()[0]
        return low

    def texts(self, ranks: NDArray[np.int32]) -> pa.Array:
        """The text of each id."""
        order = np.empty(len(ranks), np.int64)
        order[ranks] = np.arange(len(ranks))
        return self.spool.ordered(order)


class Finished(NamedTuple):
    """A text column with ids."""

    ids: list[NDArray[np.int32]]
    """The id of each row."""
    ranks: NDArray[np.int32]
    """The id of each number."""
