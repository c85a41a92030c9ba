"""Parquet files with columns of any name; lines are counted as rows.

A column may hold the list of results that were shown (`queryveil.formats.results`).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from queryveil.errors import QueryveilError, option
from queryveil.formats.results import (
    PARTS,
    RESULTS,
    Lists,
    check_events,
    find_results,
    of_events,
    one_per_result,
    parts_of,
)
from queryveil.formats.rows import CANONICAL, MOST_RESULTS, ReadOptions, Rows, Task, choose_columns
from queryveil.formats.source import File

NAMED_COLUMNS = True
_BATCH = 250_000


def sniff(head: bytes) -> bool:
    """Whether the file opens with Parquet's mark."""
    return head.startswith(b"PAR1")


def names(file: str | File, head: bytes) -> list[str]:
    """The names of the columns."""
    try:
        return list(pq.read_schema(file if isinstance(file, str | Path) else file.open()).names)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(str(file)) from error


def read(files: Sequence[File], options: ReadOptions) -> Iterator[Task]:
    """The rows of Parquet files."""
    for file in files:
        try:
            with pq.ParquetFile(file if isinstance(file, Path) else file.open()) as table:
                yield from arrow_tasks(table.schema_arrow, table.iter_batches(_BATCH), options, str(file))
        except (pa.ArrowException, OSError) as error:
            raise _damaged(str(file)) from error


def _damaged(file: str) -> QueryveilError:
    return QueryveilError(f"The Parquet file {file} is cut off or damaged; fetch or write it again.")


def arrow_tasks(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], options: ReadOptions, where: str
) -> Iterator[Task]:
    """The rows of Arrow batches from any source."""
    chosen = columns_of(schema, options, where)
    seen = 0
    for batch in batches:
        yield partial(rows_of, batch, chosen, where, seen + 1)
        seen += len(batch)


class Chosen(NamedTuple):
    """Which column is which.

    Attributes:
        columns: Canonical name -> column, followed by the extra columns under their own names.
        results: The column of lists of results, if there is one.
        parts: Which field of a result is which; none if a result is an address.
    """

    columns: dict[str, str]
    results: str | None = None
    parts: Mapping[str, str] = MappingProxyType({})

    @property
    def names(self) -> list[str]:
        """The columns that are needed."""
        return list(dict.fromkeys([*self.columns.values(), *([] if self.results is None else [self.results])]))

    @property
    def views(self) -> bool:
        """Whether rows are results shown."""
        return self.results is not None or "clicked" in self.columns


def columns_of(schema: pa.Schema, options: ReadOptions, where: str) -> Chosen:
    """Which column is which, checked to be of a fitting type."""
    if len(set(schema.names)) < len(schema.names):
        raise QueryveilError(f"{where} has two columns with the same name; rename one of them.")
    results = find_results([field.name for field in schema if _is_list(field.type)], options)
    if results is not None:
        events = of_events(options, results)
        chosen = choose_columns([name for name in schema.names if name != results], events, where)
        check_events(chosen, where)
        kind = schema.field(results).type.value_type
        parts = parts_of([field.name for field in kind], options, results) if pa.types.is_struct(kind) else {}
        for name, of in [(name, kind.field(at).type) for name, at in parts.items()] or [("url", kind)]:
            _check("result" if name == "url" else name, schema.get_field_index(results) + 1, of, where)
    else:
        chosen, parts = choose_columns(schema.names, options, where), {}
        if RESULTS in options.columns:
            column = options.columns[RESULTS]
            _check("list of results", schema.get_field_index(column) + 1, schema.field(column).type, where)
    # Extra columns of nested or binary type have no text to carry along.
    chosen = {
        name: column for name, column in chosen.items() if name in CANONICAL or _is_plain(schema.field(column).type)
    }
    for name, column in chosen.items():
        kind = schema.field(column).type
        if name == "clicked" and results is not None:  # addresses that were clicked, one or a list
            kind, name = kind.value_type if _is_list(kind) else kind, "result"
        _check(name, schema.get_field_index(column) + 1, kind, where)
    return Chosen(chosen, results, parts)


def rows_of(batch: pa.RecordBatch, chosen: Chosen, where: str, first: int) -> Rows:
    """The rows of a batch, which starts at row `first`."""
    columns, lists = {}, None
    column = ""
    try:
        for name, column in chosen.columns.items():
            if name == "clicked" and chosen.results is not None:
                continue
            columns[name] = _as_text(name, batch[column])
            columns[name].validate(full=True)
        if chosen.results is not None:
            column = chosen.results
            lists = _lists(batch, chosen)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise QueryveilError(
            f"Column {batch.schema.get_field_index(column) + 1} of {where} holds something between rows {first:,} "
            f"and {first + len(batch) - 1:,} that cannot be read: text that is not UTF-8, or a number out of range;"
            " fix it."
        ) from None
    rows = Rows(where, np.arange(first, first + len(batch)), columns)
    return rows if lists is None else one_per_result(rows, lists)


def _lists(batch: pa.RecordBatch, chosen: Chosen) -> Lists:
    """The lists of results, and the addresses beside them that were clicked."""
    results = _as_list(batch[chosen.results])
    count = pc.fill_null(pc.list_value_length(results), 0).to_numpy().astype(np.int64)
    # Those that are too long are not taken apart.
    fits = pa.array(count <= MOST_RESULTS)
    shown = pc.list_flatten(results.filter(fits))
    found = {name: pa.nulls(len(shown), pa.string()) for name in PARTS}
    if pa.types.is_struct(shown.type):
        found |= {name: _as_text(name, pc.struct_field(shown, at)) for name, at in chosen.parts.items()}
    else:
        found["url"] = _as_text("url", shown)
    for values in found.values():
        values.validate(full=True)
    if "clicked" not in chosen.columns:
        return Lists(count, found)
    clicked = batch[chosen.columns["clicked"]]
    if not _is_list(clicked.type):
        there = clicked.is_valid()
        return Lists(count, found, np.flatnonzero(there), _as_text("url", clicked.filter(there)))
    lists = _as_list(clicked)
    owner = np.repeat(np.arange(len(batch)), pc.fill_null(pc.list_value_length(lists), 0).to_numpy())
    flat = pc.list_flatten(lists)
    there = flat.is_valid()
    return Lists(count, found, owner[there.to_numpy(zero_copy_only=False)], _as_text("url", flat.filter(there)))


def _as_list(values: pa.Array) -> pa.Array:
    """Lists of any kind as those that every step knows."""
    return values.cast(pa.large_list(values.type.value_type))


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return any(test(kind) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list))


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


_ASKED = {"list of results": RESULTS, "result": RESULTS}
"""How a caller names another column."""


def _check(name: str, column: int, kind: pa.DataType, where: str) -> None:
    types = pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    text = types.is_string(value) or types.is_large_string(value) or types.is_string_view(value)
    number = types.is_integer(value) or types.is_null(value)
    fits = {
        "user": text or number or types.is_boolean(value) or types.is_floating(value),
        "query": text,
        "url": text or types.is_null(value),
        "list of results": False,
        "result": text or number,
        "time": text or number or types.is_timestamp(value) or types.is_date(value),
        "rank": text or number or types.is_floating(value),
        "clicked": text or number or types.is_boolean(value) or types.is_floating(value),
    }.get(name, True)
    if not fits:
        raise QueryveilError(
            f"Column {column} of {where} holds {kind}, which cannot be a {name}; choose another column with "
            f"{option('columns', {_ASKED.get(name, name): 'NAME'})}."
        )
