"""The least common generalization (LCG) of transactions, bags of nodes of a tree (Milani Fard and Wang 2010).

A bag is held as its totals: how many of its items are at or below each node, over the nodes on the paths of its items.
The root is left out of them; what is not below another node is at the root, and the length of the bag says how much.
A generalization loses the less the larger its totals are: GGD x (M - 1) = (M - 1) x all items - |S| x `worth`.

The tighter rule takes the least total at every node, so it is associative and independent of order. Under the paper's
rule the LCG of two bags does not depend on their order, but Lemma 1 fails, as in <a a c>, <a a a>, <b b b> with a, b, c
below p: taken at once they give <p p p>, one by one <p p root>; what is here takes bags one by one, as Clump does.
"""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Ints, Longs


@kernel
def steps(parent: Ints, leaves: Ints) -> Longs:
    """What an item gains when it need not be generalized from a node to the one above: the leaves in between."""
    out = np.zeros(len(parent), np.int64)
    for at in range(1, len(parent)):
        out[at] = leaves[parent[at]] - leaves[at]
    return out


@helper
def add_paths(node: Ints, count: Longs, low: int, high: int, parent: Ints, total: Longs) -> None:
    """Add the items from `low` to `high` to the totals of all nodes on their paths."""
    for i in range(low, high):
        at = node[i]
        while at > 0:
            total[at] += count[i]
            at = parent[at]


@helper
def clear_paths(node: Ints, low: int, high: int, parent: Ints, total: Longs) -> None:
    """Set the totals of all nodes on the paths of the items from `low` to `high` to 0."""
    for i in range(low, high):
        at = node[i]
        while at > 0 and total[at] > 0:
            total[at] = 0
            at = parent[at]


@helper
def write_paths(
    node: Ints, count: Longs, low: int, high: int, parent: Ints, total: Longs, begin: int, path: Ints, held: Longs
) -> int:
    """Write the nodes on the paths of the items, ascending, and their totals from place `begin` on; gives the end.

    The totals must be 0 before, and are left as they are after it.
    """
    end = begin
    for i in range(low, high):
        at = node[i]
        while at > 0:
            if total[at] == 0:
                path[end] = at
                end += 1
            total[at] += count[i]
            at = parent[at]
    path[begin:end].sort()
    for p in range(begin, end):
        held[p] = total[path[p]]
    return end


@helper
def meet(
    path: Ints,
    held: Longs,
    begin: int,
    end: int,
    total: Longs,
    step: Longs,
    depth: Ints,
    tight: bool,
    scratch: Longs,
    write: bool,
) -> np.int64:
    """What the LCG of two bags is worth.

    Args:
        path: The nodes of the first bag are path[begin:end], ascending.
        held: Its totals.
        begin: Its first place.
        end: The place after its last.
        total: The totals of the other bag, at the places of the nodes.
        step: What `steps` gives.
        depth: The depth of every node.
        tight: Whether what exceeds the minimum at a node is handed up.
        scratch: Three rows of zeros, longer than any depth by 2; zeros again after it.
        write: Whether to replace the totals of the first bag by those of the LCG.
    """
    worth = np.int64(0)
    if tight:
        for p in range(begin, end):
            both = min(held[p], total[path[p]])
            worth += step[path[p]] * both
            if write:
                held[p] = both
        return worth
    # Backwards all that is below a node comes before it, so that a row of sums a level is enough. Nodes that only one
    # bag has need no look: they hand everything up to the first node that both have.
    for p in range(end - 1, begin - 1, -1):
        at = path[p]
        here = depth[at]
        if total[at] > 0:
            mine, theirs, both = scratch[0, here + 1], scratch[1, here + 1], scratch[2, here + 1]
            scratch[0, here + 1] = scratch[1, here + 1] = scratch[2, here + 1] = 0
            if held[p] > mine and total[at] > theirs:
                both += min(held[p] - mine, total[at] - theirs)
                mine, theirs = held[p], total[at]
            # What stopped at or below this node: of one bag, of the other, and in the LCG.
            scratch[0, here] += mine
            scratch[1, here] += theirs
            scratch[2, here] += both
            worth += step[at] * both
            if write:
                held[p] = both
        elif write:
            held[p] = 0
    scratch[0, 1] = scratch[1, 1] = scratch[2, 1] = 0
    return worth


@helper
def squeeze(path: Ints, held: Longs, begin: int, end: int) -> int:
    """Leave out nodes with no items; gives the new end."""
    to = begin
    for p in range(begin, end):
        if held[p] > 0:
            path[to] = path[p]
            held[to] = held[p]
            to += 1
    return to


