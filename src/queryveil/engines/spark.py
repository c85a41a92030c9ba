"""Tables on a cluster: Spark. Every step is written to a private database before the next one reads it.

So a step that is lost with a worker is done again from the tables before it, and nothing is computed twice. The driver
sees only counts and other small results, and the whole tables of a log so small that writing them down would take
longer than making them.
"""

import itertools
import re
import uuid
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queryveil.engines.base import Batches, BatchFunction, InFiles, identifier
from queryveil.engines.spark_errors import working
from queryveil.engines.spark_numbers import EVEN, ROWS_PER_TASK, keep_numbered
from queryveil.engines.spark_parts import SparkRows, together
from queryveil.engines.spark_session import whole
from queryveil.engines.spark_tasks import (
    FIRST,
    PART,
    WITHIN,
    Watch,
    backquoted,
    ddl,
    each,
    of_group,
)
from queryveil.errors import QueryveilError, option
from queryveil.files.folders import is_address
from queryveil.files.scratch import Scratch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SMALL_LOG = 20_000
"""A log of at most so many rows has its tables in the memory of the driver: each would cost more jobs than rows."""

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # Of two tables that are joined, the smaller becomes a hash table if its parts are small, and neither is sorted.
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
    # Tables in parts are read part by part, each sorted, also for joins by more columns.
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
    # Else a task may write rows of all parts, each into a file of its own.
    "spark.sql.adaptive.localShuffleReader.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # A name with blanks is written as it stands; column names that differ in case alone are refused on reading.
    "spark.sql.caseSensitive": "false",
    # SQL reaches the tables of the session, and no file by its path.
    "spark.sql.runSQLOnFiles": "false",
}
_EXCLUDED, _ELIMINATE = "spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.EliminateSorts"
"""Rows that are written in parts are sorted by one number first, which is quick, and then in the order of files."""
_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"((?:[^\"]|\"\")*)\"", re.DOTALL)
"""A text or a name in SQL."""


