"""A table from 128-bit digests to small integers, in order of first appearance.

Open addressing with linear probing over arrays; the slots hold only the integer, so that a table of ten million texts
costs 16 bytes a text and 4 bytes a slot.
"""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.order import digest_order
from queryveil.kernels.types import Ints, Longs, ULongs

_EMPTY = np.int32(-1)


@kernel
def _place(slots: Ints, low: ULongs, count: int) -> None:
    mask = np.uint64(len(slots) - 1)
    for number in range(count):
        at = np.int64(low[number] & mask)
        while slots[at] != _EMPTY:
            at = np.int64(np.uint64(at + 1) & mask)
        slots[at] = number


@kernel
def _intern(
    slots: Ints,
    known_low: ULongs,
    known_high: ULongs,
    known_check: ULongs,
    count: int,
    low: ULongs,
    high: ULongs,
    check: ULongs,
    numbers: Ints,
    added: Longs,
) -> int:
    mask = np.uint64(len(slots) - 1)
    first = count
    for i in range(len(low)):
        at = np.int64(low[i] & mask)
        while True:
            number = slots[at]
            if number == _EMPTY:
                slots[at] = count
                known_low[count] = low[i]
                known_high[count] = high[i]
                known_check[count] = check[i]
                added[count - first] = i
                numbers[i] = count
                count += 1
                break
            if known_low[number] == low[i] and known_high[number] == high[i]:
                numbers[i] = number if known_check[number] == check[i] else -1
                break
            at = np.int64(np.uint64(at + 1) & mask)
    return count


class Interner:
    """Numbers digests 0, 1, 2, ... as they first appear."""

    def __init__(self) -> None:
        self.count = 0
        self._low = np.empty(1 << 10, np.uint64)
        self._high = np.empty(1 << 10, np.uint64)
        self._check = np.empty(1 << 10, np.uint64)
        self._slots = np.full(1 << 11, _EMPTY, np.int32)

    def add(self, low: ULongs, high: ULongs, check: ULongs | None = None) -> tuple[Ints, Longs]:
        """Number these digests.

        Args:
            low: Their first halves.
            high: Their second halves.
            check: What must be the same wherever a digest is; nothing if it is None, then and always.

        Returns:
            The number of each, -1 where the check is another, and the positions among them of those never seen before.
        """
        check = np.zeros(len(low), np.uint64) if check is None else check
        self._reserve(self.count + len(low))
        numbers = np.empty(len(low), np.int32)
        added = np.empty(len(low), np.int64)
        before = self.count
        self.count = _intern(
            self._slots, self._low, self._high, self._check, self.count, low, high, check, numbers, added
        )
        return numbers, added[: self.count - before]

    def ranks(self) -> Ints:
        """The place of each number in the order of the digests: an id that does not depend on who came first."""
        low, high = self._low[: self.count], self._high[: self.count]
        order = digest_order(low, high)
        ranks = np.empty(self.count, np.int32)
        ranks[order] = np.arange(self.count, dtype=np.int32)
        return ranks

    def digests(self) -> tuple[ULongs, ULongs]:
        """Low and high digest of each number."""
        return self._low[: self.count], self._high[: self.count]

    def _reserve(self, entries: int) -> None:
        if entries > len(self._low):
            # The arrays hold what is known; half as much again is enough because blocks are small beside the log.
            room = max(entries, len(self._low) * 3 // 2)
            self._low = np.resize(self._low, room)
            self._high = np.resize(self._high, room)
            self._check = np.resize(self._check, room)
        if entries * 3 > len(self._slots) * 2:
            size = len(self._slots)
            while entries * 3 > size * 2:
                size *= 2
            self._slots = np.full(size, _EMPTY, np.int32)
            _place(self._slots, self._low, self.count)
