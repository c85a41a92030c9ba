"""User linkage between queries: a classifier says of two released queries whether one person wrote both.

The users of the log fall into three parts at random. From the first, the attacker learns which words go together. They
train on pairs of released queries of the second, and are tried on those of the third. The parts take turns, so every
user is tried once, by an attacker who knows nothing of them. The attacker sees texts and what they mean, and clicked
addresses and days where they are released, never under which id a query was released.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Bools, Floats, Ints, Longs, Ragged, offsets
from queryveil.assess.attacks.finding import (
    Finding,
    InapplicableError,
    anonymity_loss,
    estimated,
    f1,
    share,
    shown,
)
from queryveil.assess.attacks.view import Holders, lists, view
from queryveil.errors import missing
from queryveil.kernels.holders import gaps, overlaps, trigrams
from queryveil.knowledge.vectors import embed
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.microaggregation.common import Searches
from queryveil.release import Release, is_click, loaded
from queryveil.text.arrays import byte_spans

TRAINED = 20_000
_LEAST = 20
_PER_USER = 8
_SURE = 0.7
"""So likely must it be that one person wrote both, if half of all pairs were such, before the attacker says so."""
_TOPICS, _VOCABULARY = 64, 20_000


def user_linkage(release: Release, log: QueryLog, *, seed: int = 0, pairs: int = TRAINED) -> Finding:
    """How often the classifier is right when it says that one person wrote both queries.

    Half of the pairs are two queries of one user, the others of two users; what counts as one person's is whether any
    user issued both. Every user gives at most one pair of each kind to the test. The attacker says so only where they
    are sure; in the control, of as many pairs, the ones that they are surest of.

    Args:
        release: A release of queries.
        log: Its log.
        seed: Random seed.
        pairs: Most pairs of each kind to train on, and most to try.
    """
    lacking = missing("sklearn")
    if lacking is not None:
        raise InapplicableError(lacking)
    seen = view(release, log)
    if not seen.texts:
        raise InapplicableError("user linkage between queries is for releases of queries")
    released = np.zeros(seen.log.n_queries, np.bool_)
    released[seen.queries] = True
    beside = _Beside.of(release, seen.log)
    searches = seen.searches
    found = _tried(seen.log, searches, released, beside, seed, pairs)
    order = np.random.default_rng(seed).permutation(len(searches.query))
    shuffled = _distinct(searches.owners, searches.query[order], len(searches))
    control = _tried(seen.log, shuffled, released, beside, seed, pairs, found.right + found.wrong)
    precision, by_chance = (share(one.right, one.right + one.wrong) for one in (found, control))
    recall = share(found.right, found.right + found.missed)
    whole = f1(found.right, found.wrong, found.missed, found.other, seed)
    return Finding(
        attack="user_linkage",
        setting="",
        number="pairs of queries rightly said to be of one person",
        unit="share",
        estimate=precision,
        baseline=found.base,
        baseline_text="pairs of one person among those tried",
        control=by_chance,
        control_text="the same in a log whose queries are permuted among the users",
        trials=found.right + found.wrong + found.missed + found.other,
        beside=f"recall {estimated(recall, 'share')}, F1 {estimated(whole, 'index')},"
        f" F1 of the baseline {shown(2 * found.base / (1 + found.base), 'index')}",
        details={
            "recall": recall.value,
            "recall_low": recall.low,
            "recall_high": recall.high,
            "f1": whole.value,
            "f1_low": whole.low,
            "f1_high": whole.high,
            "f1_baseline": 2 * found.base / (1 + found.base),
        },
        loss=anonymity_loss(precision.value, recall.value, max(found.base, by_chance.value)),
    )


@dataclass(frozen=True)
class _Tried:
    right: int
    wrong: int
    missed: int
    other: int

    @property
    def base(self) -> float:
        return (self.right + self.missed) / (self.right + self.wrong + self.missed + self.other)


@dataclass(frozen=True, eq=False)
class _Beside:
    """What a release shows of each query beside its text: clicked addresses and days, ascending; None if nothing."""

    clicks: tuple[Longs, Ints] | None
    days: tuple[Longs, Ints] | None

    @classmethod
    def of(cls, release: Release, log: LocalLog) -> "_Beside":
        columns = release.schema.names
        with loaded(release, log) as released:
            clicked = _CLICKS.format(released, is_click(release))
            clicks = log.engine.fetch(clicked) if "url" in columns else None
            days = log.engine.fetch(_DAYS.format(released)) if "time" in columns else None
        return cls(_by_query(clicks, log.n_queries), _by_query(days, log.n_queries))


_CLICKS = (
    "SELECT q.query_id AS query_id, u.url_id AS value FROM (SELECT r.query AS query, r.url AS url FROM {} r WHERE {}"
    " GROUP BY r.query, r.url) AS r JOIN queries q ON q.query = r.query JOIN urls u ON u.url = r.url"
    " ORDER BY query_id, value"
)
_DAYS = (
    "SELECT q.query_id AS query_id, r.value AS value FROM (SELECT query, CAST(time AS DATE) AS value FROM {}"
    " WHERE time IS NOT NULL GROUP BY query, CAST(time AS DATE)) AS r JOIN queries q ON q.query = r.query"
    " ORDER BY query_id, value"
)


def _by_query(table: pa.Table | None, queries: int) -> tuple[Longs, Ints] | None:
    if table is None:
        return None
    start = np.searchsorted(table["query_id"].to_numpy(), np.arange(queries + 1))
    return start, table["value"].cast(pa.int32()).to_numpy()


def _distinct(user: Longs, query: Ints, users: int) -> Searches:
    """Searches from pairs of user and query, each once."""
    both = np.unique(user << 32 | query)
    start = np.searchsorted(both >> 32, np.arange(users + 1))
    return Searches(start, (both & 0xFFFFFFFF).astype(np.int32), np.ones(len(both), np.int64))


def _tried(
    log: LocalLog,
    searches: Searches,
    released: Bools,
    beside: _Beside,
    seed: int,
    pairs: int,
    positives: int | None = None,
) -> _Tried:
    """Learn from two thirds of the users, and try on the others, in turn; say so of some pairs, or where sure."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    rng = np.random.default_rng(seed)
    thirds = np.array_split(rng.permutation(len(searches)), 3)
    issued = Holders.of(searches.start, searches.query, log.n_queries)
    words = _word_queries(log, released)
    truths, chances = [], []
    for turn in range(3):
        known, trained, tried = (searches.take(thirds[(turn + part) % 3]) for part in range(3))
        train = _drawn(_kept(trained, released), rng, pairs // 3, _PER_USER)
        test = _drawn(_kept(tried, released), rng, pairs // 3, 1)
        label, truth = (issued.count(*lists(*drawn))[0] > 0 for drawn in (train, test))
        if min(label.sum(), (~label).sum(), truth.sum(), (~truth).sum()) < _LEAST:
            raise InapplicableError(f"fewer than {_LEAST} pairs of queries to learn from or to try")
        # Threads would wait for each other longer than they work, where others use the machine too.
        with threadpool_limits(1):
            topics = _topics(log, known)
            model = _model(seed).fit(_features(log, words, topics, beside, *train), label)
            chances.append(model.predict_proba(_features(log, words, topics, beside, *test))[:, 1])
        truths.append(truth)
    truth, chance = np.concatenate(truths), np.concatenate(chances)
    yes = chance >= _SURE
    if positives is not None:
        yes = np.zeros(len(chance), np.bool_)
        yes[np.lexsort((np.arange(len(chance)), -chance))[:positives]] = True
    return _Tried(
        right=int((yes & truth).sum()),
        wrong=int((yes & ~truth).sum()),
        missed=int((~yes & truth).sum()),
        other=int((~yes & ~truth).sum()),
    )


def _model(seed: int) -> Any:
    """Small trees. Balanced, so that it is the evidence that counts, and not how many pairs there are of each kind."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]

    return HistGradientBoostingClassifier(
        max_iter=60,
        max_leaf_nodes=8,
        learning_rate=0.06,
        min_samples_leaf=40,
        class_weight="balanced",
        early_stopping=False,
        random_state=seed,
    )


def _kept(searches: Searches, released: Bools) -> Searches:
    kept = released[searches.query]
    return _distinct(searches.owners[kept], searches.query[kept], len(searches))


def _drawn(searches: Searches, rng: np.random.Generator, most: int, per_user: int) -> tuple[Ints, Ints]:
    """Pairs of two different queries: first those of one user each, then of two users each."""
    size = searches.sizes
    user = np.repeat(np.flatnonzero(size >= 2), per_user)
    if len(user) > most:
        user = rng.choice(user, most, replace=False)
    if len(user) < 2:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    first = rng.integers(0, size[user])
    second = rng.integers(0, size[user] - 1)
    second += second >= first
    one, other = searches.query[searches.start[user] + first], searches.query[searches.start[user] + second]
    order = rng.permutation(len(user))
    apart = np.roll(other[order], 1)
    differ = (user[order] != np.roll(user[order], 1)) & (one[order] != apart)
    return np.concatenate([one, one[order][differ]]), np.concatenate([other, apart[differ]])


def _words(log: LocalLog, query: Ints) -> tuple[Longs, Ints]:
    """The distinct words of each query, ascending."""
    word = log.tokens.word[log.tokens.positions(query)]
    both = np.unique(np.repeat(np.arange(len(query)), log.tokens.sizes[query]) << 32 | word)
    return np.searchsorted(both >> 32, np.arange(len(query) + 1)), (both & 0xFFFFFFFF).astype(np.int32)


def _word_queries(log: LocalLog, released: Bools) -> Longs:
    """How many released queries have each word."""
    return np.bincount(_words(log, np.flatnonzero(released).astype(np.int32))[1], minlength=len(log.tokens.text))


def _topics(log: LocalLog, searches: Searches) -> Floats:
    """A vector of each word by who of some users typed it: near to each other if the same people did.

    A word that one of them typed says nothing; of the others, the 20,000 that most typed are looked at.
    """
    from scipy.sparse import csr_matrix
    from sklearn.utils.extmath import randomized_svd  # type: ignore[import-untyped]

    start, word = _words(log, searches.query)
    users = len(searches)
    both = np.unique(searches.owners[Ragged(start).owners] << 32 | word)
    user, word = both >> 32, both & 0xFFFFFFFF
    typed = np.bincount(word, minlength=len(log.tokens.text))
    some = np.lexsort((np.arange(len(typed)), -typed))[:_VOCABULARY]
    some = some[typed[some] >= 2]
    found = np.zeros((len(typed), _TOPICS))
    if len(some) < 2:
        return found
    place = np.full(len(typed), -1)
    place[some] = np.arange(len(some))
    there = place[word] >= 0
    rare = np.log(users / typed[some])
    value = rare[place[word[there]]]
    length = np.sqrt(np.bincount(user[there], value**2, users))
    matrix = csr_matrix(
        (value / np.maximum(length[user[there]], 1e-9), (place[word[there]], user[there])), (len(some), users)
    )
    left, size, _ = randomized_svd(matrix, min(_TOPICS, *matrix.shape), n_iter=3, random_state=0)
    vectors = left * size
    vectors *= (rare / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9))[:, None]
    found[some, : vectors.shape[1]] = vectors
    return found


def _cosines(vectors: NDArray[np.floating], a: Longs, b: Longs) -> Floats:
    """Cosines of pairs of rows, rounded so that the last digit of a sum decides nothing."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return np.asarray(np.einsum("ij,ij->i", unit[a], unit[b]).round(4), np.float64)


def _features(log: LocalLog, word_queries: Longs, topics: Floats, beside: _Beside, one: Ints, other: Ints) -> Floats:
    """What the classifier sees of each pair."""
    queries, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    a, b = place[: len(one)].astype(np.int64), place[len(one) :].astype(np.int64)
    start, word = _words(log, queries)
    words, rarest = overlaps(start, word, word_queries[word], a, b)
    texts = log.query_text.take(pa.array(queries))
    data, starts, ends = byte_spans(texts)
    gram_start, gram = trigrams(data, starts, ends)
    grams = overlaps(gram_start, gram, gram.astype(np.int64), a, b)[0]
    n_words, n_grams, length = np.diff(start), np.diff(gram_start), ends - starts
    about = np.zeros((len(queries), topics.shape[1]))
    np.add.at(about, Ragged(start).owners, topics[word])
    columns = [
        words,
        words / np.maximum(n_words[a] + n_words[b] - words, 1),
        np.where(rarest < 0, -1.0, np.log2(np.maximum(rarest, 1))),
        grams / np.maximum(n_grams[a] + n_grams[b] - grams, 1),
        _cosines(embed(texts)[0], a, b),
        np.minimum(n_words[a], n_words[b]),
        np.maximum(n_words[a], n_words[b]),
        np.abs(length[a] - length[b]),
        _cosines(about, a, b),
    ]
    if beside.clicks is not None:
        at, url = _of(beside.clicks, queries)
        columns.append(overlaps(at, url, url.astype(np.int64), a, b)[0])
    if beside.days is not None:
        columns.append(gaps(*_of(beside.days, queries), a, b))
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)


def _of(values: tuple[Longs, Ints], queries: Ints) -> tuple[Longs, Ints]:
    """The values of some queries."""
    of_query = Ragged(values[0])
    return offsets(of_query.sizes[queries]), values[1][of_query.positions(queries)]
