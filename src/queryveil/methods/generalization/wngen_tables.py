"""WNGEN with tables, for logs that are too large for one machine: the same concepts as in memory.

Clusters too large for one worker are split level by level, all of a level at once, by GROUP BYs of queries and users
under the children of their nodes. Every other cluster is split to the end by the compiled loop, on any worker.

The children of a node take turns, and whether one keeps what it takes depends on those before it. While it is not known
which of these keep theirs, a child gets at least what is left if all do, and at most what is left if none does. So in
each round all children are decided for which one of the two is enough, and the first that is undecided always is.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.engines import Table, Workspace
from queryveil.kernels.wngen import cluster_queries
from queryveil.knowledge import Taxonomy
from queryveil.knowledge.tables import nouns_of_queries, reopened
from queryveil.knowledge.tree import Tree
from queryveil.log import QueryLog

WORKER = 2_000_000
"""Most rows, a user or a noun of a query each, of a cluster that one worker splits to the end."""

_OFFERS = pa.schema([("query_id", pa.int64()), ("child", pa.int32())])
_FOUND = pa.schema([("query_id", pa.int64()), ("node", pa.int64())])
_OPEN, _TAKES, _FAILS = 0, 1, 2

Longs = NDArray[np.int64]


def find_concepts(log: QueryLog, work: Workspace, base: Taxonomy, k: int) -> Table:
    """The table of query_id and node: the concept of every query."""
    log.ensure_tables("query_users")
    tree = base.tree
    with log.workspace() as steps:
        nouns = nouns_of_queries(log, steps, base)
        weights = steps.table(
            "SELECT query_id, CAST(sum(n) AS BIGINT) AS n FROM (SELECT query_id, count(*) AS n FROM query_users"
            f" GROUP BY query_id UNION ALL SELECT query_id, count(*) AS n FROM {nouns} GROUP BY query_id) AS each_"
            " GROUP BY query_id",
            "weights of queries",
        )
        members = steps.table(
            "SELECT CAST(query_id AS BIGINT) AS query_id, CAST(0 AS BIGINT) AS node FROM queries", "the root's queries"
        )
        parts = []
        while True:
            sizes = steps.fetch(
                f"SELECT m.node AS node, CAST(sum(w.n) AS BIGINT) AS n FROM {members} m JOIN {weights} w"
                " ON w.query_id = m.query_id GROUP BY m.node"
            )
            node, size = (sizes[name].to_numpy() for name in ("node", "n"))
            large = node[(size > WORKER) & (tree.end[node] > node + 1)]
            listed = steps.read(pa.table({"node": large.astype(np.int64)}), "large clusters")
            parts.append(
                f"SELECT m.query_id AS query_id, m.node AS node FROM {members} m LEFT JOIN {listed} l"
                " ON l.node = m.node WHERE l.node IS NULL"
            )
            if len(large) == 0:
                break
            ours = steps.table(
                f"SELECT m.query_id AS query_id, m.node AS node FROM {members} m JOIN {listed} l ON l.node = m.node",
                "queries of large clusters",
            )
            stay, members = _split(log, steps, tree, base.source, nouns, ours, int(tree.depth[large[0]]), k)
            parts.append(stay)
        begun = steps.table(" UNION ALL ".join(parts), "clusters")
        return _finish(steps, work, base, nouns, begun, k)


def _split(
    log: QueryLog, work: Workspace, tree: Tree, source: str, nouns: Table, members: Table, depth: int, k: int
) -> tuple[str, Table]:
    """Split all clusters of one level: SQL of the queries that stay, and the table of those that move down."""
    with log.workspace() as steps:
        below = steps.map(
            f"SELECT m.query_id AS query_id, m.node AS above, n.node AS node FROM {members} m JOIN {nouns} n"
            " ON n.query_id = m.query_id",
            _Children(source, depth),
            _OFFERS,
            "children of nouns",
        )
        offers = steps.table(f"SELECT query_id, child FROM {below} GROUP BY query_id, child", "children of queries")
        reach = _users(steps, f"SELECT query_id, child AS place FROM {offers}")
        turns = sorted((child for child in reach if reach[child] >= k), key=lambda child: (-reach[child], child))
        child = np.array(turns, np.int64)
        listed = steps.read(pa.table({"child": child, "turn": np.arange(len(child))}), "turns")
        waiting = steps.table(
            f"SELECT o.query_id AS query_id, t.turn AS turn FROM {offers} o JOIN {listed} t ON t.child = o.child",
            "offers",
        )
        state = _take_turns(steps, waiting, len(child), k)
        taken = steps.table(_first(steps, waiting, state, (_TAKES,)), "queries taken")
        left = _users(
            steps,
            f"SELECT m.query_id AS query_id, m.node AS place FROM {members} m LEFT JOIN {taken} t"
            " ON t.query_id = m.query_id WHERE t.query_id IS NULL",
        )
        _give_back(steps, taken, state, child, tree.parent[child], {at for at, n in left.items() if n < k})
        places = np.flatnonzero(state == _TAKES)
        final = steps.read(pa.table({"turn": places, "child": child[places]}), "children that take")
        moved = work.table(
            f"SELECT t.query_id AS query_id, f.child AS node FROM {taken} t JOIN {final} f ON f.turn = t.turn",
            "queries that move down",
        )
    stay = (
        f"SELECT m.query_id AS query_id, CAST(-1 - m.node AS BIGINT) AS node FROM {members} m LEFT JOIN {moved} t"
        " ON t.query_id = m.query_id WHERE t.query_id IS NULL"
    )
    return stay, moved


def _users(work: Workspace, placed: str) -> dict[int, int]:
    """How many users have a query at each place, from SQL of query_id and place."""
    found = work.fetch(
        "SELECT place, count(*) AS users FROM (SELECT p.place AS place, u.user_id AS user_id FROM"
        f" ({placed}) AS p JOIN query_users u ON u.query_id = p.query_id GROUP BY p.place, u.user_id) AS pairs"
        " GROUP BY place"
    )
    return dict(zip(found["place"].to_pylist(), found["users"].to_pylist(), strict=True))


def _first(work: Workspace, waiting: Table, state: NDArray[np.int8], states: tuple[int, ...]) -> str:
    """SQL of query_id and turn: the first child of each query that is in one of some states."""
    some = work.read(pa.table({"turn": np.flatnonzero(np.isin(state, states))}), "turns")
    return (
        f"SELECT w.query_id AS query_id, min(w.turn) AS turn FROM {waiting} w JOIN {some} s ON s.turn = w.turn"
        " GROUP BY w.query_id"
    )


def _take_turns(work: Workspace, waiting: Table, turns: int, k: int) -> NDArray[np.int8]:
    """Which children take queries, and which fail because too few users are left for them."""
    state = np.full(turns, _OPEN, np.int8)
    while (undecided := np.flatnonzero(state == _OPEN)).size:
        some = work.read(pa.table({"turn": undecided}), "turns")
        least = _users(
            work,
            f"SELECT f.query_id AS query_id, f.turn AS place FROM ({_first(work, waiting, state, (_OPEN, _TAKES))})"
            f" AS f JOIN {some} s ON s.turn = f.turn",
        )
        for turn in undecided.tolist():
            if least.get(turn, 0) >= k:
                state[turn] = _TAKES
        undecided = np.flatnonzero(state == _OPEN)
        if undecided.size == 0:
            break
        some = work.read(pa.table({"turn": undecided}), "turns")
        most = _users(
            work,
            f"SELECT w.query_id AS query_id, w.turn AS place FROM {waiting} w JOIN {some} s ON s.turn = w.turn"
            f" LEFT JOIN ({_first(work, waiting, state, (_TAKES,))}) AS f ON f.query_id = w.query_id"
            " WHERE f.turn IS NULL OR f.turn > w.turn",
        )
        for turn in undecided.tolist():
            if most.get(turn, 0) < k:
                state[turn] = _FAILS
    return state


def _give_back(
    work: Workspace, taken: Table, state: NDArray[np.int8], child: Longs, above: NDArray[np.int32], short: set[int]
) -> None:
    """Let the smallest child of each node at which too few users are left give its queries back."""
    takers = [turn for turn in np.flatnonzero(state == _TAKES).tolist() if int(above[turn]) in short]
    if not takers:
        return
    some = work.read(pa.table({"turn": takers}), "turns")
    users = _users(
        work,
        f"SELECT t.query_id AS query_id, t.turn AS place FROM {taken} t JOIN {some} s ON s.turn = t.turn",
    )
    least: dict[int, int] = {}
    for turn in sorted(takers, key=lambda turn: (users[turn], int(child[turn]))):
        least.setdefault(int(above[turn]), turn)
    state[list(least.values())] = _FAILS


@dataclass(frozen=True)
class _Children:
    """The child of a node that a noun below it is at or below."""

    source: str
    depth: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        tree, node = reopened(self.source).tree, batch["node"].to_numpy()
        child = tree.at_level(node, self.depth + 1)
        below = (child >= 0) & (tree.at_level(node, self.depth) == batch["above"].to_numpy())
        query = batch["query_id"].to_numpy()[below].astype(np.int64)
        return pa.RecordBatch.from_arrays([pa.array(query), pa.array(child[below])], schema=_OFFERS)


def _finish(steps: Workspace, work: Workspace, base: Taxonomy, nouns: Table, begun: Table, k: int) -> Table:
    """Split the clusters that a worker can hold; those that are done are marked by numbers below 0."""
    rows = (
        f"SELECT b.node AS top, b.query_id AS query_id, CAST(0 AS BIGINT) AS kind, CAST(n.node AS BIGINT) AS item"
        f" FROM {begun} b JOIN {nouns} n ON n.query_id = b.query_id WHERE b.node >= 0 UNION ALL"
        " SELECT b.node AS top, b.query_id AS query_id, CAST(1 AS BIGINT) AS kind, CAST(u.user_id AS BIGINT) AS item"
        f" FROM {begun} b JOIN query_users u ON u.query_id = b.query_id WHERE b.node >= 0"
    )
    split = steps.map_groups(rows, "top", _Split(base.source, k), _FOUND, "split clusters")
    return work.table(
        f"SELECT query_id, node FROM {split} UNION ALL SELECT query_id, -1 - node AS node FROM {begun} WHERE node < 0",
        "concepts",
    )


@dataclass(frozen=True)
class _Split:
    """The concepts of the queries of a cluster."""

    source: str
    k: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        column = {name: batch[name].to_numpy() for name in batch.schema.names}
        queries, query = np.unique(column["query_id"], return_inverse=True)
        starts, items = [], []
        for kind in (0, 1):
            mine = np.flatnonzero(column["kind"] == kind)
            mine = mine[np.lexsort((column["item"][mine], query[mine]))]
            starts.append(np.searchsorted(query[mine], np.arange(len(queries) + 1)))
            items.append(column["item"][mine])
        users, user = np.unique(items[1], return_inverse=True)
        tree = reopened(self.source).tree
        node = cluster_queries(
            starts[0], items[0].astype(np.int32), starts[1], user.astype(np.int32), len(users),
            tree.parent, tree.depth, tree.end, self.k, int(column["top"][0]),
        )  # fmt: skip
        return pa.RecordBatch.from_arrays([pa.array(queries), pa.array(node.astype(np.int64))], schema=_FOUND)
