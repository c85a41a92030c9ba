"""Algorithms 1 to 5 of Erola et al. 2011 and the grouping of Erola and Castella-Roca 2012, literally.

The loop of algorithm 3 reads `while |U'| <= k` in the paper, which is a slip; here it goes on while 2k users are left.
Ties: the pair with the earlier first user, then the earlier second; the earlier user.
"""

from collections import Counter

import numpy as np

Tree = dict[str, str | None]


def level_path(tree: Tree, node: str) -> list[str]:
    """The nodes from level 1 down to a node."""
    path = []
    at: str | None = node
    while at is not None:
        path.append(at)
        at = tree[at]
    return path[::-1][1:]


def matrices(tree: Tree, bags: list[Counter[str]], levels: int) -> list[dict[tuple[int, str], int]]:
    """Algorithm 1: for every level, how often each user has each category there."""
    found: list[dict[tuple[int, str], int]] = []
    for level in range(1, levels + 1):
        matrix: dict[tuple[int, str], int] = {}
        for user, bag in enumerate(bags):
            for node, times in bag.items():
                path = level_path(tree, node)
                if len(path) >= level:
                    for _ in range(times):
                        key = (user, path[level - 1])
                        matrix[key] = matrix.get(key, 0) + 1
        found.append(matrix)
    return found


def incidence(found: list[dict[tuple[int, str], int]], users: int) -> np.ndarray:
    """Algorithm 2: the similarity of every pair of users."""
    result = np.zeros((users, users), np.int64)
    for matrix in found:
        for category in {category for _, category in matrix}:
            column = np.array([matrix.get((user, category), 0) for user in range(users)])
            result += np.minimum.outer(column, column)
    return result


def merged(found: list[dict[tuple[int, str], int]], group: list[int], user: int) -> int:
    """How similar a user is to the records of a group as one."""
    total = 0
    for matrix in found:
        for category in {category for _, category in matrix}:
            total += min(sum(matrix.get((u, category), 0) for u in group), matrix.get((user, category), 0))
    return total


def groups(found: list[dict[tuple[int, str], int]], users: int, k: int, *, record: bool) -> list[list[int]]:
    """Algorithms 3 and 4."""
    similarity = incidence(found, users)
    left = list(range(users))
    result = []
    while len(left) >= 2 * k:
        pairs = [(a, b) for a in left for b in left if a < b]
        group = list(max(pairs, key=lambda pair: (similarity[pair], -pair[0], -pair[1])))
        while len(group) < k:
            rest = [user for user in left if user not in group]

            def alike(user: int, group: list[int] = group) -> int:
                return merged(found, group, user) if record else int(sum(similarity[u, user] for u in group))

            group.append(max(rest, key=lambda user: (alike(user), -user)))
        result.append(group)
        left = [user for user in left if user not in group]
    return [*result, left]


def srp(original: Counter[str], released: Counter[str]) -> float:
    """The share of a user's categories that is left."""
    return sum(min(n, released[c]) for c, n in original.items()) / sum(original.values())
