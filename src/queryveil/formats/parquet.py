"""Parquet files with columns of any name; lines are counted as rows."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.errors import QueryveilError
from queryveil.formats.rows import ReadOptions, Rows, Task, choose_columns

NAME = "parquet"
_BATCH = 250_000


def sniff(head: bytes) -> bool:
    """Whether the file opens with Parquet's mark."""
    return head.startswith(b"PAR1")


def read(files: Sequence[Path], options: ReadOptions) -> Iterator[Task]:
    """The rows of Parquet files."""
    for file in files:
        try:
            with pq.ParquetFile(file) as table:
                yield from arrow_tasks(table.schema_arrow, table.iter_batches(_BATCH), options, str(file))
        except (pa.ArrowException, OSError) as error:
            raise QueryveilError(f"The Parquet file {file} is cut off or damaged; fetch or write it again.") from error


def arrow_tasks(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], options: ReadOptions, where: str
) -> Iterator[Task]:
    """The rows of Arrow batches, whoever made them."""
    chosen = choose_columns(schema.names, options, where)
    for name, column in chosen.items():
        _check(name, column, schema.field(column).type, where)
    seen = 0
    for batch in batches:
        yield partial(_rows, batch, chosen, where, seen + 1)
        seen += len(batch)


def _rows(batch: pa.RecordBatch, chosen: dict[str, str], where: str, first: int) -> Rows:
    columns = {name: _as_text(name, batch[column]) for name, column in chosen.items()}
    return Rows(where, np.arange(first, first + len(batch)), columns)


def _as_text(name: str, values: pa.Array) -> pa.Array:
    kind = values.type
    if name == "time" and pa.types.is_timestamp(kind):
        if kind.tz is not None:
            values = values.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).cast(pa.timestamp("us"))
        return values.cast(pa.timestamp("us"), safe=False)
    if name == "rank" and pa.types.is_floating(kind):
        values = values.cast(pa.int64())
    return values.cast(pa.string())


def _check(name: str, column: str, kind: pa.DataType, where: str) -> None:
    types = pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    text = types.is_string(value) or types.is_large_string(value) or types.is_string_view(value)
    number = types.is_integer(value) or types.is_null(value)
    fits = {
        "query": text,
        "url": text or types.is_null(value),
        "time": text or number or types.is_timestamp(value) or types.is_date(value),
        "rank": text or number or types.is_floating(value),
    }.get(name, text or number or types.is_boolean(value) or types.is_floating(value))
    if not fits:
        raise QueryveilError(
            f"Column '{column}' of {where} holds {kind}, which cannot be a {name}; map another with --columns "
            f"{name}=NAME."
        )
