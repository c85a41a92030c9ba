"""Who holds all of some items, and what two lists of items share."""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bools, Bytes, Ints, Longs


@helper
def _among(values: Ints, low: np.int64, high: np.int64, value: np.int32) -> bool:
    """Whether a value is in values[low:high], which ascend."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return bool(low < len(values) and values[low] == value)


@kernel
def holders(start: Longs, item: Ints, post: Longs, record: Ints, people: Longs, own: Ints) -> tuple[Longs, Bools]:
    """How many people hold all items of a list, and whether the owner of the list is among them.

    Args:
        start: List t is item[start[t]:start[t + 1]]. Everybody holds all of an empty list.
        item: Items.
        post: The records that have item i are record[post[i]:post[i + 1]], ascending.
        record: Records.
        people: How many people stand behind each record.
        own: The record of the owner of each list; -1 for nobody's.

    Returns:
        For each list, the people and whether the owner's record is one of those found.
    """
    n = len(start) - 1
    total = people.sum()
    count = np.zeros(n, np.int64)
    there = np.zeros(n, np.bool_)
    for t in range(n):
        if start[t] == start[t + 1]:
            count[t] = total
            there[t] = own[t] >= 0
            continue
        # The rarest item has the fewest records to look at.
        best = start[t]
        for i in range(start[t] + 1, start[t + 1]):
            if post[item[i] + 1] - post[item[i]] < post[item[best] + 1] - post[item[best]]:
                best = i
        for p in range(post[item[best]], post[item[best] + 1]):
            r = record[p]
            whole = True
            for i in range(start[t], start[t + 1]):
                if i != best:
                    low, high = post[item[i]], post[item[i] + 1]
                    if not _among(record[:high], low, high, r):
                        whole = False
                        break
            if whole:
                count[t] += people[r]
                there[t] |= r == own[t]
    return count, there


@kernel
def overlaps(start: Longs, item: Ints, value: Longs, one: Longs, other: Longs) -> tuple[Longs, Longs]:
    """What the lists of pairs share.

    Args:
        start: List l is item[start[l]:start[l + 1]], ascending and each item once.
        item: Items.
        value: A number for every entry, the same for the same item.
        one: The first list of each pair.
        other: The second.

    Returns:
        For each pair how many items are in both, and the least value of these; -1 if there is none.
    """
    count = np.zeros(len(one), np.int64)
    least = np.full(len(one), -1, np.int64)
    for p in range(len(one)):
        i, j = start[one[p]], start[other[p]]
        while i < start[one[p] + 1] and j < start[other[p] + 1]:
            if item[i] < item[j]:
                i += 1
            elif item[j] < item[i]:
                j += 1
            else:
                count[p] += 1
                if least[p] < 0 or value[i] < least[p]:
                    least[p] = value[i]
                i += 1
                j += 1
    return count, least


@kernel
def gaps(start: Longs, item: Ints, one: Longs, other: Longs) -> Longs:
    """How far apart the nearest items of two lists are.

    Args:
        start: List l is item[start[l]:start[l + 1]], ascending.
        item: Items.
        one: The first list of each pair.
        other: The second.

    Returns:
        For each pair the least difference of an item of the one and an item of the other; -1 if a list is empty.
    """
    found = np.full(len(one), -1, np.int64)
    for p in range(len(one)):
        i, j = start[one[p]], start[other[p]]
        while i < start[one[p] + 1] and j < start[other[p] + 1]:
            apart = np.int64(item[i]) - np.int64(item[j])
            if found[p] < 0 or abs(apart) < found[p]:
                found[p] = abs(apart)
            if apart < 0:
                i += 1
            else:
                j += 1
    return found


@kernel
def trigrams(data: Bytes, starts: Longs, ends: Longs) -> tuple[Longs, Ints]:
    """The distinct runs of three bytes of every text, ascending; a text has a blank before and after it.

    Returns:
        Where the runs of each text start, and the runs as numbers.
    """
    n = len(starts)
    start = np.zeros(n + 1, np.int64)
    item = np.empty((ends - starts).sum(), np.int32)
    to = 0
    for t in range(n):
        size = ends[t] - starts[t]
        mine = np.empty(size, np.int32)
        for i in range(size):
            before = np.int32(data[starts[t] + i - 1]) if i > 0 else np.int32(32)
            after = np.int32(data[starts[t] + i + 1]) if i + 1 < size else np.int32(32)
            mine[i] = before << 16 | np.int32(data[starts[t] + i]) << 8 | after
        mine.sort()
        for i in range(size):
            if i == 0 or mine[i] != mine[i - 1]:
                item[to] = mine[i]
                to += 1
        start[t + 1] = to
    return start, item[:to].copy()
