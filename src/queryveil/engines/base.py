"""What every table engine can do: a few verbs, and SQL that means the same on all of them.

The SQL keeps to what DuckDB and Spark understand in the same way: GROUP BY and JOIN over narrow integer tables, every
column aliased, distinct users by a two-level GROUP BY, anti-join as LEFT JOIN ... IS NULL, double quotes around names
that need them. No arrays, no lambdas, no text functions: text is handled by Python over batches, through `map`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.errors import QueryveilError

Batches = Callable[[], Iterator[pa.RecordBatch]]
"""Reads a table from its beginning, batch after batch."""
BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Makes a batch from a batch."""


def identifier(name: str) -> str:
    """The name of a table or column, quoted for SQL: in double quotes, with quotes inside it doubled.

    Names come from headers of logs, from options and from manifests, so they may contain anything.
    """
    if "\0" in name:
        raise QueryveilError("The name of a column holds a NUL character; rename it.")
    return '"' + name.replace('"', '""') + '"'


def numbered(rows: pa.Table, by: Sequence[str]) -> NDArray[np.int64]:
    """1, 2, ... for rows in the order of some columns; rows with equal values in all of them share a number."""
    is_new = np.zeros(len(rows), np.bool_)
    is_new[:1] = True
    for key in by:
        values = rows[key].to_numpy()
        is_new[1:] |= values[1:] != values[:-1]
    return np.cumsum(is_new)


@dataclass(frozen=True)
class InFiles:
    """A table in files, which an engine may read directly."""

    files: tuple[str, ...]
    batches: Batches
    parse: BatchFunction | None
    """From lines (a column `value`) to rows; None if the files are Parquet."""

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """The table, read here."""
        return self.batches()


class Engine(Protocol):
    """Where the tables of a log are.

    `materialize`, `map` and `number` keep a table of any size under a name. `table` and `row` return a result to this
    process, so they are only for results that stay small for any log.
    """

    def read(self, name: str, table: pa.Table) -> None:
        """Make an Arrow table known under a name."""

    def load(self, name: str, schema: pa.Schema, batches: Batches) -> None:
        """Keep a table that comes in batches."""

    def materialize(self, query: str, name: str) -> None:
        """Keep the result of a query."""

    def map(self, query: str, function: BatchFunction, schema: pa.Schema, name: str) -> None:
        """Keep what a function makes of the result of a query.

        Args:
            query: The rows for the function, in batches of any size and in any order.
            function: Makes a batch from a batch; it may run in another process.
            schema: The columns that it makes.
            name: The name of the table.
        """

    def map_groups(self, query: str, by: str, function: BatchFunction, schema: pa.Schema, name: str) -> None:
        """Keep what a function makes of each group of rows.

        Args:
            query: The rows for the function, one complete group at a time, in any order.
            by: The column with one value for each group.
            function: Makes a batch from a batch; it may run in another process.
            schema: The columns that it makes.
            name: The name of the table.
        """

    def number(
        self,
        query: str,
        by: Sequence[str],
        name: str,
        column: str,
        *,
        then: Sequence[str] = (),
        even: bool = False,
        frequent: str | None = None,
    ) -> None:
        """Keep the result of a query with a further column: 1, 2, ... in the order of some columns.

        Args:
            query: The rows.
            by: Columns of whole numbers, none missing. Rows with equal values in all of them share a number.
            name: The name of the table.
            column: The name of the number.
            then: The order of rows that share a number; missing values come last.
            even: Whether the first of `by` is spread evenly over all 64-bit numbers, as random draws are, and on a
                cluster ids. Then nobody has to look at the rows to cut them into parts.
            frequent: SQL of `value` and `n`: about how many rows have each value of the first of `by`, if some may have
                too many for one part. The second of `by` is then spread evenly too.
        """

    def ordered(self, name: str) -> Batches:
        """The table that `number` kept, in its order."""

    def fetch(self, query: str) -> pa.Table:
        """The result of a query."""

    def row(self, query: str) -> tuple[Any, ...]:
        """The one row of a query."""

    def drop(self, *names: str) -> None:
        """Drop tables."""

    def close(self) -> None:
        """Drop all tables."""
