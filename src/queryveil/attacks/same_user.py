"""Same user: a classifier says of two released queries whether one person wrote both.

It is trained on pairs of queries of one half of the log's users, and tried on pairs of released queries of the other
half. It sees only texts and what they mean, and addresses that were clicked for both, never under which id a query was
released. Times are not looked at: most releases have none.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.attacks.finding import Estimate, Finding, InapplicableError, estimated, f1, share, shown
from queryveil.attacks.view import Holders, lists, view
from queryveil.kernels.holders import overlaps, trigrams
from queryveil.knowledge.index import offsets, ranges
from queryveil.knowledge.vectors import embed
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.microaggregation import Searches
from queryveil.release import Release, loaded
from queryveil.text.arrays import byte_spans

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

TRAINED = 20_000
_LEAST = 20
_PER_USER = 8


def same_user(release: Release, log: QueryLog, *, seed: int = 0, pairs: int = TRAINED) -> Finding:
    """How often the classifier is right when it says that one person wrote both queries.

    Half of the pairs are two queries of one user, the others of two users; what counts as one person's is whether any
    user issued both. Every user gives at most one pair of each kind to the test.

    Args:
        release: A release of queries.
        log: Its log.
        seed: Decides what is drawn.
        pairs: Most pairs of each kind to train on, and most to try.
    """
    try:
        import sklearn  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise InapplicableError("needs scikit-learn: pip install 'queryveil[attack]'") from None
    seen = view(release, log)
    if not seen.texts:
        raise InapplicableError("the same user is looked for in releases of queries")
    released = np.zeros(seen.log.n_queries, np.bool_)
    released[seen.queries] = True
    clicks = _Clicks.of(release, seen.log)
    searches = seen.searches
    found = _tried(seen.log, searches, released, clicks, seed, pairs)
    by_lot = np.random.default_rng(seed).permutation(len(searches.query))
    shuffled = _distinct(searches.user, searches.query[by_lot], len(searches.start) - 1)
    control = _tried(seen.log, shuffled, released, clicks, seed, pairs)
    recall = share(found.right, found.right + found.missed)
    whole = found.f1(seed)
    return Finding(
        attack="same user",
        question="linkability",
        setting="",
        number="pairs of queries rightly said to be of one person",
        unit="share",
        estimate=share(found.right, found.right + found.wrong),
        baseline=found.base,
        guessing="pairs of one person among those tried",
        control=share(control.right, control.right + control.wrong),
        controlled="the same in a log whose queries were dealt to the users by lot",
        trials=found.right + found.wrong + found.missed + found.other,
        beside=f"recall {estimated(recall, 'share')}, F1 {estimated(whole, 'index')},"
        f" F1 of guessing {shown(2 * found.base / (1 + found.base), 'index')}",
        details={
            "recall": recall.value,
            "recall_low": recall.low,
            "recall_high": recall.high,
            "f1": whole.value,
            "f1_low": whole.low,
            "f1_high": whole.high,
            "f1_guessing": 2 * found.base / (1 + found.base),
        },
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

    def f1(self, seed: int) -> Estimate:
        return f1(self.right, self.wrong, self.missed, self.other, seed)


@dataclass(frozen=True, eq=False)
class _Clicks:
    """The addresses that were clicked for each query, ascending: in the log, and in the release."""

    log: tuple[Longs, Ints] | None
    release: tuple[Longs, Ints] | None

    @classmethod
    def of(cls, release: Release, log: LocalLog) -> "_Clicks":
        if "url" not in release.schema.names:
            return cls(None, None)
        mine = log.engine.table(
            "SELECT query_id, url_id FROM clicks WHERE url_id IS NOT NULL GROUP BY query_id, url_id"
            " ORDER BY query_id, url_id"
        )
        with loaded(release, log):
            theirs = log.engine.table(
                "SELECT q.query_id AS query_id, u.url_id AS url_id FROM (SELECT query, url FROM released"
                " WHERE url IS NOT NULL GROUP BY query, url) AS r JOIN queries q ON q.query = r.query"
                " JOIN urls u ON u.url = r.url ORDER BY query_id, url_id"
            )
        return cls(_by_query(mine, log.n_queries), _by_query(theirs, log.n_queries))


def _by_query(table: pa.Table, queries: int) -> tuple[Longs, Ints]:
    start = np.searchsorted(table["query_id"].to_numpy(), np.arange(queries + 1))
    return start, table["url_id"].to_numpy().astype(np.int32)


def _distinct(user: Longs, query: Ints, users: int) -> Searches:
    """Searches from pairs of user and query, each once."""
    both = np.unique(user << 32 | query)
    start = np.searchsorted(both >> 32, np.arange(users + 1))
    return Searches(start, (both & 0xFFFFFFFF).astype(np.int32), np.ones(len(both), np.int64))


def _tried(
    log: LocalLog, searches: Searches, released: NDArray[np.bool_], clicks: _Clicks, seed: int, pairs: int
) -> _Tried:
    """Train on one half of the users, and try on the other."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    rng = np.random.default_rng(seed)
    users = rng.permutation(len(searches.start) - 1)
    known, unknown = (searches.take(half) for half in np.array_split(users, 2))
    kept = released[unknown.query]
    unknown = _distinct(unknown.user[kept], unknown.query[kept], len(unknown.start) - 1)
    train, test = _drawn(known, rng, pairs, _PER_USER), _drawn(unknown, rng, pairs, 1)
    issued = Holders.of(searches.start, searches.query, log.n_queries)
    label, truth = (issued.count(*lists(*drawn))[0] > 0 for drawn in (train, test))
    if min(label.sum(), (~label).sum(), truth.sum(), (~truth).sum()) < _LEAST:
        raise InapplicableError(f"fewer than {_LEAST} pairs of queries to learn from or to try")
    words = _word_users(log, known)
    model = HistGradientBoostingClassifier(max_iter=80, max_leaf_nodes=15, early_stopping=False, random_state=seed)
    # Its threads wait for each other longer than they work, where others use the machine too.
    with threadpool_limits(1):
        model.fit(_features(log, words, clicks.log, *train), label)
        said = np.asarray(model.predict(_features(log, words, clicks.release, *test)), np.bool_)
    return _Tried(
        right=int((said & truth).sum()),
        wrong=int((said & ~truth).sum()),
        missed=int((~said & truth).sum()),
        other=int((~said & ~truth).sum()),
    )


