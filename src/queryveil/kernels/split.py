"""Cut a block of delimited text into rows and fields.

Two dialects: plain, where a quote is data (AOL and its kin), and quoted, as in RFC 4180. Fields come out as positions
in the block, so nothing is copied until a column is asked for.
"""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bools, Bytes, Ints, Longs

_NEWLINE, _RETURN, _QUOTE = np.uint8(10), np.uint8(13), np.uint8(34)
_SPACE, _TAB = np.uint8(32), np.uint8(9)


class Fields(NamedTuple):
    """The rows of a block: one entry a row, and for the first columns where each field starts and ends."""

    line: Longs
    start: Ints
    end: Ints
    width: Ints
    first: Ints
    last: Ints
    valid: Bools
    lines: Ints


MOST_LINES, MOST_BYTES = 16, 1 << 16
"""A quoted field that runs on for longer was opened by a stray quote: the quote is data, the field a plain one."""


@helper
def _closing_quote(data: Bytes, at: int) -> int:
    """Where the field that opens at `at` has its closing quote; -1 if nowhere near, -2 if not in this block."""
    lines = 0
    place = at + 1
    while place < len(data):
        if data[place] == _QUOTE:
            if place + 1 < len(data) and data[place + 1] == _QUOTE:
                place += 1
            else:
                return place
        elif data[place] == _NEWLINE:
            lines += 1
        if lines > MOST_LINES or place - at > MOST_BYTES:
            return -1
        place += 1
    return -2


@kernel
def last_row_end(data: Bytes, delimiter: int, quoted: bool) -> int:
    """Where the last whole row of a block ends (just behind its newline), 0 if no row ends here."""
    if not quoted:
        for at in range(len(data) - 1, -1, -1):
            if data[at] == _NEWLINE:
                return at + 1
        return 0
    end = 0
    field_start = True
    at = 0
    while at < len(data):
        c = data[at]
        if c == _QUOTE and field_start:
            close = _closing_quote(data, at)
            if close == -2:
                return end
            at = max(at, close)
            field_start = False
        elif c == _NEWLINE:
            end = at + 1
            field_start = True
        else:
            field_start = c == delimiter
        at += 1
    return end


@helper
def _is_utf8(data: Bytes, start: int, end: int) -> bool:
    at = start
    while at < end:
        c = data[at]
        if c < 0x80:
            at += 1
            continue
        if 0xC2 <= c <= 0xDF:
            more = 1
        elif 0xE0 <= c <= 0xEF:
            more = 2
        elif 0xF0 <= c <= 0xF4:
            more = 3
        else:
            return False
        if at + more >= end:
            return False
        second = data[at + 1]
        if (
            (c == 0xE0 and second < 0xA0)
            or (c == 0xED and second > 0x9F)
            or (c == 0xF0 and second < 0x90)
            or (c == 0xF4 and second > 0x8F)
        ):
            return False
        for b in range(1, more + 1):
            if data[at + b] & 0xC0 != 0x80:
                return False
        at += more + 1
    return True


@kernel
def split(data: Bytes, delimiter: int, quoted: bool, columns: int, first_line: int) -> Fields:
    """Rows and fields of a block of whole rows; blank lines are passed over.

    Args:
        data: The block; its last row may lack the newline.
        delimiter: The byte between fields.
        quoted: Whether a field that opens with a double quote runs to the closing one.
        columns: How many fields a row to remember; further ones are only counted.
        first_line: The line number of the block's first row.
    """
    rows = 1
    for at in range(len(data)):
        if data[at] == _NEWLINE:
            rows += 1
    line = np.empty(rows, np.int64)
    start = np.empty((rows, columns), np.int32)
    end = np.empty((rows, columns), np.int32)
    width = np.empty(rows, np.int32)
    first = np.empty(rows, np.int32)
    last = np.empty(rows, np.int32)
    valid = np.empty(rows, np.bool_)
    lines = np.empty(rows, np.int32)
    row = 0
    number = first_line
    at = 0
    size = len(data)
    while at < size:
        row_start = at
        row_line = number
        field = 0
        field_start = at
        high = np.uint8(0)
        closed = False
        while True:
            if quoted and at == field_start and at < size and data[at] == _QUOTE:
                close = _closing_quote(data, at)
                while at < close:
                    high |= data[at]
                    number += data[at] == _NEWLINE
                    at += 1
            while at < size and data[at] != delimiter and data[at] != _NEWLINE:
                high |= data[at]
                at += 1
            closed = at >= size or data[at] == _NEWLINE
            field_end = at
            if closed and field_end > field_start and data[field_end - 1] == _RETURN:
                field_end -= 1
            if field < columns:
                start[row, field] = field_start
                end[row, field] = field_end
            field += 1
            at += 1
            if closed:
                break
            field_start = at
        number += 1
        row_end = min(at - 1, size)
        if row_end > row_start and data[row_end - 1] == _RETURN:
            row_end -= 1
        if row_end == row_start:
            continue
        for missing in range(field, columns):
            start[row, missing] = end[row, missing] = 0
        line[row] = row_line
        lines[row] = number - row_line
        width[row] = field
        first[row] = row_start
        last[row] = row_end
        valid[row] = high < 0x80 or _is_utf8(data, row_start, row_end)
        row += 1
    return Fields(line[:row], start[:row], end[:row], width[:row], first[:row], last[:row], valid[:row], lines[:row])


@kernel
def gather(data: Bytes, start: Ints, end: Ints, column: int, quoted: bool) -> tuple[Ints, Bytes]:
    """Copy one column, blanks at both ends and quotes taken off, into the offsets and bytes of an Arrow array."""
    n = len(start)
    offsets = np.empty(n + 1, np.int32)
    total = 0
    for i in range(n):
        total += end[i, column] - start[i, column]
    out = np.empty(total, np.uint8)
    size = 0
    offsets[0] = 0
    for i in range(n):
        a, b = start[i, column], end[i, column]
        while a < b and (data[a] == _SPACE or data[a] == _TAB):
            a += 1
        while b > a and (data[b - 1] == _SPACE or data[b - 1] == _TAB):
            b -= 1
        if quoted and b - a >= 2 and data[a] == _QUOTE and data[b - 1] == _QUOTE:
            a += 1
            b -= 1
            while a < b:
                out[size] = data[a]
                size += 1
                if data[a] == _QUOTE and a + 1 < b and data[a + 1] == _QUOTE:
                    a += 1
                a += 1
        else:
            for at in range(a, b):
                out[size] = data[at]
                size += 1
        offsets[i + 1] = size
    return offsets, out[:size]
