"""Top-down generalization of transactions, local to groups of them (He and Naughton 2009, Partition).

All transactions begin as one partition that is published as the root alone. A partition is split by one of the nodes
that it is published with: its transactions are sent to sub-partitions by the children of that node that they have items
below, and these children are published in its place. Only sets of children that some transaction has are ever looked
at. A trie, whose edges are kept in a hash table, distinguishes them exactly.

No published node is above another one, and every transaction of a partition has an item at or below each of its nodes.
So the items that the nodes stand for are distinct, whatever else a transaction has.
"""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.trees import ancestors
from queryveil.kernels.types import Bools, Ints, Longs

_MIX = np.uint64(0x9E3779B97F4A7C15)
_LEFT = np.int32(-1)  # the label of transactions that no sub-partition takes


@helper
def _child(lines: tuple[Longs, Ints], depth: Ints, above: int, item: int) -> np.int32:
    """The child of a node that an item below it is at or below."""
    first, line = lines
    return np.int32(line[first[item] + depth[item] - depth[above] - 1])


@helper
def _weigh(
    members: Ints, start: Longs, item: Ints, nodes: Ints, shut: Bools, lines: tuple[Longs, Ints], depth: Ints,
    end: Ints, weight: Longs, gain: Longs, below: Longs
) -> None:  # fmt: skip
    """What a partition gains by each of its nodes that is not shut, and how many items it has below them."""
    gain[: len(nodes)] = 0
    below[: len(nodes)] = 0
    for t in members:
        at = 0
        for i in range(start[t], start[t + 1]):
            while at < len(nodes) and end[nodes[at]] <= item[i]:
                at += 1
            if at == len(nodes):
                break
            if nodes[at] < item[i] and not shut[at]:
                gain[at] += weight[nodes[at]] - weight[_child(lines, depth, nodes[at], item[i])]
                below[at] += 1


@helper
def _first_below(start: Longs, item: Ints, t: int, node: int) -> np.int64:
    """Where the items of a transaction begin that come after a node."""
    low, high = start[t], start[t + 1]
    while low < high:
        middle = (low + high) // 2
        if item[middle] > node:
            high = middle
        else:
            low = middle + 1
    return np.int64(low)


@helper
def _label(
    members: Ints, start: Longs, item: Ints, node: int, below: int, k: int, lines: tuple[Longs, Ints], depth: Ints,
    end: Ints, table: tuple[Longs, Ints], states: tuple[Ints, Ints], label: Ints, size: Longs
) -> int:  # fmt: skip
    """Number the sets of children that at least k transactions have, by their first transaction.

    Args:
        members: The transactions of the partition.
        start: The items of transaction t are item[start[t]:start[t + 1]].
        item: Items.
        node: The node whose children count.
        below: How many items there are below it.
        k: Least transactions of a set.
        lines: Every node and what is above it.
        depth: The depth of each node.
        end: The first node that is not below each.
        table: The edges of the trie, and where they lead; for scratch.
        states: How many sets end at a state of the trie, and the number of that set; for scratch.
        label: Receives the number of each transaction's set, -1 if it has none.
        size: Receives how many transactions each set has.

    Returns:
        How many sets there are.
    """
    edge, leads = table
    count, number = states
    bits = 1
    while (1 << bits) < 2 * below:
        bits += 1
    mask = (1 << bits) - 1
    edge[: 1 << bits] = -1
    count[0] = 0
    number[0] = _LEFT
    known = 1
    for j in range(len(members)):
        t = members[j]
        state, before = np.int64(0), np.int32(-1)
        for i in range(_first_below(start, item, t, node), start[t + 1]):
            if item[i] >= end[node]:
                break
            child = _child(lines, depth, node, item[i])
            if child == before:
                continue
            before = child
            key = state << 32 | child
            slot = np.int64((np.uint64(key) * _MIX) >> np.uint64(64 - bits))
            while edge[slot] >= 0 and edge[slot] != key:
                slot = (slot + 1) & mask
            if edge[slot] < 0:
                edge[slot] = key
                leads[slot] = known
                count[known] = 0
                number[known] = _LEFT
                known += 1
            state = np.int64(leads[slot])
        label[j] = state
        count[state] += 1
    count[0] = 0  # no item below the node: nothing to publish in its place
    found = 0
    for j in range(len(members)):
        state = np.int64(label[j])
        if count[state] >= k and number[state] < 0:
            number[state] = found
            size[found] = count[state]
            found += 1
        label[j] = number[state]
    return found