def _drawn(searches: Searches, rng: np.random.Generator, most: int, per_user: int) -> tuple[Ints, Ints]:
    """Pairs of two different queries: first those of one user each, then of two users each."""
    size = np.diff(searches.start)
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


def _word_users(log: LocalLog, searches: Searches) -> Longs:
    """How many of some users used each word."""
    tokens = log.tokens
    size = tokens.per_query[searches.query]
    word = tokens.word[ranges(tokens.start[searches.query], size)]
    both = np.unique(np.repeat(searches.user, size) << 32 | word)
    return np.bincount(both & 0xFFFFFFFF, minlength=len(tokens.text))


def _features(
    log: LocalLog, word_users: Longs, clicks: tuple[Longs, Ints] | None, one: Ints, other: Ints
) -> NDArray[np.float64]:
    """What the classifier sees of each pair."""
    queries, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    a, b = place[: len(one)].astype(np.int64), place[len(one) :].astype(np.int64)
    size = log.tokens.per_query[queries]
    word = log.tokens.word[ranges(log.tokens.start[queries], size)]
    both = np.unique(np.repeat(np.arange(len(queries)), size) << 32 | word)
    start = np.searchsorted(both >> 32, np.arange(len(queries) + 1))
    word = (both & 0xFFFFFFFF).astype(np.int32)
    words, rarest = overlaps(start, word, word_users[word], a, b)
    texts = log.query_text.take(pa.array(queries))
    data, starts, ends = byte_spans(texts)
    meaning = embed(texts)[0]
    gram_start, gram = trigrams(data, starts, ends)
    grams = overlaps(gram_start, gram, gram.astype(np.int64), a, b)[0]
    n_words, n_grams, length = np.diff(start), np.diff(gram_start), ends - starts
    columns = [
        words,
        words / np.maximum(n_words[a] + n_words[b] - words, 1),
        np.where(rarest < 0, -1.0, np.log2(np.maximum(rarest, 0) + 1.0)),
        grams / np.maximum(n_grams[a] + n_grams[b] - grams, 1),
        np.einsum("ij,ij->i", meaning[a], meaning[b]),
        np.minimum(n_words[a], n_words[b]),
        np.maximum(n_words[a], n_words[b]),
        np.abs(length[a] - length[b]),
    ]
    if clicks is not None:
        size = np.diff(clicks[0])[queries]
        url = clicks[1][ranges(clicks[0][queries], size)]
        columns.append(overlaps(offsets(size), url, url.astype(np.int64), a, b)[0])
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
