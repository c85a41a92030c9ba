"""Witnesses of sets: other sets so like them that enough users stand behind all of them together.

For the verifier alone. It shares nothing with the kernels by which a method finds what it releases: named witnesses are
compared one by one, and where none are named, a set is compared with those that hold one of its rarest elements.
"""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import helper, inlined, kernel
from queryveil.kernels.search import first_from
from queryveil.kernels.types import Bools, Ints, Longs

UNLISTED = np.empty((0, 0), np.int32)
"""For `search`, if nobody asks who the users are."""

_HAIR = 1e-9
"""What is looked at reaches a hair further than the bounds, so that rounding loses nothing; `_alike` alone decides."""


class Weighed(NamedTuple):
    """Sets of weighted elements, the lightest first, and the users behind each.

    Set i has elements element[start[i]:start[i + 1]], ascending, and users user[user_start[i]:user_start[i + 1]].
    """

    start: Longs
    element: Ints
    weight: Longs
    """The weight of each element."""
    total: Longs
    """The weight of each set."""
    user_start: Longs
    user: Ints
    new: Bools
    """For each user whether they are a new account, of which only so many count behind a set."""


@inlined
def _alike(common: int | np.int64, one: int | np.int64, other: int | np.int64, theta2: float) -> bool:
    # The cosine is at least theta. Products are formed in this order everywhere, so that all round alike.
    shared = float(common)
    return shared * shared >= theta2 * (float(one) * float(other))


@helper
def _common(sets: Weighed, one: int, other: int, missing: float) -> np.int64:
    # The weight of what two sets share; -1 as soon as more than so much of the first is missing.
    found = np.int64(0)
    gone = np.int64(0)
    y, last = sets.start[other], sets.start[other + 1]
    for x in range(sets.start[one], sets.start[one + 1]):
        e = sets.element[x]
        while y < last and sets.element[y] < e:
            y += 1
        if y < last and sets.element[y] == e:
            found += sets.weight[e]
        else:
            gone += sets.weight[e]
            if gone > missing:
                return np.int64(-1)
    return found


@helper
def _count(
    sets: Weighed, i: int, mark: Ints, owner: int, count: int, new: int, k: int, most_new: int, listed: Ints
) -> tuple[int, int]:
    # Count the users of a set that are not marked, mark them, and list them if there is room, until there are k.
    for at in range(sets.user_start[i], sets.user_start[i + 1]):
        if count >= k:
            break
        who = sets.user[at]
        if mark[who] == owner:
            continue
        if sets.new[who]:
            if new >= most_new:
                continue
            new += 1
        mark[who] = owner
        if count < len(listed):
            listed[count] = who
        count += 1
    return count, new


@helper
def _adds(sets: Weighed, i: int, mark: Ints, owner: int, may_be_new: bool) -> bool:
    # Whether a set has a user who would count.
    for at in range(sets.user_start[i], sets.user_start[i + 1]):
        if mark[sets.user[at]] != owner and (may_be_new or not sets.new[sets.user[at]]):
            return True
    return False


@kernel
def count_named(
    some: Longs,
    name_start: Longs,
    name: Longs,
    also: Bools,
    sets: Weighed,
    k: int,
    most_new: int,
    theta2: float,
) -> Longs:
    """Count the users behind some sets and those of the sets named beside them that are alike, up to k.

    Args:
        some: The sets.
        name_start: Where the sets named for each of `some` start.
        name: The sets named.
        also: Whether each is alike by something else than its elements.
        sets: All sets.
        k: How many users are enough.
        most_new: How many new accounts count.
        theta2: The square of the least cosine; infinite if elements do not make sets alike.
    """
    found = np.zeros(len(some), np.int64)
    mark = np.full(len(sets.new), -1, np.int32)
    nobody = np.empty(0, np.int32)
    for number in range(len(some)):
        i = some[number]
        count, new = _count(sets, i, mark, i, 0, 0, k, most_new, nobody)
        for at in range(name_start[number], name_start[number + 1]):
            if count >= k:
                break
            other = name[at]
            alike = also[at]
            if not alike:
                common = _common(sets, i, other, float(sets.total[i]))
                alike = _alike(common, sets.total[i], sets.total[other], theta2)
            if alike:
                count, new = _count(sets, other, mark, i, count, new, k, most_new, nobody)
        found[number] = count
    return found


