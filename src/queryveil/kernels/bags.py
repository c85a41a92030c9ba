"""Bags of nodes of a tree, and whom they fit: for the verifier, which shares nothing with what makes them.

A bag fits a user if each of its items can have a noun of theirs of its own at or below it. The nouns below two nodes
are apart, or those of one are among those of the other. So a bag fits if below each of its items there are at least as
many nouns as items of the bag.
"""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.search import first_from
from queryveil.kernels.types import Ints, Longs


class Bags(NamedTuple):
    """Bags of items: bag b has n times each node[start[b]:start[b + 1]], ascending."""

    start: Longs
    node: Longs
    n: Longs


class Nouns(NamedTuple):
    """The distinct nouns of users: those of user u are noun[start[u]:start[u + 1]], ascending."""

    start: Longs
    noun: Longs


@helper
def _fits(bags: Bags, b: int, nouns: Nouns, u: int, end: Longs) -> bool:
    low, high = nouns.start[u], nouns.start[u + 1]
    last = bags.start[b + 1]
    for x in range(bags.start[b], last):
        below = end[bags.node[x]]
        needed = 0
        y = x
        while y < last and bags.node[y] < below:
            needed += bags.n[y]
            y += 1
        first = first_from(nouns.noun, low, high, bags.node[x])
        if first_from(nouns.noun, first, high, below) - first < needed:
            return False
    return True


@kernel
def misfits(bag: Longs, user: Longs, bags: Bags, nouns: Nouns, end: Longs) -> Longs:
    """Which of some pairs of a bag and a user do not fit.

    Args:
        bag: The bag of each pair.
        user: The user of each pair.
        bags: The bags.
        nouns: The nouns of users.
        end: For each node of the tree the node behind the last one below it.
    """
    wrong = np.zeros(len(bag), np.bool_)
    for i in range(len(bag)):
        wrong[i] = not _fits(bags, bag[i], nouns, user[i], end)
    return np.flatnonzero(wrong)


@kernel
def fitting(
    bags: Bags, holders: Longs, nouns: Nouns, owner: Longs, noun: Longs, end: Longs, most: int
) -> tuple[Longs, Longs, Longs]:
    """Find the users whom each bag fits: all of them, as long as there is room for so many pairs, then enough of them.

    Args:
        bags: The bags.
        holders: How many users each bag is released with.
        nouns: The nouns of users.
        owner: The users in the order of nouns, one for each of their nouns.
        noun: The nouns in this order.
        end: For each node of the tree the node behind the last one below it.
        most: Room for pairs.

    Returns:
        How many users each bag fits, counted up to its holders once there is no more room; and the pairs, bags and
        users, of all bags or none.
    """
    count = np.zeros(len(holders), np.int64)
    met = np.full(len(nouns.start) - 1, -1, np.int64)
    room = min(most, 1 << 16)
    bag, user = np.empty(room, np.int64), np.empty(room, np.int64)
    pairs, whole = 0, True
    for b in range(len(holders)):
        # Only users with a noun below the item that fewest have can fit.
        low, high = 0, len(noun)
        for x in range(bags.start[b], bags.start[b + 1]):
            first = first_from(noun, 0, len(noun), bags.node[x])
            last = first_from(noun, first, len(noun), end[bags.node[x]])
            if last - first < high - low:
                low, high = first, last
        for at in range(low, high):
            u = owner[at]
            if met[u] == b:
                continue
            met[u] = b
            if not _fits(bags, b, nouns, u, end):
                continue
            count[b] += 1
            if whole and pairs == len(bag):
                if pairs >= most:
                    whole, pairs = False, 0
                else:
                    longer = min(2 * pairs, most)
                    bag, user = _longer(bag, longer), _longer(user, longer)
            if whole:
                bag[pairs], user[pairs] = b, u
                pairs += 1
            elif count[b] >= holders[b]:
                break
    return count, bag[:pairs], user[:pairs]


@helper
def _longer(values: Longs, length: int) -> Longs:
    longer = np.empty(length, np.int64)
    longer[: len(values)] = values
    return longer


@kernel
def fewer_users(start: Longs, query: Longs, user_start: Longs, user: Ints, users: int, least: int) -> int:
    """The first group of queries that fewer than so many users issued; -1 if there is none.

    Args:
        start: Where the queries of each group start.
        query: The queries.
        user_start: Where the users of each query start.
        user: The users.
        users: How many users there are.
        least: How many are enough.
    """
    met = np.full(users, -1, np.int64)
    for group in range(len(start) - 1):
        count = 0
        for at in range(start[group], start[group + 1]):
            if count >= least:
                break
            for place in range(user_start[query[at]], user_start[query[at] + 1]):
                if met[user[place]] != group:
                    met[user[place]] = group
                    count += 1
        if count < least:
            return group
    return -1
