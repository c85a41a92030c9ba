"""The NCP of a query that becomes a concept, literally; a tree is a dict from node to parent."""

from fractions import Fraction

from tests.oracles.tree import lca, leaves

Tree = dict[str, str | None]


def penalty(tree: Tree, node: str) -> Fraction:
    """Formula 6 of Carpineto and Romano 2015."""
    below, root = leaves(tree, node), next(node for node, above in tree.items() if above is None)
    return Fraction(0) if below == 1 else Fraction(below, leaves(tree, root))


def cost(tree: Tree, words: list[str], concept: str, reading: str) -> Fraction:
    """What the words of a query cost: each that is in the tree what covers it and the concept, or one the concept."""
    if reading == "items":
        return len(words) - 1 + penalty(tree, concept)
    return sum(
        (penalty(tree, lca(tree, word, concept)) if word in tree else Fraction(1) for word in words), Fraction(0)
    )