@kernel
def lcgs(
    start: Longs,
    node: Ints,
    count: Longs,
    parent: Ints,
    depth: Ints,
    leaves: Ints,
    order: Longs,
    cluster: Ints,
    clusters: int,
    tight: bool,
) -> tuple[Longs, Ints, Longs]:
    """The LCG of every cluster.

    Args:
        start: The items of transaction t are node[start[t]:start[t + 1]], each once.
        node: Items.
        count: How often the transaction has each.
        parent: The node above each.
        depth: Its depth.
        leaves: How many leaves are at or below each.
        order: All transactions, in the order in which they are taken; the tighter rule is independent of it.
        cluster: The cluster of every transaction.
        clusters: How many there are; each has a transaction.
        tight: Whether what exceeds the minimum at a node is handed up; in the paper it is dropped.

    Returns:
        Where the items of each LCG start, the items ascending, and how often each is in it.
    """
    first = np.zeros(clusters + 1, np.int64)
    for t in order:
        first[cluster[t] + 1] += 1
    for c in range(clusters):
        first[c + 1] += first[c]
    put = first.copy()
    member = np.empty(len(order), np.int64)
    for t in order:
        member[put[cluster[t]]] = t
        put[cluster[t]] += 1
    room = 0
    for c in range(clusters):
        items = 0
        for i in range(start[member[first[c]]], start[member[first[c]] + 1]):
            items += depth[node[i]]
        room = max(room, items)
    path, held = np.empty(room, np.int32), np.empty(room, np.int64)
    step = steps(parent, leaves)
    total = np.zeros(len(parent), np.int64)
    scratch = np.zeros((3, depth.max() + 2), np.int64)
    out = np.zeros(clusters + 1, np.int64)
    # An LCG has as many items as the shortest of its transactions, and no more distinct ones.
    every = count.sum()
    most = np.int64(0)
    for c in range(clusters):
        shortest = every
        for t in member[first[c] : first[c + 1]]:
            shortest = min(shortest, count[start[t] : start[t + 1]].sum())
        most += shortest
    found, copies = np.empty(most, np.int32), np.empty(most, np.int64)
    for c in range(clusters):
        end = 0
        length = np.int64(0)
        for m in range(first[c], first[c + 1]):
            low, high = start[member[m]], start[member[m] + 1]
            mine = count[low:high].sum()
            if m == first[c]:
                end = write_paths(node, count, low, high, parent, total, 0, path, held)
                length = mine
            else:
                add_paths(node, count, low, high, parent, total)
                meet(path, held, 0, end, total, step, depth, tight, scratch, True)
                end = squeeze(path, held, 0, end)
                length = min(length, mine)
            clear_paths(node, low, high, parent, total)
        # Totals become copies when those below a node are taken off.
        top = np.int64(0)
        for p in range(end):
            total[path[p]] = held[p]
        for p in range(end):
            if parent[path[p]] > 0:
                total[parent[path[p]]] -= held[p]
            else:
                top += held[p]
        to = out[c]
        if length > top:
            found[to] = 0
            copies[to] = length - top
            to += 1
        for p in range(end):
            if total[path[p]] > 0:
                found[to] = path[p]
                copies[to] = total[path[p]]
                to += 1
            total[path[p]] = 0
        out[c + 1] = to
    return out, found[: out[clusters]].copy(), copies[: out[clusters]].copy()


@kernel
def distortions(
    lcg_start: Longs, lcg_node: Ints, lcg_count: Longs, leaves: Ints, length: Longs, cluster: Ints
) -> Longs:
    """GGD x (M - 1) of every cluster: |S| x the sum of leaves(i) - 1, and M - 1 for every suppressed item.

    M - 1 is 1 in a tree with one leaf. Also for LCGs from which items were taken, as in Clump2.

    Args:
        lcg_start: The items of LCG c are lcg_node[lcg_start[c]:lcg_start[c + 1]].
        lcg_node: Items.
        lcg_count: How often.
        leaves: How many leaves are at or below each node.
        length: How many items each transaction has.
        cluster: The cluster of every transaction.
    """
    unit = max(np.int64(leaves[0]) - 1, 1)
    clusters = len(lcg_start) - 1
    size = np.zeros(clusters, np.int64)
    out = np.zeros(clusters, np.int64)
    for t in range(len(cluster)):
        size[cluster[t]] += 1
        out[cluster[t]] += unit * length[t]
    for c in range(clusters):
        for i in range(lcg_start[c], lcg_start[c + 1]):
            out[c] += size[c] * lcg_count[i] * (leaves[lcg_node[i]] - 1 - unit)
    return out
