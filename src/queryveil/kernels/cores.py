"""Generalized k-cores: which vertices keep k distinct users among themselves and their living neighbours."""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import helper, inlined, kernel
from queryveil.kernels.heavy import Groups, affine
from queryveil.kernels.types import Bools, Floats, Ints, Longs

MANY = np.iinfo(np.int32).min
"""Stands for more than two users; no user has this number."""


class Users(NamedTuple):
    """The distinct users behind each vertex: those of v are user[start[v]:start[v + 1]].

    A negative number is a new user. Only a limited number of them count for a vertex and its neighbours together.
    """

    start: Longs
    user: Ints


@kernel
def own_users(users: Users, most_new: int) -> Longs:
    """How many users each vertex has by itself, of the negative ones at most `most_new`."""
    count = np.zeros(len(users.start) - 1, np.int64)
    for v in range(len(count)):
        new = 0
        for u in range(users.start[v], users.start[v + 1]):
            if users.user[u] < 0:
                new += 1
            else:
                count[v] += 1
        count[v] += min(new, most_new)
    return count


@inlined
def _holds(seen: Ints, count: int, who: int) -> bool:
    for i in range(count):  # noqa: SIM110  # a generator does not compile
        if seen[i] == who:
            return True
    return False


@helper
def _count_in(users: Users, vertex: int, seen: Ints, count: int, new: int, k: int, most_new: int) -> tuple[int, int]:
    # Add the users of a vertex to those seen so far, up to k of them.
    for u in range(users.start[vertex], users.start[vertex + 1]):
        if count == k:
            break
        who = users.user[u]
        if who < 0 and new == most_new:
            continue
        if not _holds(seen, count, who):
            seen[count] = who
            count += 1
            if who < 0:
                new += 1
    return count, new


@kernel
def users_of_groups(groups: Groups, users: Users) -> Ints:
    """The users of each group, if there is one (given twice) or two; else `MANY` twice."""
    found = np.full((len(groups.weight), 2), MANY, np.int32)
    for g in range(len(groups.weight)):
        one = two = users.user[users.start[groups.member[groups.start[g]]]]
        for m in range(groups.start[g], groups.start[g + 1]):
            for u in range(users.start[groups.member[m]], users.start[groups.member[m] + 1]):
                who = users.user[u]
                if who != one and two == one:
                    two = who
                elif who != one and who != two:
                    one = two = MANY
                    break
            if one == MANY:
                break
        found[g, 0], found[g, 1] = one, two
    return found


@kernel
def find_witnesses(
    places: Longs,
    vertices: Ints,
    k: int,
    most_new: int,
    alive: Bools,
    users: Users,
    group_start: Longs,
    group: Ints,
    groups: Groups,
    group_users: Ints,
    layer_end: Longs,
    total: Longs,
    theta2: Floats,
    witness: Ints,
    next_group: Longs,
    next_member: Longs,
) -> Bools:
    """Look for k distinct users behind some vertices and their living neighbours, and stop at the k-th.

    Args:
        places: Which of `vertices` to look at.
        vertices: Vertices with fewer than k users of their own.
        k: Users needed.
        most_new: How many users with a negative number count.
        alive: Which vertices of the graph have not been removed.
        users: The users of each vertex of the graph.
        group_start: Where the groups of each vertex start.
        group: The groups of all vertices.
        groups: The groups.
        group_users: What `users_of_groups` returns for them.
        layer_end: Behind which group each layer ends, that is, the groups of one similarity.
        total: The weight of each vertex, one row per layer.
        theta2: The square of theta in each layer.
        witness: One row for each of `vertices`: the neighbours whose users were counted, -1 behind the last.
        next_group: For each of `vertices`, where its search goes on; -1 to begin anew and forget the witnesses.
        next_member: The same within the group.

    Returns:
        For each of `places` whether k users were found.
    """
    found = np.zeros(len(places), np.bool_)
    seen = np.empty(k, np.int32)
    for number in range(len(places)):
        place = places[number]
        v = vertices[place]
        count, new = _count_in(users, v, seen, 0, 0, k, most_new)
        witnesses = 0
        at, m = next_group[place], next_member[place]
        if at < 0:
            for i in range(witness.shape[1]):
                witness[place, i] = -1
            at, m = group_start[v], np.int64(-1)
        while witnesses < witness.shape[1] and witness[place, witnesses] >= 0:
            count, new = _count_in(users, witness[place, witnesses], seen, count, new, k, most_new)
            witnesses += 1
        while count < k and at < group_start[v + 1]:
            g = group[at]
            # A group of one or two users who are counted already adds no user, however many queries they have in it.
            if m < 0 and _holds(seen, count, group_users[g, 0]) and _holds(seen, count, group_users[g, 1]):
                at += 1
                continue
            m = max(m, groups.start[g])
            layer = 0
            while g >= layer_end[layer]:
                layer += 1
            # Members come lightest first: behind the first that is too heavy, all are.
            while count < k and m < groups.start[g + 1]:
                other = groups.member[m]
                if not affine(groups.weight[g], total[layer, v], total[layer, other], theta2[layer]):
                    m = groups.start[g + 1]
                    break
                m += 1
                if other != v and alive[other]:
                    before = count
                    count, new = _count_in(users, other, seen, count, new, k, most_new)
                    if count > before:
                        witness[place, witnesses] = other
                        witnesses += 1
            if count < k:
                at += 1
                m = np.int64(-1)
        next_group[place], next_member[place] = at, m
        found[number] = count == k
    return found


@kernel
def lost_a_witness(alive: Bools, witness: Ints) -> Bools:
    """Which rows name a witness that was removed."""
    lost = np.zeros(len(witness), np.bool_)
    for place in range(len(witness)):
        for i in range(witness.shape[1]):
            other = witness[place, i]
            if other < 0:
                break
            if not alive[other]:
                lost[place] = True
                break
    return lost
