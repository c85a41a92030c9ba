"""Users by what they searched for: their distances, groups by MDAV, and the items that stand for a group.

Montserrat Batet, Arnau Erola, David Sánchez, Jordi Castellà-Roca, Utility preserving query log anonymization via
semantic microaggregation, Information Sciences 242 (2013), sections 4.2 and 4.3.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets
from queryveil.engines.memory import reserve
from queryveil.kernels import groups, quotas, semantic
from queryveil.kernels.postings import postings
from queryveil.knowledge import Links
from queryveil.knowledge.tree import Tree
from queryveil.log.draws import keyed
from queryveil.methods.microaggregation.common import Profiles, Searches, by_main_interests, numbered
from queryveil.text.show import percent

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

Spread = Callable[..., Iterable[Any]]
"""`map`, or one that runs side by side."""


@dataclass(frozen=True)
class Distances:
    """The distances of users, as whole numbers."""

    n: int
    row: Callable[[int], Longs]
    """Gives those of one user to all."""
    ways: tuple[Callable[[int], Longs], Callable[[Longs, slice, slice], Longs]] | None = None
    """If that is cheaper: gives what counts from all users to one, and what both ways add up to, for two stretches."""

    def matrix(self, spread: Spread = map) -> Longs:
        """All of them."""
        found = np.empty((self.n, self.n), np.int64)
        make, joined = self.ways or (self.row, None)

        def fill(v: int) -> None:
            found[v] = make(v)

        for _ in spread(fill, range(self.n)):
            pass
        if joined is not None:
            for one, other in combinations_with_replacement(range(0, self.n, _TILE), 2):
                a, b = slice(one, one + _TILE), slice(other, other + _TILE)
                found[a, b] = joined(found[a, b] + found[b, a].T, a, b)
                found[b, a] = found[a, b].T
        return found


Rows = Callable[[Longs], Distances]
"""The distances of some users."""

_TILE = 1_000
MATRIX = 10_000
"""Users whose distances are all kept; of more users, rows are made when they are asked for."""
LEVELS = 5
"""Levels of the tree by which users are ordered before they are cut into blocks."""


@dataclass(frozen=True, eq=False)
class Interests(Ragged):
    """What users searched for: those of user u are item[start[u]:start[u + 1]], with their weight.

    Items are categories of a tree or, without one, the queries themselves.
    """

    item: Ints
    weight: Longs
    items: int
    """How many items there are."""
    tree: Tree | None

    def take(self, users: Longs) -> "Interests":
        """Those of some users."""
        place = self.positions(users)
        return Interests(offsets(self.sizes[users]), self.item[place], self.weight[place], self.items, self.tree)

    def order(self) -> Longs:
        """The users, those who have most of the same next to each other."""
        if self.tree is None:
            return by_main_interests(
                Profiles(self.start, self.item, self.weight.astype(np.int32), np.ones(self.items, np.int32))
            )
        found = groups.profiles(
            self.start, self.item, self.weight.astype(np.int32), self.tree.parent, self.tree.depth, LEVELS
        )
        return by_main_interests(Profiles(*found, self.tree.depth))

    @property
    def total(self) -> Longs:
        """The weight of all items of each user."""
        return self.sums(self.weight)


def distances(interests: Interests) -> Distances:
    """The distances of users, in units of 2**-32."""
    total, tree = interests.total, interests.tree
    start, item, weight = interests.start, interests.item, interests.weight
    n, everyone = len(total), np.ones(len(total), np.bool_)

    def joined(similar: Longs, a: slice, b: slice) -> Longs:
        return np.asarray(semantic.ONE - similar // (total[a, None] + total[None, b]))

    def row_of(both: Callable[[int], Longs]) -> Callable[[int], Longs]:
        return lambda v: np.asarray(semantic.ONE - both(v) // (total + total[v]))

    if tree is None:
        # Of all items that there are, these users have few.
        names, which = np.unique(item, return_inverse=True)
        mine, have = which.astype(np.int32), weight.astype(np.int32)
        users = postings(start, mine, have, len(names), everyone)
        return Distances(n, row_of(lambda v: semantic.common(v, start, mine, weight, users)))
    # Of a large tree, few nodes are at or above an item of anybody.
    above, place, high = semantic.highest(start, item, tree.parent, tree.depth)
    nodes = np.unique(np.append(place, 0))
    parent, depth = np.searchsorted(nodes, tree.parent[nodes]).astype(np.int32), tree.depth[nodes]
    over = above, np.searchsorted(nodes, place).astype(np.int32), high
    at, share = np.searchsorted(nodes, item).astype(np.int32), semantic.shares(tree.height)
    users = postings(*over, len(nodes), everyone)

    def there(v: int) -> Longs:
        scratch = np.empty(len(nodes), np.int64)
        return semantic.one_way(v, start, at, weight, parent, depth, share, over, scratch)

    def back(v: int) -> Longs:
        return semantic.other_way(v, start, at, weight, parent, depth, share, users)

    return Distances(n, row_of(lambda v: there(v) + back(v)), (there, joined))


def group_users(rows_of: Rows, order: Longs, parts: int, k: int, threads: int | None = None) -> Ints:
    """Groups of k to 2k - 1 users by MDAV.

    Args:
        rows_of: The distances.
        order: The users, similar ones next to each other.
        parts: In how many blocks they are grouped.
        k: Least users of a group.
        threads: How many threads.
    """
    # Inside a block, ties are settled as they are without blocks.
    blocks = [np.sort(part) for part in np.array_split(order, parts)]
    largest = len(blocks[0])
    if largest <= MATRIX:
        reserve(min(parts, threads or os.cpu_count() or 1) * largest**2 * 8, "The distances between users")
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        # A process of Spark's has one core, and is forked, so that threads are not for it.
        along: Spread = map if threads == 1 else pool.map
        # Rows of one block run side by side, or whole blocks: tasks that wait for tasks would wait for ever.
        spread = along if parts == 1 else map

        def grouped(users: Longs) -> Ints:
            far = rows_of(users)
            if far.n > MATRIX:
                sums = np.fromiter(spread(lambda v: far.row(v).sum(), range(far.n)), np.int64, far.n)
                return partition(far.n, k, far.row, sums, spread)
            matrix = far.matrix(spread)
            return partition(far.n, k, matrix.__getitem__, matrix.sum(axis=1))

        found = list((map if parts == 1 else along)(grouped, blocks))
    return numbered(blocks, found)


def partition(n: int, k: int, row: Callable[[int], Longs], sums: Longs, spread: Spread = map) -> NDArray[np.int32]:
    """Groups of k members, the last of k to 2k - 1 (algorithm 1 of Batet et al. 2013).

    Of members that are equally far or near, the earlier is taken.

    Args:
        n: How many members there are.
        k: Least members of a group.
        row: Gives the distances of one member to all, as whole numbers.
        sums: The sum of each member's row.
        spread: Runs what can run side by side.

    Returns:
        The group of each member, in the order in which groups are made.
    """
    group = np.full(n, -1, np.int32)
    alive = np.ones(n, np.bool_)
    left = sums.copy()
    groups = 0

    def farthest(distance: Longs) -> int:
        return int(np.argmax(np.where(alive, distance, -1)))

    def take(seed: int) -> Longs:
        """Make a group of a member and its nearest; gives the distances of the member."""
        nonlocal groups
        distance = row(seed)
        near = np.where(alive, distance, np.iinfo(np.int64).max)
        near[seed] = -1
        members = np.argsort(near, kind="stable")[:k]
        group[members] = groups
        alive[members] = False
        groups += 1
        left[:] -= distance
        for gone in spread(row, members[1:].tolist()):
            left[:] -= gone
        return distance

    def centroid() -> int:
        return int(np.argmin(np.where(alive, left, np.iinfo(np.int64).max)))

    while alive.sum() >= 3 * k:
        distance = take(farthest(row(centroid())))
        take(farthest(distance))
    if alive.sum() >= 2 * k:
        take(farthest(row(centroid())))
    group[alive] = groups
    return group


def interests_of(searches: Searches, links: Links) -> Interests:
    """The categories of every user, with how often they searched for each; the root is none."""
    start, node = links.nodes()
    of_query = Ragged(start)
    size, mine = of_query.sizes[searches.query], node[of_query.positions(searches.query)]
    key = np.repeat(searches.owners, size) << 32 | mine
    times = np.repeat(searches.times, size)[mine > 0]
    pairs, place = np.unique(key[mine > 0], return_inverse=True)
    weight = np.bincount(place, weights=times).astype(np.int64)
    first = np.searchsorted(pairs >> 32, np.arange(len(searches.start)))
    return Interests(first, (pairs & 0xFFFFFFFF).astype(np.int32), weight, len(links.tree), links.tree)


def strings_of(searches: Searches, queries: int) -> Interests:
    """The queries of every user, as they are."""
    order = np.lexsort((searches.query, searches.owners))
    return Interests(searches.start, searches.query[order], searches.times[order], queries, None)


def queries_of(links: Links, searches: Searches) -> tuple[Longs, Ints]:
    """The queries of every category that users issued: those of node c are query[start[c]:start[c + 1]]."""
    start, node = links.nodes()
    issued = np.zeros(len(start) - 1, np.bool_)
    issued[searches.query] = True  # links of the whole log know more queries than a part of it has
    owners = Ragged(start).owners
    pairs = np.unique((node.astype(np.int64) << 32 | owners)[issued[owners]])
    first = np.searchsorted(pairs >> 32, np.arange(len(links.tree) + 1))
    return first, (pairs & 0xFFFFFFFF).astype(np.int32)


def representatives(interests: Interests, group: Ints, draw: NDArray[np.uint64] | None = None) -> tuple[Ints, Ints]:
    """The items of the record of every group: their group, and the item.

    The centre of a group is the item nearest to all others. Each user gives a share of items, those nearest to the
    centre first, with their repetitions; of equals, the earlier. Without a tree, each user gives the items that the
    group repeats most, then those that the user does; of equals, the one with the smallest number.

    Args:
        interests: What users searched for.
        group: The group of each user.
        draw: A random number for each item, if there is no tree; by default equals are in their order.
    """
    user = interests.owners
    pairs, place = np.unique(group[user].astype(np.int64) << 32 | interests.item, return_inverse=True)
    weight = np.bincount(place, weights=interests.weight).astype(np.int64)
    start = np.searchsorted(pairs >> 32, np.arange(int(group.max()) + 2))
    item = (pairs & 0xFFFFFFFF).astype(np.int32)
    tree = interests.tree
    if tree is None:
        settled = interests.item if draw is None else draw[interests.item]
        order = np.lexsort((settled, -interests.weight, -weight[place], user))
    else:
        share = semantic.shares(tree.height)
        centre = semantic.centres(start, item, weight, tree.parent, tree.depth, share)
        near = semantic.nearness(interests.item, centre[group[user]], tree.parent, tree.depth, share)
        order = np.lexsort((interests.item, -near, user))
    member = np.argsort(group, kind="stable").astype(np.int32)
    quota = quotas.quotas(interests.total, np.searchsorted(group[member], np.arange(int(group.max()) + 2)), member)
    taken = semantic.take_nearest(interests.start, order, interests.weight, quota)
    return np.repeat(group[user], taken), np.repeat(interests.item, taken)


def random_keys(of: Ints, item: Ints, name: NDArray[np.uint64], key: bytes) -> NDArray[np.uint64]:
    """A random number for every item of a record, another one for each time that it stands there.

    Args:
        of: Records.
        item: Items.
        name: A number for each record, from the content of the log: ids differ between engines.
        key: What the numbers follow from, together with name and item.
    """
    order = np.lexsort((item, of))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(of[order]) != 0) | (np.diff(item[order]) != 0)
    first = np.flatnonzero(fresh)
    turn = np.empty(len(order), np.int64)  # the first, second, ... of the same item in a record
    turn[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    mixed = keyed(key, keyed(key, name)[of] + item.astype(np.uint64))
    return keyed(key, mixed + turn.astype(np.uint64))


def replaced(of: Ints, item: Ints, pool: tuple[Longs, Ints], name: NDArray[np.uint64], key: bytes) -> Ints:
    """A query for every item of a record, drawn from all that the item has."""
    start, query = pool
    size = (start[item + 1] - start[item]).astype(np.uint64)
    return query[start[item] + (random_keys(of, item, name, key) % size).astype(np.int64)]


def own_counts(searches: Searches, group: Ints, of: NDArray[np.integer[Any]], query: Ints) -> tuple[Longs, Longs]:
    """How many queries of the record of every group its own users issued, and how many it has.

    Args:
        searches: Who issued what.
        group: The group of each user; -1 for one who has none.
        of: The group of every query of a record.
        query: The query.
    """
    typed = np.unique(group[searches.owners].astype(np.int64) << 32 | searches.query)
    own = np.isin(of.astype(np.int64) << 32 | query, typed)
    return np.bincount(of, weights=own).astype(np.int64), np.bincount(of)


def own_share(own: Longs, size: Longs) -> str:
    """What share of records came from their own users, in a sentence.

    Args:
        own: How many queries of each record users of its group issued.
        size: How many queries it has.
    """
    share = own / size
    bands = "; ".join(
        f"{name} in {int(((share >= least) & (share < below)).sum()):,}"
        for name, least, below in (("under 10 %", 0, 0.1), ("10 to 50 %", 0.1, 0.5), ("50 % and more", 0.5, 2))
    )
    return (
        f"{percent(own.sum() / size.sum())} of the queries in records were issued by users of the group, the others by"
        f" other users; by record: {bands}."
    )
