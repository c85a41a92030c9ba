"""Which signs a text holds: the cheap test before an expensive one."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Bytes, Longs

DIGIT, AT, SLASH, EQUALS, COLON, SIX_DIGITS, SPELT_AT = 1, 2, 4, 8, 16, 32, 64
"""The last one: `%40`, `dot`, `at)` or `at]`, in one of which any sign for `@` that is spelt out ends."""


@kernel
def signs_of(data: Bytes, starts: Longs, ends: Longs) -> Bytes:
    """The signs of every data[starts[i]:ends[i]], as bits."""
    signs = np.zeros(len(starts), np.uint8)
    for i in range(len(starts)):
        found = 0
        digits = 0
        for at in range(starts[i], ends[i]):
            c = data[at]
            if 48 <= c <= 57:
                digits += 1
                if c == 48 and at >= starts[i] + 2 and data[at - 1] == 52 and data[at - 2] == 37:  # %40
                    found |= 64
            elif c == 64:
                found |= 2
            elif c == 47:
                found |= 4
            elif c == 61:
                found |= 8
            elif c == 58:
                found |= 16
            elif at >= starts[i] + 2:
                a, b = data[at - 2], data[at - 1]
                # d o t, and a t before a bracket that closes.
                if (c == 116 and b == 111 and a == 100) or ((c == 41 or c == 93) and b == 116 and a == 97):
                    found |= 64
        if digits > 0:
            found |= 1
        if digits >= 6:
            found |= 32
        signs[i] = found
    return signs
