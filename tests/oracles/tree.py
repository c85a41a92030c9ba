"""A tree as a dict from node to parent, and what methods.md says of it, literally."""

from fractions import Fraction


def ancestors(parent: dict[str, str | None], node: str) -> list[str]:
    """The node and all above it."""
    found = [node]
    while (above := parent[found[-1]]) is not None:
        found.append(above)
    return found


def leaves(parent: dict[str, str | None], node: str) -> int:
    tips = set(parent) - set(parent.values())
    return sum(node in ancestors(parent, tip) for tip in tips)


def lca(parent: dict[str, str | None], a: str, b: str) -> str:
    return next(node for node in ancestors(parent, a) if node in ancestors(parent, b))


def lm(parent: dict[str, str | None], node: str) -> Fraction:
    root = next(node for node, above in parent.items() if above is None)
    m = leaves(parent, root)
    return Fraction(leaves(parent, node) - 1, m - 1) if m > 1 else Fraction(0)
