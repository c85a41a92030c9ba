"""From files to a QueryLog: every text becomes an integer here, once.

Rows stream through in blocks. Threads parse, bring queries to their normal form and digest texts; the main thread
numbers the digests in order. Memory holds the integer columns and the digests; distinct texts are kept in an unnamed
temporary file.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import pyarrow as pa

from queryveil.engines import DuckDB
from queryveil.engines.memory import limit_to
from queryveil.errors import Done, QueryveilError, QueryveilWarning, option, parameter
from queryveil.files.folders import is_address, shown
from queryveil.formats.detection import agreed_columns, tasks, timed
from queryveil.formats.input import Input, ReadAs, checked_encoding
from queryveil.formats.parquet import arrow_tasks
from queryveil.formats.rows import BadRows, ReadOptions, Task
from queryveil.formats.source import Meter, find_files, metered
from queryveil.formats.times import check_time_format
from queryveil.log import LocalLog, QueryLog
from queryveil.log.ingest.build import Builder
from queryveil.log.ingest.people import session_warning
from queryveil.log.ingest.prepared import Prepared, prepare
from queryveil.sources import table_at
from queryveil.text.detection import parsed
from queryveil.text.languages import DEFAULT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from queryveil.engines.spark import Spark

Log = TypeVar("Log", bound=QueryLog)


@overload
def read_log(
    source: str | Path | Sequence[str | Path] | Any,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    time_format: str | None = None,
    sql: str | None = None,
    language: str | Sequence[str] = DEFAULT,
    max_bad_rows: float = 0.01,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[int], None] | None = None,
    engine: None = None,
    stated: Input | None = None,
) -> LocalLog: ...


@overload
def read_log(
    source: str | Path | Sequence[str | Path] | Any,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    time_format: str | None = None,
    sql: str | None = None,
    language: str | Sequence[str] = DEFAULT,
    max_bad_rows: float = 0.01,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[int], None] | None = None,
    engine: "SparkSession | Spark",
    stated: Input | None = None,
) -> QueryLog: ...


def read_log(
    source: str | Path | Sequence[str | Path] | Any,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    time_format: str | None = None,
    sql: str | None = None,
    language: str | Sequence[str] = DEFAULT,
    max_bad_rows: float = 0.01,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[int], None] | None = None,
    engine: "SparkSession | Spark | None" = None,
    stated: Input | None = None,
) -> QueryLog:
    """Read a query log.

    Args:
        source: A file, a folder, a glob pattern, a list of these, or a table with the Arrow interface (PyArrow, pandas,
            Polars). Files may be compressed with gzip, bzip2, zstd or xz. An address, such as `s3://bucket/log.gz`, is
            read where it is; so is a Delta or Iceberg table.
        format: One of `queryveil.formats.FORMATS`, such as `csv`; detected automatically by default.
        columns: For table-like formats, the names of the columns, such as `{"user": "cookie", "query": "q"}`.
        encoding: The encoding of text files; by default UTF-8, or the one that a byte order mark names (SogouQ: GB18030
            unless it is UTF-8).
        time_format: How times are written, as in `strptime`, such as `%d/%m/%Y %H:%M`; detected automatically by
            default, unless day and month could be confused.
        sql: A query whose rows are the log; `source` is then the address of a database, such as
            `postgresql://host/name` or `sqlite:///file`.
        language: The language of the queries by its code, such as `de`; several in a list; or `auto`, to detect them.
            Texts without blanks, such as Chinese, are cut into words by their script, whatever is given here.
        max_bad_rows: The largest share of bad rows; with more, reading fails.
        threads: The number of threads; by default one per core. It does not change the result.
        memory_limit: The memory that this process may use from now on, such as `8GB`. Tables spill to disk beyond half
            of it, and arrays that do not fit into the rest are refused. By default tables spill beyond 4 GB, and arrays
            may use all memory of the machine.
        progress: Called with the number of rows read so far; its attribute `share` is the share of the bytes of the
            files, or None.
        engine: A Spark session, to read and work on a cluster. Paths are then those of Spark, and a Spark DataFrame is
            a source too. Spark ignores `threads`, `memory_limit` and `progress`.
        stated: What the manifest of a release says about how its log is read (`release.manifest.input`). It is used
            where nothing else says which column is which, and never decides who is a user.

    How the log was read, and which columns were found by their names, is in `log.stats.read_as`.

    Raises:
        QueryveilError: If the log cannot be read, has no query, or has too many bad rows.

    Example:
        >>> import pyarrow as pa
        >>> read_log(pa.table({"user": ["a", "b", "b"], "query": ["Cats", "cats ", "dogs"]}))
        <QueryLog: 3 events, 2 users, 2 distinct queries>
    """
    if not 0 <= max_bad_rows <= 1:
        named = parameter("read_log", "max_bad_rows")
        raise QueryveilError(f"{named} must be a share from 0 to 1. Got {max_bad_rows} instead.")
    languages = parsed(language)
    limit_to(memory_limit)
    options = ReadOptions(
        columns or {}, checked_encoding(encoding), None if time_format is None else check_time_format(time_format)
    )
    if engine is not None:
        if sql is not None:
            raise QueryveilError(
                f"{option('from_sql', python='sql')} reads on this machine; leave {option('engine')} out."
            )
        from queryveil.engines.spark import Spark
        from queryveil.log.ingest.spark import read_spark

        cluster = engine if isinstance(engine, Spark) else Spark(engine)
        refuse = partial(_refuse_bad, max_bad_rows)
        try:
            return _noticed(
                read_spark(
                    source, cluster, format=format, options=options, stated=stated, refuse=refuse, languages=languages
                )
            )
        except BaseException:
            if cluster is not engine:  # nobody else could close what was read so far
                cluster.close()
            raise
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, Sequence) and paths and all(isinstance(part, str | Path) for part in paths):
        table = table_at(paths, sql)
        if table is not None:
            where = table.where
            options, read_as = agreed_columns(table.schema.names, options, stated)
            todo = arrow_tasks(table.schema, table.batches, options, where)
        else:
            where = shown(paths[0]) if len(paths) == 1 else "the files"
            read_as, todo = tasks(paths, format, options, stated)
    elif hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        where = "the table"
        options, read_as = agreed_columns(reader.schema.names, options, stated)
        todo = arrow_tasks(reader.schema, iter(reader), options, where)
    else:
        raise QueryveilError("read_log takes a path, a list of paths, or a table with the Arrow interface.")
    with _metering(source if progress is not None else None):  # files are opened from here on
        todo, read_as = _with_time_format(todo, read_as, where, stated)
        tables = DuckDB(threads=threads)
        builder = Builder(languages, read_as)

        def refuse_bad(read: Builder) -> None:
            _refuse_bad(max_bad_rows, read.rows, read.empty, read.bad, where)

        with ThreadPoolExecutor(tables.threads) as pool:
            for prepared in _in_order(pool, todo, tables.threads, read_as.time_format):
                builder.add(prepared)
                if progress is not None:
                    meter = metered.get()
                    share = None if meter is None else meter.share
                    progress(Done(builder.rows + builder.bad.total + builder.empty, share))
            refuse_bad(builder)
            return _noticed(builder.build(tables, pool, refuse_bad))


@contextmanager
def _metering(source: object) -> Iterator[None]:
    """Measure how much of the files of a log is read, if it is in files."""
    named = [source] if isinstance(source, str | Path) else source if isinstance(source, Sequence) else []
    try:
        meter = None if not named or any(map(is_address, named)) else Meter(find_files(named))
    except (QueryveilError, OSError):  # not files of this machine
        meter = None
    token = metered.set(meter)
    try:
        yield
    finally:
        metered.reset(token)


def _noticed(log: Log) -> Log:
    """The same log, after warnings about words that were cut without a dictionary, and users that are no people."""
    session = session_warning(log)
    if session is not None:
        warnings.warn(session, QueryveilWarning, stacklevel=3)
    for one in log.language.cutters:
        if one.cutter.missing and log.scripts & one.any_of:
            sentence = f"{one.cutter.label} is cut into single characters and pairs; words need {one.cutter.missing}."
            warnings.warn(sentence, QueryveilWarning, stacklevel=3)
    return log


def _in_order(
    pool: ThreadPoolExecutor, todo: Iterator[Task], threads: int, time_format: str | None
) -> Iterator[Prepared]:
    # A short queue: enough to keep the threads busy, without more blocks in memory than needed.
    waiting: deque[Future[Prepared]] = deque()
    try:
        for task in todo:
            waiting.append(pool.submit(_run, task, time_format))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _run(task: Task, time_format: str | None) -> Prepared:
    return prepare(task(), time_format).check()


def _with_time_format(
    todo: Iterator[Task], read_as: ReadAs, where: str, stated: Input | None
) -> tuple[Iterator[Task], ReadAs]:
    """The same tasks, and how the log is read, with the format of its times if the first rows show one."""
    first = next(todo, None)
    if first is None or read_as.time_format is not None:
        return iter(()) if first is None else chain([first], todo), read_as
    rows = first()
    return chain([lambda: rows], todo), timed(read_as, rows.columns.get("time"), where, stated)


def _refuse_bad(max_bad_rows: float, rows: int, empty: int, bad: BadRows, where: str) -> None:
    total = rows + empty + bad.total
    kinds = ", ".join(
        f"{count:,} with {kind} (first at {bad.first[kind]})"
        for kind, count in sorted(bad.count.items(), key=lambda item: -item[1])
    )
    if bad.total > max_bad_rows * total:
        way = option("time_format" if "bad time" in bad.count else "encoding")
        raise QueryveilError(
            f"{bad.total:,} of {total:,} rows are bad, over the limit of {max_bad_rows:.4g}: {kinds}; fix them, choose "
            f"another {option('format')} or {way}, or raise {option('max_bad_rows')}."
        )
    if rows == 0:
        why = f"all {empty:,} queries are empty" if empty else "there is no row after the header"
        raise QueryveilError(f"There is no query in {where}: {why}.")
