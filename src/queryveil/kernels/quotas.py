"""Which queries of its users a group publishes."""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Floats, Ints, Longs, ULongs

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ROUNDS = 200


@helper
def _mixed(x: np.uint64) -> np.uint64:
    """A number that reveals nothing about x (the last step of SplitMix64)."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@kernel
def quotas(size: Longs, start: Longs, member: Ints) -> Longs:
    """How many queries each user gives to the record of the group: his own number divided by the users of the group.

    The quotas of a group add up to its mean number of queries, rounded; no quota is 0 unless that mean is less than
    the number of users; then as many users as it has queries give one each. Each next query is that of the user who
    lacks most; of equals, of the earlier one.

    Args:
        size: How many queries each user has.
        start: The users of group g are member[start[g]:start[g + 1]].
        member: Users.
    """
    quota = np.zeros(len(size), np.int64)
    for g in range(len(start) - 1):
        users = member[start[g] : start[g + 1]]
        n = len(users)
        total = np.int64(0)
        for u in users:
            total += size[u]
        left = (2 * total + n) // (2 * n)
        at_least = left >= n
        if at_least:
            for u in users:
                quota[u] = 1
            left -= n
        while left > 0:
            best, most = -1, np.int64(0)
            for u in users:
                lacks = size[u] - n * quota[u]
                if quota[u] < (size[u] if at_least else 1) and (best < 0 or lacks > most):
                    best, most = u, lacks
            quota[best] += 1
            left -= 1
    return quota


@kernel
def by_repetition(start: Longs, times: Longs, draw: ULongs, contribution: Floats, quota: Longs) -> Longs:
    """How often each query of each user is taken, as algorithm 5 of Erola et al. 2011 does it.

    Args:
        start: The queries of user u are those from start[u] to start[u + 1], the most repeated first.
        times: How often the user issued each.
        draw: A random number for each.
        contribution: The share of each user in the queries of his group.
        quota: How many each user gives.
    """
    taken = np.zeros(len(times), np.int64)
    for u in range(len(start) - 1):
        left = quota[u]
        for turn in range(_ROUNDS + 1):
            if left == 0:
                break
            for i in range(start[u], start[u + 1]):
                rest = times[i] - taken[i]
                if rest == 0:
                    continue
                expected = contribution[u] * rest
                more = np.int64(expected)
                chance = np.float64(_mixed(draw[i] + _GOLDEN * np.uint64(turn)) >> _S11) * 2.0**-53
                if chance < expected - more:
                    more += 1
                if turn == _ROUNDS:  # a user with a tiny share of his group would go round for ever
                    more = rest
                more = min(more, rest, left)
                taken[i] += more
                left -= more
                if left == 0:
                    break
    return taken


@kernel
def at_random(start: Longs, times: Longs, draw: ULongs, quota: Longs) -> Longs:
    """How often each query of each user is taken, if every event of the user is as likely as any other.

    Args:
        start: The queries of user u are those from start[u] to start[u + 1].
        times: How often the user issued each.
        draw: A random number for each.
        quota: How many events each user gives.
    """
    taken = np.zeros(len(times), np.int64)
    for u in range(len(start) - 1):
        events = times[start[u] : start[u + 1]].sum()
        chance = np.empty(events, np.uint64)
        of = np.empty(events, np.int64)
        n = 0
        for i in range(start[u], start[u + 1]):
            for turn in range(times[i]):
                chance[n] = _mixed(draw[i] + _GOLDEN * np.uint64(turn))
                of[n] = i
                n += 1
        order = np.argsort(chance)
        for j in range(quota[u]):
            taken[of[order[j]]] += 1
    return taken
