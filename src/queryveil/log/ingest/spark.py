"""From files on a cluster to a QueryLog: the same parsing, normal form and digests, where the files are.

An id is the first half of a text's digest. Two texts with the same half get ids side by side, in the order of their
whole digests; so ids have the order that they have on one machine, and no join is needed to assign them.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from queryveil.formats.detection import check_format, detect_head, line_format
from queryveil.formats.parquet import columns_of, rows_of
from queryveil.formats.rows import CANONICAL, BadRows, ReadOptions, Rows
from queryveil.formats.source import BLOCK, Block, Lines, is_beside, recode
from queryveil.log import LogStats
from queryveil.log.ingest.prepared import Prepared, prepare
from queryveil.log.ingest.spark_tables import Known, dictionary, digest_rows, ids, make_events, make_words, stats_of
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


@dataclass
class _Found:
    """What was found on reading, beside the rows."""

    rows: int = 0
    empty: int = 0
    bad: BadRows = field(default_factory=BadRows)


def read_spark(
    source: Any,
    engine: Spark,
    *,
    format: str | None,
    options: ReadOptions,
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
        refuse: Takes rows, empty rows, bad rows and the place; raises if the log has too many bad rows.
        languages: The languages of its queries, or `AUTO`; by default English.
        id_mask: Which bits of a digest make an id; all of them, except in tests.
    """
    rows = find_rows(source, engine, format, options)
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
        clashes = {kind: dictionary(engine, kind, id_mask) for kind in kinds}
        if not any(clashes.values()):
            break
        for kind, more in clashes.items():
            known[kind].update(more)
    digested = digest_rows(engine, rows.extras, rows.views)
    make_events(engine, rows.extras, rows.views)
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
        content=digested,
    )
    return SparkLog(engine, stats_of(engine, known_stats, rows.views), language)


def find_rows(source: Any, engine: Spark, format: str | None, options: ReadOptions) -> _Source:
    """Where the rows of a log come from: paths, or a frame."""
    if hasattr(source, "mapInArrow"):
        return _from_frame(source, options)
    return _from_paths(source, engine, format, options)


def read_rows(rows: _Source, engine: Spark, known: Mapping[str, Known], id_mask: int) -> _Found:
    """Make the table `raw` of prepared rows with ids, and return what was found on the way."""
    with working():
        read = rows.frame.mapInArrow(_reading(rows, known, id_mask), ddl(_schema(rows.extras, rows.views)))
    engine.keep(read, "raw")
    found = _Found()
    for note in engine.fetch("SELECT note FROM raw WHERE note IS NOT NULL")["note"].to_pylist():
        counted = json.loads(note)
        found.rows += counted["rows"]
        found.empty += counted["empty"]
        found.bad.merge(BadRows(counted["bad"], counted["first"]))
    return found


def _from_frame(frame: "DataFrame", options: ReadOptions, where: str = "the table") -> _Source:
    with working():
        schema = frame.limit(0).toArrow().schema
    chosen = columns_of(schema, options, where)

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
        seen = 0
        for batch in batches:
            yield rows_of(batch, chosen, where, seen + 1)
            seen += len(batch)

    with working():
        selected = frame.select(*(backquoted(column) for column in chosen.names))
    extras = tuple(name for name in chosen.columns if name not in CANONICAL)
    return _Source(selected, parse, extras, chosen.views, where)


