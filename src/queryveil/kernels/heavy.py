"""Heavy subsets of weighted sets, and the groups of sets that share one.

An element weighs the same in every set, so with W(S) the sum over S, the cosine of sets A and B is
W(A n B) / sqrt(W(A) W(B)). If it is at least theta, the common part keeps at least theta^2 of W(A) and of W(B): it is a
heavy subset of both. So A and B are affine if and only if they share a heavy subset C with W(C)^2 >= theta^2 W(A) W(B).
Within the group of all sets that share C, the sets affine to A through C are those of least weight, up to a bound.

Elements may have parts: a set that holds an element holds its parts too, as a query with `cell phone` holds `cell`.
What two such sets have in common is closed in the same way, so only closed subsets are listed: an element is taken away
only after all that it is part of.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import helper, inlined, kernel
from queryveil.kernels.search import first_from
from queryveil.kernels.types import Bools, Ints, Longs, ULongs

A = TypeVar("A", bound=NDArray[Any])

_SLACK = 1 + 1e-9
"""Subsets a hair too light are listed too, so that rounding loses none; `affine` alone decides."""

_LOOSE = 63
"""How many elements of a set may be light enough to be taken away, so that a word of bits says which are gone."""


@inlined
def affine(common: int | np.int64, one: int | np.int64, other: int | np.int64, theta2: float) -> bool:
    """Whether two sets of these weights, with a common part of this weight, have a cosine of at least theta.

    Weights are whole numbers, which a float holds exactly; their products, too long for a word, round in the same way
    for everybody, so that the answer is the same in every implementation that multiplies in this order.
    """
    shared = float(common)
    return shared * shared >= theta2 * (float(one) * float(other))


class Sets(NamedTuple):
    """Weighted sets, the lightest first: set i has elements element[start[i]:start[i + 1]], ascending."""

    start: Longs
    element: Ints
    total: Longs
    """The weight of each set."""
    weight: Longs
    """The weight of each element."""
    part: Ints
    """The parts of each element, one row an element, -1 behind the last; parts of parts are among them."""
    low: ULongs
    high: ULongs
    """A digest of each element."""


class Subsets(NamedTuple):
    """Heavy subsets: a digest of each, its weight, and the set it is part of."""

    low: ULongs
    high: ULongs
    weight: Longs
    owner: Ints


@kernel
def walk_subsets(
    sets: Sets,
    first: int,
    last: int,
    theta2: float,
    most: int,
    counts: Ints,
    bits: int,
    met: ULongs,
    listing: bool,
    rank: Ints,
    ours: Bools,
) -> Subsets:
    """Walk the heavy subsets of the sets from `first` up to `last`: first to mark them, then to list the shared ones.

    Most subsets belong to one set alone and are of no use. So a first walk marks them in a filter by a few bits of
    their digest, and a second lists those whose mark was met twice: all that are shared, and a few by chance. The
    digest of a subset is the sum of its elements' digests, so that taking an element away is one subtraction.

    Args:
        sets: The sets.
        first: The first set to walk.
        last: The set behind the last one.
        theta2: The square of theta.
        most: Walking a set stops behind so many subsets.
        counts: Filled by the first walk with the number of subsets of each set; the second leaves out sets with more
            than `most`.
        bits: How many bits of a digest give its place in the filter.
        met: The filter: by turns 64 marks of digests met, and those of digests met again.
        listing: Whether this is the second walk.
        rank: The place of each element in some order, if only some subsets are wanted; else empty.
        ours: For each element whether the subsets are wanted in which it comes first in that order.
    """
    # Plain arrays, because a compiled loop cannot yet look through a tuple at each turn.
    start, element, total, weight = sets.start, sets.element, sets.total, sets.weight
    part, low, high = sets.part, sets.low, sets.high
    one = np.uint64(1)
    shift = np.uint64(64 - bits)
    room = 1024
    out_low, out_high = np.empty(room, np.uint64), np.empty(room, np.uint64)
    out_weight, out_owner = np.empty(room, np.int64), np.empty(room, np.int32)
    size = 0
    loose, needs = np.empty(_LOOSE, np.int32), np.empty(_LOOSE, np.int64)
    loose_weight = np.empty(_LOOSE, np.int64)
    lightest = np.empty(_LOOSE + 1, np.int64)  # from each place on
    # The subsets of one set. They meet the filter together, because looking them up one by one waits for the memory.
    its_low, its_high = np.empty(most + 2, np.uint64), np.empty(most + 2, np.uint64)
    its_weight, its_gone = np.empty(most + 2, np.int64), np.empty(most + 2, np.int64)
    its_next = np.empty(most + 2, np.int64)
    # The elements of one set in the order asked for: a bit of each that may be taken away, and whether it is ours.
    some = len(rank) > 0
    longest = 1
    if some:
        for i in range(first, last):
            longest = max(longest, start[i + 1] - start[i])
    ordered, its_bit = np.empty(longest, np.int32), np.empty(longest, np.int64)
    for i in range(first, last):
        if listing and counts[i] > most:
            continue
        begin, end = start[i], start[i + 1]
        budget = np.int64((1.0 - theta2) * total[i] * _SLACK)
        least = total[i] - budget
        a, b = np.uint64(0), np.uint64(0)
        n = 0
        for at in range(begin, end):
            e = element[at]
            a += low[e]
            b += high[e]
            if weight[e] <= budget:
                if n < _LOOSE:
                    # Into its place: what has more parts goes first, so that an element follows all it is part of.
                    spot = n
                    mine = _parts(part, e)
                    while spot > 0 and _parts(part, loose[spot - 1]) < mine:
                        loose[spot] = loose[spot - 1]
                        spot -= 1
                    loose[spot] = e
                n += 1
        if n > _LOOSE:
            counts[i] = most + 1
            continue
        lightest[n] = total[i] + 1
        if n > 0:
            _find_needs(element[begin:end], part, loose[:n], needs)
            for x in range(n - 1, -1, -1):
                loose_weight[x] = weight[loose[x]]
                lightest[x] = min(loose_weight[x], lightest[x + 1])
        its_low[0], its_high[0], its_weight[0], its_gone[0], its_next[0] = a, b, total[i], 0, 0
        count, s = 1, 0
        # From each subset take one more element away, behind the last that went, until none is light enough.
        while s < count <= most:
            spare, gone = its_weight[s] - least, its_gone[s]
            for x in range(its_next[s], n):
                if lightest[x] > spare:
                    break
                if loose_weight[x] <= spare and needs[x] & gone == needs[x]:
                    if count > most:
                        break
                    its_low[count], its_high[count] = its_low[s] - low[loose[x]], its_high[s] - high[loose[x]]
                    its_weight[count] = its_weight[s] - loose_weight[x]
                    its_gone[count], its_next[count] = gone | np.int64(1) << x, x + 1
                    count += 1
            s += 1
        counts[i] = count
        if count > most:
            continue
        if some:
            _put_in_order(element[begin:end], rank, loose[:n], ordered, its_bit)
            wanted = 0
            for s in range(count):
                at = 0
                while its_bit[at] & its_gone[s]:
                    at += 1
                if ours[ordered[at]]:
                    its_low[wanted], its_high[wanted], its_weight[wanted] = its_low[s], its_high[s], its_weight[s]
                    wanted += 1
            count = wanted
        if not listing:
            for s in range(count):
                bit = its_low[s] >> shift
                word, mask = np.int64(bit >> np.uint64(6)), one << (bit & np.uint64(63))
                marks = met[2 * word]
                met[2 * word] = marks | mask
                met[2 * word + 1] |= marks & mask
            continue
        if size + count > room:
            room = 2 * room + count
            out_low, out_high = _longer(out_low, room), _longer(out_high, room)
            out_weight, out_owner = _longer(out_weight, room), _longer(out_owner, room)
        for s in range(count):
            bit = its_low[s] >> shift
            word, mask = np.int64(bit >> np.uint64(6)), one << (bit & np.uint64(63))
            if met[2 * word + 1] & mask:
                out_low[size], out_high[size] = its_low[s], its_high[s]
                out_weight[size], out_owner[size] = its_weight[s], i
                size += 1
    return Subsets(out_low[:size].copy(), out_high[:size].copy(), out_weight[:size].copy(), out_owner[:size].copy())


@helper
def _put_in_order(elements: Ints, rank: Ints, loose: Ints, ordered: Ints, its_bit: Longs) -> None:
    # Put elements in the order of their ranks, with the bit of each that is loose, 0 for the others.
    for n in range(len(elements)):
        spot = n
        while spot > 0 and rank[ordered[spot - 1]] > rank[elements[n]]:
            ordered[spot] = ordered[spot - 1]
            spot -= 1
        ordered[spot] = elements[n]
    for n in range(len(elements)):
        its_bit[n] = 0
        for x in range(len(loose)):
            if loose[x] == ordered[n]:
                its_bit[n] = np.int64(1) << x
                break


@inlined
def _parts(part: Ints, e: int) -> int:
    # How many parts an element has.
    n = 0
    while n < part.shape[1] and part[e, n] >= 0:
        n += 1
    return n


@helper
def _find_needs(elements: Ints, part: Ints, loose: Ints, needs: Longs) -> None:
    # Tell in bits which loose elements must be gone before each, that is, those it is part of; if one of these is not
    # loose, all bits are set, and the element stays.
    for x in range(len(loose)):
        needs[x] = 0
    for e in elements:
        for p in range(part.shape[1]):
            inner = part[e, p]
            if inner < 0:
                break
            for x in range(len(loose)):
                if loose[x] == inner:
                    before = np.int64(-1)
                    for y in range(x):
                        if loose[y] == e:
                            before = np.int64(1) << y
                    needs[x] |= before
                    break


@helper
def _longer(array: A, room: int) -> A:
    out = np.empty(room, array.dtype)
    for at in range(len(array)):  # an assignment to a slice would compile messages for errors that cannot happen
        out[at] = array[at]
    return out  # type: ignore[return-value]  # of the same type, as NumPy's stubs do not know


class Groups(NamedTuple):
    """Sets that share a heavy subset: group g has members member[start[g]:start[g + 1]], the lightest first."""

    start: Longs
    member: Ints
    weight: Longs
    """The weight of the shared subset."""


@kernel
def group_subsets(subsets: Subsets, bits: int) -> Groups:
    """The groups of two or more sets.

    Args:
        subsets: Some subsets, those of the first set first.
        bits: By how many bits of their digests subsets are brought together before they are compared.
    """
    low, high, n = subsets.low, subsets.high, len(subsets.low)
    shift = np.uint64(64 - bits)
    begin = np.zeros((1 << bits) + 1, np.int32)
    for i in range(n):
        begin[np.int64(low[i] >> shift) + 1] += 1
    for bucket in range(1 << bits):
        begin[bucket + 1] += begin[bucket]
    order = np.empty(n, np.int32)
    for i in range(n):
        its = np.int64(low[i] >> shift)
        order[begin[its]] = i
        begin[its] += 1
    start = np.zeros(n // 2 + 1, np.int64)
    member = np.empty(n, np.int32)
    weight = np.empty(n // 2, np.int64)
    groups = members = 0
    first = 0
    for bucket in range(1 << bits):
        # Each turn takes out those equal to the first; the others wait in their order.
        end = last = begin[bucket]
        while end - first > 1:
            model = order[first]
            size = waiting = 0
            for at in range(first, end):
                this = order[at]
                if low[this] == low[model] and high[this] == high[model]:
                    member[members + size] = subsets.owner[this]
                    size += 1
                else:
                    order[first + waiting] = this
                    waiting += 1
            if size > 1:
                weight[groups] = subsets.weight[model]
                groups += 1
                members += size
                start[groups] = members
            end = first + waiting
        first = last
    return Groups(start[: groups + 1].copy(), member[:members].copy(), weight[:groups].copy())


@kernel
def turned(start: Longs, item: Ints, items: int) -> tuple[Longs, Ints]:
    """From the items of each row to the rows of each item: where those of an item start, and the rows, ascending."""
    begin = np.zeros(items + 1, np.int64)
    for at in range(len(item)):
        begin[item[at] + 1] += 1
    for i in range(items):
        begin[i + 1] += begin[i]
    row = np.empty(len(item), np.int32)
    following = begin[:-1].copy()
    for r in range(len(start) - 1):
        for at in range(start[r], start[r + 1]):
            i = item[at]
            row[following[i]] = r
            following[i] += 1
    return begin, row


@inlined
def _held_by(posting_start: Longs, e: int) -> int:
    # How many sets hold an element.
    return int(posting_start[e + 1] - posting_start[e])


@inlined
def _common(sets: Sets, one: int, other: int, enough: float) -> np.int64:
    # What two sets have in common weighs so much; if that is not enough, any other number that is not enough. The
    # heaviest elements come first, so that it is soon clear where too much is missing.
    start, element = sets.start, sets.element
    both = np.int64(sets.total[one])
    x, y = start[one + 1] - 1, start[other + 1] - 1
    while x >= start[one] and both >= enough:
        if y < start[other] or element[y] < element[x]:
            both -= sets.weight[element[x]]
            x -= 1
        elif element[y] > element[x]:
            y -= 1
        else:
            x -= 1
            y -= 1
    return both


@kernel
def pairs_of(some: Longs, among: Bools, sets: Sets, posting_start: Longs, posting: Ints, theta2: float) -> Groups:
    """The sets affine to some sets, found by what they must share; a pair is a group of two.

    A set affine to A can lack elements of A of little weight together, so it holds at least one of any few elements
    that weigh more. The rarest are taken. A set shares with A what it holds of these, and of the rest at most all. So a
    set that is met late must be light, and in the end few are left that may share enough; these are compared. Sets are
    ordered by weight, so that those of about the same weight stand together.

    Args:
        some: The sets whose neighbours are wanted.
        among: For all sets, whether their own neighbours are wanted too, here or elsewhere; of two such, the pair is
            listed for the first.
        sets: The sets.
        posting_start: Where the sets that hold each element start.
        posting: The sets that hold each element, ascending.
        theta2: The square of theta.
    """
    start, element, total, weight = sets.start, sets.element, sets.total, sets.weight
    met_by = np.full(len(total), -1, np.int32)
    shares = np.empty(len(total), np.int64)
    met = np.empty(len(total), np.int32)
    rarest = np.empty(len(weight), np.int32)
    member = np.empty(1024, np.int32)
    shared = np.empty(512, np.int64)
    pairs = 0
    for i in some:
        # In order of how many sets hold them.
        n = 0
        for at in range(start[i], start[i + 1]):
            spot = n
            while spot > 0 and _held_by(posting_start, rarest[spot - 1]) > _held_by(posting_start, element[at]):
                rarest[spot] = rarest[spot - 1]
                spot -= 1
            rarest[spot] = element[at]
            n += 1
        least = theta2 * total[i] / _SLACK
        lightest = first_from(total, 0, len(total), least)
        heaviest = first_from(total, lightest, len(total), total[i] / theta2 * _SLACK + 1)
        rest = total[i]
        candidates = 0
        for e in rarest[:n]:
            most = float(rest) * float(rest) / (theta2 * total[i]) * _SLACK
            too_heavy = first_from(total, lightest, heaviest, most + 1)
            begin, end = posting_start[e], posting_start[e + 1]
            for p in range(first_from(posting, begin, end, lightest), end):
                other = posting[p]
                if other >= heaviest:
                    break
                if met_by[other] == i:
                    shares[other] += weight[e]
                elif other < too_heavy and other != i and not (among[other] and other < i):
                    met_by[other], shares[other], met[candidates] = i, weight[e], other
                    candidates += 1
            rest -= weight[e]
            if rest < least:
                break
        for other in met[:candidates]:
            enough = np.sqrt(theta2 * (float(total[i]) * float(total[other]))) / _SLACK
            if shares[other] + rest < enough:
                continue
            both = _common(sets, i, other, enough)
            if not affine(both, total[i], total[other], theta2):
                continue
            if pairs == len(shared):
                member, shared = _longer(member, 4 * pairs), _longer(shared, 2 * pairs)
            member[2 * pairs] = min(i, other)
            member[2 * pairs + 1] = max(i, other)
            shared[pairs] = both
            pairs += 1
    return Groups(np.arange(pairs + 1) * 2, member[: 2 * pairs], shared[:pairs])
