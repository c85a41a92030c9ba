"""What is lost when words become nodes of a tree: GGD, lengths and levels, NCP, and the density of a log.

Amin Milani Fard, Ke Wang, An effective clustering approach to web query log anonymization, SECRYPT 2010. Claudio
Carpineto, Giovanni Romano, KΘ-affinity privacy, Information Processing and Management 51 (2015), formulas 6 and 7.
"""

from collections.abc import Iterator

import numpy as np

from queryveil.assess.measures.counts import shares_records
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.claims import BagUsers
from queryveil.errors import QueryveilError
from queryveil.knowledge import Links
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods.generalization.common import Loss, Transactions
from queryveil.release import Release, loaded


def generalization_loss(release: Release, log: QueryLog, links: Links) -> Loss:
    """Distortion, mean length and mean level of a release of bags.

    Args:
        release: A release by `Clump` or `Partition`.
        log: Its log.
        links: Where the terms of the log sit in the tree of the release.
    """
    if not {"user", "node"} <= set(release.schema.names):
        raise QueryveilError("GGD is for releases of items a user, by clump or partition.")
    here = local(log, "GGD")
    transactions = Transactions.of(here, links)
    with loaded(release, here) as released:
        rows = here.engine.fetch(f"SELECT node, count(*) AS n FROM {released} GROUP BY node ORDER BY node")
    return Loss.of(
        links.tree,
        rows["node"].to_numpy().astype(np.int32),
        rows["n"].to_numpy(),
        users=release.manifest.counts.users or 0,
        items=len(transactions.node),
    )


def ncp(release: Release, log: QueryLog, links: Links) -> float:
    """The normalized certainty penalty: the mean cost of all terms of the log, repetitions counted.

    A term of a released query costs 0, and one that is not released 1. An item stands for one
    term, and costs the share of the tree's leaves that are below it, or 0 if there is but one.

    Args:
        release: A release of queries or of items.
        log: Its log.
        links: Where the terms of the log sit in a tree; only the tree is looked at.
    """
    here = local(log, "NCP")
    total = _terms(here, "SELECT query_id, count(*) AS n FROM events GROUP BY query_id")
    if release.manifest.kind == "items":
        with loaded(release, here) as released:
            rows = here.engine.fetch(f"SELECT node, count(*) AS n FROM {released} GROUP BY node ORDER BY node")
        leaves = links.tree.leaves[rows["node"].to_numpy()]
        kept = float((rows["n"].to_numpy() * (1 - np.where(leaves == 1, 0, leaves / links.tree.leaves[0]))).sum())
    elif release.manifest.kind in ("events", "sessions", "records") and not shares_records(release):
        with loaded(release, here) as released:
            kept = _terms(
                here,
                f"SELECT q.query_id AS query_id, count(*) AS n FROM (SELECT event, min(query) AS query FROM {released}"
                " GROUP BY event) AS r JOIN queries q ON q.query = r.query GROUP BY q.query_id",
            )
    else:
        raise QueryveilError("NCP is for releases of the log's own events, or of items that stand for terms.")
    return 1 - kept / total if total else 0.0


def _terms(log: LocalLog, events: str) -> float:
    """How many terms some events have: SQL of query_id and n."""
    (found,) = log.engine.row(
        "SELECT coalesce(sum(t.terms * e.n), 0) AS n FROM (SELECT query_id, count(*) AS terms FROM query_terms GROUP BY"
        f" query_id) AS t JOIN ({events}) AS e ON e.query_id = t.query_id"
    )
    return float(found)


def transaction_density(transactions: Transactions) -> float:
    """How many of the items that its users could have a log has: N / (users x leaves)."""
    return float(len(transactions.node) / (len(transactions) * transactions.tree.leaves[0]))


@measure("item_distortion", label="distortion per item (GGD)", group="profiles", better="lower")
def item_distortion(on: Assessment) -> Iterator[Value]:
    """How much more general released items are than the terms that they stand for."""
    bags = on.release.manifest.kind == "items" and any(
        isinstance(claim, BagUsers) for claim in on.release.manifest.claims
    )
    if bags and "user" in on.release.schema.names:
        yield Value(generalization_loss(on.release, on.log, on.terms).per_item)
    else:
        yield Value(None, "it is for bags of items, one per user")


@measure("certainty_penalty", label="normalized certainty penalty (NCP)", group="profiles", better="lower")
def certainty_penalty(on: Assessment) -> Iterator[Value]:
    """How much of the precision of terms is lost; 1 - NCP is the term precision."""
    yield Value(ncp(on.release, on.log, on.terms))
