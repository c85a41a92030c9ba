"""Clusters of queries by the concepts of their terms, top down (Carpineto and Romano 2015, section 4.4: WNGEN).

All queries begin in the cluster of the root, and a cluster hands its queries down to the children of its node, as long
as all clusters that this leaves have k users. Users are counted by stamps: an array says for every user in which count
he was last met.
"""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.trees import ancestors
from queryveil.kernels.types import Ints, Longs


@helper
def _by_node(start: Longs, node: Ints, nodes: int) -> Ints:
    """The queries in the order of their first nodes, those without any first."""
    n = len(start) - 1
    key = np.zeros(n, np.int32)
    place = np.zeros(nodes + 2, np.int64)
    for q in range(n):
        if start[q] < start[q + 1]:
            key[q] = node[start[q]] + 1
        place[key[q] + 1] += 1
    place = np.cumsum(place)
    order = np.empty(n, np.int32)
    for q in range(n):
        order[place[key[q]]] = q
        place[key[q]] += 1
    return order


@helper
def _rearranged(order: Ints, start: Longs, value: Ints) -> tuple[Longs, Ints]:
    """Lists in another order."""
    first, out = np.zeros(len(order) + 1, np.int64), np.empty(len(value), np.int32)
    for j in range(len(order)):
        size = start[order[j] + 1] - start[order[j]]
        first[j + 1] = first[j] + size
        out[first[j] : first[j + 1]] = value[start[order[j]] : start[order[j] + 1]]
    return first, out


@helper
def _meet(user_start: Longs, user: Ints, query: int, met: Ints, stamp: int) -> np.int64:
    """How many users of a query were not yet met in this count."""
    found = np.int64(0)
    for i in range(user_start[query], user_start[query + 1]):
        if met[user[i]] != stamp:
            met[user[i]] = stamp
            found += 1
    return found


@helper
def _turn(
    members: Ints, start: Longs, node: Ints, above: int, lines: tuple[Longs, Ints], depth: Ints, end: Ints,
    place: Longs, child: Ints, query: Ints
) -> int:  # fmt: skip
    """The queries that may move to each child of a node.

    Args:
        members: The queries of its cluster.
        start: The nodes of query q are node[start[q]:start[q + 1]], ascending.
        node: Nodes.
        above: The node.
        lines: Every node and what is above it.
        depth: The depth of each node.
        end: The first node that is not below each.
        place: 0 for every node, and so again in the end; receives at each child where its queries end in `query`.
        child: Receives the children, ascending.
        query: Receives the queries of one child after the other, each in the order of members.

    Returns:
        How many children there are.
    """
    first, line = lines
    found = 0
    for turn in range(2):
        for q in members:
            before = np.int32(-1)
            for i in range(start[q], start[q + 1]):
                if not above < node[i] < end[above]:
                    continue
                at = line[first[node[i]] + depth[node[i]] - depth[above] - 1]
                if at == before:
                    continue
                before = at
                if turn == 0:
                    if place[at] == 0:
                        child[found] = at
                        found += 1
                    place[at] += 1
                else:
                    query[place[at]] = q
                    place[at] += 1
        if turn == 0:
            child[:found].sort()
            total = np.int64(0)
            for j in range(found):
                size = place[child[j]]
                place[child[j]] = total
                total += size
    return found


