"""Uniqueness: released queries, and pairs of queries in one record, that only one user of the log issued."""

import numpy as np

from queryveil.arrays import sampled
from queryveil.assess.attacks.finding import Estimate, Finding, InapplicableError, share
from queryveil.assess.attacks.view import NO_QUERY, lists, view
from queryveil.assess.measures.counts import pseudonym
from queryveil.log import LocalLog, QueryLog
from queryveil.release import Release, check_log, loaded

PAIRS = 10_000


def unique_queries(release: Release, log: QueryLog) -> Finding:
    """The share of the distinct released queries that only one user issued.

    Such a query singles out its user where it stands in their record and in no other.

    Args:
        release: A release of queries.
        log: Its log.
    """
    if not isinstance(log, LocalLog):
        return _unlinked(release, log)
    seen = view(release, log)
    if not len(seen.queries):
        raise InapplicableError(NO_QUERY)
    users = seen.log.users_per_query[seen.queries]
    unique = seen.queries[users == 1]
    misplaced = None
    control, why = None, _NOBODY
    if seen.sessions:
        why = "none: a session is one person's, so what stands in it is theirs"
    elif seen.records:
        own = None if seen.owner is None else seen.owner[seen.issued.record[seen.issued.start[unique]]]
        held, there = seen.holding.count(*lists(unique), own)
        misplaced = held != 1 if own is None else (held != 1) | ~there
        by_chance = 0.0
        if own is not None:
            by_chance = float((seen.bags.sizes[own[own >= 0]] / len(seen.bags.item)).sum())
        control = share(min(float(misplaced.sum()) + by_chance, len(unique)), len(users))
        why = (
            "such queries that are in several records or in the wrong one, which lead to nobody, and those that would"
            " be in the right record by chance"
        )
    details: dict[str, float | int | str] = {"queries": len(unique)}
    if misplaced is not None:
        details["misplaced"] = float(misplaced.sum() / len(users))
    return _unique(len(unique), len(users), control, why, details)


def _unlinked(release: Release, log: QueryLog) -> Finding:
    """The same of a release without records, where the queries are too many for one machine."""
    check_log(release, log)
    if "query" not in release.schema.names:
        raise InapplicableError(NO_QUERY)
    if pseudonym(release) is not None:
        raise InapplicableError("on Spark it is tried on releases without user or session ids only")
    log.ensure_tables("per_query")
    with loaded(release, log) as released:
        queries, unique = log.engine.row(
            "SELECT count(*) AS n, count(CASE WHEN p.users = 1 THEN 1 END) AS unique_n FROM (SELECT query FROM"
            f" {released} GROUP BY query) AS r JOIN queries q ON q.query = r.query"
            " JOIN per_query p ON p.query_id = q.query_id"
        )
    if not queries:
        raise InapplicableError(NO_QUERY)
    return _unique(unique, queries, None, _NOBODY, {"queries": unique})


_NOBODY = "none: events are not linked, so a query stands in nobody's record"


def _unique(
    unique: int, queries: int, control: Estimate | None, why: str, details: dict[str, float | int | str]
) -> Finding:
    return Finding(
        attack="unique_queries",
        setting="",
        number="released queries that only one person issued",
        unit="share",
        estimate=share(unique, queries),
        baseline=0.0,
        baseline_text="a release of shared queries has none",
        control=control,
        control_text=why,
        trials=queries,
        details=details,
    )


def unique_pairs(release: Release, log: QueryLog, *, seed: int = 0, pairs: int = PAIRS) -> Finding:
    """The share of pairs of queries in one record that only one user issued both of.

    A random record is drawn, and a random pair of its distinct queries.

    Args:
        release: A release of queries with users.
        log: Its log.
        seed: Random seed.
        pairs: Most records that a pair is drawn from; of more, a random sample.
    """
    seen = view(release, log)
    seen.need_records()
    rng = np.random.default_rng(seed)
    size = seen.bags.sizes
    record = np.flatnonzero(size >= 2)
    if len(record) < 2:
        raise InapplicableError("fewer than two records have two queries")
    record = sampled(record, pairs, rng)
    begin, n = seen.bags.start[record], size[record]
    first = rng.integers(0, n)
    second = rng.integers(0, n - 1)
    second += second >= first
    one, other = seen.bags.item[begin + first], seen.bags.item[begin + second]
    # Each first query with the second one of the next record, in random order.
    order = rng.permutation(len(record))
    apart, next_ = one[order], np.roll(other[order], 1)
    apart, next_ = apart[apart != next_], next_[apart != next_]
    together = seen.issued.count(*lists(one, other))[0]
    across = seen.issued.count(*lists(apart, next_))[0]
    return Finding(
        attack="unique_pairs",
        setting="",
        number="pairs of queries in one record that only one person issued",
        unit="share",
        estimate=share(int((together == 1).sum()), len(together)),
        baseline=0.0,
        baseline_text="a release of shared pairs has none",
        control=share(int((across == 1).sum()), len(across)) if len(across) else None,
        control_text="pairs of queries of two different records",
        trials=len(together),
        details={"nobody": float((together == 0).mean())},
    )
