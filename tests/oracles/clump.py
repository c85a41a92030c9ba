"""LCG, GGD and Clump of Milani Fard and Wang 2010, literally: a tree is a dict from node to parent, a bag a Counter."""

from collections import Counter
from fractions import Fraction

from tests.oracles.tree import ancestors, lm

Tree = dict[str, str | None]
Bag = Counter[str]


def root(tree: Tree) -> str:
    return next(node for node, above in tree.items() if above is None)


def lcg(tree: Tree, bags: list[Bag], *, tight: bool = False) -> Bag:
    """Algorithm 2 over the whole tree; tight: what exceeds the minimum at a node is handed up as well."""
    found: Bag = Counter()

    def examine(node: str) -> list[int]:
        row = [bag[node] for bag in bags]
        for child in (child for child, above in tree.items() if above == node):
            below = examine(child)
            least = min(below)
            if least > 0:
                found[child] += least
            if tight:
                row = [r + b - least for r, b in zip(row, below, strict=True)]
            elif least == 0:
                row = [r + b for r, b in zip(row, below, strict=True)]
        return row

    examine(root(tree))
    found[root(tree)] += min(bag.total() for bag in bags) - found.total()
    return +found


def one_by_one(tree: Tree, bags: list[Bag], *, tight: bool = False) -> Bag:
    """The LCG as Lemma 1 has it: of the LCG so far, and the next bag."""
    found = lcg(tree, bags[:1], tight=tight)
    for bag in bags[1:]:
        found = lcg(tree, [found, bag], tight=tight)
    return found


def generalizes(tree: Tree, general: Bag, bag: Bag) -> bool:
    """Definition 1: every item of one stands for a distinct item of the other; found by augmenting paths."""
    items, left = list(general.elements()), list(bag.elements())
    taken: dict[int, int] = {}

    def place(i: int, seen: set[int]) -> bool:
        for j, item in enumerate(left):
            if j not in seen and items[i] in ancestors(tree, item):
                seen.add(j)
                if j not in taken or place(taken[j], seen):
                    taken[j] = i
                    return True
        return False

    return all(place(i, set()) for i in range(len(items)))


def ggd(tree: Tree, bags: list[Bag], general: Bag) -> Fraction:
    """Definition 3."""
    suppressed = sum(bag.total() - general.total() for bag in bags)
    return len(bags) * sum((n * lm(tree, item) for item, n in general.items()), Fraction(0)) + suppressed


def clump(
    tree: Tree, bags: list[Bag], order: list[int], k: int, r: int, *, tight: bool = False, growth: bool = False
) -> list[list[int]]:
    """Algorithm 1: the members of every cluster, as they join; of equals, the earlier cluster.

    Not of the paper: `tight`, and `growth`, the least growth instead of the least distortion in step 3.
    """
    n = len(order) // k
    clusters = [[order[i * k]] for i in range(n)]
    seeds = {cluster[0] for cluster in clusters}

    def distortion(members: list[int]) -> Fraction:
        mine = [bags[t] for t in members]
        return ggd(tree, mine, one_by_one(tree, mine, tight=tight))

    for t in order:
        if t in seeds:
            continue
        unfilled = [cluster for cluster in clusters if len(cluster) < k][:r]
        loss = [distortion([*cluster, t]) for cluster in unfilled or clusters]
        if growth and not unfilled:
            loss = [after - distortion(cluster) for after, cluster in zip(loss, clusters, strict=True)]
        (unfilled or clusters)[loss.index(min(loss))].append(t)
    return clusters
