"""Differentially private releases without their noise, and the tails of the noise, literally."""

import math
from collections import Counter, defaultdict

from tests.oracles.log import Row, good


def things(rows: list[Row]) -> dict[str, list[str]]:
    """The distinct queries of each user in the order of time; of one time, in no order."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in good(rows):
        began = found[row.user].get(row.query)
        found[row.user][row.query] = min(row.time, began) if began else row.time
    return {user: sorted(began, key=began.get) for user, began in found.items()}


def ordered(rows: list[Row], keep: str) -> dict[str, list[str]]:
    """The distinct queries of each user: the first ones first, or the most repeated ones."""
    events = Counter((row.user, row.query) for row in {(r.user, r.query, r.time): r for r in good(rows)}.values())
    repeated = {"first": 0, "frequent": 1}[keep]
    return {
        user: sorted(mine, key=lambda query: -repeated * events[user, query]) for user, mine in things(rows).items()
    }


def bounded(rows: list[Row], d: int, keep: str) -> dict[str, list[str]]:
    """At most d queries of each user: the first, or the most repeated."""
    return {user: mine[:d] for user, mine in ordered(rows, keep).items()}


def counts(given: dict[str, list[str]]) -> Counter[str]:
    """How many users give each query."""
    return Counter(query for mine in given.values() for query in mine)


def rounds(given: dict[str, list[str]], d: int, whole: int, steps: list[tuple[int, int]]) -> set[str]:
    """The set that rounds release where there is no noise.

    Args:
        given: The queries of each user, in order.
        d: At most so many a user and round.
        whole: What a user spreads.
        steps: The two thresholds of each round.
    """
    released: set[str] = set()
    for first, threshold in steps:
        weight: Counter[str] = Counter()
        for mine in given.values():
            left = [query for query in mine if query not in released][:d]
            for query in left:
                weight[query] += math.isqrt(whole * whole // len(left))
        released |= {query for query, sum_ in weight.items() if sum_ >= first and sum_ >= threshold}
    return released


def laplace_tail(scale: float, least: int) -> float:
    """The probability that discrete Laplace noise is at least so high, summed up."""
    p = math.exp(-1 / scale)
    return math.fsum((1 - p) / (1 + p) * p ** abs(x) for x in range(least, least + math.ceil(60 * scale) + 60))


def gaussian_tail(scale: float, least: int) -> float:
    """The probability that discrete Gaussian noise is at least so high, summed up."""
    reach = math.ceil(12 * scale)
    mass = {x: math.exp(-x * x / (2 * scale * scale)) for x in range(-reach, reach + 1)}
    return math.fsum(mass[x] for x in mass if x >= least) / math.fsum(mass.values())
