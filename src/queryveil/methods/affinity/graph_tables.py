"""The generalized core of the graph of affine queries, with tables: for logs that are too large for one machine.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, section 3.4. The same vertices, heavy subsets and result as `graph.py`, in operations that all
engines have: affine queries are found by an equi-join on the subset that they share.

A group of vertices that share a subset may be as large as the log, but k of its users are enough: those who come first
when its members are ordered by weight. A member is affine to the members up to some weight. If these have k users or
more, the first k of the group are among them; if they have fewer, all of these are among the first k.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets
from queryveil.engines import Table, Workspace
from queryveil.log import QueryLog
from queryveil.methods.affinity.concepts import Concepts, vectors
from queryveil.methods.affinity.graph import MOST_SUBSETS, NEW_ACCOUNT
from queryveil.methods.queries import joined
from queryveil.text.arrays import byte_spans

Mapped = tuple[Callable[[pa.RecordBatch], pa.RecordBatch], pa.Schema]
"""A function for `Workspace.map`, and the columns it makes."""


@dataclass(frozen=True)
class AffinityParams:
    """What a query needs to be released."""

    k: int
    theta: float
    min_term_users: int
    min_query_users: int
    max_new_users: int | None

    @property
    def theta2(self) -> str:
        """The square of theta, to the last bit, as SQL."""
        return f"CAST('{self.theta * self.theta!r}' AS DOUBLE)"

    def users(self, new: str) -> str:
        """SQL that counts users, including at most `max_new_users` new accounts."""
        if self.max_new_users is None:
            return "count(*)"
        return f"sum(1 - {new}) + least(sum({new}), {self.max_new_users})"


class VertexTables(NamedTuple):
    """The distinct vectors of queries that may be released, and their users."""

    vertices: Table
    """vertex, vector, total, and `own`: the users of the vertex itself that count."""
    of_query: Table
    """query_id, vertex."""
    users: Table
    """vertex, user_id, new."""


def find_affine(
    log: QueryLog, work: Workspace, concepts: Concepts, params: AffinityParams, within: Table | None = None
) -> Table:
    """The query_id of every query that is released.

    Args:
        log: The log.
        work: Where the table is made.
        concepts: What vectors are made of.
        params: What a query needs.
        within: The query_id of those that may be released; by default all.
    """
    log.ensure_tables("query_users", "per_query", "rarest")
    with log.workspace() as steps:
        accounts = steps.table(
            f"SELECT user_id, CASE WHEN count(*) <= {NEW_ACCOUNT} THEN 1 ELSE 0 END AS new FROM query_users"
            " GROUP BY user_id",
            "accounts",
        )
        some = f"SELECT q.query_id AS query_id, q.query AS query FROM queries q{joined(within, 'q.query_id')}"
        compared = steps.map(some, *_vectors(log, concepts), "vectors")
        graph = _find_vertices(log, steps, compared, accounts, params)
        members = _find_members(log, steps, graph, concepts, params)
        alive = _peel(log, steps, graph, members, params)
        alone = (
            f"SELECT query_id, {params.users('new')} AS n FROM (SELECT s.query_id AS query_id, a.new AS new"
            f" FROM query_users s JOIN {accounts} a ON a.user_id = s.user_id LEFT JOIN {compared} v"
            " ON v.query_id = s.query_id WHERE v.query_id IS NULL) AS pairs GROUP BY query_id"
        )
        return work.table(
            f"SELECT q.query_id AS query_id FROM {graph.of_query} q JOIN {alive} a ON a.vertex = q.vertex UNION ALL"
            f" SELECT p.query_id AS query_id FROM per_query p JOIN ({alone}) AS issued ON issued.query_id = p.query_id"
            f"{joined(within, 'p.query_id')}"
            f" WHERE issued.n >= {params.k} AND p.users >= {params.min_query_users}",
            "affine queries",
        )


def _vectors(log: QueryLog, concepts: Concepts) -> Mapped:
    """A function from queries to those with a concept: the digest of its vector, the vector, and its weight."""
    from queryveil.kernels.digest import digests

    schema = pa.schema(
        [("query_id", log.id_type), ("low", pa.int64()), ("high", pa.int64()), ("total", pa.int64()),
         ("vector", pa.binary())]
    )  # fmt: skip
    # Words are in the order of their digests, here as in every log.
    known_low, known_high = digests(*byte_spans(concepts.vocabulary.text))
    weight, language = concepts.squared, log.language

    def find(batch: pa.RecordBatch) -> pa.RecordBatch:
        from queryveil.kernels.digest import digests

        per_query, text = language.words(batch["query"])
        low, high = digests(*byte_spans(text))
        start, concept = vectors(concepts, offsets(per_query), _places(known_low, known_high, low, high))
        of_query = Ragged(start)
        held = np.flatnonzero(of_query.sizes)
        low, high = digests(concept.view(np.uint8), start[held] * 4, start[held + 1] * 4)
        edges = pa.py_buffer((np.append(start[held], start[-1]) * 4).astype(np.int32))
        vector = pa.Array.from_buffers(pa.binary(), len(held), [None, edges, pa.py_buffer(concept)])
        columns = [low.view(np.int64), high.view(np.int64), of_query.sums(weight[concept])[held]]
        return pa.RecordBatch.from_arrays(
            [batch["query_id"].take(pa.array(held)), *map(pa.array, columns), vector], schema=schema
        )

    return find, schema


def _places(
    known_low: NDArray[np.uint64], known_high: NDArray[np.uint64], low: NDArray[np.uint64], high: NDArray[np.uint64]
) -> NDArray[np.int32]:
    """The place of each digest among sorted ones, -1 if it is not there."""
    if len(known_low) == 0:
        return np.full(len(low), -1, np.int32)
    last = len(known_low) - 1
    at = np.minimum(np.searchsorted(known_low, low), last)
    # Two words may share the first half.
    at = np.minimum(at + ((known_low[at] == low) & (known_high[at] != high)), last)
    return np.where((known_low[at] == low) & (known_high[at] == high), at, -1).astype(np.int32)


def _find_vertices(
    log: QueryLog, work: Workspace, compared: Table, accounts: Table, params: AffinityParams
) -> VertexTables:
    """Merge the equal vectors of queries that may be released; `accounts` says who is new."""
    with log.workspace() as steps:
        chosen = steps.table(
            "SELECT v.query_id AS query_id, v.low AS low, v.high AS high, v.total AS total, v.vector AS vector"
            f" FROM {compared} v JOIN per_query p ON p.query_id = v.query_id JOIN rarest r ON r.query_id = v.query_id"
            f" WHERE p.users >= {params.min_query_users} AND r.users >= {params.min_term_users}",
            "chosen queries",
        )
        distinct = steps.number(
            f"SELECT low, high, min(total) AS total, min(vector) AS vector FROM {chosen} GROUP BY low, high",
            ("low", "high"),
            "vertex",
            name="distinct vectors",
        )
        of_query = work.table(
            f"SELECT c.query_id AS query_id, d.vertex AS vertex FROM {chosen} c JOIN {distinct} d ON d.low = c.low"
            " AND d.high = c.high",
            "vertices of queries",
        )
        users = work.table(
            "SELECT pairs.vertex AS vertex, pairs.user_id AS user_id, a.new AS new FROM (SELECT q.vertex AS vertex,"
            f" s.user_id AS user_id FROM {of_query} q JOIN query_users s ON s.query_id = q.query_id"
            f" GROUP BY q.vertex, s.user_id) AS pairs JOIN {accounts} a ON a.user_id = pairs.user_id",
            "users of vertices",
        )
        vertices = work.table(
            f"SELECT d.vertex AS vertex, d.total AS total, d.vector AS vector, o.own AS own FROM {distinct} d JOIN"
            f" (SELECT vertex, {params.users('new')} AS own FROM {users} GROUP BY vertex) AS o ON o.vertex = d.vertex",
            "vertices",
        )
    return VertexTables(vertices, of_query, users)


def _find_members(
    log: QueryLog, work: Workspace, graph: VertexTables, concepts: Concepts, params: AffinityParams
) -> Table:
    """Vertices that share a heavy subset: low and high, which name it, its weight, and a vertex with its total."""
    with log.workspace() as steps:
        subsets = steps.map(
            f"SELECT vertex, total, vector FROM {graph.vertices}", *_subsets(concepts, params.theta), "subsets"
        )
        # Most subsets belong to one vertex only, and are not needed.
        members = (
            "SELECT low, high, weight, vertex, total FROM (SELECT low, high, weight, vertex, total, count(*) OVER"
            f" (PARTITION BY low, high) AS members FROM {subsets} WHERE weight >= 0) AS counted WHERE members > 1"
        )
        if steps.row(f"SELECT count(*) AS n FROM {subsets} WHERE weight < 0")[0]:
            pairs = _find_pairs(log, steps, graph, subsets, concepts, params)
            for end in ("one", "other"):
                members += (
                    f" UNION ALL SELECT one AS low, -other AS high, weight, {end} AS vertex, {end}_total AS total"
                    f" FROM {pairs}"
                )
        # On Spark, members of a group stay together, and are not sent around in each round of peeling.
        return work.table(
            f"SELECT /*+ REPARTITION(low, high) */ low, high, weight, vertex, total FROM ({members}) AS members",
            "members",
        )


_SUBSETS = pa.schema([(name, pa.int64()) for name in ("low", "high", "weight", "vertex", "total")])


def _subsets(concepts: Concepts, theta: float) -> Mapped:
    """A function from vertices to their heavy subsets; a vertex with too many has one row, of weight -1."""
    from queryveil.kernels.digest import digests

    ids = np.arange(len(concepts), dtype=np.int64)
    low, high = digests(ids.view(np.uint8), ids * 8, ids * 8 + 8)
    weight, parts = concepts.squared, concepts.parts

    def find(batch: pa.RecordBatch) -> pa.RecordBatch:
        from queryveil.kernels.heavy import Sets, walk_subsets

        data, starts, ends = byte_spans(batch["vector"])
        element = data[starts[0] : ends[-1]].view(np.int32) if len(batch) else np.empty(0, np.int32)
        start = (np.append(starts, ends[-1:]) - starts[:1]) // 4 if len(batch) else np.zeros(1, np.int64)
        vertex, total = (batch[name].to_numpy() for name in ("vertex", "total"))
        sets = Sets(start, element.copy(), total, weight, parts, low, high)
        counts = np.zeros(len(batch), np.int32)
        every = np.full(2, 2**64 - 1, np.uint64)  # a filter that lets all pass
        found = walk_subsets(sets, 0, len(batch), theta * theta, MOST_SUBSETS, counts, 6, every, True)
        long = np.flatnonzero(counts > MOST_SUBSETS)
        none = np.zeros(len(long), np.int64)
        owner = np.concatenate([found.owner, long.astype(np.int32)])
        columns = [
            np.concatenate([found.low.view(np.int64), none]),
            np.concatenate([found.high.view(np.int64), none]),
            np.concatenate([found.weight, none - 1]),
            vertex[owner],
            total[owner],
        ]
        return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=_SUBSETS)

    return find, _SUBSETS


def _find_pairs(
    log: QueryLog, work: Workspace, graph: VertexTables, subsets: Table, concepts: Concepts, params: AffinityParams
) -> Table:
    """The neighbours of vertices with too many subsets, very long queries: one, other, weight and their totals.

    A vertex affine to another holds nearly all of its weight. So it holds at least one of any set of concepts with more
    weight than the rest. Vertices that hold one of the rarest such set are compared.
    """
    with log.workspace() as steps:
        postings = steps.map(f"SELECT vertex, total, vector FROM {graph.vertices}", *_postings(concepts), "postings")
        sizes = steps.table(f"SELECT concept, count(*) AS n FROM {postings} GROUP BY concept", "sizes")
        long = steps.table(f"SELECT vertex, total FROM {subsets} WHERE weight < 0", "long queries")
        rare = steps.table(
            "SELECT vertex, concept, total FROM (SELECT p.vertex AS vertex, p.concept AS concept, l.total AS total,"
            " coalesce(sum(p.weight) OVER (PARTITION BY p.vertex ORDER BY s.n, p.concept ROWS BETWEEN UNBOUNDED"
            f" PRECEDING AND 1 PRECEDING), 0) AS rarer FROM {postings} p JOIN {long} l ON l.vertex = p.vertex"
            f" JOIN {sizes} s ON s.concept = p.concept) AS held"
            f" WHERE rarer <= (1 - {params.theta2}) * total * 1.000001",
            "rare concepts",
        )
        # Two long queries find each other twice, and are counted once.
        near = steps.table(
            f"SELECT r.vertex AS one, p.vertex AS other FROM {rare} r JOIN {postings} p ON p.concept = r.concept"
            f" LEFT JOIN {long} l ON l.vertex = p.vertex WHERE p.vertex <> r.vertex"
            " AND (l.vertex IS NULL OR r.vertex < p.vertex)"
            f" AND p.total >= {params.theta2} * r.total * 0.999999 AND p.total * {params.theta2} <= r.total * 1.000001"
            " GROUP BY r.vertex, p.vertex",
            "pairs to compare",
        )
        return work.table(
            "SELECT one, other, weight, one_total, other_total FROM (SELECT n.one AS one, n.other AS other,"
            " CAST(sum(a.weight) AS BIGINT) AS weight, min(a.total) AS one_total, min(b.total) AS other_total"
            f" FROM {near} n JOIN {postings} a ON a.vertex = n.one JOIN {postings} b ON b.vertex = n.other"
            " AND b.concept = a.concept GROUP BY n.one, n.other) AS compared"
            f" WHERE {_affine('weight', 'one_total', 'other_total', params)}",
            "affine pairs",
        )


_POSTINGS = pa.schema([("vertex", pa.int64()), ("concept", pa.int32()), ("weight", pa.int64()), ("total", pa.int64())])


def _postings(concepts: Concepts) -> Mapped:
    """A function from vertices to the concepts that each holds."""
    weight = concepts.squared

    def find(batch: pa.RecordBatch) -> pa.RecordBatch:
        data, starts, ends = byte_spans(batch["vector"])
        element = data[starts[0] : ends[-1]].view(np.int32) if len(batch) else np.empty(0, np.int32)
        vertex, total = (np.repeat(batch[name].to_numpy(), (ends - starts) // 4) for name in ("vertex", "total"))
        return pa.RecordBatch.from_arrays(
            [pa.array(x) for x in (vertex, element, weight[element], total)], schema=_POSTINGS
        )

    return find, _POSTINGS


def _affine(weight: str, one: str, other: str, params: AffinityParams) -> str:
    """SQL that compares as `kernels.heavy.affine` does, multiplying in the same order."""
    shared, one, other = (f"CAST({column} AS DOUBLE)" for column in (weight, one, other))
    return f"{shared} * {shared} >= {params.theta2} * ({one} * {other})"


def _peel(log: QueryLog, work: Workspace, graph: VertexTables, members: Table, params: AffinityParams) -> Table:
    """The vertices that are left after those are removed that have too few users together with their neighbours.

    A vertex with k users of its own is never removed. Any other is examined again only if a vertex of one of its groups
    was removed.
    """
    alive = work.table(f"SELECT vertex FROM {graph.vertices}", "living vertices")
    with log.workspace() as steps:
        look = steps.table(f"SELECT vertex FROM {graph.vertices} WHERE own < {params.k}", "vertices to look at")
        while True:
            behind = _find_behind(log, steps, graph, members, alive, look, params)
            fallen = steps.table(
                f"SELECT l.vertex AS vertex FROM {look} l LEFT JOIN {behind} b ON b.vertex = l.vertex"
                f" WHERE b.n IS NULL OR b.n < {params.k}",
                "fallen vertices",
            )
            steps.drop(look, behind)
            if not steps.row(f"SELECT count(*) AS n FROM {fallen}")[0]:
                return alive
            left = work.table(
                f"SELECT a.vertex AS vertex FROM {alive} a LEFT JOIN {fallen} f ON f.vertex = a.vertex"
                " WHERE f.vertex IS NULL",
                "living vertices",
            )
            work.drop(alive)
            alive = left
            look = steps.table(
                f"SELECT m.vertex AS vertex FROM {members} m JOIN (SELECT n.low AS low, n.high AS high"
                f" FROM {members} n JOIN {fallen} f ON f.vertex = n.vertex GROUP BY n.low, n.high) AS touched"
                f" ON touched.low = m.low AND touched.high = m.high JOIN {alive} a ON a.vertex = m.vertex"
                f" JOIN {graph.vertices} v ON v.vertex = m.vertex WHERE v.own < {params.k} GROUP BY m.vertex",
                "vertices to look at",
            )
            steps.drop(fallen)


def _find_behind(
    log: QueryLog,
    work: Workspace,
    graph: VertexTables,
    members: Table,
    alive: Table,
    look: Table,
    params: AffinityParams,
) -> Table:
    """Count the users behind the vertices to look at: vertex, n."""
    with log.workspace() as steps:
        most, kind = f"place <= {params.k}", ""
        if params.max_new_users is not None:
            # A plain number too, because Spark then leaves out the others before it sends them around.
            most = f"place <= {max(params.k, params.max_new_users)} AND"
            most += f" place <= CASE WHEN new = 1 THEN {params.max_new_users} ELSE {params.k} END"
            kind = ", new"
        # The users of each group that is asked, with the weight of the lightest living member that has them.
        first_users = steps.table(
            "SELECT low, high, user_id, new, total FROM (SELECT low, high, user_id, new, total, row_number() OVER"
            f" (PARTITION BY low, high{kind} ORDER BY total, user_id) AS place FROM"
            " (SELECT m.low AS low, m.high AS high, u.user_id AS user_id, u.new AS new, min(m.total) AS total"
            f" FROM {members} m JOIN (SELECT n.low AS low, n.high AS high FROM {members} n JOIN {look} l"
            " ON l.vertex = n.vertex GROUP BY n.low, n.high) AS asked ON asked.low = m.low AND asked.high = m.high"
            f" JOIN {alive} a ON a.vertex = m.vertex JOIN {graph.users} u ON u.vertex = m.vertex"
            f" GROUP BY m.low, m.high, u.user_id, u.new) AS group_users) AS ranked WHERE {most}",
            "first users of groups",
        )
        return work.table(
            f"SELECT vertex, {params.users('new')} AS n FROM (SELECT vertex, user_id, new FROM (SELECT m.vertex AS"
            f" vertex, f.user_id AS user_id, f.new AS new FROM {members} m JOIN {look} l ON l.vertex = m.vertex"
            f" JOIN {first_users} f ON f.low = m.low AND f.high = m.high"
            f" WHERE {_affine('m.weight', 'm.total', 'f.total', params)} UNION ALL"
            f" SELECT u.vertex AS vertex, u.user_id AS user_id, u.new AS new FROM {graph.users} u JOIN {look} l"
            " ON l.vertex = u.vertex) AS seen GROUP BY vertex, user_id, new) AS each_once GROUP BY vertex",
            "users behind vertices",
        )
