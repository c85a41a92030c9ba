"""Similarity by meaning and by clicks, query by query, as `docs/methods/affinity.md` says it."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from queryveil.claims import similarity
from queryveil.knowledge.vectors import embed
from queryveil.scrubbing.lists import CITY, FIRST, LAST, MAINLY, REGION, WORD, lists_of, plain_word
from tests.oracles.affinity import are_affine, vectors_of
from tests.oracles.log import Row, good, ngrams, users_per_query, users_per_word
from tests.oracles.text import words


def comparable(rows: list[Row], least: int) -> set[str]:
    """Queries of words that many use, without numbers, names and small places."""
    n_users = len({row.user for row in good(rows)})
    large = max(least, similarity.FEWEST, -(-n_users // 100))
    per_word = users_per_word(rows)
    grams = {gram: found[2] for n in (2, 3) for gram, found in ngrams(rows, n).items()}
    lists = lists_of()

    def kind(word: str) -> int:
        own = lists.words.get(plain_word(word), 0)
        for ending in ("'s", "’s", "s'", "s’", "s"):
            if word.endswith(ending):
                base = lists.words.get(plain_word(word[: -len(ending)]), 0)
                may_be = base & MAINLY or not (own | base) & WORD
                return own | base & (FIRST | LAST | MAINLY) if may_be else own
        return own

    def ok(query: str) -> bool:
        parts = words(query)
        large_place, small_place = set(), set()
        for n in (2, 3):
            for at in range(len(parts) - n + 1):
                run = tuple(parts[at : at + n])
                place = lists.kinds.get(" ".join(map(plain_word, run)), 0)
                if place & REGION or (place & CITY and grams[run] >= large):
                    large_place |= set(range(at, at + n))
                elif place & CITY:
                    small_place |= set(range(at, at + n))
        if small_place - large_place or not parts:
            return False
        placed = [
            at in large_place or bool(kind(w) & REGION) or bool(kind(w) & CITY and per_word[w] >= large)
            for at, w in enumerate(parts)
        ]
        for word, is_place in zip(parts, placed, strict=True):
            if any(c.isdecimal() for c in word) or per_word[word] < least:
                return False
            known = kind(word)
            name = known & FIRST or (known & LAST and per_word[word] < large)
            if not is_place and (((name or known & CITY) and not known & WORD) or known & MAINLY):
                return False
        free = [(word, at not in large_place) for at, word in enumerate(parts)]
        apart = [(free[at], free[at + 2]) for at in range(len(parts) - 2) if len(parts[at + 1]) == 1]
        for (one, a), (other, b) in [*pairwise(free), *apart]:
            both = kind(one), kind(other)
            named = (both[0] & FIRST and both[1] & LAST) or (both[0] & LAST and both[1] & FIRST)
            named = named or (one in similarity.TITLES and both[1] & (FIRST | LAST))
            if named and a and b:
                return False
        return True

    return {query for query in users_per_query(rows) if ok(query)}


def meaning(query: str) -> list[int] | None:
    """A vector of whole numbers, if all words are known."""
    found = embed(pa.array([query]))
    if found.confidence[0] < 1:
        return None
    return [int(x) for x in np.rint(found.vectors[0] * 1024)]


def means_the_same(a: list[int], b: list[int], theta: float) -> bool:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    lengths = float(sum(x * x for x in a) * sum(x * x for x in b))
    return dot > 0 and float(dot * dot) >= (theta * theta) * lengths


def clicked(rows: list[Row], users: int) -> dict[str, set[str]]:
    """The main addresses of each query, without hubs and addresses of few."""
    of_url, queries, of_pair, of_query = (defaultdict(set) for _ in range(4))
    for row in good(rows):
        if row.url is not None:
            of_url[row.url].add(row.user)
            queries[row.url].add(row.query)
            of_pair[row.query, row.url].add(row.user)
            of_query[row.query].add(row.user)
    found = defaultdict(set)
    for (query, url), who in of_pair.items():
        counts = len(of_url[url]) >= users and len(of_url[url]) >= 2 * len(queries[url])
        if counts and 3 * len(who) >= len(of_query[query]):
            found[query].add(url)
    return dict(found)


def similar(
    rows: list[Row],
    k: int,
    theta: float,
    concept_min_users: int,
    term_users: int,
    ways: Sequence[str],
    theta_meaning: float,
    theta_clicks: float,
) -> Callable[[str, str], bool]:
    """Whether two queries that hold a concept are similar in one of the ways."""
    vector = vectors_of(rows, concept_min_users)
    some = comparable(rows, max(concept_min_users, term_users))
    meanings = {query: meaning(query) for query in some}
    sets = clicked(rows, k)

    def alike(a: str, b: str) -> bool:
        if "words" in ways and are_affine(vector[a], vector[b], theta):
            return True
        if a not in some or b not in some:
            return False
        one, other = meanings[a], meanings[b]
        if "meaning" in ways and one and other and means_the_same(one, other, theta_meaning):
            return True
        if "clicks" not in ways or a not in sets or b not in sets or not sets[a] & sets[b]:
            return False
        common = Fraction(len(sets[a] & sets[b]) ** 2, len(sets[a]) * len(sets[b]))
        return common >= Fraction(theta_clicks) ** 2

    return alike
