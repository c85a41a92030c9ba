"""Microaggregation of users: what the methods share that give all users of a group one record.

A user's profile counts the categories of their queries on every level of the tree. Groups are made of users with
similar profiles, greedily and exactly; in a log of more than `EXACT` users, inside blocks of users with similar main
interests. Each user gives a share of their queries to the record of their group, and every member is published with
that record.
"""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from queryveil.arrays import Ragged, offsets
from queryveil.claims import AllUsers, Claim, IssuedQueries, RecordQueries, RecordUsers
from queryveil.engines import Workspace
from queryveil.kernels import groups as kernel
from queryveil.kernels.digest import digests
from queryveil.kernels.types import Bools
from queryveil.knowledge import Links, open_taxonomy, taxonomy_name
from queryveil.log import LocalLog, QueryLog
from queryveil.log.draws import keyed
from queryveil.methods.base import Method, Reason, check_k
from queryveil.methods.microaggregation import record_tables
from queryveil.methods.microaggregation.record_tables import Records
from queryveil.release import Release
from queryveil.release.making import of_events
from queryveil.text.arrays import byte_spans

EXACT = 40_000
BLOCK = 20_000
Grouping = Literal["auto", "exact", "blocks"]

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Searches(Ragged):
    """Who issued what: the queries of user u are those from start[u] to start[u + 1], the most repeated first."""

    query: NDArray[np.int32]
    times: Longs

    @classmethod
    def of(cls, log: LocalLog) -> "Searches":
        """The searches of a log."""
        log.ensure_tables("query_users")
        found = log.engine.fetch(
            "SELECT user_id, query_id, events FROM query_users ORDER BY user_id, events DESC, query_id"
        )
        start = np.searchsorted(found["user_id"].to_numpy(), np.arange(log.n_users + 1))
        return cls(start, found["query_id"].to_numpy(), found["events"].to_numpy())

    def take(self, users: Longs) -> "Searches":
        """Those of some users."""
        place = self.positions(users)
        return Searches(offsets(self.sizes[users]), self.query[place], self.times[place])

    @property
    def events(self) -> Longs:
        """How many events each user has."""
        return self.sums(self.times)


@dataclass(frozen=True, eq=False)
class Profiles(Ragged):
    """How often each user searched for each category, all levels together: M_1 to M_L in the paper.

    Those of user u are feature[start[u]:start[u + 1]], with their count. A feature is a node of the tree, and every
    node is on one level, so the levels need not be kept apart.
    """

    feature: NDArray[np.int32]
    count: NDArray[np.int32]
    depth: NDArray[np.int32]
    """The level of every feature there is."""

    @classmethod
    def of(cls, searches: Searches, links: Links, levels: int) -> "Profiles":
        """The profiles of the users of a log."""
        start, node = links.nodes()
        of_query = Ragged(start)
        size, mine = of_query.sizes[searches.query], node[of_query.positions(searches.query)]
        times = np.repeat(searches.times, size).astype(np.int32)
        tree = links.tree
        found = kernel.profiles(offsets(size)[searches.start], mine, times, tree.parent, tree.depth, levels)
        return cls(*found, tree.depth)

    def take(self, users: Longs) -> "Profiles":
        """The profiles of some users."""
        place = self.positions(users)
        return Profiles(offsets(self.sizes[users]), self.feature[place], self.count[place], self.depth)

    @property
    def linked(self) -> NDArray[np.bool_]:
        """Whether a user has any category at all."""
        return self.sizes > 0


def parts_of(users: int, k: int, grouping: Grouping, exact: int | None = None, block: int | None = None) -> int:
    """In how many blocks users are grouped.

    Args:
        users: How many users there are.
        k: Least users of a group.
        grouping: `exact`, in `blocks`, or by the number of users.
        exact: Most users that are grouped exactly by default; `EXACT` if not given.
        block: Users of a block; `BLOCK` if not given.
    """
    if grouping == "exact" or (grouping == "auto" and users <= (EXACT if exact is None else exact)):
        return 1
    return max(1, round(users / max(BLOCK if block is None else block, 4 * k)))


def group_users(
    profiles: Profiles, k: int, linkage: int, grouping: Grouping, threads: int | None = None
) -> tuple[NDArray[np.int32], int]:
    """Groups of k to 2k - 1 users with similar profiles.

    Users without a category are similar to nobody. They come last in the order that settles ties, so that they are
    grouped with each other when nobody else is left.

    Args:
        profiles: The profiles of all users.
        k: Least users of a group.
        linkage: How a group draws the next user.
        grouping: `exact`, in `blocks`, or by the number of users.
        threads: How many threads.

    Returns:
        The group of each user, and the number of blocks.
    """
    n = len(profiles)
    ids = np.arange(n)
    parts = parts_of(n, k, grouping)
    order = np.lexsort((ids, ~profiles.linked))
    if parts > 1:
        order = by_main_interests(profiles)
    # Inside a block, ties are settled as they are without blocks.
    blocks = [part[np.lexsort((part, ~profiles.linked[part]))] for part in np.array_split(order, parts)]

    def grouped(users: Longs) -> NDArray[np.int32]:
        some = profiles.take(users)
        return kernel.group_users(some.start, some.feature, some.count, len(some.depth), k, linkage)

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        found = list(pool.map(grouped, blocks))
    return numbered(blocks, found), parts


