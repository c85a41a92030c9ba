"""Semantic MDAV: microaggregation of users by the meaning of their queries.

Montserrat Batet, Arnau Erola, David Sánchez, Jordi Castellà-Roca, Utility preserving query log anonymization via
semantic microaggregation, Information Sciences 242 (2013).
"""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from queryveil.claims import IssuedQueries, RecordUsers
from queryveil.draws import keyed
from queryveil.errors import QueryveilError
from queryveil.kernels import quotas, semantic
from queryveil.kernels.postings import postings
from queryveil.knowledge import Links, link
from queryveil.knowledge.index import offsets, ranges
from queryveil.knowledge.taxonomy import Taxonomy
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods.base import Method, Reason
from queryveil.methods.microaggregation import Searches, load_records, release_records
from queryveil.release import Release

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

MATRIX = 8_000
"""Users whose distances are all kept; of more users, rows are made when they are asked for."""


@dataclass(frozen=True, eq=False)
class Interests:
    """What users searched for: those of user u are item[start[u]:start[u + 1]], with their weight.

    Items are categories of a tree or, without one, the queries themselves.
    """

    start: Longs
    item: Ints
    weight: Longs
    items: int
    """How many items there are."""
    tree: Taxonomy | None

    def take(self, users: Longs) -> "Interests":
        """Those of some users."""
        size = np.diff(self.start)[users]
        place = ranges(self.start[users], size)
        return Interests(offsets(size), self.item[place], self.weight[place], self.items, self.tree)

    @property
    def total(self) -> Longs:
        """The weight of all items of each user."""
        return np.add.reduceat(self.weight, self.start[:-1])


def distances(interests: Interests) -> Callable[[int], Longs]:
    """A function that gives the distances of one user to all, as whole numbers of 2**-32."""
    total, tree = interests.total, interests.tree
    start, item, weight = interests.start, interests.item, interests.weight
    everyone = np.ones(len(total), np.bool_)
    if tree is None:
        users = postings(start, item, weight.astype(np.int32), interests.items, everyone)

        def similarity(v: int) -> Longs:
            return semantic.common(v, start, item, weight, users)

    else:
        mine = semantic.highest(start, item, tree.parent, tree.depth)
        above = postings(*mine, len(tree), everyone)
        share, distinct = semantic.shares(tree.height), np.unique(item)

        def similarity(v: int) -> Longs:
            scratch = np.empty(len(tree), np.int64)
            return semantic.similarities(
                v, start, item, weight, tree.parent, tree.depth, share, distinct, mine, above, scratch
            )

    def row(v: int) -> Longs:
        found: Longs = semantic.ONE - similarity(v) // (total + total[v])
        return found

    return row


def group_users(interests: Interests, k: int, threads: int | None = None) -> Ints:
    """Groups of k to 2k - 1 users by MDAV."""
    n = len(interests.start) - 1
    row = distances(interests)
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        if n <= MATRIX:
            matrix = np.array(list(pool.map(row, range(n))))
            return partition(n, k, lambda v: matrix[v], matrix.sum(axis=1))
        sums = np.fromiter(pool.map(lambda v: row(v).sum(), range(n)), np.int64, n)
    return partition(n, k, row, sums)


