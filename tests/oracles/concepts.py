"""Concepts of a log as section 3.1 of Carpineto and Romano 2015 writes them, over a list of rows."""

from math import log2

from queryveil.text import language
from tests.oracles.log import Row, ngrams


def concepts(rows: list[Row], min_users: int) -> dict[tuple[str, ...], float]:
    """The weight of every concept."""
    grams = [ngrams(rows, n) for n in (1, 2, 3)]
    totals = [sum(found[0] for found in order.values()) for order in grams]

    def p(*words: str) -> float:
        return grams[len(words) - 1][words][0] / totals[len(words) - 1]

    weights = {}
    for order in grams:
        for gram, (_, events, users) in order.items():
            if users < min_users or all(word in language().stop_words for word in gram):
                continue
            if len(gram) == 1:
                weights[gram] = log2(events + 1)
            elif len(gram) == 2:
                x, y = gram
                weights[gram] = log2(p(x, y) / (p(x) * p(y)) + 1)
            else:
                x, y, z = gram
                weights[gram] = log2(p(x, y, z) / (p(x) * p(y) * p(z) + p(x) * p(y, z) + p(x, y) * p(z)) + 1)
    return weights
