"""Differencing: whose presence decides whether something is released?"""

import numpy as np

from queryveil.assess.attacks.finding import Estimate, Finding, InapplicableError, share
from queryveil.assess.attacks.view import released_queries, view
from queryveil.claims import PartOfLog, QueryUsers
from queryveil.errors import option
from queryveil.log import QueryLog
from queryveil.release import Release, loaded


def differencing(release: Release, log: QueryLog, *, other: Release | None = None) -> Finding:
    """The share of the log's users who issued a query that stands in one of two releases and not in the other.

    Without another release: that of the same log with one user more asked for each query. A query with exactly as many
    users as it needs would go if any one of them were not in the log. So this is the share of users without whom a
    released query would be missing. Words and clicks that have just enough users are not looked at.

    Args:
        release: A release of queries, made by a threshold on users unless `other` is given.
        log: Its log.
        other: Another release, of this log or of another one, such as that of the day before; of its queries, only
            those of this log count.
    """
    seen = view(release, log)
    if not seen.texts:
        raise InapplicableError("differencing is for releases of queries")
    if other is None:
        k = _threshold(release)
        flips = seen.queries[seen.log.users_per_query[seen.queries] == k]
        number = "people without whom a released query would be missing"
    else:
        if "query" not in other.schema.names:
            raise InapplicableError("the other release has no queries")
        with loaded(other, seen.log) as released:
            flips = np.setxor1d(seen.queries, released_queries(released, seen.log))
        number = "people who issued a query that only one of the two releases has"
    there = np.isin(seen.searches.query, flips)
    people = len(np.unique(seen.searches.owners[there]))
    return Finding(
        attack="differencing",
        setting="" if other is None else "two releases",
        number=number,
        unit="share",
        estimate=share(people, seen.log.n_users),
        baseline=0.0,
        baseline_text="two equal releases show nothing",
        control=Estimate(0.0, 0.0, 0.0),
        control_text="a user without a query in either release changes nothing, by definition",
        trials=seen.log.n_users,
        beside=f"{people:,} people, {len(flips):,} queries",
        details={"queries": len(flips), "people": people},
    )


def _threshold(release: Release) -> int:
    """How many users a query needs, if there is such a rule."""
    claims = release.manifest.claims
    k = next((claim.users for claim in claims if isinstance(claim, QueryUsers)), None)
    if k is None or not any(isinstance(claim, PartOfLog) for claim in claims):
        raise InapplicableError(
            f"no threshold on the users of a query decides; name another release to compare with {option('other')}"
        )
    return k
