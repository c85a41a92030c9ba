"""Random draws that follow from a key and what they are for: the same in any order and on any engine."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def keyed(key: bytes, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A keyed digest of each number: random without the key, the same in every run."""
    from queryveil.kernels.digest import digests

    words = np.empty((len(numbers), 3), np.uint64)
    words[:, :2] = np.frombuffer(key, np.uint64)
    words[:, 2] = numbers
    starts = np.arange(len(numbers), dtype=np.int64) * 24
    return digests(words.reshape(-1).view(np.uint8), starts, starts + 24)[0]


def signed(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """As signed numbers in the same order, which every engine has."""
    return (numbers ^ np.uint64(1 << 63)).view(np.int64)


def drawn(schema: pa.Schema, of: str, key: bytes) -> tuple[Callable[[pa.RecordBatch], pa.RecordBatch], pa.Schema]:
    """A function for `Engine.map` that gives each row a random number, and the columns it makes.

    Args:
        schema: The columns that stay.
        of: The column of whole numbers that decides the draw; it need not stay.
        key: Sixteen bytes.
    """
    full = schema.append(pa.field("draw", pa.int64()))

    def draw(batch: pa.RecordBatch) -> pa.RecordBatch:
        draws = signed(keyed(key, batch[of].to_numpy().astype(np.uint64)))
        columns = [batch[name].cast(schema.field(name).type) for name in schema.names]
        return pa.RecordBatch.from_arrays([*columns, pa.array(draws)], schema=full)

    return draw, full
