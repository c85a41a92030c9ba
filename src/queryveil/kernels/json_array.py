"""Turn an array of JSON objects into lines, one for each object, byte by byte."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Bytes, Longs

DEPTH, IN_TEXT, ESCAPED, STARTED = range(4)
"""What is known at the end of a part: how deep it is nested, whether it ends in a text, after a backslash, and whether
the array began."""


def begin() -> Longs:
    """What is known before the first part."""
    return np.zeros(4, np.int64)


@kernel
def to_lines(data: Bytes, state: Longs) -> None:
    """Change a part of an array in place: the commas between its objects become newlines.

    The brackets around it, and newlines in it, become blanks. A newline within a text is no JSON; it becomes another
    sign that is none, so that the object stays one line.

    Args:
        data: The part.
        state: What is known from the parts before it, changed to what is known after it.
    """
    depth, in_text, escaped, started = state
    for at in range(len(data)):
        c = data[at]
        if in_text:
            if escaped:
                escaped = 0
            elif c == 92:  # backslash
                escaped = 1
            elif c == 34:  # quote
                in_text = 0
            if c == 10:
                data[at] = 1
        elif c == 34:
            in_text = 1
        elif c == 91 or c == 123:  # opening bracket or brace
            if c == 91 and not started:
                data[at] = 32
                started = 1
            depth += 1
        elif c == 93 or c == 125:  # closing
            depth = max(depth - 1, 0)
            if depth == 0:
                data[at] = 10
        elif c == 44 and depth == 1:  # comma
            data[at] = 10
        elif c == 10 or c == 13 or c == 32:
            data[at] = 10 if depth == 0 and started else 32  # what is behind the array has empty lines alone
    state[:] = (depth, in_text, escaped, started)