def numbered(blocks: Sequence[Longs], found: Sequence[Ints]) -> Ints:
    """The group of each user, numbered over all blocks, from the users of each block and their groups in it."""
    group = np.empty(sum(map(len, blocks)), np.int32)
    first = 0
    for users, mine in zip(blocks, found, strict=True):
        group[users] = mine + first
        first += int(mine.max()) + 1
    return group


def by_main_interests(profiles: Profiles) -> Longs:
    """Users in the order of what they have most of, level by level; of equals, who has more of everything first."""
    keys: list[NDArray[Any]] = [np.arange(len(profiles)), -profiles.sums(profiles.count), *_main_interests(profiles)]
    return np.lexsort(keys)


def _main_interests(profiles: Profiles) -> list[NDArray[np.int32]]:
    """For every level, the deepest first, the category that each user has most of, of equals the first in the tree.

    A user without a category there has one past all of them.
    """
    user, level = profiles.owners, profiles.depth[profiles.feature]
    found = []
    for depth in range(int(level.max(initial=0)), 0, -1):
        here = np.flatnonzero(level == depth)
        order = here[np.lexsort((profiles.feature[here], -profiles.count[here], user[here]))]
        first = order[np.diff(user[order], prepend=-1) > 0]
        main = np.full(len(profiles), len(profiles.depth), np.int32)
        main[user[first]] = profiles.feature[first]
        found.append(main)
    return found


class Microaggregation(Method):
    """Give users with similar interests one record, made of the queries of all of them."""

    makes = "records"
    linkage: ClassVar[int]
    """How a group draws the next user, see `kernels.groups`."""
    by_repetition: ClassVar[bool]
    """Whether users give the queries that they repeat most, or any."""

    k: int = Field(5, ge=2, description="least users who share a record")
    levels: int = Field(5, ge=1, le=20, description="levels of the tree that are compared")
    compact: bool = Field(False, description="write each record once, with the number of its users")
    grouping: Grouping = Field("auto", description="compare all users, or only inside blocks; auto by their number")

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """With the same seed, which decides whose queries a record has."""
        return "seed"

    def parameters(self) -> dict[str, Any]:
        """The parameters as the manifest holds them: of files only the names, because a path may reveal a person."""
        given = super().parameters()
        if given.get("taxonomy") is not None:
            given["taxonomy"] = taxonomy_name(given["taxonomy"])
        return given

    def release(self, log: LocalLog, links: Links, *, seed: int) -> Release:
        """Group the users of a log and release the record of each group.

        Args:
            log: The log.
            links: Where its queries sit in a tree of topics.
            seed: Random seed.
        """
        check_k(self, log.n_users)
        searches = Searches.of(log)
        profiles = Profiles.of(searches, links, self.levels)
        group, parts = group_users(profiles, self.k, self.linkage, self.grouping, log.engine.threads)
        size = np.bincount(group)
        notes = _notes(len(size), int(size.min()), int(size.max()), parts, int((~profiles.linked).sum()))
        return self.release_groups(log, searches, group, parts=parts, seed=seed, notes=notes)

    def release_groups(
        self, log: LocalLog, searches: Searches, group: Ints, *, parts: int, seed: int, notes: list[str]
    ) -> Release:
        """Release the record of each group, however the groups were made, and in however many parts."""
        draw = _draws(log, searches, draw_keys(log, self, seed, parts))
        quota, taken = record_tables.contributions(
            searches.start, searches.times, draw, group, by_repetition=self.by_repetition
        )
        notes = [*notes, *_silence(int((quota == 0).sum()))]
        of, query = np.repeat(group[searches.owners], taken), np.repeat(searches.query, taken)
        with log.workspace() as work:
            records = load_records(work, group, of, query, compact=self.compact)
            return release_records(self, log, records, promises(self.k, self.compact), seed=seed, notes=notes)

    def release_by_tables(self, log: QueryLog, taxonomy: str, linker: str, categories: int, *, seed: int) -> Release:
        """The same release by tables, for a log that is not in the memory of this machine."""
        check_k(self, log.n_users)
        parts = parts_of(log.n_users, self.k, self.grouping)
        tree = open_taxonomy(taxonomy).tree
        with log.workspace() as work:
            # All but the records is let go of before these are released.
            with log.workspace() as steps:
                counted = record_tables.count_interests(
                    log, steps, taxonomy, linker, categories=categories, levels=self.levels
                )
                blocks = record_tables.cut_blocks(
                    log,
                    steps,
                    counted.profiles,
                    "SELECT user_id FROM users",
                    count=log.n_users,
                    nodes=len(tree),
                    levels=min(self.levels, tree.height),
                    parts=parts,
                )
                made = record_tables.make_records(
                    log,
                    steps,
                    counted.profiles,
                    blocks,
                    draw_keys(log, self, seed, parts),
                    k=self.k,
                    linkage=self.linkage,
                    by_repetition=self.by_repetition,
                )
                records, found = record_tables.load_records(log, work, made, compact=self.compact)
                unlinked = record_tables.count_unlinked(steps, counted.profiles)
            notes = _notes(found.groups, found.least, found.most, parts, unlinked) + _silence(found.silent)
            return release_records(self, log, records, promises(self.k, self.compact), seed=seed, notes=notes)

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """Who could have brought the query in; which queries a group publishes is random."""
        users = int(log.users_per_query[query_id])
        found = f"{plural(users, 'user')} issued it; which queries a user contributes is random"
        return [Reason("a user contributed the query to the record of their group", None, found)]


