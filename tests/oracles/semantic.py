"""The distances and the partition of Batet et al. 2013, literally."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

Tree = dict[str, str | None]


def generalizations(tree: Tree, category: str) -> set[str]:
    """T(c): the category and all above it but the root."""
    found = set()
    at: str | None = category
    while at is not None and tree[at] is not None:
        found.add(at)
        at = tree[at]
    return found


def delta(tree: Tree, a: str, b: str) -> Fraction:
    """The distance of two categories (1)."""
    one, other = generalizations(tree, a), generalizations(tree, b)
    return Fraction(len(one | other) - len(one & other), len(one | other))


def distance(tree: Tree, a: Counter[str], b: Counter[str]) -> Fraction:
    """The distance of two users (4)."""
    there = sum(n * min(delta(tree, c, d) for d in b) for c, n in a.items())
    back = sum(n * min(delta(tree, d, c) for c in a) for d, n in b.items())
    return (there + back) / (a.total() + b.total())


def mdav(n: int, k: int, far: Callable[[int, int], float]) -> list[list[int]]:
    """Algorithm 1; of equals, the earlier."""
    left = list(range(n))
    groups: list[list[int]] = []

    def centroid() -> int:
        return min(left, key=lambda a: (sum(far(a, b) for b in left), a))

    def take(seed: int) -> None:
        near = sorted((a for a in left if a != seed), key=lambda a: (far(seed, a), a))[: k - 1]
        groups.append(sorted([seed, *near]))
        for member in groups[-1]:
            left.remove(member)

    while len(left) >= 3 * k:
        middle = centroid()
        one = max(left, key=lambda a: (far(middle, a), -a))
        take(one)
        take(max(left, key=lambda a: (far(one, a), -a)))
    if len(left) >= 2 * k:
        middle = centroid()
        take(max(left, key=lambda a: (far(middle, a), -a)))
    return [*groups, left]
