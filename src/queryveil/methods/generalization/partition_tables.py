"""Partition with tables, for logs that are too large for one machine: the same groups as in memory.

Groups of transactions too large for one worker are split by GROUP BYs, all at once. Sets of children are known by sums
of random numbers. Every other group is split to the end by the compiled loop, several groups on any worker.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.engines import Table, Workspace
from queryveil.kernels.partitions import partition_transactions
from queryveil.knowledge import Taxonomy
from queryveil.knowledge.tables import reopened
from queryveil.knowledge.tree import Tree
from queryveil.log import QueryLog
from queryveil.methods.generalization.common import Bags
from queryveil.methods.generalization.tables import GROUP, ITEM, MADE, made_of

WORKER = 2_000_000
"""Most nouns of users, one row each, of a group that one worker splits to the end."""

_CODES = 4
_SUMS = ", ".join(f"s{i}" for i in range(_CODES))
_GAINS = pa.schema([(name, pa.int64()) for name in ("part", "node", "gain")])
_CHILDREN = pa.schema([(name, pa.int64()) for name in ("part", "user_id", "child")])
_STATE = pa.schema([(name, pa.int64()) for name in ("part", "node", "shut")])

Longs = NDArray[np.int64]


@dataclass
class _Group:
    """A group of transactions that is too large for a worker."""

    nodes: list[int]
    """What it is published with, ascending."""
    shut: set[int]
    """Those by which it cannot be split."""
    gain: dict[int, int] = field(default_factory=dict)
    """What it gains by each with items below."""

    def best(self) -> int | None:
        """The node that it gains most by, of equals the smallest; None if it can be split by none."""
        left = [node for node in self.nodes if node not in self.shut and node in self.gain]
        return max(left, key=lambda node: (self.gain[node], -node), default=None)


def find_groups(log: QueryLog, work: Workspace, base: Taxonomy, nouns: Table, k: int) -> Table:
    """The groups of users and what is published of each, as `made_of` has them.

    Args:
        log: The log.
        work: Where the table goes.
        base: The taxonomy.
        nouns: The nouns of users.
        k: Least users of a group.
    """
    with log.workspace() as steps:
        weights = steps.table(f"SELECT user_id, count(*) AS n FROM {nouns} GROUP BY user_id", "nouns each")
        members = steps.table(f"SELECT CAST(0 AS BIGINT) AS part, user_id FROM {weights}", "one group")
        states = _read_states(steps, {0: _Group([0], set())})
        small, whole, known = [], [], 1
        while True:
            found = steps.fetch(
                f"SELECT m.part AS part FROM {members} m JOIN {weights} w ON w.user_id = m.user_id GROUP BY m.part"
                f" HAVING sum(w.n) > {WORKER}"
            )
            large = steps.read(found, "large groups")
            outside = f"LEFT JOIN {large} l ON l.part = t.part WHERE l.part IS NULL"
            small.append(
                (
                    f"SELECT t.part AS part, t.user_id AS user_id FROM {members} t {outside}",
                    f"SELECT t.part AS part, t.node AS node, t.shut AS shut FROM {states} t {outside}",
                )
            )
            if len(found) == 0:
                break
            groups = _groups(steps, states, large)
            members = steps.table(
                f"SELECT m.part AS part, m.user_id AS user_id FROM {members} m JOIN {large} l ON l.part = m.part",
                "users of large groups",
            )
            _weigh(log, base, members, nouns, groups)
            done = _read_states(steps, {part: group for part, group in groups.items() if group.best() is None})
            whole.append(
                f"SELECT m.part AS part, m.user_id AS user_id, s.node AS node FROM {members} m JOIN {done} s"
                " ON s.part = m.part"
            )
            tried = {part: group for part, group in groups.items() if group.best() is not None}
            if not tried:
                break
            members, states, known = _split(log, steps, base, members, nouns, tried, k, known)
        begun, states = (steps.table(" UNION ALL ".join(one), "groups") for one in zip(*small, strict=True))
        (size,) = steps.row(
            f"SELECT coalesce(CAST(sum(w.n) AS BIGINT), 0) AS n FROM {begun} b JOIN {weights} w"
            " ON w.user_id = b.user_id"
        )
        bins = max(1, -(-size // WORKER))
        made = steps.map_groups(
            f"SELECT b.part % {bins} AS bin, b.part AS part, CAST(0 AS BIGINT) AS kind, b.user_id AS item,"
            f" CAST(n.node AS BIGINT) AS node FROM {begun} b JOIN {nouns} n ON n.user_id = b.user_id UNION ALL"
            f" SELECT part % {bins} AS bin, part, CAST(1 AS BIGINT) AS kind, shut AS item, node FROM {states}",
            "bin",
            _Finish(base.source, k),
            MADE,
            "groups of workers",
        )
        parts = [f"SELECT kind, user_id, node, n FROM {made}"]
        if whole:
            kept = steps.table(" UNION ALL ".join(whole), "whole groups")
            zero = "CAST(0 AS BIGINT)"
            parts += [
                f"SELECT CAST({ITEM} AS BIGINT) AS kind, user_id, node, {zero} AS n FROM {kept}",
                f"SELECT CAST({GROUP} AS BIGINT) AS kind, {zero} AS user_id, {zero} AS node,"
                f" count(DISTINCT user_id) AS n FROM {kept} GROUP BY part",
            ]
        return work.table(" UNION ALL ".join(parts), "generalized transactions")


def _read_states(work: Workspace, groups: dict[int, _Group]) -> Table:
    """The table of part, node and shut."""
    rows = [(part, node, int(node in group.shut)) for part, group in groups.items() for node in group.nodes]
    columns = np.array(rows, np.int64).reshape(len(rows), 3).T
    return work.read(pa.table(list(columns), schema=_STATE), "states")


def _groups(work: Workspace, states: Table, large: Table) -> dict[int, _Group]:
    rows = work.fetch(
        f"SELECT s.part AS part, s.node AS node, s.shut AS shut FROM {states} s JOIN {large} l ON l.part = s.part"
        " ORDER BY s.part, s.node"
    )
    found: dict[int, _Group] = {}
    for row in rows.to_pylist():
        group = found.setdefault(row["part"], _Group([], set()))
        group.nodes.append(row["node"])
        if row["shut"]:
            group.shut.add(row["node"])
    return found


def _items(members: Table, nouns: Table) -> str:
    return (
        f"SELECT m.part AS part, m.user_id AS user_id, n.node AS node FROM {members} m JOIN {nouns} n"
        " ON n.user_id = m.user_id"
    )


def _weigh(log: QueryLog, base: Taxonomy, members: Table, nouns: Table, groups: dict[int, _Group]) -> None:
    """Find what groups gain by each of their nodes."""
    nodes = [(part, node) for part, group in groups.items() for node in group.nodes]
    with log.workspace() as steps:
        gains = steps.map(_items(members, nouns), _Gains(base.source, *_keys(nodes)), _GAINS, "gains")
        found = steps.fetch(f"SELECT part, node, CAST(sum(gain) AS BIGINT) AS gain FROM {gains} GROUP BY part, node")
    for row in found.to_pylist():
        groups[row["part"]].gain[row["node"]] = row["gain"]


def _split(
    log: QueryLog, work: Workspace, base: Taxonomy, members: Table, nouns: Table, groups: dict[int, _Group], k: int,
    known: int,
) -> tuple[Table, Table, int]:  # fmt: skip
    """Split each group by its best node.

    Returns:
        The group of each user, the states of groups, and the first number that is none of a group.
    """
    chosen = {part: node for part, group in groups.items() if (node := group.best()) is not None}
    for part, node in chosen.items():
        groups[part].shut.add(node)
    with log.workspace() as steps:
        below = steps.map(
            _items(members, nouns), _Children(base.source, *_keys(list(chosen.items()))), _CHILDREN, "children"
        )
        children = steps.table(
            f"SELECT part, user_id, child FROM {below} GROUP BY part, user_id, child", "children of users"
        )
        drawn = np.random.default_rng().integers(1, 1 << 31, (_CODES, len(base.tree)))
        codes = steps.read(
            pa.table({"node": np.arange(len(base.tree)), **{f"c{i}": drawn[i] for i in range(_CODES)}}), "codes"
        )
        sums = ", ".join(f"CAST(sum(c.c{i}) AS BIGINT) AS s{i}" for i in range(_CODES))
        sets = steps.table(
            f"SELECT t.part AS part, t.user_id AS user_id, {sums} FROM {children} t JOIN {codes} c ON c.node = t.child"
            " GROUP BY t.part, t.user_id",
            "sets of children",
        )
        labels = steps.table(
            f"SELECT part, {_SUMS}, count(*) AS users, min(user_id) AS first FROM {sets} GROUP BY part, {_SUMS}"
            f" HAVING count(*) >= {k}",
            "sets that enough users have",
        )
        same = " AND ".join(f"l.s{i} = s.s{i}" for i in range(_CODES))
        labelled = steps.table(
            f"SELECT s.part AS part, s.user_id AS user_id, l.first AS first FROM {sets} s JOIN {labels} l"
            f" ON l.part = s.part AND {same}",
            "users of sets",
        )
        gone, moved = _fill(steps, members, labels, labelled, k)
        new = steps.number(
            f"SELECT l.part AS part, l.first AS first FROM {labels} l LEFT JOIN {gone} g ON g.part = l.part"
            " AND g.first = l.first WHERE g.first IS NULL",
            ("part", "first"),
            "place",
            name="new groups",
        )
        at = f"n.place + {known - 1} AS part"
        movers = steps.table(
            f"SELECT {at}, s.user_id AS user_id FROM {labelled} s JOIN {new} n ON n.part = s.part AND n.first = s.first"
            f" LEFT JOIN {moved} m ON m.user_id = s.user_id WHERE m.user_id IS NULL",
            "users who move",
        )
        given = steps.read(pa.table([list(chosen), list(chosen.values())], schema=_STATE.remove(2)), "chosen nodes")
        left = work.table(
            f"SELECT m.part AS part, m.user_id AS user_id FROM {members} m JOIN {given} g ON g.part = m.part"
            f" LEFT JOIN {movers} v ON v.user_id = m.user_id WHERE v.user_id IS NULL UNION ALL"
            f" SELECT part, user_id FROM {movers}",
            "users of groups",
        )
        before = _read_states(steps, groups)
        states = work.table(
            f"SELECT part, node, shut FROM {before} UNION ALL"
            f" SELECT {at}, b.node AS node, b.shut AS shut FROM {new} n JOIN {before} b ON b.part = n.part"
            f" JOIN {given} g ON g.part = n.part WHERE b.node <> g.node UNION ALL"
            f" SELECT {at}, c.child AS node, CAST(0 AS BIGINT) AS shut FROM {new} n JOIN {children} c"
            " ON c.part = n.part AND c.user_id = n.first",
            "states",
        )
        (count,) = steps.row(f"SELECT count(*) AS n FROM {new}")
    return left, states, known + count


def _fill(work: Workspace, members: Table, labels: Table, labelled: Table, k: int) -> tuple[Table, Table]:
    """See that the left-over of a group has no user or at least k.

    Returns:
        The sets that come back whole: part and first; and the users who are moved there: user_id.
    """
    sizes = work.fetch(
        "SELECT m.part AS part, m.n AS n, CAST(l.users AS BIGINT) AS users, l.n AS sets FROM"
        f" (SELECT part, count(*) AS n FROM {members} GROUP BY part) AS m"
        f" JOIN (SELECT part, sum(users) AS users, count(*) AS n FROM {labels}"
        " GROUP BY part) AS l ON l.part = m.part"
    )
    gone, moved = [], []
    for row in sizes.to_pylist():
        short = k - (row["n"] - row["users"])
        if not 0 < short < k:
            continue
        mine = f"SELECT first, users FROM {labels} WHERE part = {row['part']} ORDER BY"
        if row["users"] - k * row["sets"] < short:
            (first, _) = work.row(f"{mine} users, first LIMIT 1")
            gone.append((row["part"], first))
            continue
        # The largest set gives each time, so that only the largest ones at first, as many as are short, ever give.
        largest = work.fetch(f"{mine} users DESC, first LIMIT {short}").to_pylist()
        largest.sort(key=lambda one: one["first"])
        size = np.array([one["users"] for one in largest])
        for _ in range(short):
            size[size.argmax()] -= 1
        for one, now in zip(largest, size.tolist(), strict=True):
            if now < one["users"]:
                last = work.fetch(
                    f"SELECT user_id FROM {labelled} WHERE part = {row['part']} AND first = {one['first']}"
                    f" ORDER BY user_id DESC LIMIT {one['users'] - now}"
                )
                moved += last["user_id"].to_pylist()
    named = pa.schema([("part", pa.int64()), ("first", pa.int64())])
    back = np.array(gone, np.int64).reshape(len(gone), 2).T
    return (
        work.read(pa.table(list(back), schema=named), "sets that come back"),
        work.read(pa.table({"user_id": pa.array(moved, pa.int64())}), "users who come back"),
    )


def _keys(nodes: list[tuple[int, int]]) -> tuple[Longs, Longs]:
    """The groups of some nodes, ascending, and a number for each group and node, ascending."""
    parts, place = np.unique([part for part, _ in nodes], return_inverse=True)
    return parts, np.sort(place << 32 | np.array([node for _, node in nodes], np.int64))


@dataclass(frozen=True)
class _Below:
    """The nodes of a group that its items are below, for items of any groups."""

    source: str
    parts: Longs
    keys: Longs

    def _found(self, batch: pa.RecordBatch) -> tuple[Tree, Longs, Longs, Longs]:
        """The tree, the rows of items below a node, these nodes, and their children that the items are at or below."""
        tree = reopened(self.source).tree
        part, item = batch["part"].to_numpy(), batch["node"].to_numpy()
        mine = np.searchsorted(self.parts, part).clip(0, len(self.parts) - 1)
        # Of the nodes of a group none is below another, so only the last one before an item can be above it.
        at = np.searchsorted(self.keys, mine << 32 | item) - 1
        node = self.keys[at] & 0xFFFFFFFF
        there = (self.parts[mine] == part) & (at >= 0) & (self.keys[at] >> 32 == mine) & (item < tree.end[node])
        rows = np.flatnonzero(there)
        node, item = node[rows], item[rows]
        start, line = tree.ancestors(item)
        return tree, rows, node, line[start[:-1] + tree.depth[item] - tree.depth[node] - 1].astype(np.int64)


class _Gains(_Below):
    """What is gained by each node."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        tree, rows, node, child = self._found(batch)
        weight = np.where(tree.leaves == 1, 0, tree.leaves).astype(np.int64)
        pairs, of = np.unique(np.stack([batch["part"].to_numpy()[rows], node]), axis=1, return_inverse=True)
        gain = np.zeros(pairs.shape[1], np.int64)
        np.add.at(gain, of.ravel(), weight[node] - weight[child])
        return pa.RecordBatch.from_arrays([pa.array(column) for column in (*pairs, gain)], schema=_GAINS)


