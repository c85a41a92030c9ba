"""Functions of Arrow batches as Spark runs them on its workers, and the types of what they return."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from queryveil.engines.base import BatchFunction
from queryveil.engines.spark_errors import on_worker

PART, WITHIN, FIRST = "part of the rows", "place in the part", "first of its number"
"""Columns of a numbered table. No log has columns of these names."""


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
            made = function(table.combine_chunks().to_batches()[0])
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


def counting(by: tuple[str, ...]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Number the sorted rows of a partition: rows with the same keys have the same number."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        number, last = 0, None
        for batch in batches:
            if len(batch) == 0:
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
            yield pa.RecordBatch.from_arrays([*batch.columns, *extra], names=names)

    return run
