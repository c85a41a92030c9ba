"""AFF: k-theta-affinity.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015. Exact, on the whole log: the graph of affine queries is never stored, but walked through the
heavy subsets that affine queries share (`kernels/heavy.py`).
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from queryveil.claims import AffineUsers
from queryveil.concepts import default_min_users, mine_concepts, query_vectors
from queryveil.log import QueryLog
from queryveil.methods.base import Method, Reason
from queryveil.methods.queries import check_k, rarest_word, release_queries
from queryveil.release import Release

if TYPE_CHECKING:
    from queryveil.kernels.heavy import Groups

MOST_SUBSETS = 4096
"""A vertex with more heavy subsets, a very long query, meets its neighbours by adding up common weights instead."""

_PARTITION = 16_000_000


class Affinity(Method):
    """Release a query when k users stand behind it and the released queries affine to it (Carpineto and Romano 2015).

    Queries are compared by the concepts they hold: runs of one to three words that many users type. A rare refinement
    of a popular query is thus protected by the popular one and by other refinements. A query without a concept is
    released when k users issued it. Clicks are released when k users made them; times and extra columns are dropped.
    """

    name: ClassVar[str] = "affinity"
    limits: ClassVar[tuple[str, ...]] = (
        "k-theta-affinity is not differential privacy, and it is weaker than k-anonymity of queries: a released query "
        "may have been issued by one user alone, protected by similar queries of others. Whoever saw it typed finds it "
        "again.",
        "The set of queries of one fresh user id can still be that of one person. Where that matters, drop the users "
        "(`--users drop`).",
        "Accounts controlled by one person count as several users, and can be planted to protect a query.",
    )

    k: int = Field(5, ge=2, description="least distinct users behind a released query and those affine to it")
    theta: float = Field(0.9, gt=0, le=1, description="least cosine of the concepts of two affine queries")
    min_users: int | None = Field(
        None, ge=2, description="least distinct users of a concept; by default 0.01 % of all users, and at least k"
    )
    min_term_users: int = Field(
        2, ge=1, description="a query with a concept is released only if each of its words has so many distinct users"
    )
    users: Literal["fresh", "drop"] = Field(
        "fresh", description="keep users apart under fresh random ids, or drop them"
    )

    @model_validator(mode="after")
    def _concepts_are_shared(self) -> Self:
        if self.min_users is not None and self.min_users < self.k:
            raise ValueError(
                f"'min_users' is {self.min_users}, fewer than the {self.k} of 'k', so that a concept could have fewer "
                "users than a released query; raise it."
            )
        return self

    def anonymize(self, log: QueryLog, *, seed: int = 0) -> Release:
        """Release every query of anonymity degree at least k."""
        check_k(self, "k", self.k, log)
        min_users = self.min_users if self.min_users is not None else default_min_users(log, self.k)
        kept, concepts, alone = self._released(log, min_users)
        notes = [f"{concepts:,} concepts of at least {min_users:,} users."]
        if concepts == 0:
            notes.append("No concept survives, so every query falls back to equality.")
        notes.append(f"{alone:,} released queries were issued by fewer than {self.k} users themselves.")
        claim = AffineUsers(users=self.k, theta=self.theta, min_users=min_users, min_term_users=self.min_term_users)
        return release_queries(self, log, kept, claim, k=self.k, seed=seed, users=self.users, notes=notes)

    def explain(self, log: QueryLog, query_id: int) -> list[Reason]:
        """What the rules find for the query: its words, its concepts, and whether enough users stand behind it."""
        min_users = self.min_users if self.min_users is not None else default_min_users(log, self.k)
        concepts = mine_concepts(log, min_users)
        start, _ = query_vectors(log, concepts)
        held, users = int(start[query_id + 1] - start[query_id]), int(log.users_per_query[query_id])
        if held == 0:
            return [Reason(f"no concept, so at least {self.k} users issued the query", users >= self.k, f"{users} did")]
        rarest = int(rarest_word(log)[query_id])
        rule = f"at least {self.min_term_users} users used each of its words"
        reasons = [Reason(rule, rarest >= self.min_term_users, f"{rarest} used the rarest")]
        if rarest >= self.min_term_users:
            kept = bool(self._released(log, min_users)[0][query_id])
            rule = f"at least {self.k} users behind it and the released queries affine to it"
            reasons.append(Reason(rule, kept, f"{users} issued it, it holds {held} concepts"))
        return reasons

    def _released(self, log: QueryLog, min_users: int) -> tuple[NDArray[np.bool_], int, int]:
        """Which queries are released, how many concepts there are, and how many released queries lack k users."""
        concepts = mine_concepts(log, min_users)
        start, concept = query_vectors(log, concepts)
        kept = log.users_per_query >= self.k
        some = np.diff(start) > 0
        kept[some] = False
        eligible = some & (rarest_word(log) >= self.min_term_users)
        if eligible.any():
            vertices = _vertices(log, eligible, start, concept, concepts.squared)
            with ThreadPoolExecutor(log.engine.threads) as pool:
                alive = _survivors(vertices, self.k, self.theta * self.theta, pool, log.engine.threads)
            kept[eligible] = alive[vertices.of_query]
        return kept, len(concepts), int((log.users_per_query[kept] < self.k).sum())


@dataclass(frozen=True)
class _Vertices:
    """Distinct concept vectors; queries with equal vectors have the same neighbours and are one vertex."""

    of_query: NDArray[np.int32]
    """The vertex of each eligible query."""
    start: NDArray[np.int64]
    concept: NDArray[np.int32]
    squared: NDArray[np.int64]
    """The squared weight of each concept, in fixed point."""
    total: NDArray[np.int64]
    """The sum of squared weights of each vertex."""
    user_start: NDArray[np.int64]
    user: NDArray[np.int32]


def _vertices(
    log: QueryLog,
    eligible: NDArray[np.bool_],
    start: NDArray[np.int64],
    concept: NDArray[np.int32],
    squared: NDArray[np.int64],
) -> _Vertices:
    """Merge equal vectors, and gather the users behind each."""
    from queryveil.kernels.digest import digests
    from queryveil.kernels.intern import Interner

    queries = np.flatnonzero(eligible)
    begin, end = start[:-1][queries], start[1:][queries]
    of_query, fresh = Interner().add(*digests(concept.view(np.uint8), begin * 4, end * 4))
    size = (end - begin)[fresh]
    vertex_start = np.concatenate([[0], np.cumsum(size)])
    at = np.repeat(begin[fresh] - vertex_start[:-1], size) + np.arange(vertex_start[-1])
    elements = concept[at]
    total = np.add.reduceat(squared[elements], vertex_start[:-1])
    vertex_of = np.full(log.n_queries, -1, np.int64)
    vertex_of[queries] = of_query
    pairs = log.engine.table("SELECT query_id, user_id FROM events GROUP BY query_id, user_id")
    vertex = vertex_of[pairs["query_id"].to_numpy()]
    packed = vertex[vertex >= 0] << 32 | pairs["user_id"].to_numpy()[vertex >= 0]
    packed.sort()
    packed = packed[np.diff(packed, prepend=-1) > 0]
    user_start = np.searchsorted(packed, np.arange(len(fresh) + 1) << 32)
    return _Vertices(
        of_query, vertex_start, elements, squared, total, user_start, (packed & 0xFFFFFFFF).astype(np.int32)
    )


def _survivors(vertices: _Vertices, k: int, theta2: float, pool: ThreadPoolExecutor, threads: int) -> NDArray[np.bool_]:
    """The generalized core: peel vertices with fewer than k users in their closed neighbourhood until none is left.

    A vertex with k users of its own never falls. Any other is looked at until k users are found; it is looked at again
    only when one of the neighbours that vouched for it falls.
    """
    from queryveil.kernels.cores import find_witnesses, lost_a_witness
    from queryveil.kernels.heavy import groups_of_members

    groups = _groups(vertices, theta2, pool)
    group_start, group = groups_of_members(groups, len(vertices.total))
    alive = np.ones(len(vertices.total), np.bool_)
    open_ = np.flatnonzero(np.diff(vertices.user_start) < k)
    witness = np.full((len(vertices.total), k - 1), -1, np.int32)
    look = open_
    while len(look):
        # All of a round look at the same state, so that the number of threads changes nothing.
        parts = np.array_split(look, max(1, min(4 * threads, len(look) // 1000)))
        found = np.concatenate(
            list(
                pool.map(
                    lambda part: find_witnesses(
                        part, k, alive, vertices.user_start, vertices.user, group_start, group, groups,
                        vertices.total, theta2, witness,
                    ),
                    parts,
                )
            )
        )  # fmt: skip
        alive[look[~found]] = False
        open_ = open_[alive[open_]]
        look = open_[lost_a_witness(open_, alive, witness)]
    return alive


def _groups(vertices: _Vertices, theta2: float, pool: ThreadPoolExecutor) -> "Groups":
    """All groups of vertices that share a heavy subset."""
    from queryveil.kernels.digest import digests
    from queryveil.kernels.heavy import Groups, count_subsets, group_subsets, list_subsets, pairs_of
    from queryveil.kernels.order import digest_order

    v = vertices
    counts = count_subsets(v.start, v.concept, v.squared, v.total, theta2, MOST_SUBSETS)
    short = counts <= MOST_SUBSETS
    bits = max(0, int(counts[short].sum() // _PARTITION).bit_length())
    ids = np.arange(len(v.squared), dtype=np.int64)
    low, high = digests(ids.view(np.uint8), ids * 8, ids * 8 + 8)

    def part(number: int) -> Groups:
        subsets = list_subsets(
            v.start, v.concept, v.squared, low, high, v.total, counts, theta2, MOST_SUBSETS, number, bits
        )
        return group_subsets(subsets, digest_order(subsets.low, subsets.high), v.total)

    parts = list(pool.map(part, range(1 << bits)))
    if not short.all():
        posting_start, posting = _postings(v)
        long = np.flatnonzero(~short)
        parts.append(pairs_of(long, v.start, v.concept, v.squared, v.total, posting_start, posting, theta2))
    sizes = np.cumsum([0, *(len(p.member) for p in parts)])
    start = np.concatenate([[0], *(p.start[1:] + size for p, size in zip(parts, sizes[:-1], strict=True))])
    return Groups(
        start.astype(np.int64),
        np.concatenate([p.member for p in parts]),
        np.concatenate([p.weight for p in parts]),
    )


def _postings(vertices: _Vertices) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The vertices that hold each concept."""
    owner = np.repeat(np.arange(len(vertices.total), dtype=np.int32), np.diff(vertices.start))
    order = np.argsort(vertices.concept, kind="stable")
    start = np.searchsorted(vertices.concept[order], np.arange(len(vertices.squared) + 1))
    return start, owner[order]
