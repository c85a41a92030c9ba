"""Removal by the query-click graph: no two released queries lead to the same document.

Barbara Poblete, Myra Spiliopoulou, Ricardo Baeza-Yates, Website privacy preservation for query log publishing, Privacy,
Security, and Trust in KDD (PinKDD 2007), LNCS 4890 (2008).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from queryveil.arrays import Ragged, offsets
from queryveil.claims import Claim, ClickedSites, DisjointClicks
from queryveil.engines import Table, Workspace
from queryveil.engines.memory import reserve
from queryveil.errors import QueryveilError, option
from queryveil.kernels.removal import Classes, degrees, remove_by_degree, spelled
from queryveil.kernels.types import Bools
from queryveil.knowledge.hosts import domains_of, hosts_of
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods.base import Reason
from queryveil.methods.queries import QueryMethod, Selection, flags_of
from queryveil.text.arrays import byte_spans

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]

_OTHER = r"[^\p{L}\p{M}\p{N}]+"


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
        here = local(log, "poblete")
        found = self.removal(here, flags_of(here, within))
        kept = work.read(pa.table({"query_id": np.flatnonzero(found.kept).astype(np.int32)}), "kept queries")
        return Selection(kept, found.notes)

    def claims(self, log: QueryLog) -> list[Claim]:
        """Where the queries lead."""
        return [ClickedSites(documents=self.k, sites=self.sites), DisjointClicks()]

    def removal(self, log: LocalLog, within: Bools | None = None) -> Removal:
        """Which queries are kept, of all or of those within a set, and what each step found.

        Raises:
            QueryveilError: If no click of the log has an address.
        """
        if not has_addresses(log):
            raise QueryveilError(
                "Poblete removes queries by the addresses that users clicked, but no click of the log has one; name the"
                f" column of addresses with {option('columns', {'url': 'NAME'})}, or choose another method."
            )
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
        names, site = _names(log.url_text)
        sites = np.bincount(np.unique(query << 32 | site[url]) >> 32, minlength=n)
        text = pc.utf8_trim(pc.replace_substring_regex(log.query_text, _OTHER, " "), " ")
        for name in names:
            named[query[spelled(*byte_spans(text), *byte_spans(name), query, url)]] = True
        passed = (documents >= self.k) & ~named & (sites >= self.sites)
        passed = passed if within is None else passed & within
        before = classes_of(*_compact(query, url, documents > 0))
        notes = [f"The query graph of the log: {_density(before, degrees(before))}."]
        left = classes_of(*_compact(query, url, passed))
        degree = degrees(left)
        kept = np.zeros(n, np.bool_)
        notes.append(
            f"Removed: {(documents < self.k).sum():,} distinct queries with fewer than {self.k:,} clicked addresses,"
            f" {named.sum():,} that name their target, {((documents > 0) & (sites < self.sites)).sum():,} with clicks"
            f" on fewer than {self.sites:,} sites; some for several reasons. The graph of the rest:"
            f" {_density(left, degree)}."
        )
        kept[np.flatnonzero(passed)] = remove_by_degree(left, degree)
        notes.append(f"Removed by degree: {(passed & ~kept).sum():,}. The graph of the release: density 0.")
        return Removal(documents, sites, named, passed, kept, tuple(notes))

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


def _names(urls: pa.Array) -> tuple[list[pa.Array], Longs]:
    """Three names of the site of each address, without punctuation, and a number for the site.

    The names are its host, its registrable domain, and the freely chosen part of that: `news.example.co.uk`,
    `example.co.uk` and `example`. The site is the domain or, if there is none, the host or the address itself.
    """
    hosts = pc.dictionary_encode(hosts_of(urls))
    domains = domains_of(hosts.dictionary).take(hosts.indices)
    hosts = hosts.dictionary.take(hosts.indices)
    chosen = pc.struct_field(pc.extract_regex(domains, r"^(?P<chosen>[^.]+)"), "chosen")
    names = [pc.fill_null(pc.replace_substring_regex(name, _OTHER, ""), "") for name in (hosts, domains, chosen)]
    sites = pc.dictionary_encode(pc.coalesce(domains, hosts, urls.cast(pa.string())))
    return names, sites.indices.to_numpy().astype(np.int64)


def _compact(query: Longs, url: Longs, chosen: Flags) -> tuple[Longs, Longs, int]:
    """The clicks of some queries, with the queries and addresses renumbered without gaps."""
    here = chosen[query]
    number = np.cumsum(chosen) - 1
    return number[query[here]], np.unique(url[here], return_inverse=True)[1], int(chosen.sum())


def classes_of(query: Longs, url: Longs, queries: int) -> Classes:
    """Put queries with the same addresses into one class.

    Args:
        query: The query of each click; each pair of query and address occurs once, in order.
        url: The address of each click. Neither has gaps, and every query has an address.
        queries: How many queries there are.
    """
    urls = int(url.max(initial=-1)) + 1
    size = np.bincount(query, minlength=queries)
    of_query = Ragged(offsets(size))
    # Queries with the same addresses so far are split by the next address, one address at a time.
    state, known, place, queue = np.zeros(queries, np.int64), 0, 0, np.arange(queries)
    while len(queue):
        found, number = np.unique(state[queue] * urls + url[of_query.start[queue] + place], return_inverse=True)
        state[queue] = known + number
        known += len(found)
        place += 1
        queue = queue[size[queue] > place]
    _, first, of, members = np.unique(state, return_index=True, return_inverse=True, return_counts=True)
    width = size[first]
    mine = url[of_query.positions(first)]
    holder = np.repeat(np.arange(len(first)), width)
    return Classes(
        offsets(width),
        mine.astype(np.int32),
        offsets(np.bincount(mine, minlength=urls)),
        holder[np.argsort(mine, kind="stable")].astype(np.int32),
        offsets(members),
        np.argsort(of, kind="stable").astype(np.int32),
    )


def _density(classes: Classes, degree: Longs) -> str:
    """The probability that two queries have an edge, in words."""
    n = len(classes.member)
    edges = int((degree * np.diff(classes.member_start)).sum()) // 2
    share = 2 * edges / (n * (n - 1)) if n > 1 else 0.0
    return f"density {share:.3g} ({n:,} distinct queries with a click, {edges:,} edges)"
