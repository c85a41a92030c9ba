"""From files to a QueryLog: every text becomes an integer here, once.

Rows stream through in blocks. Threads parse, bring queries to their normal form and digest texts; the main thread
numbers the digests in order. Memory holds the integer columns and the digests; distinct texts are kept in an unnamed
temporary file.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import pyarrow as pa

from queryveil.engines import DuckDB
from queryveil.engines.memory import limit_to
from queryveil.errors import QueryveilError, QueryveilWarning, option, parameter
from queryveil.formats.detection import tasks
from queryveil.formats.parquet import arrow_tasks
from queryveil.formats.rows import BadRows, ReadOptions, Task
from queryveil.log import LocalLog, QueryLog
from queryveil.log.ingest.build import Builder
from queryveil.log.ingest.prepared import Prepared, prepare
from queryveil.text.detection import parsed
from queryveil.text.languages import DEFAULT
from queryveil.text.show import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from queryveil.engines.spark import Spark

Log = TypeVar("Log", bound=QueryLog)
_ASCII = 'az AZ 09\t\r\n,;|"+-.:/[]{}'
"""Characters that an encoding must leave unchanged, so that files can be split into lines and fields."""


@overload
def read_log(
    source: str | Path | Sequence[str | Path] | Any,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    language: str | Sequence[str] = DEFAULT,
    max_bad_rows: float = 0.01,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[int], None] | None = None,
    engine: None = None,
) -> LocalLog: ...


@overload
def read_log(
    source: str | Path | Sequence[str | Path] | Any,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    language: str | Sequence[str] = DEFAULT,
    max_bad_rows: float = 0.01,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[int], None] | None = None,
    engine: "SparkSession | Spark",
) -> QueryLog: ...


def read_log(
    source: str | Path | Sequence[str | Path] | Any,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    language: str | Sequence[str] = DEFAULT,
    max_bad_rows: float = 0.01,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[int], None] | None = None,
    engine: "SparkSession | Spark | None" = None,
) -> QueryLog:
    """Read a query log.

    Args:
        source: A file, a folder, a glob pattern, a list of these, or a table with the Arrow interface (PyArrow, pandas,
            Polars). Files may be compressed with gzip, bzip2, zstd or xz.
        format: One of `queryveil.formats.FORMATS`, such as `csv`; detected automatically by default.
        columns: For table-like formats, the names of the columns, such as `{"user": "cookie", "query": "q"}`.
        encoding: The encoding of text files; by default UTF-8 (SogouQ: GB18030 unless it is UTF-8).
        language: The language of the queries by its code, such as `de`; several in a list; or `auto`, to detect them.
            Texts without blanks, such as Chinese, are cut into words by their script, whatever is given here.
        max_bad_rows: The largest share of bad rows; with more, reading fails.
        threads: The number of threads; by default one per core. It does not change the result.
        memory_limit: The memory that this process may use from now on, such as `8GB`. Tables spill to disk beyond half
            of it, and arrays that do not fit into the rest are refused. By default tables spill beyond 4 GB, and arrays
            may use all memory of the machine.
        progress: Called with the number of rows read so far.
        engine: A Spark session, to read and work on a cluster. Paths are then those of Spark, and a Spark DataFrame is
            a source too. Spark ignores `threads`, `memory_limit` and `progress`.

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
    if encoding is not None and encoding.lower().replace("_", "-") in ("utf8", "utf-8", "utf-8-sig"):
        encoding = None  # a byte order mark is skipped anyway
    if encoding is not None:
        _check_encoding(encoding)
    options = ReadOptions(columns or {}, encoding)
    if engine is not None:
        from queryveil.engines.spark import Spark
        from queryveil.log.ingest.spark import read_spark

        cluster = engine if isinstance(engine, Spark) else Spark(engine)
        refuse = partial(_refuse_bad, max_bad_rows)
        try:
            return _noticed(
                read_spark(source, cluster, format=format, options=options, refuse=refuse, languages=languages)
            )
        except BaseException:
            if cluster is not engine:  # nobody else could close what was read so far
                cluster.close()
            raise
    if isinstance(source, str | Path):
        where, todo = str(source), tasks([source], format, options)[1]
    elif isinstance(source, Sequence) and source and all(isinstance(part, str | Path) for part in source):
        where = str(source[0]) if len(source) == 1 else "the files"
        todo = tasks(source, format, options)[1]
    elif hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        where, todo = "the table", arrow_tasks(reader.schema, iter(reader), options, "the table")
    else:
        raise QueryveilError("read_log takes a path, a list of paths, or a table with the Arrow interface.")
    tables = DuckDB(threads=threads)
    builder = Builder(languages)

    def refuse_bad(read: Builder) -> None:
        _refuse_bad(max_bad_rows, read.rows, read.empty, read.bad, where)

    with ThreadPoolExecutor(tables.threads) as pool:
        for prepared in _in_order(pool, todo, tables.threads):
            builder.add(prepared)
            if progress is not None:
                progress(builder.rows + builder.bad.total + builder.empty)
        refuse_bad(builder)
        return _noticed(builder.build(tables, pool, refuse_bad))


def _noticed(log: Log) -> Log:
    """The same log, after a warning about words that were cut without a dictionary."""
    for one in log.language.cutters:
        if one.cutter.missing and log.scripts & one.any_of:
            sentence = f"{one.cutter.label} is cut into single characters and pairs; words need {one.cutter.missing}."
            warnings.warn(sentence, QueryveilWarning, stacklevel=3)
    return log


def _in_order(pool: ThreadPoolExecutor, todo: Iterator[Task], threads: int) -> Iterator[Prepared]:
    # A short queue: enough to keep the threads busy, without more blocks in memory than needed.
    waiting: deque[Future[Prepared]] = deque()
    try:
        for task in todo:
            waiting.append(pool.submit(_run, task))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _run(task: Task) -> Prepared:
    return prepare(task()).check()


def _refuse_bad(max_bad_rows: float, rows: int, empty: int, bad: BadRows, where: str) -> None:
    total = rows + empty + bad.total
    kinds = ", ".join(
        f"{count:,} with {kind} (first at {bad.first[kind]})"
        for kind, count in sorted(bad.count.items(), key=lambda item: -item[1])
    )
    if bad.total > max_bad_rows * total:
        raise QueryveilError(
            f"{bad.total:,} of {total:,} rows are bad, over the limit of {max_bad_rows:.4g}: {kinds}; fix them, choose "
            f"another {option('format')} or {option('encoding')}, or raise {option('max_bad_rows')}."
        )
    if rows == 0:
        why = f"all {empty:,} queries are empty" if empty else "there is no row after the header"
        raise QueryveilError(f"There is no query in {where}: {why}.")


def _check_encoding(encoding: str) -> None:
    try:
        plain = _ASCII.encode(encoding) == _ASCII.encode()
    except (LookupError, ValueError):
        raise QueryveilError(f"There is no encoding '{printable(encoding)}'; try utf-8, latin-1 or gb18030.") from None
    try:  # some encodings fail at the first unknown byte instead of escaping it
        b"\xff\x81".decode(encoding, "surrogateescape")
    except UnicodeError:
        plain = False
    if not plain:
        raise QueryveilError(f"Files in {encoding} cannot be read line by line; convert them to UTF-8 first.")
