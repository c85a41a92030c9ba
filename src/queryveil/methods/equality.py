"""EQ: plain k-anonymity of queries.

Eytan Adar, User 4XXXXX9: Anonymizing Query Logs, Query Log Analysis Workshop at WWW 2007. The paper's secret sharing,
which makes a query readable once k users issued it, releases the same set.
"""

from typing import ClassVar

from pydantic import Field

from queryveil.claims import QueryUsers
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason, check_k, enough_users
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.queries import release_queries
from queryveil.release import Release


class Equality(LinkedMethod):
    """Release a query when at least k users issued it (Adar 2007).

    A click is released when at least k users made it, that is, clicked the same address for the same query, and its
    rank when k users clicked it at that rank; other clicks are left out and their events stay. Times and extra columns
    are dropped.
    """

    name: ClassVar[str] = "equality"
    plain: ClassVar[str] = (
        "It holds the queries that at least {k} people typed in the same words. Those of fewer are left out."
    )
    summary: ClassVar[str] = "release each query that at least k users issued"

    k: int = Field(5, ge=2, description="least distinct users of a released query, and of a released click")

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Release the queries of at least k users."""
        check_k(self, log.n_users)
        log.ensure_tables("per_query")
        with log.workspace() as work:
            kept = work.table(f"SELECT query_id FROM per_query WHERE users >= {self.k}", "kept queries")
            return release_queries(self, log, kept, QueryUsers(users=self.k), k=self.k, seed=seed)

    def explain(self, log: LocalLog, query_id: int) -> list[Reason]:
        """Compare the query's distinct users with k."""
        return [enough_users(log, query_id, self.k)]
