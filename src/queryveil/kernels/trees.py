"""Walks in a tree whose nodes are numbered in first-child order: what is below a node follows it."""

import numpy as np

from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Ints, Longs, Singles


@kernel
def preorder(parent: Longs, root: int) -> Longs:
    """The nodes in first-child order, children in the order of their numbers; only those that the root reaches."""
    n = len(parent)
    start = np.zeros(n + 2, np.int64)
    for node in range(n):
        if parent[node] >= 0:
            start[parent[node] + 2] += 1
    for node in range(n):
        start[node + 2] += start[node + 1]
    child = np.empty(n, np.int64)
    for node in range(n):
        if parent[node] >= 0:
            child[start[parent[node] + 1]] = node
            start[parent[node] + 1] += 1
    order = np.empty(n, np.int64)
    waiting = np.empty(n, np.int64)
    waiting[0] = root
    found, top = 0, 1
    while top > 0:
        top -= 1
        node = waiting[top]
        order[found] = node
        found += 1
        # The last child waits longest.
        for at in range(start[node + 1] - 1, start[node] - 1, -1):
            waiting[top] = child[at]
            top += 1
    return order[:found]


@kernel
def measures(parent: Ints) -> tuple[Ints, Ints, Ints]:
    """Of every node: its depth (the root's is 0), the first node that is not below it, and its leaves."""
    n = len(parent)
    depth = np.zeros(n, np.int32)
    end = np.empty(n, np.int32)
    leaves = np.zeros(n, np.int32)
    for node in range(1, n):
        depth[node] = depth[parent[node]] + 1
    for node in range(n):
        end[node] = node + 1
    for node in range(n - 1, -1, -1):
        if leaves[node] == 0:
            leaves[node] = 1
        if node > 0:
            above = parent[node]
            leaves[above] += leaves[node]
            if end[node] > end[above]:
                end[above] = end[node]
    return depth, end, leaves


@kernel
def at_level(parent: Ints, depth: Ints, nodes: Ints, level: int) -> Ints:
    """The ancestor of every node at a depth, the node itself included; -1 where the node is not that deep."""
    out = np.empty(len(nodes), np.int32)
    for i in range(len(nodes)):
        node = nodes[i]
        if node < 0 or depth[node] < level:
            out[i] = -1
            continue
        while depth[node] > level:
            node = parent[node]
        out[i] = node
    return out


@kernel
def ancestors(parent: Ints, depth: Ints, nodes: Ints) -> tuple[Longs, Ints]:
    """Every node and what is above it, from the node up to the root: where each list starts, and the lists."""
    start = np.zeros(len(nodes) + 1, np.int64)
    for i in range(len(nodes)):
        start[i + 1] = start[i] + depth[nodes[i]] + 1
    out = np.empty(start[-1], np.int32)
    for i in range(len(nodes)):
        node = nodes[i]
        for at in range(start[i], start[i + 1]):
            out[at] = node
            node = parent[node]
    return start, out


@kernel
def lca(parent: Ints, end: Ints, a: Ints, b: Ints) -> Ints:
    """The lowest node that a[i] and b[i] are both at or below."""
    out = np.empty(len(a), np.int32)
    for i in range(len(a)):
        node = a[i]
        while not node <= b[i] < end[node]:
            node = parent[node]
        out[i] = node
    return out


@kernel
def add_rows(sums: Singles, nodes: Ints, rows: Singles) -> None:
    """Add rows[i] to the sum of nodes[i]."""
    for i in range(len(nodes)):
        for k in range(sums.shape[1]):
            sums[nodes[i], k] += rows[i, k]


@kernel
def add_to_parents(parent: Ints, sums: Singles) -> None:
    """Make the sum of every node that of all nodes at or below it."""
    for node in range(len(parent) - 1, 0, -1):
        for k in range(sums.shape[1]):
            sums[parent[node], k] += sums[node, k]
