"""Which queries the releases of a series have, and how many releases have each: digests, and no texts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from queryveil.errors import QueryveilError
from queryveil.kernels.order import digest_order
from queryveil.kernels.types import Longs, ULongs
from queryveil.text.arrays import byte_spans

_FILE = "published.arrow"


@dataclass(frozen=True)
class Published:
    """Published queries by their digests, in the order of these.

    Attributes:
        low: The first half of each digest.
        high: The second half.
        times: How many releases have the query.
    """

    low: ULongs
    high: ULongs
    times: Longs

    @classmethod
    def nothing(cls) -> "Published":
        """Before the first release."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64))

    def times_of(self, queries: pa.Array) -> Longs:
        """How many releases have each of some queries."""
        from queryveil.kernels.digest import digests

        low, high = digests(*byte_spans(queries))
        if len(self.low) == 0:
            return np.zeros(len(low), np.int64)
        at = np.searchsorted(self.low, low).clip(0, len(self.low) - 1)
        return np.where((self.low[at] == low) & (self.high[at] == high), self.times[at], 0)

    def after(self, queries: pa.Array) -> "Published":
        """The same after a release that has these distinct queries."""
        from queryveil.kernels.digest import digests

        low, high = digests(*byte_spans(queries))
        low, high = np.concatenate([self.low, low]), np.concatenate([self.high, high])
        times = np.concatenate([self.times, np.ones(len(queries), np.int64)])
        order = digest_order(low, high)
        low, high, times = low[order], high[order], times[order]
        first = np.flatnonzero(np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))[: len(low)])
        return Published(low[first], high[first], np.add.reduceat(times, first) if len(first) else times)

    def save(self, folder: Path) -> None:
        """Write it into a folder."""
        table = pa.table({"low": self.low, "high": self.high, "times": self.times})
        with pa.OSFile(str(folder / _FILE), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)


def load_published(folder: Path) -> Published:
    """What `Published.save` wrote."""
    try:
        with pa.OSFile(str(folder / _FILE)) as file:
            found = pa.ipc.open_file(file).read_all()
        return Published(*(found[name].to_numpy() for name in ("low", "high", "times")))
    except (OSError, pa.ArrowException, KeyError):
        raise QueryveilError(f"{folder / _FILE} is damaged; restore the ledger from a backup.") from None
