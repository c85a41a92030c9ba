"""Put many 128-bit digests in order."""

import numpy as np

from queryveil.kernels.types import Longs, ULongs


def digest_order(low: ULongs, high: ULongs) -> Longs:
    """The positions of digests in ascending order of (low, high)."""
    # Sorting the top bits with the position in the low ones is far faster than sorting positions by digest; the few
    # that agree in the top bits are sorted again.
    bits = np.uint64(len(low).bit_length())
    packed = low >> bits << bits | np.arange(len(low), dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    top = packed >> bits
    tied = np.flatnonzero(top[1:] == top[:-1])
    if len(tied):
        tied = np.union1d(tied, tied + 1)
        members = order[tied]
        order[tied] = members[np.lexsort((high[members], low[members]))]
    return order
