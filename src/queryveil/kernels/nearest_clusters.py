"""Clusters of the nearest transactions: another way to make those of Clump, with less distortion.

In Clump a transaction chooses among r clusters, and the least distortion draws it to short ones. Here a cluster
chooses: the longest transaction that is left takes the others with which most is kept, then clusters swap
members as long as that keeps more. Transactions are cut into blocks of like length, so that the cost is linear in their
number; inside of a block, near ones are found by the few nodes of the tree that differ most.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.lcg import add_paths, clear_paths, meet, squeeze, steps, write_paths
from queryveil.kernels.types import Bools, Ints, Longs

BLOCK = 8_000
"""About how many transactions are looked at together."""

_TELLING = 32  # nodes by which transactions are compared roughly
_NEAR = 128  # transactions that are then compared exactly
_PARTNERS = 16  # clusters with which a cluster may swap
_PASSES = 2  # how often every cluster looks for swaps

Bags = tuple[Longs, Ints, Longs]
"""The nodes on the paths of transaction t are path[first[t]:first[t + 1]], ascending, with their totals."""
Rule = tuple[Longs, Ints, bool, Longs, Longs]
"""What `lcg.meet` wants to know: step, depth, tight; and its scratch: totals, sums of levels."""


def nearest(
    start: Longs,
    node: Ints,
    count: Longs,
    parent: Ints,
    depth: Ints,
    leaves: Ints,
    order: Longs,
    k: int,
    tight: bool,
    threads: int,
) -> Ints:
    """The cluster of every transaction; those that are left over go where the distortion grows least.

    Of transactions, clusters and swaps that are equally good, the earlier is taken.

    Args:
        start: The items of transaction t are node[start[t]:start[t + 1]], each once.
        node: Items.
        count: How often the transaction has each.
        parent: The node above each.
        depth: Its depth.
        leaves: How many leaves are at or below each.
        order: All transactions, the longest first; at least k. LCGs are taken in this order.
        k: Least members of a cluster.
        tight: Whether what exceeds the minimum at a node is handed up; in the paper it is dropped.
        threads: How many blocks are worked on at a time; the result does not depend on it.
    """
    clusters = len(order) // k
    step = steps(parent, leaves)
    marked = _marked_nodes(node, count, parent, step)
    blocks = -(-clusters // max(BLOCK // k, 1))
    first = np.arange(blocks + 1) * clusters // blocks
    cut = first * k
    cut[-1] = len(order)

    def found(i: int) -> Ints:
        return _cluster_block(start, node, count, parent, depth, step, marked, order[cut[i] : cut[i + 1]], k, tight)

    cluster = np.empty(len(order), np.int32)
    with ThreadPoolExecutor(threads) as pool:
        for i, mine in enumerate(pool.map(found, range(blocks))):
            cluster[order[cut[i] : cut[i + 1]]] = mine + first[i]
    return cluster


def _marked_nodes(node: Ints, count: Longs, parent: Ints, step: Longs) -> Ints:
    """The nodes at which most of all transactions can be kept; of equals, the earlier."""
    total = _totals(node, count, parent)
    return np.argsort(-total * step, kind="stable")[:_TELLING].astype(np.int32)


@kernel
def _totals(node: Ints, count: Longs, parent: Ints) -> Longs:
    """How many items are at or below each node."""
    total = np.zeros(len(parent), np.int64)
    add_paths(node, count, 0, len(node), parent, total)
    return total


@helper
def _rough(path: Ints, held: Longs, begin: int, end: int, step: Longs, column: Ints, out: Ints) -> None:
    """What a bag keeps at the marked nodes."""
    out[:] = 0
    most = np.int64((1 << 31) - 1)
    for p in range(begin, end):
        if column[path[p]] >= 0:
            out[column[path[p]]] = min(step[path[p]] * held[p], most)


@helper
def _nearest(rough: Ints, size: Longs, one: Ints, alive: Bools, first: int, near: Longs, value: Longs) -> int:
    """The living rows from `first` on that are nearest to one, the nearest first; of equals, the earlier.

    Near is who has much in common with it and is not large. Gives how many there are.
    """
    found = 0
    for i in range(first, len(rough)):
        if not alive[i]:
            continue
        common = np.int64(0)
        for j in range(_TELLING):
            common += min(one[j], rough[i, j])
        score = 2 * common - size[i]
        if found == len(near) and score <= value[found - 1]:
            continue
        if found < len(near):
            found += 1
        j = found - 1
        while j > 0 and value[j - 1] < score:
            value[j] = value[j - 1]
            near[j] = near[j - 1]
            j -= 1
        value[j] = score
        near[j] = i
    return found


@helper
def _put(path: Ints, held: Longs, begin: int, end: int, total: Longs) -> None:
    """Set totals."""
    for p in range(begin, end):
        total[path[p]] = held[p]


@helper
def _take(path: Ints, begin: int, end: int, total: Longs) -> None:
    """Set them to 0 again."""
    for p in range(begin, end):
        total[path[p]] = 0


@helper
def _with(t: int, bags: Bags, rule: Rule, bag: Ints, kept: Longs, end: int, write: bool) -> np.int64:
    """What the LCG of a bag and a transaction is worth."""
    first, path, held = bags
    step, depth, tight, total, scratch = rule
    _put(path, held, first[t], first[t + 1], total)
    worth = meet(bag, kept, 0, end, total, step, depth, tight, scratch, write)
    _take(path, first[t], first[t + 1], total)
    return worth


@helper
def _fold(member: Longs, without: int, bags: Bags, rule: Rule, bag: Ints, kept: Longs) -> tuple[int, np.int64]:
    """The LCG of some transactions but one, written to `bag` and `kept`; gives its end and what it is worth."""
    first, path, held = bags
    end = 0
    worth = np.int64(-1)
    for t in member:
        if t == without:
            continue
        if worth < 0:
            worth = np.int64(0)
            for p in range(first[t], first[t + 1]):
                bag[end] = path[p]
                kept[end] = held[p]
                worth += rule[0][path[p]] * held[p]
                end += 1
        else:
            worth = _with(t, bags, rule, bag, kept, end, True)
            end = squeeze(bag, kept, 0, end)
    return end, worth


@helper
def _add_worth(member: Longs, bags: Bags, rule: Rule, bag: Ints, kept: Longs, end: Longs, worth: Longs) -> None:
    """Add what the LCG of every bag, a row, with every transaction, a column, is worth."""
    first, path, held = bags
    step, depth, tight, total, scratch = rule
    for j in range(len(member)):
        begin, stop = first[member[j]], first[member[j] + 1]
        _put(path, held, begin, stop, total)
        for i in range(len(bag)):
            worth[i, j] += meet(bag[i], kept[i], 0, end[i], total, step, depth, tight, scratch, False)
        _take(path, begin, stop, total)


@helper
def _gather(bags: Bags, rule: Rule, rough: Ints, k: int, bag: Ints, kept: Longs) -> tuple[Longs, Bools]:
    """The members of every cluster, ascending, and which transactions are left over.

    The first transaction that is left takes, one by one, that of the near ones with which the LCG is worth most.
    """
    first, path, held = bags
    step, depth, tight, total, scratch = rule
    alive = np.ones(len(rough), np.bool_)
    near, value = np.empty(max(_NEAR, 4 * k), np.int64), np.empty(max(_NEAR, 4 * k), np.int64)
    size = np.zeros(len(rough), np.int64)  # here large ones are welcome
    member = np.empty((len(rough) // k, k), np.int64)
    seed = 0
    for c in range(len(member)):
        while not alive[seed]:
            seed += 1
        member[c, 0] = seed
        alive[seed] = False
        candidates = _nearest(rough, size, rough[seed], alive, seed, near, value)
        for j in range(1, k):
            end, _ = _fold(member[c, :j], -1, bags, rule, bag, kept)
            _put(bag, kept, 0, end, total)
            best, most = -1, np.int64(-1)
            for i in range(candidates):
                t = near[i]
                if alive[t]:
                    worth = meet(path, held, first[t], first[t + 1], total, step, depth, tight, scratch, False)
                    if worth > most:
                        best, most = t, worth
            _take(bag, 0, end, total)
            member[c, j] = best
            alive[best] = False
        member[c].sort()
    return member, alive


@helper
def _swap(member: Longs, bags: Bags, rule: Rule, column: Ints, longest: np.int64) -> None:
    """Let every cluster and those near to it swap the two members whose swap keeps most, if it keeps more."""
    clusters, k = member.shape
    bag, kept = np.empty((2, k, longest), np.int32), np.empty((2, k, longest), np.int64)
    end = np.empty((2, k), np.int64)
    worth = np.empty(clusters, np.int64)
    rough = np.zeros((clusters, _TELLING), np.int32)
    size = np.empty(clusters, np.int64)
    alive = np.ones(clusters, np.bool_)
    partner, value = np.empty(_PARTNERS, np.int64), np.empty(_PARTNERS, np.int64)
    gain = np.empty((k, k), np.int64)
    for c in range(clusters):
        stop, worth[c] = _fold(member[c], -1, bags, rule, bag[0, 0], kept[0, 0])
        _rough(bag[0, 0], kept[0, 0], 0, stop, rule[0], column, rough[c])
        size[c] = rough[c].sum()
    for c in range(clusters):
        for a in range(k):
            end[0, a], _ = _fold(member[c], member[c, a], bags, rule, bag[0, a], kept[0, a])
        for i in range(_nearest(rough, size, rough[c], alive, c + 1, partner, value)):
            d = partner[i]
            for b in range(k):
                end[1, b], _ = _fold(member[d], member[d, b], bags, rule, bag[1, b], kept[1, b])
            gain[:] = 0
            _add_worth(member[d], bags, rule, bag[0], kept[0], end[0], gain)
            _add_worth(member[c], bags, rule, bag[1], kept[1], end[1], gain.T)
            best = gain.argmax()
            a, b = best // k, best % k
            if gain[a, b] <= worth[c] + worth[d]:
                continue
            mine, theirs = member[c].copy(), member[d].copy()
            mine[a], theirs[b] = member[d, b], member[c, a]
            mine.sort()
            theirs.sort()
            # The paper's rule depends on the order, so what was found is looked at again in order.
            _, here = _fold(mine, -1, bags, rule, bag[1, 0], kept[1, 0])
            _, there = _fold(theirs, -1, bags, rule, bag[1, 0], kept[1, 0])
            if here + there > worth[c] + worth[d]:
                member[c], member[d] = mine, theirs
                worth[c], worth[d] = here, there
                for a in range(k):
                    end[0, a], _ = _fold(member[c], member[c, a], bags, rule, bag[0, a], kept[0, a])


@kernel
def _cluster_block(
    start: Longs,
    node: Ints,
    count: Longs,
    parent: Ints,
    depth: Ints,
    step: Longs,
    marked: Ints,
    block: Longs,
    k: int,
    tight: bool,
) -> Ints:
    """The cluster of every transaction of a block."""
    n = len(block)
    total = np.zeros(len(parent), np.int64)
    rule = (step, depth, tight, total, np.zeros((3, depth.max() + 2), np.int64))
    room = 0
    for t in block:
        for i in range(start[t], start[t + 1]):
            room += depth[node[i]]
    first = np.zeros(n + 1, np.int64)
    path, held = np.empty(room, np.int32), np.empty(room, np.int64)
    column = np.full(len(parent), -1, np.int32)
    for j in range(len(marked)):
        column[marked[j]] = j
    rough = np.zeros((n, _TELLING), np.int32)
    longest = np.int64(0)
    for t in range(n):
        low, high = start[block[t]], start[block[t] + 1]
        first[t + 1] = write_paths(node, count, low, high, parent, total, first[t], path, held)
        clear_paths(node, low, high, parent, total)
        _rough(path, held, first[t], first[t + 1], step, column, rough[t])
        longest = max(longest, first[t + 1] - first[t])
    bags = (first, path, held)
    bag, kept = np.empty(longest, np.int32), np.empty(longest, np.int64)
    member, left = _gather(bags, rule, rough, k, bag, kept)
    if k > 1:
        for _ in range(_PASSES):
            _swap(member, bags, rule, column, longest)
    cluster = np.full(n, -1, np.int32)
    for c in range(len(member)):
        for t in member[c]:
            cluster[t] = c
    rest = np.flatnonzero(left)
    for i in range(len(rest)):
        best, most = -1, np.int64(0)
        for c in range(len(member)):
            mine = np.concatenate((member[c], rest[:i][cluster[rest[:i]] == c]))
            end, worth = _fold(mine, -1, bags, rule, bag, kept)
            joint = _with(rest[i], bags, rule, bag, kept, end, False)
            more = (len(mine) + 1) * joint - len(mine) * worth
            if best < 0 or more > most:
                best, most = c, more
        cluster[rest[i]] = best
    return cluster
