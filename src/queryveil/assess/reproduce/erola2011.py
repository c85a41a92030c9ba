"""Profile retention of groups of users by the categories of their terms.

Times are of the processor, all threads together: the paper measured a program that runs on one.

Arnau Erola, Jordi Castellà-Roca, Guillermo Navarro-Arribas, Vicenç Torra, Semantic microaggregation for the
anonymization of query logs using the open directory project, SORT 35 (2011).
"""

import math
import time
from itertools import product

import numpy as np

from queryveil.arrays import Longs
from queryveil.assess.measures import srp
from queryveil.assess.reproduce.common import AT_RANDOM, Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.assess.reproduce.published import NONE, Published, Values, gains, held, more, numbers, shares
from queryveil.knowledge import Links, categorize_texts
from queryveil.methods import Odp
from queryveil.methods.microaggregation.common import Profiles, Searches, group_users
from queryveil.methods.microaggregation.record_tables import contributions

KS = (2, 3, 4, 5)
ONE, FIVE = "first category", "first 5 categories"
CATEGORIES = {ONE: 1, FIVE: 5}
BOUND = "nobody shares an interest"
TWICE = 2
"""How often time is taken for a part of the log; the least counts."""
PARTS = (8, 4, 2, 1)
"""Of the users: an eighth and so on, to see how time grows with the number of queries."""


def _figures(run: Run) -> list[Figure]:
    """Figures 2 (levels that terms reach), 3 (SRP by level, k and categories) and 4 (time)."""
    linked = {name: run.categorize("terms", categories=n) for name, n in CATEGORIES.items()}
    if len(linked[FIVE].node) == len(linked[ONE].node):
        # No term has a second category, as in WordNet: the lines would differ by the random draws of records alone.
        del linked[FIVE]
    Odp(k=max(KS)).release(run.log, linked[ONE], seed=run.seed)  # compiled and in memory before the clock starts
    reach = [
        {"level": row.level, "share": share, "of": of}
        for row in linked[ONE].coverage(run.log.events_per_query)
        if row.level
        for of, share in (("terms", row.occurrences), ("distinct queries", row.queries), ("events", row.events))
    ]
    kept: list[Row] = []
    cost: list[Row] = []
    searches = Searches.of(run.log)
    every = np.arange(run.log.n_queries)
    looked_up = {name: _look_up(run, every, name)[1] for name in linked}
    random = {k: run.random_groups(k) for k in KS}
    for level, k in product(run.levels, KS):
        run.progress(f"level {level}, k {k}")
        for name, links in linked.items():
            method = Odp(k=k, levels=level, categories=CATEGORIES[name])
            at = {"level": level, "k": k, "groups": name}
            begun = time.process_time()
            profiles = Profiles.of(searches, links, level)
            prepared = time.process_time()
            group, parts = group_users(profiles, k, method.linkage, method.grouping, run.log.engine.threads)
            grouped = time.process_time()
            release = method.release_groups(run.log, searches, group, parts=parts, seed=run.seed, notes=[])
            seconds = looked_up[name] + time.process_time() - begun
            cost.append(at | {"seconds": seconds, "partition": (grouped - prepared) / seconds})
            kept.append(at | {"SRP": srp(release, links, level)[-1].mean})
        baseline = srp(random[k], linked[ONE], level)[-1].mean
        kept.append({"level": level, "k": k, "groups": AT_RANDOM, "SRP": baseline})

    def of_cost(name: str, title: str, y: str, *, share: bool) -> Figure:
        rows = [{column: row[column] for column in ("level", "k", "groups", y)} for row in cost]
        return Figure(name, title, rows, "level", y, "groups", "k", share)

    grown = [row for name in linked for row in _growth(run, searches, name)]
    return [
        Figure("figure-2", "Share that reaches a level of the tree", reach, "level", "share", "of"),
        Figure("figure-3", "Profile retention (SRP)", kept, "level", "SRP", "groups", "k"),
        of_cost("figure-4", "Processor time of look-ups, groups and records", "seconds", share=False),
        of_cost("figure-4-partition", "Share of that time that making groups takes", "partition", share=True),
        Figure(
            "figure-4-queries",
            f"Processor time against the number of queries, level {run.levels[-1]}, k = {max(KS)}",
            grown,
            "queries",
            "seconds",
            "groups",
            share=False,
        ),
    ]


def _look_up(run: Run, queries: Longs, name: str) -> tuple[Links, float]:
    """The categories of some queries, looked up anew, and how many seconds that took."""
    begun = time.process_time()
    texts = run.log.query_text.take(queries)
    found = categorize_texts(texts, run.taxonomy, "terms", run.log.language, categories=CATEGORIES[name])
    return found, time.process_time() - begun