def partition(n: int, k: int, row: Callable[[int], Longs], sums: Longs) -> NDArray[np.int32]:
    """Groups of k members, the last of k to 2k - 1 (algorithm 1 of Batet et al. 2013).

    Of members that are equally far or near, the earlier is taken.

    Args:
        n: How many members there are.
        k: Least members of a group.
        row: Gives the distances of one member to all, as whole numbers.
        sums: The sum of each member's row.

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
        for member in members.tolist():
            left[:] -= row(member)
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


class Mdav(Method):
    """Give users whose queries mean alike one record of queries that stand for all of them (Batet et al. 2013).

    Every noun phrase of a query becomes a category. Users are grouped by MDAV under a distance that knows how much two
    categories have in common. The record of a group holds, of each user, the categories nearest to the centre of the
    group; each is replaced by a query that anybody in the log issued for that category. Clicks, times and extra columns
    are dropped, and so are users without a category.
    """

    name: ClassVar[str] = "mdav"
    limits: ClassVar[tuple[str, ...]] = (
        "k-anonymity of users is not differential privacy: it says nothing about what an attacker can learn who knows"
        " part of the log.",
        "Every query of a record was typed by somebody, and is published as it is, also if it names somebody.",
        "The queries of a record may be those of users outside of the group, so counts of queries are not true counts.",
        "Accounts controlled by one person count as several users.",
    )

    k: int = Field(5, ge=2, description="least users who share a record")
    distance: Literal["semantic", "strings"] = Field(
        "semantic", description="compare users by what their queries mean, or by the queries as they are"
    )
    knowledge: str = Field("wordnet", description="where queries are looked up: wordnet, or a directory that was built")
    linker: Literal["phrases", "terms", "embedding"] = Field(
        "phrases", description="what is looked up for a query; phrases in the paper"
    )
    compact: bool = Field(False, description="write each record once, with the number of its users")

    def parameters(self) -> dict[str, Any]:
        """The parameters as the manifest holds them, without the folder of the knowledge base."""
        return super().parameters() | {"knowledge": Path(self.knowledge).name}

    def anonymize(self, log: QueryLog, *, seed: int = 0) -> Release:
        """Group users by MDAV and release a record for each group."""
        here = local(log, "mdav")
        searches = Searches.of(here)
        if self.distance == "strings":
            interests = Interests(searches.start, searches.query, searches.times, here.n_queries, None)
            pool = offsets(np.ones(here.n_queries, np.int64)), np.arange(here.n_queries, dtype=np.int32)
        else:
            links = link(here, self.knowledge, self.linker)
            interests = interests_of(searches, links)
            pool = queries_of(links)
        users = np.flatnonzero(np.diff(interests.start))
        if len(users) < self.k:
            raise QueryveilError(
                f"The 'k' parameter of Mdav is {self.k}, but only {len(users)} users have a query with a category,"
                " so no group has enough."
            )
        some = interests.take(users)
        group = group_users(some, self.k, here.engine.threads)
        of, item = representatives(some, group)
        name = json.dumps({key: value for key, value in self.parameters().items() if key != "compact"}, sort_keys=True)
        query = _replaced(of, item, pool, here.secret(seed, f"mdav {name}", "query"))
        everyone = np.full(here.n_users, -1, np.int32)
        everyone[users] = group
        size = np.bincount(group)
        typed = np.unique(everyone[searches.user].astype(np.int64) << 32 | searches.query)
        own = np.isin(of.astype(np.int64) << 32 | query, typed)
        notes = [
            f"{len(size):,} groups of {size.min():,} to {size.max():,} users.",
            f"{own.mean():.1%} of the queries in records were issued by users of the group, the others by other users.",
        ]
        if len(users) < here.n_users:
            notes.append(f"{here.n_users - len(users):,} users without a category are left out.")
        load_records(here, everyone, of, query, compact=self.compact)
        claims = (IssuedQueries(), RecordUsers(users=self.k, compact=self.compact))
        return release_records(self, here, claims, seed=seed, notes=notes)

    def explain(self, log: LocalLog, query_id: int) -> list[Reason]:
        """Who could have brought the query in; which query stands for a category is drawn by lot."""
        users = int(log.users_per_query[query_id])
        found = f"{users:,} issued it; which query stands for a category is drawn by lot"
        return [Reason("the query stands for a category of some record", None, found)]


def interests_of(searches: Searches, links: Links) -> Interests:
    """The categories of every user, with how often he searched for each; the root is none."""
    start, node = links.nodes()
    size = np.diff(start)[searches.query]
    mine = node[ranges(start[searches.query], size)]
    key = np.repeat(searches.user, size) << 32 | mine
    times = np.repeat(searches.times, size)[mine > 0]
    pairs, place = np.unique(key[mine > 0], return_inverse=True)
    weight = np.bincount(place, weights=times).astype(np.int64)
    first = np.searchsorted(pairs >> 32, np.arange(len(searches.start)))
    return Interests(first, (pairs & 0xFFFFFFFF).astype(np.int32), weight, len(links.taxonomy), links.taxonomy)


def queries_of(links: Links) -> tuple[Longs, Ints]:
    """The queries of every category: those of node c are query[start[c]:start[c + 1]]."""
    start, node = links.nodes()
    pairs = np.unique(node.astype(np.int64) << 32 | np.repeat(np.arange(len(links)), np.diff(start)))
    first = np.searchsorted(pairs >> 32, np.arange(len(links.taxonomy) + 1))
    return first, (pairs & 0xFFFFFFFF).astype(np.int32)


def representatives(interests: Interests, group: Ints) -> tuple[Ints, Ints]:
    """The items of the record of every group: their group, and the item.

    The centre of a group is the item nearest to all others. Each user gives his share of items, those nearest to the
    centre first, with their repetitions; of equals, the earlier.
    """
    user = np.repeat(np.arange(len(group)), np.diff(interests.start))
    pairs, place = np.unique(group[user].astype(np.int64) << 32 | interests.item, return_inverse=True)
    weight = np.bincount(place, weights=interests.weight).astype(np.int64)
    start = np.searchsorted(pairs >> 32, np.arange(int(group.max()) + 2))
    item = (pairs & 0xFFFFFFFF).astype(np.int32)
    tree = interests.tree
    if tree is None:
        best = np.lexsort((item, -weight, pairs >> 32))
        centre = item[best[start[:-1]]]
        near = (interests.item == centre[group[user]]).astype(np.int64)
    else:
        share = semantic.shares(tree.height)
        centre = semantic.centres(start, item, weight, tree.parent, tree.depth, share)
        near = semantic.nearness(interests.item, centre[group[user]], tree.parent, tree.depth, share)
    order = np.lexsort((interests.item, -near, user))
    member = np.argsort(group, kind="stable").astype(np.int32)
    quota = quotas.quotas(interests.total, np.searchsorted(group[member], np.arange(int(group.max()) + 2)), member)
    taken = semantic.take_nearest(interests.start, order, interests.weight, quota)
    return np.repeat(group[user], taken), np.repeat(interests.item, taken)


def _replaced(of: Ints, item: Ints, pool: tuple[Longs, Ints], key: bytes) -> Ints:
    """A query for every item of a record, drawn from all that the item has."""
    order = np.lexsort((item, of))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(of[order]) != 0) | (np.diff(item[order]) != 0)
    first = np.flatnonzero(fresh)
    turn = np.empty(len(order), np.int64)  # the first, second, ... of the same item in a record
    turn[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    start, query = pool
    mixed = keyed(key, (of.astype(np.uint64) << np.uint64(32)) | item.astype(np.uint64))
    draw = keyed(key, mixed + turn.astype(np.uint64))
    size = (start[item + 1] - start[item]).astype(np.uint64)
    return query[start[item] + (draw % size).astype(np.int64)]
