"""Greedy groups of the most similar users, as the whole matrix of similarities would give them, which is never made.

The similarity of two users is the sum over all features of the smaller of their counts. It is at most the sum of a
user's own counts, which is where the bound of each user starts; when it comes to the top of the heap it is replaced by
what his nearest living neighbours really are. Similarities do not change and neighbours only die, so the first entry
of the heap that still stands is the best pair there is.
"""

import heapq

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.postings import postings
from queryveil.kernels.types import Bools, Ints, Longs

SUMMED, RECORD = 0, 1
"""How a group draws the next user: by the sum of the similarities to its members, or by that to all of them as one."""

_NEAR = 8  # neighbours that a user remembers
_NOBODY = np.int64(-1)


@helper
def _add_row(
    feature: Ints, count: Ints | Longs, post: Longs, user: Ints, times: Ints, after: np.int64, row: Longs
) -> None:
    """Add the similarity of a record to every user behind `after` to that user's place in the row."""
    for i in range(len(feature)):
        low, high = post[feature[i]], post[feature[i] + 1]
        if after >= 0:
            end = high
            while low < end:
                middle = (low + end) // 2
                if user[middle] > after:
                    end = middle
                else:
                    low = middle + 1
        for p in range(low, high):
            row[user[p]] += min(count[i], times[p])


@helper
def _wide(count: Ints) -> Longs:
    return count.astype(np.int64)


@helper
def _merged(a: Ints, a_count: Longs, b: Ints, b_count: Longs) -> tuple[Ints, Longs]:
    """Two records as one."""
    out = np.empty(len(a) + len(b), np.int32)
    total = np.empty(len(a) + len(b), np.int64)  # of many users together
    i = j = n = 0
    while i < len(a) or j < len(b):
        if j == len(b) or (i < len(a) and a[i] < b[j]):
            out[n], total[n] = a[i], a_count[i]
            i += 1
        elif i == len(a) or b[j] < a[i]:
            out[n], total[n] = b[j], b_count[j]
            j += 1
        else:
            out[n], total[n] = a[i], a_count[i] + b_count[j]
            i += 1
            j += 1
        n += 1
    return out[:n], total[:n]


@helper
def _remember(row: Longs, alive: Bools, first: np.int64, near: Ints, near_row: Longs) -> None:
    """Keep the best living users from `first` on; of equals, the earlier."""
    near[:] = -1
    near_row[:] = -1
    for w in range(first, len(row)):
        if alive[w] and row[w] > near_row[_NEAR - 1]:
            j = _NEAR - 1
            while j > 0 and near_row[j - 1] < row[w]:
                near[j] = near[j - 1]
                near_row[j] = near_row[j - 1]
                j -= 1
            near[j] = w
            near_row[j] = row[w]