class Spark:
    """A private database on a Spark session.

    Args:
        session: A session of yours, classic or Connect. It is not changed: views and settings are kept in a new session
            on the same application.
        work_dir: Where the database is kept: a folder that the driver and all workers reach. By default a temporary
            folder if Spark runs on this machine alone, else the warehouse of the session.

    Attributes:
        progress: Called with the name of each table that is about to be made.
        parts: Into how many parts rows are cut that are sent around.
        small: Whether the log is so small that its tables are in the memory of the driver.
        order: The number, the order within it, and the parts of each numbered table.
    """

    def __init__(self, session: "SparkSession", *, work_dir: str | None = None) -> None:
        with working():
            self.session = session.newSession()
            for name, value in _SETTINGS.items():
                self.session.conf.set(name, value)
            excluded = [rule for rule in (session.conf.get(_EXCLUDED, "") or "").split(",") if rule]
            self.session.conf.set(_EXCLUDED, ",".join([*excluded, _ELIMINATE]))
            self._broadcast = str(session.conf.get(_BROADCAST))
        self._work_dir = work_dir
        self.database = f"queryveil_{uuid.uuid4().hex[:16]}"
        place, folder = self._place(work_dir)
        with working():
            self.session.sql(f"CREATE DATABASE {self.database} LOCATION {_literal(place)}")
        self.progress: Callable[[str], None] = lambda name: None
        self._numbers = itertools.count(1)
        self._tables: dict[str, str] = {}
        self.order: dict[str, tuple[str, tuple[str, ...], int]] = {}
        self.small = False
        self._close = weakref.finalize(self, _drop_database, self.session, self.database, folder)
        self._cut(2 * self._parallel())

    def _place(self, work_dir: str | None) -> tuple[str, Scratch | None]:
        if work_dir is not None:
            if "'" in work_dir or "`" in work_dir:
                raise QueryveilError(f"The work folder {work_dir} has a quote in its name; name another.")
            place = f"{whole(work_dir)}/{self.database}"
            if not is_address(work_dir):
                # Only its owner may read it, because it holds the log in the clear.
                try:
                    Path(place).mkdir(mode=0o700)
                except OSError as error:
                    raise QueryveilError(
                        f"The work folder {work_dir} cannot be used ({error.strerror}); name one that you may write to."
                    ) from None
            return place, None
        with working():
            warehouse = str(self.session.conf.get("spark.sql.warehouse.dir"))
        if self._master().startswith("local"):
            scratch = Scratch()  # only its owner may read it
            return f"{scratch.path}/{self.database}", scratch
        if warehouse.startswith("file:") or "://" not in warehouse:
            raise QueryveilError(
                "On a cluster, tables between steps need a folder that the driver and all workers reach; give one as "
                f"{option('work_dir')}."
            )
        return f"{warehouse.rstrip('/')}/{self.database}", None

    @property
    def connect(self) -> bool:
        """Whether the session is one of Spark Connect, which reaches no Java on this side."""
        return type(self.session).__module__.startswith("pyspark.sql.connect")

    def _master(self) -> str:
        with working():
            return self.session.conf.get("spark.master", "") or ""

    def expect(self, rows: int) -> None:
        """Cut shuffles to a size that fits so many rows, and keep the tables of a small log here."""
        self.small = rows <= SMALL_LOG
        self._cut(1 if self.small else max(2 * self._parallel(), rows // ROWS_PER_TASK))
        # The tables of a small log are in one part, so a join needs no job that sends one of them around.
        with working():
            self.session.conf.set(_BROADCAST, "-1" if self.small else self._broadcast)

    def _cut(self, parts: int) -> None:
        self.parts = parts
        with working():
            self.session.conf.set("spark.sql.shuffle.partitions", str(parts))

    def _parallel(self) -> int:
        # Connect does not say how many cores there are.
        return 4 if self.connect else int(self.session.sparkContext.defaultParallelism)

    def sql(self, query: str) -> "DataFrame":
        """The result of a query, not yet computed."""
        if not self._close.alive:
            raise QueryveilError("The log was closed, and its tables are gone; close it after all that needs it.")
        return self.session.sql(_QUOTED.sub(_requoted, query))

    def keep(self, frame: "DataFrame", name: str, made_from: "DataFrame | None" = None) -> None:
        """Compute a frame, and keep it as a table.

        Args:
            frame: The frame.
            name: The name of the table.
            made_from: The frame whose rows a function made these from, where they are.
        """
        self.progress(name)
        if self.small:
            with working():
                self.hold(frame.toArrow(), name, frame.schema)
            return
        stored = f"{self.database}.t{next(self._numbers)}"  # threads share a log
        with working():
            # Connect does not show how rows are spread.
            column = None if self.connect else together(made_from or frame, frame.columns, self.parts)
            if column is None:
                writer = frame.write.format("parquet")
            else:
                # Spark sorts by the part and the columns, which takes half as long if rows are sorted by one of them.
                # Rows with an event are also joined by it.
                writer = frame.sortWithinPartitions(column).write.format("parquet")
                writer = writer.bucketBy(self.parts, column).sortBy(column, *{"event_id"}.intersection(frame.columns))
            writer.saveAsTable(stored)
            self.session.table(stored).createOrReplaceTempView(backquoted(name))
        self._forget(name)
        self._tables[name] = stored

    def hold(self, table: pa.Table, name: str, schema: "StructType | None" = None) -> None:
        """Keep a small table in the memory of the driver."""
        from pyspark.sql.types import StructField, StructType

        if schema is not None:  # as in a table that is written down, every column may be empty
            schema = StructType([StructField(field.name, field.dataType) for field in schema])
        frame = self.session.createDataFrame(table, schema)
        (frame.coalesce(1) if self.small else frame).createOrReplaceTempView(backquoted(name))
        self._forget(name)

    def read(self, name: str, table: pa.Table) -> None:
        """Make a small Arrow table known under a name."""
        with working():
            self.hold(_plain(table), name)

    def load(self, name: str, schema: pa.Schema, batches: Batches) -> None:
        """Keep a table that comes in batches: one that Spark made or can read for itself, or else a small one."""
        if isinstance(batches, SparkRows):
            columns = ", ".join(f"made.{identifier(column)} AS {identifier(column)}" for column in schema.names)
            with working():  # the tables of another log are known to its session alone
                frame = batches.engine.sql(f"SELECT {columns} FROM ({batches.query}) AS made")  # noqa: S608  # names are escaped
            self.keep(frame, name)
        elif isinstance(batches, InFiles):
            with working():
                if batches.parse is None:
                    # As good as a table of our own, so it is not copied.
                    self.session.read.parquet(*batches.files).createOrReplaceTempView(backquoted(name))
                    self._forget(name)
                    return
                lines = self.session.read.option("lineSep", "\n").text(list(batches.files))
                frame = lines.mapInArrow(each(batches.parse), ddl(schema))
            self.keep(frame, name)
        else:
            self.read(name, pa.Table.from_batches(batches(), schema))

    def materialize(self, query: str, name: str) -> None:
        """Keep the result of a query."""
        with working():
            frame = self.sql(query)
        self.keep(frame, name)

    def view(self, query: str, name: str) -> None:
        """Give a name to a query that is cheap to compute again, instead of keeping its result."""
        with working():
            self.sql(query).createOrReplaceTempView(backquoted(name))
        self._forget(name)

    def map(self, query: str, function: BatchFunction, schema: pa.Schema, name: str) -> None:
        """Keep what a function makes of the result of a query; it runs where the data is."""
        with working():
            made_from = self.sql(query)
            frame = made_from.mapInArrow(each(function), ddl(schema))
        self.keep(frame, name, made_from)

    def map_groups(self, query: str, by: str, function: BatchFunction, schema: pa.Schema, name: str) -> None:
        """Keep what a function makes of each group of rows; a group must fit into the memory of a worker."""
        with working():
            frame = self.sql(query).groupBy(backquoted(by)).applyInArrow(of_group(function, schema), ddl(schema))
        self.keep(frame, name)

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
        """Keep the result of a query numbered: sorted in ranges, each counted by itself, and the counts added up."""
        keep_numbered(self, query, by, name, column, then, EVEN if even else None, frequent=frequent)

    def number_watched(
        self, query: str, by: Sequence[str], name: str, column: str, *, bits: int, watch: Watch
    ) -> list[str]:
        """The same for a first key that is spread evenly, with notes of what sees the sorted rows of each part.

        Args:
            query: The rows.
            by: As in `number`.
            name: As in `number`.
            column: As in `number`.
            bits: Rows stay together if their first keys differ in so many of the last bits alone; at least 32.
            watch: What sees them.
        """
        return keep_numbered(self, query, by, name, column, (), bits, watch)

    def ordered(self, name: str) -> Batches:
        """The table that `number` kept, in its order."""
        hidden = (PART, WITHIN, FIRST)
        columns = [column for column in self.columns(name) if column not in hidden]
        return self.rows(name, f"SELECT r.* FROM {identifier(name)} r", columns)  # noqa: S608  # names are escaped

    def rows(self, name: str, query: str, columns: Sequence[str]) -> "SparkRows":
        """What a query makes of a table that `number` kept, in the order of that table.

        Args:
            name: The table.
            query: Its rows, with all their columns and maybe others.
            columns: The columns to return.
        """
        column, then, parts = self.order[name]
        return SparkRows(self, query, tuple(columns), (column, *then), parts)

    def columns(self, name: str) -> list[str]:
        """The columns of a table."""
        with working():
            return self.session.table(backquoted(name)).columns

    def fetch(self, query: str) -> pa.Table:
        """The result of a query."""
        with working():
            return self.sql(query).toArrow()

    def row(self, query: str) -> tuple[Any, ...]:
        """The one row of a query."""
        return tuple(self.fetch(query).to_pylist()[0].values())

    def drop(self, *names: str) -> None:
        """Drop tables."""
        if not self._close.alive:
            return
        for name in names:
            if name in self.order:
                del self.order[name]
                self.drop(f"{name} parts", f"{name} offsets")
            with working():
                self.session.catalog.dropTempView(backquoted(name))
            self._forget(name)

    def _forget(self, name: str) -> None:
        stored = self._tables.pop(name, None)
        if stored is not None:
            with working():
                self.session.sql(f"DROP TABLE IF EXISTS {stored}")

    def beside(self) -> "Spark":
        """Another database on the same session and in the same place, for another log."""
        other = Spark(self.session, work_dir=self._work_dir)
        other.progress = self.progress
        return other

    def close(self) -> None:
        """Drop all tables; the session that was given stays."""
        self._close()


def _requoted(found: re.Match[str]) -> str:
    """A name in double quotes as Spark quotes it; a text stays as it is."""
    return found[0] if found[1] is None else backquoted(found[1].replace('""', '"'))


def unglobbed(path: str) -> str:
    """A path that is taken literally, not as a pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _plain(table: pa.Table) -> pa.Table:
    """A table with the types that Spark takes."""
    wide = {pa.large_string(): pa.string(), pa.uint64(): pa.int64()}
    return table.cast(pa.schema([(field.name, wide.get(field.type, field.type)) for field in table.schema]))


def _drop_database(session: "SparkSession", database: str, scratch: Scratch | None) -> None:
    with suppress(Exception):  # the application may have ended before
        session.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    if scratch is not None:
        scratch.remove()
