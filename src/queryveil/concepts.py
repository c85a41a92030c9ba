"""Concepts: runs of one to three words that many users type, with the weight of each.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, section 3.1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.log import QueryLog
from queryveil.text import STOP_WORDS

LONGEST = 3
FIXED_POINT = 2.0**20
SHARE = 0.0001
"""The share of all users who must use an n-gram before it is a concept: 65 of AOL's 650,000."""


@dataclass(frozen=True)
class Concepts:
    """The concepts of a log, the lightest first; equal weights by number of words and word ids.

    Attributes:
        order: How many words each concept has.
        word: Its word ids, one row a concept, -1 behind the last word.
        users: Distinct users who used it.
        events: Events that hold it.
        weight: log2(events + 1) for one word, mutual information for two and three.
    """

    order: NDArray[np.int8]
    word: NDArray[np.int32]
    users: NDArray[np.int64]
    events: NDArray[np.int64]
    weight: NDArray[np.float64]

    @property
    def squared(self) -> NDArray[np.int64]:
        """The squared weights as whole numbers, so that sums are exact whatever their order."""
        return np.rint(self.weight * self.weight * FIXED_POINT).astype(np.int64)

    @property
    def parts(self) -> NDArray[np.int32]:
        """The concepts inside each: one row a concept, -1 behind the last. A query that holds it holds them too."""
        ids, (x, y, z) = np.arange(len(self), dtype=np.int32), self.word.T
        one, two, three = (self.order == n for n in (1, 2, 3))
        single = _Lookup(x[one], ids[one], -1)
        pair = _Lookup(_packed(x[two], y[two]), ids[two], -1)
        inside = np.full((len(self), 5), -1, np.int32)
        for i, words in enumerate((x, y, z)):
            inside[:, i] = single[np.where(self.order > max(i, 1), words, -1)]
        inside[three, 3], inside[three, 4] = pair[_packed(x, y)[three]], pair[_packed(y, z)[three]]
        # Stop words are no concepts, and leave gaps.
        found_first = np.argsort(inside < 0, axis=1, kind="stable")
        return np.take_along_axis(inside, found_first, axis=1)

    def __len__(self) -> int:
        return len(self.order)

    def text(self, log: QueryLog, concept: int) -> str:
        """A concept in words."""
        ids = [int(word) for word in self.word[concept] if word >= 0]
        return " ".join(log.tokens.text[word].as_py() for word in ids)


def default_min_users(log: QueryLog, k: int) -> int:
    """One user in ten thousand; on small logs that is nobody, so at least k."""
    return max(k, round(SHARE * log.n_users))


def mine_concepts(log: QueryLog, min_users: int) -> Concepts:
    """Find the n-grams of at least `min_users` users that are not made of stop words alone, and weigh them."""
    counted = [log.ngrams(n, min_users=min_users) for n in range(1, LONGEST + 1)]
    weights = _weights(log, counted)
    stop = _stop_words(log)
    order, word, users, events, weight = [], [], [], [], []
    for n, (grams, weighed) in enumerate(zip(counted, weights, strict=True), 1):
        ids = np.full((len(grams), LONGEST), -1, np.int32)
        for i in range(n):
            ids[:, i] = grams[f"word_{i + 1}"].to_numpy()
        meant = ~stop[ids[:, :n]].all(axis=1)
        order.append(np.full(int(meant.sum()), n, np.int8))
        word.append(ids[meant])
        users.append(grams["users"].to_numpy()[meant])
        events.append(grams["events"].to_numpy()[meant])
        weight.append(weighed[meant])
    columns = [np.concatenate(parts) for parts in (order, word, users, events, weight)]
    by_weight = np.lexsort((*columns[1].T[::-1], columns[0], columns[4]))
    return Concepts(*(column[by_weight] for column in columns))


def query_vectors(log: QueryLog, concepts: Concepts) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The concepts that each query holds, each once, lightest first: where those of a query start, and the concepts."""
    from queryveil.kernels.vectors import concept_vectors

    ids = np.arange(len(concepts), dtype=np.int32)
    single = np.full(len(log.tokens.text), -1, np.int32)
    one, two, three = (concepts.order == n for n in (1, 2, 3))
    single[concepts.word[one, 0]] = ids[one]
    pair_key = _packed(concepts.word[two, 0], concepts.word[two, 1])
    by_pair = np.argsort(pair_key)
    opening = _packed(concepts.word[three, 0], concepts.word[three, 1])
    prefix_key = np.unique(opening)
    triple_key = _packed(np.searchsorted(prefix_key, opening), concepts.word[three, 2])
    by_triple = np.argsort(triple_key)
    return concept_vectors(
        log.tokens.start,
        log.tokens.word,
        single,
        pair_key[by_pair],
        ids[two][by_pair],
        prefix_key,
        triple_key[by_triple],
        ids[three][by_triple],
    )


def _weights(log: QueryLog, counted: list[pa.Table]) -> list[NDArray[np.float64]]:
    """The weights of frequent n-grams: frequency for one word, mutual information for more."""
    per_query, events = log.tokens.per_query, log.events_per_query
    total = [int((np.maximum(per_query - n + 1, 0) * events).sum()) for n in range(1, LONGEST + 1)]
    share = [grams["occurrences"].to_numpy() / max(whole, 1) for grams, whole in zip(counted, total, strict=True)]
    one = np.zeros(len(log.tokens.text))
    one[counted[0]["word_1"].to_numpy()] = share[0]
    x, y = (counted[1][f"word_{i}"].to_numpy() for i in (1, 2))
    two = _Lookup(_packed(x, y), share[1], 0)
    a, b, c = (counted[2][f"word_{i}"].to_numpy() for i in (1, 2, 3))
    apart = one[a] * one[b] * one[c] + one[a] * two[_packed(b, c)] + two[_packed(a, b)] * one[c]
    return [
        np.log2(counted[0]["events"].to_numpy() + 1.0),
        np.log2(share[1] / (one[x] * one[y]) + 1),
        np.log2(share[2] / apart + 1),
    ]


class _Lookup:
    """Values by whole-number keys, and a value for keys that are missing."""

    def __init__(self, key: NDArray[Any], value: NDArray[Any], missing: float) -> None:
        order = np.argsort(key)
        # A last entry that no key reaches, so that every search ends at one.
        self._key = np.append(key[order].astype(np.int64), np.iinfo(np.int64).max)
        self._value = np.append(value[order], value.dtype.type(missing))

    def __getitem__(self, key: NDArray[Any]) -> NDArray[Any]:
        at = np.searchsorted(self._key, key)
        return self._value[np.where(self._key[at] == key, at, -1)]


def _packed(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    return first.astype(np.int64) << 32 | second.astype(np.int64)


def _stop_words(log: QueryLog) -> NDArray[np.bool_]:
    """Which word ids are stop words."""
    import pyarrow.compute as pc

    found = pc.is_in(log.tokens.text, pa.array(sorted(STOP_WORDS), pa.large_string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
