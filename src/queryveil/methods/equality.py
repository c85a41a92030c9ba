"""EQ: plain k-anonymity of queries.

Eytan Adar, User 4XXXXX9: Anonymizing Query Logs, Query Log Analysis Workshop at WWW 2007. The paper's secret sharing,
which makes a query readable once k users issued it, releases the same set.
"""

from typing import ClassVar

from pydantic import Field

from queryveil.claims import Claim, QueryUsers
from queryveil.engines import Table, Workspace
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason, check_k, enough_users
from queryveil.methods.jitter import JitteredMethod
from queryveil.methods.queries import Selection, joined


class Equality(JitteredMethod):
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

    @property
    def least_users(self) -> int:
        """Least users of a released query: k."""
        return self.k

    @property
    def click_users(self) -> int:
        """Least users of a released click: k."""
        return self.k

    def select(self, log: QueryLog, work: Workspace, within: Table | None = None) -> Selection:
        """Choose the queries of at least k users."""
        check_k(self, log.n_users)
        log.ensure_tables("per_query")
        enough = (
            f"SELECT p.query_id AS query_id FROM per_query p{joined(within, 'p.query_id')} WHERE p.users >= {self.k}"
        )
        return Selection(work.table(enough, "kept queries"))

    def claims(self, log: QueryLog) -> list[Claim]:
        """At least k users issued each query."""
        return [QueryUsers(users=self.k)]

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """Compare the query's distinct users with k."""
        return [enough_users(log, query_id, self.k), *self.jitter_reasons()]
