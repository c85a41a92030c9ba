"""From files on a cluster to a QueryLog: the same parsing, normal form and digests, where the files are.

An id is the first half of a text's digest. Two texts with the same half get ids side by side, in the order of their
whole digests; so ids have the order that they have on one machine, and no join is needed to give them out.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.engines import Batches, identifier
from queryveil.engines.hadoop import HadoopFolder
from queryveil.engines.spark import Spark, SparkRows, backquoted, ddl, telling, working
from queryveil.errors import QueryveilError
from queryveil.files.folders import Folder, is_address, local_folder
from queryveil.formats import CANONICAL, BadRows, ReadOptions, Rows, check_format, detect_head, line_format
from queryveil.formats.parquet import columns_of, rows_of
from queryveil.formats.source import BLOCK, Block, Lines, recode
from queryveil.log import NOTHING_LEFT, Facts, QueryLog, Scrub
from queryveil.log.ingest.content import NOTHING, Section, content, ordered, row_block, shift, signed, text_block
from queryveil.log.ingest.prepared import Prepared, prepare
from queryveil.text import words
from queryveil.text.arrays import byte_spans
from queryveil.text.columns import Digests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEAD = 200
"""How many lines of the first file tell the format and the columns."""

Parse = Callable[[Iterator[pa.RecordBatch]], Iterator[Rows]]
"""From what a task sees of the files to rows."""
Known = Mapping[tuple[int, int], int]
"""The ids of texts whose own id another text has too, by digest."""


class SparkLog(QueryLog):
    """A log on a cluster: the tables, and no arrays."""

    engine: Spark
    id_type = pa.int64()

    def texts(self, rows: str, schema: pa.Schema, queries: str = "queries") -> Batches:
        """Rows with their texts, joined where they are."""
        known = self.engine.columns(rows)
        columns = {name: f"r.{identifier(name)}" for name in known} | {"query": "q.query"}
        joins = f" JOIN {identifier(queries)} q ON q.query_id = r.query_id"
        if "url" in schema.names:
            columns["url"] = "u.url"
            joins += " LEFT JOIN urls u ON u.url_id = r.url_id"
        wanted = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in columns.items())
        return self.engine.rows(rows, f"SELECT {wanted} FROM {identifier(rows)} r{joins}", schema.names)  # noqa: S608  # names are escaped

    def write(self, folder: Folder, table: str, format: str, schema: pa.Schema, batches: Batches) -> None:
        """Write a released table to files in a folder of their own, in order of their names."""
        if format != "parquet":
            raise QueryveilError(f"On Spark a release is written as parquet, not as {format}.")
        if not isinstance(batches, SparkRows):
            raise QueryveilError("Spark writes only what it made; save this release without it.")
        with working():
            options = {"compression": "zstd", "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
            batches.frame().write.options(**options).parquet(folder.uri(table))
        number = 0
        for name in folder.files():
            if name.startswith(f"{table}/part-"):
                folder.rename(name, f"{table}/part-{number:05}.parquet")
                number += 1
            elif name.startswith(f"{table}/"):
                folder.delete(name)

    def folder(self, path: str | Path) -> Folder:
        """A folder on this machine, or where the cluster reaches."""
        return HadoopFolder(self.engine, str(path)) if is_address(path) else local_folder(path)

    def rewritten(self, texts: str, urls: str, scrub: Scrub) -> "SparkLog":
        """This log with other queries and fewer clicks; the tables are written into a database of their own."""
        from queryveil.kernels.times import MISSING

        old, new = self.engine, self.engine.beside()
        new.expect(self.facts.rows)
        known: dict[tuple[int, int], int] = {}
        wanted = f"SELECT query_id, text, same FROM ({texts}) AS texts WHERE text IS NOT NULL"  # noqa: S608  # parts are this package's own
        while True:
            old.map(wanted, partial(_renumbered, known=known), _REWRITTEN, "rewritten")
            new.keep(
                old.sql("SELECT new_id AS query_id, text AS query FROM rewritten GROUP BY new_id, text"), "queries"
            )
            clashes = _clashes(new, "queries", "query_id", "query", 2**64 - 1)
            if not clashes:
                break
            known.update(clashes)
        extras = [identifier(f"{name} id") for name in self.facts.extras]
        names = "".join(f", e.{name} AS {name}" for name in extras)
        moment = (
            f"CASE WHEN e.time IS NULL THEN CAST('{MISSING}' AS BIGINT) ELSE unix_micros(CAST(e.time AS TIMESTAMP)) END"
        )
        old.number(
            "SELECT e.event_id AS old_id, e.user_id AS user_id, r.new_id AS query_id, e.time AS time,"  # noqa: S608  # names are escaped
            f" {moment} AS moment, r.same AS same{names} FROM events e JOIN rewritten r ON r.query_id = e.query_id",
            ("user_id", "moment", "query_id", "old_id"),
            "renumbered",
            "n",
        )
        names = "".join(f", {name}" for name in extras)
        tables = {
            "events": f"SELECT n - 1 AS event_id, user_id, query_id, time{names} FROM renumbered",  # noqa: S608  # names are escaped
            "clicks": "SELECT r.n - 1 AS event_id, c.user_id AS user_id, r.query_id AS query_id, c.rank AS rank,"  # noqa: S608  # parts are this package's own
            " c.url_id AS url_id FROM clicks c JOIN renumbered r ON r.old_id = c.event_id"
            f" LEFT JOIN ({urls}) AS gone ON gone.url_id = c.url_id WHERE r.same AND gone.url_id IS NULL",
            "users": 'SELECT u.user_id AS user_id, u."user" AS "user", u.digest AS digest FROM users u JOIN'
            " (SELECT user_id FROM renumbered GROUP BY user_id) AS r ON r.user_id = u.user_id",
            "urls": f"SELECT u.url_id AS url_id, u.url AS url FROM urls u LEFT JOIN ({urls}) AS gone"  # noqa: S608  # parts are this package's own
            " ON gone.url_id = u.url_id WHERE gone.url_id IS NULL",
            **{f"extra {name}": f"SELECT id, value FROM {identifier(f'extra {name}')}" for name in self.facts.extras},  # noqa: S608  # names are escaped
        }
        for name, query in tables.items():
            new.keep(old.sql(query), name)
        old.drop("rewritten", "renumbered")
        _make_words(new, {}, 2**64 - 1)
        facts = _facts(new, self.facts)
        if facts.events == 0:
            new.close()
            raise QueryveilError(NOTHING_LEFT)
        (clicked,) = new.row("SELECT count(DISTINCT event_id) AS n FROM clicks")
        return SparkLog(new, replace(facts, rows=facts.events + facts.clicks - clicked, scrub=scrub))


_REWRITTEN = pa.schema([("query_id", pa.int64()), ("new_id", pa.int64()), ("text", pa.string()), ("same", pa.bool_())])


def _renumbered(batch: pa.RecordBatch, *, known: Known) -> pa.RecordBatch:
    found = word_ids(batch["text"], known, 2**64 - 1)
    return pa.RecordBatch.from_arrays(
        [batch["query_id"], pa.array(found), batch["text"], batch["same"]], schema=_REWRITTEN
    )


class _Source(NamedTuple):
    """Where rows come from, and how they are told."""

    frame: "DataFrame"
    parse: Parse
    extras: tuple[str, ...]
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
    id_mask: int = 2**64 - 1,
) -> SparkLog:
    """Read a log on a cluster.

    Args:
        source: A path or several, as Spark takes them, or a Spark DataFrame.
        engine: The cluster.
        format: The format, if it is not to be told by content.
        options: What the caller says about the files.
        refuse: Told rows, empty rows, bad rows and the place; refuses a log that is not good enough.
        id_mask: Which bits of a digest make an id; all but in tests.
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
        refuse(found.rows, found.empty, found.bad, rows.where)
        engine.expect(found.rows)
        clashes = {kind: dictionary(engine, kind, id_mask) for kind in kinds}
        if not any(clashes.values()):
            break
        for kind, more in clashes.items():
            known[kind].update(more)
    digested = digest_rows(engine, rows.extras)
    _make_events(engine, rows.extras)
    engine.drop("raw")
    _make_words(engine, known["word"], id_mask)
    known_facts = Facts(
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
    return SparkLog(engine, _facts(engine, known_facts))


def find_rows(source: Any, engine: Spark, format: str | None, options: ReadOptions) -> _Source:
    """Where the rows of a log come from: paths, or a frame."""
    if hasattr(source, "mapInArrow"):
        return _from_frame(source, options)
    return _from_paths(source, engine, format, options)


def read_rows(rows: _Source, engine: Spark, known: Mapping[str, Known], id_mask: int) -> _Found:
    """Make the table `raw` of prepared rows with ids, and tell what was found on the way."""
    with working():
        read = rows.frame.mapInArrow(_reading(rows, known, id_mask), ddl(_schema(rows.extras)))
    engine.keep(read, "raw")
    found = _Found()
    for note in engine.table("SELECT note FROM raw WHERE note IS NOT NULL")["note"].to_pylist():
        told = json.loads(note)
        found.rows += told["rows"]
        found.empty += told["empty"]
        found.bad.merge(BadRows(told["bad"], told["first"]))
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
        wanted = frame.select(*(backquoted(column) for column in dict.fromkeys(chosen.values())))
    return _Source(wanted, parse, tuple(name for name in chosen if name not in CANONICAL), where)


def _from_paths(source: Any, engine: Spark, format: str | None, options: ReadOptions) -> _Source:
    given = [str(path) for path in ([source] if isinstance(source, str | Path) else source)]
    # A file that is there is meant by its name, even if that looks like a pattern.
    paths = [_plain(path) if not is_address(path) and Path(path).exists() else path for path in given]
    where = given[0] if len(given) == 1 else "the files"
    if any(path.endswith(".xz") for path in paths):
        raise QueryveilError("Spark does not read xz files; compress the log with gzip, bzip2 or zstd instead.")
    with working(where):
        lines = engine.session.read.option("lineSep", "\n").text(paths)
        files = sorted(unquote(file) for file in lines.inputFiles())
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
    # Files of a table format must have the columns of the first, which all tasks are told.
    title = head.split(b"\n", 1)[0].strip(b"\r") if format in ("tsv", "csv") else None
    with working():
        frame = lines.selectExpr("value", "_metadata.file_path AS file", "_metadata.file_block_start AS start")
    return _Source(frame, partial(_stretches, lambda file: module.lines(file, head, options), title), extras, where)


def _head(engine: Spark, files: Sequence[str]) -> bytes:
    """The first lines of the first file that has any."""
    for file in files:
        found = engine.session.read.option("lineSep", "\n").text(_plain(file)).limit(HEAD).toArrow()["value"]
        head = b"\n".join(found.cast(pa.binary()).to_pylist())
        if head.strip():
            return head + b"\n"
    return b""


def _plain(path: str) -> str:
    """A path that means itself and is no pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def _stretches(
    lines_of: Callable[[str], Lines], title: bytes | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[Rows]:
    """Rows out of lines, stretch by stretch of a file.

    Args:
        lines_of: How the lines of a file become rows.
        title: The first line of every file, if it must have a certain one.
        batches: Lines with the file and the place in it where the task's stretch of it begins.
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
                    raise QueryveilError(f"{place[0]}:1 names other columns than the first file; read them apart.")
            name = place[0] if place[1] == 0 else f"{place[0]}, counted from byte {place[1]:,}"
            yield from _stretch(lines, values, name, line)
            line += len(values)


def _stretch(lines: Lines, values: pa.Array, file: str, line: int) -> Iterator[Rows]:
    if lines.quoted and bool(pc.any(pc.equal(pc.bit_wise_and(pc.count_substring(values, '"'), 1), 1)).as_py()):
        raise QueryveilError(
            f"A row of {file} goes over several lines, which Spark reads apart; read the log without Spark, or write "
            "it as Parquet first."
        )
    size = pc.binary_length(values).to_numpy()
    long = size > BLOCK
    overlong = 0
    if long.any():
        overlong = line + int(long.argmax())
        values = pc.if_else(pa.array(long), pa.scalar(b"", pa.large_binary()), values)
    # Each line with the end that Spark took away; the bytes of an array stand one behind the other.
    ended = pc.binary_join_element_wise(values, *(pa.scalar(part, pa.large_binary()) for part in (b"", b"\n")))
    data, _, ends = byte_spans(ended)
    yield lines.parse(Block(file, recode(data[: ends[-1]].data, lines.encoding), line, overlong))


def _schema(extras: Sequence[str]) -> pa.Schema:
    texts = [(name, pa.string()) for name in ("user", "query", "url", *(f"{name} text" for name in extras))]
    ids = [(name, pa.int64()) for name in ("user_id", "query_id", "url_id", *(f"{name} id" for name in extras))]
    return pa.schema([*ids, *texts, ("time", pa.int64()), ("rank", pa.int32()), ("note", pa.string())])


def _reading(
    source: _Source, known: Mapping[str, Known], id_mask: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does: parse, prepare, give ids; and note, in a row of its own, what else was found."""
    schema, parse, extras = _schema(source.extras), source.parse, source.extras

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in parse(batches):
            strange = next((name for name in rows.columns if name not in (*CANONICAL, *extras)), None)
            if strange is not None:
                raise QueryveilError(
                    f"{rows.file} has a column that the first lines of the log lack; write the log as "
                    "Parquet first, or read it without Spark."
                )
            prepared = prepare(rows)
            yield _numbered(prepared, schema, extras, known, id_mask)
            yield _note(prepared, schema)

    return telling(read)


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


def ids(found: Digests, known: Known, mask: int) -> NDArray[np.int64]:
    """The ids of texts with these digests: the first half, as a signed number in the same order."""
    low, high = found
    result = low & np.uint64(mask)
    for (a, b), number in known.items():
        result[(low == np.uint64(a)) & (high == np.uint64(b))] = np.uint64(number)
    return signed(result)


_DIGESTED = pa.schema([("part", pa.int64()), ("block", pa.int64()), ("digest", pa.string())])
_PARTS = 1 << 40
"""More than there are blocks on either side of 0."""


def digest_rows(engine: Spark, extras: Sequence[str]) -> bytes:
    """The digest of all rows, as on one machine: each block is digested where it is."""
    kinds = ["user", "query", "url", *(f"extra {name}" for name in sorted(extras))]
    counts = ", ".join(f"(SELECT count(*) FROM {identifier(_table(kind)[0])}) AS n{i}" for i, kind in enumerate(kinds))  # noqa: S608  # names are escaped
    sizes = engine.row(f"SELECT count(*) AS n, {counts} FROM raw WHERE note IS NULL")  # noqa: S608  # names are escaped

    def digest_texts(batch: pa.RecordBatch) -> bytes:
        ids = batch["id"].to_numpy()
        order = np.argsort(ids)
        return text_block(ids[order], batch["text"].take(pa.array(order)))

    listed = (
        f'SELECT CAST({i} AS BIGINT) AS part, shiftright("{key}", {shift(size)}) AS block, "{key}" AS id,'  # noqa: S608  # names are escaped
        f' "{text}" AS text FROM {identifier(name)}'
        for i, (size, (name, key, text)) in enumerate(zip(sizes[1:], map(_table, kinds), strict=True))
    )
    texts = _digested(engine, " UNION ALL ".join(listed), digest_texts, dict(zip(kinds, sizes[1:], strict=True)))
    names = [f"{name} id" for name in sorted(extras) if sizes[1 + kinds.index(f"extra {name}")]]
    columns = ["user_id", "time", "query_id", "rank", "url_id", *names]

    def digest(batch: pa.RecordBatch) -> bytes:
        found = [pc.fill_null(batch[name].cast(pa.int64()), NOTHING).to_numpy() for name in columns]
        return row_block(ordered(found))

    wanted = ", ".join(map(identifier, columns))
    rows = (
        f"SELECT CAST(0 AS BIGINT) AS part, shiftright(user_id, {shift(sizes[0])}) AS block, {wanted} FROM raw"  # noqa: S608  # names are escaped
        " WHERE note IS NULL"
    )
    return content(_digested(engine, rows, digest, {"rows": sizes[0]})[0], texts)


def _digested(
    engine: Spark, rows: str, digest: Callable[[pa.RecordBatch], bytes], sizes: Mapping[str, int]
) -> list[Section]:
    """Digest lists block by block.

    Args:
        engine: The cluster.
        rows: SQL of part, the number of the list, block, and what the function needs.
        digest: The digest of a block.
        sizes: What the lists are called, and how long they are.
    """

    def of_block(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [batch["part"][:1], batch["block"][:1], pa.array([digest(batch).hex()])]
        return pa.RecordBatch.from_arrays(columns, schema=_DIGESTED)

    keyed = f"SELECT *, part * {_PARTS} + block AS one FROM ({rows}) AS listed"  # noqa: S608  # names are escaped
    engine.map_groups(keyed, "one", of_block, _DIGESTED, "digested")
    found = engine.table("SELECT part, block, digest FROM digested ORDER BY part, block")
    engine.drop("digested")
    part, block, digests = found["part"].to_numpy(), found["block"].to_numpy(), found["digest"].to_pylist()
    edges = np.searchsorted(part, np.arange(len(sizes) + 1))
    return [
        Section(name, size, block[start:end], [bytes.fromhex(text) for text in digests[start:end]])
        for (name, size), (start, end) in zip(sizes.items(), pairwise(edges.tolist()), strict=True)
    ]


def _table(kind: str) -> tuple[str, str, str]:
    """The table of the texts of a kind, and its columns: the id and the text."""
    return {
        "user": ("users", "user_id", "user"),
        "query": ("queries", "query_id", "query"),
        "url": ("urls", "url_id", "url"),
    }.get(kind, (kind, "id", "value"))


def dictionary(engine: Spark, kind: str, mask: int) -> dict[tuple[int, int], int]:
    """Make the table of the texts of a kind; if some share an id, tell which ids they should have."""
    name, key, text = _table(kind)
    column, value = (key, text) if key != "id" else (f"{kind[6:]} id", f"{kind[6:]} text")
    column, value = identifier(column), identifier(value)
    engine.materialize(
        f'SELECT {column} AS "{key}", {value} AS "{text}" FROM raw WHERE {value} IS NOT NULL'  # noqa: S608  # names are escaped
        f" GROUP BY {column}, {value}",
        name,
    )
    if kind == "user":
        engine.map('SELECT user_id, "user" FROM users', _with_digest, _USERS, name)
    return _clashes(engine, name, key, text, mask)


_USERS = pa.schema([("user_id", pa.int64()), ("user", pa.string()), ("digest", pa.int64())])


def _with_digest(batch: pa.RecordBatch) -> pa.RecordBatch:
    from queryveil.kernels.digest import digests

    low = digests(*byte_spans(batch["user"]))[0].view(np.int64)
    return pa.RecordBatch.from_arrays([batch["user_id"], batch["user"], pa.array(low)], schema=_USERS)


def _clashes(engine: Spark, name: str, key: str, text: str, mask: int) -> dict[tuple[int, int], int]:
    """The ids of texts that share one, side by side in the order of their digests."""
    from queryveil.kernels.digest import digests

    table = identifier(name)
    found = engine.table(
        f'SELECT t."{key}" AS id, t."{text}" AS text FROM {table} t JOIN (SELECT "{key}" FROM {table}'  # noqa: S608  # names are escaped
        f' GROUP BY "{key}" HAVING count(*) > 1) AS twice ON twice."{key}" = t."{key}"'
    )
    if len(found) == 0:
        return {}
    low, high = digests(*byte_spans(found["text"].combine_chunks()))
    by_id: dict[int, list[tuple[int, int]]] = {}
    for number, a, b in zip(found["id"].to_pylist(), low.tolist(), high.tolist(), strict=True):
        by_id.setdefault(number, []).append((a, b))
    result = {}
    for number, clash in by_id.items():
        if len(set(clash)) < len(clash):
            raise QueryveilError(
                "Two texts of the log have the same digest, which does not happen unless it is forged."
            )
        base = (number & 2**64 - 1) ^ 2**63
        for place, both in enumerate(sorted(clash)):
            result[both] = base + place
    return result


def _make_events(engine: Spark, extras: Sequence[str]) -> None:
    """Number the events in the order of user, time and query, and hang the clicks on them."""
    from queryveil.kernels.times import MISSING

    missing = f"CAST('{MISSING}' AS BIGINT)"
    names = [identifier(f"{name} id") for name in extras]
    more = "".join(f", {name}" for name in names)
    # A row without a time is an event of its own; its place among its like does not depend on the order of rows.
    order = ", ".join(f"{key} NULLS FIRST" for key in ("rank", "url_id", *(f"nullif({name}, -1)" for name in names)))
    place = f"row_number() OVER (PARTITION BY user_id, query_id ORDER BY {order})"
    columns = f"user_id, time, query_id, rank, url_id{more}"
    rows = f"SELECT {columns}, CAST(0 AS BIGINT) AS place FROM raw WHERE note IS NULL AND time <> {missing}"  # noqa: S608  # names are escaped
    untimed = f"FROM raw WHERE note IS NULL AND time = {missing}"
    if engine.row(f"SELECT count(*) AS n {untimed}")[0]:
        rows += f" UNION ALL SELECT {columns}, CAST({place} AS BIGINT) AS place {untimed}"
    engine.number(rows, ("user_id", "time", "query_id", "place"), "numbered", "n")
    largest = "".join(f", coalesce(max(nullif({name}, -1)), -1) AS {name}" for name in names)
    engine.materialize(
        f"SELECT n - 1 AS event_id, user_id, query_id, CASE WHEN time = {missing} THEN NULL ELSE"  # noqa: S608  # names are escaped
        f" CAST(timestamp_micros(time) AS TIMESTAMP_NTZ) END AS time{largest} FROM numbered"
        " GROUP BY n, user_id, query_id, time",
        "events",
    )
    engine.materialize(
        "SELECT n - 1 AS event_id, user_id, query_id, rank, url_id FROM numbered"
        " WHERE url_id IS NOT NULL OR rank IS NOT NULL",
        "clicks",
    )
    engine.drop("numbered")


_TOK = pa.schema([("query_id", pa.int64()), ("position", pa.int32()), ("word_id", pa.int64())])
_WORDS = pa.schema([("word_id", pa.int64()), ("word", pa.string())])


def _make_words(engine: Spark, known: dict[tuple[int, int], int], id_mask: int) -> None:
    """Split every distinct query into words: `tok` and `words`."""
    queries = "SELECT query_id, query FROM queries"
    while True:
        engine.map(queries, partial(_distinct_words, known=known, mask=id_mask), _WORDS, "some words")
        engine.materialize('SELECT word_id, word FROM "some words" GROUP BY word_id, word', "words")
        engine.drop("some words")
        clashes = _clashes(engine, "words", "word_id", "word", id_mask)
        if not clashes:
            break
        known.update(clashes)
    engine.map(queries, partial(_tok, known=known, mask=id_mask), _TOK, "tok")


def word_ids(text: pa.Array, known: Known, mask: int) -> NDArray[np.int64]:
    """The ids of words."""
    from queryveil.kernels.digest import digests

    return ids(digests(*byte_spans(text)), known, mask)


def _tok(batch: pa.RecordBatch, *, known: Known, mask: int) -> pa.RecordBatch:
    per_query, text = words(batch["query"])
    query = np.repeat(batch["query_id"].to_numpy(), per_query)
    position = np.arange(len(query)) - np.repeat(np.cumsum(per_query) - per_query, per_query)
    return pa.RecordBatch.from_arrays(
        [pa.array(query), pa.array(position.astype(np.int32)), pa.array(word_ids(text, known, mask))], schema=_TOK
    )


def _distinct_words(batch: pa.RecordBatch, *, known: Known, mask: int) -> pa.RecordBatch:
    text = pc.unique(words(batch["query"]).text)
    return pa.RecordBatch.from_arrays([pa.array(word_ids(text, known, mask)), text.cast(pa.string())], schema=_WORDS)


def _facts(engine: Spark, known: Facts) -> Facts:
    """What is known of a log, with what the tables hold counted."""

    def count(table: str, what: str = "*") -> int:
        return int(engine.row(f"SELECT count({what}) AS n FROM {table}")[0])  # noqa: S608  # parts are this package's own

    return replace(
        known,
        events=count("events"),
        users=count("users"),
        queries=count("queries"),
        words=count("words"),
        clicks=count("clicks"),
        timed=count("events", "time"),
    )
