"""EQ: plain k-anonymity of queries.

Eytan Adar, User 4XXXXX9: Anonymizing Query Logs, Query Log Analysis Workshop at WWW 2007. His secret sharing, by which
a query becomes readable once k users issued it, releases the same set.
"""

from typing import ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from queryveil.claims import PartOfLog, QueryUsers, RowUsers
from queryveil.errors import QueryveilError
from queryveil.log import QueryLog
from queryveil.methods.base import Method, Reason
from queryveil.release import Release


class Equality(Method):
    """Release a query when at least k users issued it (Adar 2007).

    A click is released when at least k users made it, that is, clicked the same address for the same query, and its
    rank when k users clicked it at that rank; other clicks are left out and their events stay. Times and extra columns
    are dropped.
    """

    name: ClassVar[str] = "equality"
    limits: ClassVar[tuple[str, ...]] = (
        "k-anonymity of queries is not differential privacy: it says nothing about what an attacker can learn who knows"
        " part of the log.",
        "Each query is shared by k users, but the set of queries of one fresh user id can still be that of one person. "
        "Where that matters, drop the users (`--users drop`).",
        "Accounts controlled by one person count as several users.",
    )

    k: int = Field(5, ge=2, description="least distinct users behind a released query, and behind a released click")
    users: Literal["fresh", "drop"] = Field(
        "fresh", description="keep users apart under fresh random ids, or drop them"
    )

    def anonymize(self, log: QueryLog, *, seed: int = 0) -> Release:
        """Release the queries of at least k users."""
        check_k(self, "k", self.k, log)
        log.engine.read("released_queries", pa.table({"query_id": (log.users_per_query >= self.k).nonzero()[0]}))
        release = Release.of_events(
            log,
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id FROM events e"
            " JOIN released_queries r ON r.query_id = e.query_id",
            clicks_of(self.k) if len(log.clicks) else None,
            method=self.name,
            parameters=self.parameters(),
            claims=(
                PartOfLog(),
                QueryUsers(users=self.k),
                *click_claims(self.k, log),
            ),
            limits=self.limits,
            seed=seed,
            users=self.users,
        )
        log.engine.forget("released_queries")
        return release

    def explain(self, log: QueryLog, query_id: int) -> list[Reason]:
        """Compare the query's distinct users with k."""
        users = int(log.users_per_query[query_id])
        return [Reason(f"at least {self.k} users issued the query", users >= self.k, f"{users} did")]


def click_claims(k: int, log: QueryLog) -> list[RowUsers]:
    """What `clicks_of` keeps: an address, and a rank, only if k users clicked it for the query."""
    if not len(log.clicks):
        return []
    return [RowUsers(users=k, columns=columns, clicked=True) for columns in (("url",), ("url", "rank"))]


def check_k(method: Method, name: str, k: int, log: QueryLog) -> None:
    """Refuse a k that no query can reach."""
    if k > log.n_users:
        raise QueryveilError(
            f"The '{name}' parameter of {type(method).__name__} is {k}, but the log has only {log.n_users} users, so "
            "nothing could be released."
        )


def clicks_of(k: int, clicks: str = "clicks") -> str:
    """SQL of the clicks on released queries that at least k users made; a rank stays if k users clicked at it.

    Args:
        k: Users needed.
        clicks: The table, or a query in brackets, that holds the clicks.
    """
    url, rank = _shared(clicks, "query_id, url_id", k), _shared(clicks, "query_id, url_id, rank", k)
    return (
        f"SELECT c.event_id AS event_id, ranks.rank AS rank, c.url_id AS url_id FROM {clicks} c JOIN ({url}) AS shared"
        f" ON shared.query_id = c.query_id AND shared.url_id = c.url_id LEFT JOIN ({rank}) AS ranks"
        " ON ranks.query_id = c.query_id AND ranks.url_id = c.url_id AND ranks.rank = c.rank"
    )


def _shared(clicks: str, keys: str, k: int) -> str:
    """SQL of the combinations of columns that the clicks of at least k users share."""
    given = " AND ".join(f"c.{key} IS NOT NULL" for key in keys.split(", "))
    named = ", ".join(f"c.{key} AS {key}" for key in keys.split(", "))
    grouped = ", ".join(f"c.{key}" for key in keys.split(", "))
    pairs = (
        f"SELECT {named}, c.user_id AS user_id FROM {clicks} c JOIN released_queries r ON r.query_id = c.query_id"
        f" WHERE {given} GROUP BY {grouped}, c.user_id"
    )
    return f"SELECT {keys} FROM ({pairs}) AS pairs GROUP BY {keys} HAVING count(*) >= {k}"
