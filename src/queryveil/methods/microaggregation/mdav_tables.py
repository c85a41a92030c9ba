"""MDAV with tables, for logs that are too large for one machine: the same groups and records as in memory.

SQL counts interests and cuts users into blocks. Groups and the items of their records are made block by block, on any
worker. Then every category of a record is joined with the query that was drawn for it.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queryveil.engines import Table, Workspace
from queryveil.knowledge import open_taxonomy
from queryveil.log import QueryLog
from queryveil.methods.microaggregation import record_tables
from queryveil.methods.microaggregation.interests import (
    LEVELS,
    Interests,
    distances,
    group_users,
    own_share,
    random_keys,
    representatives,
)
from queryveil.methods.microaggregation.record_tables import Counted, opened

_MADE = pa.schema([(name, pa.int64()) for name in ("block", "member", "user_id", "item", "draw")])
_PLACES = pa.schema([(name, pa.int64()) for name in ("block", "member", "user_id", "place")])


def count_interests(log: QueryLog, work: Workspace, taxonomy: str | None, linker: str) -> tuple[Counted, int]:
    """The interests of users, and how many users have any; without taxonomy, nodes are queries."""
    if taxonomy is None:
        log.ensure_tables("query_users")
        interests = work.table(
            "SELECT user_id, query_id AS node, CAST(events AS BIGINT) AS n FROM query_users", "interests"
        )
        profiles = work.table(f"SELECT user_id, node, CAST(1 AS INT) AS level, n FROM {interests}", "profiles")
        counted = Counted(None, interests, profiles)
    else:
        counted = record_tables.count_interests(log, work, taxonomy, linker, categories=1, levels=LEVELS)
    (users,) = work.row(f"SELECT count(*) AS n FROM ({_users(counted)}) AS users")
    return counted, int(users)


def _users(counted: Counted) -> str:
    return f"SELECT user_id FROM {counted.profiles} GROUP BY user_id"


def cut_blocks(log: QueryLog, work: Workspace, counted: Counted, taxonomy: str | None, users: int, parts: int) -> Table:
    """The table of user_id and block, of the users with interests."""
    nodes, levels = 2**62, 1
    if taxonomy is not None:
        tree = open_taxonomy(taxonomy).tree
        nodes, levels = len(tree), min(LEVELS, tree.height)
    return record_tables.cut_blocks(
        log, work, counted.profiles, _users(counted), count=users, nodes=nodes, levels=levels, parts=parts
    )


def make_records(
    log: QueryLog, work: Workspace, counted: Counted, blocks: Table, taxonomy: str | None, key: bytes, k: int
) -> Table:
    """The table of block, member, user_id, query_id and n: groups, and the queries of their records.

    Its rows: for each user, member = their group, no query; for each query of a record, n = how often.
    """
    with log.workspace() as steps:
        draw, more = "CAST(0 AS BIGINT)", " WHERE i.node > 0"
        if taxonomy is None:
            draw, more = "q.draw", f" JOIN {record_tables.draw_queries(steps, key)} q ON q.id = i.node"
        standing = steps.map_groups(
            "SELECT b.block AS block, CAST(i.user_id AS BIGINT) AS user_id, CAST(i.node AS BIGINT) AS item, i.n AS n,"
            f" u.digest AS digest, {draw} AS draw FROM {counted.interests} i JOIN {blocks} b ON b.user_id = i.user_id"
            f" JOIN users u ON u.user_id = i.user_id{more}",
            "block",
            _Block(taxonomy, k, key),
            _MADE,
            "groups and items",
        )
        drawn = f"SELECT block, member, user_id, item AS query_id FROM {standing} WHERE item IS NOT NULL"
        if counted.links is not None:
            drawn = _draw_queries(steps, standing, counted.links)
        return work.table(
            f"SELECT block, member, user_id, CAST(NULL AS BIGINT) AS query_id, CAST(1 AS BIGINT) AS n FROM {standing}"
            " WHERE item IS NULL UNION ALL SELECT block, member, min(user_id) AS user_id, CAST(query_id AS BIGINT)"
            f" AS query_id, count(*) AS n FROM ({drawn}) AS drawn GROUP BY block, member, query_id",
            "contributions",
        )


def _draw_queries(work: Workspace, standing: Table, links: Table) -> str:
    """SQL of block, member, user_id and query_id: a query drawn for each category in a record."""
    pool = work.number(
        f"SELECT node, query_id FROM {links} GROUP BY node, query_id", ("node", "query_id"), "place", name="pool"
    )
    places = work.map(
        "SELECT s.block AS block, s.member AS member, s.user_id AS user_id, s.draw AS draw, p.first AS first, p.n AS n"
        f" FROM {standing} s JOIN (SELECT node, min(place) AS first, count(*) AS n FROM {pool} GROUP BY node) AS p"
        " ON p.node = s.item",
        _places,
        _PLACES,
        "places",
    )
    return (
        f"SELECT s.block AS block, s.member AS member, s.user_id AS user_id, p.query_id AS query_id FROM {places} s"
        f" JOIN {pool} p ON p.place = s.place"
    )


def _places(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Which of all queries of all categories was drawn."""
    n = batch["n"].to_numpy().astype(np.uint64)
    place = batch["first"].to_numpy() + (batch["draw"].to_numpy().view(np.uint64) % n).astype(np.int64)
    kept = [batch[name].cast(pa.int64()) for name in ("block", "member", "user_id")]
    return pa.RecordBatch.from_arrays([*kept, pa.array(place, pa.int64())], schema=_PLACES)


