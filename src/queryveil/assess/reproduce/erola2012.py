"""Profile retention of groups of users by the sites that answer their queries.

Arnau Erola, Jordi Castellà-Roca, Anonimización de registros de búsqueda mediante la semántica de las consultas, 2012
(in Spanish).
"""

from itertools import pairwise, product

import numpy as np

from queryveil.arrays import Longs
from queryveil.assess.measures.records import user_records
from queryveil.assess.measures.srp import BEST, srp_of
from queryveil.assess.reproduce.common import AT_RANDOM, Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.assess.reproduce.published import Published, Values, gains, held, more
from queryveil.knowledge import Links
from queryveil.methods import Odp, Search
from queryveil.methods.microaggregation.common import EXACT, Profiles, Searches, group_users

KS = (2, 3, 4, 5)
NEW, OLD = "search (2012)", "terms (2011)"


def _figures(run: Run) -> list[Figure]:
    """Figures 2 (SRP of all users) and 3 (of 100 users), for the search method and for that of 2011.

    Figure 3 is of "the 100 users of highest similarity", which may be those who keep most, or those who are most
    similar to another user. The second are found among all pairs of users, so not in a log of more than `EXACT` users.
    """
    sites, terms = run.categorize("domains", resolver=run.resolver), run.categorize("terms")
    random = {k: run.random_groups(k) for k in KS}
    searches = Searches.of(run.log)
    everyone: list[Row] = []
    best: list[Row] = []
    similar: list[Row] = []
    paired = run.log.n_users <= EXACT
    for level in run.levels:
        near = {id(links): _most_similar(searches, links, level) for links in (sites, terms) if paired}
        for k in KS:
            run.progress(f"level {level}, k {k}")
            releases = {
                NEW: (Search(k=k, levels=level).release(run.log, sites, seed=run.seed), sites),
                OLD: (Odp(k=k, levels=level).release(run.log, terms, seed=run.seed), terms),
                AT_RANDOM: (random[k], sites),
            }
            for name, (release, links) in releases.items():
                at = {"level": level, "k": k, "method": name}
                records = user_records(release, "SRP")
                found = srp_of(records, links, level)[-1]
                everyone.append(at | {"SRP": found.mean})
                best.append(at | {"SRP": found.best})
                if paired:
                    similar.append(at | {"SRP": srp_of(records, links, level, near[id(links)])[-1].mean})
    beyond = "" if paired else f"; those most similar to another are not sought among more than {EXACT:,} users"

    def shown(name: str, title: str, rows: list[Row]) -> Figure:
        return Figure(name, title, rows, "level", "SRP", "method", "k")

    figures = [
        shown("figure-2", "Profile retention (SRP)", everyone),
        shown("figure-3", f"SRP of the 100 users who keep most{beyond}", best),
    ]
    if paired:
        figures.append(shown("figure-3-similar", "SRP of the 100 users who are most similar to another", similar))
    return figures


def _most_similar(searches: Searches, links: Links, level: int) -> Longs:
    """The users of the most similar pairs, as the paper's algorithm 2 finds them: the best pair, then the next."""
    pair, _ = group_users(Profiles.of(searches, links, level), 2, Search.linkage, "exact")
    return np.flatnonzero(pair < BEST // 2)


def _gained(values: Values, figure: str) -> str:
    """How much more SRP the search method has than that of 2011, on all levels and for all k."""
    cases = product(values.places(figure, "level"), KS)
    return gains(
        *(
            more(values(figure, level=level, k=k, method=NEW), values(figure, level=level, k=k, method=OLD))
            for level, k in cases
        )
    )


def _falls(values: Values) -> str:
    """In how many cases SRP is higher on a level than on the next."""
    lines = [values.all("figure-2", k=k, method=name) for k in KS for name in (NEW, OLD)]
    return held(upper > lower for line in lines for upper, lower in pairwise(line))


EROLA2012 = Paper(
    "erola2012",
    max(KS),
    _figures,
    citation=(
        "Arnau Erola and Jordi Castellà-Roca, Anonimización de registros de búsqueda mediante la semántica de las"
        " consultas, 2012, in Spanish"
    ),
    published=(
        Published(
            "figure-2",
            "SRP compared with the method of 2011, all levels and k",
            "about 10 % more, on every level and for every k",
            "section V-B2",
            lambda v: _gained(v, "figure-2"),
        ),
        Published(
            "figure-2", "SRP is higher on the upper levels than on the deeper ones", "yes", "section V-B2", _falls
        ),
        Published(
            "figure-3",
            "SRP of the 100 users of highest similarity, read as those who keep most, compared with 2011",
            "21 % more",
            "section V-B2",
            lambda v: _gained(v, "figure-3"),
        ),
        Published(
            "figure-3-similar",
            "SRP of the 100 users of highest similarity, read as similar to another user, compared with 2011",
            "21 % more",
            "section V-B2",
            lambda v: _gained(v, "figure-3-similar"),
        ),
    ),
)