def draw_keys(log: QueryLog, method: Method, seed: int, parts: int) -> tuple[bytes, bytes]:
    """What the draws of users and of queries are keyed by: all that decides groups, and not how they are written."""
    decides = {name: value for name, value in method.parameters().items() if name not in ("compact", "grouping")}
    name = f"{method.name} {json.dumps(decides | {'parts': parts}, sort_keys=True)}"
    return log.secret(seed, name, "user"), log.secret(seed, name, "query")


def _draws(log: LocalLog, searches: Searches, keys: tuple[bytes, bytes]) -> NDArray[np.uint64]:
    """A random number for every query of every user, which follows from their texts."""
    digest = log.engine.fetch("SELECT digest FROM users ORDER BY user_id")["digest"].to_numpy()
    query = keyed(keys[1], digests(*byte_spans(log.query_text))[0])
    return keyed(keys[0], digest)[searches.owners] + query[searches.query]


def load_records(work: Workspace, group: Ints, of: Ints, query: Ints, *, compact: bool) -> Records:
    """Write the records of groups.

    Args:
        work: Where the tables go.
        group: The group of each user; -1 for one who is left out.
        of: The group of every query of a record.
        query: The query.
        compact: Whether a record is written once, with the number of its users.
    """
    order = np.argsort(of, kind="stable")
    record = np.searchsorted(of[order], np.arange(int(group.max()) + 2))
    there = np.flatnonzero(group >= 0)
    holder = there[np.unique(group[there], return_index=True)[1]]
    users = holder if compact else there
    of_group = Ragged(record)
    length = of_group.sizes[group[users]]
    rows = {
        "event_id": np.arange(length.sum(), dtype=np.int32),
        "user_id": np.repeat(users, length).astype(np.int32),
        "query_id": query[order][of_group.positions(group[users])],
    }
    if compact:
        rows["users"] = np.repeat(np.bincount(group[there])[group[users]], length)
    members = {"user_id": there.astype(np.int32), "holder": holder[group[there]].astype(np.int32)}
    return Records(work.read(pa.table(rows), "records"), work.read(pa.table(members), "record members"))


def promises(k: int, compact: bool) -> tuple[Claim, ...]:
    """What a release of records promises whose queries are those of their users."""
    return (
        IssuedQueries(),
        RecordUsers(users=k, compact=compact),
        RecordQueries(users=k, compact=compact),
        AllUsers(compact=compact),
    )


def release_records(
    method: Method, log: QueryLog, records: Records, claims: tuple[Claim, ...], *, seed: int, notes: list[str]
) -> Release:
    """Release the record of every group under each of its members, or once with their number.

    Args:
        method: The method; `compact` is one of its parameters.
        log: The log.
        records: The records.
        claims: What the release promises.
        seed: Random seed.
        notes: Sentences for the report.
    """
    carried = ("users",) if method.parameters()["compact"] else ()
    return of_events(
        log,
        f"SELECT {', '.join(('event_id', 'user_id', 'query_id', *carried))} FROM {records.rows}",
        None,
        carried=carried,
        holders=f"SELECT user_id, holder FROM {records.members}" if carried else None,
        **method.describe(claims, seed, notes),
    )


def _notes(count: int, least: int, most: int, parts: int, unlinked: int) -> list[str]:
    """What a reader of the report should know of the groups."""
    notes = [groups_made(count, least, most, parts, "their main interests")]
    if unlinked:
        notes.append(f"{plural(unlinked, 'user')} without a query that has a category came last, into the last groups.")
    return notes


def groups_made(count: int, least: int, most: int, parts: int, order: str) -> str:
    """How many groups there are, of how many users, and who was compared."""
    how = "comparing all users" if parts == 1 else f"in {parts:,} blocks of users in the order of {order}"
    size = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{plural(count, 'group')} of {size} users, made {how}."


def plural(n: int, noun: str) -> str:
    """A number of things."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def _silence(silent: int) -> list[str]:
    if silent == 0:
        return []
    return [f"{plural(silent, 'user')} contributed no query to a record, because it has fewer queries than users."]
