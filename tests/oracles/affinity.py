"""AFF as sections 3.2 and 3.3 of Carpineto and Romano 2015 write it: build the whole graph, peel it."""

from collections import defaultdict

from tests.oracles.concepts import concepts
from tests.oracles.log import Row, good, users_per_query, users_per_word
from tests.oracles.text import words

Graph = dict[object, set[object]]


def vector(query: str, weights: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], int]:
    """The squared weight of every concept of a query, in the fixed point that makes the definition decidable."""
    parts = words(query)
    grams = {tuple(parts[i : i + n]) for n in (1, 2, 3) for i in range(len(parts) - n + 1)}
    return {gram: round(weights[gram] ** 2 * 2**20) for gram in grams & set(weights)}


def are_affine(a: dict[tuple[str, ...], int], b: dict[tuple[str, ...], int], theta: float) -> bool:
    common = float(sum(w for gram, w in a.items() if gram in b))
    return common * common >= theta * theta * (float(sum(a.values())) * float(sum(b.values())))


def degrees(graph: Graph, users: dict[object, set[object]]) -> dict[object, int]:
    """The largest k for which each vertex survives peeling; the degree counts the users of the closed neighbourhood."""
    result: dict[object, int] = {}
    k = 1
    alive = set(graph)
    while alive:
        while True:
            fallen = {v for v in alive if len(set().union(users[v], *(users[n] for n in graph[v] if n in alive))) < k}
            if not fallen:
                break
            for v in fallen:
                result[v] = k - 1
            alive -= fallen
        k += 1
    return result


def affinity(rows: list[Row], k: int, theta: float, min_users: int, min_term_users: int) -> set[str]:
    """The released queries."""
    weights, per_query, per_word = concepts(rows, min_users), users_per_query(rows), users_per_word(rows)
    users: dict[object, set[object]] = defaultdict(set)
    for row in good(rows):
        users[row.query].add(row.user)
    vectors = {query: vector(query, weights) for query in per_query}
    released = {query for query, n in per_query.items() if not vectors[query] and n >= k}
    vertices = [q for q in per_query if vectors[q] and all(per_word[w] >= min_term_users for w in words(q))]
    graph: Graph = {a: {b for b in vertices if b != a and are_affine(vectors[a], vectors[b], theta)} for a in vertices}
    return released | {query for query, degree in degrees(graph, users).items() if degree >= k}  # type: ignore[misc]
