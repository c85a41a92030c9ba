"""Tables on a cluster: Spark. Every step is written to a private database before the next one reads it.

So a step that is lost with a worker is done again from the tables before it, and nothing is computed twice. The driver
sees counts and other small results alone.
"""

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from queryveil.engines.base import Batches, InFiles, identifier
from queryveil.errors import QueryveilError, require
from queryveil.files.folders import is_address
from queryveil.files.scratch import Scratch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_A_PARTITION = 2_000_000
"""About so many rows of integers make a task of a shuffle: some 100 MB."""

JAVA = 17
"""The oldest Java that Spark 4 runs on."""

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # A name with blanks is written as it stands; column names that differ in case alone are refused on reading.
    "spark.sql.caseSensitive": "false",
    # SQL reaches the tables of the session, and no file by its path.
    "spark.sql.runSQLOnFiles": "false",
}
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"((?:[^\"]|\"\")*)\"", re.DOTALL)
"""A text or a name in SQL."""
_PART, _WITHIN = "part of the rows", "place in the part"
"""Columns of a numbered table, called as nobody calls a column of a log."""

_OPEN, _END = "queryveil says: ", " (end of what queryveil says)"
_SENTENCE = re.compile(re.escape(_OPEN) + "(.*?)" + re.escape(_END), re.DOTALL)


def start(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, work_dir: str | None = None
) -> "SparkSession":
    """Start a Spark session for the command line.

    Args:
        master: Where Spark runs: `local[N]` for N cores of this machine, or the address of a cluster.
        settings: Further settings of Spark, which win.
        work_dir: A folder for what Spark keeps, that the driver and all workers reach.

    Raises:
        QueryveilError: If there is no Spark, no Java that it can use, or nobody at the master's address.
    """
    require("Spark", "pyspark.sql", "pandas")
    from pyspark.sql import SparkSession

    _check_java()
    _check_master(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false"}
    if work_dir is None:
        # Spark makes a warehouse at once, used or not, by default in the folder where one happens to be.
        scratch = Scratch()
        work_dir = str(scratch.path)
        atexit.register(scratch.remove)
    chosen["spark.sql.warehouse.dir"] = whole(work_dir)
    if master.startswith("local"):
        # Nothing listens beyond this machine, and the driver, which does all the work, may use a third of it.
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 3 >> 20
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        chosen |= {"spark.ui.enabled": "false", "spark.driver.memory": f"{memory}m"}
    builder = SparkSession.builder.appName("queryveil").master(master)
    for name, value in (chosen | dict(settings or {})).items():
        builder = builder.config(name, value)
    ctrl_c = signal.getsignal(signal.SIGINT)
    with working(), _quiet():
        session = builder.getOrCreate()
    signal.signal(signal.SIGINT, ctrl_c)  # PySpark took it for itself
    return session


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    needed = f"Spark needs Java {JAVA} or later; install it (Debian: apt install openjdk-{JAVA}-jre-headless), or set"
    if java is None:
        where = f"at JAVA_HOME={home}" if home else "on this machine"
        raise QueryveilError(f"There is no Java {where}. {needed} JAVA_HOME.")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found is None or int(found.group(1)) < JAVA:
        version = f"version {found.group(1)}" if found else "of no known version"
        raise QueryveilError(f"The Java at {java} is {version}. {needed} JAVA_HOME to a newer one.")


def _check_master(master: str) -> None:
    """Refuse a master that does not exist; Spark itself would try for a minute."""
    if not re.fullmatch(r"local(\[(\d+|\*)(, *\d+)?\])?|yarn|(spark|k8s|mesos)://.+|local-cluster\[.*\]", master):
        raise QueryveilError(
            f"'{master}' is no master of Spark; give local[2], spark://HOST:7077, yarn or k8s://ADDRESS, for example."
        )
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), timeout=5):
            return
    raise QueryveilError(f"Nobody answers at {master}; check the address, and that the master runs.")


