"""Tables on a cluster in parts: by which column rows are kept together, and rows in order, a part at a time."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from queryveil.engines.base import identifier
from queryveil.engines.spark_errors import working
from queryveil.engines.spark_tasks import PART, backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from queryveil.engines.spark import Spark

TOGETHER = ("query_id", "part")
"""By which columns rows are kept together, if Spark has brought them together: most is asked by query or, of similar
queries, by the part in which they meet, and need not be sent around again. Not so by other columns, because many small
tables would become many small files."""


def together(frame: "DataFrame", columns: Sequence[str], parts: int) -> str | None:
    """By which of some columns Spark has brought the rows of a frame together, if it is one of `TOGETHER`.

    Args:
        frame: The frame.
        columns: The columns.
        parts: In how many parts: only tables with the same number are joined as they are.
    """
    looked_for = [name for name in TOGETHER if name in columns]
    if not looked_for:
        return None
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.initialPlan()
    spread = re.sub(r"#\d+L?", "", plan.outputPartitioning().toString())
    return next((name for name in looked_for if f"hashpartitioning({name}, {parts})" in spread), None)


class SparkRows:
    """The rows of a query in the order of a numbered table: brought here part by part, or written where they are."""

    def __init__(self, engine: "Spark", query: str, columns: Sequence[str], order: Sequence[str], parts: int) -> None:
        self.engine, self.query, self.columns, self.order, self.parts = engine, query, columns, order, parts

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """The rows, a part at a time."""
        order = ", ".join(f"rows_.{identifier(key)} NULLS LAST" for key in self.order)
        columns = ", ".join(f"rows_.{identifier(name)} AS {identifier(name)}" for name in self.columns)
        for part in range(self.parts):
            yield from self.engine.fetch(
                f'SELECT {columns} FROM ({self.query}) AS rows_ WHERE rows_."{PART}" = {part} ORDER BY {order}'  # noqa: S608  # names are escaped
            ).to_batches()

    def frame(self) -> "DataFrame":
        """The rows as a frame whose partitions are in order."""
        from pyspark.sql import functions as F  # noqa: N812

        with working():
            frame = self.engine.sql(self.query).repartitionById(self.parts, F.col(f"`{PART}`"))
            frame = frame.sortWithinPartitions(*(F.col(backquoted(key)).asc_nulls_last() for key in self.order))
            return frame.select(*(F.col(backquoted(name)) for name in self.columns))
