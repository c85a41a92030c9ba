"""Profile retention of groups of users by the categories of their terms.

Arnau Erola et al., Semantic microaggregation for the anonymization of query logs using the open directory project,
SORT 35 (2011).
"""

import time
from itertools import product

from queryveil.assess.measures import srp
from queryveil.assess.reproduce.common import AT_RANDOM, Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.methods import Odp

KS = (2, 3, 4, 5)


def _figures(run: Run) -> list[Figure]:
    """Figures 2 (levels that terms reach), 3 (SRP by level, k and categories) and 4 (time)."""
    linked = {categories: run.categorize("terms", categories=categories) for categories in (1, 5)}
    if len(linked[5].node) == len(linked[1].node):
        # No term has a second category, as in WordNet: the lines would differ by the random draws of records alone.
        del linked[5]
    Odp(k=max(KS)).release(run.log, linked[1], seed=run.seed)  # compiled and in memory before the clock starts
    reach = [
        {"level": row.level, "share": share, "of": of}
        for row in linked[1].coverage(run.log.events_per_query)
        if row.level
        for of, share in (("terms", row.occurrences), ("distinct queries", row.queries), ("events", row.events))
    ]
    kept: list[Row] = []
    cost: list[Row] = []
    random = {k: run.random_groups(k) for k in KS}
    for level, k in product(run.levels, KS):
        run.progress(f"level {level}, k {k}")
        for categories, links in linked.items():
            method = Odp(k=k, levels=level, categories=categories)
            name = "first category" if categories == 1 else f"first {categories} categories"
            at = {"level": level, "k": k, "groups": name}
            begun = time.perf_counter()
            release = method.release(run.log, links, seed=run.seed)
            cost.append(at | {"seconds": time.perf_counter() - begun})
            kept.append(at | {"SRP": srp(release, links, level)[-1].mean})
        baseline = srp(random[k], linked[1], level)[-1].mean
        kept.append({"level": level, "k": k, "groups": AT_RANDOM, "SRP": baseline})
    return [
        Figure("figure-2", "Share that reaches a level of the tree", reach, "level", "share", "of"),
        Figure("figure-3", "Profile retention (SRP)", kept, "level", "SRP", "groups", "k"),
        Figure("figure-4", "Time to make groups and records", cost, "level", "seconds", "groups", "k", share=False),
    ]


EROLA2011 = Paper("erola2011", max(KS), _figures)
