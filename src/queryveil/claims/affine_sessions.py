"""The claim about sessions as units of k-theta-affinity: sessions of k users are similar to each of several queries."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from queryveil.arrays import Bools, Ints, Longs, Ragged, offsets, ranges
from queryveil.claims.affine_vectors import threaded, vectors_of
from queryveil.claims.base import MOST, Claim, Evidence
from queryveil.claims.grams import fixed_point
from queryveil.claims.linked import Sessions, clustered, contents, sessions_of
from queryveil.log import LocalLog, local

if TYPE_CHECKING:
    from queryveil.kernels.witnesses import Weighed


class AffineSessions(Claim):
    """Users stand behind each released session of several queries and the released sessions that are affine to it."""

    kind: Literal["affine-sessions"] = "affine-sessions"
    of_words: ClassVar[bool] = True
    exact: ClassVar[str] = (
        "Behind every released session of several different queries and the released sessions similar to it (cosine of"
        " the concepts and words of all their queries at least {theta}) stand at least {users} users{new}; a session"
        " ({sessions}) is released with all its released queries, or each of its queries by itself, and likewise every"
        " session with the same queries, each as often."
    )
    users: int = Field(ge=2, le=MOST)
    theta: float = Field(gt=0, le=1)
    vectors: Literal["words", "concepts"]
    concept_min_users: int = Field(ge=2, le=MOST)
    max_new_users: int | None = Field(None, ge=0, le=MOST)
    sessions: Sessions

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        new = ""
        if self.max_new_users is not None:
            new = f", counting at most {self.max_new_users} accounts whose history is one or two queries"
        return self.exact.format_map(dict(self) | {"new": new})

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        return f"Behind every session of several queries and those similar to it stand {self.users} users."

    def check(self, evidence: Evidence) -> str | None:
        """Find out which sessions of the log are released as one, then count the users behind each of them."""
        if "session" not in evidence.columns:
            return "the release has no column 'session'"
        log = local(evidence.log, "The check of similar sessions")
        with log.workspace() as work:
            mine, theirs = contents(evidence, work, "session", sessions_of(work, self.sessions))
            released, original = (
                _Units.of(work.fetch(f"SELECT id, query_id, n, {user} FROM {table} ORDER BY id, query_id"))  # noqa: S608  # tables of ours
                for table, user in ((mine, "0 AS user_id"), (theirs, "user_id"))
            )
        both = Ragged(offsets(np.concatenate([released.sizes, original.sizes])))
        query, n = (np.concatenate(pair) for pair in ((released.query, original.query), (released.n, original.n)))
        content, of_log = np.split(_numbered(query, n, both), [len(released)])
        times, in_log = (np.bincount(found, minlength=len(content) + len(of_log)) for found in (content, of_log))
        bad = np.flatnonzero((released.sizes > 1) & (times != in_log)[content])
        if len(bad):
            c = content[bad[0]]
            return (
                f"the queries of session {released.id[bad[0]]} are all queries of {times[c]} released sessions,"
                f" and of {in_log[c]} of the log"
            )
        whole = (original.sizes > 1) & (times[of_log] > 0)
        bad_query = _unlike(released.alone(released.sizes > 1), original.alone(whole))
        if bad_query is not None:
            text = log.query_text[bad_query].as_py()
            return f"the query '{text}' is not as often a session of its own as the log has it"
        if _pieces_together(released, original, whole):
            return "queries of one session that are released by themselves have neighbouring numbers"
        few = self._behind(log, original, whole)
        if few is None:
            return None
        unit, users = few
        return f"session {released.id[content == of_log[unit]].min()} has {users} users behind it"

    def _behind(self, log: LocalLog, units: "_Units", whole: Bools) -> tuple[int, int] | None:
        """The first session that is released as one and lacks users behind it, and how many there are."""
        from queryveil.kernels.witnesses import UNLISTED, holders_of, search

        first, sets = self._sets(log, units, whole)
        most_new = log.n_users if self.max_new_users is None else min(self.max_new_users, log.n_users)
        needy = np.flatnonzero(first >= 0)
        postings = holders_of(sets.start, sets.element, len(sets.weight))
        nobody = np.empty(0, np.int64)

        def look(part: Longs) -> Longs:
            near = np.zeros(len(part) + 1, np.int64)
            return search(part, near, nobody, sets, *postings, self.users, most_new, self.theta * self.theta, UNLISTED)

        behind = threaded(look, needy, log.engine.threads)
        few = np.flatnonzero(behind < self.users)
        if len(few) == 0:
            return None
        at = few[np.argmin(first[needy[few]])]
        return int(first[needy[at]]), int(behind[at])

    def _sets(self, log: LocalLog, units: "_Units", whole: Bools) -> "tuple[Longs, Weighed]":
        """What released sessions are compared by, the lightest first, those of the same queries once.

        Returns:
            For each set the first session that is released as one and has it, -1 for a session of one query; the sets.
        """
        from queryveil.kernels.witnesses import Weighed

        owner, one = units.owners, ~whole[units.owners]
        # A set for each combination of queries that is released as one, then a set for each query by itself.
        several = np.flatnonzero(whole)
        combination = _numbered(units.query, np.ones_like(units.n), units)[several]
        same, first, group = np.unique(combination, return_index=True, return_inverse=True)
        first = several[first]
        query = np.unique(units.query)
        single, of_single = np.unique(units.query[one], return_inverse=True)
        sizes = np.concatenate([units.sizes[first], np.ones(len(single), np.int64)])
        held = np.searchsorted(query, np.concatenate([units.query[units.positions(first)], single]))
        start, element, weight = self._elements(log, query, Ragged(offsets(sizes)), held)
        total = Ragged(start).sums(weight[element])
        order = np.argsort(total, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        pair = np.concatenate(
            [rank[group] << 32 | units.user[several], rank[len(same) + of_single] << 32 | units.user[owner[one]]]
        )
        pair = np.unique(pair)
        size = np.diff(start)[order]
        new = np.bincount(log.query_users["user_id"].to_numpy(), minlength=log.n_users) <= 2
        sets = Weighed(
            offsets(size),
            element[ranges(start[:-1][order], size)],
            weight,
            total[order],
            np.searchsorted(pair, np.arange(len(order) + 1) << 32),
            (pair & 0xFFFFFFFF).astype(np.int32),
            new,
        )
        return np.concatenate([first, np.full(len(single), -1, np.int64)])[order], sets

    def _elements(self, log: LocalLog, query: Longs, sets: Ragged, held: Longs) -> tuple[Longs, Ints, Longs]:
        """The vectors of sets of queries, as the union of those of the queries: where each starts, elements, weights.

        Args:
            log: The log.
            query: Queries, ascending.
            sets: The queries of each set.
            held: These, as places in `query`.
        """
        vectors = vectors_of(log, query, self.concept_min_users, self.vectors == "words")
        # A query without a concept is an element of its own.
        bare = np.flatnonzero(vectors.sizes[held] == 0)
        element = np.concatenate([vectors.element[vectors.positions(held)], len(vectors.weight) + held[bare]])
        owner = np.concatenate([np.repeat(sets.owners, vectors.sizes[held]), sets.owners[bare]])
        packed = np.unique(owner << 32 | element)
        weight = np.append(vectors.weight, fixed_point(np.log2(log.events_per_query[query] + 1.0)))
        return (
            np.searchsorted(packed, np.arange(len(sets) + 1) << 32),
            (packed & 0xFFFFFFFF).astype(np.int32),
            weight,
        )


@dataclass(frozen=True, eq=False)
class _Units(Ragged):
    """Sessions: the queries of each, ascending, and how many events each query has there."""

    id: Longs
    user: Longs
    query: Longs
    n: Longs

    @classmethod
    def of(cls, table: pa.Table) -> "_Units":
        """Sessions from a table of id, query_id, n and user_id in the order of id and query_id."""
        found = {name: table[name].to_numpy().astype(np.int64) for name in ("id", "query_id", "n", "user_id")}
        unit, first, size = np.unique(found["id"], return_index=True, return_counts=True)
        return cls(offsets(size), unit, found["user_id"][first], found["query_id"], found["n"])

    def alone(self, whole: Bools) -> NDArray[np.int64]:
        """The queries that are sessions of their own, with their events, if only some sessions are released as one."""
        one = ~whole[self.owners]
        return np.stack([self.query[one], self.n[one]])


def _numbered(query: Longs, n: Longs, units: Ragged) -> Longs:
    """A number for each list of queries with their events, the same if and only if the lists are.

    Lists are compared by sums of random marks, which nobody can foresee.
    """
    marks = np.random.default_rng().integers(0, 1 << 64, (2, int(query.max(initial=0)) + 1), np.uint64, endpoint=False)
    sums = [units.sums(mark[query] * n.astype(np.uint64)) for mark in marks]
    return np.unique(np.stack(sums), axis=1, return_inverse=True)[1].reshape(-1)


def _unlike(released: NDArray[np.int64], original: NDArray[np.int64]) -> int | None:
    """The first query that two lists do not hold equally often, with the same events; each is a row of both."""
    found, at = np.unique(np.concatenate([released, original], axis=1), axis=1, return_inverse=True)
    sign = np.repeat([1, -1], [released.shape[1], original.shape[1]])
    differs = np.flatnonzero(np.bincount(at.reshape(-1), sign, found.shape[1]))
    return int(found[0, differs[0]]) if len(differs) else None


def _pieces_together(released: _Units, original: _Units, whole: Bools) -> bool:
    """Whether sessions that were cut can be put together again by the numbers of their pieces.

    Only pieces count that can be of one session alone: nobody else has the query by itself, as often.
    """
    cut = ~whole[original.owners]
    theirs = np.stack([original.query[cut], original.n[cut]])
    kinds, first, times = np.unique(theirs, axis=1, return_index=True, return_counts=True)
    session = original.owners[cut][first]
    single = np.flatnonzero(released.sizes == 1)  # in the order of their numbers
    at = released.start[single]
    mine = np.stack([released.query[at], released.n[at]])
    place = np.unique(np.concatenate([kinds, mine], axis=1), axis=1, return_inverse=True)[1].reshape(-1)[
        kinds.shape[1] :
    ]
    known = session[place][times[place] == 1]
    return clustered(np.unique(known, return_inverse=True)[1])
