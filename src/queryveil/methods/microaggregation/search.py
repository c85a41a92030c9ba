"""Search: microaggregation of users by the categories of the sites that answer their queries.

Arnau Erola, Jordi Castellà-Roca, Semantic microaggregation of query logs with a search engine (in Spanish), RECSI 2012.
"""

from typing import Any, ClassVar, Literal

from pydantic import Field

from queryveil.errors import QueryveilError
from queryveil.kernels.groups import RECORD
from queryveil.knowledge import Remote, Resolver, Sites, categorize, hosts_needed, open_taxonomy
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods.microaggregation.common import Microaggregation
from queryveil.release import Release


class Search(Microaggregation):
    """Give users one record whose queries lead to sites of the same categories (Erola and Castellà-Roca 2012).

    Every query becomes the site that answers it, and its category in a directory. The two users who share most
    categories begin a group, which grows by the user who shares most with the queries of all its members together. Each
    user gives his share of queries to the record, drawn by lot. Clicks, times and extra columns are dropped.
    """

    name: ClassVar[str] = "search"
    linkage: ClassVar[int] = RECORD
    by_repetition: ClassVar[bool] = False

    taxonomy: str | None = Field(None, description="the directory that sites are looked up in")
    resolver: Literal["clicks", "sites"] | None = Field(
        None, description="where the site of a query comes from: a search in the directory, or by default the clicks"
    )
    send_queries_to: str | None = Field(
        None, description="instead, send every query to this search engine, which answers as SearXNG does"
    )
    cache: str | None = Field(None, description="the file that keeps its answers")

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Group users by the sites of their queries and release the record of each group."""
        if self.taxonomy is None:
            raise QueryveilError(
                "The 'taxonomy' parameter of Search must name a directory; make one with: queryveil directory build."
            )
        if (self.send_queries_to is None) != (self.cache is None):
            raise QueryveilError(
                "'send_queries_to' and 'cache', the file where answers are kept, go together; name both or none."
            )
        if self.send_queries_to is not None and self.resolver is not None:
            raise QueryveilError("Give either 'resolver' or 'send_queries_to', not both.")
        self.check(log)
        base = open_taxonomy(self.taxonomy)
        hosts_needed(base)
        if not isinstance(log, LocalLog) and self.resolver in (None, "clicks") and self.send_queries_to is None:
            if not log.has_clicks:
                raise QueryveilError("The log has no clicks to tell the sites of queries by; choose another resolver.")
            return self.release_by_tables(log, self.taxonomy, "domains", 1, seed=seed)
        here = local(log, "Another resolver than clicks")
        resolver: Resolver | None = Sites(base) if self.resolver == "sites" else None
        if self.send_queries_to is not None and self.cache is not None:
            resolver = Remote(self.send_queries_to, self.cache)
        links = categorize(here, base, "domains", resolver=resolver)
        return self.release(here, links, seed=seed)

    def parameters(self) -> dict[str, Any]:
        """The parameters as the manifest holds them: of a search engine only that there was one."""
        given = super().parameters() | {"cache": None}
        if self.send_queries_to is not None:
            given["send_queries_to"] = "a search engine"
        return given
