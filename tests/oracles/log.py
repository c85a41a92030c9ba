"""A log as a list of rows, and what methods.md says of events, clicks, EQ and rules, literally."""

from collections import Counter, defaultdict
from typing import NamedTuple

from tests.oracles.text import normal_form, words


class Row(NamedTuple):
    user: str
    query: str
    time: str | None = None
    rank: int | None = None
    url: str | None = None
    device: str | None = None
    country: str | None = None


def good(rows: list[Row]) -> list[Row]:
    rows = [row._replace(query=normal_form(row.query)) for row in rows]
    return [row for row in rows if row.query not in ("", "-")]


def events(rows: list[Row]) -> Counter[tuple[str, str, str | None]]:
    """Distinct (user, query, time); rows without a time are events of their own."""
    found: Counter[tuple[str, str, str | None]] = Counter()
    for row in good(rows):
        key = (row.user, row.query, row.time)
        found[key] = found[key] + 1 if row.time is None else 1
    return found


def users_per_query(rows: list[Row]) -> dict[str, int]:
    users = defaultdict(set)
    for row in good(rows):
        users[row.query].add(row.user)
    return {query: len(found) for query, found in users.items()}


def users_per_word(rows: list[Row]) -> dict[str, int]:
    users = defaultdict(set)
    for row in good(rows):
        for word in words(row.query):
            users[word].add(row.user)
    return {word: len(found) for word, found in users.items()}


def ngrams(rows: list[Row], n: int) -> dict[tuple[str, ...], tuple[int, int, int]]:
    """For every n-gram its occurrences over events, the events that hold it, and its distinct users."""
    occurrences, holding, users = Counter(), Counter(), defaultdict(set)
    for (user, query, _), count in events(rows).items():
        parts = words(query)
        grams = [tuple(parts[i : i + n]) for i in range(len(parts) - n + 1)]
        for gram in grams:
            occurrences[gram] += count
        for gram in set(grams):
            holding[gram] += count
            users[gram].add(user)
    return {gram: (occurrences[gram], holding[gram], len(users[gram])) for gram in occurrences}


def equality(rows: list[Row], k: int) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """EQ: events of each released query, and the released clicks of each query and address."""
    users = users_per_query(rows)
    released = Counter()
    for (_, query, _), count in events(rows).items():
        if users[query] >= k:
            released[query] += count
    clickers = defaultdict(set)
    clicks: Counter[tuple[str, str]] = Counter()
    for row in good(rows):
        if row.url:
            clickers[row.query, row.url].add(row.user)
            clicks[row.query, row.url] += 1
    return released, Counter(
        {pair: n for pair, n in clicks.items() if users[pair[0]] >= k and len(clickers[pair]) >= k}
    )
