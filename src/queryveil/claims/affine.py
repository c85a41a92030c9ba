"""The claim of k-theta-affinity, checked without the method: concepts and words weighed anew, queries compared."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from queryveil.arrays import Ragged, offsets, places, ranges
from queryveil.claims.affine_tables import check_by_tables
from queryveil.claims.base import MOST, Checked, Count, Evidence, WitnessedClaim
from queryveil.claims.certificates import Certificate
from queryveil.claims.grams import fixed_point, frequent_grams
from queryveil.claims.similarity import Similarity, clicked, comparable, meanings
from queryveil.log import LocalLog, local

if TYPE_CHECKING:
    from queryveil.kernels.witnesses import Weighed

Longs = NDArray[np.int64]
_TOGETHER = 500_000
"""How many queries have their vectors made at a time, which bounds the memory."""


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
            text, at = _first_text(log, released[few])
            return Checked(f"the query '{text}' has {behind[few[at]]} users behind it", how)
        found = []
        for wrong, number, what in alone:
            bad = np.flatnonzero(wrong)
            if len(bad):
                text, place = _first_text(log, released[bad])
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
        wrong_query = None if len(lost) == 0 else f"the query '{_first_text(log, lost)[0]}' has too few users behind it"
        return Checked(wrong_query, how)

    def _count_behind(
        self, log: LocalLog, released: Longs, certificate: Certificate | None, which: str = "released"
    ) -> tuple[Longs, "list[tuple[NDArray[np.bool_], Longs, str]]", str]:
        """Check some queries against each other.

        Returns:
            For each query that lacks users behind it and those similar to it, how many there are, -1 for the others;
            for each rule about a query by itself, which break it, with what number of which users; and what was done.
        """
        users, vectors = self._compared(log, released)
        others = None if self.similarity == ("words",) else _Others.of(self, log, released, vectors.sizes > 0)
        behind, how = self._badly_protected(log, released, vectors, users, others, certificate, which)
        return behind, self._wrong_alone(log, released, vectors, users), how

    def _compared(self, log: LocalLog, released: Longs) -> "tuple[_Users, _Vectors]":
        """Who issued some queries, and what they are compared by."""
        vectors = _vectors(log, released, self.concept_min_users, self.vectors == "words")
        return _Users.of(log, released, self.max_new_users), vectors

    def _badly_protected(
        self,
        log: LocalLog,
        released: Longs,
        vectors: "_Vectors",
        users: "_Users",
        others: "_Others | None",
        certificate: Certificate | None,
        which: str,
    ) -> tuple[Longs, str]:
        """How many users stand behind each query that lacks some, -1 for the others, and what was done."""
        from queryveil.kernels.witnesses import count_named, holders_of, search

        # Queries of the same words are one set, unless something else may make them differ.
        of_query, sets = _merged(vectors, users, apart=others is not None)
        most_new = log.n_users if self.max_new_users is None else min(self.max_new_users, log.n_users)
        of_set = Ragged(sets.user_start)
        each = of_set.sizes
        if self.max_new_users is not None:
            fresh = of_set.sums(sets.new[sets.user])
            each = each - fresh + np.minimum(fresh, most_new)
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

            behind = _threaded(count, np.arange(len(needy)), log.engine.threads)
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
                return search(needy[part], of_part, near, sets, *postings, self.users, most_new, self.theta**2)

            behind[left] = _threaded(look, left, log.engine.threads)
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
        self, log: LocalLog, released: Longs, vectors: "_Vectors", users: "_Users"
    ) -> "list[tuple[NDArray[np.bool_], Longs, str]]":
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


@dataclass(frozen=True)
class _Users:
    """Who issued each released query."""

    place: Longs
    """For each pair of a released query and one of its users, the place of the query."""
    user: NDArray[np.int32]
    new: NDArray[np.bool_]
    """For each user of the log whether their history is one or two distinct queries."""
    issued: Longs
    """The users of each released query."""
    counted: Longs
    """The same, including at most `max_new_users` new accounts."""

    @classmethod
    def of(cls, log: LocalLog, released: Longs, most_new: int | None) -> "_Users":
        query, user = (log.query_users[name].to_numpy() for name in ("query_id", "user_id"))
        new = np.bincount(user, minlength=log.n_users) <= 2
        place_of = np.full(log.n_queries, -1, np.int32)
        place_of[released] = np.arange(len(released), dtype=np.int32)
        place = place_of[query]
        ours = place >= 0
        place, user = place[ours].astype(np.int64), user[ours]
        issued = np.bincount(place, minlength=len(released))
        counted = issued
        if most_new is not None:
            fresh = np.bincount(place[new[user]], minlength=len(released))
            counted = issued - fresh + np.minimum(fresh, min(most_new, log.n_users))
        return cls(place, user, new, issued, counted)


@dataclass(frozen=True, eq=False)
class _Vectors(Ragged):
    """What each released query is compared by: element[start[q]:start[q + 1]], ascending; nothing without a concept."""

    element: NDArray[np.int32]
    weight: Longs
    """The squared weight of each element, in fixed point."""


def _vectors(log: LocalLog, released: Longs, concept_min_users: int, with_words: bool) -> _Vectors:
    """Make the vectors of all released queries, in the simplest way."""
    from queryveil.kernels.witnesses import events_of_words

    grams = frequent_grams(log, concept_min_users)
    weight = grams.squared
    stop = np.isin(log.tokens.text.to_numpy(zero_copy_only=False), sorted(log.language.stop_words))
    # Behind the last word stands what is no word, and behind the last run what is no run: -1 is the last place.
    meant = np.append(~stop, False)
    concept = np.append(meant[grams.word].any(axis=1), False)
    place_of = np.full(log.stats.words, -1, np.int64)
    place_of[grams.words] = np.arange(len(grams.words))
    n_grams = len(weight)
    if with_words:
        events = events_of_words(log.tokens.start, log.tokens.word, log.events_per_query, log.stats.words)
        weight = np.concatenate([weight, fixed_point(np.log2(events + 1.0))])
    starts, elements = [np.zeros(1, np.int64)], []
    for begin in range(0, len(released), _TOGETHER):
        part = released[begin : begin + _TOGETHER]
        word = log.tokens.word[log.tokens.positions(part)]
        query = np.repeat(np.arange(len(part)), log.tokens.sizes[part])
        place = place_of[word]
        runs = [(query[: len(found)][concept[found]], found[concept[found]]) for found in grams.runs(place, query)]
        owner, element = (np.concatenate(column) for column in zip(*runs, strict=True))
        if with_words:
            has = np.zeros(len(part), np.bool_)
            has[owner] = True
            # A stop word weighs nothing by itself, and neither does a word that is a concept already.
            other = has[query] & ~stop[word] & ~concept[place]
            owner, element = np.append(owner, query[other]), np.append(element, n_grams + word[other])
        packed = owner << 32 | element
        packed.sort()
        packed = packed[np.diff(packed, prepend=-1) > 0]
        starts.append(starts[-1][-1] + np.searchsorted(packed, np.arange(1, len(part) + 1) << 32))
        elements.append((packed & 0xFFFFFFFF).astype(np.int32))
    return _Vectors(np.concatenate(starts), np.concatenate([np.empty(0, np.int32), *elements]), weight)


@dataclass(frozen=True)
class _Others:
    """What released queries are compared by beside their words; queries are places among the released ones."""

    meaning: Longs
    """The row of each query among `vectors`, -1 for one that is not compared by its meaning."""
    vectors: NDArray[np.int16]
    theta_meaning: float
    clicks: Ragged
    """The addresses of each query: `address`, ascending."""
    address: NDArray[np.int32]
    theta_clicks: float

    @classmethod
    def of(cls, claim: AffineUsers, log: LocalLog, released: Longs, concept: NDArray[np.bool_]) -> "_Others":
        some = comparable(log, max(claim.concept_min_users, claim.min_term_users))[released] & concept
        meaning, vectors = np.full(len(released), -1, np.int64), np.empty((0, 1), np.int16)
        if claim.theta_meaning is not None:
            order = np.flatnonzero(some)
            found = meanings(log, released[order])
            meaning[places(released, found.query)] = np.arange(len(found.query))
            vectors = found.vector
        size, address = np.zeros(len(released), np.int64), np.empty(0, np.int32)
        if claim.theta_clicks is not None:
            led = clicked(log, claim.users)
            place = places(released, led.query)
            ours = (place >= 0) & some[place]
            size, address = np.bincount(place[ours], minlength=len(released)), led.address[ours]
        return cls(meaning, vectors, claim.theta_meaning or 1, Ragged(offsets(size)), address, claim.theta_clicks or 1)

    def alike(self, one: Longs, other: Longs) -> NDArray[np.bool_]:
        """Whether the queries of each pair are similar by meaning or clicks."""
        from queryveil.kernels.close import close, squared
        from queryveil.kernels.witnesses import common_sizes

        found = self._share(one, other, common_sizes(self.clicks.start, self.address, one, other))
        length = squared(self.vectors)
        for begin in range(0, len(one), _TOGETHER):
            a, b = (self.meaning[pair[begin : begin + _TOGETHER]] for pair in (one, other))
            both = np.flatnonzero((a >= 0) & (b >= 0))
            a, b = a[both], b[both]
            dot = np.einsum("ij,ij->i", self.vectors[a], self.vectors[b], dtype=np.int64)
            found[begin + both] |= close(dot.astype(np.float64), length[a], length[b], self.theta_meaning)
        return found

    def _share(self, one: Longs, other: Longs, common: Longs) -> NDArray[np.bool_]:
        """Whether so many common addresses make two queries similar."""
        size, shared = self.clicks.sizes.astype(np.float64), common.astype(np.float64)
        theta2 = self.theta_clicks * self.theta_clicks
        found: NDArray[np.bool_] = (common > 0) & (shared * shared >= theta2 * (size[one] * size[other]))
        return found

    def near(self, some: Longs) -> tuple[Longs, Longs]:
        """All queries that are similar to some by meaning or clicks: how many for each, and these."""
        from queryveil.kernels.close import close_to
        from queryveil.kernels.witnesses import common_sizes

        query = np.flatnonzero(self.meaning >= 0)
        meant = np.flatnonzero(self.meaning[some] >= 0)
        pairs = [np.empty(0, np.int64)]
        for x, y in close_to(self.vectors[self.meaning[some[meant]]], self.vectors, self.theta_meaning):
            pairs.append(meant[x] << 32 | query[y])
        # By clicks: all that share an address.
        order = np.argsort(self.address, kind="stable")
        edge = np.searchsorted(self.address[order], np.arange(int(self.address.max(initial=-1)) + 2))
        owner = self.clicks.owners[order]
        for begin in range(0, len(some), 1000):
            part = some[begin : begin + 1000]
            mine = self.address[self.clicks.positions(part)]
            sizes = edge[mine + 1] - edge[mine]
            place = np.repeat(np.repeat(np.arange(len(part)) + begin, self.clicks.sizes[part]), sizes)
            met = np.unique(place << 32 | owner[ranges(edge[mine], sizes)])
            one, other = some[met >> 32], met & 0xFFFFFFFF
            pairs.append(met[self._share(one, other, common_sizes(self.clicks.start, self.address, one, other))])
        packed = np.unique(np.concatenate(pairs))
        packed = packed[some[packed >> 32] != packed & 0xFFFFFFFF]
        return np.bincount(packed >> 32, minlength=len(some)), packed & 0xFFFFFFFF


def _merged(vectors: _Vectors, users: _Users, apart: bool) -> "tuple[NDArray[np.int64], Weighed]":
    """Released queries with equal vectors as one set, the lightest first, with the users of all of them.

    Args:
        vectors: What each query is compared by.
        users: Who issued it.
        apart: Whether each query is a set of its own.

    Returns:
        The set of each released query, -1 for one without a concept; and the sets.
    """
    from queryveil.kernels.witnesses import Weighed

    size = vectors.sizes
    some = np.flatnonzero(size)
    start, size = vectors.start[:-1][some], size[some]
    # Sorted by a mark, equal vectors are neighbours; then neighbours are compared.
    marks = np.random.default_rng().integers(0, 1 << 63, len(vectors.weight), np.int64)
    mark, total = (
        np.add.reduceat(of[vectors.element], start) if len(some) else start for of in (marks, vectors.weight)
    )
    order = np.argsort(mark, kind="stable")
    some, start, size, mark, total = (column[order] for column in (some, start, size, mark, total))
    same = np.zeros(len(some), np.bool_)
    same[1:] = (mark[1:] == mark[:-1]) & (size[1:] == size[:-1]) & (not apart)
    pair = np.flatnonzero(same)
    if len(pair):
        one, other = (vectors.element[ranges(start[at], size[pair])] for at in (pair - 1, pair))
        same[pair] = Ragged(offsets(size[pair])).sums(one != other) == 0
    of_place = np.cumsum(~same) - 1
    head = np.flatnonzero(~same)
    lightest = np.argsort(total[head], kind="stable")
    rank = np.empty(len(head), np.int64)
    rank[lightest] = np.arange(len(head))
    of_query = np.full(len(vectors), -1, np.int64)
    of_query[some] = rank[of_place]
    head = head[lightest]
    element = vectors.element[ranges(start[head], size[head])]
    owner = of_query[users.place]
    packed = owner[owner >= 0] << 32 | users.user[owner >= 0]
    packed.sort()
    packed = packed[np.diff(packed, prepend=-1) > 0]
    user_start = np.searchsorted(packed, np.arange(len(head) + 1) << 32)
    user = (packed & 0xFFFFFFFF).astype(np.int32)
    ends = offsets(size[head])
    return of_query, Weighed(ends, element, vectors.weight, total[head], user_start, user, users.new)


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


def _threaded(work: Any, places: Longs, threads: int) -> Longs:
    """What some work finds for each place, side by side, in their order."""
    parts = [part for part in np.array_split(places, max(1, min(8 * threads, len(places) // 1000))) if len(part)]
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate([np.empty(0, np.int64), *pool.map(work, parts)])


def _first_text(log: LocalLog, queries: Longs) -> tuple[str, int]:
    """The first of some queries in alphabetical order, and its place among them."""
    texts = log.query_text.take(pa.array(queries)).to_pylist()
    place = min(range(len(texts)), key=texts.__getitem__)
    return texts[place], place
