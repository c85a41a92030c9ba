"""Rows of delimited text, for all formats that are rows of fields."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from queryveil.errors import QueryveilError, option
from queryveil.formats.rows import BadRows, Rows
from queryveil.formats.source import BLOCK, Block, Lines
from queryveil.text.arrays import from_offsets

if TYPE_CHECKING:
    from queryveil.kernels.split import Fields

SEPARATOR = re.compile(rb'"?sep=(.)"?\r?\n', re.IGNORECASE)
"""A first line with the delimiter, for Excel."""


@dataclass(frozen=True)
class Layout:
    """How a delimited format arranges its fields."""

    columns: tuple[str, ...]
    """Names in the order of the fields; an empty name is a field that is not used."""
    counts: Collection[int]
    """How many fields a good row may have; missing ones at the end are empty."""
    delimiter: str = "\t"
    quoted: bool = False
    header: tuple[str, ...] = ()
    """A row whose first fields are these (without case) is a header, anywhere in the file."""
    finish: Callable[[dict[str, pa.Array]], dict[str, pa.Array]] = lambda columns: columns


def mostly(row: re.Pattern[bytes], head: bytes) -> bool:
    """Whether most of the first lines of a file have the form of a row."""
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    return sum(bool(row.fullmatch(line)) for line in lines) > 0.6 * len(lines)


def delimited_lines(layout: Layout, encoding: str) -> Lines:
    """How delimited lines become rows."""
    return Lines(partial(_rows, layout), encoding, layout.delimiter, layout.quoted)


def _rows(layout: Layout, block: Block) -> Rows:
    from queryveil.kernels.split import gather, split

    data = np.frombuffer(block.data, np.uint8)
    # Good rows have no more fields than bytes, so far more fields than bytes means that most rows lack most fields.
    if np.count_nonzero(data == ord("\n")) * len(layout.columns) > 4 * BLOCK:
        raise QueryveilError(
            f"Most rows of {block.file} have far fewer fields than its {len(layout.columns)} columns; fix its first "
            f"line, or choose another {option('format')}."
        )
    fields = split(data, ord(layout.delimiter), layout.quoted, len(layout.columns), block.first_line)
    bad = BadRows()
    bad.add("over-long line", int(block.overlong > 0), f"{block.file}:{block.overlong}")
    counts = np.array(sorted(layout.counts), np.int32)
    separated = block.first_line == 1 and len(layout.header) > 0 and SEPARATOR.match(block.data) is not None
    keep = fields.line > separated
    for kind, wrong in (
        ("undecodable bytes", ~fields.valid),
        ("wrong column count", fields.valid & ~np.isin(fields.width, counts)),
    ):
        wrong &= keep
        if wrong.any():
            # A row that spans several lines counts as several: a stray quote may have swallowed good rows.
            bad.add(kind, int(fields.lines[wrong].sum()), f"{block.file}:{fields.line[wrong.argmax()]}")
            keep &= ~wrong
    keep[_headers(block.data, fields, layout)] = False
    start, end, line = fields.start, fields.end, fields.line
    if not keep.all():
        start, end, line = start[keep], end[keep], line[keep]
    columns = {
        name: from_offsets(*gather(data, start, end, i, layout.quoted)) for i, name in enumerate(layout.columns) if name
    }
    return Rows(block.file, line, layout.finish(columns), bad)


def _headers(data: bytes | memoryview, fields: "Fields", layout: Layout) -> list[int]:
    """The rows that are a header: few have fields of exactly the right lengths, and only those are compared."""
    width = min(len(layout.header), fields.start.shape[1])
    if width == 0:
        return []
    lengths = [len(title.encode()) for title in layout.header[:width]]
    alike = (fields.end[:, :width] - fields.start[:, :width] == lengths).all(axis=1)
    if layout.quoted:
        alike |= fields.line <= 2  # its titles may be quoted, and below the line that names the delimiter
    return [
        row
        for row in np.flatnonzero(alike).tolist()
        if [
            bytes(data[fields.start[row, i] : fields.end[row, i]]).decode("utf-8", "replace").strip(' "').lower()
            for i in range(width)
        ]
        == [title.lower() for title in layout.header[:width]]
    ]