def _growth(run: Run, searches: Searches, name: str) -> list[Row]:
    """How long all steps take for parts of the users."""
    level, k, n = run.levels[-1], max(KS), run.log.n_users
    draws = np.random.default_rng(run.seed).integers(0, 1 << 63, len(searches.query)).astype(np.uint64)
    rows = []
    for users in sorted({max(k, n // part) for part in PARTS}):
        run.progress(f"{users:,} users, {name}")
        some = searches.take(np.arange(users))
        queries, place = np.unique(some.query, return_inverse=True)
        local = Searches(some.start, place.astype(np.int32), some.times)
        seconds = math.inf
        for _ in range(TWICE):
            found, taken = _look_up(run, queries.astype(np.int64), name)
            begun = time.process_time()
            group, _ = group_users(Profiles.of(local, found, level), k, Odp.linkage, "auto", run.log.engine.threads)
            contributions(some.start, some.times, draws[: len(place)], group, by_repetition=Odp.by_repetition)
            seconds = min(seconds, taken + time.process_time() - begun)
        rows.append({"queries": int(some.times.sum()), "groups": name, "seconds": seconds})
    return rows


def _cases(values: Values) -> list[tuple[object, int]]:
    return list(product(values.places("figure-3", "level"), KS))


def _five_on(values: Values, level: object, *ks: int) -> str:
    """How much more SRP five categories give than one."""
    return gains(
        *(
            more(values("figure-3", level=level, k=k, groups=FIVE), values("figure-3", level=level, k=k, groups=ONE))
            for k in ks
        )
    )


def _deepest(values: Values) -> object:
    return next(reversed(values.places("figure-3", "level")), None)


def _exponent(values: Values) -> str:
    """The slope of time against queries on logarithmic scales: 1 if time is linear."""
    queries, seconds = values.all("figure-4-queries", "queries", groups=ONE), values.all("figure-4-queries", groups=ONE)
    if len(queries) < 2:
        return NONE
    return f"with their number to the power of {np.polyfit(np.log(queries), np.log(seconds), 1)[0]:.2f}"


def _ratio(one: float | None, other: float | None) -> float | None:
    found = more(one, other)
    return None if found is None else found + 1


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


EROLA2011 = Paper(
    "erola2011",
    max(KS),
    _figures,
    citation=(
        "Arnau Erola, Jordi Castellà-Roca, Guillermo Navarro-Arribas and Vicenç Torra, Semantic microaggregation for"
        " the anonymization of query logs using the open directory project, SORT 35, 2011"
    ),
    published=(
        Published(
            "figure-2",
            "queries that reach level 5",
            "57 %",
            "section 4.2.1",
            lambda v: shares(v("figure-2", level=5, of="distinct queries")),
            ({"level": 5, "of": "distinct queries", "share": 0.57},),
        ),
        Published(
            "figure-3",
            "SRP if nobody shares an interest, k = 2, 3, 4, 5; ours: random groups on the deepest level",
            "1/k: 50, 33.3, 25, 20 %",
            "formula 5",
            lambda v: shares(*(v("figure-3", level=_deepest(v), k=k, groups=AT_RANDOM) for k in KS)),
            tuple({"level": level, "k": k, "groups": BOUND, "SRP": 1 / k} for level in range(1, 6) for k in KS),
        ),
        Published(
            "figure-3",
            "SRP is above 1/k",
            "on all levels, for every k",
            "section 4.2.2",
            lambda v: held(
                kept > 1 / k for level, k in _cases(v) for kept in v.all("figure-3", level=level, k=k, groups=ONE)
            ),
        ),
        Published(
            "figure-3",
            "SRP with five categories instead of one, level 1, k = 2, 3, 4, 5",
            "the same gain in all cases",
            "section 4.2.2",
            lambda v: _five_on(v, 1, *KS),
        ),
        Published(
            "figure-3",
            "SRP with five categories instead of one, level 5, k = 5",
            "approximately 10 % more",
            "section 4.2.2",
            lambda v: _five_on(v, 5, 5),
        ),
        Published(
            "figure-4",
            "time with five categories instead of one, mean over levels and k",
            "three times as long",
            "section 4.2.3",
            lambda v: numbers(
                _ratio(_mean(v.all("figure-4", groups=FIVE)), _mean(v.all("figure-4", groups=ONE)))
            ).replace(NONE, "a term has one category"),
        ),
        Published(
            "figure-4-partition",
            "share of the time that making groups takes, mean over levels and k",
            "less than 1 %",
            "section 4.2.3",
            lambda v: shares(_mean(v.all("figure-4-partition"))),
        ),
        Published(
            "figure-4-queries",
            "how time grows with the number of queries",
            "linearly",
            "section 4.2.3",
            _exponent,
        ),
    ),
)
