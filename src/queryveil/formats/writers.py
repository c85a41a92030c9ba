"""Released tables as files: Parquet, AOL's TSV, CSV. The same table gives the same bytes.

A spreadsheet treats a CSV field that begins with `=` or a similar character as a formula, and runs it. So such a text
gets an apostrophe in front, and one more if it already had some. Reading a release removes it, so no text is lost.
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from queryveil.engines import Batches, InFiles
from queryveil.errors import QueryveilError, option
from queryveil.formats.aol import HEADER
from queryveil.text.arrays import byte_spans

SUFFIXES = {"parquet": ".parquet", "aol": ".tsv", "csv": ".csv"}
_AOL = {"user": pa.int64(), "query": pa.string(), "time": pa.timestamp("us"), "rank": pa.int32(), "url": pa.string()}
_NUMBERS = ("session", "event", "users", "node", "count", "total", "events", "views", "clicks")
_TYPES = _AOL | dict.fromkeys(_NUMBERS, pa.int64()) | {"clicked": pa.bool_(), "mean_rank": pa.float64()}
_ROW_GROUP = 1_000_000
_FORMULA = r"'*[=+@\t\r\n\x{FF1D}\x{FF0B}\x{FF20}\x{FF0D}-]"
"""How a text begins that a spreadsheet treats as a formula, including full-width characters."""

T = TypeVar("T", pa.RecordBatch, pa.Table)


def schema_in(format: str, schema: pa.Schema) -> pa.Schema:
    """The columns that a table has once it is written in a format."""
    if format != "aol":
        return schema
    if "user" not in schema.names:
        raise QueryveilError(
            "The aol format has a user in every row, and this release has no user ids; use parquet or csv, or link the"
            f" events of a user with {option('link', 'user')}."
        )
    extra = [name for name in schema.names if name not in (*_AOL, "event")]
    if extra:
        raise QueryveilError(f"The aol format has no place for the column '{extra[0]}'; use parquet or csv.")
    return pa.schema(list(_AOL.items()))


def type_of(name: str) -> pa.DataType:
    """The type of a column of a release."""
    return _TYPES.get(name, pa.string())


def is_typed(field: pa.Field) -> bool:
    """Whether a column of a release has the type it should have."""
    return bool(field.type == type_of(field.name))


def escaped(batch: T) -> T:
    """The rows with an apostrophe before every text that a spreadsheet would treat as a formula."""
    return _replaced(batch, f"^({_FORMULA})", r"'\1")


def unescaped(batch: T) -> T:
    """The rows before `escaped`."""
    return _replaced(batch, f"^'({_FORMULA})", r"\1")


def _replaced(batch: T, pattern: str, by: str) -> T:
    columns = [
        pc.replace_substring_regex(column, pattern, by) if pa.types.is_string(column.type) else column
        for column in batch.columns
    ]
    return type(batch).from_arrays(columns, schema=batch.schema)


def write(path: Path, format: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a table."""
    with path.open("wb") as file:
        _write(file, format, schema, batches)


def sha256(format: str, schema: pa.Schema, batches: Batches) -> str:
    """The SHA-256 of the file that a table is written to, without writing it."""
    found = _Digest()
    _write(found, format, schema, (batch.cast(schema) for batch in batches()))
    return found.hash.hexdigest()


