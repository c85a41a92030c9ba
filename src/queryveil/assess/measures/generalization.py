"""What is lost when words become nodes of a tree: GGD, lengths and levels, NCP, and the density of a log.

Amin Milani Fard, Ke Wang, An effective clustering approach to web query log anonymization, SECRYPT 2010. Claudio
Carpineto, Giovanni Romano, KΘ-affinity privacy, Information Processing and Management 51 (2015), formulas 6 and 7.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from queryveil.arrays import Floats, Ragged
from queryveil.assess.measures.counts import shares_records
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.claims import BagUsers, ConceptUsers
from queryveil.errors import QueryveilError, option
from queryveil.kernels.types import Ints
from queryveil.knowledge import Links
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods import Wngen
from queryveil.methods.generalization.common import Loss, Transactions
from queryveil.release import Release, loaded

Reading = Literal["terms", "items"]


def generalization_loss(release: Release, log: QueryLog, links: Links) -> Loss:
    """Distortion, mean length and mean level of a release of bags.

    Args:
        release: A release by `Clump` or `Partition`.
        log: Its log.
        links: Where the terms of the log sit in the tree of the release.
    """
    if not {"user", "node"} <= set(release.schema.names):
        raise QueryveilError("GGD is for releases of items per user, by clump or partition.")
    _check_tree(release, links)
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


def ncp(release: Release, log: QueryLog, links: Links, *, reading: Reading = "terms") -> float:
    """The normalized certainty penalty: the mean cost of all terms of the log, repetitions counted.

    A term of a released query costs 0, and one that is not released 1. A term that is generalized costs the share of
    the tree's leaves that are below its generalization, or 0 if there is but one. So a term that is an inner node of
    the tree costs something even where its generalization is the term itself.

    Args:
        release: A release of queries or of items.
        log: Its log.
        links: Where the terms of the log sit in the tree of the release.
        reading: For a release of one concept per query. By `terms`, as the paper states it, every term in the tree is
            generalized, see `concept_costs`. By `items`, a concept stands for one term, and the others are lost.
    """
    _check_tree(release, links)
    here = local(log, "NCP")
    if reading == "terms" and _has_concepts(release):
        node = Wngen(k=release.manifest.parameters["k"]).concepts(here, links)
        events = here.events_per_query
        total = float((here.tokens.sizes * events).sum())
        return float((concept_costs(here, links, node) * events).sum()) / total if total else 0.0
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


def concept_costs(log: LocalLog, links: Links, node: Ints, reading: Reading = "terms") -> Floats:
    """What the terms of every query cost together if the query becomes a concept.

    By `terms`, a term that is not in the tree costs 1. Any other is generalized until it covers the concept of its
    query, and costs the NCP of that node: of the concept itself if the term is at or below it. By `items`, the concept
    stands for one term of the query, and each other term costs 1.

    Args:
        log: The log.
        links: The categories of its terms; the first of each counts.
        node: The concept of every query.
        reading: See above.
    """
    tree, terms = links.tree, log.tokens.sizes
    cost = np.where(tree.leaves == 1, 0.0, tree.leaves / tree.leaves[0])
    if reading == "items":
        return np.where(terms > 0, terms - 1 + cost[node], 0.0)
    query, item = links.owners, links.item
    known = Ragged(links.first).sizes[item] > 0
    query, term = query[known], links.node[links.first[item[known]]]
    lost = terms - np.bincount(query, minlength=len(terms))
    covered = np.bincount(query, weights=cost[tree.lca(term, node[query])], minlength=len(terms))
    return lost.astype(np.float64) + covered


def _check_tree(release: Release, links: Links) -> None:
    """Refuse links of another tree than the one whose nodes are released: the same numbers would be other nodes."""
    for claim in release.manifest.claims:
        if isinstance(claim, BagUsers | ConceptUsers) and claim.tree != links.tree.digest:
            raise QueryveilError(
                "The categories are not in the taxonomy that the release was made with; use"
                f" {option('taxonomy', claim.taxonomy)}, as it was then."
            )


def _has_concepts(release: Release) -> bool:
    """Whether a release has one concept for each query."""
    return any(isinstance(claim, ConceptUsers) for claim in release.manifest.claims)


def _terms(log: LocalLog, events: str) -> float:
    """How many terms some events have: SQL of query_id and n."""
    (found,) = log.engine.row(
        "SELECT coalesce(sum(t.terms * e.n), 0) AS n FROM (SELECT query_id, count(*) AS terms FROM query_terms GROUP BY"
        f" query_id) AS t JOIN ({events}) AS e ON e.query_id = t.query_id"
    )
    return float(found)


def transaction_density(transactions: Transactions) -> float:
    """How many of the items that its users could have a log has: N / (users x leaves)."""
    return len(transactions.node) / (len(transactions) * int(transactions.tree.leaves[0]))


@measure(
    "item_distortion",
    label="distortion per item (GGD)",
    summary="how much more general released items are than the terms that they stand for (GGD)",
    group="profiles",
    better="lower",
)
def item_distortion(on: Assessment) -> Iterator[Value]:
    """How much more general released items are than the terms that they stand for."""
    bags = on.release.manifest.kind == "items" and any(
        isinstance(claim, BagUsers) for claim in on.release.manifest.claims
    )
    if bags and "user" in on.release.schema.names:
        yield Value(generalization_loss(on.release, on.log, on.terms).per_item)
    else:
        yield Value(None, "it is for bags of items, one per user")


@measure(
    "certainty_penalty",
    label="normalized certainty penalty (NCP)",
    summary="how much of the precision of terms is lost (normalized certainty penalty, NCP)",
    group="profiles",
    better="lower",
)
def certainty_penalty(on: Assessment) -> Iterator[Value]:
    """How much of the precision of terms is lost; 1 - NCP is the term precision."""
    yield Value(ncp(on.release, on.log, on.terms))
    if _has_concepts(on.release):
        yield Value(ncp(on.release, on.log, on.terms, reading="items"), detail="a concept for one term")
