"""Removal by the query-click graph: no two released queries lead to the same document.

Barbara Poblete, Myra Spiliopoulou, Ricardo Baeza-Yates, Website privacy preservation for query log publishing, Privacy,
Security, and Trust in KDD (PinKDD 2007), LNCS 4890 (2008).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from queryveil.claims import Claim, ClickedSites, DisjointClicks
from queryveil.engines import Table, Workspace
from queryveil.engines.memory import reserve
from queryveil.errors import QueryveilError, option
from queryveil.kernels.removal import degrees, remove_by_degree
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.methods import poblete_tables
from queryveil.methods.base import Reason
from queryveil.methods.click_graph import classes_of, compact, density, edges_of, names_target, site_names
from queryveil.methods.queries import QueryMethod, Selection, flags_of

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Removal:
    """What each step finds, by query id.

    Attributes:
        documents: How many addresses users clicked.
        sites: How many sites these are on.
        named: Whether the query names one of the sites.
        passed: Whether the query passes all steps except the last.
        kept: Whether it is kept.
        notes: The density of the graph, step by step.
    """

    documents: Longs
    sites: Longs
    named: Flags
    passed: Flags
    kept: Flags
    notes: tuple[str, ...]


class Poblete(QueryMethod):
    """Release queries that lead to many documents of many sites, no two to the same one (Poblete et al. 2008).

    An edge joins two queries for which users clicked the same address. First, queries are removed that have fewer than
    k clicked addresses, that name a site they lead to, or whose addresses are on fewer than Kp sites. Then the query
    with the most edges is removed, ties broken by the smallest digest of the text, until there is no edge. Clicks,
    times and extra columns are dropped: an address beside a query would name the site that this method hides.
    """

    name: ClassVar[str] = "poblete"
    extras: ClassVar[tuple[str, ...]] = ("search",)
    plain: ClassVar[str] = (
        "It holds queries that lead to many documents of many web sites. It protects web sites, and counts no people."
    )
    hides_clicks: ClassVar[bool] = True
    slow: ClassVar[bool] = True
    summary: ClassVar[str] = "remove queries until no two lead to the same clicked page"

    k: int = Field(2, ge=1, description="least clicked addresses of a released query")
    sites: int = Field(2, ge=1, description="least sites (Kp) of the clicked addresses of a released query")

    def select(self, log: QueryLog, work: Workspace, within: Table | None = None) -> Selection:
        """Remove queries until no two of those left share a clicked address."""
        if not isinstance(log, LocalLog):
            return self.select_by_tables(log, work, within)
        found = self.removal(log, flags_of(log, within))
        kept = work.read(pa.table({"query_id": np.flatnonzero(found.kept).astype(np.int32)}), "kept queries")
        return Selection(kept, found.notes)

    def claims(self, log: QueryLog) -> list[Claim]:
        """Where the queries lead."""
        return [ClickedSites(documents=self.k, sites=self.sites), DisjointClicks()]

    def select_by_tables(self, log: QueryLog, work: Workspace, within: Table | None = None) -> Selection:
        """The same choice by tables, for a log that is not in the memory of this machine."""
        with log.workspace() as steps:
            clicked = poblete_tables.click_graph(log, steps)
            if clicked is None:
                raise _without_addresses()
            passed = poblete_tables.passing(steps, clicked, self.k, self.sites, within)
            failed = poblete_tables.failing(log, steps, clicked, self.k, self.sites)
            before = poblete_tables.edges(steps, clicked)
            removed = poblete_tables.remove(steps, clicked, passed)
            kept = work.table(
                f"SELECT p.query_id AS query_id FROM {passed} p LEFT JOIN (SELECT query_id FROM {removed}"
                " WHERE query_id IS NOT NULL) AS r ON r.query_id = p.query_id WHERE r.query_id IS NULL",
                "kept queries",
            )
            (queries,) = steps.row(f"SELECT count(*) AS n FROM {clicked.queries}")
            (left,) = steps.row(f"SELECT count(*) AS n FROM {passed}")
            edges, gone = steps.row(
                f"SELECT coalesce(CAST(sum(edges) AS BIGINT), 0) AS n, count(query_id) AS gone FROM {removed}"
            )
        return Selection(kept, self._notes(((queries, before), (left, edges)), failed, gone))

    def _notes(self, graphs: Sequence[tuple[int, int]], failed: tuple[int, int, int], gone: int) -> tuple[str, ...]:
        """What each step found, in sentences.

        Args:
            graphs: How many queries and edges the graph has, before the first and before the last step.
            failed: How many queries each of the first steps removes.
            gone: How many the last one removes.
        """
        before, left = (density(*graph) for graph in graphs)
        return (
            f"The query graph of the log: {before}.",
            f"Removed: {failed[0]:,} distinct queries with fewer than {self.k:,} clicked addresses,"
            f" {failed[1]:,} that name their target, {failed[2]:,} with clicks"
            f" on fewer than {self.sites:,} sites; some for several reasons. The graph of the rest: {left}.",
            f"Removed by degree: {gone:,}. The graph of the release: density 0.",
        )

    def removal(self, log: LocalLog, within: Bools | None = None) -> Removal:
        """Which queries are kept, of all or of those within a set, and what each step found.

        Raises:
            QueryveilError: If no click of the log has an address.
        """
        if not has_addresses(log):
            raise _without_addresses()
        pairs = log.engine.fetch(
            "SELECT query_id, url_id FROM clicks WHERE url_id IS NOT NULL GROUP BY query_id, url_id"
            " ORDER BY query_id, url_id"
        )
        reserve(100 * len(pairs), "The graph of queries and clicked addresses")
        query = pairs["query_id"].to_numpy().astype(np.int64)
        url = pairs["url_id"].to_numpy().astype(np.int64)
        n = log.n_queries
        documents = np.bincount(query, minlength=n)
        named = np.zeros(n, np.bool_)
        names, site = site_names(log.url_text)
        number = pc.dictionary_encode(site).indices.to_numpy().astype(np.int64)
        sites = np.bincount(np.unique(query << 32 | number[url]) >> 32, minlength=n)
        named[query[names_target(log.query_text, names, query, url)]] = True
        passed = (documents >= self.k) & ~named & (sites >= self.sites)
        passed = passed if within is None else passed & within
        before = classes_of(*compact(query, url, documents > 0))
        left = classes_of(*compact(query, url, passed))
        degree = degrees(left)
        graphs = (len(before.member), edges_of(before, degrees(before))), (len(left.member), edges_of(left, degree))
        kept = np.zeros(n, np.bool_)
        kept[np.flatnonzero(passed)] = remove_by_degree(left, degree)
        failed = int((documents < self.k).sum()), int(named.sum()), int(((documents > 0) & (sites < self.sites)).sum())
        notes = self._notes(graphs, failed, int((passed & ~kept).sum()))
        return Removal(documents, sites, named, passed, kept, notes)

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """What each of the four steps found."""
        found = self.removal(log, within)
        documents, sites = int(found.documents[query_id]), int(found.sites[query_id])
        reasons = [
            Reason(f"users clicked at least {self.k} addresses", documents >= self.k, f"{documents}"),
            Reason("it names no site that it leads to", not found.named[query_id], "by the addresses clicked"),
            Reason(f"the addresses are on at least {self.sites} sites", sites >= self.sites, f"{sites}"),
        ]
        if found.passed[query_id]:
            why = "it does not" if found.kept[query_id] else "it did when it was removed"
            reasons.append(
                Reason("it shares no clicked address with a query that is kept", bool(found.kept[query_id]), why)
            )
        return reasons


def has_addresses(log: LocalLog) -> bool:
    """Whether any click of a log has an address: a log may have ranks only."""
    return log.has_clicks and log.clicks["url_id"].null_count < len(log.clicks)


def _without_addresses() -> QueryveilError:
    return QueryveilError(
        "Poblete removes queries by the addresses that users clicked, but no click of the log has one; name the"
        f" column of addresses with {option('columns', {'url': 'NAME'})}, or choose another method."
    )
