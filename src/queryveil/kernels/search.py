"""Binary search, for other kernels. Nothing is decided here, so that methods and checks may share it."""

from queryveil.kernels._jit import helper
from queryveil.kernels.types import Ints, Longs


@helper
def first_from(values: Longs | Ints, low: int, high: int, least: float) -> int:
    """The first place from low up to high where ascending values reach this."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
