"""Distances of users by the categories of their queries (Batet et al. 2013): one user against all.

The similarity of two categories is the share of their generalizations that they have in common, the root left out. Of
the other's categories only the nearest to a category counts. In a tree that one lies below the lowest common
generalization, as high up as possible, so it is enough to know how high the highest category below every node is.
Similarities are whole numbers of 2**-32, so that sums depend neither on their order nor on threads.
"""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Ints, Longs

ONE = 1 << 32


@kernel
def highest(start: Longs, node: Ints, parent: Ints, depth: Ints) -> tuple[Longs, Ints, Ints]:
    """For every user, the nodes at or above his categories, ascending, and how high the highest category below each is.

    Args:
        start: The categories of user u are node[start[u]:start[u + 1]].
        node: Categories.
        parent: The node above each.
        depth: Its depth.

    Returns:
        Where the nodes of each user start, the nodes, and the least depth of a category at or below each.
    """
    n = len(start) - 1
    room = np.zeros(n + 1, np.int64)
    for u in range(n):
        room[u + 1] = room[u]
        for i in range(start[u], start[u + 1]):
            room[u + 1] += depth[node[i]]
    above = np.empty(room[-1], np.int32)
    least = np.empty(room[-1], np.int32)
    out = np.zeros(n + 1, np.int64)
    for u in range(n):
        used = room[u]
        for i in range(start[u], start[u + 1]):
            at = node[i]
            while depth[at] > 0:
                above[used] = at
                least[used] = depth[node[i]]
                used += 1
                at = parent[at]
        order = np.argsort(above[room[u] : used], kind="mergesort") + room[u]
        nodes, depths = above[order].copy(), least[order].copy()
        to = out[u]
        for i in range(len(nodes)):
            if i > 0 and nodes[i] == nodes[i - 1]:
                least[to - 1] = min(least[to - 1], depths[i])
            else:
                above[to] = nodes[i]
                least[to] = depths[i]
                to += 1
        out[u + 1] = to
    return out, above[: out[n]].copy(), least[: out[n]].copy()


@kernel
def shares(height: int) -> Longs:
    """shares[a, d]: the similarity of two categories whose depths add up to d, the lowest common node being at a."""
    found = np.zeros((height + 1, 2 * height + 1), np.int64)
    for a in range(1, height + 1):
        for d in range(2 * a, 2 * height + 1):
            found[a, d] = (2 * a * ONE + d - a) // (2 * (d - a))  # rounded
    return found


@kernel
def one_way(
    v: int,
    start: Longs,
    node: Ints,
    weight: Longs,
    parent: Ints,
    depth: Ints,
    share: Longs,
    mine: tuple[Longs, Ints, Ints],
    best: Longs,
) -> Longs:
    """For every user, the similarities of his categories to the nearest ones of v, by their weights.

    Args:
        v: The user.
        start: The categories of user u are node[start[u]:start[u + 1]].
        node: Categories.
        weight: How often.
        parent: The node above each, which has a lower number.
        depth: Its depth.
        share: What `shares` gives.
        mine: What `highest` gives.
        best: As long as there are nodes; for scratch.
    """
    above_start, above, least = mine
    first, last = above_start[v], above_start[v + 1]
    # reach[j, d]: how similar a category of depth d is that lies below the j-th node of v and below none deeper.
    reach = np.zeros((last - first + 1, share.shape[0]), np.int64)
    best[0] = 0
    at = first
    for i in range(1, len(parent)):
        j = best[parent[i]]
        if at < last and above[at] == i:
            at += 1
            for d in range(depth[i], share.shape[0]):
                reach[at - first, d] = max(reach[j, d], share[depth[i], d + least[at - 1]])
            j = at - first
        best[i] = j  # the number of the node of v that is the deepest at or above this one
    for i in range(1, len(parent)):
        best[i] = reach[best[i], depth[i]]
    out = np.zeros(len(start) - 1, np.int64)
    for u in range(len(start) - 1):
        total = np.int64(0)
        for i in range(start[u], start[u + 1]):
            total += weight[i] * best[node[i]]
        out[u] = total
    return out


@kernel
def other_way(
    v: int,
    start: Longs,
    node: Ints,
    weight: Longs,
    parent: Ints,
    depth: Ints,
    share: Longs,
    users: tuple[Longs, Ints, Ints],
) -> Longs:
    """For every user, the similarities of the categories of v to the nearest ones of his, by their weights.

    Args:
        v: The user.
        start: The categories of user u are node[start[u]:start[u + 1]].
        node: Categories.
        weight: How often.
        parent: The node above each.
        depth: Its depth.
        share: What `shares` gives.
        users: What `postings` makes of what `highest` gives.
    """
    out = np.zeros(len(start) - 1, np.int64)
    post, user, high = users
    found = np.zeros(len(start) - 1, np.int64)
    for i in range(start[v], start[v + 1]):
        at = top = node[i]
        while depth[at] > 0:
            for p in range(post[at], post[at + 1]):
                found[user[p]] = max(found[user[p]], share[depth[at], depth[node[i]] + high[p]])
            top = at
            at = parent[at]
        if depth[top] > 0:
            for p in range(post[top], post[top + 1]):
                out[user[p]] += weight[i] * found[user[p]]
                found[user[p]] = 0
    return out


@kernel
def common(v: int, start: Longs, item: Ints, weight: Longs, users: tuple[Longs, Ints, Ints]) -> Longs:
    """The same without semantics: two items are alike if they are the same."""
    out = np.zeros(len(start) - 1, np.int64)
    post, user, times = users
    for i in range(start[v], start[v + 1]):
        for p in range(post[item[i]], post[item[i] + 1]):
            out[user[p]] += ONE * (weight[i] + times[p])
    return out


@helper
def alike(a: int, b: int, parent: Ints, depth: Ints, share: Longs) -> np.int64:
    """The similarity of two categories."""
    both = depth[a] + depth[b]
    while a != b:
        if depth[a] >= depth[b]:
            a = parent[a]
        else:
            b = parent[b]
    return np.int64(share[depth[a], both])


@kernel
def centres(start: Longs, node: Ints, weight: Longs, parent: Ints, depth: Ints, share: Longs) -> Ints:
    """The category of every group that is nearest to all its categories, by their weights; of equals, the first.

    Args:
        start: The categories of group g are node[start[g]:start[g + 1]], each once, ascending.
        node: Categories.
        weight: How often.
        parent: The node above each.
        depth: Its depth.
        share: What `shares` gives.
    """
    out = np.empty(len(start) - 1, np.int32)
    for g in range(len(start) - 1):
        best = np.int64(-1)
        for i in range(start[g], start[g + 1]):
            total = np.int64(0)
            for j in range(start[g], start[g + 1]):
                total += weight[j] * alike(node[i], node[j], parent, depth, share)
            if total > best:
                best = total
                out[g] = node[i]
    return out


@kernel
def nearness(node: Ints, centre: Ints, parent: Ints, depth: Ints, share: Longs) -> Longs:
    """The similarity of each category to a centre."""
    out = np.empty(len(node), np.int64)
    for i in range(len(node)):
        out[i] = alike(node[i], centre[i], parent, depth, share)
    return out


@kernel
def take_nearest(start: Longs, order: Longs, weight: Longs, quota: Longs) -> Longs:
    """How often each item of each user is taken: in an order, with its repetitions, up to his quota."""
    taken = np.zeros(len(weight), np.int64)
    for u in range(len(start) - 1):
        left = quota[u]
        for i in range(start[u], start[u + 1]):
            taken[order[i]] = min(left, weight[order[i]])
            left -= taken[order[i]]
    return taken
