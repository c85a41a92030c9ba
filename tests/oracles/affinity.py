"""AFF as sections 3.2 and 3.3 of Carpineto and Romano 2015 write it: build the whole graph, peel it."""

from collections import defaultdict
from collections.abc import Callable, Set
from math import log2

from queryveil.text import language
from tests.oracles.concepts import concepts
from tests.oracles.log import Row, good, ngrams, users_per_query, users_per_word
from tests.oracles.text import words

Graph = dict[object, set[object]]


Vector = dict[tuple[str, ...], int]


def vectors_of(rows: list[Row], concept_min_users: int, kind: str = "words") -> dict[str, Vector]:
    """What each query holds, with squared weights in the fixed point that makes the definition decidable.

    The key concepts of a query and, but for the kind `concepts`, each of its other words that is no stop word; nothing
    for a query without a key concept.
    """
    weights = concepts(rows, concept_min_users)
    events = {gram: found[1] for gram, found in ngrams(rows, 1).items()}
    found = {}
    for query in users_per_query(rows):
        parts = words(query)
        grams = {tuple(parts[i : i + n]) for n in (1, 2, 3) for i in range(len(parts) - n + 1)}
        held = {gram: weights[gram] for gram in grams & set(weights)}
        if held and kind == "words":
            others = {(word,) for word in parts if word not in language().stop_words} - set(held)
            held |= {word: log2(events[word] + 1) for word in others}
        found[query] = {gram: round(weight**2 * 2**20) for gram, weight in held.items()}
    return found


def are_affine(a: Vector, b: Vector, theta: float) -> bool:
    common = float(sum(w for gram, w in a.items() if gram in b))
    return common * common >= theta * theta * (float(sum(a.values())) * float(sum(b.values())))


def count(users: set[object], new: set[object], most_new: int | None) -> int:
    """How many users count, when of the new accounts only some do."""
    return len(users) if most_new is None else len(users - new) + min(len(users & new), most_new)


def degrees(
    graph: Graph, users: dict[object, set[object]], new: Set[object] = frozenset(), most_new: int | None = None
) -> dict[object, int]:
    """The largest k for which each vertex survives peeling; the degree counts the users of the closed neighbourhood."""
    result: dict[object, int] = {}
    k = 1
    alive = set(graph)
    while alive:
        while True:
            behind = {v: set().union(users[v], *(users[n] for n in graph[v] if n in alive)) for v in alive}
            fallen = {v for v in alive if count(behind[v], set(new), most_new) < k}
            if not fallen:
                break
            for v in fallen:
                result[v] = k - 1
            alive -= fallen
        k += 1
    return result


def affinity_degrees(
    rows: list[Row],
    theta: float,
    concept_min_users: int,
    min_term_users: int,
    min_query_users: int = 1,
    max_new_users: int | None = None,
    vectors: str = "words",
    alike: Callable[[str, str], bool] | None = None,
) -> dict[str, int]:
    """The anonymity degree of every query; 0 if it is released for no k. `alike` may say otherwise what is affine."""
    per_query, per_word = users_per_query(rows), users_per_word(rows)
    vector = vectors_of(rows, concept_min_users, vectors)
    users: dict[object, set[object]] = defaultdict(set)
    history: dict[object, set[str]] = defaultdict(set)
    for row in good(rows):
        users[row.query].add(row.user)
        history[row.user].add(row.query)
    new = {user for user, queries in history.items() if len(queries) <= 2}
    shared = [query for query, n in per_query.items() if n >= min_query_users]
    found = dict.fromkeys(per_query, 0)
    found |= {query: count(users[query], new, max_new_users) for query in shared if not vector[query]}
    vertices = [q for q in shared if vector[q] and all(per_word[w] >= min_term_users for w in words(q))]
    alike = alike or (lambda a, b: are_affine(vector[a], vector[b], theta))
    graph: Graph = {a: {b for b in vertices if b != a and alike(a, b)} for a in vertices}
    return found | degrees(graph, users, new, max_new_users)  # type: ignore[operator]


def protected_sessions(
    sessions: list[tuple[object, list[str]]],
    vector: dict[str, Vector],
    events: dict[str, int],
    k: int,
    theta: float,
    new: Set[object] = frozenset(),
    most_new: int | None = None,
) -> list[list[str]]:
    """What is released of sessions, each a user and released queries: a session as one, or each query by itself.

    Sessions that lack users are cut one after the other until none is left; those of one query always stay.
    """

    def united(queries: list[str]) -> Vector:
        found: Vector = {}
        for query in queries:
            found |= vector[query] or {(query, "as a whole"): round(log2(events[query] + 1) ** 2 * 2**20)}
        return found

    vectors = [united(queries) for _, queries in sessions]
    alive = set(range(len(sessions)))
    changed = True
    while changed:
        changed = False
        for i in sorted(alive):
            behind = {sessions[j][0] for j in alive if are_affine(vectors[i], vectors[j], theta)}
            if len(set(sessions[i][1])) > 1 and count(behind, set(new), most_new) < k:
                alive.remove(i)
                changed = True
    cut = [
        [query] * queries.count(query)
        for i, (_, queries) in enumerate(sessions)
        if i not in alive
        for query in sorted(set(queries))
    ]
    return [sessions[i][1] for i in sorted(alive)] + cut
