"""Rows out of delimited text; the formats that are rows of fields share it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.formats.rows import BadRows, Rows, Task
from queryveil.formats.source import Block, blocks
from queryveil.text.arrays import from_offsets


@dataclass(frozen=True)
class Layout:
    """How a delimited format arranges its fields."""

    columns: tuple[str, ...]
    """Names in the order of the fields; an empty name is a field nobody wants."""
    counts: Collection[int]
    """How many fields a good row may have; missing ones at the end are empty."""
    delimiter: str = "\t"
    quoted: bool = False
    header: tuple[str, ...] = ()
    """A row whose first fields are these (without case) is a header wherever it stands."""
    finish: Callable[[dict[str, pa.Array]], dict[str, pa.Array]] = lambda columns: columns


def read_delimited(files: Sequence[Path], layout: Layout, encoding: str) -> Iterator[Task]:
    """The rows of delimited files."""
    for file in files:
        for block in blocks(file, delimiter=layout.delimiter, quoted=layout.quoted, encoding=encoding):
            yield partial(_rows, block, layout)


def _rows(block: Block, layout: Layout) -> Rows:
    from queryveil.kernels.split import gather, split

    data = np.frombuffer(block.data, np.uint8)
    fields = split(data, ord(layout.delimiter), layout.quoted, len(layout.columns), block.first_line)
    bad = BadRows()
    bad.add("over-long line", int(block.overlong > 0), f"{block.file}:{block.overlong}")
    counts = np.array(sorted(layout.counts), np.int32)
    keep = np.ones(len(fields.line), np.bool_)
    for kind, wrong in (
        ("undecodable bytes", ~fields.valid),
        ("wrong column count", fields.valid & ~np.isin(fields.width, counts)),
    ):
        if wrong.any():
            bad.add(kind, int(wrong.sum()), f"{block.file}:{fields.line[wrong.argmax()]}")
            keep &= ~wrong
    rows = np.flatnonzero(keep)
    start, end = fields.start[rows], fields.end[rows]

    def column(index: int) -> pa.Array:
        return from_offsets(
            *gather(data, np.ascontiguousarray(start[:, index]), np.ascontiguousarray(end[:, index]), layout.quoted)
        )

    columns = {name: column(i) for i, name in enumerate(layout.columns) if name}
    line = fields.line[rows]
    if layout.header:
        columns, line = _without_headers(columns, line, layout)
    return Rows(block.file, line, layout.finish(columns), bad)


def _without_headers(
    columns: dict[str, pa.Array], line: NDArray[np.int64], layout: Layout
) -> tuple[dict[str, pa.Array], NDArray[np.int64]]:
    is_header = None
    for name, title in zip(layout.columns, layout.header, strict=False):
        if name:
            same = pc.equal(pc.utf8_lower(columns[name]), title.lower())
            is_header = same if is_header is None else pc.and_(is_header, same)
    if is_header is None or not pc.any(is_header, min_count=0).as_py():
        return columns, line
    data = pc.invert(is_header)
    return {name: values.filter(data) for name, values in columns.items()}, line[data.to_numpy(zero_copy_only=False)]
