"""Profile retention of groups of users by the sites that answer their queries.

Arnau Erola, Jordi Castellà-Roca, Semantic microaggregation of query logs with a search engine (in Spanish), RECSI 2012.
"""

from itertools import product

from queryveil.assess.measures import srp
from queryveil.assess.reproduce.common import AT_RANDOM, Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.methods import Odp, Search

KS = (2, 3, 4, 5)


def _figures(run: Run) -> list[Figure]:
    """Figures 2 (SRP of all users) and 3 (of the 100 best), for the search method and for that of 2011."""
    sites, terms = run.categorize("domains", resolver=run.resolver), run.categorize("terms")
    random = {k: run.random_groups(k) for k in KS}
    everyone: list[Row] = []
    best: list[Row] = []
    for level, k in product(run.levels, KS):
        run.progress(f"level {level}, k {k}")
        releases = {
            "search (2012)": (Search(k=k, levels=level).release(run.log, sites, seed=run.seed), sites),
            "terms (2011)": (Odp(k=k, levels=level).release(run.log, terms, seed=run.seed), terms),
            AT_RANDOM: (random[k], sites),
        }
        for name, (release, links) in releases.items():
            found = srp(release, links, level)[-1]
            everyone.append({"level": level, "k": k, "method": name, "SRP": found.mean})
            best.append({"level": level, "k": k, "method": name, "SRP": found.best})
    return [
        Figure("figure-2", "Profile retention (SRP)", everyone, "level", "SRP", "method", "k"),
        Figure("figure-3", "SRP of the 100 users who keep most", best, "level", "SRP", "method", "k"),
    ]


EROLA2012 = Paper("erola2012", max(KS), _figures)
