"""How an attacker who has half of people's histories scores released records, and what they learn.

Two attackers are tried. Both compare words and whole queries:

- *TF-IDF cosine*: the weight of an item is (1 + ln n) ln((1 + people) / holders), where n is how often the record or
  the person has it and holders is the number of people whose known half has it; weights are divided by their length.
- *Rare first*: the sum of 1 / holders over the items that both have, so that an item of only one person comes first.

The one that learns more counts. If several people have the same highest score, each gets an equal part of the credit;
if a record has nothing in common with anybody, this is everybody.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets, ranges

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

Weights = tuple[Floats, Floats]
"""Of every entry of the known bags, and of every entry of the records."""

ROUNDS = 1_000
TAIL = 0.025
_FEW = 10
_CHUNK = 2_000


@dataclass(frozen=True, eq=False)
class Bags(Ragged):
    """What records or people have, and how often: bag b has n times item[start[b]:start[b + 1]], ascending."""

    item: Ints
    n: Longs

    @classmethod
    def of(cls, bag: NDArray[np.integer], item: NDArray[np.integer], n: NDArray[np.integer], bags: int) -> "Bags":
        """Bags from entries in any order; equal ones are added up."""
        key, place = np.unique(packed(bag, item), return_inverse=True)
        total = np.bincount(place, weights=n, minlength=len(key)).astype(np.int64)
        return cls(np.searchsorted(key >> 32, np.arange(bags + 1)), (key & 0xFFFFFFFF).astype(np.int32), total)

    @property
    def keys(self) -> Longs:
        """Bag and item of every entry as one number, ascending."""
        return packed(self.owners, self.item)

    def take(self, bags: NDArray[np.integer]) -> "Bags":
        """Some of the bags."""
        place = self.positions(bags)
        return Bags(offsets(self.sizes[bags]), self.item[place], self.n[place])

    def only(self, entries: NDArray[np.bool_]) -> "Bags":
        """The bags with some of their entries."""
        return Bags(offsets(self.sums(entries)), self.item[entries], self.n[entries])

    def numbered(self, ids: NDArray[np.integer]) -> "Bags":
        """The same with every item by its place among ascending ids."""
        return Bags(self.start, np.searchsorted(ids, self.item).astype(np.int32), self.n)

    def with_words(self, words: tuple[Longs, Ints], queries: int) -> "Bags":
        """The same bags with the words of their queries as further items, numbered after the queries.

        Args:
            words: Where the words of each query start, and the words.
            queries: How many queries there are.
        """
        start, word = words
        of_query, bag = Ragged(start), self.owners
        size = of_query.sizes[self.item]
        item = np.concatenate([self.item, word[of_query.positions(self.item)].astype(np.int64) + queries])
        bag = np.concatenate([bag, np.repeat(bag, size)])
        return Bags.of(bag, item, np.concatenate([self.n, np.repeat(self.n, size)]), len(self))


def packed(high: NDArray[np.integer], low: NDArray[np.integer]) -> Longs:
    """Two columns as one number, in the order of the first and then of the second."""
    found: Longs = high.astype(np.int64) << 32 | low.astype(np.int64)
    return found


@dataclass(frozen=True, eq=False)
class Truth:
    """Who is behind which record: pairs, ascending by record."""

    record: Longs
    user: Longs


Unknown = tuple[Longs, Longs]
"""Released texts that the attacker did not know: the pair of the truth that each stands in, and person and text as one
number."""


@dataclass(frozen=True, eq=False)
class Compared:
    """What an attacker compares."""

    known: Bags
    """What they know of each person."""
    records: Bags
    """What each record has."""
    items: int
    """How many items there are."""
    passed: Truth
    """People who are skipped for a record."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What the better attacker found."""

    credit: Floats
    """The probability that each pair of the truth is found."""
    hits: Floats
    """Unknown texts of each person that are attributed to them."""
    texts: Longs
    """Unknown texts of each person."""
    right: Floats
    """The probability that an unknown text is attributed rightly, for each place where it stands."""
    sure: Floats
    """The attacker's confidence in each of these."""

    @property
    def share(self) -> float:
        """The share of unknown texts that are attributed to the right person."""
        return float(self.hits.sum() / max(int(self.texts.sum()), 1))


NOBODY = Truth(np.empty(0, np.int64), np.empty(0, np.int64))


def learn(compared: Compared, truth: Truth, unknown: Unknown, people: int | None = None) -> Learned:
    """Link records to people in both ways, and keep the better one.

    Args:
        compared: What is compared.
        truth: Who is behind which record.
        unknown: The texts to learn.
        people: How many people the texts are counted for, if not for those who are compared.
    """
    n = len(compared.known) if people is None else people
    return max((_learned(compared, truth, unknown, n, way) for way in _WAYS), key=lambda found: found.share)


def linked_groups(compared: Compared, truth: Truth, unknown: Unknown, group: Longs) -> float:
    """The share of records that the better attacker links to anybody of the group behind it.

    Args:
        compared: What is compared.
        truth: Who is behind which record.
        unknown: The texts to learn, by which the better attacker is chosen.
        group: The group of every person.
    """
    n = len(compared.known)
    way = max(_WAYS, key=lambda one: _learned(compared, truth, unknown, n, one).share)
    order = np.argsort(group, kind="stable")
    begin = np.searchsorted(group[order], group[truth.user])
    size = np.searchsorted(group[order], group[truth.user], side="right") - begin
    members = Truth(np.repeat(truth.record, size), order[ranges(begin, size)])
    return float(credits_of(compared, members, way)[0].sum() / len(truth.record))


