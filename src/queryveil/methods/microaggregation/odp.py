"""ODP: microaggregation of users by the categories of their terms.

Arnau Erola, Jordi Castellà-Roca, Guillermo Navarro-Arribas, Vicenç Torra, Semantic microaggregation for the
anonymization of query logs using the open directory project, SORT 35 (2011).
"""

from typing import ClassVar, Literal

from pydantic import Field

from queryveil.kernels.groups import SUMMED
from queryveil.knowledge import categorize
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import check_k
from queryveil.methods.microaggregation.common import Microaggregation
from queryveil.release import Release


class Odp(Microaggregation):
    """Give users whose terms have the same categories one shared record (Erola et al. 2011).

    Every term of a query is looked up in a taxonomy. The two users who share most categories begin a group, which grows
    by the user who shares most with its members. Each user contributes their share of queries to the record of the
    group, those that they repeat most. Clicks, times and extra columns are dropped.
    """

    name: ClassVar[str] = "odp"
    plain: ClassVar[str] = (
        "At least {k} people with similar interests share one record, which mixes queries of all of them. The "
        "queries are published as they were typed."
    )
    slow: ClassVar[bool] = True
    summary: ClassVar[str] = "group users with similar topics and give each group one shared record"
    linkage: ClassVar[int] = SUMMED
    by_repetition: ClassVar[bool] = True

    categories: int = Field(1, ge=1, le=10, description="most categories of a term, the best ones; 1 or 5 in the paper")
    taxonomy: str = Field(
        "wordnet", description="where terms are looked up: wordnet, a web directory, or several with commas"
    )
    linker: Literal["terms", "phrases", "text", "domains", "embedding"] = Field(
        "terms", description="what is looked up for a query; terms in the paper"
    )

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Group users by their terms and release the record of each group."""
        check_k(self, log.n_users)
        if not isinstance(log, LocalLog):
            return self.release_by_tables(log, self.taxonomy, self.linker, self.categories, seed=seed)
        links = categorize(log, self.taxonomy, self.linker, categories=self.categories)
        return self.release(log, links, seed=seed)
