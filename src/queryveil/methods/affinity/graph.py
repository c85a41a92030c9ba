"""The graph of affine queries, exact and never stored: its vertices, their neighbours, its generalized cores.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, sections 3.2 to 3.4. Queries are compared by their vectors of concepts and words;
`kernels/heavy.py` shows how affine ones are found without comparing all pairs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets, ranges
from queryveil.engines.memory import reserve
from queryveil.log import LocalLog
from queryveil.methods.affinity.concepts import Concepts

if TYPE_CHECKING:
    from queryveil.kernels.cores import Users
    from queryveil.kernels.heavy import Groups, Sets

A = TypeVar("A")
B = TypeVar("B")

MOST_SUBSETS = 4096
"""A vertex with more heavy subsets, a very long query, is compared with all that hold one of its rarest concepts.

In a small graph fewer vertices hold them, so comparing is cheaper and a lower limit is better: one subset for every
`VERTICES_PER_SUBSET` vertices, and at least `ENOUGH_SUBSETS`."""

VERTICES_PER_SUBSET = 2600
ENOUGH_SUBSETS = 64

_WHAT = "The graph of similar queries"

NEW_ACCOUNT = 2
"""A user with at most this many distinct queries in all may be a planted account."""


@dataclass(frozen=True)
class Vertices:
    """Distinct vectors, the lightest first; queries with equal vectors have the same neighbours: one vertex."""

    of: NDArray[np.int32]
    """The vertex of each query of the log, or of each session, -1 for one that is not a vertex."""
    sets: "Sets"
    users: "Users"
    """The users of each vertex; new accounts are negative."""

    @cached_property
    def postings(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where the vertices that hold each concept start, and these vertices."""
        return holders(self.sets)

    def __len__(self) -> int:
        return len(self.sets.total)


def vertices_of(
    log: LocalLog,
    concepts: Concepts,
    start: NDArray[np.int64],
    concept: NDArray[np.int32],
    chosen: NDArray[np.bool_],
    level: NDArray[np.int64] | None = None,
) -> Vertices:
    """Merge the equal vectors of chosen queries, and collect the users of each.

    Args:
        log: The log.
        concepts: Its concepts.
        start: Where the concepts of each query start, as `query_vectors` gives it.
        concept: The concepts of all queries.
        chosen: Which queries are vertices; each holds a concept.
        level: For each query a small number; equal vectors are merged only if it is the same, else they are neighbours.
    """
    query, user = (log.query_users[name].to_numpy() for name in ("query_id", "user_id"))
    of, sets = merged(start, concept, Weights(concepts.squared, concepts.parts), np.flatnonzero(chosen), level)
    return Vertices(of, sets, users_of(log, of[query], user, len(sets.total)))


class Weights(NamedTuple):
    """What elements weigh, the lightest first, and the parts of each, as `kernels.heavy.Sets` has them."""

    weight: NDArray[np.int64]
    part: NDArray[np.int32]


def merged(
    start: NDArray[np.int64],
    element: NDArray[np.int32],
    weights: Weights,
    some: NDArray[np.int64],
    level: NDArray[np.int64] | None = None,
) -> "tuple[NDArray[np.int32], Sets]":
    """Some sets of elements, each once: the number of each set, -1 for the others, and the distinct ones.

    Args:
        start: Where the elements of each set start.
        element: The elements of all sets, ascending in each.
        weights: What elements weigh.
        some: The sets that count, ascending.
        level: For each set a small number; equal sets are merged only if it is the same.
    """
    from queryveil.kernels.digest import digests
    from queryveil.kernels.heavy import Sets
    from queryveil.kernels.intern import Interner

    begin, end = start[:-1][some], start[1:][some]
    low, high = digests(element.view(np.uint8), begin * 4, end * 4)
    if level is not None:
        high += level[some].astype(np.uint64)
    number, fresh = Interner().add(low, high)
    total = Ragged(start).sums(weights.weight[element])[some][fresh]
    lightest = np.argsort(total, kind="stable")
    rank = np.empty(len(lightest), np.int32)
    rank[lightest] = np.arange(len(lightest), dtype=np.int32)
    of = np.full(len(start) - 1, -1, np.int32)
    of[some] = rank[number]
    begin, size = begin[fresh][lightest], (end - begin)[fresh][lightest]
    held = element[ranges(begin, size)]
    return of, Sets(offsets(size), held, total[lightest], *weights, *digests_of(len(weights.weight)))


