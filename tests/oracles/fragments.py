"""The rule about fragments, read straight off its definition."""

from collections import defaultdict

import pyarrow as pa

from queryveil.knowledge.phrases import noun_phrases
from queryveil.text import language
from tests.oracles.log import Row, good
from tests.oracles.text import words


def runs(query: str, size: int) -> set[str]:
    parts = words(query)
    return {" ".join(parts[at : at + size]) for at in range(len(parts) - size + 1)}


def fragments(query: str, most: int, phrases: bool) -> set[str]:
    """All runs of up to so many words and, if they count, noun phrases."""
    found = {run for size in range(1, most + 1) for run in runs(query, size)}
    return found | (set(noun_phrases(pa.array([query]), language())[1].to_pylist()) if phrases else set())


def users_per_run(rows: list[Row]) -> dict[str, int]:
    """How many users typed each run of words, of any length."""
    users = defaultdict(set)
    for row in good(rows):
        for size in range(1, len(words(row.query)) + 1):
            for run in runs(row.query, size):
                users[run].add(row.user)
    return {run: len(found) for run, found in users.items()}


def allowed(
    rows: list[Row], rule: dict[str, int], counted: list[Row] | None = None, stays: frozenset[str] = frozenset()
) -> set[str]:
    """The queries that have a word and whose fragments all have enough users, or stay allowed."""
    users = users_per_run(rows if counted is None else counted)
    kept = set()
    for row in good(rows):
        parts = fragments(row.query, rule["fragment_words"], rule["noun_phrases"])
        if parts and all(users.get(part, 0) >= rule["min_fragment_users"] or part in stays for part in parts):
            kept.add(row.query)
    return kept
