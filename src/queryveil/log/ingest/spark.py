"""From files on a cluster to a QueryLog: the same parsing, normal form and digests, where the files are.

An id is the first half of a text's digest. Two texts with the same half get ids side by side, in the order of their
whole digests; so ids have the order that they have on one machine, and no join is needed to assign them.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.engines.spark import Spark, unglobbed
from queryveil.engines.spark_errors import working
from queryveil.engines.spark_tasks import backquoted, ddl, reporting
from queryveil.errors import QueryveilError
from queryveil.files.folders import is_address
from queryveil.formats.detection import (
    agreed,
    agreed_columns,
    agreed_format,
    check_format,
    detect_head,
    line_format,
    timed,
    with_folders,
)
from queryveil.formats.input import Input, ReadAs
from queryveil.formats.parquet import columns_of, rows_of
from queryveil.formats.rows import CANONICAL, BadRows, ReadOptions, Rows
from queryveil.formats.source import BLOCK, Block, Lines, is_beside, is_utf8, is_wide, marked, partitions, recode, roots
from queryveil.log import LogStats
from queryveil.log.ingest.content import content
from queryveil.log.ingest.prepared import Prepared, prepare
from queryveil.log.ingest.spark_tables import Known, dictionaries, ids, make_events, make_words, stats_of
from queryveil.log.ingest.spark_views import drop_bad_views
from queryveil.log.ingest.views import check_same
from queryveil.log.spark import SparkLog
from queryveil.text.arrays import byte_spans
from queryveil.text.detection import SAMPLE, resolved

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEAD = 200
"""From how many lines of the first file the format and the columns are detected."""

Parse = Callable[[Iterator[pa.RecordBatch]], Iterator[Rows]]
"""From what a task sees of the files to rows."""


class _Source(NamedTuple):
    """Where rows come from, and how they are read."""

    frame: "DataFrame"
    parse: Parse
    extras: tuple[str, ...]
    views: bool
    """Whether rows are results shown, instead of clicks."""
    where: str
    read_as: ReadAs


@dataclass
class _Found:
    """What was found on reading, beside the rows."""

    rows: int = 0
    untimed: int = 0
    empty: int = 0
    bad: BadRows = field(default_factory=BadRows)


def read_spark(
    source: Any,
    engine: Spark,
    *,
    format: str | None,
    options: ReadOptions,
    stated: Input | None = None,
    refuse: Callable[[int, int, BadRows, str], None],
    languages: Sequence[str] = (),
    id_mask: int = 2**64 - 1,
) -> SparkLog:
    """Read a log on a cluster.

    Args:
        source: A path or several, as Spark takes them, or a Spark DataFrame.
        engine: The cluster.
        format: The format; detected automatically by default.
        options: What the caller says about the files.
        stated: What a manifest says about them.
        refuse: Takes rows, empty rows, bad rows and the place; raises if the log has too many bad rows.
        languages: The languages of its queries, or `AUTO`; by default English.
        id_mask: Which bits of a digest make an id; all of them, except in tests.
    """
    rows = find_rows(source, engine, format, options, stated)
    odd = next((name for name in rows.extras if "`" in name or "." in name), None)
    if odd is not None:
        raise QueryveilError(
            f"A column of {rows.where} has a name with a dot or a backquote, which Spark would misread; rename it."
        )
    kinds = ["user", "query", "url", *(f"extra {name}" for name in rows.extras)]
    known: dict[str, dict[tuple[int, int], int]] = {kind: {} for kind in (*kinds, "word")}
    while True:
        found = read_rows(rows, engine, known, id_mask)
        if rows.views:
            found.bad.merge(drop_bad_views(engine))
            found.rows = engine.row("SELECT count(*) AS n FROM raw WHERE note IS NULL")[0]
        refuse(found.rows, found.empty, found.bad, rows.where)
        engine.expect(found.rows)
        texts, clashes = dictionaries(engine, kinds, id_mask)
        if not clashes:
            break
        for kind, more in clashes.items():
            known[kind].update(more)
    digested = make_events(engine, rows.extras, found.rows, texts, found.untimed > 0, rows.views)
    engine.drop("raw")
    # In the order of ids, which is the same on one machine.
    sample = f"SELECT query FROM queries ORDER BY query_id LIMIT {SAMPLE}"  # noqa: S608  # a number of this package
    language = resolved(languages, lambda: engine.fetch(sample)["query"].combine_chunks())
    make_words(engine, known["word"], id_mask, language)
    known_stats = LogStats(
        rows=found.rows,
        events=0,
        users=0,
        queries=0,
        words=0,
        clicks=0,
        timed=0,
        extras=rows.extras,
        empty_rows=found.empty,
        bad_rows=found.bad,
        content=content(digested, texts),
        read_as=rows.read_as,
    )
    return SparkLog(engine, stats_of(engine, known_stats, rows.views), language)


def find_rows(
    source: Any, engine: Spark, format: str | None, options: ReadOptions, stated: Input | None = None
) -> _Source:
    """Where the rows of a log come from: paths, or a frame."""
    if hasattr(source, "mapInArrow"):
        return _from_frame(source, options, stated)
    return _from_paths(source, engine, format, options, stated)


def read_rows(rows: _Source, engine: Spark, known: Mapping[str, Known], id_mask: int) -> _Found:
    """Make the table `raw` of prepared rows with ids, and return what was found on the way."""
    with working():
        read = rows.frame.mapInArrow(_reading(rows, known, id_mask), ddl(_schema(rows.extras, rows.views)))
    engine.keep(read, "raw")
    found = _Found()
    for note in engine.fetch("SELECT note FROM raw WHERE note IS NOT NULL")["note"].to_pylist():
        counted = json.loads(note)
        found.rows += counted["rows"]
        found.untimed += counted["untimed"]
        found.empty += counted["empty"]
        found.bad.merge(BadRows(counted["bad"], counted["first"]))
    return found


def _from_frame(
    frame: "DataFrame",
    options: ReadOptions,
    stated: Input | None,
    where: str = "the table",
    of_folders: Collection[str] = (),
) -> _Source:
    with working():
        schema = frame.limit(0).toArrow().schema
    names = [name for name in schema.names if name not in of_folders]
    options, read_as = agreed_columns(names, options, stated, [name for name in schema.names if name in of_folders])
    if of_folders:  # folders can be the time, and nothing else by their names
        options = replace(options, columns=read_as.columns)
    chosen = columns_of(schema, options, where)
    time = chosen.columns.get("time")
    if time is not None and pa.types.is_string(schema.field(time).type):
        with working():
            times = frame.select(backquoted(time)).limit(HEAD).toArrow()[time].combine_chunks()
        read_as = timed(read_as, times, where, stated)

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
        seen = 0
        for batch in batches:
            yield rows_of(batch, chosen, where, seen + 1)
            seen += len(batch)

    with working():
        selected = frame.select(*(backquoted(column) for column in chosen.names))
    extras = tuple(name for name in chosen.columns if name not in CANONICAL)
    return _Source(selected, parse, extras, chosen.views, where, read_as)


def _from_paths(source: Any, engine: Spark, format: str | None, options: ReadOptions, stated: Input | None) -> _Source:
    given = [str(path) for path in ([source] if isinstance(source, str | Path) else source)]
    # A file that exists is taken by its name, even if that looks like a pattern.
    paths = [unglobbed(path) if not is_address(path) and Path(path).exists() else path for path in given]
    where = given[0] if len(given) == 1 else "the files"
    if any(path.endswith(".xz") for path in paths):
        raise QueryveilError("Spark does not read xz files; compress the log with gzip, bzip2 or zstd instead.")
    with working(where):
        lines = engine.session.read.option("lineSep", "\n").text(paths)
        files = sorted(unquote(file) for file in lines.inputFiles())
        _refuse_lake(engine, paths, files, where)
        logs = [file for file in files if not is_beside(Path(file).name) or file.endswith(tuple(given))]
        if 0 < len(logs) < len(files):
            files, paths = logs, [unglobbed(file) for file in logs]
            lines = engine.session.read.option("lineSep", "\n").text(paths)
        head = _head(engine, files)
    encoding = None
    if options.encoding is None and stated is not None and marked(head) is None and is_utf8(head) is False:
        encoding = stated.encoding
        options = replace(options, encoding=encoding)
    if is_wide(options.encoding or marked(head)):
        raise QueryveilError(
            f"The file {files[0]} is UTF-16 or UTF-32, which Spark cannot cut into lines; convert it to UTF-8."
        )
    first_line = head.split(b"\n", 1)[0].strip(b"\r")
    head = bytes(recode(head, options.encoding or "utf-8")).removeprefix(BOM_UTF8)
    named = format is not None
    format = format or agreed_format(detect_head(files[0] if files else where, head, options), stated)
    check_format(format, options)
    below = roots([path if is_address(path) else Path(path).absolute() for path in given])
    folders = [partitions(_plain(file), below) for file in files]
    if format == "parquet":
        with working(where), _texts(engine):
            frame = engine.session.read.option("mergeSchema", "true").parquet(*paths)
        made = _from_frame(frame, options, stated, where, {name for each in folders for name in each})
        return made._replace(read_as=replace(made.read_as, format=format, named=named))
    module = line_format(format)
    if module is None:
        raise QueryveilError(
            f"The {format} format cannot be read on Spark; read it without, or write it as Parquet first."
        )
    chosen, read_as = agreed(format, files[0], head, options, stated, folders)
    if encoding is not None:
        read_as = replace(read_as, stated=(*read_as.stated, "encoding"))
    first = module.lines(files[0], head, chosen)
    text = head if options.encoding is not None else recode(head, first.encoding)
    sample = with_folders(first.parse(Block(files[0], text, 1)), folders[0], read_as.columns)
    read_as = timed(replace(read_as, named=named), sample.columns.get("time"), where, stated)
    extras = tuple(name for name in sample.columns if name not in CANONICAL)
    # Files of a table format must have the columns of the first, which all tasks get.
    title = first_line if format in ("tsv", "csv") else None
    with working():
        frame = lines.selectExpr("value", "_metadata.file_path AS file", "_metadata.file_block_start AS start")
    read = partial(_stretches, lambda file: module.lines(file, head, chosen), title)

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
        for rows in read(batches):
            yield with_folders(rows, partitions(rows.file, below), read_as.columns)

    return _Source(frame, parse, extras, "clicked" in sample.columns, where, read_as)


def _refuse_lake(engine: Spark, paths: Sequence[str], files: Sequence[str], where: str) -> None:
    """Refuse a table of a data lake: its folder also has the files of rows that were deleted."""
    single = {_plain(file) for file in files}
    kind = None
    for path in (path.rstrip("/") for path in paths if path not in single):
        for name, inside in {"Delta": "_delta_log/*.json", "Iceberg": "metadata/*.metadata.json"}.items():
            with suppress(Exception):  # there is no such file
                if engine.session.read.text(f"{path}/{inside}").inputFiles():
                    kind = name
    if kind is not None:
        raise QueryveilError(
            f"{where} is a table of {kind}, and its folder also has rows that were deleted; give read_log the frame"
            " that Spark's own reader makes of it, or read it without Spark."
        )


@contextmanager
def _texts(engine: Spark) -> Iterator[None]:
    """While this is open, the folders of a partitioned log are read as text, as without Spark."""
    conf, name = engine.session.conf, "spark.sql.sources.partitionColumnTypeInference.enabled"
    before = conf.get(name)
    conf.set(name, "false")
    try:
        yield
    finally:
        conf.set(name, before or "true")


def _plain(file: str) -> str:
    """The path of a file, without the scheme of this machine."""
    return file.removeprefix("file://").removeprefix("file:")


def _head(engine: Spark, files: Sequence[str]) -> bytes:
    """The first lines of the first file that has any."""
    for file in files:
        found = engine.session.read.option("lineSep", "\n").text(unglobbed(file)).limit(HEAD).toArrow()["value"]
        head = b"\n".join(found.cast(pa.binary()).to_pylist())
        if head.strip():
            return head + b"\n"
    return b""


def _stretches(
    lines_of: Callable[[str], Lines], title: bytes | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[Rows]:
    """Rows from lines, for one part of a file after another.

    Args:
        lines_of: How the lines of a file become rows.
        title: The first line of every file, if it must have a certain one.
        batches: Lines with the file and the position in it where the task's part begins.
    """
    here: tuple[str, int] | None = None
    line = 0
    for batch in batches:
        file, start = (batch[name].dictionary_encode() for name in ("file", "start"))
        codes = file.indices.to_numpy() * np.int64(len(start.dictionary)) + start.indices.to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(batch)]
        for begin, end in pairwise(edges):
            if begin == end:
                continue
            place = (_plain(unquote(batch["file"][begin].as_py())), batch["start"][begin].as_py())
            values = batch["value"].slice(begin, end - begin).cast(pa.large_binary())
            if place != here:
                here, line, lines = place, 1, lines_of(place[0])
                if title is not None and place[1] == 0 and values[0].as_py().strip(b"\r") not in (title, b""):
                    raise QueryveilError(f"{place[0]}:1 has other columns than the first file; read them separately.")
                if place[1] == 0 and values[0].as_py().startswith(BOM_UTF8):
                    bare = pa.array([values[0].as_py().removeprefix(BOM_UTF8)], values.type)
                    values = pa.concat_arrays([bare, values[1:]])
            name = place[0] if place[1] == 0 else f"{place[0]}, counted from byte {place[1]:,}"
            yield from _stretch(lines, values, name, line)
            line += len(values)


def _stretch(lines: Lines, values: pa.Array, file: str, line: int) -> Iterator[Rows]:
    if lines.quoted and bool(pc.any(pc.equal(pc.bit_wise_and(pc.count_substring(values, '"'), 1), 1)).as_py()):
        raise QueryveilError(
            f"A row of {file} spans several lines, which Spark reads separately; read the log without Spark, or write "
            "it as Parquet first."
        )
    size = pc.binary_length(values).to_numpy()
    long = size > BLOCK
    overlong = 0
    if long.any():
        overlong = line + int(long.argmax())
        values = pc.if_else(pa.array(long), pa.scalar(b"", pa.large_binary()), values)
    # Each line with the newline that Spark removed; the bytes of an array follow each other.
    ended = pc.binary_join_element_wise(values, *(pa.scalar(part, pa.large_binary()) for part in (b"", b"\n")))
    data, _, ends = byte_spans(ended)
    yield lines.parse(Block(file, recode(data[: ends[-1]].data, lines.encoding), line, overlong))


def _schema(extras: Sequence[str], views: bool) -> pa.Schema:
    texts = [(name, pa.string()) for name in ("user", "query", "url", *(f"{name} text" for name in extras))]
    ids = [(name, pa.int64()) for name in ("user_id", "query_id", "url_id", *(f"{name} id" for name in extras))]
    # What is wrong with the results of an event is seen later, so their places are kept.
    more = [("clicked", pa.int8()), ("file", pa.string()), ("line", pa.int64())] if views else []
    return pa.schema([*ids, *texts, ("time", pa.int64()), ("rank", pa.int32()), *more, ("note", pa.string())])


def _reading(
    source: _Source, known: Mapping[str, Known], id_mask: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does: parse, prepare, assign ids; and report, in a row of its own, what else was found."""
    parse, extras, views, time_format = source.parse, source.extras, source.views, source.read_as.time_format
    schema = _schema(extras, views)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in parse(batches):
            strange = next((name for name in rows.columns if name not in (*CANONICAL, *extras)), None)
            if strange is not None or ("clicked" in rows.columns and not views):
                raise QueryveilError(
                    f"{rows.file} has a column that the first lines of the log lack; write the log as "
                    "Parquet first, or read it without Spark."
                )
            prepared = prepare(rows, time_format)
            check_same(views, prepared.clicked is None and prepared.has_results)
            yield _numbered(prepared, schema, extras, known, id_mask)
            yield _note(prepared, schema)

    return reporting(read)


