"""The generalized core of the graph of affine queries, with tables: for logs that are too large for one machine.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, section 3.4. The same heavy subsets and the same result as `graph.py`, in operations that all
engines have. Queries are copied to parts where affine ones meet (`log/meeting.py`). In each part the compiled loops
find groups that share a heavy subset, and what the members of each offer each other; then parts stay where they are.
In rounds, a query that is offered too few users in all its parts is removed, and the others of its groups offer anew.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Ints, Longs, Ragged, offsets
from queryveil.engines import Table, Workspace
from queryveil.log import QueryLog
from queryveil.log.meeting import USER, Counting, bring_together, parts_of
from queryveil.methods.affinity.concepts import Concepts, vectors
from queryveil.methods.affinity.graph import MOST_SUBSETS, NEW_ACCOUNT
from queryveil.methods.queries import joined
from queryveil.text.arrays import byte_spans, packed, unpacked

Mapped = tuple[Callable[[pa.RecordBatch], pa.RecordBatch], pa.Schema]
"""A function for `Workspace.map`, and the columns it makes."""

_FOUND = pa.schema(
    [("part", pa.int32()), ("place", pa.int32()), ("weight", pa.int64()), ("query_id", pa.int64()),
     ("total", pa.int64()), ("own", pa.int32()), ("fresh", pa.int32()), ("users", pa.binary())]
)  # fmt: skip
"""A member of a group: the part, the place of the group there, what it shares by weight, and a query as in `MET`."""

_OFFERED = _FOUND.append(pa.field("enough", pa.bool_())).append(pa.field("offered", pa.binary()))
"""The same with what the others of its group offer: enough users, or these users."""

_REMOVED = pa.schema([("part", pa.int32()), ("query_id", pa.int64())])


@dataclass(frozen=True)
class AffinityParams:
    """What a query needs to be released."""

    k: int
    theta: float
    min_term_users: int
    min_query_users: int
    max_new_users: int | None

    @property
    def theta2(self) -> float:
        """The square of theta."""
        return self.theta * self.theta

    @property
    def counting(self) -> Counting:
        """Which users count."""
        return Counting(self.k, self.max_new_users)


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
    log.ensure_tables("query_users", "per_query", "word_users")
    with log.workspace() as steps:
        accounts = None
        if params.max_new_users is not None:
            accounts = steps.table(
                f"SELECT user_id, CASE WHEN count(*) <= {NEW_ACCOUNT} THEN 1 ELSE 0 END AS new FROM query_users"
                " GROUP BY user_id",
                "accounts",
            )
        some = f"SELECT q.query_id AS query_id, q.query AS query FROM queries q{joined(within, 'q.query_id')}"
        compared = steps.map(some, *_vectors(log, concepts), "vectors")
        # A table of its own, because it may be small enough to be sent to where the words of queries are.
        frequent = steps.table(
            f"SELECT word_id FROM word_users WHERE users >= {params.min_term_users}", "frequent words"
        )
        common = (
            f"SELECT t.query_id AS query_id FROM query_terms t LEFT JOIN {frequent} f ON f.word_id = t.word_id"
            " GROUP BY t.query_id HAVING count(f.word_id) = count(*)"
        )
        chosen = steps.table(
            f"SELECT v.query_id AS query_id, v.total AS total, v.vector AS vector FROM {compared} v"
            f" JOIN per_query p ON p.query_id = v.query_id JOIN ({common}) AS c ON c.query_id = v.query_id"
            f" WHERE p.users >= {params.min_query_users}",
            "chosen queries",
        )
        # In the order of how rare concepts are, which each worker knows.
        rank = np.empty(len(concepts), np.int32)
        rank[np.lexsort((np.arange(len(concepts)), concepts.events))] = np.arange(len(concepts))
        met = bring_together(log, steps, chosen, concepts.squared, rank, params.theta2, params.counting, accounts)
        members = steps.map_groups(
            f"SELECT * FROM {met}",
            "part",
            _Grouped.of(concepts, rank, params, parts_of(log, params.counting)),
            _OFFERED,
            "members",
        )
        members = _peel(log, steps, members, params)
        if accounts is None:
            alone = (
                f"SELECT p.query_id AS query_id, p.users AS n FROM per_query p LEFT JOIN {compared} v"
                " ON v.query_id = p.query_id WHERE v.query_id IS NULL"
            )
        else:
            alone = (
                f"SELECT query_id, sum(1 - new) + least(sum(new), {params.max_new_users}) AS n"
                " FROM (SELECT s.query_id AS query_id, a.new AS new"
                f" FROM query_users s JOIN {accounts} a ON a.user_id = s.user_id LEFT JOIN {compared} v"
                " ON v.query_id = s.query_id WHERE v.query_id IS NULL) AS pairs GROUP BY query_id"
            )
        # Joined with a table of all queries, they are where all that is asked by query is.
        return work.table(
            "SELECT p.query_id AS query_id FROM per_query p JOIN"
            f" (SELECT query_id FROM {met} WHERE own >= {params.k} GROUP BY query_id UNION ALL"
            f" SELECT query_id FROM {members} WHERE own < {params.k} GROUP BY query_id UNION ALL"
            f" SELECT query_id FROM ({alone}) AS issued WHERE n >= {params.k}) AS found ON found.query_id = p.query_id"
            f"{joined(within, 'p.query_id')} WHERE p.users >= {params.min_query_users}",
            "affine queries",
        )


def _vectors(log: QueryLog, concepts: Concepts) -> Mapped:
    """A function from queries to those with a concept: the vector, and its weight."""
    from queryveil.kernels.digest import digests

    schema = pa.schema([("query_id", log.id_type), ("total", pa.int64()), ("vector", pa.binary())])
    # Words are in the order of their digests, here as in every log.
    known_low, known_high = digests(*byte_spans(concepts.vocabulary.text))
    weight, language = concepts.squared, log.language

    def find(batch: pa.RecordBatch) -> pa.RecordBatch:
        from queryveil.kernels.digest import digests

        per_query, text = language.words(batch["query"])
        low, high = digests(*byte_spans(text))
        start, concept = vectors(concepts, offsets(per_query), _places(known_low, known_high, low, high))
        of_query = Ragged(start)
        held = pa.array(np.flatnonzero(of_query.sizes))
        columns = [batch["query_id"], pa.array(of_query.sums(weight[concept])), packed(start, concept)]
        return pa.RecordBatch.from_arrays([column.take(held) for column in columns], schema=schema)

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


@dataclass(frozen=True)
class _Grouped:
    """The groups of queries in a part that share a heavy subset, with what they offer each other.

    Attributes:
        weight: The weight of each concept.
        inside: The concepts inside each.
        low: The first halves of digests of the concepts.
        high: Their second halves.
        rank: The place of each concept in the order.
        params: What a query needs.
        parts: How many parts there are.
    """

    weight: Longs
    inside: Ints
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    rank: Ints
    params: AffinityParams
    parts: int

    @classmethod
    def of(cls, concepts: Concepts, rank: Ints, params: AffinityParams, parts: int) -> "_Grouped":
        """With what is the same in all parts, made once."""
        from queryveil.kernels.digest import digests

        ids = np.arange(len(concepts), dtype=np.int64)
        low, high = digests(ids.view(np.uint8), ids * 8, ids * 8 + 8)
        return cls(concepts.squared, concepts.parts, low, high, rank, params, parts)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        from queryveil.kernels.heavy import Sets, group_subsets, pairs_of, turned, walk_subsets

        part, n, theta2 = int(batch["part"][0].as_py()), len(batch), self.params.theta2
        total, query = (batch[name].to_numpy() for name in ("total", "query_id"))
        order = np.lexsort((query, total))
        batch = batch.take(pa.array(order))
        start, element = unpacked(batch["vector"], np.int32)
        sets = Sets(start, element, batch["total"].to_numpy(), self.weight, self.inside, self.low, self.high)
        # A subset is listed in the part of its first concept alone, where all queries are that hold it.
        ours = np.arange(len(self.weight)) % self.parts == part
        counts, bits = np.zeros(n, np.int32), n.bit_length() + 6
        met = np.zeros((1 << bits) // 32, np.uint64)
        for listing in (False, True):
            subsets = walk_subsets(sets, 0, n, theta2, MOST_SUBSETS, counts, bits, met, listing, self.rank, ours)
        found = [group_subsets(subsets, len(subsets.low).bit_length())]
        long = counts > MOST_SUBSETS
        if long.any():
            postings = turned(sets.start, sets.element, len(sets.weight))
            found.append(pairs_of(np.flatnonzero(long), long, sets, *postings, theta2))
        sizes = np.concatenate([np.diff(groups.start) for groups in found])
        member = np.concatenate([groups.member for groups in found])
        weight = np.repeat(np.concatenate([groups.weight for groups in found]), sizes)
        named = {
            "part": np.full(len(member), part, np.int32),
            "place": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            "weight": weight,
        }
        at = pa.array(member)
        columns = [pa.array(named[name]) if name in named else batch[name].take(at) for name in _FOUND.names]
        return _offered(pa.RecordBatch.from_arrays(columns, schema=_FOUND), self.params)


@dataclass(frozen=True)
class _Again:
    """What members offer each other after some were removed."""

    params: AffinityParams

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        order = [(name, "ascending") for name in ("place", "total", "query_id")]
        return _offered(batch.take(pc.sort_indices(batch, order)), self.params)


def _offered(members: pa.RecordBatch, params: AffinityParams) -> pa.RecordBatch:
    """What members of groups offer each other, the lightest first, without groups of one or of nobody in need."""
    from queryveil.kernels.offers import Members, offered_users

    place, own = members["place"].to_numpy(), members["own"].to_numpy()
    ends = np.flatnonzero(np.diff(place, append=-1))
    sizes = np.diff(ends, prepend=-1)
    needy = Ragged(offsets(sizes)).sums(own < params.k)
    stays = (sizes > 1) & (needy > 0)
    members = members.filter(pa.array(np.repeat(stays, sizes)))
    start = offsets(sizes[stays])
    user_start, user = unpacked(members["users"], USER)
    columns = {name: members[name].to_numpy() for name in ("weight", "total", "own", "fresh")}
    counting = params.counting
    found = offered_users(
        Members(
            start, columns["weight"][start[:-1]], columns["total"], columns["own"].astype(np.int64),
            columns["fresh"].astype(np.int64), user_start, user["id"].copy(), user["new"].copy(),
        ),
        counting.k, counting.limit, params.theta2,
    )  # fmt: skip
    offered = np.empty(len(found.user), USER)
    offered["id"], offered["new"] = found.user, found.new
    kept = [members[name] for name in _FOUND.names]
    return pa.RecordBatch.from_arrays([*kept, pa.array(found.enough), packed(found.start, offered)], schema=_OFFERED)


def _peel(log: QueryLog, work: Workspace, members: Table, params: AffinityParams) -> Table:
    """The members that are left after queries with too few users were removed until there is none.

    A query with k users of its own is never removed, nor listed where no other member lacks users.
    """
    kept, parts = ", ".join(f"m.{name} AS {name}" for name in _FOUND.names), parts_of(log, params.counting)
    while True:
        with log.workspace() as steps:
            removed = steps.map_groups(
                f"SELECT CAST(query_id % {parts} AS INTEGER) AS of_query, part, query_id, own, fresh, enough,"
                f" offered FROM {members} WHERE own < {params.k}",
                "of_query",
                _Removed(params.counting),
                _REMOVED,
                "removed queries",
            )
            if not steps.row(f"SELECT count(*) AS n FROM {removed}")[0]:
                return members
            left = work.map_groups(
                f"SELECT {kept} FROM {members} m LEFT JOIN {removed} r ON r.part = m.part AND r.query_id = m.query_id"
                " WHERE r.query_id IS NULL",
                "part",
                _Again(params),
                _OFFERED,
                "members",
            )
        work.drop(members)
        members = left


@dataclass(frozen=True)
class _Removed:
    """The parts of the queries that are offered too few users in all of them together."""

    counting: Counting

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        queries, at, owner = np.unique(batch["query_id"].to_numpy(), return_index=True, return_inverse=True)
        own, fresh = (batch[name].to_numpy()[at].astype(np.int64) for name in ("own", "fresh"))
        enough = np.zeros(len(queries), np.bool_)
        enough[owner[batch["enough"].to_numpy(zero_copy_only=False)]] = True
        start, user = unpacked(batch["offered"], USER)
        users, new = self.counting.behind(np.repeat(owner, np.diff(start)), user, len(queries))
        # `own` has counted so many of the new accounts already.
        limit = self.counting.limit
        n = own + users - new + np.minimum(new + fresh, limit) - np.minimum(fresh, limit)
        removed = ~enough & (n < self.counting.k)
        pairs = batch.select(["part", "query_id"]).filter(pa.array(removed[owner]))
        return pairs.cast(_REMOVED)
