"""RL: how likely an attacker who has the original log finds the user behind a released record.

Montserrat Batet, Arnau Erola, David Sánchez, Jordi Castellà-Roca, Utility preserving query log anonymization via
semantic microaggregation, Information Sciences 242 (2013), formula 10.
"""

import numpy as np

from queryveil.arrays import Floats
from queryveil.assess.measures.counts import record_queries
from queryveil.assess.measures.records import events, original
from queryveil.kernels.linkage import chances
from queryveil.kernels.postings import postings
from queryveil.methods.microaggregation.common import Searches
from queryveil.release import Release


def record_linkage(release: Release) -> float:
    """The percentage of record linkage.

    Every released record is compared to all original ones; G are those with most queries in common, repetitions
    counted; all, if a record has no query of the log. The probability of linkage is 1 / |G| if the true user is in G,
    else 0.

    Args:
        release: A release that was just made, because only that knows who is who in it.

    Returns:
        100 times the mean probability over the released users, or their sessions. If at least k users share every
        record, it is at most 100 / k.
    """
    found = linkage_chances(release)
    return 100 * float(found.mean()) if len(found) else 0.0


def linkage_chances(release: Release, seed: int | None = None) -> Floats:
    """The probability that each released user is linked to their record; of a release by sessions, to each session.

    Args:
        release: A release that was just made, because only that knows who is who in it.
        seed: If given, records are permuted among the released users at random, as if nobody knew who is who.
    """
    log = original(release, "RL")
    rows = record_queries(release, log, events(release))
    truth = log.engine.fetch(f'SELECT "user" AS record, user_id FROM {release.pseudonyms} ORDER BY record, user_id')
    users = truth["user_id"].to_numpy()
    if seed is not None:
        users = np.random.default_rng(seed).permutation(users)
    # Those of the truth: a record may have no query of the log left, and fits all users then.
    records = np.unique(truth["record"].to_numpy())
    searches = Searches.of(log)
    return chances(
        np.searchsorted(rows["record"].to_numpy(), np.append(records, records[-1:] + 1)),
        rows["query_id"].to_numpy(),
        rows["n"].to_numpy(),
        postings(
            searches.start,
            searches.query,
            searches.times.astype(np.int32),
            log.n_queries,
            np.ones(log.n_users, np.bool_),
        ),
        np.searchsorted(truth["record"].to_numpy(), np.append(records, records[-1:] + 1)),
        users,
        log.n_users,
    )
