"""Texts of tokens and of words, and which token is which word: by how often each occurs, where, and beside what."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Floats, Longs, Ragged, offsets
from queryveil.log import LocalLog
from queryveil.log.draws import keyed
from queryveil.release import Release

Digests = NDArray[np.uint64]

_KEY = b"words and tokens"
_ROUNDS = 3
"""How far around a word its company is looked at, to know it again."""
_ANCHORS = 15
"""So many of the most frequent tokens are trusted at first."""
_GROWTH = 13, 10
"""By so much more of them grow round by round. Slow growth helps most."""
_SETTLING = 4
"""Rounds after all guesses are trusted."""
_UNSURE = 0.3
"""Two logs of a kind differ by about so much in the logarithm of a frequency, beside chance."""
_WEIGHT, _SCALE = 6, 1_000_000
"""What it is worth to stand beside the same words, against so many such differences."""


@dataclass(frozen=True, eq=False)
class Texts(Ragged):
    """Texts as lists of numbers: text t is item[start[t]:start[t + 1]], and occurs times[t] times."""

    item: Longs
    times: Longs
    text: pa.Array
    """What each number stands for."""

    @cached_property
    def each(self) -> Longs:
        """How often the text of each item occurs."""
        return np.repeat(self.times, self.sizes)

    @cached_property
    def occurrences(self) -> Longs:
        """How often each number occurs."""
        return np.bincount(self.item, weights=self.each, minlength=len(self.text)).astype(np.int64)

    def frequent(self, most: int) -> Longs:
        """The most frequent items that occur, of equals in the order of their texts."""
        order = np.empty(len(self.text), np.int64)
        order[pc.sort_indices(self.text).to_numpy()] = np.arange(len(self.text))
        found: Longs = np.lexsort([order, -self.occurrences])[:most]
        return found[self.occurrences[found] > 0]

    def signatures(self) -> Digests:
        """A digest of how often each item occurs, in which places of texts, and beside what, whatever it is called."""
        text, place = self.owners, self.within.astype(np.uint64)
        found = keyed(_KEY, self.occurrences.astype(np.uint64))
        for _ in range(_ROUNDS):
            here = keyed(_KEY, found[self.item] + place)
            company = np.zeros(len(self.text), np.uint64)
            np.add.at(company, self.item, keyed(_KEY, self.sums(here)[text] ^ here) * self.each.astype(np.uint64))
            found = keyed(_KEY, found ^ company)
        return found

    def beside(self, items: Longs) -> list[Floats]:
        """How often items stand in one text, and one right behind the other; a row an item."""
        from scipy.sparse import csr_matrix

        number = np.full(len(self.text), -1, np.int64)
        number[items] = np.arange(len(items))
        place = number[self.item]
        text, known = self.owners, place >= 0
        shape = (len(self), len(items))
        held: Any = csr_matrix((np.ones(known.sum()), (text[known], place[known])), shape)
        held.data[:] = 1  # an item that a text holds twice is in it once
        together = (held.T @ held.multiply(self.times[:, None]).tocsr()).toarray()
        np.fill_diagonal(together, 0)
        next_to = known[:-1] & known[1:] & (text[:-1] == text[1:])
        pairs = place[:-1][next_to] * len(items) + place[1:][next_to]
        behind = np.bincount(pairs, weights=self.each[:-1][next_to], minlength=len(items) ** 2)
        behind = behind.reshape(len(items), len(items)).astype(np.float64)
        return [together, behind, behind.T]


def typed_texts(log: LocalLog, events: Longs) -> Texts:
    """The words of a log, each query as often as it has events."""
    return Texts(log.tokens.start, log.tokens.word.astype(np.int64), events, log.tokens.text)


def released_texts(release: Release, users: pa.Array | None = None) -> Texts:
    """The tokens of a release, or of some of its users."""
    rows = [
        batch if users is None else batch.filter(pc.is_in(batch["user"], value_set=users.cast(batch["user"].type)))
        for batch in release.batches()
    ]
    queries = [pc.fill_null(batch["query"], "") for batch in rows]
    counted = pc.value_counts(pa.chunked_array(queries, pa.string()))
    parts = pc.split_pattern(counted.field("values"), " ")
    found = pc.dictionary_encode(pc.list_flatten(parts))
    start = offsets(pc.list_value_length(parts).to_numpy())
    return Texts(start, found.indices.to_numpy().astype(np.int64), counted.field("counts").to_numpy(), found.dictionary)


def guessed(tokens: Texts, words: Texts, most: int) -> pa.Table:
    """What the most frequent tokens are taken for.

    Args:
        tokens: The texts of the release.
        words: Those of the log that the attacker has.
        most: How many tokens.
    """
    # A few words more than tokens: the words of some tokens may be a little rarer here.
    mine, theirs = tokens.frequent(most), words.frequent(most + most // 4)
    count = min(len(mine), len(theirs))
    mine = mine[:count]
    word = _aligned(tokens, mine, words, theirs)
    found = {
        "token": tokens.text.take(pa.array(mine)),
        "occurrences": pa.array(tokens.occurrences[mine]),
        "word": words.text.take(pa.array(theirs[word])).cast(pa.string()),
        "by_frequency": words.text.take(pa.array(theirs[:count])).cast(pa.string()),
    }
    return pa.table(found)


def _aligned(tokens: Texts, mine: Longs, words: Texts, theirs: Longs) -> Longs:
    """The place in `theirs` of the word that each of `mine` is taken for, no word for two."""
    from scipy.optimize import linear_sum_assignment

    count = len(mine)
    word = np.arange(count)
    if count == 0:
        return word
    rate = np.log(tokens.occurrences[mine] / tokens.occurrences.sum())
    other = np.log(words.occurrences[theirs] / words.occurrences.sum())
    # Counts of few are uncertain, those of many are not; so is how much a difference says.
    unsure = 1 / np.sqrt(tokens.occurrences[mine])[:, None] + 1 / np.sqrt(words.occurrences[theirs])[None, :]
    apart = np.abs(rate[:, None] - other[None, :]) / (_UNSURE + unsure)
    here = [np.sqrt(_shares(part)) for part in tokens.beside(mine)]
    there = [np.sqrt(_shares(part)) for part in words.beside(theirs)]
    trusted, settled = min(_ANCHORS, count), 0
    while settled < _SETTLING:
        alike = sum(a[:, :trusted] @ b[:, word[:trusted]].T for a, b in zip(here, there, strict=True))
        # Whole numbers, so that the last digit of a sum decides nothing.
        word = linear_sum_assignment(np.rint(_SCALE * (apart - _WEIGHT * alike)))[1]
        settled += trusted == count
        trusted = min(trusted * _GROWTH[0] // _GROWTH[1], count)
    return word


def _shares(counts: Floats) -> Floats:
    """Rows that add up to 1."""
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))


def same_words(tokens: Texts, words: Texts) -> pa.Table:
    """Each `token` and the `word` that alone occurs as it does."""
    marks = [texts.signatures() for texts in (tokens, words)]
    alone = []
    for mark in marks:
        values, first, count = np.unique(mark, return_index=True, return_counts=True)
        alone.append((values[count == 1], first[count == 1]))
    _, mine, theirs = np.intersect1d(alone[0][0], alone[1][0], assume_unique=True, return_indices=True)
    return pa.table(
        {
            "token": tokens.text.take(pa.array(alone[0][1][mine])).cast(pa.string()),
            "word": words.text.take(pa.array(alone[1][1][theirs])).cast(pa.string()),
        }
    )
