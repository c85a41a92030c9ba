"""The removal steps of Poblete et al. 2008, literally."""

import itertools
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction

Clicked = Mapping[int, set[str]]
"""The addresses that were clicked for each query."""


def edges(clicked: Clicked) -> set[tuple[int, int]]:
    """Pairs of queries that share an address."""
    return {(a, b) for a, b in itertools.combinations(sorted(clicked), 2) if clicked[a] & clicked[b]}


def density(clicked: Clicked) -> Fraction:
    """How likely two queries have an edge."""
    n = len(clicked)
    return Fraction(2 * len(edges(clicked)), n * (n - 1)) if n > 1 else Fraction(0)


def disconnected(clicked: Clicked) -> set[int]:
    """Remove the query of the highest degree, of equals the earlier, until there is no edge."""
    left = dict(clicked)
    while found := edges(left):
        degree = {query: sum(query in edge for edge in found) for query in left}
        del left[min(left, key=lambda query: (-degree[query], query))]
    return set(left)


def pieces(text: str) -> list[str]:
    """The runs of letters, marks and digits of a text."""
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in text)
    return kept.split()


def names_target(query: str, names: Sequence[str]) -> bool:
    """Whether pieces of a query that follow each other, written as one, are a name."""
    mine = pieces(query)
    runs = {"".join(mine[a:b]) for a in range(len(mine)) for b in range(a + 1, len(mine) + 1)}
    return any("".join(pieces(name)) in runs for name in names)