@kernel
def search(
    some: Longs,
    near_start: Longs,
    near: Longs,
    sets: Weighed,
    posting_start: Longs,
    posting: Ints,
    k: int,
    most_new: int,
    theta2: float,
    listed: Ints,
) -> Longs:
    """Count the users behind some sets and all sets alike, and stop at the k-th.

    A set that is alike lacks at most 1 - theta^2 of the weight. So it holds one of any elements that weigh more
    together, and only sets that hold one of the rarest such are compared, of those that weigh about as much.

    Args:
        some: The sets.
        near_start: Where the sets that are alike by something else than their elements start, for each of `some`.
        near: These sets.
        sets: All sets.
        posting_start: Where the sets that hold each element start.
        posting: The sets that hold each element, ascending.
        k: How many users are enough.
        most_new: How many new accounts count.
        theta2: The square of the least cosine.
        listed: Room for the users of each of `some`; `UNLISTED` if they are not wanted.

    Returns:
        For each of `some` the number of users: k, or all there are if these are fewer.
    """
    start, element, weight, total = sets.start, sets.element, sets.weight, sets.total
    found = np.zeros(len(some), np.int64)
    mark = np.full(len(sets.new), -1, np.int32)
    tried = np.full(len(total), -1, np.int32)
    longest = 0
    for i in some:
        longest = max(longest, start[i + 1] - start[i])
    order, begin, end = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    nobody = np.empty(0, np.int32)
    for number in range(len(some)):
        i = some[number]
        room = listed[number] if len(listed) > 0 else nobody
        count, new = _count(sets, i, mark, i, 0, 0, k, most_new, room)
        tried[i] = i
        for at in range(near_start[number], near_start[number + 1]):
            if count >= k:
                break
            tried[near[at]] = i
            count, new = _count(sets, near[at], mark, i, count, new, k, most_new, room)
        lightest = first_from(total, 0, len(total), theta2 * total[i] * (1 - _HAIR))
        heaviest = first_from(total, lightest, len(total), total[i] / theta2 * (1 + _HAIR) + 1)
        n = start[i + 1] - start[i]
        for x in range(n):
            e = element[start[i] + x]
            begin[x] = first_from(posting, posting_start[e], posting_start[e + 1], lightest)
            end[x] = first_from(posting, begin[x], posting_start[e + 1], heaviest)
            spot = x
            while spot > 0 and end[order[spot - 1]] - begin[order[spot - 1]] > end[x] - begin[x]:
                order[spot] = order[spot - 1]
                spot -= 1
            order[spot] = x
        missing = (1 - theta2) * total[i] * (1 + _HAIR) + 1
        passed = np.int64(0)
        for spot in range(n):
            if count >= k or passed > missing:
                break
            x = order[spot]
            # What was not met before lacks all that was passed, and must weigh the less.
            rest = float(total[i] - passed)
            most = rest * rest / (theta2 * total[i]) * (1 + _HAIR) + 1
            for p in range(begin[x], end[x]):
                other = posting[p]
                if total[other] > most or count >= k:
                    break
                if tried[other] == i:
                    continue
                tried[other] = i
                if not _adds(sets, other, mark, i, new < most_new):
                    continue
                common = _common(sets, i, other, missing)
                if common >= 0 and _alike(common, total[i], total[other], theta2):
                    count, new = _count(sets, other, mark, i, count, new, k, most_new, room)
            passed += weight[element[start[i] + x]]
        found[number] = count
    return found


@kernel
def common_sizes(start: Longs, element: Ints, one: Longs, other: Longs) -> Longs:
    """How many elements two sets have in common, for each pair of them; elements are ascending."""
    found = np.zeros(len(one), np.int64)
    for pair in range(len(one)):
        x, y = start[one[pair]], start[other[pair]]
        last, behind = start[one[pair] + 1], start[other[pair] + 1]
        while x < last and y < behind:
            if element[x] == element[y]:
                found[pair] += 1
                x += 1
                y += 1
            elif element[x] < element[y]:
                x += 1
            else:
                y += 1
    return found


@kernel
def holders_of(start: Longs, element: Ints, elements: int) -> tuple[Longs, Ints]:
    """The sets that hold each element: where those of an element start, and the sets, ascending."""
    first = np.zeros(elements + 1, np.int64)
    for e in element:
        first[e + 1] += 1
    for e in range(elements):
        first[e + 1] += first[e]
    following = first[:-1].copy()
    holder = np.empty(len(element), np.int32)
    for i in range(len(start) - 1):
        for at in range(start[i], start[i + 1]):
            holder[following[element[at]]] = i
            following[element[at]] += 1
    return first, holder


@kernel
def events_of_words(start: Longs, word: Ints, events: Longs, words: int) -> Longs:
    """How many events hold each word.

    Args:
        start: Where the words of each query start.
        word: The words of all queries.
        events: How many events each query has.
        words: How many words there are.
    """
    found = np.zeros(words, np.int64)
    seen = np.full(words, -1, np.int32)
    for q in range(len(events)):
        for at in range(start[q], start[q + 1]):
            if seen[word[at]] != q:
                seen[word[at]] = q
                found[word[at]] += events[q]
    return found