@dataclass(frozen=True)
class _Block:
    """The groups of a block, and the items of their records."""

    taxonomy: str | None
    k: int
    key: bytes

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        column = {name: batch[name].to_numpy() for name in batch.schema.names}
        rows = np.lexsort((column["item"], column["user_id"]))
        users, first = np.unique(column["user_id"][rows], return_index=True)
        tree = opened(self.taxonomy).tree if self.taxonomy is not None else None
        # Ids of queries can be any numbers; here they are positions in a list.
        names, known, place = np.unique(column["item"][rows], return_index=True, return_inverse=True)
        drawn = None if tree is not None else column["draw"][rows][known].view(np.uint64)
        if tree is not None:
            names, place = np.arange(len(tree)), column["item"][rows]
        interests = Interests(np.append(first, len(rows)), place.astype(np.int32), column["n"][rows], len(names), tree)
        group = group_users(lambda some: distances(interests.take(some)), np.arange(len(users)), 1, self.k, 1)
        of, taken = representatives(interests, group, drawn)
        holder = users[np.unique(group, return_index=True)[1]]
        digest = column["digest"][rows][first][np.unique(group, return_index=True)[1]].astype(np.uint64)
        draw = random_keys(of, taken, digest, self.key).view(np.int64)
        none = np.zeros(len(users), np.int64)
        missing = np.concatenate([np.ones(len(users), bool), np.zeros(len(of), bool)])
        arrays = [
            pa.array(np.full(len(missing), column["block"][0])),
            pa.array(np.concatenate([group, of]).astype(np.int64)),
            pa.array(np.concatenate([users, holder[of]])),
            pa.array(np.concatenate([none, names[taken]]), mask=missing),
            pa.array(np.concatenate([none, draw]), mask=missing),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=_MADE)


def share_of_own(work: Workspace, made: Table) -> str:
    """The share of records that came from their own users, in a sentence."""
    mine = (
        f"SELECT m.block AS block, m.member AS member, s.query_id AS query_id FROM {made} m JOIN query_users s"
        " ON s.user_id = m.user_id WHERE m.query_id IS NULL GROUP BY m.block, m.member, s.query_id"
    )
    shares = work.fetch(
        "SELECT r.block AS block, r.member AS member, CAST(sum(r.n) AS BIGINT) AS n,"
        f" CAST(sum(CASE WHEN t.query_id IS NULL THEN 0 ELSE r.n END) AS BIGINT) AS own FROM {made} r LEFT JOIN"
        f" ({mine}) AS t ON t.block = r.block AND t.member = r.member AND t.query_id = r.query_id"
        " WHERE r.query_id IS NOT NULL GROUP BY r.block, r.member"
    )
    return own_share(shares["own"].to_numpy(), shares["n"].to_numpy())
