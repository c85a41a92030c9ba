"""Attacks on releases, literally: a log is a list of (user, query), a release a dictionary from records to bags."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

Log = dict[str, set[str]]
"""The queries of each user."""
Records = dict[int, Counter[str]]


def candidates(records: Records, people: dict[int, int], known: set[str]) -> tuple[list[int], int]:
    """The records that have all known queries which any record has, and the people behind them."""
    there = {query for record in records.values() for query in record}
    fit = [r for r, record in records.items() if known & there <= set(record)]
    return fit, sum(people[r] for r in fit)


def issuers(log: Log, *queries: str) -> list[str]:
    """The users who issued all of some queries."""
    return [user for user, issued in log.items() if set(queries) <= issued]


def groups(records: Records, people: dict[int, int]) -> list[tuple[Counter[str], int]]:
    """Equal records, with the people behind them."""
    found: list[tuple[Counter[str], int]] = []
    for r, record in records.items():
        at = next((i for i, (other, _) in enumerate(found) if other == record), None)
        if at is None:
            found.append((record, people[r]))
        else:
            found[at] = (record, found[at][1] + people[r])
    return found


def marketer(records: Records, people: dict[int, int]) -> Fraction:
    """The mean of 1 / |group| over people."""
    found = groups(records, people)
    return sum((size * Fraction(1, size) for _, size in found), Fraction(0)) / sum(size for _, size in found)


def prosecutor(records: Records, people: dict[int, int]) -> Fraction:
    """The largest 1 / |group|."""
    return max(Fraction(1, size) for _, size in groups(records, people))


def journalist(records: Records, people: dict[int, int], log: Log) -> Fraction:
    """The largest 1 / |group|, where everybody counts who issued all queries of the record."""
    return max(Fraction(1, max(size, len(issuers(log, *record)))) for record, size in groups(records, people))


def flipped(log: Log, released: set[str], k: int) -> set[str]:
    """The users without whom the queries of at least k users would be others."""
    found = set()
    for user in log:
        left = {query for query in released if len(issuers({u: q for u, q in log.items() if u != user}, query)) >= k}
        if left != released:
            found.add(user)
    return found


def adjusted_rand(one: list[int], other: list[int]) -> Fraction:
    """Hubert and Arabie's index, by counting pairs."""
    pairs = list(combinations(range(len(one)), 2))
    a = sum(one[i] == one[j] for i, j in pairs)
    b = sum(other[i] == other[j] for i, j in pairs)
    both = sum(one[i] == one[j] and other[i] == other[j] for i, j in pairs)
    chance = Fraction(a * b, len(pairs)) if pairs else Fraction(0)
    most = Fraction(a + b, 2)
    return Fraction(1) if most == chance else (both - chance) / (most - chance)
