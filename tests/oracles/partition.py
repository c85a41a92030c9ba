"""Partition (He and Naughton 2009), literally: a transaction is a set of nodes, a tree a dict from node to parent."""

from fractions import Fraction

Tree = dict[int, int | None]


def line(tree: Tree, node: int) -> list[int]:
    """The node and all above it."""
    above = tree[node]
    return [node] if above is None else [node, *line(tree, above)]


def leaves(tree: Tree, node: int) -> int:
    return sum(node in line(tree, tip) for tip in set(tree) - set(tree.values()))


def ncp(tree: Tree, node: int) -> Fraction:
    """The normalized certainty penalty of an item that is published as a node."""
    size, root = leaves(tree, node), next(node for node in tree if tree[node] is None)
    return Fraction(0) if size == 1 else Fraction(size, leaves(tree, root))


def lm(tree: Tree, node: int) -> Fraction:
    root = next(node for node in tree if tree[node] is None)
    return Fraction(leaves(tree, node) - 1, leaves(tree, root) - 1)


def child(tree: Tree, node: int, item: int) -> int | None:
    """The child of a node that an item below it is at or below."""
    return next((at for at in line(tree, item) if tree[at] == node), None)


def children(tree: Tree, node: int, transaction: set[int]) -> frozenset[int]:
    return frozenset(at for item in transaction if (at := child(tree, node, item)) is not None)


def gain(tree: Tree, node: int, members: list[int], transactions: list[set[int]]) -> Fraction:
    found = Fraction(0)
    for t in members:
        for item in transactions[t]:
            if (at := child(tree, node, item)) is not None:
                found += ncp(tree, node) - ncp(tree, at)
    return found


def split(
    tree: Tree, node: int, members: list[int], transactions: list[set[int]], k: int
) -> tuple[dict[frozenset[int], list[int]], list[int]]:
    """The sub-partitions of a partition by the children of a node, and the left-over."""
    groups: dict[frozenset[int], list[int]] = {}
    for t in members:
        groups.setdefault(children(tree, node, transactions[t]), []).append(t)
    standing = {below: group for below, group in groups.items() if below and len(group) >= k}
    left = [t for t in members if not any(t in group for group in standing.values())]
    if standing and 0 < len(left) < k:
        if sum(len(group) - k for group in standing.values()) < k - len(left):
            left += standing.pop(min(standing, key=lambda below: (len(standing[below]), standing[below][0])))
        while len(left) < k:
            left.append(max(standing.values(), key=lambda group: (len(group), -group[0])).pop())
    return standing, sorted(left)


def partition(tree: Tree, transactions: list[set[int]], k: int) -> list[tuple[list[int], set[int]]]:
    """The transactions of each partition and what they are published as, by the first transaction."""
    root = next(node for node in tree if tree[node] is None)
    waiting, done = [(list(range(len(transactions))), {root})], []
    while waiting:
        members, published = waiting.pop()
        for node in sorted(published, key=lambda node: (-gain(tree, node, members, transactions), node)):
            standing, left = split(tree, node, members, transactions, k)
            if standing:
                waiting += [(group, published - {node} | below) for below, group in standing.items()]
                waiting += [(left, published)] if left else []
                break
        else:
            done.append((members, published))
    return sorted(done, key=lambda found: found[0][0])


def ggd(tree: Tree, transactions: list[set[int]], published: set[int]) -> Fraction:
    """What it costs to publish a set of nodes for each of these transactions."""
    items = sum(map(len, transactions))
    cost = sum((lm(tree, node) for node in published), Fraction(0))
    return len(transactions) * cost + items - len(transactions) * len(published)
