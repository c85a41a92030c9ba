"""Concepts: runs of one to three words that many users type, and the vectors of queries made of them.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, sections 3.1 and 3.2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import places
from queryveil.engines.memory import reserve
from queryveil.log import LocalLog, QueryLog

LONGEST = 3
FIXED_POINT = 2.0**20
SHARE = 0.0001
"""The share of all users who must use an n-gram before it is a key concept: 65 of AOL's 650,000."""

FEWEST = 5
"""The least users of a key concept in a small log, where that share is less than one user."""


@dataclass(frozen=True)
class Vocabulary:
    """The words that enough users type, in the order of their ids."""

    id: NDArray[Any]
    """The log's id of each word."""
    text: pa.Array

    def places(self, ids: NDArray[Any]) -> NDArray[np.int32]:
        """The place of each word here, -1 for any other word."""
        return places(self.id, ids).astype(np.int32)


@dataclass(frozen=True)
class Concepts:
    """The parts of vectors, in the order of weight, number of words, and words.

    These are the key concepts of a log and, if asked for, each rarer word: it has little weight, so a query with it
    differs a little from the query without it.

    Attributes:
        vocabulary: The words of concepts.
        order: How many words each concept has.
        word: Its words, as positions in the vocabulary; one row per concept, -1 after the last word.
        users: Distinct users who used it.
        events: Events that hold it.
        weight: log2(events + 1) for one word, mutual information for two and three.
        key: Whether it is a key concept; else it is a rarer word.
    """

    vocabulary: "Vocabulary"
    order: NDArray[np.int8]
    word: NDArray[np.int32]
    users: NDArray[np.int64]
    events: NDArray[np.int64]
    weight: NDArray[np.float64]
    key: NDArray[np.bool_]

    @property
    def squared(self) -> NDArray[np.int64]:
        """The squared weights as whole numbers, so that sums are exact whatever their order."""
        return np.rint(self.weight * self.weight * FIXED_POINT).astype(np.int64)

    @property
    def parts(self) -> NDArray[np.int32]:
        """The concepts inside each: one row per concept, -1 after the last. A query that holds it holds them too."""
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

    def text(self, concept: int) -> str:
        """A concept in words."""
        return " ".join(self.vocabulary.text[int(word)].as_py() for word in self.word[concept] if word >= 0)


def default_concept_min_users(log: QueryLog) -> int:
    """One user in ten thousand, and at least five. It does not depend on k."""
    return max(FEWEST, round(SHARE * log.n_users))


def mine_concepts(log: QueryLog, concept_min_users: int, *, word_min_users: int | None = None) -> Concepts:
    """Find the key concepts of a log and, if asked for, its rarer words, and weigh them.

    Args:
        log: The log.
        concept_min_users: The least users of a key concept, an n-gram not made of stop words alone.
        word_min_users: Words with at least this many users are found too, except stop words; by default only key
            concepts are.
    """
    least = concept_min_users if word_min_users is None else min(concept_min_users, word_min_users)
    counted = [log.ngrams(n, min_users=least if n == 1 else concept_min_users) for n in range(1, LONGEST + 1)]
    vocabulary = _vocabulary(log, counted[0])
    grams = [
        np.stack([vocabulary.places(found[f"word_{i}"].to_numpy()) for i in range(1, n + 1)], axis=1)
        for n, found in enumerate(counted, 1)
    ]
    weights = _weights(log, grams, counted)
    stop = pc.is_in(vocabulary.text, pa.array(sorted(log.language.stop_words))).to_numpy(zero_copy_only=False)
    order, word, users, events, weight = [], [], [], [], []
    for n, (gram, found, weighed) in enumerate(zip(grams, counted, weights, strict=True), 1):
        meant = ~stop[gram].all(axis=1)
        order.append(np.full(int(meant.sum()), n, np.int8))
        word.append(np.pad(gram[meant], ((0, 0), (0, LONGEST - n)), constant_values=-1))
        users.append(found["users"].to_numpy()[meant])
        events.append(found["events"].to_numpy()[meant])
        weight.append(weighed[meant])
    columns = [np.concatenate(parts) for parts in (order, word, users, events, weight)]
    columns.append(columns[2] >= concept_min_users)
    by_weight = np.lexsort((*columns[1].T[::-1], columns[0], columns[4]))
    return Concepts(vocabulary, *(column[by_weight] for column in columns))


