"""How far the frequencies of a release are from those of its log."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Floats, Longs
from queryveil.assess.measures.counts import counted, released_counts
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.engines import Table, Workspace
from queryveil.log import LocalLog, QueryLog, check_is_log
from queryveil.release import Release, loaded

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
    check_is_log(log, "the distances of frequencies")
    if not isinstance(log, LocalLog):
        return _by_tables(release, log)
    original, released = log.events_per_query, released_counts(release, log)
    query_terms = log.engine.fetch("SELECT query_id, word_id FROM query_terms")
    query, word = query_terms["query_id"].to_numpy(), query_terms["word_id"].to_numpy()
    terms = [np.bincount(word, weights=counts[query]) for counts in (original, released)]
    top = np.lexsort((np.arange(len(original)), -original))[:TOP]
    ranks = _ranks(original[top], released[top])
    return Distribution(jensen_shannon(original, released), jensen_shannon(*terms), ranks)


def _ranks(original: Longs, released: Longs) -> float:
    """Spearman's correlation; not a number where all values are the same."""
    from scipy.stats import spearmanr

    if len(np.unique(original)) < 2 or len(np.unique(released)) < 2:
        return float("nan")
    return float(spearmanr(original, released).statistic)


def _by_tables(release: Release, log: QueryLog) -> Distribution:
    """The same where the counts of all queries are too many for one machine."""
    log.ensure_tables("per_query")
    with loaded(release, log) as released, log.workspace() as work:
        number = "coalesce(c.n, 0)"
        if "events" in release.schema.names:
            number = f"least({number}, p.events)"
        queries = work.table(
            f"SELECT p.query_id AS query_id, p.events AS a, {number} AS b FROM per_query p"
            f" LEFT JOIN ({counted(release, released)}) AS c ON c.query_id = p.query_id",
            "frequencies of queries",
        )
        terms = work.table(
            "SELECT t.word_id AS word_id, CAST(sum(q.a) AS BIGINT) AS a, CAST(sum(q.b) AS BIGINT) AS b"
            f" FROM query_terms t JOIN {queries} q ON q.query_id = t.query_id GROUP BY t.word_id",
            "frequencies of terms",
        )
        top = work.fetch(f"SELECT a, b FROM {queries} ORDER BY a DESC, query_id LIMIT {TOP}")
        ranks = _ranks(top["a"].to_numpy(), top["b"].to_numpy())
        return Distribution(_distance(work, queries), _distance(work, terms), ranks)


def _distance(work: Workspace, counts: Table) -> float:
    """The Jensen-Shannon distance of the columns a and b of a table."""
    one, other = (
        int(n or 0) for n in work.row(f"SELECT CAST(sum(a) AS BIGINT) AS a, CAST(sum(b) AS BIGINT) AS b FROM {counts}")
    )
    if one == 0 or other == 0:
        return float((one == 0) != (other == 0))
    shares = f"SELECT CAST(a AS DOUBLE) / {one} AS p, CAST(b AS DOUBLE) / {other} AS q FROM {counts}"
    terms = " + ".join(f"CASE WHEN {x} > 0 THEN {x} * ln(2 * {x} / (p + q)) ELSE 0 END" for x in ("p", "q"))
    (found,) = work.row(f"SELECT sum({terms}) AS bits FROM ({shares}) AS shares")
    return math.sqrt(max(0.0, float(found) / math.log(2) / 2))


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
