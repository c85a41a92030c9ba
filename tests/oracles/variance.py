"""The variance of hierarchical nominal attributes, step by step with b-ary labels of any length."""

from collections import Counter
from fractions import Fraction


def labels(b: int) -> list[int]:
    """The digits of children, from the one with most of the sample on: the middle one, then outwards."""
    middle = (b - 1) // 2 if b % 2 else (b - 2) // 2
    found = [middle]
    for away in range(1, b):
        sides = (middle - away, middle + away) if b % 2 else (middle + away, middle - away)
        found += [digit for digit in sides if 0 <= digit < b]
    return found


def nominal_variance(sample: list[str], b: int) -> Fraction:
    """The variance of a sample of paths such as 'a/b/c', in units of the least significant digit."""
    digits = labels(b)
    below = Counter("/".join(path.split("/")[:n]) for path in sample for n in range(1, path.count("/") + 2))
    label_of: dict[str, int] = {}
    for parent in {"", *(node for node in below)}:
        children = [node for node in below if node.rpartition("/")[0] == parent]
        for digit, child in zip(digits, sorted(children, key=lambda node: (-below[node], node)), strict=False):
            label_of[child] = digit
    length = max(path.count("/") + 1 for path in sample)
    numbers = []
    for path in sample:
        parts = path.split("/")
        mine = [label_of["/".join(parts[:n])] for n in range(1, len(parts) + 1)]
        numbers.append(mine + [digits[0]] * (length - len(mine)))
    total = Fraction(0)
    for place in range(length):
        column = [number[place] for number in numbers]
        mean = Fraction(sum(column), len(column))
        total += b ** (2 * (length - 1 - place)) * sum((digit - mean) ** 2 for digit in column) / len(column)
    return total
