"""Clump: clusters of transactions that lose little when all of a cluster become their LCG (Milani Fard and Wang 2010).

The paper does not say how to break ties; here the earlier cluster is taken. When all clusters are full, the fewer than
k transactions that remain go where the distortion is least, as in the paper. That is often the cluster of the shortest
transactions, whatever they are about, so they can also go where it grows least.
"""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.lcg import add_paths, clear_paths, meet, squeeze, steps, write_paths
from queryveil.kernels.types import Ints, Longs


def seeds_first(order: Longs, k: int) -> Longs:
    """The transactions that begin a cluster, every k-th of an order, and then all others, both in this order."""
    clusters = len(order) // k
    rest = np.ones(len(order), np.bool_)
    rest[: clusters * k : k] = False
    return np.concatenate([order[: clusters * k : k], order[rest]])


@kernel
def greedy(
    start: Longs,
    node: Ints,
    count: Longs,
    parent: Ints,
    depth: Ints,
    leaves: Ints,
    order: Longs,
    k: int,
    r: int,
    tight: bool,
    growth: bool,
) -> Ints:
    """The cluster of every transaction (algorithm 1).

    Each transaction joins that of the first r clusters with fewer than k members where the distortion after joining is
    least; when there is none left, that of all where it is least, or grows least. Of equals, the earlier.

    Args:
        start: The items of transaction t are node[start[t]:start[t + 1]], each once.
        node: Items.
        count: How often the transaction has each.
        parent: The node above each.
        depth: Its depth.
        leaves: How many leaves are at or below each; at least one.
        order: All transactions, as `seeds_first` gives them; at least k.
        k: Least members of a cluster.
        r: How many clusters a transaction looks at.
        tight: Whether what exceeds the minimum at a node is handed up; in the paper it is dropped.
        growth: Whether transactions that remain when all clusters are full go where distortion grows least; in the
            paper they go where it is least.
    """
    clusters = len(order) // k
    first = np.zeros(clusters + 1, np.int64)  # the places of each cluster's LCG, which only shrinks
    for c in range(clusters):
        first[c + 1] = first[c]
        for i in range(start[order[c]], start[order[c] + 1]):
            first[c + 1] += depth[node[i]]
    path, held = np.empty(first[-1], np.int32), np.empty(first[-1], np.int64)
    end = np.empty(clusters, np.int64)
    items, worth = np.zeros(clusters, np.int64), np.zeros(clusters, np.int64)
    size = np.ones(clusters, np.int64)
    cluster = np.empty(len(order), np.int32)
    unit = np.int64(leaves[0]) - 1
    step = steps(parent, leaves)
    total = np.zeros(len(parent), np.int64)
    scratch = np.zeros((3, depth.max() + 2), np.int64)
    for c in range(clusters):
        low, high = start[order[c]], start[order[c] + 1]
        end[c] = write_paths(node, count, low, high, parent, total, first[c], path, held)
        clear_paths(node, low, high, parent, total)
        for p in range(first[c], end[c]):
            worth[c] += step[path[p]] * held[p]
        items[c] = count[low:high].sum()
        cluster[order[c]] = c
    # With k = 1 every transaction is a seed, so none ever looks at the window.
    window = np.arange(min(r, clusters))
    behind = len(window)
    for t in order[clusters:]:
        low, high = start[t], start[t + 1]
        mine = count[low:high].sum()
        add_paths(node, count, low, high, parent, total)
        full = len(window) == 0
        best, least, after, place = -1, np.int64(0), np.int64(0), 0
        for w in range(clusters if full else len(window)):
            c = w if full else window[w]
            joint = meet(path, held, first[c], end[c], total, step, depth, tight, scratch, False)
            loss = unit * (items[c] + mine) - (size[c] + 1) * joint
            if full and growth:
                loss -= unit * items[c] - size[c] * worth[c]
            if best < 0 or loss < least:
                best, least, after, place = c, loss, joint, w
        meet(path, held, first[best], end[best], total, step, depth, tight, scratch, True)
        end[best] = squeeze(path, held, first[best], end[best])
        clear_paths(node, low, high, parent, total)
        worth[best] = after
        items[best] += mine
        size[best] += 1
        cluster[t] = best
        if not full and size[best] == k:
            window[place:-1] = window[place + 1 :].copy()
            if behind < clusters:
                window[-1] = behind
                behind += 1
            else:
                window = window[:-1]
    return cluster
