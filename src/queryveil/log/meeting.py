"""Queries brought together in parts, so that similar ones meet: for logs that are too large for one machine.

Queries are compared as sets of weighted elements. If the cosine of two is at least theta, what only one of them holds
weighs at most 1 - theta^2 of it. So put all elements in any one order: before the first that both hold, at most so much
of either has passed. A query is copied to the parts of all its elements up to there, and meets in one of them every
query that is similar to it. Rare elements come first in the order, so that few queries meet.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Ints, Longs, Ragged
from queryveil.engines import Table, Workspace
from queryveil.log.log import QueryLog
from queryveil.text.arrays import packed, unpacked

QUERIES_OF_PART = 50_000
"""About so many distinct queries of the log come to a part, before some of them are copied; fewer if they may bring
more users than in this package's defaults."""
_USERS = 10
"""So many users of each kind may come with a query until there are more parts."""

USER = np.dtype([("id", "<i8"), ("new", "?")])
"""One of the users of a query, and whether the account is new."""

MET = pa.schema(
    [("part", pa.int32()), ("query_id", pa.int64()), ("total", pa.int64()), ("own", pa.int32()),
     ("fresh", pa.int32()), ("vector", pa.binary()), ("users", pa.binary())]
)  # fmt: skip
"""A query in a part: its weight, how many users it has that count, how many new accounts, its elements, its users."""


@dataclass(frozen=True)
class Counting:
    """Which users count: k of a kind are enough, so no more than these are looked at.

    Attributes:
        k: How many users are asked for.
        most_new: How many new accounts count; all if None.
    """

    k: int
    most_new: int | None

    @property
    def limit(self) -> int:
        """How many new accounts count, at most k."""
        return self.k if self.most_new is None else min(self.k, self.most_new)

    def counted(self, users: NDArray[Any], new: NDArray[Any]) -> Longs:
        """How many of some numbers of users count, given how many of them are new accounts."""
        found: Longs = users - new + np.minimum(new, self.limit)
        return found

    def behind(self, owner: Longs, user: NDArray[Any], owners: int) -> tuple[Longs, Longs]:
        """How many distinct users each owner has, and how many of them are new accounts."""
        order = np.lexsort((user["id"], owner))
        owner, user = owner[order], user[order]
        first = np.ones(len(owner), np.bool_)
        first[1:] = (owner[1:] != owner[:-1]) | (user["id"][1:] != user["id"][:-1])
        fresh = first & user["new"]
        return np.bincount(owner[first], minlength=owners), np.bincount(owner[fresh], minlength=owners)


def parts_of(log: QueryLog, counting: Counting) -> int:
    """Into how many parts the queries of a log are cut."""
    return 1 + log.n_queries * max(counting.k, _USERS) // (_USERS * QUERIES_OF_PART)


def bring_together(
    log: QueryLog,
    work: Workspace,
    vectors: Table,
    weight: Longs,
    rank: Ints,
    theta2: float,
    counting: Counting,
    accounts: Table | None,
) -> Table:
    """Copy queries with their users to parts where those meet that may be similar.

    Args:
        log: The log.
        work: Where the table is made.
        vectors: The query_id of each query, its weight as `total`, and its elements as the bytes of a `vector`.
        weight: The weight of each element.
        rank: The place of each element in the order.
        theta2: The square of theta.
        counting: Which users count.
        accounts: The user_id of every user, and whether the account is `new`, as 0 or 1; None if all accounts count.

    Returns:
        The columns of `MET`.
    """
    log.ensure_tables("query_users")
    parts = parts_of(log, counting)
    if accounts is None:
        users = (
            "SELECT query_id, user_id, 0 AS new, row_number() OVER (PARTITION BY query_id ORDER BY user_id) AS place"
        )
        users += " FROM query_users"
    else:
        users = (
            "SELECT s.query_id AS query_id, s.user_id AS user_id, a.new AS new, row_number() OVER (PARTITION BY"
            f" s.query_id, a.new ORDER BY s.user_id) AS place FROM query_users s JOIN {accounts} a"
            " ON a.user_id = s.user_id"
        )
    return work.map_groups(
        f"SELECT CAST(v.query_id % {parts} AS INTEGER) AS of_query, v.query_id AS query_id, v.total AS total,"
        " CASE WHEN u.place = 1 THEN v.vector END AS vector, u.user_id AS user_id, u.new AS new"
        f" FROM {vectors} v JOIN ({users}) AS u ON u.query_id = v.query_id WHERE u.place <= {counting.k}",
        "of_query",
        _Copies(weight, rank, theta2, counting, parts),
        MET,
        "queries in parts",
    )


@dataclass(frozen=True)
class _Copies:
    """The copies of some queries, from a row a user."""

    weight: Longs
    rank: Ints
    theta2: float
    counting: Counting
    parts: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        query = batch["query_id"].to_numpy().astype(np.int64)
        queries, at, owner = np.unique(query, return_index=True, return_inverse=True)
        user = np.empty(len(query), USER)
        user["id"], user["new"] = batch["user_id"].to_numpy(), batch["new"].to_numpy() != 0
        order = np.lexsort((user["id"], owner))
        start = np.searchsorted(owner[order], np.arange(len(queries) + 1))
        users, fresh = np.diff(start), np.bincount(owner[user["new"]], minlength=len(queries))
        given = np.flatnonzero(batch["vector"].is_valid().to_numpy(zero_copy_only=False))
        _, first = np.unique(query[given], return_index=True)  # every query has a first user
        vector = batch["vector"].take(pa.array(given[first]))
        total = batch["total"].to_numpy()[at]
        place, part = self._parts(*unpacked(vector, np.int32), total)
        columns = [
            part.astype(np.int32),
            queries[place],
            total[place],
            self.counting.counted(users, fresh)[place].astype(np.int32),
            fresh[place].astype(np.int32),
        ]
        lists = [column.take(pa.array(place)) for column in (vector, packed(start, user[order]))]
        return pa.RecordBatch.from_arrays([*map(pa.array, columns), *lists], schema=MET)

    def _parts(self, start: Longs, element: Ints, total: Longs) -> tuple[Longs, Longs]:
        """The places of queries, and the parts of each."""
        owner = Ragged(start).owners
        order = np.lexsort((self.rank[element], owner))
        element, weight = element[order], self.weight[element[order]]
        passed = np.cumsum(weight) - weight
        passed -= passed[start[:-1]][owner]
        here = passed <= (1 - self.theta2) * total[owner] * 1.000001 + 1
        pairs = np.unique(owner[here] * self.parts + element[here] % self.parts)
        return pairs // self.parts, pairs % self.parts
