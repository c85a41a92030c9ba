"""Background knowledge of n queries: an attacker who saw a few queries of a person looks for a record with them all."""

from math import sqrt
from typing import Literal, cast, get_args

import numpy as np

from queryveil.arrays import Bools, offsets, sampled
from queryveil.assess.attacks.finding import Finding, InapplicableError, anonymity_loss, mean, share
from queryveil.assess.attacks.view import view
from queryveil.errors import QueryveilError, parameter
from queryveil.log import QueryLog
from queryveil.release import Release

PEOPLE = 10_000

Known = Literal["random", "rarest", "half"]


def check_known(known: str) -> Known:
    """One of the ways to know queries.

    Raises:
        QueryveilError: If there is no such way.
    """
    ways = get_args(Known)
    if known not in ways:
        raise QueryveilError(f"{parameter('attack', 'known')} must be one of {', '.join(ways)}. Got '{known}' instead.")
    return cast(Known, known)


def background_knowledge(
    release: Release, log: QueryLog, *, n_known: int = 3, known: Known = "random", seed: int = 0, people: int = PEOPLE
) -> Finding:
    """How often the queries that an attacker saw lead to exactly one person, the right one.

    A query that is nowhere in the release is passed over, because the attacker sees that too; if none is left,
    everybody may be meant.

    Args:
        release: A release with users that knows who is who.
        log: Its log.
        n_known: How many distinct queries of a person the attacker saw.
        known: Which: any, at random; the ones that fewest users issued, of equals those of the lower id; or half of all
            that the person issued, at random, whatever n_known is.
        seed: Random seed.
        people: Most people that it is tried on; of more, a random sample.
    """
    if n_known < 1:
        raise QueryveilError(
            f"{parameter('attack', 'n_known')} must be a whole number of at least 1. Got {n_known} instead."
        )
    check_known(known)
    seen = view(release, log)
    owner = seen.owners()
    searches, rng = seen.searches, np.random.default_rng(seed)
    size = searches.sizes
    user = np.flatnonzero((owner >= 0) & (size >= (2 if known == "half" else n_known)))
    if len(user) == 0:
        raise InapplicableError(f"nobody in the release has {2 if known == 'half' else n_known} distinct queries")
    user = sampled(user, people, rng)
    mine = searches.take(user)
    draw = rng.permutation(len(mine.query))
    if known == "rarest":
        draw = np.lexsort((mine.query, seen.log.users_per_query[mine.query])).argsort()
    order = np.lexsort((draw, mine.owners))
    n_seen = (size[user] + 1) // 2 if known == "half" else np.full(len(user), n_known)
    seen_query = (mine.within < n_seen[mine.owners]) & np.isin(mine.query[order], seen.queries)
    start = offsets(mine.sums(seen_query))
    found, there = seen.holding.count(start, mine.query[order][seen_query], owner[user])
    right, wrong = (found == 1) & there, found - there == 1
    baseline = 1 / int(seen.people.sum())
    size_of = mean(found.astype(np.float64), seed, 0, float(seen.people.sum()))
    queries = {
        "random": f"any {n_known} of their queries",
        "rarest": f"their {n_known} rarest queries",
        "half": "half of their queries",
    }
    return Finding(
        attack="background_knowledge",
        setting="half" if known == "half" else f"{n_known} {known}",
        number=f"people singled out by {queries[known]}",
        unit="share",
        estimate=share(int(right.sum()), len(user)),
        baseline=baseline,
        baseline_text="one person of the release at random",
        control=share(int(wrong.sum()), len(user)),
        control_text="the same with the person taken out of the release: another is singled out, wrongly",
        trials=len(user),
        beside=f"{size_of.value:,.1f} candidates on average ({size_of.low:,.1f} to {size_of.high:,.1f})",
        details={
            "known": known,
            "n_known": "half" if known == "half" else n_known,
            "candidates": size_of.value,
            "candidates_low": size_of.low,
            "candidates_high": size_of.high,
            "no_candidate": float((found == 0).mean()),
        },
        # Who is singled out rightly is not singled out wrongly, so that chance drives the two apart.
        correlation=_correlation(right, wrong),
        loss=anonymity_loss(right.sum() / max((found == 1).sum(), 1), (found == 1).mean(), baseline),
    )


def _correlation(one: Bools, other: Bools) -> float:
    """That of two columns, from whole numbers; 0 if one of them never changes."""
    n, a, b, both = len(one), int(one.sum()), int(other.sum()), int((one & other).sum())
    spread = a * (n - a) * b * (n - b)
    return 0.0 if spread == 0 else (n * both - a * b) / sqrt(spread)
