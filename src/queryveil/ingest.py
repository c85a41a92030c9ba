"""From files to a QueryLog: every text becomes an integer here, once.

Rows stream through in blocks. Threads parse, bring queries to their normal form and digest texts; the main thread
numbers the digests in order. Memory holds the integer columns and the digests; distinct texts wait in a nameless file.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.engines import DuckDB
from queryveil.errors import QueryveilError
from queryveil.formats import CANONICAL, BadRows, ReadOptions, Rows, tasks
from queryveil.formats.parquet import arrow_tasks
from queryveil.formats.rows import Task
from queryveil.log import QueryLog, Tokens
from queryveil.text import fold_blanks, normal_form, words
from queryveil.text.arrays import byte_spans
from queryveil.text.spool import Spool

MAX_TEXT_BYTES = 16_384
"""A longer query or address is a pasted document: a bad row."""

_SLICE = 500_000
Digests = tuple[NDArray[np.uint64], NDArray[np.uint64]]


def read_log(
    source: str | Path | Sequence[str | Path] | Any,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    max_bad_rows: float = 0.01,
    threads: int | None = None,
    memory_limit: str = "4GB",
    progress: Callable[[int], None] | None = None,
) -> QueryLog:
    """Read a query log.

    Args:
        source: A file, a folder, a glob pattern, a list of these, or a table of anything that speaks Arrow (PyArrow,
            pandas, Polars). Files may be compressed with gzip, bzip2, zstd or xz.
        format: One of `aol`, `excite`, `sogou`, `ubi`, `parquet`, `jsonl`, `tsv`, `csv`; told by content if absent.
        columns: For table-like formats, which column is which, such as `{"user": "cookie", "query": "q"}`.
        encoding: The encoding of text files; UTF-8 if absent (SogouQ: GB18030 unless it is UTF-8).
        max_bad_rows: The share of rows that may be bad before the read is refused.
        threads: How many threads; one a core if absent. The result does not depend on it.
        memory_limit: What the table engine may hold before it spills to disk.
        progress: Called with the number of rows read so far.

    Raises:
        QueryveilError: If the log cannot be read, has no query, or has too many bad rows.

    Example:
        >>> import pyarrow as pa
        >>> read_log(pa.table({"user": ["a", "b", "b"], "query": ["Cats", "cats ", "dogs"]}))
        <QueryLog: 3 events, 2 users, 2 distinct queries>
    """
    if encoding is not None and encoding.lower().replace("_", "-") in ("utf8", "utf-8", "utf-8-sig"):
        encoding = None  # a byte order mark is passed over anyway
    if encoding is not None:
        _check_encoding(encoding)
    options = ReadOptions(columns or {}, encoding)
    if isinstance(source, str | Path):
        where, todo = str(source), tasks([source], format, options)[1]
    elif isinstance(source, Sequence) and source and all(isinstance(part, str | Path) for part in source):
        where = str(source[0]) if len(source) == 1 else "the files"
        todo = tasks(source, format, options)[1]
    elif hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        where, todo = "the table", arrow_tasks(reader.schema, iter(reader), options, "the table")
    else:
        raise QueryveilError("read_log takes a path, a list of paths, or a table that speaks Arrow.")
    engine = DuckDB(memory_limit=memory_limit, threads=threads)
    builder = _Builder()
    with ThreadPoolExecutor(engine.threads) as pool:
        for prepared in _in_order(pool, todo, engine.threads):
            builder.add(prepared)
            if progress is not None:
                progress(builder.rows + builder.bad.total + builder.empty)
        _refuse_bad(builder, max_bad_rows, where)
        return builder.build(engine, pool)


@dataclass
class _Prepared:
    """A stretch of rows with digests for texts; what is left for the main thread is to number them."""

    user: pa.Array
    query: pa.Array
    url: pa.Array
    extras: dict[str, pa.Array]
    digests: dict[str, Digests]
    time: NDArray[np.int64]
    rank: NDArray[np.int32]
    content: Digests
    bad: BadRows
    empty: int


def _in_order(pool: ThreadPoolExecutor, todo: Iterator[Task], threads: int) -> Iterator[_Prepared]:
    # A short queue: enough to keep the threads busy, and no more blocks in memory than that.
    waiting: deque[Future[_Prepared]] = deque()
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


def _run(task: Task) -> _Prepared:
    return _prepare(task())


def _prepare(rows: Rows) -> _Prepared:
    from queryveil.kernels.digest import digests
    from queryveil.kernels.times import BAD, parse_ranks

    n = len(rows.line)
    nothing = pa.nulls(n, pa.string())
    raw = rows.columns["query"]
    time = _times(rows.columns.get("time"), n)
    rank = parse_ranks(*byte_spans(rows.columns["rank"])) if "rank" in rows.columns else np.full(n, -1, np.int32)
    user = rows.columns["user"]
    _, starts, ends = byte_spans(raw)
    user = fold_blanks(pc.fill_null(user, ""))
    _, user_starts, user_ends = byte_spans(user)
    url = rows.columns.get("url", nothing)
    _, url_starts, url_ends = byte_spans(url)
    good = np.ones(n, np.bool_)
    for kind, wrong in (
        ("no user", user_starts == user_ends),
        ("over-long query", ends - starts > MAX_TEXT_BYTES),
        ("over-long address", url_ends - url_starts > MAX_TEXT_BYTES),
        ("bad time", time == BAD),
        ("bad rank", rank == -2),
    ):
        wrong &= good
        if wrong.any():
            rows.bad.add(kind, int(wrong.sum()), rows.at(int(wrong.argmax())))
            good &= ~wrong
    if not good.all():
        raw = pc.if_else(pa.array(good), raw, "")
    query = normal_form(pc.fill_null(raw, ""))
    present = pc.and_(pc.not_equal(query, ""), pc.not_equal(query, "-")).to_numpy(zero_copy_only=False)
    keep = good & present
    empty = int((good & ~present).sum())
    extras = {name: values for name, values in rows.columns.items() if name not in CANONICAL}
    if not keep.all():
        mask = pa.array(keep)
        user, query, url = user.filter(mask), query.filter(mask), url.filter(mask)
        extras = {name: values.filter(mask) for name, values in extras.items()}
        time, rank = time[keep], rank[keep]
    url = fold_blanks(pc.fill_null(url, ""))
    extras = {name: fold_blanks(pc.fill_null(values, "")) for name, values in extras.items()}
    texts = {"user": user, "query": query, "url": url, **{f"extra {name}": v for name, v in extras.items()}}
    found = {name: digests(*byte_spans(values)) for name, values in texts.items()}
    content = _content(found, extras, time, rank)
    return _Prepared(user, query, url, extras, found, time, rank, content, rows.bad, empty)


def _times(values: pa.Array | None, n: int) -> NDArray[np.int64]:
    from queryveil.kernels.times import MISSING, parse_times

    if values is None:
        return np.full(n, MISSING, np.int64)
    if pa.types.is_timestamp(values.type):
        micros: NDArray[np.int64] = pc.fill_null(values.cast(pa.int64()), MISSING).to_numpy()
        return micros
    return parse_times(*byte_spans(values), 0)


def _content(
    found: dict[str, Digests], extras: dict[str, pa.Array], time: NDArray[np.int64], rank: NDArray[np.int32]
) -> Digests:
    """The digest of each row: of the digests of its texts, its time and its rank."""
    from queryveil.kernels.digest import digests

    n = len(time)
    parts = [half for name in ("user", "query", "url") for half in found[name]]
    parts += [time.view(np.uint64), rank.astype(np.int64).view(np.uint64)]
    # Extra columns are added up, so that an absent column and an empty one are the same, in whatever order they come.
    low = np.zeros(n, np.uint64)
    for name, values in extras.items():
        named = np.repeat(digests(*byte_spans(pa.array([name])))[0], n)
        more = _digest_words([named, found[f"extra {name}"][0]])[0]
        low += np.where(pc.not_equal(values, "").to_numpy(zero_copy_only=False), more, 0)
    return _digest_words([*parts, low])


def _digest_words(words_: Sequence[NDArray[np.uint64]]) -> Digests:
    from queryveil.kernels.digest import digests

    matrix = np.ascontiguousarray(np.stack(words_, axis=1))
    width = matrix.shape[1] * 8
    starts = np.arange(len(matrix), dtype=np.int64) * width
    return digests(matrix.reshape(-1).view(np.uint8), starts, starts + width)


@dataclass
class _Column:
    """One text column: its numbers row by row, and its distinct texts."""

    numbers: list[NDArray[np.int32]] = field(default_factory=list)
    spool: Spool = field(default_factory=Spool)

    def __post_init__(self) -> None:
        from queryveil.kernels.intern import Interner

        self.interner = Interner()

    def add(self, texts: pa.Array, found: Digests) -> NDArray[np.int32]:
        numbers, fresh = self.interner.add(*found)
        if len(fresh):
            self.spool.append(texts.take(pa.array(fresh)))
        return numbers

    def append(self, texts: pa.Array, found: Digests) -> None:
        self.numbers.append(self.add(texts, found))

    def append_given(self, texts: pa.Array, found: Digests) -> None:
        """As `append`, but the empty text is no value and gets -1."""
        given = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
        numbers = np.full(len(texts), -1, np.int32)
        if given.any():
            low, high = found
            numbers[given] = self.add(texts.filter(pa.array(given)), (low[given], high[given]))
        self.numbers.append(numbers)

    def finish(self) -> "_Finished":
        """Turn numbers into ids; the texts are put in the order of the ids by `texts`."""
        ranks = self.interner.ranks()
        lookup = np.append(ranks, np.int32(-1))  # so that number -1 stays -1
        ids = [lookup[numbers] for numbers in self.numbers]
        self.numbers = []
        return _Finished(ids, ranks)

    def texts(self, ranks: NDArray[np.int32]) -> pa.Array:
        """The text of each id."""
        order = np.empty(len(ranks), np.int64)
        order[ranks] = np.arange(len(ranks))
        return self.spool.ordered(order)


class _Finished(NamedTuple):
    """A text column with ids."""

    ids: list[NDArray[np.int32]]
    """The id of each row."""
    ranks: NDArray[np.int32]
    """The id of each number."""


class _Builder:
    """Gathers prepared rows and makes the log of them."""

    def __init__(self) -> None:
        self.user, self.query, self.url = _Column(), _Column(), _Column()
        self.extras: dict[str, _Column] = {}
        self.time: list[NDArray[np.int64]] = []
        self.rank: list[NDArray[np.int32]] = []
        self.bad = BadRows()
        self.empty = 0
        self.rows = 0
        self.sum_low = self.sum_high = 0

    def add(self, rows: _Prepared) -> None:
        n = len(rows.time)
        self.bad.merge(rows.bad)
        self.empty += rows.empty
        self.user.append(rows.user, rows.digests["user"])
        self.query.append(rows.query, rows.digests["query"])
        self.url.append_given(rows.url, rows.digests["url"])
        for name in rows.extras:
            if name not in self.extras:
                self.extras[name] = _Column(numbers=[np.full(self.rows, -1, np.int32)])
        for name, column in self.extras.items():
            if name in rows.extras:
                column.append_given(rows.extras[name], rows.digests[f"extra {name}"])
            else:
                column.numbers.append(np.full(n, -1, np.int32))
        self.time.append(rows.time)
        self.rank.append(rows.rank)
        self.sum_low += int(rows.content[0].sum(dtype=np.uint64))
        self.sum_high += int(rows.content[1].sum(dtype=np.uint64))
        self.rows += n

    def build(self, engine: DuckDB, pool: ThreadPoolExecutor) -> QueryLog:
        content = b"".join((total % 2**64).to_bytes(8, "little") for total in (self.sum_low, self.sum_high, self.rows))
        columns = {"user": self.user, "query": self.query, "url": self.url, **self.extras}
        done = dict(zip(columns, pool.map(_Column.finish, columns.values()), strict=True))
        # Copying the texts into order is left to a thread while the rows are sorted.
        texts = {name: pool.submit(column.texts, done[name].ranks) for name, column in columns.items()}
        rows = {f"{name}_id": pa.chunked_array(done[name].ids) for name in ("user", "query", "url")}
        rows |= {f"{name} id": pa.chunked_array(done[name].ids) for name in self.extras}
        rows |= {"time": pa.chunked_array(self.time), "rank": pa.chunked_array(self.rank)}
        user_ranks = done["user"].ranks
        user_digest = np.empty(len(user_ranks), np.uint64)
        user_digest[user_ranks] = self.user.interner.digests()[0]
        self.time, self.rank = [], []
        self.user = self.query = self.url = _Column()
        del done, columns
        events, clicks = _events(engine, pool, pa.table(rows), list(self.extras))
        text = {name: copied.result() for name, copied in texts.items()}
        return QueryLog(
            engine=engine,
            events=events,
            clicks=clicks,
            query_text=text["query"],
            url_text=text["url"],
            user_text=text["user"],
            user_digest=user_digest,
            extras={name: text[name] for name in self.extras},
            tokens=_tokens(text["query"], pool),
            content=content,
            rows=self.rows,
            bad_rows=self.bad,
            empty_rows=self.empty,
        )


def _events(engine: DuckDB, pool: ThreadPoolExecutor, rows: pa.Table, extras: list[str]) -> tuple[pa.Table, pa.Table]:
    """Rows into events, ordered by user, time and query, and the clicks that hang on them."""
    from queryveil.kernels.events import find_events
    from queryveil.kernels.times import MISSING

    engine.read("rows", rows)
    names = ", ".join(f'"{name}"' for name in rows.column_names)
    keys = "".join(f', "{name} id"' for name in extras)
    table = engine.table(f"SELECT {names} FROM rows ORDER BY user_id, time, query_id, rank, url_id{keys}")
    engine.forget("rows")
    wanted = ("user_id", "query_id", "time", "rank", "url_id")
    events, clicks = find_events(*pool.map(lambda name: table[name].to_numpy(), wanted))
    event_columns = {
        "event_id": pa.array(np.arange(len(events.start), dtype=np.int32)),
        "user_id": pa.array(events.user),
        "query_id": pa.array(events.query),
        "time": _nullable(events.time, MISSING).view(pa.timestamp("us")),
    }
    for name in extras:
        # Rows of one event should agree; where they do not, the largest id wins, whatever the order of rows.
        event_columns[f"{name} id"] = pa.array(np.maximum.reduceat(table[f"{name} id"].to_numpy(), events.start))
    click_columns = {
        "event_id": pa.array(clicks.event),
        "user_id": pa.array(clicks.user),
        "query_id": pa.array(clicks.query),
        "rank": _nullable(clicks.rank, -1),
        "url_id": _nullable(clicks.url, -1),
    }
    return pa.table(event_columns), pa.table(click_columns)


def _nullable(values: NDArray[Any], missing: int) -> pa.Array:
    wrong = values == missing
    return pa.array(values, mask=wrong) if wrong.any() else pa.array(values)


def _tokens(queries: pa.Array, pool: ThreadPoolExecutor) -> Tokens:
    from queryveil.kernels.digest import digests

    def split(start: int) -> tuple[NDArray[np.int64], pa.Array, Digests]:
        per_query, text = words(queries.slice(start, _SLICE))
        return per_query, text, digests(*byte_spans(text))

    column = _Column()
    counts = [np.zeros(1, np.int64)]
    for per_query, text, found in pool.map(split, range(0, len(queries), _SLICE)):
        counts.append(per_query)
        column.append(text, found)
    ids, ranks = column.finish()
    word = np.concatenate(ids) if ids else np.empty(0, np.int32)
    return Tokens(np.cumsum(np.concatenate(counts)), word, column.texts(ranks))


def _refuse_bad(builder: _Builder, max_bad_rows: float, where: str) -> None:
    total = builder.rows + builder.empty + builder.bad.total
    kinds = ", ".join(
        f"{count:,} with {kind} (first at {builder.bad.first[kind]})"
        for kind, count in sorted(builder.bad.count.items(), key=lambda item: -item[1])
    )
    if builder.bad.total > max_bad_rows * total:
        raise QueryveilError(
            f"{builder.bad.total:,} of {total:,} rows are bad, over the limit of {max_bad_rows:.4g}: {kinds}; mend "
            "them, name another --format or --encoding, or raise --max-bad-rows."
        )
    if builder.rows == 0:
        why = f"all {builder.empty:,} queries are empty" if builder.empty else "there is no row behind the header"
        raise QueryveilError(f"There is no query in {where}: {why}.")


def _check_encoding(encoding: str) -> None:
    try:
        plain = "a\tb\n".encode(encoding) == b"a\tb\n"
    except (LookupError, UnicodeError):
        raise QueryveilError(f"There is no encoding called '{encoding}'; try utf-8, latin-1 or gb18030.") from None
    if not plain:
        raise QueryveilError(f"Files in {encoding} cannot be read line by line; convert them to UTF-8 first.")
