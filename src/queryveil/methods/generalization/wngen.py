"""WNGEN: a WordNet concept instead of each query.

Claudio Carpineto, Giovanni Romano, KΘ-affinity privacy: Releasing infrequent query refinements safely, Information
Processing and Management 51 (2015), section 4.4, after Yeye He and Jeffrey F. Naughton (VLDB 2009).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from queryveil.arrays import Ragged
from queryveil.claims import ConceptUsers
from queryveil.claims.certificates import Certificate
from queryveil.engines import Table
from queryveil.kernels.wngen import cluster_queries
from queryveil.knowledge import Links, Taxonomy
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import check_k
from queryveil.methods.generalization.common import Generalization, Ints, release_items
from queryveil.methods.generalization.wngen_tables import find_concepts
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.microaggregation.common import plural
from queryveil.methods.queries import link_claims
from queryveil.release import Release


class Wngen(Generalization, LinkedMethod):
    """Replace each query by a concept that queries of at least k users have in common.

    The queries of a concept move down to the concepts below it that one of their nouns belongs to, as long as every
    concept keeps k users. A query without a noun stays at the root. Clicks and times are dropped.
    """

    name: ClassVar[str] = "wngen"
    plain: ClassVar[str] = (
        "It holds no queries. Instead of each, it has a more general concept that queries of at least {k} people have "
        "in common."
    )
    summary: ClassVar[str] = "replace each query by a WordNet concept that k users share"

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Find a concept for every query, and release it for every event."""
        check_k(self, log.n_users)
        if isinstance(log, LocalLog):
            return self.release(log, *self.opened(log), seed=seed)
        base = self.taxonomy_opened()
        work = log.workspace()  # as long as the release, whose check looks at its concepts
        concepts = find_concepts(log, work, base, self.k)
        release = self._released(log, base, concepts, seed=seed)
        assert release.workspace is not None  # noqa: S101
        release.workspace.keeps = (work,)
        return replace(release, certificate=Certificate(seed, kept={"concepts": concepts}))

    def release(self, here: LocalLog, base: Taxonomy, links: Links, *, seed: int) -> Release:
        """Find a concept for every query, and release it for every event.

        Args:
            here: The log.
            base: The taxonomy.
            links: The categories of the terms of the log.
            seed: Random seed.
        """
        node = self.concepts(here, links)
        concepts = pa.table({"query_id": np.arange(len(node)), "node": node, "events": here.events_per_query})
        with here.workspace() as work:
            of_query = work.read(
                pa.table({"query_id": np.arange(len(node), dtype=np.int32), "node": node.astype(np.int32)}), "concepts"
            )
            return self._released(here, base, of_query, seed=seed, certified={"concepts": concepts})

    def _released(
        self, log: QueryLog, base: Taxonomy, concepts: Table, *, seed: int,
        certified: Mapping[str, pa.Table] | None = None,
    ) -> Release:  # fmt: skip
        """Release the concept of each query for every event."""
        claims = (ConceptUsers(**self.claimed(base)), *link_claims(self.linking, items=True))
        with log.workspace() as work:
            used = work.fetch(f"SELECT node, count(*) AS n FROM {concepts} GROUP BY node")
            rooted = int(used["n"].to_numpy()[used["node"].to_numpy() == 0].sum())
            notes = [
                f"{plural(len(used), 'concept')} for {log.n_queries:,} distinct queries; {rooted:,} of these are at the"
                " root, which says nothing."
            ]
            items = work.table(
                f"SELECT e.event_id AS event_id, e.user_id AS user_id, c.node AS node FROM events e JOIN {concepts} c"
                " ON c.query_id = e.query_id",
                "items",
            )
            return release_items(
                self, log, base, items, seed=seed, claims=claims, notes=notes, linking=self.linking,
                certified=certified,
            )  # fmt: skip

    def concepts(self, log: LocalLog, links: Links) -> Ints:
        """The concept of every query."""
        log.ensure_tables("query_users")
        found = log.engine.fetch("SELECT query_id, user_id FROM query_users ORDER BY query_id, user_id")
        issued = np.searchsorted(found["query_id"].to_numpy(), np.arange(log.n_queries + 1))
        start, node = nouns_of(links)
        tree = links.tree
        user = found["user_id"].to_numpy().astype(np.int32)
        return cluster_queries(start, node, issued, user, log.n_users, tree.parent, tree.depth, tree.end, self.k)


def nouns_of(links: Links) -> tuple[np.ndarray, np.ndarray]:
    """The distinct nouns of every query, ascending; the root is not one."""
    start, node = links.nodes()
    query = Ragged(start).owners
    pairs = np.unique(query[node > 0] << 32 | node[node > 0])
    return np.searchsorted(pairs >> 32, np.arange(len(start))), (pairs & 0xFFFFFFFF).astype(np.int32)