@kernel
def group_users(start: Longs, feature: Ints, count: Ints, features: int, k: int, linkage: int) -> Ints:
    """Groups of k users, the last of k to 2k - 1.

    The most similar pair begins a group; of equals, the pair with the earlier first user, then the earlier second one.
    The user most similar to the group joins it, of equals the earlier, until it has k.

    Args:
        start: The features of user u are feature[start[u]:start[u + 1]], ascending.
        feature: Features.
        count: How often the user has each.
        features: How many features there are.
        k: Users of a group.
        linkage: SUMMED or RECORD.

    Returns:
        The group of every user, in the order in which groups are made.
    """
    n = len(start) - 1
    group = np.full(n, -1, np.int32)
    alive = np.ones(n, np.bool_)
    living, groups = n, 0
    post, user, times = postings(start, feature, count, features, alive)
    posted = n
    near = np.full((n, _NEAR), -1, np.int32)
    near_row = np.zeros((n, _NEAR), np.int64)
    at = np.full(n, _NEAR, np.int64)
    row = np.zeros(n, np.int64)
    heap = [(np.int64(0), np.int64(0), np.int64(-1)) for _ in range(0)]
    for u in range(n):
        heap.append((-np.int64(count[start[u] : start[u + 1]].sum()), np.int64(u), np.int64(-1)))
    heapq.heapify(heap)
    while living >= 2 * k:
        if living * 10 < posted * 8:
            post, user, times = postings(start, feature, count, features, alive)
            posted = living
        while True:
            _, one, other = heapq.heappop(heap)
            if not alive[one]:
                continue
            if other >= 0 and alive[other]:
                break
            while at[one] < _NEAR and near[one, at[one]] >= 0 and not alive[near[one, at[one]]]:
                at[one] += 1
            if at[one] == _NEAR or near[one, at[one]] < 0:
                # Pairs are kept with their first user, so only those behind him are looked at.
                row[:] = 0
                of = slice(start[one], start[one + 1])
                _add_row(feature[of], count[of], post, user, times, one, row)
                _remember(row, alive, one + 1, near[one], near_row[one])
                at[one] = 0
            if near[one, at[one]] >= 0:
                heapq.heappush(heap, (-near_row[one, at[one]], one, np.int64(near[one, at[one]])))
        group[one] = group[other] = groups
        alive[one] = alive[other] = False
        of, joined = slice(start[one], start[one + 1]), slice(start[other], start[other + 1])
        row[:] = 0
        record, total = _merged(
            feature[of], count[of].astype(np.int64), feature[joined], count[joined].astype(np.int64)
        )
        if linkage == SUMMED and k > 2:
            _add_row(feature[of], count[of], post, user, times, _NOBODY, row)
            _add_row(feature[joined], count[joined], post, user, times, _NOBODY, row)
        for size in range(2, k):
            if linkage == RECORD:
                row[:] = 0
                _add_row(record, total, post, user, times, _NOBODY, row)
            best, most = -1, np.int64(-1)
            for w in range(n):
                if alive[w] and row[w] > most:
                    best, most = w, row[w]
            group[best] = groups
            alive[best] = False
            if size + 1 < k:
                joined = slice(start[best], start[best + 1])
                if linkage == SUMMED:
                    _add_row(feature[joined], count[joined], post, user, times, _NOBODY, row)
                else:
                    record, total = _merged(record, total, feature[joined], _wide(count[joined]))
        living -= k
        groups += 1
    for u in range(n):
        if alive[u]:
            group[u] = groups
    return group


@kernel
def profiles(start: Longs, node: Ints, times: Ints, parent: Ints, depth: Ints, levels: int) -> tuple[Longs, Ints, Ints]:
    """What every user searched for: counts of the nodes on levels 1 to `levels` that his queries are at or below.

    Args:
        start: The links of user u are node[start[u]:start[u + 1]].
        node: The nodes that queries are linked to.
        times: How often.
        parent: The node above each.
        depth: Its depth.
        levels: The deepest level that counts.
    """
    n = len(start) - 1
    room = np.zeros(n + 1, np.int64)
    for u in range(n):
        room[u + 1] = room[u]
        for i in range(start[u], start[u + 1]):
            room[u + 1] += min(depth[node[i]], levels)
    feature = np.empty(room[-1], np.int32)
    count = np.empty(room[-1], np.int32)
    out = np.zeros(n + 1, np.int64)
    for u in range(n):
        used = room[u]
        for i in range(start[u], start[u + 1]):
            at = node[i]
            while depth[at] > levels:
                at = parent[at]
            while depth[at] > 0:
                feature[used] = at
                count[used] = times[i]
                used += 1
                at = parent[at]
        order = np.argsort(feature[room[u] : used], kind="mergesort") + room[u]
        mine, their = feature[order].copy(), count[order].copy()
        # What is written never passes what was read: the copies are of this user alone, and earlier ones are done.
        to = out[u]
        for i in range(len(mine)):
            if i > 0 and mine[i] == mine[i - 1]:
                count[to - 1] += their[i]
            else:
                feature[to] = mine[i]
                count[to] = their[i]
                to += 1
        out[u + 1] = to
    return out, feature[: out[n]].copy(), count[: out[n]].copy()
