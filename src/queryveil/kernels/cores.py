"""Generalized k-cores: which vertices keep k distinct users among themselves and their living neighbours."""

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import kernel
from queryveil.kernels.heavy import Groups, affine


@kernel
def find_witnesses(
    vertices: NDArray[np.int64],
    k: int,
    alive: NDArray[np.bool_],
    user_start: NDArray[np.int64],
    user: NDArray[np.int32],
    group_start: NDArray[np.int64],
    group: NDArray[np.int32],
    groups: Groups,
    total: NDArray[np.int64],
    theta2: float,
    witness: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Look for k distinct users behind each vertex and its living neighbours, and stop at the k-th.

    Args:
        vertices: Which to look at; each has fewer than k users of its own.
        k: Users needed.
        alive: Which vertices have not fallen.
        user_start: Where the users of each vertex start.
        user: The users of all vertices.
        group_start: Where the groups of each vertex start.
        group: The groups of all vertices.
        groups: The groups.
        total: The weight of each vertex.
        theta2: The square of theta.
        witness: One row a vertex; is filled with the neighbours whose users were counted, -1 behind the last.

    Returns:
        For each vertex of `vertices` whether k users were found.
    """
    found = np.zeros(len(vertices), np.bool_)
    seen = np.empty(k, np.int32)
    for place in range(len(vertices)):
        v = vertices[place]
        count = user_start[v + 1] - user_start[v]
        for i in range(count):
            seen[i] = user[user_start[v] + i]
        witnesses = 0
        witness[v, :] = -1
        for at in range(group_start[v], group_start[v + 1]):
            g = group[at]
            for m in range(groups.start[g], groups.start[g + 1]):
                other = groups.member[m]
                if not affine(groups.weight[g], total[v], total[other], theta2):
                    break  # the rest of the group is heavier still
                if other == v or not alive[other]:
                    continue
                before = count
                for u in range(user_start[other], user_start[other + 1]):
                    who = user[u]
                    new = True
                    for i in range(count):
                        if seen[i] == who:
                            new = False
                            break
                    if new:
                        seen[count] = who
                        count += 1
                        if count == k:
                            break
                if count > before:
                    witness[v, witnesses] = other
                    witnesses += 1
                if count == k:
                    break
            if count == k:
                break
        found[place] = count == k
    return found


@kernel
def lost_a_witness(
    vertices: NDArray[np.int64], alive: NDArray[np.bool_], witness: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Which of these vertices have a witness that fell."""
    lost = np.zeros(len(vertices), np.bool_)
    for place in range(len(vertices)):
        v = vertices[place]
        for i in range(witness.shape[1]):
            other = witness[v, i]
            if other < 0:
                break
            if not alive[other]:
                lost[place] = True
                break
    return lost
