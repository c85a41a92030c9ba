"""Which scripts texts are written in."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Bytes, Longs
from queryveil.kernels.words import code_point


@kernel
def scripts_of(data: Bytes, starts: Longs, ends: Longs, script: Bytes) -> Longs:
    """The scripts of every data[starts[i]:ends[i]], as bits; script[c] is the number of the script of code point c.

    Script 0 is that of everything which is no letter, and has no bit.
    """
    found = np.zeros(len(starts), np.int64)
    for i in range(len(starts)):
        bits = np.int64(0)
        at = starts[i]
        while at < ends[i]:
            point, width = code_point(data, at)
            number = script[point]
            if number:
                bits |= np.int64(1) << np.int64(number - 1)
            at += width
        found[i] = bits
    return found
