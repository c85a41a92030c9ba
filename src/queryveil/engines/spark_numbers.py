"""Numbered tables on a cluster: rows sorted in ranges, each counted by itself, and the counts added up."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from queryveil.engines.base import identifier, numbered
from queryveil.engines.spark_errors import working
from queryveil.engines.spark_tasks import FIRST, NOTE, PART, WITHIN, Watch, backquoted, counting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from queryveil.engines.spark import Spark

_MANY_STEPS = re.compile(r"\b(JOIN|GROUP BY|OVER)\b")
"""What makes the rows of a query too dear to be found twice."""
EVEN = 32
"""If a key is spread evenly over all 64-bit numbers, so many of its last bits do not matter for its part."""
ROWS_PER_TASK = 2_000_000
"""About so many rows of integers make a task of a shuffle: some 100 MB."""
MOST_FREQUENT = 100
"""Rows of at most so many values of a key are spread over several parts; each makes an expression longer."""


def even_part(key: str, bits: int, parts: int) -> str:
    """SQL for the part of a row whose key is spread evenly: parts are ranges of the key, in order.

    Args:
        key: The key.
        bits: So many of its last bits do not matter; at least 32, so that nothing overflows.
        parts: How many parts there are.
    """
    more = 64 - bits
    first = 1 << (more - 1)
    return f"CAST(shiftright((shiftright({backquoted(key)}, {bits}) + {first}) * {parts}, {more}) AS INT)"


def spread_part(by: Sequence[str], bits: int, parts: int, frequent: Sequence[tuple[int, int]]) -> tuple[str, int]:
    """SQL for the part of a row whose first key is spread evenly but for frequent values; and how many parts there are.

    The rows of a frequent value are in parts of their own, by the second key. Parts are in the order of both keys.

    Args:
        by: The keys.
        bits: As for `even_part`.
        parts: In how many parts the others are.
        frequent: The frequent values in their order, and the number of parts of each.
    """
    cases, before = [], 0
    for value, pieces in frequent:
        key = f"{backquoted(by[0])} {{}} CAST('{value}' AS BIGINT)"
        cases += [f"WHEN {key.format('<')} THEN {before}"]
        cases += [f"WHEN {key.format('=')} THEN {before + 1} + {even_part(by[1], EVEN, pieces)}"]
        before += pieces + 1
    more = f" + CASE {' '.join(cases)} ELSE {before} END" if cases else ""
    return even_part(by[0], bits, parts) + more, parts + before


def keep_numbered(
    engine: "Spark",
    query: str,
    by: Sequence[str],
    name: str,
    column: str,
    then: Sequence[str],
    bits: int | None,
    watch: Watch | None = None,
    frequent: str | None = None,
) -> list[str]:
    """Keep the result of a query as a numbered table, and return the notes of what watches.

    Args:
        engine: The cluster.
        query: The rows.
        by: As in `Engine.number`.
        name: As in `Engine.number`.
        column: As in `Engine.number`.
        then: As in `Engine.number`.
        bits: If the first key is spread evenly over all 64-bit numbers: so many of its last bits do not matter for the
            part of a row. If None, the rows are looked at to cut them into parts.
        watch: What sees the sorted rows of each part.
        frequent: As in `Engine.number`.
    """
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    with working():
        frame = engine.sql(query)
    keys = [F.col(backquoted(key)).asc() for key in by]
    order = [*keys, *(F.col(backquoted(key)).asc_nulls_last() for key in then)]
    if engine.small:
        rows = _keep_here(engine, frame.coalesce(1).sortWithinPartitions(*order), by, name, column, then)
        return [] if watch is None else [note for _, notes in watch(iter(rows.to_batches())) for note in notes]
    again = bits is None and _MANY_STEPS.search(query) is not None
    if again:
        # Finding the ranges looks at all rows once, so they are written down first.
        engine.keep(frame, f"{name} unsorted")
        with working():
            frame = engine.session.table(backquoted(f"{name} unsorted"))
    several = [] if frequent is None else _pieces(engine, frequent)
    with working():
        if bits is None:
            frame = frame.repartitionByRange(*keys)
        else:
            part, parts = spread_part(by, bits, engine.parts, several)
            frame = frame.repartitionById(parts, F.expr(part))
        frame = frame.sortWithinPartitions(*order)
        columns = [f"{backquoted(field.name)} {field.dataType.simpleString()}" for field in frame.schema.fields]
        columns += [f"`{PART}` int", f"`{WITHIN}` bigint", f"`{FIRST}` boolean"]
        columns += [] if watch is None else [f"`{NOTE}` string"]
        frame = frame.mapInArrow(counting(tuple(by), watch), ", ".join(columns))
    engine.keep(frame, f"{name} parts")
    if again:
        engine.drop(f"{name} unsorted")
    made = identifier(f"{name} parts")
    found = engine.fetch(
        f'SELECT "{PART}" AS part, max("{WITHIN}") AS n FROM {made} WHERE "{PART}" IS NOT NULL GROUP BY "{PART}"'  # noqa: S608  # names are escaped
    ).sort_by("part")
    count = found["n"].to_numpy()
    offsets = {"part": found["part"], "before": np.cumsum(count) - count}
    engine.read(f"{name} offsets", pa.table(offsets).cast(pa.schema([("part", pa.int32()), ("before", pa.int64())])))
    with working():
        engine.sql(
            f'SELECT p.*, p."{WITHIN}" + o.before AS {identifier(column)} FROM {made} p'  # noqa: S608  # names are escaped
            f' JOIN {identifier(f"{name} offsets")} o ON o.part = p."{PART}"'
        ).createOrReplaceTempView(backquoted(name))
    parts = int(found["part"].to_numpy().max()) + 1 if len(found) else 1
    engine.order[name] = (column, tuple(then), parts)
    if watch is None:
        return []
    notes = engine.fetch(f'SELECT "{NOTE}" AS note FROM {made} WHERE "{NOTE}" IS NOT NULL')["note"]  # noqa: S608  # names are escaped
    return [str(note) for note in notes.to_pylist()]


def _pieces(engine: "Spark", frequent: str) -> list[tuple[int, int]]:
    """The values with more rows than a part should have, in their order, and in how many parts each is."""
    found = engine.fetch(
        f"SELECT value, n FROM ({frequent}) AS counted WHERE n > {ROWS_PER_TASK} ORDER BY n DESC, value"  # noqa: S608  # parts are this package's own
        f" LIMIT {MOST_FREQUENT}"
    ).sort_by("value")
    pieces = [-(-n // ROWS_PER_TASK) for n in found["n"].to_pylist()]
    return list(zip(found["value"].to_pylist(), pieces, strict=True))


def _keep_here(
    engine: "Spark", frame: "DataFrame", by: Sequence[str], name: str, column: str, then: Sequence[str]
) -> pa.Table:
    """Number the rows of a small table, which are in order, and return them."""
    from pyspark.sql.types import StructType

    engine.progress(name)
    with working():
        rows = frame.toArrow()
        numbers = numbered(rows, by)
        more = {
            PART: np.zeros(len(rows), np.int32),
            WITHIN: numbers,
            FIRST: np.diff(numbers, prepend=0) > 0,
            column: numbers,
        }
        for added, values in more.items():
            rows = rows.append_column(added, pa.array(values))
        kinds = f"`{PART}` int, `{WITHIN}` bigint, `{FIRST}` boolean, {backquoted(column)} bigint"
        schema = StructType(list(frame.schema))
        for field in cast(StructType, StructType.fromDDL(kinds)):
            schema.add(field)
        engine.hold(rows, name, schema)
    engine.order[name] = (column, tuple(then), 1)
    return rows
