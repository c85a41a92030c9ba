"""Which queries a release would have, for all values of k and theta at once, without making it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow.compute as pc

from queryveil.arrays import Bools, Longs
from queryveil.assess.comparison import Configuration
from queryveil.assess.planning.space import method_of
from queryveil.log import LocalLog, local
from queryveil.methods import Affinity, Equality, Pipeline, Scrub
from queryveil.methods.affinity.method import Candidates

FEW = 5
"""The long tail is the queries of fewer users."""


def tail_kept(log: LocalLog, configurations: Sequence[Configuration]) -> dict[str, float]:
    """The share of the distinct queries of fewer than 5 users that each release would keep, by its name.

    It is what the measure `queries_kept_by_users` finds in the release, as comparisons put its bands together.

    Args:
        log: The log.
        configurations: Equality and affinity whose `min_term_users` is k, with or without scrubbing first.
    """
    tail = (log.users_per_query > 0) & (log.users_per_query < FEW)
    total = max(int(tail.sum()), 1)
    return {name: int((kept & tail).sum()) / total for name, kept in _selected(log, configurations)}


def _selected(log: LocalLog, configurations: Sequence[Configuration]) -> Iterator[tuple[str, Bools]]:
    """Which queries of the log each release would have."""
    groups: dict[tuple[Scrub | None, Affinity | None], list[tuple[str, Equality | Affinity]]] = defaultdict(list)
    for one in configurations:
        method = method_of(one)
        scrub, last = method.scrub if isinstance(method, Pipeline) else None, method.last
        if isinstance(last, Equality):
            groups[scrub, None].append((one.name, last))
        elif isinstance(last, Affinity):
            alike = last.model_copy(update={"k": 2, "theta": 1.0, "link": "none", "min_term_users": None})
            groups[scrub, alike].append((one.name, last))
    for (scrub, params), members in groups.items():
        base = log if scrub is None else local(scrub.scrubbed(log), "plan")
        whole = _place(base, log)
        for name, kept in _equal(base, members) if params is None else _affine(base, params, members):
            found = np.zeros(log.n_queries + 1, np.bool_)
            found[whole[kept]] = True
            yield name, found[:-1]


def _place(base: LocalLog, log: LocalLog) -> Longs:
    """Where each query of a scrubbed log is in the log; behind the last if it is not there."""
    if base is log:
        return np.arange(log.n_queries)
    found = pc.index_in(base.query_text, value_set=log.query_text.cast(base.query_text.type))
    place: Longs = pc.fill_null(found, log.n_queries).to_numpy().astype(np.int64)
    return place


def _equal(base: LocalLog, members: Sequence[tuple[str, Equality | Affinity]]) -> Iterator[tuple[str, Bools]]:
    for name, method in members:
        yield name, base.users_per_query >= method.k


def _affine(
    base: LocalLog, params: Affinity, members: Sequence[tuple[str, Equality | Affinity]]
) -> Iterator[tuple[str, Bools]]:
    names = {(method.theta, method.k): name for name, method in members if isinstance(method, Affinity)}
    ks = sorted({k for _, k in names if k <= base.n_users})
    if not ks:
        return
    thetas = sorted({theta for theta, _ in names})
    for found in Candidates(params.model_copy(update={"k": ks[0]}), base, ks).released(ks, thetas):
        if (found.theta, found.k) in names:
            yield names[found.theta, found.k], found.queries
