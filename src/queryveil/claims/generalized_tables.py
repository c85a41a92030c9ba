"""The checks of bags and concepts by tables, for logs that outgrow a machine.

Sets and bags are known by codes: sums of random numbers that are drawn anew for each check, so that nobody can make two
of them with equal codes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets, places
from queryveil.engines import Table, Workspace
from queryveil.kernels.bags import Bags, Nouns, fitting, misfits
from queryveil.knowledge import Taxonomy
from queryveil.knowledge.tables import nouns_of_queries, reopened
from queryveil.knowledge.tree import Tree
from queryveil.log import QueryLog

Longs = NDArray[np.int64]

DRAWN = 1_000
"""Most distinct bags that are compared with all users of a log whose nouns are not brought here."""
_CODES = 4
_USERS = 20_000
"""Users whose bags or nouns a worker compares at once."""
_QUERIES = pa.schema([("query_id", pa.int64()), ("node", pa.int64())])
_FOUND = pa.schema([("found", pa.int64()), ("n", pa.int64())])
_SUMS = ", ".join(f"s{i}" for i in range(_CODES))


def _codes(work: Workspace, nodes: Longs) -> Table:
    """The table of node and c0 to c3: what stands for each node in the codes of sets and bags."""
    drawn = np.random.default_rng().integers(1, 1 << 31, (_CODES, len(nodes)))
    return work.read(pa.table({"node": nodes, **{f"c{i}": drawn[i] for i in range(_CODES)}}), "codes")


def _summed(times: str) -> str:
    return ", ".join(f"CAST(sum({times}c.c{i}) AS BIGINT) AS s{i}" for i in range(_CODES))


class ConceptTables:
    """The released concepts, and the queries of a log that they can stand for.

    Args:
        log: The log.
        work: Where tables go.
        base: The taxonomy.
        node: The released concepts, ascending.
    """

    def __init__(self, log: QueryLog, work: Workspace, base: Taxonomy, node: Longs) -> None:
        self.log, self.work, self.base, self.node = log, work, base, node
        log.ensure_tables("query_users", "per_query")
        self.nouns = nouns_of_queries(log, work, base)
        lowest = work.map(
            f"SELECT query_id, node FROM {self.nouns}", _Lowest(base.source, node), _QUERIES, "lowest concepts"
        )
        self.lowest = work.table(
            f"SELECT query_id, node FROM {lowest} GROUP BY query_id, node", "lowest concepts of queries"
        )

    def few(self, least: int) -> int | None:
        """The first concept that fits queries of fewer users."""
        tree = self.base.tree
        if self.node[0] == 0 and self.log.n_users < least:
            return 0
        enough = np.zeros(len(tree), np.bool_)
        enough[0] = True
        users = self._users(self.lowest)
        found = [at for at, n in users.items() if n >= least]
        enough[tree.ancestors(found)[1]] = True  # what is above one that fits enough fits all of them
        rest = self.node[~enough[self.node]]
        if len(rest):
            users = self._users(self._above(rest))
        return next((at for at in rest.tolist() if users.get(at, 0) < least), None)

    def _users(self, fits: Table) -> dict[int, int]:
        found = self.work.fetch(
            f"SELECT node, count(*) AS n FROM (SELECT f.node AS node, u.user_id AS user_id FROM {fits} f"
            " JOIN query_users u ON u.query_id = f.query_id GROUP BY f.node, u.user_id) AS pairs GROUP BY node"
        )
        return dict(zip(found["node"].to_pylist(), found["n"].to_pylist(), strict=True))

    def _above(self, some: Longs) -> Table:
        """The queries that each of some concepts can stand for."""
        above = self.work.map(
            f"SELECT query_id, node FROM {self.lowest}", _Above(self.base.source, some), _QUERIES, "concepts above"
        )
        return self.work.table(f"SELECT query_id, node FROM {above} GROUP BY query_id, node", "fitting concepts")

    def is_assigned(self, concepts: Table, n: Longs) -> bool:
        """Whether each query has one concept, which fits it, and each concept so many events.

        Args:
            concepts: The table of query_id and node.
            n: The rows of each released concept.
        """
        rows, known, rooted = self.work.row(
            "SELECT count(*) AS n, count(DISTINCT q.query_id) AS known, count(CASE WHEN c.node = 0 THEN 1 END) AS"
            f" rooted FROM {concepts} c LEFT JOIN queries q ON q.query_id = c.query_id"
        )
        if not rows == known == self.log.n_queries:
            return False
        given = self.work.fetch(
            f"SELECT c.node AS node, count(*) AS n FROM events e JOIN {concepts} c ON c.query_id = e.query_id"
            " GROUP BY c.node ORDER BY c.node"
        )
        if not (np.array_equal(given["node"].to_numpy(), self.node) and np.array_equal(given["n"].to_numpy(), n)):
            return False
        fits = self.work.map(
            f"SELECT c.query_id AS query_id, c.node AS concept, n.node AS node FROM {concepts} c JOIN {self.nouns} n"
            " ON n.query_id = c.query_id WHERE c.node > 0",
            _Fits(self.base.source),
            _QUERIES,
            "concepts that fit",
        )
        (fitted,) = self.work.row(f"SELECT count(DISTINCT query_id) AS n FROM {fits}")
        return bool(fitted == rows - rooted)

    def kinds(self, most: int) -> tuple[Longs, tuple[Longs, Longs]] | None:
        """Queries that the same concepts fit as one: the events of each, and which concept fits which.

        None if that is more than so many pairs.
        """
        sets = self.work.table(
            f"SELECT l.query_id AS query_id, count(*) AS size, {_summed('')} FROM {self.lowest} l"
            f" JOIN {_codes(self.work, self.node)} c ON c.node = l.node GROUP BY l.query_id",
            "sets of concepts",
        )
        kinds = self.work.table(
            "SELECT min(s.query_id) AS query_id, CAST(sum(p.events) AS BIGINT) AS events FROM"
            f" {sets} s JOIN per_query p ON p.query_id = s.query_id GROUP BY s.size, {_SUMS}",
            "kinds of queries",
        )
        pairs = f"FROM {kinds} k JOIN {self.lowest} l ON l.query_id = k.query_id"
        sizes = self.work.fetch(f"SELECT l.node AS node, count(*) AS n {pairs} GROUP BY l.node")
        number, events = self.work.row(
            f"SELECT count(*) AS n, coalesce(CAST(sum(events) AS BIGINT), 0) AS events FROM {kinds}"
        )
        first, above = self._released_above(sizes["node"].to_numpy())
        if int((np.diff(first) * sizes["n"].to_numpy()).sum()) + number > most:
            return None
        rows = self.work.fetch(
            f"SELECT k.query_id AS query_id, k.events AS events, l.node AS node {pairs} ORDER BY k.query_id"
        )
        kind, at = np.unique(rows["query_id"].to_numpy(), return_index=True)
        of = np.searchsorted(kind, rows["query_id"].to_numpy())
        first, above = self._released_above(rows["node"].to_numpy())
        fits = np.unique(above << 32 | np.repeat(of, np.diff(first)))
        total = np.append(rows["events"].to_numpy()[at], self.log.stats.events - events)  # the last: without a noun
        if self.node[0] == 0:
            fits = np.concatenate([np.arange(len(total)), fits])
        return total, (fits >> 32, fits & 0xFFFFFFFF)

    def _released_above(self, nodes: Longs) -> tuple[Longs, Longs]:
        """The places of the released concepts at or above each node, the root left out."""
        start, above = self.base.tree.ancestors(nodes)
        place = places(self.node, above)
        kept = (place >= 0) & (above > 0)
        return offsets(Ragged(start).sums(kept)), place[kept]

    def events(self) -> Longs:
        """How many events have a query that each released concept can stand for."""
        found = self.work.fetch(
            f"SELECT f.node AS node, CAST(sum(p.events) AS BIGINT) AS n FROM {self._above(self.node)} f"
            " JOIN per_query p ON p.query_id = f.query_id GROUP BY f.node"
        )
        count = np.zeros(len(self.node), np.int64)
        count[places(self.node, found["node"].to_numpy())] = found["n"].to_numpy()
        count[self.node == 0] = self.log.stats.events
        return count


def _queries(query: Longs, node: NDArray[np.integer]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(query.astype(np.int64)), pa.array(node.astype(np.int64))], schema=_QUERIES
    )


@dataclass(frozen=True)
class _Lowest:
    """The lowest of some nodes that each noun is at or below, if it is not the root."""

    source: str
    nodes: Longs

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        start, above = reopened(self.source).tree.ancestors(batch["node"].to_numpy())
        here = np.flatnonzero((above > 0) & (places(self.nodes, above) >= 0))
        owner = Ragged(start).owners[here]
        first = np.diff(owner, prepend=-1) > 0  # from the noun up
        return _queries(batch["query_id"].to_numpy()[owner[first]], above[here[first]])


@dataclass(frozen=True)
class _Above:
    """All of some nodes that each is at or below, without the root."""

    source: str
    nodes: Longs

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        start, above = reopened(self.source).tree.ancestors(batch["node"].to_numpy())
        here = np.flatnonzero((above > 0) & (places(self.nodes, above) >= 0))
        return _queries(batch["query_id"].to_numpy()[Ragged(start).owners[here]], above[here])


@dataclass(frozen=True)
class _Fits:
    """The queries with a noun at or below their concept."""

    source: str

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        tree: Tree = reopened(self.source).tree
        concept, noun = (batch[name].to_numpy() for name in ("concept", "node"))
        fits = (concept <= noun) & (noun < tree.end[concept])
        return _queries(batch["query_id"].to_numpy()[fits], concept[fits])


class Held(NamedTuple):
    """A distinct bag."""

    user: int
    """The first who has it."""
    holders: int


class BagTables:
    """The released bags.

    Args:
        work: Where tables go.
        released: The released table.
        nodes: How many nodes the tree has.
    """

    def __init__(self, work: Workspace, released: Table, nodes: int) -> None:
        self.work = work
        self.counted = work.table(
            'SELECT CAST("user" AS BIGINT) AS "user", CAST(node AS BIGINT) AS node, count(*) AS n'
            f' FROM {released} GROUP BY "user", node',
            "released bags",
        )
        codes = work.table(
            f'SELECT b."user" AS "user", count(*) AS size, {_summed("b.n * ")} FROM {self.counted} b'
            f" JOIN {_codes(work, np.arange(nodes))} c ON c.node = b.node"
            ' GROUP BY b."user"',
            "codes of bags",
        )
        self.distinct = work.table(
            f'SELECT min("user") AS "user", count(*) AS holders, {_SUMS} FROM {codes} GROUP BY size, {_SUMS}',
            "distinct bags",
        )
        self.users, self.rows = work.row(f'SELECT count(DISTINCT "user") AS users, count(*) AS n FROM {self.counted}')

    def repeats(self) -> int | None:
        """A user who has an item more than once."""
        found = self.work.fetch(f'SELECT "user", n FROM {self.counted} WHERE n > 1 ORDER BY n DESC, "user" LIMIT 1')
        return found["user"][0].as_py() if len(found) else None

    def few(self, least: int) -> int | None:
        """The first user whose bag is that of fewer users."""
        found: int | None = self.work.row(f'SELECT min("user") AS one FROM {self.distinct} WHERE holders < {least}')[0]
        return found

    def fits_members(self, members: Table, nouns: Table, source: str) -> bool:
        """Whether each released user is one user of the log, whose nouns their bag generalizes.

        Args:
            members: The table of user_id, of the log, and "user", of the release.
            nouns: The nouns of users.
            source: The taxonomy.
        """
        counts = self.work.row(
            'SELECT count(*) AS n, count(DISTINCT m."user") AS users, count(DISTINCT m.user_id) AS ids,'
            f' count(b."user") AS released, count(n.user_id) AS known FROM {members} m LEFT JOIN'
            f' (SELECT "user" FROM {self.counted} GROUP BY "user") AS b ON b."user" = m."user" LEFT JOIN'
            f" (SELECT user_id FROM {nouns} GROUP BY user_id) AS n ON n.user_id = m.user_id"
        )
        if set(counts) != {self.users}:
            return False
        parts = max(1, self.users // _USERS)
        wrong = self.work.map_groups(
            f'SELECT b."user" % {parts} AS part, b."user" AS "user", CAST(0 AS BIGINT) AS kind, b.node AS node,'
            f" b.n AS n FROM {self.counted} b UNION ALL"
            f' SELECT m."user" % {parts} AS part, m."user" AS "user", CAST(1 AS BIGINT) AS kind,'
            f" CAST(n.node AS BIGINT) AS node, CAST(1 AS BIGINT) AS n FROM {members} m JOIN {nouns} n"
            " ON n.user_id = m.user_id",
            "part",
            _Misfits(source),
            _FOUND,
            "bags that do not fit",
        )
        return bool(self.work.row(f"SELECT CAST(sum(n) AS BIGINT) AS n FROM {wrong}")[0] == 0)

    def here(self, nouns: Table) -> tuple[Longs, Bags, Nouns]:
        """All released users, their bags, and the nouns of users of the log, brought here."""
        rows = self.work.fetch(f'SELECT "user", node, n FROM {self.counted} ORDER BY "user", node')
        known = self.work.fetch(f"SELECT user_id, node FROM {nouns} ORDER BY user_id, node")
        user = rows["user"].to_numpy()
        users, start = np.unique(user, return_index=True)
        bags = Bags(np.append(start, len(user)), rows["node"].to_numpy(), rows["n"].to_numpy())
        return users, bags, _nouns(known["user_id"].to_numpy(), known["node"].to_numpy())

    def drawn(self, nouns: Table, source: str) -> list[tuple[Held, int]]:
        """Some distinct bags, chosen at random, and how many users of the log each fits, counted up to its holders."""
        some = self.work.fetch(
            f'SELECT "user", holders FROM {self.distinct} ORDER BY s0 % 1000003, "user" LIMIT {DRAWN}'
        )
        held = sorted(Held(*row.values()) for row in some.to_pylist())
        listed = self.work.read(pa.table({"user": pa.array([one.user for one in held], pa.int64())}), "drawn bags")
        rows = self.work.fetch(
            f'SELECT b."user" AS "user", b.node AS node, b.n AS n FROM {self.counted} b JOIN {listed} l'
            ' ON l."user" = b."user" ORDER BY b."user", b.node'
        )
        start = np.searchsorted(rows["user"].to_numpy(), [one.user for one in held])
        bags = Bags(np.append(start, len(rows)), rows["node"].to_numpy(), rows["n"].to_numpy())
        holders, parts = np.array([one.holders for one in held]), max(1, self.users // _USERS)
        fits = self.work.map_groups(
            f"SELECT user_id % {parts} AS part, user_id, CAST(node AS BIGINT) AS node FROM {nouns}",
            "part",
            _Fitting(source, tuple(bags), holders),
            _FOUND,
            "users who fit",
        )
        found = self.work.fetch(f"SELECT found, CAST(sum(n) AS BIGINT) AS n FROM {fits} GROUP BY found ORDER BY found")
        return list(zip(held, found["n"].to_pylist(), strict=True))


def _nouns(user: Longs, noun: Longs) -> Nouns:
    """The nouns of users, from rows in the order of user and noun."""
    start = np.unique(user, return_index=True)[1]
    return Nouns(np.append(start, len(user)), noun.astype(np.int64))


@dataclass(frozen=True)
class _Misfits:
    """How many users have a bag that does not fit their nouns."""

    source: str

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        user, kind, node, n = (batch[name].to_numpy() for name in ("user", "kind", "node", "n"))
        order = np.lexsort((node, user, kind))
        bag, own = order[: (kind == 0).sum()], order[(kind == 0).sum() :]
        users, start = np.unique(user[bag], return_index=True)
        bags = Bags(np.append(start, len(bag)), node[bag], n[bag])
        end = reopened(self.source).tree.end.astype(np.int64)
        everyone = np.arange(len(users))
        wrong = misfits(everyone, everyone, bags, _nouns(user[own], node[own]), end)
        return _counts(np.zeros(1, np.int64), np.array([len(wrong)]))


@dataclass(frozen=True)
class _Fitting:
    """How many of some users each of some bags fits."""

    source: str
    bags: Sequence[Longs]
    holders: Longs

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        user, node = (batch[name].to_numpy() for name in ("user_id", "node"))
        order = np.lexsort((node, user))
        nouns = _nouns(user[order], node[order])
        by_noun = np.argsort(nouns.noun, kind="stable")
        end = reopened(self.source).tree.end.astype(np.int64)
        owner = Ragged(nouns.start).owners[by_noun]
        count, _, _ = fitting(Bags(*self.bags), self.holders, nouns, owner, nouns.noun[by_noun], end, 0)
        return _counts(np.arange(len(count)), count)


def _counts(found: Longs, n: Longs) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(found.astype(np.int64)), pa.array(n.astype(np.int64))], schema=_FOUND)
