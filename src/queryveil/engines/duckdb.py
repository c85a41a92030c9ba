"""Tables on one machine: DuckDB, which spills to a private folder when a step needs more memory than it may use."""

import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from queryveil.engines.base import Batches, BatchFunction, identifier, numbered
from queryveil.engines.memory import described, for_tables
from queryveil.errors import QueryveilError, StoppedError, option
from queryveil.files.scratch import Scratch

MOST_THREADS = 64
"""The most threads on any machine; with many cores, four per core."""

_BATCH = 250_000

stopping = threading.Event()
"""Set when the user wants to stop."""

_cancelled: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


@contextmanager
def cancelled_by(event: threading.Event) -> Iterator[None]:
    """Work of this thread ends with a `StoppedError` at its next statement or batch after the event is set."""
    before = _cancelled.set(event)
    try:
        yield
    finally:
        _cancelled.reset(before)


def _go_on() -> None:
    event = _cancelled.get()
    if event is not None and event.is_set():
        raise StoppedError


def locked(config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A database in memory from which no SQL can reach a file, an extension or a Python variable.

    Args:
        config: Settings of DuckDB. They cannot be changed afterwards; a `temp_directory` is still used for spilling.
    """
    closed = ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions")
    connection = duckdb.connect(config=config | dict.fromkeys(closed, False))
    connection.execute("SET TimeZone = 'UTC'")
    # In a notebook that cannot show the bar, DuckDB refuses the setting.
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0][0]:
        connection.execute("SET enable_progress_bar = false")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET python_scan_all_frames = false")
    # Only now, because afterwards DuckDB accepts no folder to spill to.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


class DuckDB:
    """A private database in memory with named tables.

    Args:
        memory_limit: Bytes of memory that DuckDB itself may use before it spills; by default its share of the memory
            limit, and 4 GB if there is none.
        threads: The number of threads; by default one per core.

    Raises:
        QueryveilError: If there are so many threads that they only cost memory.
    """

    def __init__(self, *, memory_limit: int | None = None, threads: int | None = None) -> None:
        self._memory_limit = for_tables() if memory_limit is None else memory_limit
        cores = os.cpu_count() or 1
        self.threads = cores if threads is None else threads
        most = max(MOST_THREADS, 4 * cores)
        if not 1 <= self.threads <= most:
            raise QueryveilError(f"The number of threads must be between 1 and {most}. Got {threads} instead.")
        # DuckDB makes its files as the umask says, so the folder has to keep others out.
        self._scratch = Scratch()
        self._spill = self._scratch.path
        self._connection = locked(
            {
                "threads": self.threads,
                "memory_limit": f"{self._memory_limit // 1024}KiB",
                "temp_directory": str(self._spill),
                "preserve_insertion_order": False,
            }
        )
        self._lock = threading.RLock()
        self._depth = 0
        self._later: deque[str] = deque()
        self._arrow: dict[str, pa.Table] = {}
        self._close = weakref.finalize(self, _shut_down, self._connection, self._scratch)

    def read(self, name: str, table: pa.Table) -> None:
        """Make an Arrow table known under a name; nothing is copied."""
        with self._work():
            self._connection.register(name, table)
        self._arrow[name] = table

    def load(self, name: str, schema: pa.Schema, batches: Batches) -> None:
        """Copy a stream of batches into a table, which spills to disk if it does not fit into memory."""
        failure: list[BaseException] = []

        def stoppable() -> Iterator[pa.RecordBatch]:
            try:
                for batch in batches():
                    # While DuckDB waits for the stream, nothing else checks whether the user wants to stop.
                    if stopping.is_set():
                        raise KeyboardInterrupt
                    yield batch
            except BaseException as error:
                failure.append(error)
                raise

        with self._work():
            self._connection.register("stream_in", pa.RecordBatchReader.from_batches(schema, stoppable()))
            try:
                self._connection.execute(f"CREATE OR REPLACE TABLE {identifier(name)} AS SELECT * FROM stream_in")  # noqa: S608  # names are escaped
            except duckdb.Error:
                if failure:  # DuckDB would wrap the error of the stream in one of its own
                    raise failure[0] from None
                raise
            finally:
                self._connection.unregister("stream_in")

    def materialize(self, query: str, name: str) -> None:
        """Keep the result of a query as a table, which spills to disk if it does not fit into memory."""
        with self._work():
            self._connection.execute(f"CREATE OR REPLACE TABLE {identifier(name)} AS {query}")

    def map(self, query: str, function: BatchFunction, schema: pa.Schema, name: str) -> None:
        """Keep what a function makes of the result of a query, in memory."""
        made = [function(batch) for batch in self.stream(query, _BATCH)]
        self.read(name, pa.Table.from_batches(made, schema))

    def map_groups(self, query: str, by: str, function: BatchFunction, schema: pa.Schema, name: str) -> None:
        """Keep what a function makes of each group of rows, in memory."""
        rows = self.fetch(f"SELECT * FROM ({query}) AS rows_ ORDER BY {identifier(by)}").combine_chunks()  # noqa: S608  # names are escaped
        keys = rows[by].to_numpy()
        ends = [*(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
        made, begin = [], 0
        for end in ends if len(keys) else []:
            made.append(function(rows.slice(begin, end - begin).to_batches()[0]))
            begin = end
        self.read(name, pa.Table.from_batches(made, schema))

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
        """Keep the result of a query in order and numbered, in memory."""
        order = ", ".join(map(identifier, (*by, *then)))
        found = self.fetch(f"SELECT * FROM ({query}) AS rows_ ORDER BY {order}")  # noqa: S608  # names are escaped
        self.read(name, found.append_column(column, pa.array(numbered(found, by))))

    def ordered(self, name: str) -> Batches:
        """The table that `number` kept, in its order."""
        found = self._arrow[name]
        return lambda: iter(found.to_batches(_BATCH))

    def drop(self, *names: str) -> None:
        """Drop tables; while a result is being made, as soon as that is done.

        The garbage collector may free a release at any moment: in the middle of a result, or in a thread of DuckDB
        for which the thread with the lock waits. So nothing waits here.
        """
        if not self._close.alive:
            return
        self._later.extend(names)
        if self._lock.acquire(blocking=False):
            try:
                if not self._depth:
                    self._drop_now()
            finally:
                self._lock.release()

    def _drop_now(self) -> None:
        while self._later:
            name = self._later.popleft()
            if self._arrow.pop(name, None) is not None:
                self._connection.unregister(name)
            else:
                self._connection.execute(f"DROP TABLE IF EXISTS {identifier(name)}")

    def fetch(self, query: str) -> pa.Table:
        """The result of a query as an Arrow table."""
        with self._work():
            return self._connection.sql(query).to_arrow_table()

    def row(self, query: str) -> tuple[Any, ...]:
        """The one row of a query."""
        with self._work():
            rows = self._connection.execute(query).fetchall()
        return tuple(rows[0])

    def stream(self, query: str, rows: int) -> Iterator[pa.RecordBatch]:
        """The result of a query in order, batch after batch, so that it is never completely in memory."""
        with self._work():
            for batch in self._connection.sql(query).to_arrow_reader(rows):
                _go_on()
                yield batch

    @contextmanager
    def _work(self) -> Iterator[None]:
        _go_on()
        # DuckDB's own messages may quote a value of the log, so they are not passed on.
        with self._lock:
            self._depth += 1
            try:
                yield
            except duckdb.OutOfMemoryException as error:
                raise QueryveilError(
                    f"The tables of this log do not fit into {described(self._memory_limit)} of memory and the disk "
                    f"space at {self._spill.parent}; free some space, set TMPDIR to a larger disk, or raise "
                    f"{option('memory_limit')}."
                ) from error
            except duckdb.IOException as error:
                raise QueryveilError(
                    f"The table engine cannot write to {self._spill.parent}: is the disk full? Free some space, or set "
                    "TMPDIR to another disk."
                ) from error
            finally:
                self._depth -= 1
                if not self._depth:
                    self._drop_now()

    def beside(self) -> "DuckDB":
        """Another database with the same memory and threads, for another log."""
        return DuckDB(memory_limit=self._memory_limit, threads=self.threads)

    def close(self) -> None:
        """Drop all tables and remove the private folder."""
        self._close()


def _shut_down(connection: duckdb.DuckDBPyConnection, scratch: Scratch) -> None:
    connection.close()
    scratch.remove()