@kernel
def cluster_queries(
    start: Longs, node: Ints, user_start: Longs, user: Ints, users: int, parent: Ints, depth: Ints, end: Ints, k: int,
    top: int = 0
) -> Ints:  # fmt: skip
    """The node whose cluster each query is in; the queries of every cluster have at least k distinct users.

    A query is in the cluster of a node that one of its nodes is at or below. One that has no nodes is in the root's.

    The cluster of node c is split like this. Its children take their turns, first the one that most distinct users of
    the cluster have queries for, that is, queries with a node at or below the child; of equals, the smallest node. At
    its turn a child takes all these queries that no child took before. If they have fewer than k distinct users, it
    gives them back for the children after it. What no child took stays at c. If that is some queries but of fewer
    than k distinct users, the child that took queries of the fewest distinct users, of equals the smallest node, gives
    all of them back to stay at c. Then the clusters of the children are split in the same way, each for itself.

    Args:
        start: The nodes of query q are node[start[q]:start[q + 1]], maybe none.
        node: Nodes of the tree, each once in a query, ascending.
        user_start: The users of query q are user[user_start[q]:user_start[q + 1]].
        user: Who issued it.
        users: How many users there are.
        parent: The node above each.
        depth: Its depth.
        end: The first node that is not below it.
        k: Least users of a cluster. If all queries together have fewer, they are one cluster at the root.
        top: The node whose cluster all queries begin in: the root, or one that each has a node at or below.
    """
    n = len(start) - 1
    # The order of queries plays no part, but those of a cluster should lie together in memory.
    given = _by_node(start, node, len(parent))
    start, node = _rearranged(given, start, node)
    user_start, user = _rearranged(given, user_start, user)
    lines = ancestors(parent, depth, np.arange(len(parent)).astype(np.int32))
    out = np.full(n, top, np.int32)
    met, stamp = np.zeros(users, np.int32), 0
    place = np.zeros(len(parent), np.int64)
    child, query = np.empty(len(parent), np.int32), np.empty(len(node), np.int32)
    taken = np.zeros(len(parent), np.int64)  # users of what each child took
    order, room = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    # Clusters that wait to be split lie one behind the other in the order; the last is next.
    wait_node, wait_order = np.zeros(len(parent), np.int32), np.zeros(len(parent) + 1, np.int64)
    wait_node[0], wait_order[1] = top, n
    waiting = 1
    while waiting > 0:
        waiting -= 1
        above, low = wait_node[waiting], wait_order[waiting]
        members = order[low : wait_order[waiting + 1]]
        found = _turn(members, start, node, above, lines, depth, end, place, child, query)
        reach = np.zeros(found, np.int64)
        begin = np.zeros(found + 1, np.int64)
        for j in range(found):
            begin[j + 1] = place[child[j]]
            place[child[j]] = 0
            stamp += 1
            for i in range(begin[j], begin[j + 1]):
                reach[j] += _meet(user_start, user, query[i], met, stamp)
        # out says where queries are so far: at the node itself as long as no child took them.
        least = -1
        for j in np.argsort(-reach, kind="mergesort"):
            if reach[j] < k:
                break
            stamp += 1
            count = np.int64(0)
            for i in range(begin[j], begin[j + 1]):
                if out[query[i]] == above:
                    count += _meet(user_start, user, query[i], met, stamp)
            if count < k:
                continue
            taken[child[j]] = count
            for i in range(begin[j], begin[j + 1]):
                if out[query[i]] == above:
                    out[query[i]] = child[j]
            if least < 0 or (count, child[j]) < (taken[least], least):
                least = child[j]
        stamp += 1
        stay, left = np.int64(0), False
        for q in members:
            if out[q] == above:
                left = True
                stay += _meet(user_start, user, q, met, stamp)
        if left and stay < k and least >= 0:
            taken[least] = 0
            for q in members:
                if out[q] == least:
                    out[q] = above
        # Those that moved down come first, by their children; those that stay are done.
        for q in members:
            if out[q] != above:
                place[out[q]] += 1
        total = np.int64(0)
        for j in range(found):
            at = child[j]
            if taken[at] > 0:
                wait_node[waiting] = at
                size = place[at]
                place[at] = total
                total += size
                waiting += 1
                wait_order[waiting] = low + total
                taken[at] = 0
        for q in members:
            if out[q] != above:
                room[place[out[q]]] = q
                place[out[q]] += 1
        members[:total] = room[:total]
        place[child[:found]] = 0
    found_at = np.empty(n, np.int32)
    found_at[given] = out
    return found_at