@helper
def _fill(label: Ints, size: Longs, k: int) -> None:
    """See that the left-over has no transaction or at least k."""
    short = k - (len(label) - size.sum())
    if short <= 0 or short == k:
        return
    if (size - k).sum() < short:
        back = np.argmin(size)
        size[back] = 0
        for j in range(len(label)):
            if label[j] == back:
                label[j] = _LEFT
        return
    give = np.zeros(len(size), np.int64)
    for _ in range(short):
        largest = np.argmax(size)
        size[largest] -= 1
        give[largest] += 1
    for j in range(len(label) - 1, -1, -1):
        if label[j] >= 0 and give[label[j]] > 0:
            give[label[j]] -= 1
            label[j] = _LEFT


@helper
def _sort(members: Ints, label: Ints, size: Longs, room: Ints) -> Longs:
    """Put the transactions of each sub-partition together, the left-over last; where each starts."""
    begin = np.zeros(len(size) + 2, np.int64)
    begin[1:-1] = np.cumsum(size)
    begin[-1] = len(members)
    at = begin.copy()
    for j in range(len(members)):
        to = label[j] if label[j] >= 0 else len(size)
        room[at[to]] = members[j]
        at[to] += 1
    members[:] = room[: len(members)]
    return begin


@helper
def _in_order(order: Ints, bounds: Longs, starts: Longs, nodes: Ints) -> tuple[Ints, Longs, Ints]:
    """Partitions numbered by their first transactions, and their nodes in that order."""
    n, found = len(order), len(bounds) - 1
    of = np.empty(n, np.int32)
    for p in range(found):
        for j in range(bounds[p + 1], bounds[p]):
            of[order[j]] = p
    new = np.full(found, -1, np.int32)
    out_start = np.zeros(found + 1, np.int64)
    out = np.empty(starts[found], np.int32)
    known = 0
    for t in range(n):
        p = of[t]
        if new[p] < 0:
            new[p] = known
            size = starts[p + 1] - starts[p]
            out_start[known + 1] = out_start[known] + size
            out[out_start[known] : out_start[known + 1]] = nodes[starts[p] : starts[p + 1]]
            known += 1
        of[t] = new[p]
    return of, out_start, out


def partition_transactions(
    start: Longs, item: Ints, parent: Ints, depth: Ints, end: Ints, leaves: Ints, k: int,
    begun: tuple[Longs, Longs, Ints, Bools] | None = None
) -> tuple[Ints, Longs, Ints]:  # fmt: skip
    """Partitions of at least k transactions, and the nodes that stand for the items of all transactions of each.

    A partition is split by the node that gains most of those by which it can be split; of equals, by the smallest. The
    gain of node v is what the normalized certainty penalty of the items below v falls by, in leaves: the sum of
    w(v) - w(c) over all items of all its transactions that are below v, c being the child of v at or above the item,
    and w(x) the leaves of x, or 0 if x has only one.

    To split by v, each transaction goes to the sub-partition of exactly those children of v that it has items below. An
    item that is v itself is not looked at: if the transaction has others below v, that item is no longer stood for,
    and if it has none, no sub-partition takes the transaction. Sub-partitions of fewer than k and the transactions
    that none takes are the left-over, which keeps v. A left-over that has some transactions but fewer than k takes as
    many as it lacks, one after the other the last transaction of the sub-partition that is then the largest; of equals,
    the one with the earliest transaction. If that would push one of them under k, it takes nothing of that, and the
    smallest sub-partition, of equals the one with the earliest transaction, comes back whole. If no sub-partition
    is left, the partition cannot be split by v. Sub-partitions and the left-over are split again in the same way, each
    for itself.

    Args:
        start: The items of transaction t are item[start[t]:start[t + 1]], at least one.
        item: Nodes of the tree, each once in a transaction, ascending.
        parent: The node above each.
        depth: Its depth.
        end: The first node that is not below it.
        leaves: Its leaves.
        k: Least transactions of a partition. If there are fewer at all, they are one partition, published as the root.
        begun: Where to go on, if not with all in one partition: the first transaction of each partition, which lie one
            behind the other, and the end of the last; where its nodes begin in the same way; its nodes, ascending; and
            which of them are shut, because it cannot be split by them.

    Returns:
        The partition of each transaction, numbered in the order of their first transactions; where the nodes of each
        partition start; and the nodes, ascending.
    """
    if begun is None:
        n = len(start) - 1
        begun = np.array([0, n]), np.array([0, 1]), np.zeros(1, np.int32), np.zeros(1, np.bool_)
    return _split(start, item, parent, depth, end, leaves, k, *begun)


