"""Move stretches of bytes about."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Bytes, Longs


@kernel
def copy_spans(data: Bytes, starts: Longs, offsets: Longs, out: Bytes) -> None:
    """Copy the bytes from starts[i] on to out[offsets[i]:offsets[i + 1]], for every i."""
    for i in range(len(starts)):
        shift = starts[i] - offsets[i]
        for at in range(offsets[i], offsets[i + 1]):
            out[at] = data[at + shift]


UNTIDY, CAPITAL, FOREIGN = 1, 2, 4
"""Kinds of text: with blanks or control characters to be folded, with ASCII capitals, with other than ASCII."""


@kernel
def kinds_of(data: Bytes, starts: Longs, ends: Longs) -> Bytes:
    """The kinds of every data[starts[i]:ends[i]], as bits."""
    kinds = np.zeros(len(starts), np.uint8)
    for i in range(len(starts)):
        kind = 0
        before = np.uint8(32)
        for at in range(starts[i], ends[i]):
            c = data[at]
            if c <= 32 or c >= 127:
                if c > 127:
                    kind |= 4
                elif c != 32 or before == 32:
                    kind |= 1
            elif 65 <= c <= 90:
                kind |= 2
            before = c
        if before == 32 and ends[i] > starts[i]:
            kind |= 1
        kinds[i] = kind
    return kinds
