"""The claim of k-theta-affinity, checked without the method: concepts and words weighed anew, queries compared."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from queryveil.arrays import Longs, offsets, places, ranges
from queryveil.claims.affine_others import Others
from queryveil.claims.affine_tables import check_by_tables
from queryveil.claims.affine_vectors import Issuers, Vectors, counted_users, first_text, merged, threaded, vectors_of
from queryveil.claims.base import MOST, Checked, Count, Evidence, WitnessedClaim
from queryveil.claims.certificates import Certificate
from queryveil.claims.similarity import Similarity
from queryveil.log import LocalLog, local


class AffineUsers(WitnessedClaim):
    """k-theta-affinity: users stand behind each released query and the released queries affine to it."""

    kind: Literal["affine-users"] = "affine-users"
    of_words: ClassVar[bool] = True
    users: int = Field(ge=2, le=MOST)
    theta: float = Field(gt=0, le=1)
    vectors: Literal["words", "concepts"]
    concept_min_users: int = Field(ge=2, le=MOST)
    min_term_users: Count
    min_query_users: Count = 1
    max_new_users: int | None = Field(None, ge=0, le=MOST)
    similarity: tuple[Similarity, ...] = ("words",)
    """What makes two queries similar, any of them."""
    theta_meaning: float | None = Field(None, ge=0.5, le=1)
    theta_clicks: float | None = Field(None, ge=0.5, le=1)
    tables: str | None = Field(None, pattern="^[0-9a-f]{32}$")
    """A digest of the embedding and of the lists of names and places; None if queries are compared by words alone."""
    drawn: bool = False
    """Whether a later step released only some of the queries that protect each other."""

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        others = "similar queries of the log" if self.drawn else "those similar to it"
        return f"Behind every released query and {others} stand at least {self.users} users."

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        new = ""
        if self.max_new_users is not None:
            new = f", counting at most {self.max_new_users} accounts whose history is one or two queries"
        own = f"; at least {self.min_query_users} users issued each released query" if self.min_query_users > 1 else ""
        alike = "concepts and other words" if self.vectors == "words" else "concepts, other words left out,"
        others = "the queries of the log that are protected like it and" if self.drawn else "the released queries"
        ways = {
            "words": f"cosine of {alike} at least {self.theta}",
            "meaning": f"cosine of meanings at least {self.theta_meaning}",
            "clicks": f"cosine of the addresses clicked for them at least {self.theta_clicks}, of those that"
            f" {self.users} users clicked",
        }
        named = ", or ".join(ways[name] for name in self.similarity)
        if self.similarity != ("words",):
            named += "; queries with rare words, numbers, names of people or small places are compared by words alone"
        return (
            f"Behind every released query and {others} similar to it ({named}) stand at least"
            f" {self.users} users, or that many issued the query itself{new}; each word of"
            f" a released query with a concept, a run of words that {self.concept_min_users} users or more typed, has"
            f" at least {self.min_term_users} users{own}."
        )

    def look(self, evidence: Evidence) -> Checked:
        """Weigh concepts and words anew, and count the users of affine released queries for every query.

        The table `witnesses` of a certificate has a `query_id` and a `witness` in each row, two released queries that
        are affine. On a cluster, all queries are compared by tables, and no certificate is needed.
        """
        log = evidence.log
        if not isinstance(log, LocalLog):
            if self.similarity != ("words",):
                local(log, "The check of similar meanings and clicks")
            return check_by_tables(self, evidence)
        ids = evidence.work.fetch(f"SELECT query_id FROM {evidence.queries} ORDER BY query_id")["query_id"]  # noqa: S608  # a table of ours
        released = ids.to_numpy().astype(np.int64)
        if self.drawn:
            return self._look_for_protected(log, released, evidence.certificate)
        behind, alone, how = self._count_behind(log, released, evidence.certificate)
        few = np.flatnonzero(behind >= 0)
        if len(few):
            text, at = first_text(log, released[few])
            return Checked(f"the query '{text}' has {behind[few[at]]} users behind it", how)
        found = []
        for wrong, number, what in alone:
            bad = np.flatnonzero(wrong)
            if len(bad):
                text, place = first_text(log, released[bad])
                found.append((text, int(number[bad[place]]), what))
        return Checked(None if not found else "the query '{}' has {} {}".format(*min(found)), how)

    def _look_for_protected(self, log: LocalLog, released: Longs, certificate: Certificate | None) -> Checked:
        """Look for queries of the log that protect each other and hold all that are released.

        There is a largest set of them: what remains of the log after queries with too few users behind them were
        removed until there is none. A certificate may name a smaller one in its table `protected`.
        """
        named = None if certificate is None else certificate.table("protected", "query_id")
        if named is not None:
            some = np.unique(named["query_id"].to_numpy())
            some = some[(some >= 0) & (some < log.n_queries)]
            if np.isin(released, some).all():
                behind, alone, how = self._count_behind(log, some, certificate, "protected")
                if not ((behind >= 0) | np.logical_or.reduce([wrong for wrong, _, _ in alone])).any():
                    return Checked(None, how)
        # For some queries no other matters, and they are most of a log: they go first.
        every = np.arange(log.n_queries)
        users, vectors = self._compared(log, every)
        alone = self._wrong_alone(log, every, vectors, users)
        protected, rounds, bad = every[~np.logical_or.reduce([wrong for wrong, _, _ in alone])], 1, True
        while bad:
            behind, _, _ = self._count_behind(log, protected, None)
            bad, protected, rounds = bool((behind >= 0).any()), protected[behind < 0], rounds + 1
        how = (
            f"queries with too few users behind them were removed from the log, in {rounds} rounds, until none was left"
        )
        lost = released[~np.isin(released, protected)]
        wrong_query = None if len(lost) == 0 else f"the query '{first_text(log, lost)[0]}' has too few users behind it"
        return Checked(wrong_query, how)

    def _count_behind(
        self, log: LocalLog, released: Longs, certificate: Certificate | None, which: str = "released"
    ) -> tuple[Longs, list[tuple[NDArray[np.bool_], Longs, str]], str]:
        """Check some queries against each other.

        Returns:
            For each query that lacks users behind it and those similar to it, how many there are, -1 for the others;
            for each rule about a query by itself, which break it, with what number of which users; and what was done.
        """
        users, vectors = self._compared(log, released)
        others = None if self.similarity == ("words",) else Others.of(self, log, released, vectors.sizes > 0)
        behind, how = self._badly_protected(log, released, vectors, users, others, certificate, which)
        return behind, self._wrong_alone(log, released, vectors, users), how

    def _compared(self, log: LocalLog, released: Longs) -> tuple[Issuers, Vectors]:
        """Who issued some queries, and what they are compared by."""
        vectors = vectors_of(log, released, self.concept_min_users, self.vectors == "words")
        return Issuers.of(log, released, self.max_new_users), vectors

    def _badly_protected(
        self,
        log: LocalLog,
        released: Longs,
        vectors: Vectors,
        users: Issuers,
        others: Others | None,
        certificate: Certificate | None,
        which: str,
    ) -> tuple[Longs, str]:
        """How many users stand behind each query that lacks some, -1 for the others, and what was done."""
        from queryveil.kernels.witnesses import UNLISTED, count_named, holders_of, search

        # Queries of the same words are one set, unless something else may make them differ.
        of_query, sets = merged(vectors, users, apart=others is not None)
        each, most_new = counted_users(sets, self.max_new_users)
        needy = np.flatnonzero(each < self.users)
        theta2 = self.theta * self.theta if "words" in self.similarity else np.inf
        behind = np.zeros(len(needy), np.int64)
        named = _named(certificate, released, of_query)
        query_of = np.empty(len(each), np.int64)
        query_of[of_query[of_query >= 0]] = np.flatnonzero(of_query >= 0)
        if named is not None:
            first, last = (np.searchsorted(named[0], needy, side) for side in ("left", "right"))
            start, name = offsets(last - first), named[1][ranges(first, last - first)]
            also = np.zeros(len(name), np.bool_)
            if others is not None:
                also = others.alike(query_of[np.repeat(needy, last - first)], query_of[name])

            def count(part: Longs) -> Longs:
                edges = start[part[0] : part[-1] + 2]
                return count_named(needy[part], edges, name, also, sets, self.users, most_new, theta2)

            behind = threaded(count, np.arange(len(needy)), log.engine.threads)
        left = np.flatnonzero(behind < self.users)
        if len(left):
            # Without words nothing is found by them: then no set holds an element.
            held = sets.element if "words" in self.similarity else sets.element[:0]
            begin = sets.start if "words" in self.similarity else np.zeros_like(sets.start)
            postings = holders_of(begin, held, len(sets.weight))
            near_start, near = np.zeros(len(needy) + 1, np.int64), np.empty(0, np.int64)
            if others is not None:
                sizes, found = others.near(query_of[needy[left]])
                near_start[left + 1] = sizes
                near_start, near = np.cumsum(near_start), of_query[found]

            def look(part: Longs) -> Longs:
                of_part = np.append(near_start[part], near_start[part[-1] + 1])
                return search(
                    needy[part], of_part, near, sets, *postings, self.users, most_new, self.theta * self.theta, UNLISTED
                )

            behind[left] = threaded(look, left, log.engine.threads)
        queries = np.bincount(of_query[of_query >= 0], minlength=len(each))[needy]
        how = f"{queries.sum():,} {which} queries need others; the users behind all of them were counted"
        if len(left) < len(needy):
            how += f", for {np.delete(queries, left).sum():,} with the witnesses that the certificate names"
        if len(left):
            how += f", for {queries[left].sum():,} by a search of all {which} queries"
        few = np.flatnonzero(behind < self.users)
        count_of = np.full(len(each) + 1, -1, np.int64)  # the last for queries without a concept
        count_of[needy[few]] = behind[few]
        return count_of[of_query], how

    def _wrong_alone(
        self, log: LocalLog, released: Longs, vectors: Vectors, users: Issuers
    ) -> list[tuple[NDArray[np.bool_], Longs, str]]:
        """Which queries lack users by themselves, or have a rare word."""
        concept = vectors.sizes > 0
        rare = log.users_per_word < self.min_term_users
        holds_rare = np.zeros(len(released), np.bool_)
        if rare.any():
            holds_rare = concept & (log.tokens.sums(rare[log.tokens.word])[released] > 0)
        return [
            (~concept & (users.counted < self.users), users.counted, "users behind it"),
            (users.issued < self.min_query_users, users.issued, "users who issued it"),
            (
                holds_rare,
                np.full(len(released), self.min_term_users - 1),
                "users or fewer who used one of its words",
            ),
        ]


def _named(certificate: Certificate | None, released: Longs, of_query: Longs) -> tuple[Longs, Longs] | None:
    """The pairs of sets that a certificate names, in the order of the first; only released queries can be witnesses."""
    table = None if certificate is None else certificate.table("witnesses", "query_id", "witness")
    if table is None:
        return None
    of_place = np.append(of_query, -1)  # for what is not released, which has the place -1
    one, other = (of_place[places(released, table[name].to_numpy())] for name in ("query_id", "witness"))
    known = (one >= 0) & (other >= 0)
    one, other = one[known], other[known]
    order = np.argsort(one, kind="stable")
    return one[order], other[order]
