"""Search: microaggregation of users by the categories of the sites that answer their queries.

Arnau Erola, Jordi Castellà-Roca, Anonimización de registros de búsqueda mediante la semántica de las consultas, 2012
(in Spanish).
"""

from typing import Any, ClassVar, Literal

from pydantic import Field

from queryveil.errors import QueryveilError, option, parameter
from queryveil.kernels.groups import RECORD
from queryveil.knowledge import Remote, Resolver, Sites, categorize, hosts_needed, open_taxonomy
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods.base import check_k
from queryveil.methods.microaggregation.common import Microaggregation
from queryveil.release import Release

_RESOLVER = "Another resolver than clicks"
"""What needs one machine, as a sentence about it begins."""


class Search(Microaggregation):
    """Give users whose queries lead to sites of the same categories one shared record (Erola and Castellà-Roca 2012).

    Every query becomes the site that answers it, and the category of that site in a web directory. The two users who
    share most categories begin a group, which grows by the user who shares most with the queries of all its members
    together. Each user contributes their share of queries to the record, chosen at random. Clicks, times and extra
    columns are dropped.
    """

    name: ClassVar[str] = "search"
    extras: ClassVar[tuple[str, ...]] = ("search",)
    plain: ClassVar[str] = (
        "At least {k} people whose queries lead to similar web sites share one record, which mixes queries of "
        "all of them. The queries are published as they were typed."
    )
    slow: ClassVar[bool] = True
    summary: ClassVar[str] = "group users whose queries lead to similar sites into one shared record"
    linkage: ClassVar[int] = RECORD
    by_repetition: ClassVar[bool] = False

    taxonomy: str | None = Field(None, description="the web directory where sites are looked up")
    resolver: Literal["clicks", "sites"] | None = Field(
        None, description="how to find the site of a query: by the clicks (the default), or by a search among the sites"
    )
    send_queries_to: str | None = Field(
        None, description="instead, send every query to this search engine: SearXNG, or an index of OpenSearch"
    )
    cache: str | None = Field(None, description="the file for its answers")

    @property
    def one_machine(self) -> str | None:
        """Sites are searched for, and engines asked, on one machine."""
        return _RESOLVER if self.resolver == "sites" or self.send_queries_to is not None else None

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Group users by the sites of their queries and release the record of each group."""
        if self.taxonomy is None:
            raise QueryveilError(
                f"{parameter('Search', 'taxonomy')} must name a web directory; make one with: queryveil web-directory"
                " build."
            )
        if (self.send_queries_to is None) != (self.cache is None):
            raise QueryveilError(
                f"{option('send_queries_to')} needs {option('cache')}, the file for answers, and the other way round;"
                " give both or none."
            )
        if self.send_queries_to is not None and self.resolver is not None:
            raise QueryveilError(f"Give either {option('resolver')} or {option('send_queries_to')}, not both.")
        check_k(self, log.n_users)
        base = open_taxonomy(self.taxonomy)
        hosts_needed(base)
        if not isinstance(log, LocalLog) and self.resolver in (None, "clicks") and self.send_queries_to is None:
            if not log.has_clicks:
                raise QueryveilError(
                    f"The log has no clicks to find the sites of queries by; choose another {option('resolver')}."
                )
            return self.release_by_tables(log, self.taxonomy, "domains", 1, seed=seed)
        here = local(log, _RESOLVER)
        resolver: Resolver | None = Sites(base) if self.resolver == "sites" else None
        if self.send_queries_to is not None and self.cache is not None:
            resolver = Remote(self.send_queries_to, self.cache)
        links = categorize(here, base, "domains", resolver=resolver)
        return self.release(here, links, seed=seed)

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written in the manifest, without the address of the search engine."""
        given = super().parameters() | {"cache": None}
        if self.send_queries_to is not None:
            given["send_queries_to"] = "a search engine"
        return given
