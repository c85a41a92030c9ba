"""What the check of k-theta-affinity compares: vectors of queries and who issued them, in the simplest way."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Longs, Ragged, offsets, ranges
from queryveil.claims.grams import fixed_point, frequent_grams
from queryveil.log import LocalLog

if TYPE_CHECKING:
    from queryveil.kernels.witnesses import Weighed

_TOGETHER = 500_000
"""How many queries have their vectors made at a time, which bounds the memory."""


@dataclass(frozen=True)
class Issuers:
    """Who issued each released query."""

    place: Longs
    """For each pair of a released query and one of its users, the place of the query."""
    user: NDArray[np.int32]
    new: NDArray[np.bool_]
    """For each user of the log whether their history is one or two distinct queries."""
    issued: Longs
    """The users of each released query."""
    counted: Longs
    """The same, including at most `max_new_users` new accounts."""

    @classmethod
    def of(cls, log: LocalLog, released: Longs, most_new: int | None) -> "Issuers":
        """Who issued some queries, ascending."""
        query, user = (log.query_users[name].to_numpy() for name in ("query_id", "user_id"))
        new = np.bincount(user, minlength=log.n_users) <= 2
        place_of = np.full(log.n_queries, -1, np.int32)
        place_of[released] = np.arange(len(released), dtype=np.int32)
        place = place_of[query]
        ours = place >= 0
        return cls.counting(place[ours].astype(np.int64), user[ours], new, len(released), most_new)

    @classmethod
    def counting(
        cls, place: Longs, user: NDArray[np.int32], new: NDArray[np.bool_], queries: int, most_new: int | None
    ) -> "Issuers":
        """Count those who issued some queries, given as pairs of a query and a user."""
        issued = np.bincount(place, minlength=queries)
        counted = issued
        if most_new is not None:
            fresh = np.bincount(place[new[user]], minlength=queries)
            counted = issued - fresh + np.minimum(fresh, min(most_new, len(new)))
        return cls(place, user, new, issued, counted)


@dataclass(frozen=True, eq=False)
class Vectors(Ragged):
    """What each released query is compared by: element[start[q]:start[q + 1]], ascending; nothing without a concept."""

    element: NDArray[np.int32]
    weight: Longs
    """The squared weight of each element, in fixed point."""


def vectors_of(log: LocalLog, released: Longs, concept_min_users: int, with_words: bool) -> Vectors:
    """Make the vectors of all released queries, in the simplest way."""
    from queryveil.kernels.witnesses import events_of_words

    grams = frequent_grams(log, concept_min_users)
    weight = grams.squared
    stop = np.isin(log.tokens.text.to_numpy(zero_copy_only=False), sorted(log.language.stop_words))
    # Behind the last word stands what is no word, and behind the last run what is no run: -1 is the last place.
    meant = np.append(~stop, False)
    concept = np.append(meant[grams.word].any(axis=1), False)
    place_of = np.full(log.stats.words, -1, np.int64)
    place_of[grams.words] = np.arange(len(grams.words))
    n_grams = len(weight)
    if with_words:
        events = events_of_words(log.tokens.start, log.tokens.word, log.events_per_query, log.stats.words)
        weight = np.concatenate([weight, fixed_point(np.log2(events + 1.0))])
    starts, elements = [np.zeros(1, np.int64)], []
    for begin in range(0, len(released), _TOGETHER):
        part = released[begin : begin + _TOGETHER]
        word = log.tokens.word[log.tokens.positions(part)]
        query = np.repeat(np.arange(len(part)), log.tokens.sizes[part])
        place = place_of[word]
        runs = [(query[: len(found)][concept[found]], found[concept[found]]) for found in grams.runs(place, query)]
        owner, element = (np.concatenate(column) for column in zip(*runs, strict=True))
        if with_words:
            has = np.zeros(len(part), np.bool_)
            has[owner] = True
            # A stop word weighs nothing by itself, and neither does a word that is a concept already.
            other = has[query] & ~stop[word] & ~concept[place]
            owner, element = np.append(owner, query[other]), np.append(element, n_grams + word[other])
        packed = owner << 32 | element
        packed.sort()
        packed = packed[np.diff(packed, prepend=-1) > 0]
        starts.append(starts[-1][-1] + np.searchsorted(packed, np.arange(1, len(part) + 1) << 32))
        elements.append((packed & 0xFFFFFFFF).astype(np.int32))
    return Vectors(np.concatenate(starts), np.concatenate([np.empty(0, np.int32), *elements]), weight)


def merged(vectors: Vectors, users: Issuers, apart: bool) -> "tuple[NDArray[np.int64], Weighed]":
    """Released queries with equal vectors as one set, the lightest first, with the users of all of them.

    Args:
        vectors: What each query is compared by.
        users: Who issued it.
        apart: Whether each query is a set of its own.

    Returns:
        The set of each released query, -1 for one without a concept; and the sets.
    """
    from queryveil.kernels.witnesses import Weighed

    size = vectors.sizes
    some = np.flatnonzero(size)
    start, size = vectors.start[:-1][some], size[some]
    # Sorted by a mark, equal vectors are neighbours; then neighbours are compared.
    marks = np.random.default_rng().integers(0, 1 << 63, len(vectors.weight), np.int64)
    mark, total = (
        np.add.reduceat(of[vectors.element], start) if len(some) else start for of in (marks, vectors.weight)
    )
    order = np.argsort(mark, kind="stable")
    some, start, size, mark, total = (column[order] for column in (some, start, size, mark, total))
    same = np.zeros(len(some), np.bool_)
    same[1:] = (mark[1:] == mark[:-1]) & (size[1:] == size[:-1]) & (not apart)
    pair = np.flatnonzero(same)
    if len(pair):
        one, other = (vectors.element[ranges(start[at], size[pair])] for at in (pair - 1, pair))
        same[pair] = Ragged(offsets(size[pair])).sums(one != other) == 0
    of_place = np.cumsum(~same) - 1
    head = np.flatnonzero(~same)
    lightest = np.argsort(total[head], kind="stable")
    rank = np.empty(len(head), np.int64)
    rank[lightest] = np.arange(len(head))
    of_query = np.full(len(vectors), -1, np.int64)
    of_query[some] = rank[of_place]
    head = head[lightest]
    element = vectors.element[ranges(start[head], size[head])]
    owner = of_query[users.place]
    packed = owner[owner >= 0] << 32 | users.user[owner >= 0]
    packed.sort()
    packed = packed[np.diff(packed, prepend=-1) > 0]
    user_start = np.searchsorted(packed, np.arange(len(head) + 1) << 32)
    user = (packed & 0xFFFFFFFF).astype(np.int32)
    ends = offsets(size[head])
    return of_query, Weighed(ends, element, vectors.weight, total[head], user_start, user, users.new)


def counted_users(sets: "Weighed", most_new: int | None) -> tuple[Longs, int]:
    """How many users of each set count by themselves, and how many new accounts may."""
    most = len(sets.new) if most_new is None else min(most_new, len(sets.new))
    of_set = Ragged(sets.user_start)
    each = of_set.sizes
    if most_new is not None:
        fresh = of_set.sums(sets.new[sets.user])
        each = each - fresh + np.minimum(fresh, most)
    return each, most


def threaded(work: Callable[[Longs], Longs], places: Longs, threads: int) -> Longs:
    """What some work finds for each place, side by side, in their order."""
    parts = [part for part in np.array_split(places, max(1, min(8 * threads, len(places) // 1000))) if len(part)]
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate([np.empty(0, np.int64), *pool.map(work, parts)])


def first_text(log: LocalLog, queries: Longs) -> tuple[str, int]:
    """The first of some queries in alphabetical order, and its place among them."""
    texts = log.query_text.take(pa.array(queries)).to_pylist()
    place = min(range(len(texts)), key=texts.__getitem__)
    return texts[place], place