def whole(path: str) -> str:
    """A folder by its whole path or address, because Spark takes others from where it likes."""
    return path.rstrip("/") if is_address(path) else str(Path(path.removeprefix("file://")).absolute())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Java says on starting off the terminal: it says it before it can be told not to."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class Spark:
    """A private database on a Spark session.

    Args:
        session: A session of yours, classic or Connect. It is not changed: views and settings are kept in a new session
            on the same application.
        work_dir: Where the database is kept: a folder that the driver and all workers reach. By default a temporary
            folder if Spark runs on this machine alone, else the warehouse of the session.

    Attributes:
        progress: Called with the name of each table that is about to be made.
    """

    def __init__(self, session: "SparkSession", *, work_dir: str | None = None) -> None:
        with working():
            self.session = session.newSession()
            for name, value in _SETTINGS.items():
                self.session.conf.set(name, value)
        self._work_dir = work_dir
        self.database = f"queryveil_{uuid.uuid4().hex[:16]}"
        place, folder = self._place(work_dir)
        with working():
            self.session.sql(f"CREATE DATABASE {self.database} LOCATION {_literal(place)}")
        self.progress: Callable[[str], None] = lambda name: None
        self._count = 0
        self._tables: dict[str, str] = {}
        self._order: dict[str, tuple[str, tuple[str, ...], int]] = {}
        self._close = weakref.finalize(self, _let_go, self.session, self.database, folder)
        self.expect(0)

    def _place(self, work_dir: str | None) -> tuple[str, Scratch | None]:
        if work_dir is not None:
            if "'" in work_dir or "`" in work_dir:
                raise QueryveilError(f"The work folder {work_dir} has a quote in its name; name another.")
            place = f"{whole(work_dir)}/{self.database}"
            if not is_address(work_dir):
                # Readable by its owner alone, for it holds the log in the clear.
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
            scratch = Scratch()  # readable by its owner alone
            return f"{scratch.path}/{self.database}", scratch
        if warehouse.startswith("file:") or "://" not in warehouse:
            raise QueryveilError(
                "On a cluster, tables between steps need a folder that the driver and all workers reach; name one with "
                "--work-dir (in Python, work_dir)."
            )
        return f"{warehouse.rstrip('/')}/{self.database}", None

    def _master(self) -> str:
        with working():
            return self.session.conf.get("spark.master", "") or ""

    def expect(self, rows: int) -> None:
        """Cut shuffles to a size that fits so many rows."""
        with working():
            parallel = 4
            with suppress(Exception):  # Connect does not tell
                parallel = self.session.sparkContext.defaultParallelism
            self.session.conf.set("spark.sql.shuffle.partitions", str(max(2 * parallel, rows // ROWS_A_PARTITION)))

    def sql(self, query: str) -> "DataFrame":
        """The result of a query, not yet computed."""
        return self.session.sql(_QUOTED.sub(_requoted, query))

    def keep(self, frame: "DataFrame", name: str) -> None:
        """Compute a frame, and keep it as a table."""
        self.progress(name)
        self._count += 1
        stored = f"{self.database}.t{self._count}"
        with working():
            frame.write.format("parquet").saveAsTable(stored)
            self.session.table(stored).createOrReplaceTempView(backquoted(name))
        self._forget(name)
        self._tables[name] = stored

    def read(self, name: str, table: pa.Table) -> None:
        """Make a small Arrow table known under a name."""
        with working():
            self.session.createDataFrame(_plain(table)).createOrReplaceTempView(backquoted(name))
        self._forget(name)

    def load(self, name: str, schema: pa.Schema, batches: Batches) -> None:
        """Keep a table that comes in batches: one that Spark made or can read for itself, or else a small one."""
        if isinstance(batches, SparkRows):
            wanted = ", ".join(f"made.{identifier(column)} AS {identifier(column)}" for column in schema.names)
            self.materialize(f"SELECT {wanted} FROM ({batches.query}) AS made", name)  # noqa: S608  # names are escaped
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

    def map(
        self, query: str, function: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema, name: str
    ) -> None:
        """Keep what a function makes of the result of a query; it runs where the data is."""
        with working():
            frame = self.sql(query).mapInArrow(each(function), ddl(schema))
        self.keep(frame, name)

    def map_groups(
        self,
        query: str,
        by: str,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: pa.Schema,
        name: str,
    ) -> None:
        """Keep what a function makes of each group of rows; a group must fit into the memory of a worker."""
        with working():
            frame = self.sql(query).groupBy(backquoted(by)).applyInArrow(of_group(function, schema), ddl(schema))
        self.keep(frame, name)

    def number(self, query: str, by: Sequence[str], name: str, column: str, *, then: Sequence[str] = ()) -> None:
        """Keep the result of a query numbered: sorted in ranges, each counted by itself, and the counts added up."""
        from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

        # Finding the ranges looks at all rows once, so they are written down first.
        self.materialize(query, f"{name} unsorted")
        with working():
            frame = self.session.table(backquoted(f"{name} unsorted"))
            keys = [F.col(backquoted(key)).asc() for key in by]
            frame = frame.repartitionByRange(*keys).sortWithinPartitions(
                *keys, *(F.col(backquoted(key)).asc_nulls_last() for key in then)
            )
            columns = ", ".join(
                f"{backquoted(field.name)} {field.dataType.simpleString()}" for field in frame.schema.fields
            )
            frame = frame.mapInArrow(_counting(tuple(by)), f"{columns}, `{_PART}` int, `{_WITHIN}` bigint")
        self.keep(frame, f"{name} parts")
        self.drop(f"{name} unsorted")
        found = self.fetch(
            f'SELECT "{_PART}" AS part, max("{_WITHIN}") AS n FROM {identifier(f"{name} parts")}'  # noqa: S608  # names are escaped
            f' GROUP BY "{_PART}" ORDER BY part'
        )
        count = found["n"].to_numpy()
        offsets = {"part": found["part"], "before": np.cumsum(count) - count}
        self.read(f"{name} offsets", pa.table(offsets).cast(pa.schema([("part", pa.int32()), ("before", pa.int64())])))
        with working():
            self.sql(
                f'SELECT p.*, p."{_WITHIN}" + o.before AS {identifier(column)} FROM {identifier(f"{name} parts")} p'  # noqa: S608  # names are escaped
                f' JOIN {identifier(f"{name} offsets")} o ON o.part = p."{_PART}"'
            ).createOrReplaceTempView(backquoted(name))
        parts = int(found["part"].to_numpy().max()) + 1 if len(found) else 1
        self._order[name] = (column, tuple(then), parts)

    def ordered(self, name: str) -> Batches:
        """The table that `number` kept, in its order."""
        hidden = (_PART, _WITHIN)
        columns = [column for column in self.columns(name) if column not in hidden]
        return self.rows(name, f"SELECT r.* FROM {identifier(name)} r", columns)  # noqa: S608  # names are escaped

    def rows(self, name: str, query: str, columns: Sequence[str]) -> "SparkRows":
        """What a query makes of a table that `number` kept, in the order of that table.

        Args:
            name: The table.
            query: Its rows, with all their columns and maybe others.
            columns: The columns wanted.
        """
        column, then, parts = self._order[name]
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
        """Let go of tables."""
        if not self._close.alive:
            return
        for name in names:
            if name in self._order:
                del self._order[name]
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
        """Let go of all tables; the session that was given stays."""
        self._close()


class SparkRows:
    """The rows of a query in the order of a numbered table: brought here part by part, or written where they are."""

    def __init__(self, engine: Spark, query: str, columns: Sequence[str], order: Sequence[str], parts: int) -> None:
        self.engine, self.query, self.columns, self.order, self.parts = engine, query, columns, order, parts

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """The rows, a part at a time."""
        order = ", ".join(f"rows_.{identifier(key)} NULLS LAST" for key in self.order)
        wanted = ", ".join(f"rows_.{identifier(name)} AS {identifier(name)}" for name in self.columns)
        for part in range(self.parts):
            yield from self.engine.fetch(
                f'SELECT {wanted} FROM ({self.query}) AS rows_ WHERE rows_."{_PART}" = {part} ORDER BY {order}'  # noqa: S608  # names are escaped
            ).to_batches()

    def frame(self) -> "DataFrame":
        """The rows as a frame whose partitions are in order."""
        from pyspark.sql import functions as F  # noqa: N812

        with working():
            frame = self.engine.sql(self.query).repartitionById(self.parts, F.col(f"`{_PART}`"))
            frame = frame.sortWithinPartitions(*(F.col(backquoted(key)).asc_nulls_last() for key in self.order))
            return frame.select(*(F.col(backquoted(name)) for name in self.columns))


def backquoted(name: str) -> str:
    """A name as Spark quotes it: in backquotes, those in it doubled."""
    return "`" + name.replace("`", "``") + "`"


def _requoted(found: re.Match[str]) -> str:
    """A name in double quotes as Spark quotes it; a text stays as it is."""
    return found[0] if found[1] is None else backquoted(found[1].replace('""', '"'))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def each(function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Callable[..., Iterator[pa.RecordBatch]]:
    """A function of a batch as Spark wants it."""
    return telling(lambda batches: (function(batch) for batch in batches))


def of_group(function: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema) -> Callable[[pa.Table], pa.Table]:
    """A function of a whole group as Spark wants it."""

    def run(table: pa.Table) -> pa.Table:
        try:
            made = function(table.combine_chunks().to_batches()[0])
        except QueryveilError as error:
            raise RuntimeError(f"{_OPEN}{error}{_END}") from None
        return pa.Table.from_batches([made], schema)

    return run


def telling(
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Work of a task whose complaints reach the driver as one sentence."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from work(batches)
        except QueryveilError as error:
            raise RuntimeError(f"{_OPEN}{error}{_END}") from None

    return run


def _counting(by: tuple[str, ...]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        number, last = 0, None
        for batch in batches:
            if len(batch) == 0:
                continue
            keys = [batch[key].to_numpy() for key in by]
            fresh = np.zeros(len(batch), np.bool_)
            for values in keys:
                fresh[1:] |= values[1:] != values[:-1]
            first = tuple(values[0] for values in keys)
            fresh[0] = first != last
            last = tuple(values[-1] for values in keys)
            within = number + np.cumsum(fresh)
            number = int(within[-1])
            extra = [pa.array(np.full(len(batch), part, np.int32)), pa.array(within)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *extra], names=[*batch.schema.names, _PART, _WITHIN])

    return run


def ddl(schema: pa.Schema) -> str:
    """Arrow columns as Spark declares them."""
    kinds = {
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.string(): "string",
        pa.bool_(): "boolean",
        pa.binary(): "binary",
        pa.timestamp("us"): "timestamp_ntz",
    }
    return ", ".join(f"{backquoted(field.name)} {kinds[field.type]}" for field in schema)


def _plain(table: pa.Table) -> pa.Table:
    """A table with the types that Spark takes."""
    wide = {pa.large_string(): pa.string(), pa.uint64(): pa.int64()}
    return table.cast(pa.schema([(field.name, wide.get(field.type, field.type)) for field in table.schema]))


def _let_go(session: "SparkSession", database: str, scratch: Scratch | None) -> None:
    with suppress(Exception):  # the application may have ended before
        session.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    if scratch is not None:
        scratch.remove()


@contextmanager
def working(where: str = "the log") -> Iterator[None]:
    """Spark's own messages may quote a value of the log, so they are told in other words."""
    try:
        yield
    except QueryveilError:
        raise
    except Exception as error:
        raise QueryveilError(sentence_of(error, where)) from None


def sentence_of(error: Exception, where: str) -> str:
    """What went wrong in Spark, without what it quotes."""
    text = str(error)
    ours = _SENTENCE.search(text)
    if ours is not None:
        return ours.group(1)
    if "No module named 'queryveil'" in text:
        return (
            "The workers of the cluster have no queryveil; give them the same environment as the driver, as the docs "
            "say under 'Spark'."
        )
    signs = ("OutOfMemory", "MemoryError", "ExecutorLost", "exit code 137", "memory limits", "exited unexpectedly")
    if any(sign in text for sign in signs):
        return (
            "An executor ran out of memory or was lost more often than Spark tries again; give executors more with "
            "--conf spark.executor.memory=8g (with a local master: spark.driver.memory), or fewer cores each."
        )
    if "PATH_NOT_FOUND" in text or "Path does not exist" in text:
        return f"Spark finds no file at {where}; check the path, and that all workers reach it."
    if "No space left on device" in text:
        return "A disk of the cluster is full; free some space, or name another --work-dir or spark.local.dir."
    if "PARQUET_TYPE_ILLEGAL" in text:
        return f"Spark does not read a type of {where}, such as times in nanoseconds; write them in microseconds."
    if "COLUMN_ALREADY_EXISTS" in text:
        return f"Two columns of {where} have the same name but for case; give each a name of its own."
    if "No FileSystem for scheme" in text or "ClassNotFoundException" in text:
        return f"Spark has no connector for {where}; add it with --conf spark.jars.packages=..., or name another place."
    if "Connection refused" in text and is_address(where):
        return f"Nobody answers at {where}; check the address."
    if "Connection refused" in text or "SparkContext was shut down" in text or "stopped SparkContext" in text:
        return "The connection to Spark is lost; look at the master, and start again."
    condition = getattr(error, "getCondition", lambda: None)()
    told = condition if isinstance(condition, str) else type(error).__name__
    return f"Spark could not finish a step ({told}); its own log tells where."