def _vocabulary(log: QueryLog, single: pa.Table) -> Vocabulary:
    with log.workspace() as work:
        shared = work.read(single.select(["word_1"]), "shared words")
        found = work.fetch(
            f"SELECT w.word_id AS word_id, w.word AS word FROM words w JOIN {shared} v ON v.word_1 = w.word_id"
            " ORDER BY w.word_id"
        )
    return Vocabulary(found["word_id"].to_numpy(), found["word"].combine_chunks().cast(pa.string()))


def query_vectors(log: LocalLog, concepts: Concepts) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The vector of each query: where its concepts start, and these, each once, lightest first.

    A query without a key concept has an empty vector: it is compared with no other.
    """
    reserve(20 * len(log.tokens.word), "The vectors of queries")
    place = concepts.vocabulary.places(np.arange(log.stats.words))
    return vectors(concepts, log.tokens.start, place[log.tokens.word])


def vectors(
    concepts: Concepts, start: NDArray[np.int64], place: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The vectors of some queries: the concepts of each, once, lightest first; none without a key concept.

    Args:
        concepts: The concepts.
        start: Where the words of each query start.
        place: The place of each word in the vocabulary, -1 for one that is not there.

    Returns:
        Where the concepts of each query start, and the concepts.
    """
    from queryveil.kernels.vectors import concept_vectors

    ids = np.arange(len(concepts), dtype=np.int32)
    single = np.full(len(concepts.vocabulary.id) + 1, -1, np.int32)  # the last is for words at place -1
    one, two, three = (concepts.order == n for n in (1, 2, 3))
    single[concepts.word[one, 0]] = ids[one]
    pair_key = _packed(concepts.word[two, 0], concepts.word[two, 1])
    by_pair = np.argsort(pair_key)
    opening = _packed(concepts.word[three, 0], concepts.word[three, 1])
    prefix_key = np.unique(opening)
    triple_key = _packed(np.searchsorted(prefix_key, opening), concepts.word[three, 2])
    by_triple = np.argsort(triple_key)
    return concept_vectors(
        start,
        place,
        single,
        pair_key[by_pair],
        ids[two][by_pair],
        prefix_key,
        triple_key[by_triple],
        ids[three][by_triple],
        concepts.key,
    )


def _weights(log: QueryLog, grams: list[NDArray[np.int32]], counted: list[pa.Table]) -> list[NDArray[np.float64]]:
    """The weights of frequent n-grams: frequency for one word, mutual information for more."""
    words, events = (log.lengths[name].to_numpy() for name in ("words", "events"))
    total = [int((np.maximum(words - n + 1, 0) * events).sum()) for n in range(1, LONGEST + 1)]
    share = [found["occurrences"].to_numpy() / max(whole, 1) for found, whole in zip(counted, total, strict=True)]
    one = share[0]
    x, y = grams[1].T
    two = _Lookup(_packed(x, y), share[1], 0)
    a, b, c = grams[2].T
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
        # A last entry above all keys, so that every search ends at an entry.
        self._key = np.append(key[order].astype(np.int64), np.iinfo(np.int64).max)
        self._value = np.append(value[order], value.dtype.type(missing))

    def __getitem__(self, key: NDArray[Any]) -> NDArray[Any]:
        at = np.searchsorted(self._key, key)
        return self._value[np.where(self._key[at] == key, at, -1)]


def _packed(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    return first.astype(np.int64) << 32 | second.astype(np.int64)