class _Digest(io.RawIOBase):
    """A file that keeps only the SHA-256 of what is written to it."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.hash.update(data)
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at


def _write(file: Any, format: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    if format == "parquet":
        with pq.ParquetWriter(file, schema, compression="zstd") as parquet:
            for table in _regrouped(schema, batches):
                # In one piece, because pages are cut where batches end.
                parquet.write_table(table.combine_chunks(), _ROW_GROUP)
    elif format == "csv":
        options = pacsv.WriteOptions(quoting_style="needed")
        with pacsv.CSVWriter(file, schema, write_options=options) as writer:
            for batch in batches:
                writer.write_batch(escaped(batch))
    else:
        file.write(("\t".join(HEADER) + "\n").encode())
        for batch in batches:
            file.write(_aol_lines(batch))


def open_table(path: Path) -> tuple[pa.Schema, InFiles]:
    """The columns of a released table, a file or a folder of files, and a way to read its batches."""
    files = sorted(path.glob("part-*")) if path.is_dir() else [path]
    names = tuple(f"file://{file.absolute()}" for file in files)
    if path.suffix == ".parquet":
        first = pq.read_schema(files[0])
        if any(not pq.read_schema(file).equals(first, check_metadata=True) for file in files[1:]):
            raise ValueError("the parts of a table have different columns")
        return pq.read_schema(files[0]).remove_metadata(), InFiles(names, lambda: _parquet_batches(files), None)
    with files[0].open("rb") as file:
        title = file.readline()
    aol = path.suffix == ".tsv"
    types = _AOL if aol else {name: type_of(name) for name in next(csv.reader([title.decode("utf-8")]))}
    parse = partial(_parse_lines, title=title.rstrip(b"\n"), types=types, aol=aol)
    batches = chain.from_iterable
    return pa.schema(list(types.items())), InFiles(
        names, lambda: batches(_text_batches(file, types, aol=aol) for file in files), parse
    )


def _parquet_batches(files: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    for path in files:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches()


def _text_batches(
    source: Path | pa.NativeFile, types: dict[str, pa.DataType], *, aol: bool, titled: bool = True
) -> Iterator[pa.RecordBatch]:
    # A missing value is an empty field; in CSV an empty text is quoted, so the two differ.
    convert = pacsv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    parse = pacsv.ParseOptions(delimiter="\t", quote_char=False) if aol else pacsv.ParseOptions()
    read = pacsv.ReadOptions(column_names=list(types), skip_rows=int(titled))
    with pacsv.open_csv(source, read_options=read, parse_options=parse, convert_options=convert) as reader:
        yield from reader if aol else map(unescaped, reader)


def _parse_lines(lines: pa.RecordBatch, *, title: bytes, types: dict[str, pa.DataType], aol: bool) -> pa.RecordBatch:
    """Rows from lines, without the header of every file."""
    values = lines["value"].cast(pa.large_binary())
    values = values.filter(pc.not_equal(values, pa.scalar(title, pa.large_binary())))
    schema = pa.schema(list(types.items()))
    data = b"\n".join(values.to_pylist())
    rows = list(_text_batches(pa.BufferReader(data), types, aol=aol, titled=False)) if data else []
    table = pa.Table.from_batches(rows, schema).combine_chunks()
    return table.to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], schema)


def _regrouped(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    # Row groups of one size, independent of the batches.
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += len(batch)
        while size >= _ROW_GROUP:
            table = pa.Table.from_batches(held, schema)
            yield table.slice(0, _ROW_GROUP)
            held = table.slice(_ROW_GROUP).to_batches()
            size -= _ROW_GROUP
    if held:
        yield pa.Table.from_batches(held, schema)


def _aol_lines(batch: pa.RecordBatch) -> memoryview:
    def text(name: str) -> pa.Array:
        if name not in batch.schema.names:
            return pa.array([""] * len(batch), pa.large_string())
        values = batch[name]
        if pa.types.is_timestamp(values.type):
            values = pc.strftime(values.cast(pa.timestamp("s")), format="%Y-%m-%d %H:%M:%S")
        return pc.fill_null(values.cast(pa.large_string()), "")

    fields = [text(name) for name in _AOL]
    fields[-1] = pc.binary_join_element_wise(
        fields[-1], pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string())
    )
    lines = pc.binary_join_element_wise(*fields, pa.scalar("\t", pa.large_string()))
    # All lines follow each other in the array's bytes.
    data, starts, ends = byte_spans(lines)
    return data[: ends[-1]].data if len(starts) else memoryview(b"")
