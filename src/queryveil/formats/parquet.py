"""Parquet files with columns of any name; lines are counted as rows."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from queryveil.errors import QueryveilError, option
from queryveil.formats.rows import CANONICAL, ReadOptions, Rows, Task, choose_columns

NAMED_COLUMNS = True
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
    """The rows of Arrow batches from any source."""
    chosen = columns_of(schema, options, where)
    seen = 0
    for batch in batches:
        yield partial(rows_of, batch, chosen, where, seen + 1)
        seen += len(batch)


def columns_of(schema: pa.Schema, options: ReadOptions, where: str) -> dict[str, str]:
    """Which column is which, checked to be of a fitting type."""
    if len(set(schema.names)) < len(schema.names):
        raise QueryveilError(f"{where} has two columns with the same name; rename one of them.")
    chosen = choose_columns(schema.names, options, where)
    # Extra columns of nested or binary type have no text to carry along.
    chosen = {
        name: column for name, column in chosen.items() if name in CANONICAL or _is_plain(schema.field(column).type)
    }
    for name, column in chosen.items():
        _check(name, schema.get_field_index(column) + 1, schema.field(column).type, where)
    return chosen


def rows_of(batch: pa.RecordBatch, chosen: dict[str, str], where: str, first: int) -> Rows:
    """The rows of a batch, which starts at row `first`."""
    columns = {}
    for name, column in chosen.items():
        try:
            columns[name] = _as_text(name, batch[column])
            columns[name].validate(full=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise QueryveilError(
                f"Column {batch.schema.get_field_index(column) + 1} of {where} holds something between rows {first:,} "
                f"and {first + len(batch) - 1:,} that cannot be read: text that is not UTF-8, or a number out of range;"
                " fix it."
            ) from None
    return Rows(where, np.arange(first, first + len(batch)), columns)


def _as_text(name: str, values: pa.Array) -> pa.Array:
    kind = values.type
    if name == "time" and pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64()).cast(pa.timestamp("us"))
    if name in ("rank", "clicked") and pa.types.is_floating(kind):
        values = values.cast(pa.float64())  # not every step knows half precision
        # A missing rank is NaN in many data frames; an invalid one stays text and is reported as a bad row.
        values = pc.if_else(pc.is_nan(values), None, values)
        return pc.if_else(
            pc.equal(values, pc.floor(values)), pc.cast(values, pa.int64(), safe=False).cast(pa.string()), "?"
        )
    return values.cast(pa.string())


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    return not (types.is_nested(value) or types.is_binary(value) or types.is_large_binary(value)) and not any(
        test(value) for test in (types.is_fixed_size_binary, types.is_binary_view, types.is_interval, types.is_duration)
    )


def _check(name: str, column: int, kind: pa.DataType, where: str) -> None:
    types = pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    text = types.is_string(value) or types.is_large_string(value) or types.is_string_view(value)
    number = types.is_integer(value) or types.is_null(value)
    fits = {
        "user": text or number or types.is_boolean(value) or types.is_floating(value),
        "query": text,
        "url": text or types.is_null(value),
        "time": text or number or types.is_timestamp(value) or types.is_date(value),
        "rank": text or number or types.is_floating(value),
        "clicked": text or number or types.is_boolean(value) or types.is_floating(value),
    }.get(name, True)
    if not fits:
        raise QueryveilError(
            f"Column {column} of {where} holds {kind}, which cannot be a {name}; choose another column with "
            f"{option('columns', {name: 'NAME'})}."
        )