@kernel
def _split(
    start: Longs, item: Ints, parent: Ints, depth: Ints, end: Ints, leaves: Ints, k: int, first: Longs,
    first_node: Longs, begun_nodes: Ints, begun_shut: Bools
) -> tuple[Ints, Longs, Ints]:  # fmt: skip
    """The partitions of `partition_transactions`, from those that were begun."""
    n = len(start) - 1
    lines = ancestors(parent, depth, np.arange(len(parent)).astype(np.int32))
    weight = np.where(leaves == 1, 0, leaves).astype(np.int64)
    longest = np.int64(1)
    for t in range(n):
        longest = max(longest, start[t + 1] - start[t])
    bits = 1
    while (1 << bits) < 2 * len(item):
        bits += 1
    table = np.empty(1 << bits, np.int64), np.empty(1 << bits, np.int32)
    states = np.empty(len(item) + 1, np.int32), np.empty(len(item) + 1, np.int32)
    gain, below = np.empty(longest, np.int64), np.empty(longest, np.int64)
    nodes, shut = np.empty(longest, np.int32), np.empty(longest, np.bool_)
    order = np.arange(n).astype(np.int32)
    room, labels = np.empty(n, np.int32), np.empty(n, np.int32)
    sizes = np.empty(n // k + 1, np.int64)
    # A transaction has at least as many items as its partition has nodes, and a partition has at least k of them. So
    # this is room for the nodes of all partitions, done or waiting.
    most = len(item) // k + 1
    wait_nodes, wait_shut = np.empty(most, np.int32), np.empty(most, np.bool_)
    wait_order, wait_start = np.zeros(n // k + 2, np.int64), np.zeros(n // k + 2, np.int64)
    done_nodes = np.empty(most, np.int32)
    done_order, done_start = np.zeros(n // k + 2, np.int64), np.zeros(n // k + 2, np.int64)
    # Those that wait lie one behind the other, and so do their transactions; the last is next. Those that are done
    # were the last at their time, so their transactions lie behind all that wait, from the end on.
    waiting = len(first) - 1 if n > 0 else 0
    for p in range(waiting):
        wait_order[p + 1], wait_start[p + 1] = first[p + 1], first_node[p + 1]
    wait_nodes[: len(begun_nodes)], wait_shut[: len(begun_nodes)] = begun_nodes, begun_shut
    done = 0
    while waiting > 0:
        waiting -= 1
        low = wait_order[waiting]
        members = order[low : wait_order[waiting + 1]]
        width = wait_start[waiting + 1] - wait_start[waiting]
        nodes[:width] = wait_nodes[wait_start[waiting] : wait_start[waiting + 1]]
        # A node that was tried is shut, and stays so in what keeps it. Either fewer than k agree in a set of its
        # children, and of a part of them no more do. Or those who agree came back to a left-over that could not be
        # filled; then both together are fewer than 2k, who never part again.
        shut[:width] = wait_shut[wait_start[waiting] : wait_start[waiting + 1]]
        label = labels[: len(members)]
        _weigh(members, start, item, nodes[:width], shut, lines, depth, end, weight, gain, below)
        split, groups = -1, 0
        while True:
            best = -1
            for at in range(width):
                if below[at] > 0 and not shut[at] and (best < 0 or gain[at] > gain[best]):
                    best = at
            if best < 0:
                break
            groups = _label(
                members, start, item, nodes[best], below[best], k, lines, depth, end, table, states, label, sizes
            )
            shut[best] = True
            if groups > 0:
                _fill(label, sizes[:groups], k)
                if sizes[:groups].sum() > 0:
                    split = best
                    break
        if split < 0:
            done_nodes[done_start[done] : done_start[done] + width] = nodes[:width]
            done_start[done + 1] = done_start[done] + width
            done_order[done + 1] = done_order[done] + len(members)
            done += 1
            continue
        begin = _sort(members, label, sizes[:groups], room)
        for g in range(groups + 1):
            if begin[g] == begin[g + 1]:
                continue
            to = wait_start[waiting]
            for at in range(width):
                if at != split or g == groups:
                    wait_nodes[to] = nodes[at]
                    wait_shut[to] = shut[at]
                    to += 1
                    continue
                t = members[begin[g]]
                before = np.int32(-1)
                for i in range(_first_below(start, item, t, nodes[split]), start[t + 1]):
                    if item[i] >= end[nodes[split]]:
                        break
                    child = _child(lines, depth, nodes[split], item[i])
                    if child != before:
                        wait_nodes[to] = before = child
                        wait_shut[to] = False
                        to += 1
            wait_start[waiting + 1] = to
            wait_order[waiting + 1] = low + begin[g + 1]
            waiting += 1
    return _in_order(order, n - done_order[: done + 1], done_start, done_nodes)
