"""Frequent runs of words and their weights, for the check of affinity: the paper's formulas, apart from the method."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import places
from queryveil.log import QueryLog

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Grams:
    """Runs of one to three words that enough users typed.

    Attributes:
        word: The ids of their words, one row a run, -1 behind the last.
        size: How many words each has.
        squared: The squared weight of each, in fixed point.
        events: In how many events each is.
        pair_key: Which two words each run of two has, ascending; words are given by their place among `words`.
        triple_key: Which run of two and which word each run of three has, ascending.
        words: The ids of all words in them, ascending.
    """

    word: Longs
    size: Longs
    squared: Longs
    events: Longs
    pair_key: Longs
    triple_key: Longs
    words: Longs

    def runs(self, place: NDArray[Any], query: Longs) -> list[NDArray[np.int64]]:
        """The runs of one, two and three words that begin at each word of some queries, -1 where none does.

        Args:
            place: The place among `words` of each word of all queries, one query after the other; -1 for others.
            query: The query of each word.
        """
        together = query[1:] == query[:-1]
        pair = np.where(together, places(self.pair_key, _key(place[:-1], place[1:])), -1)
        triple = np.where(together[1:], places(self.triple_key, _key(pair[:-1], place[2:])), -1)
        ones, twos = len(self.words), len(self.words) + len(self.pair_key)
        return [place, np.where(pair < 0, -1, pair + ones), np.where(triple < 0, -1, triple + twos)]


def frequent_grams(log: QueryLog, min_users: int) -> Grams:
    """Find and weigh the runs of one to three words that enough users typed."""
    length, events = (log.lengths[name].to_numpy() for name in ("words", "events"))
    tables = [log.ngrams(n, min_users=min_users) for n in (1, 2, 3)]
    share = [
        table["occurrences"].to_numpy() / max(int((np.maximum(length - n, 0) * events).sum()), 1)
        for n, table in enumerate(tables)
    ]
    by_word = np.argsort(tables[0]["word_1"].to_numpy())
    words = tables[0]["word_1"].to_numpy()[by_word].astype(np.int64)
    ids = [np.stack([t[f"word_{i + 1}"].to_numpy() for i in range(n)], 1) for n, t in enumerate(tables, 1)]
    one = share[0][by_word]
    x, y = (places(words, ids[1][:, i]) for i in (0, 1))
    by_pair = np.argsort(_key(x, y))
    x, y, two = x[by_pair], y[by_pair], share[1][by_pair]
    pair_key = _key(x, y)
    a, b, c = (places(words, ids[2][:, i]) for i in (0, 1, 2))
    # A user who typed three words typed the first two and the last two, so that both are among the runs of two.
    first, last = places(pair_key, _key(a, b)), places(pair_key, _key(b, c))
    triple_key = _key(first, c)
    by_triple = np.argsort(triple_key)
    apart = one[a] * one[b] * one[c] + one[a] * two[last] + two[first] * one[c]
    weight = [
        np.log2(tables[0]["events"].to_numpy()[by_word] + 1.0),
        np.log2(two / (one[x] * one[y]) + 1),
        np.log2(share[2] / apart + 1)[by_triple],
    ]
    orders = (by_word, by_pair, by_triple)
    events = [t["events"].to_numpy()[order] for t, order in zip(tables, orders, strict=True)]
    word = [
        np.pad(row[order], ((0, 0), (0, 2 - n)), constant_values=-1)
        for n, (row, order) in enumerate(zip(ids, orders, strict=True))
    ]
    return Grams(
        np.concatenate(word).astype(np.int64),
        np.repeat([1, 2, 3], [len(part) for part in ids]),
        fixed_point(np.concatenate(weight)),
        np.concatenate(events).astype(np.int64),
        pair_key,
        triple_key[by_triple],
        words,
    )


def fixed_point(weight: NDArray[np.float64]) -> Longs:
    """Squared weights as whole numbers, whose sums are exact in any order."""
    return np.rint(weight * weight * 2.0**20).astype(np.int64)


def _key(one: NDArray[Any], other: NDArray[Any]) -> Longs:
    """Two places as one number; negative where one of them is -1."""
    return np.where((one < 0) | (other < 0), -1, one.astype(np.int64) << 32 | other)