def unknown_texts(known: Bags, issued: Bags, records: Bags, truth: Truth) -> Unknown:
    """Released texts of people that the attacker did not know.

    Args:
        known: What the attacker knows of each person.
        issued: What each person issued.
        records: What each record has.
        truth: Who is behind which record.
    """
    pair = np.repeat(np.arange(len(truth.record)), records.sizes[truth.record])
    key = packed(truth.user[pair], records.item[records.positions(truth.record)])
    new = np.isin(key, issued.keys) & ~np.isin(key, known.keys)
    return pair[new], key[new]


def interval(hits: Floats, texts: Longs, seed: int) -> tuple[float, float]:
    """The 95 % interval of a share of texts: the bootstrap over people, because texts of one person go together.

    If no text or every text was attributed, it is that of Clopper and Pearson over people, because the bootstrap then
    sees no variation.
    """
    n, total = int((texts > 0).sum()), float(hits.sum())
    if n < _FEW:
        return 0.0, 1.0
    if total == 0:
        return 0.0, float(1 - TAIL ** (1 / n))
    if total == texts.sum():
        return float(TAIL ** (1 / n)), 1.0
    rng = np.random.default_rng(seed)
    some = texts > 0
    hits, texts = hits[some], texts[some]
    found = np.empty(ROUNDS)
    for i in range(ROUNDS):
        drawn_users = rng.integers(0, n, n)
        found[i] = hits[drawn_users].sum() / texts[drawn_users].sum()
    low, high = np.quantile(found, [TAIL, 1 - TAIL])
    if high - low < 1e-9:  # all the same for everybody, so that the bootstrap sees no variation
        share = total / float(texts.sum())
        low, high = max(share - 1.96 * 0.5 / n**0.5, 0.0), min(share + 1.96 * 0.5 / n**0.5, 1.0)
    return float(low), float(high)


def half(user: Longs, draw: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Half of the events of each person, rounded up: those of the lowest draws.

    Args:
        user: The person of every event, ascending.
        draw: A number for every event.
    """
    order = np.lexsort((draw, user))
    first = np.searchsorted(user, user)
    size = np.searchsorted(user, user, side="right") - first
    chosen = np.empty(len(user), np.bool_)
    chosen[order] = 2 * (np.arange(len(user)) - first) < size
    return chosen


def histories(user: Longs, query: Longs, chosen: NDArray[np.bool_], users: int) -> tuple[Bags, Bags]:
    """What the attacker knows of each person, and what each person issued.

    Args:
        user: The person of every event.
        query: Its query.
        chosen: Whether the attacker knows it.
        users: How many people there are.
    """
    one = np.ones(len(user), np.int64)
    return Bags.of(user[chosen], query[chosen], one[chosen], users), Bags.of(user, query, one, users)


def _by_cosine(known: Bags, records: Bags, items: int) -> Weights:
    people, owner = len(known), known.owners
    rarity = np.log((1 + people) / np.maximum(np.bincount(known.item, minlength=items), 1))
    mine, its = ((1 + np.log(bags.n)) * rarity[bags.item] for bags in (known, records))
    length = np.sqrt(np.bincount(owner, weights=mine**2, minlength=people))
    return mine / length[owner], its


def _rare_first(known: Bags, records: Bags, items: int) -> Weights:
    holders = np.maximum(np.bincount(known.item, minlength=items), 1)
    return np.ones(len(known.item)), 1 / holders[records.item]


Way = Callable[[Bags, Bags, int], Weights]
_WAYS: tuple[Way, ...] = (_by_cosine, _rare_first)


def credits_of(compared: Compared, truth: Truth, way: Way) -> tuple[Floats, Floats]:
    """The probability that each pair of the truth is found, and the attacker's confidence in each record."""
    from queryveil.kernels.background import credits

    known, records = compared.known, compared.records
    mine, its = way(known, records, compared.items)
    order = np.argsort(known.item, kind="stable")
    turned = (
        np.searchsorted(known.item[order], np.arange(compared.items + 1)).astype(np.int64),
        known.owners[order].astype(np.int32),
        mine[order],
    )
    n = len(records)

    def part(at: int) -> tuple[Floats, Floats]:
        end = min(at + _CHUNK, n)
        passed, claim = _slice(compared.passed, at, end), _slice(truth, at, end)
        return credits(records.start[at : end + 1], records.item, its, turned, passed, claim, len(known))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(part, range(0, n, _CHUNK)))
    return np.concatenate([one for one, _ in found]), np.concatenate([sure for _, sure in found])


def _slice(pairs: Truth, begin: int, end: int) -> tuple[Longs, Ints]:
    """The people of some records: where those of each start, and the people."""
    first = np.searchsorted(pairs.record, np.arange(begin, end + 1)).astype(np.int64)
    return first - first[0], pairs.user[first[0] : first[-1]].astype(np.int32)


def _learned(compared: Compared, truth: Truth, unknown: Unknown, people: int, way: Way) -> Learned:
    credit, sure = credits_of(compared, truth, way)
    pair, key = unknown
    text, place = np.unique(key, return_inverse=True)
    best = np.zeros(len(text))
    # A text in several records of a person is learned from any of them.
    np.maximum.at(best, place, credit[pair])
    return Learned(
        credit=credit,
        hits=np.bincount(text >> 32, weights=best, minlength=people).astype(np.float64),
        texts=np.bincount(text >> 32, minlength=people),
        right=credit[pair],
        sure=sure[truth.record[pair]],
    )
