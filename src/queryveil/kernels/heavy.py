"""Heavy subsets of weighted sets, and the groups of sets that share one.

Sets are rows of ascending elements, lightest first. An element weighs the same in every set, so with W(S) the sum over
S, the cosine of sets A and B is W(A n B) / sqrt(W(A) W(B)). If it is at least theta, the common part keeps at least
theta^2 of W(A) and of W(B): it is a heavy subset of both. So A and B are affine if and only if they share a heavy
subset C with W(C)^2 >= theta^2 W(A) W(B). Within the group of all sets that share C, the sets affine to A through C are
those of least weight, up to a bound.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import inlined, kernel

A = TypeVar("A", bound=NDArray[Any])

_SLACK = 1 + 1e-9
"""Subsets a hair too light are listed too, so that rounding loses none; `affine` alone decides."""


@inlined
def affine(common: float, one: float, other: float, theta2: float) -> bool:
    """Whether two sets of these weights, with a common part of this weight, have a cosine of at least theta.

    Weights are whole numbers, held exactly; the products round in the same way for everybody, so that the answer is the
    same in every implementation that multiplies in this order.
    """
    return common * common >= theta2 * (one * other)


class Subsets(NamedTuple):
    """Heavy subsets: a digest of each, its weight, and the set it is part of."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    weight: NDArray[np.int64]
    owner: NDArray[np.int32]


@kernel
def count_subsets(
    start: NDArray[np.int64],
    element: NDArray[np.int32],
    weight: NDArray[np.int64],
    total: NDArray[np.int64],
    theta2: float,
    most: int,
) -> NDArray[np.int32]:
    """How many heavy subsets each set has; counting stops behind `most`."""
    sets = len(start) - 1
    counts = np.empty(sets, np.int32)
    path = np.empty(most + 2, np.int64)
    for i in range(sets):
        begin, end = start[i], start[i + 1]
        budget = np.int64((1.0 - theta2) * total[i] * _SLACK)
        count = 1
        depth = 0
        at = begin
        while count <= most:
            if at < end and weight[element[at]] <= budget:
                budget -= weight[element[at]]
                path[depth] = at
                depth += 1
                count += 1
                at += 1
            elif depth == 0:
                break
            else:
                depth -= 1
                at = path[depth]
                budget += weight[element[at]]
                at += 1
        counts[i] = count
    return counts


@kernel
def list_subsets(
    start: NDArray[np.int64],
    element: NDArray[np.int32],
    weight: NDArray[np.int64],
    low: NDArray[np.uint64],
    high: NDArray[np.uint64],
    total: NDArray[np.int64],
    counts: NDArray[np.int32],
    theta2: float,
    most: int,
    part: int,
    bits: int,
) -> Subsets:
    """The heavy subsets of all sets with at most `most` of them, as far as the top bits of their digest are `part`.

    The digest of a subset is the sum of its elements' digests, so that taking an element away is one subtraction.
    """
    shift = np.uint64(64 - bits)
    sets = len(start) - 1
    wanted = np.uint64(part)
    path = np.empty(most + 2, np.int64)
    room = 0
    for i in range(sets):
        if counts[i] <= most:
            room += counts[i]
    room = (room >> bits) + (room >> (bits + 2)) + 1024
    out_low, out_high = np.empty(room, np.uint64), np.empty(room, np.uint64)
    out_weight, out_owner = np.empty(room, np.int64), np.empty(room, np.int32)
    size = 0
    for i in range(sets):
        if counts[i] > most:
            continue
        if size + counts[i] > room:
            room = room * 3 // 2 + counts[i]
            out_low, out_high = _longer(out_low, room), _longer(out_high, room)
            out_weight, out_owner = _longer(out_weight, room), _longer(out_owner, room)
        begin, end = start[i], start[i + 1]
        budget = np.int64((1.0 - theta2) * total[i] * _SLACK)
        left = total[i]
        a, b = np.uint64(0), np.uint64(0)
        for at in range(begin, end):
            a += low[element[at]]
            b += high[element[at]]
        depth = 0
        at = begin
        fresh = True
        while True:
            if fresh:
                if bits == 0 or a >> shift == wanted:
                    out_low[size], out_high[size] = a, b
                    out_weight[size], out_owner[size] = left, i
                    size += 1
                fresh = False
            if at < end and weight[element[at]] <= budget:
                lost = element[at]
                budget -= weight[lost]
                left -= weight[lost]
                a -= low[lost]
                b -= high[lost]
                path[depth] = at
                depth += 1
                at += 1
                fresh = True
            elif depth == 0:
                break
            else:
                depth -= 1
                at = path[depth]
                back = element[at]
                budget += weight[back]
                left += weight[back]
                a += low[back]
                b += high[back]
                at += 1
    return Subsets(out_low[:size], out_high[:size], out_weight[:size], out_owner[:size])


