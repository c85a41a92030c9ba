"""The generalized core of the graph of affine queries, by tables: for logs that outgrow the memory of one machine.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, section 3.4. The same vertices, heavy subsets and answer as `graph.py`, in the verbs that all
engines share: affine queries meet by an equi-join on the subset that they share.

A group of vertices that share a subset may be as large as the log, but k of its users tell all that is asked of it:
those who come first when its members are ordered by weight. A member is affine to the members up to some weight; if k
users stand behind these, the first k do, and if fewer do, all of them are among the first k.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.log import QueryLog
from queryveil.methods.affinity.concepts import Concepts, vectors
from queryveil.methods.affinity.graph import MOST_SUBSETS, NEW_ACCOUNT
from queryveil.text import words
from queryveil.text.arrays import byte_spans

Mapped = tuple[Callable[[pa.RecordBatch], pa.RecordBatch], pa.Schema]
"""A function for `Engine.map`, and the columns it makes."""


@dataclass(frozen=True)
class Wanted:
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
        """SQL that counts users, of new accounts only so many."""
        if self.max_new_users is None:
            return "count(*)"
        return f"sum(1 - {new}) + least(sum({new}), {self.max_new_users})"


def find_affine(log: QueryLog, concepts: Concepts, wanted: Wanted) -> None:
    """Make the table `affine`: the query_id of every query that is released."""
    engine = log.engine
    log.need("searchers", "per_query", "rarest")
    engine.materialize(
        f"SELECT user_id, CASE WHEN count(*) <= {NEW_ACCOUNT} THEN 1 ELSE 0 END AS new FROM searchers GROUP BY user_id",
        "accounts",
    )
    engine.map("SELECT query_id, query FROM queries", *_vectors(log, concepts), "vectors")
    _make_vertices(log, wanted)
    _make_members(log, concepts, wanted)
    _peel(log, wanted)
    alone = (
        f"SELECT query_id, {wanted.users('new')} AS n FROM (SELECT s.query_id AS query_id, a.new AS new"
        " FROM searchers s JOIN accounts a ON a.user_id = s.user_id LEFT JOIN vectors v ON v.query_id = s.query_id"
        " WHERE v.query_id IS NULL) AS pairs GROUP BY query_id"
    )
    engine.materialize(
        "SELECT q.query_id AS query_id FROM vertex_of q JOIN alive a ON a.vertex = q.vertex UNION ALL"
        f" SELECT p.query_id AS query_id FROM per_query p JOIN ({alone}) AS issued ON issued.query_id = p.query_id"
        f" WHERE issued.n >= {wanted.k} AND p.users >= {wanted.min_query_users}",
        "affine",
    )
    engine.drop("accounts", "vectors", "vertex_of", "vertices", "vertex_users", "members", "alive")


def _vectors(log: QueryLog, concepts: Concepts) -> Mapped:
    """A function from queries to those with a concept: the digest of its vector, the vector, and its weight."""
    from queryveil.kernels.digest import digests

    schema = pa.schema(
        [("query_id", log.id_type), ("low", pa.int64()), ("high", pa.int64()), ("total", pa.int64()),
         ("vector", pa.binary())]
    )  # fmt: skip
    # Words are in the order of their digests, here as in every log.
    known_low, known_high = digests(*byte_spans(concepts.vocabulary.text))
    weight = concepts.squared

    def find(batch: pa.RecordBatch) -> pa.RecordBatch:
        from queryveil.kernels.digest import digests

        per_query, text = words(batch["query"])
        low, high = digests(*byte_spans(text))
        start, concept = vectors(concepts, np.cumsum([0, *per_query]), _places(known_low, known_high, low, high))
        held = np.flatnonzero(np.diff(start))
        low, high = digests(concept.view(np.uint8), start[held] * 4, start[held + 1] * 4)
        so_far = np.concatenate([[0], np.cumsum(weight[concept])])
        offsets = pa.py_buffer((np.append(start[held], start[-1]) * 4).astype(np.int32))
        vector = pa.Array.from_buffers(pa.binary(), len(held), [None, offsets, pa.py_buffer(concept)])
        columns = [low.view(np.int64), high.view(np.int64), so_far[start[held + 1]] - so_far[start[held]]]
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


def _make_vertices(log: QueryLog, wanted: Wanted) -> None:
    """Merge the equal vectors of queries that may be released: `vertices`, `vertex_of` and `vertex_users`.

    In `vertices` stand vertex, vector, total, and `own`: the users behind the vertex alone, as far as they count.
    """
    engine = log.engine
    engine.materialize(
        "SELECT v.query_id AS query_id, v.low AS low, v.high AS high, v.total AS total, v.vector AS vector"
        " FROM vectors v JOIN per_query p ON p.query_id = v.query_id JOIN rarest r ON r.query_id = v.query_id"
        f" WHERE p.users >= {wanted.min_query_users} AND r.users >= {wanted.min_term_users}",
        "chosen",
    )
    engine.number(
        "SELECT low, high, min(total) AS total, min(vector) AS vector FROM chosen GROUP BY low, high",
        ("low", "high"),
        "distinct_vectors",
        "vertex",
    )
    engine.materialize(
        "SELECT c.query_id AS query_id, d.vertex AS vertex FROM chosen c JOIN distinct_vectors d ON d.low = c.low"
        " AND d.high = c.high",
        "vertex_of",
    )
    engine.materialize(
        "SELECT pairs.vertex AS vertex, pairs.user_id AS user_id, a.new AS new FROM (SELECT q.vertex AS vertex,"
        " s.user_id AS user_id FROM vertex_of q JOIN searchers s ON s.query_id = q.query_id"
        " GROUP BY q.vertex, s.user_id) AS pairs JOIN accounts a ON a.user_id = pairs.user_id",
        "vertex_users",
    )
    engine.materialize(
        "SELECT d.vertex AS vertex, d.total AS total, d.vector AS vector, o.own AS own FROM distinct_vectors d JOIN"
        f" (SELECT vertex, {wanted.users('new')} AS own FROM vertex_users GROUP BY vertex) AS o ON o.vertex = d.vertex",
        "vertices",
    )
    engine.drop("chosen", "distinct_vectors")


def _make_members(log: QueryLog, concepts: Concepts, wanted: Wanted) -> None:
    """Bring vertices together that share a heavy subset: `members`.

    What stands in it: low and high, which name the group, the weight of what is shared, and a vertex with its total.
    """
    engine = log.engine
    engine.map("SELECT vertex, total, vector FROM vertices", *_subsets(concepts, wanted.theta), "subsets")
    # Most subsets belong to one vertex alone, and are of no use.
    members = (
        "SELECT s.low AS low, s.high AS high, s.weight AS weight, s.vertex AS vertex, s.total AS total FROM subsets s"
        " JOIN (SELECT low, high FROM subsets WHERE weight >= 0 GROUP BY low, high HAVING count(*) > 1) AS shared"
        " ON shared.low = s.low AND shared.high = s.high"
    )
    long = engine.row("SELECT count(*) AS n FROM subsets WHERE weight < 0")[0]
    if long:
        _make_pairs(log, concepts, wanted)
        for end in ("one", "other"):
            members += (
                f" UNION ALL SELECT one AS low, -other AS high, weight, {end} AS vertex, {end}_total AS total"
                " FROM pairs"
            )
    engine.materialize(members, "members")
    engine.drop("subsets", *(["pairs"] if long else []))


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


def _make_pairs(log: QueryLog, concepts: Concepts, wanted: Wanted) -> None:
    """The neighbours of vertices with too many subsets, very long queries: `pairs`.

    A vertex affine to another lacks little of its weight. So it holds one of any concepts that weigh more together, and
    those that hold one of the rarest such are compared.
    """
    engine = log.engine
    engine.map("SELECT vertex, total, vector FROM vertices", *_postings(concepts), "postings")
    engine.materialize("SELECT concept, count(*) AS n FROM postings GROUP BY concept", "sizes")
    engine.materialize("SELECT vertex, total FROM subsets WHERE weight < 0", "long_ones")
    engine.materialize(
        "SELECT vertex, concept, total FROM (SELECT p.vertex AS vertex, p.concept AS concept, l.total AS total,"
        " coalesce(sum(p.weight) OVER (PARTITION BY p.vertex ORDER BY s.n, p.concept ROWS BETWEEN UNBOUNDED PRECEDING"
        " AND 1 PRECEDING), 0) AS rarer FROM postings p JOIN long_ones l ON l.vertex = p.vertex"
        " JOIN sizes s ON s.concept = p.concept) AS held"
        f" WHERE rarer <= (1 - {wanted.theta2}) * total * 1.000001",
        "rare_parts",
    )
    # Two long ones meet twice, and are taken once.
    engine.materialize(
        "SELECT r.vertex AS one, p.vertex AS other FROM rare_parts r JOIN postings p ON p.concept = r.concept"
        " LEFT JOIN long_ones l ON l.vertex = p.vertex WHERE p.vertex <> r.vertex"
        " AND (l.vertex IS NULL OR r.vertex < p.vertex)"
        f" AND p.total >= {wanted.theta2} * r.total * 0.999999 AND p.total * {wanted.theta2} <= r.total * 1.000001"
        " GROUP BY r.vertex, p.vertex",
        "near",
    )
    engine.materialize(
        "SELECT one, other, weight, one_total, other_total FROM (SELECT n.one AS one, n.other AS other,"
        " CAST(sum(a.weight) AS BIGINT) AS weight, min(a.total) AS one_total, min(b.total) AS other_total FROM near n"
        " JOIN postings a ON a.vertex = n.one JOIN postings b ON b.vertex = n.other AND b.concept = a.concept"
        " GROUP BY n.one, n.other) AS compared"
        f" WHERE {_affine('weight', 'one_total', 'other_total', wanted)}",
        "pairs",
    )
    engine.drop("postings", "sizes", "long_ones", "rare_parts", "near")


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


def _affine(weight: str, one: str, other: str, wanted: Wanted) -> str:
    """SQL that compares as `kernels.heavy.affine` does, multiplying in the same order."""
    shared, one, other = (f"CAST({column} AS DOUBLE)" for column in (weight, one, other))
    return f"{shared} * {shared} >= {wanted.theta2} * ({one} * {other})"


def _peel(log: QueryLog, wanted: Wanted) -> None:
    """Take away vertices with fewer than k users behind them and their living neighbours, until none falls: `alive`.

    A vertex with k users of its own never falls. Any other is looked at again only when a vertex of one of its groups
    fell.
    """
    engine = log.engine
    engine.materialize("SELECT vertex FROM vertices", "alive")
    engine.materialize(f"SELECT vertex FROM vertices WHERE own < {wanted.k}", "look")
    while True:
        _find_behind(log, wanted)
        engine.materialize(
            "SELECT l.vertex AS vertex FROM look l LEFT JOIN behind b ON b.vertex = l.vertex"
            f" WHERE b.n IS NULL OR b.n < {wanted.k}",
            "fallen",
        )
        if not engine.row("SELECT count(*) AS n FROM fallen")[0]:
            break
        engine.materialize(
            "SELECT a.vertex AS vertex FROM alive a LEFT JOIN fallen f ON f.vertex = a.vertex WHERE f.vertex IS NULL",
            "alive",
        )
        engine.materialize(
            "SELECT m.vertex AS vertex FROM members m JOIN (SELECT n.low AS low, n.high AS high FROM members n"
            " JOIN fallen f ON f.vertex = n.vertex GROUP BY n.low, n.high) AS touched ON touched.low = m.low"
            " AND touched.high = m.high JOIN alive a ON a.vertex = m.vertex JOIN vertices v ON v.vertex = m.vertex"
            f" WHERE v.own < {wanted.k} GROUP BY m.vertex",
            "look",
        )
    engine.drop("look", "behind", "fallen")


def _find_behind(log: QueryLog, wanted: Wanted) -> None:
    """Count the users behind the vertices in `look`: `behind`."""
    engine = log.engine
    # The users of each group that is asked, with the weight of the lightest living member that has them.
    engine.materialize(
        "SELECT m.low AS low, m.high AS high, u.user_id AS user_id, u.new AS new, min(m.total) AS total FROM members m"
        " JOIN (SELECT n.low AS low, n.high AS high FROM members n JOIN look l ON l.vertex = n.vertex"
        " GROUP BY n.low, n.high) AS asked ON asked.low = m.low AND asked.high = m.high"
        " JOIN alive a ON a.vertex = m.vertex JOIN vertex_users u ON u.vertex = m.vertex"
        " GROUP BY m.low, m.high, u.user_id, u.new",
        "group_users",
    )
    most = (
        wanted.k
        if wanted.max_new_users is None
        else f"CASE WHEN new = 1 THEN {wanted.max_new_users} ELSE {wanted.k} END"
    )
    kind = "" if wanted.max_new_users is None else ", new"
    engine.materialize(
        "SELECT low, high, user_id, new, total FROM (SELECT low, high, user_id, new, total, row_number() OVER"
        f" (PARTITION BY low, high{kind} ORDER BY total, user_id) AS place FROM group_users) AS ranked"
        f" WHERE place <= {most}",
        "first_users",
    )
    engine.materialize(
        f"SELECT vertex, {wanted.users('new')} AS n FROM (SELECT vertex, user_id, new FROM (SELECT m.vertex AS vertex,"
        " f.user_id AS user_id, f.new AS new FROM members m JOIN look l ON l.vertex = m.vertex JOIN first_users f"
        f" ON f.low = m.low AND f.high = m.high WHERE {_affine('m.weight', 'm.total', 'f.total', wanted)} UNION ALL"
        " SELECT u.vertex AS vertex, u.user_id AS user_id, u.new AS new FROM vertex_users u JOIN look l"
        " ON l.vertex = u.vertex) AS seen GROUP BY vertex, user_id, new) AS each_once GROUP BY vertex",
        "behind",
    )
    engine.drop("group_users", "first_users")
