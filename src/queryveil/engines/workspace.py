"""Workspaces: the tables of one job. Their names are unique, and they are dropped when the job ends."""

import itertools
import weakref
from collections.abc import Sequence
from typing import Any, Self

import pyarrow as pa

from queryveil.engines.base import Batches, BatchFunction, Engine, identifier

_numbers = itertools.count(1)


class Table:
    """A table of a workspace. In SQL it stands for its name: `f"SELECT query_id FROM {kept}"`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return identifier(self.name)


class Workspace:
    """Makes tables with unique names, and drops them all at the end, or when it is garbage-collected.

    A step takes tables and returns a table, so any number of jobs can run on one log at the same time. Tables that are
    used after a step ends belong in the workspace of the caller.

    Args:
        engine: Where the tables are.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.keeps: tuple[object, ...] = ()  # what its tables are made from, such as another workspace
        self._names: set[str] = set()
        self._finalizer = weakref.finalize(self, _drop, engine, self._names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def table(self, query: str, name: str = "step") -> Table:
        """Keep the result of a query.

        Args:
            query: SQL.
            name: What it is, shown in the progress of a cluster.
        """
        made = self._new(name)
        self.engine.materialize(query, made.name)
        return made

    def read(self, table: pa.Table, name: str = "given") -> Table:
        """Make an Arrow table known."""
        made = self._new(name)
        self.engine.read(made.name, table)
        return made

    def load(self, schema: pa.Schema, batches: Batches, name: str = "loaded") -> Table:
        """Keep a table that comes in batches."""
        made = self._new(name)
        self.engine.load(made.name, schema, batches)
        return made

    def map(self, query: str, function: BatchFunction, schema: pa.Schema, name: str = "mapped") -> Table:
        """Keep what a function makes of the result of a query; see `Engine.map`."""
        made = self._new(name)
        self.engine.map(query, function, schema, made.name)
        return made

    def map_groups(
        self, query: str, by: str, function: BatchFunction, schema: pa.Schema, name: str = "mapped"
    ) -> Table:
        """Keep what a function makes of each group of rows; see `Engine.map_groups`."""
        made = self._new(name)
        self.engine.map_groups(query, by, function, schema, made.name)
        return made

    def number(
        self,
        query: str,
        by: Sequence[str],
        column: str,
        *,
        then: Sequence[str] = (),
        even: bool = False,
        frequent: str | None = None,
        name: str = "numbered",
    ) -> Table:
        """Keep the result of a query in order and numbered; see `Engine.number`."""
        made = self._new(name)
        self.engine.number(query, by, made.name, column, then=then, even=even, frequent=frequent)
        return made

    def ordered(self, table: Table) -> Batches:
        """The table that `number` kept, in its order."""
        return self.engine.ordered(table.name)

    def fetch(self, query: str) -> pa.Table:
        """The result of a query, which is small for any log."""
        return self.engine.fetch(query)

    def row(self, query: str) -> tuple[Any, ...]:
        """The one row of a query."""
        return self.engine.row(query)

    def drop(self, *tables: Table) -> None:
        """Drop large tables before the end."""
        for table in tables:
            self.engine.drop(table.name)
            self._names.discard(table.name)

    def close(self) -> None:
        """Drop all tables."""
        self._finalizer()

    def _new(self, name: str) -> Table:
        made = f"{name} {next(_numbers)}"
        self._names.add(made)
        return Table(made)


def _drop(engine: Engine, names: set[str]) -> None:
    engine.drop(*names)
