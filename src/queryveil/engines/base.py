"""What every table engine can do: a few verbs, and SQL that means the same on all of them.

The SQL keeps to what DuckDB and Spark understand in the same way: GROUP BY and JOIN over narrow integer tables, every
column aliased, distinct users by a two-level GROUP BY, anti-join as LEFT JOIN ... IS NULL, double quotes around names
that need them. No arrays, no lambdas, no text functions: text is handled by Python over batches, through `map`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from queryveil.errors import QueryveilError

Batches = Callable[[], Iterator[pa.RecordBatch]]
"""Gives a table from its beginning, batch after batch."""


def identifier(name: str) -> str:
    """A name of a table or column as all SQL has it: in double quotes, those in it doubled, so that it stays a name.

    Names come from headers of logs, from options and from manifests, so that they may hold anything.
    """
    if "\0" in name:
        raise QueryveilError("The name of a column holds a NUL character; rename it.")
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class InFiles:
    """A table that lies in files, which an engine may read where they are."""

    files: tuple[str, ...]
    batches: Batches
    parse: Callable[[pa.RecordBatch], pa.RecordBatch] | None
    """From lines (a column `value`) to rows; None if the files are Parquet."""

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """The table, read here."""
        return self.batches()


class Engine(Protocol):
    """Where the tables of a log live.

    `materialize`, `map` and `number` keep a whole table under a name, however large; `table` and `row` bring a result
    here, so they are for what is small whatever the log.
    """

    def read(self, name: str, table: pa.Table) -> None:
        """Make an Arrow table known under a name."""

    def load(self, name: str, schema: pa.Schema, batches: Batches) -> None:
        """Keep a table that comes in batches."""

    def materialize(self, query: str, name: str) -> None:
        """Keep the result of a query."""

    def map(
        self, query: str, function: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema, name: str
    ) -> None:
        """Keep what a function makes of the result of a query.

        Args:
            query: What the function sees, batch after batch, cut anywhere and in any order.
            function: Makes a batch of a batch; it may run in another process.
            schema: The columns that it makes.
            name: What the table is called.
        """

    def map_groups(
        self,
        query: str,
        by: str,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: pa.Schema,
        name: str,
    ) -> None:
        """Keep what a function makes of each group of rows.

        Args:
            query: What the function sees, group after group, each whole and its rows in any order.
            by: The column in which the rows of a group agree.
            function: Makes a batch of a batch; it may run in another process.
            schema: The columns that it makes.
            name: What the table is called.
        """

    def number(self, query: str, by: Sequence[str], name: str, column: str, *, then: Sequence[str] = ()) -> None:
        """Keep the result of a query with a further column: 1, 2, ... in the order of some columns.

        Args:
            query: The rows.
            by: Columns of whole numbers, none missing. Rows that agree in all of them share a number.
            name: What the table is called.
            column: What the number is called.
            then: The order of rows that share a number; what is missing comes last.
        """

    def ordered(self, name: str) -> Batches:
        """The table that `number` kept, in its order."""

    def fetch(self, query: str) -> pa.Table:
        """The result of a query."""

    def row(self, query: str) -> tuple[Any, ...]:
        """The one row of a query."""

    def drop(self, *names: str) -> None:
        """Let go of tables."""

    def close(self) -> None:
        """Let go of everything."""
