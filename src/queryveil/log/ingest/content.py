"""A digest of all rows of a log that does not depend on their order, and that nobody can forge.

The distinct texts of a log, each with its id, and its rows as ids, times and ranks, all in the order of ids, are the
whole log: two logs have the same such lists if and only if they have the same rows, each as often. SHA-256 goes over
these lists. Ids are first halves of digests, so they are spread evenly. Rows or texts with the same first bits of an id
are a block and digested together; the digests of the blocks, in order, are digested again. So blocks can be digested in
parallel, on threads or on a cluster. Ids follow from digests that are not hard to forge, which does no harm, because
each id is digested together with its text.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queryveil.kernels.types import Longs, ULongs
from queryveil.text.arrays import byte_spans

NOTHING = -1
"""The id of a missing value."""
_BLOCK = 1 << 16
"""About how many rows or texts are in a block."""


def signed(ids: ULongs) -> Longs:
    """Digests as signed numbers in the same order, none of them -1."""
    ids = ids.copy()
    ids[ids == np.uint64(2**63 - 1)] -= np.uint64(1)
    return (ids ^ np.uint64(2**63)).view(np.int64)


def distinct(low: ULongs) -> Longs:
    """The ids of texts in the order of their digests, whose first halves are given; equal ones go on counting."""
    place = np.arange(len(low))
    start = np.append(True, low[1:] != low[:-1])[: len(low)]
    place -= np.maximum.accumulate(np.where(start, place, 0))
    return signed(low + place.astype(np.uint64))


def shift(count: int) -> int:
    """How many bits to shift an id to get the number of its block, for a given number of rows or texts."""
    return 64 - max(1, (count // _BLOCK).bit_length())


def edges(ids: Longs, bits: int) -> tuple[Longs, Longs]:
    """The blocks that ids in order are in: their numbers, and where each begins, with the end of all."""
    blocks = ids >> np.int64(bits)
    starts = np.flatnonzero(np.append(True, blocks[1:] != blocks[:-1])[: len(blocks)])
    return blocks[starts], np.append(starts, len(ids))


def text_block(ids: Longs, texts: pa.Array) -> bytes:
    """The digest of some texts in the order of their ids."""
    data, starts, ends = byte_spans(texts)
    made = hashlib.sha256(len(ids).to_bytes(8, "little"))
    for part in (ids, ends - starts):
        made.update(np.ascontiguousarray(part, "<i8").data)
    made.update(data[starts[0] : ends[-1]].data)
    return made.digest()


def row_block(columns: Iterable[Longs]) -> bytes:
    """The digest of some rows in order, given by columns: user, time, query, rank, url, and the extra columns."""
    made = hashlib.sha256()
    for column in columns:
        made.update(np.ascontiguousarray(column, "<i8").data)
    return made.digest()


def ordered(columns: Sequence[Longs]) -> list[Longs]:
    """Rows by these columns in order; missing values come first."""
    keys = [
        column if at < 4 else np.where(column == NOTHING, np.iinfo(np.int64).min, column)
        for at, column in enumerate(columns)
    ]
    order = np.lexsort(keys[1::-1])
    # Few rows are of the same user and time, and only they need the other columns.
    same = np.ones(len(order) - 1, np.bool_)
    for key in keys[:2]:
        same &= key[order[1:]] == key[order[:-1]]
    tied = np.append(same, False) | np.append(False, same)
    among = order[tied]
    order[tied] = among[np.lexsort([key[among] for key in keys[::-1]])]
    return [column[order] for column in columns]


@dataclass(frozen=True)
class Section:
    """The blocks of one list: what it is of, how long it is, and number and digest of each block, in order."""

    name: str
    count: int
    blocks: Longs
    digests: Sequence[bytes]


def content(rows: Section, texts: Sequence[Section]) -> bytes:
    """The digest of a log.

    Args:
        rows: Its rows.
        texts: Its users, queries and addresses, and then the values of its extra columns in the order of names. A
            column without any value counts as missing.
    """
    sections = [*texts[:3], *(section for section in texts[3:] if section.count), rows]
    made = hashlib.sha256(
        json.dumps([[section.name, section.count, len(section.blocks)] for section in sections]).encode()
    )
    for section in sections:
        made.update(np.ascontiguousarray(section.blocks, "<i8").data)
        made.update(b"".join(section.digests))
    return made.digest()
