"""Split normalized UTF-8 queries into words."""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bools, Bytes, Ints, Longs

_SPACE = np.uint8(32)


@helper
def code_point(data: Bytes, at: int) -> tuple[np.int64, int]:
    """The code point that starts at `at`, and its length in bytes."""
    c = np.int64(data[at])
    if c < 0x80:
        return c, 1
    if c < 0xE0:
        return (c & 0x1F) << 6 | np.int64(data[at + 1]) & 0x3F, 2
    if c < 0xF0:
        return (c & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | np.int64(data[at + 2]) & 0x3F, 3
    return (
        (c & 0x07) << 18
        | (np.int64(data[at + 1]) & 0x3F) << 12
        | (np.int64(data[at + 2]) & 0x3F) << 6
        | np.int64(data[at + 3]) & 0x3F
    ), 4


@kernel
def split_words(data: Bytes, starts: Longs, ends: Longs, inside: Bools) -> tuple[Longs, Ints, Bytes]:
    """Words of each data[starts[i]:ends[i]], stripped at both ends of code points c with not inside[c].

    Returns:
        Words a query, and the words as the offsets and bytes of an Arrow array.
    """
    queries = len(starts)
    parts = queries
    size = 0
    for i in range(queries):
        size += ends[i] - starts[i]
        for at in range(starts[i], ends[i]):
            if data[at] == _SPACE:
                parts += 1
    per_query = np.zeros(queries, np.int64)
    offsets = np.empty(parts + 1, np.int32)
    out = np.empty(size, np.uint8)
    offsets[0] = 0
    count = 0
    written = 0
    for i in range(queries):
        at = starts[i]
        end = ends[i]
        while at < end:
            stop = at
            while stop < end and data[stop] != _SPACE:
                stop += 1
            a, b = at, stop
            while a < b:
                point, width = code_point(data, a)
                if inside[point]:
                    break
                a += width
            while b > a:
                last = b - 1
                while last > a and data[last] & 0xC0 == 0x80:
                    last -= 1
                point, width = code_point(data, last)
                if inside[point]:
                    break
                b = last
            if b > a:
                for position in range(a, b):
                    out[written] = data[position]
                    written += 1
                count += 1
                offsets[count] = written
                per_query[i] += 1
            at = stop + 1
    return per_query, offsets[: count + 1], out[:written]