def _from_paths(source: Any, engine: Spark, format: str | None, options: ReadOptions) -> _Source:
    given = [str(path) for path in ([source] if isinstance(source, str | Path) else source)]
    # A file that exists is taken by its name, even if that looks like a pattern.
    paths = [unglobbed(path) if not is_address(path) and Path(path).exists() else path for path in given]
    where = given[0] if len(given) == 1 else "the files"
    if any(path.endswith(".xz") for path in paths):
        raise QueryveilError("Spark does not read xz files; compress the log with gzip, bzip2 or zstd instead.")
    with working(where):
        lines = engine.session.read.option("lineSep", "\n").text(paths)
        files = sorted(unquote(file) for file in lines.inputFiles())
        logs = [file for file in files if not is_beside(Path(file).name) or file.endswith(tuple(given))]
        if 0 < len(logs) < len(files):
            files, paths = logs, [unglobbed(file) for file in logs]
            lines = engine.session.read.option("lineSep", "\n").text(paths)
        head = _head(engine, files)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise QueryveilError(f"The file {files[0]} is UTF-16; convert it to UTF-8 first.")
    format = format or detect_head(files[0] if files else where, head, options)
    check_format(format, options)
    if format == "parquet":
        with working(where):
            return _from_frame(engine.session.read.option("mergeSchema", "true").parquet(*paths), options, where)
    module = line_format(format)
    if module is None:
        raise QueryveilError(
            f"The {format} format cannot be read on Spark; read it without, or write it as Parquet first."
        )
    first = module.lines(files[0], head, options)
    sample = first.parse(Block(files[0], recode(head, first.encoding), 1))
    extras = tuple(name for name in sample.columns if name not in CANONICAL)
    # Files of a table format must have the columns of the first, which all tasks get.
    title = head.split(b"\n", 1)[0].strip(b"\r") if format in ("tsv", "csv") else None
    with working():
        frame = lines.selectExpr("value", "_metadata.file_path AS file", "_metadata.file_block_start AS start")
    parse = partial(_stretches, lambda file: module.lines(file, head, options), title)
    return _Source(frame, parse, extras, "clicked" in sample.columns, where)


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
            file_name = unquote(batch["file"][begin].as_py()).removeprefix("file://").removeprefix("file:")
            place = (file_name, batch["start"][begin].as_py())
            values = batch["value"].slice(begin, end - begin).cast(pa.large_binary())
            if place != here:
                here, line, lines = place, 1, lines_of(place[0])
                if title is not None and place[1] == 0 and values[0].as_py().strip(b"\r") not in (title, b""):
                    raise QueryveilError(f"{place[0]}:1 has other columns than the first file; read them separately.")
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
    parse, extras, views = source.parse, source.extras, source.views
    schema = _schema(extras, views)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in parse(batches):
            strange = next((name for name in rows.columns if name not in (*CANONICAL, *extras)), None)
            if strange is not None or ("clicked" in rows.columns and not views):
                raise QueryveilError(
                    f"{rows.file} has a column that the first lines of the log lack; write the log as "
                    "Parquet first, or read it without Spark."
                )
            prepared = prepare(rows)
            check_same(views, prepared.clicked is None and prepared.has_results)
            yield _numbered(prepared, schema, extras, known, id_mask)
            yield _note(prepared, schema)

    return reporting(read)


def _numbered(
    rows: Prepared, schema: pa.Schema, extras: Sequence[str], known: Mapping[str, Known], id_mask: int
) -> pa.RecordBatch:
    n = len(rows.time)
    columns: dict[str, Any] = {"user": rows.user, "query": rows.query, "time": rows.time}
    columns["user_id"] = ids(rows.digests["user"], known["user"], id_mask)
    columns["query_id"] = ids(rows.digests["query"], known["query"], id_mask)
    given = pc.not_equal(rows.url, "").to_numpy(zero_copy_only=False)
    columns["url_id"] = pa.array(ids(rows.digests["url"], known["url"], id_mask), mask=~given)
    columns["url"] = pc.if_else(pa.array(given), rows.url, None)
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
        columns[f"{name} text"] = pc.if_else(pa.array(given), rows.extras[name], None)
    columns["note"] = pa.nulls(n, pa.string())
    arrays = [pa.array(columns[kind.name]).cast(kind.type) for kind in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _note(rows: Prepared, schema: pa.Schema) -> pa.RecordBatch:
    note = {
        "rows": len(rows.time),
        "empty": rows.empty,
        "bad": rows.bad.count,
        "first": rows.bad.first,
    }
    columns = [pa.array([json.dumps(note) if kind.name == "note" else None], kind.type) for kind in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
