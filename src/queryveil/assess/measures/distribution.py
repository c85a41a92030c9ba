"""How far the frequencies of a release are from those of its log."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Floats
from queryveil.assess.measures.counts import released_counts
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.log import QueryLog, local
from queryveil.release import Release

TOP = 1_000


@dataclass(frozen=True)
class Distribution:
    """Distances of frequencies.

    Attributes:
        queries: The Jensen-Shannon distance of the frequencies of queries: 0 if they are the same, 1 if they share
            nothing.
        terms: The same of terms.
        ranks: Spearman's correlation of how often the log and the release have the 1,000 most frequent queries of the
            log; not a number where one of them has all equally often.
    """

    queries: float
    terms: float
    ranks: float


def distribution(release: Release, log: QueryLog) -> Distribution:
    """Compare the frequencies of queries and terms in a release with those in its log."""
    from scipy.stats import spearmanr

    here = local(log, "the distances of frequencies")
    original, released = here.events_per_query, released_counts(release, here)
    query_terms = here.engine.fetch("SELECT query_id, word_id FROM query_terms")
    query, word = query_terms["query_id"].to_numpy(), query_terms["word_id"].to_numpy()
    terms = [np.bincount(word, weights=counts[query]) for counts in (original, released)]
    top = np.lexsort((np.arange(len(original)), -original))[:TOP]
    ranks = float("nan")
    if len(np.unique(original[top])) > 1 and len(np.unique(released[top])) > 1:
        ranks = float(spearmanr(original[top], released[top]).statistic)
    return Distribution(jensen_shannon(original, released), jensen_shannon(*terms), ranks)


def jensen_shannon(one: NDArray[np.number], other: NDArray[np.number]) -> float:
    """The square root of the Jensen-Shannon divergence of two distributions, in bits; 1 if one of them is empty."""
    if one.sum() == 0 or other.sum() == 0:
        return float((one.sum() == 0) != (other.sum() == 0))
    p, q = one / one.sum(), other / other.sum()
    middle = (p + q) / 2

    def divergence(a: Floats) -> float:
        some = a > 0
        return float((a[some] * np.log2(a[some] / middle[some])).sum())

    return float(np.sqrt(max(0.0, (divergence(p) + divergence(q)) / 2)))


def _number(name: str, on: Assessment) -> Iterator[Value]:
    """One of the distances."""
    if not on.has_queries:
        yield Value(None, "the release has items, not queries")
        return
    value = getattr(on.once("distribution", lambda: distribution(on.release, on.log)), name)
    if math.isnan(value):
        yield Value(None, "there is only one frequency, so there are no ranks")
    else:
        yield Value(value)


_number_of = partial(measure, group="distribution", unit="number")
_number_of("query_frequencies", label="distance of query frequencies (Jensen-Shannon)", better="lower")(
    partial(_number, "queries")
)
_number_of("term_frequencies", label="distance of term frequencies (Jensen-Shannon)", better="lower")(
    partial(_number, "terms")
)
_number_of("frequent_ranks", label="rank correlation of the 1,000 most frequent queries")(partial(_number, "ranks"))