class _Children(_Below):
    """The children of a node that users have items below."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        _, rows, _, child = self._found(batch)
        columns = [batch[name].to_numpy()[rows].astype(np.int64) for name in ("part", "user_id")]
        return pa.RecordBatch.from_arrays([pa.array(column) for column in (*columns, child)], schema=_CHILDREN)


@dataclass(frozen=True)
class _Finish:
    """Splits groups to the end."""

    source: str
    k: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        tree = reopened(self.source).tree
        column = {name: batch[name].to_numpy() for name in batch.schema.names}
        mine, state = (np.flatnonzero(column["kind"] == kind) for kind in (0, 1))
        part, user, node = (column[name][mine] for name in ("part", "item", "node"))
        order = np.lexsort((node, user, part))
        part, user, node = part[order], user[order], node[order]
        begin = np.flatnonzero(np.diff(user, prepend=user[:1] - 1))  # a user is in one group
        users, of_user = user[begin], part[begin]
        parts, first = np.unique(of_user, return_index=True)
        state = state[np.isin(column["part"][state], parts)]  # those of groups that fell apart are left over
        state = state[np.lexsort((column["node"][state], column["part"][state]))]
        begun = (
            np.append(first, len(users)),
            np.searchsorted(column["part"][state], np.append(parts, parts[-1:] + 1)),
            column["node"][state].astype(np.int32),
            column["item"][state] > 0,
        )
        group, start, nodes = partition_transactions(
            np.append(begin, len(node)), node.astype(np.int32), tree.parent, tree.depth, tree.end, tree.leaves, self.k,
            begun,
        )  # fmt: skip
        return made_of(users, Bags(start, group, nodes, np.ones(len(nodes), np.int64)))