@kernel
def _longer(array: A, room: int) -> A:
    out = np.empty(room, array.dtype)
    out[: len(array)] = array
    return out  # type: ignore[return-value]  # of the same type, as NumPy's stubs do not know


class Groups(NamedTuple):
    """Sets that share a heavy subset: group g has members member[start[g]:start[g + 1]], the lightest first."""

    start: NDArray[np.int64]
    member: NDArray[np.int32]
    weight: NDArray[np.int64]
    """The weight of the shared subset."""


@kernel
def group_subsets(subsets: Subsets, order: NDArray[np.int64], total: NDArray[np.int64]) -> Groups:
    """The groups of two or more sets, given the order of the subsets' digests."""
    n = len(order)
    groups = members = 0
    i = 0
    while i < n:
        j = i + 1
        first = order[i]
        while j < n and subsets.low[order[j]] == subsets.low[first] and subsets.high[order[j]] == subsets.high[first]:
            j += 1
        if j - i > 1:
            groups += 1
            members += j - i
        i = j
    start = np.zeros(groups + 1, np.int64)
    member = np.empty(members, np.int32)
    weight = np.empty(groups, np.int64)
    groups = members = 0
    i = 0
    while i < n:
        j = i + 1
        first = order[i]
        while j < n and subsets.low[order[j]] == subsets.low[first] and subsets.high[order[j]] == subsets.high[first]:
            j += 1
        size = j - i
        if size > 1:
            # Equal digests are in the order of their owners, and both sorts are stable.
            if size <= 24:
                for at in range(size):
                    owner = subsets.owner[order[i + at]]
                    spot = members + at
                    while spot > members and total[member[spot - 1]] > total[owner]:
                        member[spot] = member[spot - 1]
                        spot -= 1
                    member[spot] = owner
            else:
                owners = np.empty(size, np.int32)
                for at in range(size):
                    owners[at] = subsets.owner[order[i + at]]
                by_weight = np.argsort(total[owners], kind="mergesort")
                for at in range(size):
                    member[members + at] = owners[by_weight[at]]
            weight[groups] = subsets.weight[first]
            groups += 1
            members += size
            start[groups] = members
        i = j
    return Groups(start, member, weight)


@kernel
def groups_of_members(groups: Groups, sets: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The groups that each set is in: where those of a set start, and the groups."""
    start = np.zeros(sets + 1, np.int64)
    for at in range(len(groups.member)):
        start[groups.member[at] + 1] += 1
    for i in range(sets):
        start[i + 1] += start[i]
    group = np.empty(len(groups.member), np.int32)
    next_ = start[:-1].copy()
    for g in range(len(groups.start) - 1):
        for at in range(groups.start[g], groups.start[g + 1]):
            owner = groups.member[at]
            group[next_[owner]] = g
            next_[owner] += 1
    return start, group


@kernel
def pairs_of(
    long: NDArray[np.int64],
    start: NDArray[np.int64],
    element: NDArray[np.int32],
    weight: NDArray[np.int64],
    total: NDArray[np.int64],
    posting_start: NDArray[np.int64],
    posting: NDArray[np.int32],
    theta2: float,
) -> Groups:
    """The sets affine to some sets with too many subsets, by adding up common weights; a pair is a group of two."""
    sets = len(start) - 1
    common = np.zeros(sets, np.int64)
    touched = np.empty(sets, np.int32)
    is_long = np.zeros(sets, np.bool_)
    for i in long:
        is_long[i] = True
    member = np.empty(1024, np.int32)
    shared = np.empty(512, np.int64)
    pairs = 0
    for i in long:
        seen = 0
        for at in range(start[i], start[i + 1]):
            e = element[at]
            for p in range(posting_start[e], posting_start[e + 1]):
                other = posting[p]
                if common[other] == 0:
                    touched[seen] = other
                    seen += 1
                common[other] += weight[e]
        for t in range(seen):
            other = touched[t]
            both = common[other]
            common[other] = 0
            # Two long sets meet twice; once is enough.
            if other == i or (is_long[other] and other < i) or not affine(both, total[i], total[other], theta2):
                continue
            if pairs == len(shared):
                member, shared = _longer(member, 4 * pairs), _longer(shared, 2 * pairs)
            lighter = total[i] < total[other] or (total[i] == total[other] and i < other)
            member[2 * pairs] = i if lighter else other
            member[2 * pairs + 1] = other if lighter else i
            shared[pairs] = both
            pairs += 1
    return Groups(np.arange(pairs + 1) * 2, member[: 2 * pairs], shared[:pairs])
