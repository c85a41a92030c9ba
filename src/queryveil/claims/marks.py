"""Marks: numbers whose sums distinguish one multiset of queries from another."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa


def marks_of(key: bytes, name: str, query: str) -> tuple[Callable[[pa.RecordBatch], pa.RecordBatch], pa.Schema]:
    """A function for `Workspace.map` that marks each row by four numbers of 31 bits, and its columns.

    Args:
        key: What the numbers follow from, together with the query.
        name: The column that is kept beside the numbers `a` to `d`.
        query: The column of the query, its text or its id.
    """
    schema = pa.schema([(column, pa.int64()) for column in (name, *"abcd")])

    def mark(batch: pa.RecordBatch) -> pa.RecordBatch:
        from queryveil.kernels.digest import digests
        from queryveil.log.draws import keyed
        from queryveil.text.arrays import byte_spans

        if pa.types.is_integer(batch[query].type):
            number = batch[query].cast(pa.int64()).to_numpy().view(np.uint64)
            halves = (number, ~number)
        else:
            halves = digests(*byte_spans(batch[query].cast(pa.string())))
        numbers = [keyed(key, half) for half in halves]
        marks = [part.astype(np.int64) for n in numbers for part in (n >> np.uint64(33), n & np.uint64(0x7FFFFFFF))]
        return pa.RecordBatch.from_arrays([batch[name].cast(pa.int64()), *map(pa.array, marks)], schema=schema)

    return mark, schema
