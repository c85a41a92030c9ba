"""What steps of a pipeline choose from the queries that earlier ones left, literally: users are those of the log."""

from collections import defaultdict
from collections.abc import Set

from tests.oracles.affinity import are_affine, count, vectors_of
from tests.oracles.log import Row, good, users_per_word
from tests.oracles.text import words


def protected(
    rows: list[Row],
    within: Set[str],
    users: int,
    theta: float,
    concept_min_users: int,
    min_term_users: int,
    min_query_users: int = 1,
    max_new_users: int | None = None,
    vectors: str = "words",
) -> set[str]:
    """The most of some queries that protect each other: remove those with too few users behind them until none has.

    The same peeling says what affinity chooses from a set of queries and, of all queries of the log, which ones may be
    in a release that a later step drew.
    """
    vector = vectors_of(rows, concept_min_users, vectors)
    people: dict[str, set[object]] = defaultdict(set)
    history: dict[str, set[str]] = defaultdict(set)
    for row in good(rows):
        people[row.query].add(row.user)
        history[row.user].add(row.query)
    new: set[object] = {user for user, queries in history.items() if len(queries) <= 2}
    per_word = users_per_word(rows)

    def alone(query: str) -> bool:
        rare = vector[query] and any(per_word[word] < min_term_users for word in words(query))
        return len(people[query]) >= min_query_users and not rare

    def enough(query: str, left: set[str]) -> bool:
        near = {query}
        if vector[query]:
            near |= {other for other in left if vector[other] and are_affine(vector[query], vector[other], theta)}
        return count(set().union(*(people[one] for one in near)), new, max_new_users) >= users

    left = {query for query in within if alone(query)}
    while True:
        stays = {query for query in left if enough(query, left)}
        if stays == left:
            return left
        left = stays