def _numbered(
    rows: Prepared, schema: pa.Schema, extras: Sequence[str], known: Mapping[str, Known], id_mask: int
) -> pa.RecordBatch:
    n = len(rows.time)
    # Bad results are left out later, with their texts, so every row of a log of views keeps its own.
    texts = _same if "clicked" in schema.names else _each_once
    columns: dict[str, Any] = {"user": texts(rows.user), "query": texts(rows.query), "time": rows.time}
    columns["user_id"] = ids(rows.digests["user"], known["user"], id_mask)
    columns["query_id"] = ids(rows.digests["query"], known["query"], id_mask)
    given = pc.not_equal(rows.url, "").to_numpy(zero_copy_only=False)
    columns["url_id"] = pa.array(ids(rows.digests["url"], known["url"], id_mask), mask=~given)
    columns["url"] = texts(pc.if_else(pa.array(given), rows.url, None))
    columns["rank"] = pa.array(rows.rank, mask=rows.rank < 0)
    if "clicked" in schema.names:
        columns["clicked"] = np.zeros(n, np.int8) if rows.clicked is None else rows.clicked
        columns["file"], columns["line"] = pa.repeat(rows.file, n), rows.line
    for name in extras:
        kind = f"extra {name}"
        if name not in rows.extras:
            columns[f"{name} id"], columns[f"{name} text"] = np.full(n, -1, np.int64), pa.nulls(n, pa.string())
            continue
        given = pc.not_equal(rows.extras[name], "").to_numpy(zero_copy_only=False)
        columns[f"{name} id"] = np.where(given, ids(rows.digests[kind], known[kind], id_mask), -1)
        columns[f"{name} text"] = texts(pc.if_else(pa.array(given), rows.extras[name], None))
    columns["note"] = pa.nulls(n, pa.string())
    arrays = [pa.array(columns[kind.name]).cast(kind.type) for kind in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _same(texts: pa.Array) -> pa.Array:
    return texts


def _each_once(texts: pa.Array) -> pa.Array:
    """Each text where it occurs first, and nothing where it occurs again: its id is enough there."""
    number = pc.fill_null(texts.dictionary_encode().indices, -1).to_numpy()
    before = np.maximum.accumulate(np.append(-1, number))[:-1]
    return pc.if_else(pa.array(number > before), texts, None)


def _note(rows: Prepared, schema: pa.Schema) -> pa.RecordBatch:
    from queryveil.kernels.times import MISSING

    note = {
        "rows": len(rows.time),
        "untimed": int((rows.time == MISSING).sum()),
        "empty": rows.empty,
        "bad": rows.bad.count,
        "first": rows.bad.first,
    }
    columns = [pa.array([json.dumps(note) if kind.name == "note" else None], kind.type) for kind in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
