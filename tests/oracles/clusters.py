"""Average linkage, the index of Calinski and Harabasz, and the distance of partitions, literally."""

import math
from collections import Counter
from itertools import combinations

Matrix = list[list[float]]


def average_linkage(far: Matrix, count: int) -> list[list[int]]:
    """Merge the two clusters with the least mean distance until so many are left."""
    clusters = [[i] for i in range(len(far))]
    while len(clusters) > count:

        def apart(pair: tuple[int, int]) -> float:
            a, b = (clusters[i] for i in pair)
            return sum(far[i][j] for i in a for j in b) / (len(a) * len(b))

        a, b = min(combinations(range(len(clusters)), 2), key=apart)
        clusters[a] += clusters.pop(b)
    return sorted(sorted(cluster) for cluster in clusters)


def scatter(far: Matrix, members: list[int]) -> float:
    """The squares of all pairs of members, divided by their number."""
    return sum(far[i][j] ** 2 for i, j in combinations(members, 2)) / len(members)


def ward(far: Matrix, count: int) -> list[list[int]]:
    """Merge the two clusters whose scatter grows least by it until so many are left."""
    clusters = [[i] for i in range(len(far))]
    while len(clusters) > count:

        def growth(pair: tuple[int, int]) -> float:
            a, b = (clusters[i] for i in pair)
            return scatter(far, a + b) - scatter(far, a) - scatter(far, b)

        a, b = min(combinations(range(len(clusters)), 2), key=growth)
        clusters[a] += clusters.pop(b)
    return sorted(sorted(cluster) for cluster in clusters)


def calinski_harabasz(far: Matrix, clusters: list[list[int]]) -> float:
    """Between over within, each by its degrees of freedom; squares of pairs stand for those about the mean."""
    n, count = len(far), len(clusters)
    within = sum(scatter(far, cluster) for cluster in clusters)
    between = scatter(far, list(range(n))) - within
    return math.inf if within == 0 else (between / (count - 1)) / (within / (n - count))


def partition_distance(one: list[int], other: list[int]) -> float:
    """2 - (I(A) + I(B)) / I(A and B)."""

    def entropy(labels: list[object]) -> float:
        return -sum(c / len(labels) * math.log2(c / len(labels)) for c in Counter(labels).values())

    joint = entropy(list(zip(one, other, strict=True)))
    return 2 - (entropy(list(one)) + entropy(list(other))) / joint if joint else 0.0
