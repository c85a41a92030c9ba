"""Functions of Arrow batches as Spark runs them on its workers, and the types of what they return."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from queryveil.engines.base import BatchFunction
from queryveil.engines.spark_errors import on_worker

PART, WITHIN, FIRST = "part of the rows", "place in the part", "first of its number"
"""Columns of a numbered table. No log has columns of these names."""
NOTE = "note of the part"
"""A further column if somebody watched: notes, in rows that have nothing else."""
Watch = Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[pa.RecordBatch, Sequence[str]]]]
"""Sees batches of rows as they go by, and passes each on with its notes about those so far."""


def backquoted(name: str) -> str:
    """A name as Spark quotes it: in backquotes, those in it doubled."""
    return "`" + name.replace("`", "``") + "`"


def ddl(schema: pa.Schema) -> str:
    """Arrow columns as Spark declares them."""
    kinds = {
        pa.int8(): "tinyint",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.string(): "string",
        pa.bool_(): "boolean",
        pa.binary(): "binary",
        pa.timestamp("us"): "timestamp_ntz",
    }
    return ", ".join(f"{backquoted(field.name)} {kinds[field.type]}" for field in schema)


def each(function: BatchFunction) -> Callable[..., Iterator[pa.RecordBatch]]:
    """A function of a batch as Spark wants it."""
    return reporting(lambda batches: (function(batch) for batch in batches))


def of_group(function: BatchFunction, schema: pa.Schema) -> Callable[[pa.Table], pa.Table]:
    """A function of a whole group as Spark wants it."""

    def run(table: pa.Table) -> pa.Table:
        with on_worker():
            batches = table.combine_chunks().to_batches()
            if len(batches) > 1:  # Arrow does not put more than 2 GiB of texts into one
                raise MemoryError
            made = function(batches[0])
        return pa.Table.from_batches([made], schema)

    return run


def reporting(
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> Callable[..., Iterator[pa.RecordBatch]]:
    """A task whose error messages reach the driver as one sentence."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with on_worker():
            yield from work(batches)

    return run


def counting(
    by: tuple[str, ...], watch: Watch | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Number the sorted rows of a partition: rows with the same keys have the same number. Maybe somebody watches."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        number, last = 0, None
        some = (batch for batch in batches if len(batch))
        for batch, notes in ((batch, ()) for batch in some) if watch is None else watch(some):
            if len(batch) == 0:
                yield _noted(batch, notes)
                continue
            keys = [batch[key].to_numpy() for key in by]
            is_new = np.zeros(len(batch), np.bool_)
            for values in keys:
                is_new[1:] |= values[1:] != values[:-1]
            first = tuple(values[0] for values in keys)
            is_new[0] = first != last
            last = tuple(values[-1] for values in keys)
            within = number + np.cumsum(is_new)
            number = int(within[-1])
            extra = [pa.array(np.full(len(batch), part, np.int32)), pa.array(within), pa.array(is_new)]
            names = [*batch.schema.names, PART, WITHIN, FIRST]
            if watch is not None:
                extra, names = [*extra, pa.nulls(len(batch), pa.string())], [*names, NOTE]
            yield pa.RecordBatch.from_arrays([*batch.columns, *extra], names=names)
            if notes:
                yield _noted(batch, notes)

    return reporting(run)


def _noted(like: pa.RecordBatch, notes: Sequence[str]) -> pa.RecordBatch:
    """Rows of notes in a table like a batch."""
    nothing = [pa.nulls(len(notes), kind) for kind in (*like.schema.types, pa.int32(), pa.int64(), pa.bool_())]
    names = [*like.schema.names, PART, WITHIN, FIRST, NOTE]
    return pa.RecordBatch.from_arrays([*nothing, pa.array(notes, pa.string())], names=names)
