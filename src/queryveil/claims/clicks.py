"""Claims about where released queries lead: what users clicked for them in the log."""

import re
import unicodedata
from typing import ClassVar, Literal

import pyarrow as pa

from queryveil.claims.base import Claim, Count, Evidence
from queryveil.knowledge.hosts import domains_of, hosts_of


class DisjointClicks(Claim):
    """No two released queries share a clicked address, and no click is released."""

    kind: Literal["disjoint-clicks"] = "disjoint-clicks"
    exact: ClassVar[str] = (
        "No two released queries share an address that was clicked for them in the log; no click is released."
    )
    short: ClassVar[str] = "No two released queries lead to the same clicked address; no click is released."

    def check(self, evidence: Evidence) -> str | None:
        """Count the released queries of every address."""
        if "url" in evidence.columns:
            found = evidence.first(
                f"SELECT query FROM {evidence.released} WHERE url IS NOT NULL OR rank IS NOT NULL"  # noqa: S608  # parts of this module
                " ORDER BY query LIMIT 1"
            )
            if found is not None:
                return f"a click for '{found[0]}' is released"
        found = evidence.first(
            f"SELECT min(query) AS one, max(query) AS other FROM ({_clicked(evidence)}) AS clicked GROUP BY url"  # noqa: S608  # parts of this module
            " HAVING count(*) > 1 ORDER BY one, other LIMIT 1"
        )
        return None if found is None else f"'{found[0]}' and '{found[1]}' share a clicked address"


class ClickedSites(Claim):
    """Released queries lead to enough documents of enough sites, and name none of these."""

    kind: Literal["clicked-sites"] = "clicked-sites"
    documents: Count
    sites: Count
    exact: ClassVar[str] = (
        "For every released query users clicked at least {documents} addresses of at least {sites} sites, none of which"
        " the query names."
    )
    short: ClassVar[str] = (
        "Every released query has clicks on at least {documents} addresses of at least {sites} sites."
    )

    def check(self, evidence: Evidence) -> str | None:
        """Count the addresses and sites of every released query, and look for the names of the sites in it."""
        schema = pa.schema([("query", pa.string()), ("site", pa.string()), ("named", pa.int32())])
        with evidence.log.workspace() as work:
            targets = work.map(_clicked(evidence), _looked_at, schema, "clicked sites")
            found = evidence.first(
                "SELECT r.query AS query, coalesce(t.documents, 0) AS documents, coalesce(t.sites, 0) AS sites,"  # noqa: S608  # a checked number
                f" coalesce(t.named, 0) AS named FROM (SELECT query FROM {evidence.released} GROUP BY query) AS r"
                " LEFT JOIN (SELECT query, count(*) AS documents, count(DISTINCT site) AS sites, max(named) AS named"
                f" FROM {targets} GROUP BY query) AS t ON t.query = r.query"
                f" WHERE coalesce(t.documents, 0) < {self.documents} OR coalesce(t.sites, 0) < {self.sites}"
                " OR t.named = 1 ORDER BY r.query LIMIT 1"
            )
        if found is None:
            return None
        if found[3]:
            return f"the query '{found[0]}' names a site that was clicked for it"
        return f"the query '{found[0]}' has {found[1]} clicked addresses of {found[2]} sites"


def _clicked(evidence: Evidence) -> str:
    """SQL of the addresses that users clicked for released queries, each once."""
    return (
        f"SELECT q.query AS query, u.url AS url FROM {evidence.queries} q JOIN clicks c ON c.query_id = q.query_id"  # noqa: S608  # parts of this module
        " JOIN urls u ON u.url_id = c.url_id GROUP BY q.query, u.url"
    )


def _looked_at(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The site of each click, and whether its query names it."""
    query, url = batch["query"].to_pylist(), batch["url"].to_pylist()
    hosts = hosts_of(batch["url"])
    rows = []
    for text, address, host, domain in zip(query, url, hosts.to_pylist(), domains_of(hosts).to_pylist(), strict=True):
        names = {_plain(name) for name in (host, domain, domain and domain.split(".")[0]) if name}
        rows.append((text, domain or host or address, int(bool(names & _runs(text)))))
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    types = (pa.string(), pa.string(), pa.int32())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["query", "site", "named"])


def _plain(text: str) -> str:
    return "".join(c for c in text if unicodedata.category(c)[0] in "LMN")


_LONGEST = 30
"""Words of the longest run that could be the name of a host, which has at most 63 letters between its dots."""


def _runs(query: str) -> set[str]:
    """Words that follow each other, written as one; also parts of words between punctuation."""
    words = re.sub(r"\s+", " ", "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in query)).split()
    return {"".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, min(a + _LONGEST, len(words)) + 1)} - {
        ""
    }