def digests_of(elements: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A digest of each element."""
    from queryveil.kernels.digest import digests

    ids = np.arange(elements, dtype=np.int64)
    return digests(ids.view(np.uint8), ids * 8, ids * 8 + 8)


def users_of(log: LocalLog, vertex: NDArray[np.int32], user: NDArray[np.int32], vertices: int) -> "Users":
    """The users of each vertex, from pairs of a vertex, or -1, and a user."""
    from queryveil.kernels.cores import Users

    reserve(len(vertex) * 40, _WHAT)
    new = new_accounts(log)
    ours = vertex >= 0
    packed = vertex[ours].astype(np.int64) << 32 | user[ours]
    packed.sort()
    packed = packed[np.diff(packed, prepend=-1) > 0]
    found = (packed & 0xFFFFFFFF).astype(np.int32)
    start = np.searchsorted(packed, np.arange(vertices + 1) << 32)
    return Users(start, np.where(new[found], ~found, found))


def new_accounts(log: LocalLog) -> NDArray[np.bool_]:
    """Which users have a history of one or two distinct queries."""
    return np.bincount(log.query_users["user_id"].to_numpy(), minlength=log.n_users) <= NEW_ACCOUNT


@dataclass(frozen=True)
class _Search:
    """The state of the search for witnesses, for each vertex that has too few users of its own."""

    vertices: NDArray[np.int32]
    witness: NDArray[np.int32]
    next_group: NDArray[np.int64]
    next_member: NDArray[np.int64]

    @classmethod
    def of(cls, vertices: NDArray[np.int32], k: int) -> Self:
        """A search that has not begun."""
        places = len(vertices)
        reserve(places * (4 * k + 16), "The witnesses of similar queries")
        anew = np.full(places, -1, np.int64)
        # With new accounts that do not count, a vertex may have no user of its own, so there may be k witnesses.
        return cls(vertices, np.full((places, k), -1, np.int32), anew, anew.copy())

    def carried_on(self, vertices: NDArray[np.int32], k: int, alive: NDArray[np.bool_]) -> "_Search":
        """The search for more users; if a witness was removed, it starts over."""
        from queryveil.kernels.cores import lost_a_witness

        search = _Search.of(vertices, k)
        still = np.flatnonzero(alive[self.vertices])
        place = np.searchsorted(vertices, self.vertices[still])
        search.witness[place, : self.witness.shape[1]] = self.witness[still]
        search.next_group[place] = self.next_group[still]
        search.next_member[place] = self.next_member[still]
        search.next_group[lost_a_witness(alive, search.witness)] = -1
        return search


@dataclass(frozen=True)
class Layer:
    """Neighbours by one similarity: groups of vertices.

    Two members of a group are neighbours if what they share, the weight of the group, is enough for their own weights.

    Attributes:
        similarity: Its name.
        groups: The groups; the members of each are lightest first.
        total: The weight of each vertex.
        theta: The least cosine.
        owner: If given, only this vertex has the members of each group as neighbours, and not they each other.
    """

    similarity: str
    groups: "Groups"
    total: NDArray[np.int64]
    theta: float
    owner: NDArray[np.int32] | None = None


class AffinityGraph:
    """The graph of affine vertices, as groups of vertices that share a heavy subset.

    Args:
        vertices: The vertices.
        theta: The least cosine of neighbours; the graph can be used for any theta from there up to 1.
        threads: The number of threads; does not change the result.
        words: Whether vertices are compared by their words.
        more: Neighbours by other similarities.
    """

    def __init__(
        self, vertices: Vertices, theta: float, threads: int, *, words: bool = True, more: Sequence[Layer] = ()
    ) -> None:
        self.vertices = vertices
        self.theta = theta
        self._threads = threads
        groups = heavy_groups(vertices.sets, theta, threads) if words else no_groups()
        self._layers = [Layer("words", groups, vertices.sets.total, theta), *more]
        self.groups = _joined([layer.groups for layer in self._layers]) if more else groups
        self._layer_end = np.cumsum([len(layer.groups.weight) for layer in self._layers])
        self._total = np.stack([layer.total for layer in self._layers]) if more else vertices.sets.total[None]
        reserve(4 * len(self.groups.member) + 16 * len(vertices), _WHAT)
        self._group_start, self._group = self._seen()
        self.vouched = np.empty(0, np.int32), np.empty((0, 0), np.int32)
        """Vertices with too few users of their own, and for each the neighbours that vouch for it, -1 behind the last.

        They are those of the core that `cores` returned last; for removed vertices, what was found so far."""

    def _seen(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where the groups that each vertex looks into start, and these groups, ascending."""
        from queryveil.kernels.heavy import turned

        if all(layer.owner is None for layer in self._layers):
            return turned(self.groups.start, self.groups.member, len(self.vertices))
        # A group with an owner is one whose only member is the owner.
        sizes = [
            np.diff(layer.groups.start) if layer.owner is None else np.ones(len(layer.owner), np.int64)
            for layer in self._layers
        ]
        members = [layer.groups.member if layer.owner is None else layer.owner for layer in self._layers]
        return turned(offsets(np.concatenate(sizes)), np.concatenate(members), len(self.vertices))

    def _theta2(self, theta: float) -> NDArray[np.float64]:
        """The square of theta in each layer, with this one for words."""
        return np.array([theta, *(layer.theta for layer in self._layers[1:])]) ** 2

    @cached_property
    def _group_users(self) -> NDArray[np.int32]:
        from queryveil.kernels.cores import users_of_groups

        return users_of_groups(self.groups, self.vertices.users)

    def cores(
        self,
        ks: Iterable[int],
        *,
        theta: float | None = None,
        most_new: int | None = None,
        within: Callable[[int], NDArray[np.bool_]] | None = None,
        staying: NDArray[np.bool_] | None = None,
    ) -> Iterator[NDArray[np.bool_]]:
        """The generalized core of each k: remove vertices that have fewer than k users together with their neighbours.

        A vertex with k users of its own is never removed. Any other is examined until k users are found, and again only
        if one of the neighbours that vouched for it is removed. From each k to the next, only remaining vertices are
        examined, and the search continues where it stopped.

        Args:
            ks: Ascending.
            theta: The least cosine, at least that of the graph, which is the default.
            most_new: How many new accounts count as users of a vertex; by default all.
            within: For a k, vertices that include its core, such as the core of a lower theta.
            staying: Vertices that are not removed, however few users they have.

        Yields:
            Which vertices are in the core; do not modify it. `vouched` has its witnesses until the next one.
        """
        from queryveil.kernels.cores import lost_a_witness, own_users

        theta = self.theta if theta is None else theta
        theta2 = self._theta2(theta)
        users = self.vertices.users
        most_new = len(users.user) if most_new is None else most_new
        own = own_users(users, most_new)
        if staying is not None:
            own[staying] = np.iinfo(np.int64).max
        alive = np.ones(len(own), np.bool_)
        search = _Search.of(np.empty(0, np.int32), 0)
        for k, asked in _with_steps(ks):
            if within is not None and asked:
                alive &= within(k)
            search = search.carried_on(np.flatnonzero(alive & (own < k)).astype(np.int32), k, alive)
            look = np.arange(len(search.vertices))
            while len(look):
                found = self._look(look, search, k, most_new, alive, theta2)
                alive[search.vertices[look[~found]]] = False
                lost = lost_a_witness(alive, search.witness) & alive[search.vertices]
                search.next_group[lost] = -1
                look = np.flatnonzero(lost)
            if asked:
                self.vouched = search.vertices, search.witness
                yield alive.copy()

    def _look(
        self,
        places: NDArray[np.int64],
        search: "_Search",
        k: int,
        most_new: int,
        alive: NDArray[np.bool_],
        theta2: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Search for witnesses; all threads see the same vertices, so their number does not change the result."""
        from queryveil.kernels.cores import find_witnesses

        def look(part: NDArray[np.int64]) -> NDArray[np.bool_]:
            return find_witnesses(
                part, search.vertices, k, most_new, alive, self.vertices.users, self._group_start, self._group,
                self.groups, self._group_users, self._layer_end, self._total, theta2, search.witness,
                search.next_group, search.next_member,
            )  # fmt: skip

        parts = np.array_split(places, max(1, min(4 * self._threads, len(places) // 1000)))
        return np.concatenate(_threaded(look, parts, self._threads))

    def neighbours(self, vertex: int) -> NDArray[np.int32]:
        """The vertices affine to one, ascending, without itself."""
        return np.array(sorted(set().union(*self.neighbours_by(vertex).values())), np.int32)

    def neighbours_by(self, vertex: int) -> dict[str, set[int]]:
        """The vertices affine to one, without itself, by the similarity that makes them so."""
        from queryveil.kernels.heavy import affine

        theta2 = self._theta2(self.theta)
        found: dict[str, set[int]] = {layer.similarity: set() for layer in self._layers}
        for g in self._group[self._group_start[vertex] : self._group_start[vertex + 1]]:
            i = int(np.searchsorted(self._layer_end, g, side="right"))
            total = self._total[i]
            found[self._layers[i].similarity] |= {
                int(other)
                for other in self.groups.member[self.groups.start[g] : self.groups.start[g + 1]]
                if other != vertex and affine(self.groups.weight[g], total[vertex], total[other], theta2[i])
            }
        return found


def _with_steps(ks: Iterable[int]) -> Iterator[tuple[int, bool]]:
    """Each k that is asked for, and some smaller ones before a large k, so that few vertices need many users."""
    done = 16
    for k in ks:
        while done * 2 <= k:
            yield done, False
            done *= 4
        yield k, True
        done = max(done, k)


def holders(sets: "Sets") -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where the sets that hold each element start, and these sets."""
    from queryveil.kernels.heavy import turned

    return turned(sets.start, sets.element, len(sets.weight))


def affine_pairs(
    sets: "Sets",
    postings: tuple[NDArray[np.int64], NDArray[np.int32]],
    some: NDArray[np.int64],
    theta: float,
    threads: int = 1,
) -> "Groups":
    """Some sets with each of their neighbours, by comparison with all that hold one of their rarest elements.

    Args:
        sets: The sets.
        postings: What `holders` found for them.
        some: The sets whose neighbours are wanted.
        theta: The least cosine.
        threads: The number of threads; does not change the result.
    """
    from queryveil.kernels.heavy import pairs_of

    among = np.zeros(len(sets.total), np.bool_)
    among[some] = True
    return _joined(
        _threaded(
            lambda part: pairs_of(part, among, sets, *postings, theta * theta),
            np.array_split(some, max(1, min(4 * threads, len(some) // 100))),
            threads,
        )
    )


def heavy_groups(sets: "Sets", theta: float, threads: int) -> "Groups":
    """All groups of sets that share a heavy subset."""
    from queryveil.kernels.heavy import Subsets, group_subsets, walk_subsets

    n, theta2 = len(sets.total), theta * theta
    most = min(MOST_SUBSETS, max(ENOUGH_SUBSETS, n // VERTICES_PER_SUBSET))
    counts = np.zeros(n, np.int32)
    # Heavy vertices have far more subsets than light ones; parts of about equal work, and more of them than threads.
    work = np.cumsum(np.diff(sets.start) ** 3)
    edges = np.searchsorted(work, np.linspace(0, work[-1], 8 * threads + 1))
    edges[-1] = n
    # 64 to 128 places a vertex: subsets outnumber them only at a low theta, where the filter lets more pass.
    bits = n.bit_length() + 6
    reserve(min(threads, 8) * (1 << bits) // 4, _WHAT)
    filters = SimpleQueue[NDArray[np.uint64]]()
    for _ in range(min(threads, 8)):
        filters.put(np.zeros((1 << bits) // 32, np.uint64))

    every = np.empty(0, np.int32), np.empty(0, np.bool_)

    def walk(part: int, met: NDArray[np.uint64], listing: bool) -> Subsets:
        first, last = edges[part], edges[part + 1]
        return walk_subsets(sets, first, last, theta2, most, counts, bits, met, listing, *every)

    def mark(part: int) -> None:
        met = filters.get()
        try:
            walk(part, met, False)
        finally:
            filters.put(met)

    # The largest parts first, so that no large one is left to the end.
    parts = range(8 * threads)[::-1]
    _threaded(mark, parts, min(threads, 8))
    met = filters.get()
    while not filters.empty():
        more = filters.get()
        met[1::2] |= more[1::2]
        met[1::2] |= met[::2] & more[::2]
        met[::2] |= more[::2]
    sizes = [0]

    def list_subsets(part: int) -> Subsets:
        # Their number is known only after they are listed; all parts have about as many.
        reserve(2 * max(sizes), _WHAT)
        found = walk(part, met, True)
        sizes.append(sum(column.nbytes for column in found))
        return found

    listed = _threaded(list_subsets, parts, threads)
    reserve(sum(sizes), _WHAT)
    subsets = Subsets(*(np.concatenate(column) for column in zip(*listed[::-1], strict=True)))
    del listed
    reserve(40 * len(subsets.low), _WHAT)
    found = [group_subsets(subsets, len(subsets.low).bit_length())]
    del subsets
    long = np.flatnonzero(counts > most)
    if len(long):
        found.append(affine_pairs(sets, holders(sets), long, theta, threads))
    return _joined(found)


def no_groups() -> "Groups":
    """Groups of nobody."""
    from queryveil.kernels.heavy import Groups

    return Groups(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))


def _joined(parts: "list[Groups]") -> "Groups":
    from queryveil.kernels.heavy import Groups

    sizes = [np.diff(part.start) for part in parts]
    return Groups(
        offsets(np.concatenate([np.empty(0, np.int64), *sizes])),
        np.concatenate([part.member for part in parts]),
        np.concatenate([part.weight for part in parts]),
    )


def _threaded(work: Callable[[A], B], parts: Iterable[A], threads: int) -> list[B]:
    """Process all parts in parallel; the results in the order of the parts."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))
