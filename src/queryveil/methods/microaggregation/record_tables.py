"""Microaggregation with tables, for logs that are too large for one machine: the same result as in memory.

SQL counts profiles. Users are numbered in the order of their main interests and cut into blocks; the compiled loops run
on one block each, on any worker.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets
from queryveil.engines import Table, Workspace
from queryveil.kernels import groups, quotas
from queryveil.kernels.digest import digests
from queryveil.knowledge import asks_clicks, categorize_texts, open_taxonomy
from queryveil.knowledge.hosts import hosts_of, topical
from queryveil.log import QueryLog
from queryveil.log.draws import keyed
from queryveil.text import Language
from queryveil.text.arrays import byte_spans

_LINKS = pa.schema([("query_id", pa.int64()), ("node", pa.int32())])
_HOSTS = pa.schema([("url_id", pa.int64()), ("host", pa.string())])
_COUNTS = pa.schema([("user_id", pa.int64()), ("node", pa.int32()), ("level", pa.int32()), ("n", pa.int64())])
_DRAWS = pa.schema([("id", pa.int64()), ("draw", pa.int64())])
_BLOCKS = pa.schema([("user_id", pa.int64()), ("block", pa.int64())])
MADE = pa.schema([(name, pa.int64()) for name in ("block", "member", "user_id", "query_id", "n")])
"""Groups, and what their users contribute to records; see `make_records`."""
_COPIES = pa.schema([(name, pa.int64()) for name in ("user_id", "query_id", "users", "copy")])

opened = cache(open_taxonomy)
"""A worker opens a taxonomy once."""


class Counted(NamedTuple):
    """What users are interested in, as tables."""

    links: Table | None
    """query_id and node, a row for every node of every item of a query; None if the nodes are queries."""
    interests: Table
    """user_id, node and n: how often each user searched for each node."""
    profiles: Table
    """user_id, node, level and n: the same on every level."""


def count_interests(
    log: QueryLog, work: Workspace, taxonomy: str, linker: str, *, categories: int, levels: int
) -> Counted:
    """Count how often each user searched for each node of a tree.

    Args:
        log: The log.
        work: Where the tables go.
        taxonomy: The tree.
        linker: What is looked up for a query.
        categories: Most nodes of an item of a query.
        levels: How many levels of the tree count.
    """
    log.ensure_tables("query_users")
    links = _link_queries(log, work, taxonomy, linker, categories)
    interests = work.table(
        "SELECT s.user_id AS user_id, l.node AS node, CAST(sum(s.events) AS BIGINT) AS n FROM query_users s"
        f" JOIN {links} l ON l.query_id = s.query_id GROUP BY s.user_id, l.node",
        "interests",
    )
    with log.workspace() as steps:
        above = steps.map(
            f"SELECT user_id, node, n FROM {interests}", _Above(taxonomy, levels), _COUNTS, "all interests"
        )
        profiles = work.table(
            f"SELECT user_id, node, level, CAST(sum(n) AS BIGINT) AS n FROM {above} GROUP BY user_id, node, level",
            "profiles",
        )
    return Counted(links, interests, profiles)


def _link_queries(log: QueryLog, work: Workspace, taxonomy: str, linker: str, categories: int) -> Table:
    """The table of query_id and node, a row for every node of every item of a query."""
    with log.workspace() as steps:
        texts = "SELECT query_id, query AS text FROM queries"
        if linker == "domains":
            texts = f"SELECT query_id, host AS text FROM {_find_sites(log, steps)}"
        if not asks_clicks(log, open_taxonomy(taxonomy), linker):
            return work.map(texts, _Link(taxonomy, linker, log.language, categories), _LINKS, "links")
        links = steps.map(texts, _Link(taxonomy, linker, log.language, categories), _LINKS, "links of texts")
        bare = (
            f"SELECT s.query_id AS query_id, s.host AS text FROM {_find_sites(log, steps)} s LEFT JOIN (SELECT query_id"
            f" FROM {links} GROUP BY query_id) AS l ON l.query_id = s.query_id WHERE l.query_id IS NULL"
        )
        more = steps.map(bare, _Link(taxonomy, "domains", log.language, categories), _LINKS, "links of clicks")
        return work.table(f"SELECT query_id, node FROM {links} UNION ALL SELECT query_id, node FROM {more}", "links")


@dataclass(frozen=True)
class _Link:
    taxonomy: str
    linker: str
    language: Language
    categories: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = categorize_texts(
            batch["text"].cast(pa.string()),
            opened(self.taxonomy),
            self.linker,
            self.language,
            categories=self.categories,
        )
        start, node = found.nodes()
        query = np.repeat(batch["query_id"].to_numpy(), np.diff(start))
        return pa.RecordBatch.from_arrays([pa.array(query, pa.int64()), pa.array(node)], schema=_LINKS)


def _find_sites(log: QueryLog, work: Workspace) -> Table:
    """The table of query_id and host: the most clicked host, ties broken by the best rank, then the first name."""
    with log.workspace() as steps:
        hosts = steps.map("SELECT url_id, url FROM urls", _hosts, _HOSTS, "hosts")
        clicked = steps.table(
            "SELECT c.query_id AS query_id, h.host AS host, count(*) AS clicks, min(coalesce(c.rank, 2147483647))"
            f" AS best FROM clicks c JOIN {hosts} h ON h.url_id = c.url_id GROUP BY c.query_id, h.host",
            "clicked hosts",
        )
        most = f"SELECT query_id, max(clicks) AS clicks FROM {clicked} GROUP BY query_id"
        favourite = steps.table(
            f"SELECT c.query_id AS query_id, c.host AS host, c.best AS best FROM {clicked} c"
            f" JOIN ({most}) AS m ON m.query_id = c.query_id AND m.clicks = c.clicks",
            "most clicked hosts",
        )
        first = f"SELECT query_id, min(best) AS best FROM {favourite} GROUP BY query_id"
        return work.table(
            f"SELECT c.query_id AS query_id, min(c.host) AS host FROM {favourite} c"
            f" JOIN ({first}) AS f ON f.query_id = c.query_id AND f.best = c.best GROUP BY c.query_id",
            "sites",
        )


def _hosts(batch: pa.RecordBatch) -> pa.RecordBatch:
    host = hosts_of(batch["url"])
    good = topical(host)
    return pa.RecordBatch.from_arrays([batch["url_id"].cast(pa.int64()).filter(good), host.filter(good)], schema=_HOSTS)


@dataclass(frozen=True)
class _Above:
    """The nodes at or above each, on all levels that count."""

    taxonomy: str
    levels: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        tree, node = opened(self.taxonomy).tree, batch["node"].to_numpy()
        levels = range(1, min(self.levels, tree.height) + 1)
        above = np.concatenate([tree.at_level(node, level) for level in levels])
        level = np.repeat(np.array(levels, np.int32), len(node))
        user, n = (np.tile(batch[name].to_numpy(), len(levels)) for name in ("user_id", "n"))
        here = above >= 0
        columns = [user[here].astype(np.int64), above[here], level[here], n[here].astype(np.int64)]
        return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=_COUNTS)


def cut_blocks(
    log: QueryLog, work: Workspace, profiles: Table, users: str, *, count: int, nodes: int, levels: int, parts: int
) -> Table:
    """The table of user_id and block: users in the order of their main interests, cut into equal parts.

    Args:
        log: The log.
        work: Where the table goes.
        profiles: The profiles of users.
        users: SQL of the user_id of those who take part.
        count: How many they are.
        nodes: How many nodes there are.
        levels: On how many levels.
        parts: How many blocks.
    """
    each_level = range(1, levels + 1)
    with log.workspace() as steps:
        main = steps.table(
            f"SELECT p.user_id AS user_id, p.level AS level, min(p.node) AS node FROM {profiles} p JOIN"
            f" (SELECT user_id, level, max(n) AS n FROM {profiles} GROUP BY user_id, level) AS most"
            " ON most.user_id = p.user_id AND most.level = p.level AND most.n = p.n GROUP BY p.user_id, p.level",
            "main interests",
        )
        names = ", ".join(f"coalesce(m{i}.node, {nodes}) AS m{i}" for i in each_level)
        joins = "".join(f" LEFT JOIN {main} m{i} ON m{i}.user_id = u.user_id AND m{i}.level = {i}" for i in each_level)
        places = steps.number(
            f"SELECT u.user_id AS user_id, {names}, -coalesce(t.n, 0) AS lack FROM ({users}) AS u LEFT JOIN"
            f" (SELECT user_id, CAST(sum(n) AS BIGINT) AS n FROM {profiles} GROUP BY user_id) AS t"
            f" ON t.user_id = u.user_id{joins}",
            (*(f"m{i}" for i in each_level), "lack", "user_id"),
            "place",
            name="users in order",
        )
        return cut(work, places, count, parts)


def cut(work: Workspace, places: Table, count: int, parts: int) -> Table:
    """The table of user_id and block: users who have a place, 1, 2, ..., cut into equal parts."""
    return work.map(f"SELECT user_id, place FROM {places}", _Cut(count, parts), _BLOCKS, "blocks")


@dataclass(frozen=True)
class _Cut:
    """Equal parts, the first ones larger by one if the number cannot be divided evenly."""

    users: int
    parts: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        size, more = divmod(self.users, self.parts)
        place = batch["place"].to_numpy() - 1
        block = np.where(
            place < more * (size + 1), place // (size + 1), more + (place - more * (size + 1)) // max(size, 1)
        )
        return pa.RecordBatch.from_arrays([batch["user_id"].cast(pa.int64()), pa.array(block)], schema=_BLOCKS)


def make_records(
    log: QueryLog,
    work: Workspace,
    profiles: Table,
    blocks: Table,
    keys: tuple[bytes, bytes],
    *,
    k: int,
    linkage: int,
    by_repetition: bool,
) -> Table:
    """The table of block, member, user_id, query_id and n: groups, and what their users contribute to records.

    Its rows: for each user, member = their group, n = their quota, no query; for each query that they contribute, n =
    how often.

    Args:
        log: The log.
        work: Where the table goes.
        profiles: The profiles of users.
        blocks: The block of each user.
        keys: The keys of the random draws of users and of queries.
        k: Least users of a group.
        linkage: How a group chooses the next user.
        by_repetition: Whether users contribute the queries that they repeat most, or random ones.
    """
    with log.workspace() as steps:
        of_user = steps.map("SELECT user_id AS id, digest FROM users", _Draw(keys[0]), _DRAWS, "user draws")
        of_query = draw_queries(steps, keys[1])
        rows = (
            "SELECT b.block AS block, CAST(p.user_id AS BIGINT) AS user_id, CAST(0 AS BIGINT) AS kind,"
            " CAST(p.node AS BIGINT) AS item, p.n AS n, CAST(0 AS BIGINT) AS mine, CAST(0 AS BIGINT) AS its"
            f" FROM {profiles} p JOIN {blocks} b ON b.user_id = p.user_id UNION ALL"
            " SELECT b.block AS block, CAST(s.user_id AS BIGINT) AS user_id, CAST(1 AS BIGINT) AS kind,"
            " CAST(s.query_id AS BIGINT) AS item, CAST(s.events AS BIGINT) AS n, u.draw AS mine, q.draw AS its"
            f" FROM query_users s JOIN {blocks} b ON b.user_id = s.user_id JOIN {of_user} u ON u.id = s.user_id"
            f" JOIN {of_query} q ON q.id = s.query_id"
        )
        return work.map_groups(rows, "block", _Records(k, linkage, by_repetition), MADE, "contributions")


def draw_queries(work: Workspace, key: bytes) -> Table:
    """The table of id and draw: a random number for each query, which follows from its text."""
    return work.map("SELECT query_id AS id, query AS text FROM queries", _Draw(key), _DRAWS, "query draws")


@dataclass(frozen=True)
class _Draw:
    """A random number for each id, which follows from a key and from the text behind it."""

    key: bytes

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if "digest" in batch.schema.names:
            number = batch["digest"].to_numpy().astype(np.uint64)
        else:
            number = digests(*byte_spans(batch["text"].cast(pa.string())))[0]
        return pa.RecordBatch.from_arrays(
            [batch["id"].cast(pa.int64()), pa.array(keyed(self.key, number).view(np.int64))], schema=_DRAWS
        )


def contributions(
    start: NDArray[np.int64],
    times: NDArray[np.int64],
    draw: NDArray[np.uint64],
    group: NDArray[np.int32],
    *,
    by_repetition: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What each user contributes to the record of their group: how many queries, and how often each of their own.

    Args:
        start: The queries of user u are those from start[u] to start[u + 1], the most repeated first.
        times: How often the user issued each.
        draw: A random number for each.
        group: The group of each user.
        by_repetition: Whether users contribute the queries that they repeat most, or random ones.
    """
    size = Ragged(start).sums(times)
    member = np.argsort(group, kind="stable").astype(np.int32)
    quota = quotas.quotas(size, np.searchsorted(group[member], np.arange(int(group.max()) + 2)), member)
    if not by_repetition:
        return quota, quotas.at_random(start, times, draw, quota)
    share = size / np.bincount(group, weights=size)[group]
    return quota, quotas.by_repetition(start, times, draw, share, quota)


@dataclass(frozen=True)
class _Records:
    """The groups of a block, and what each user contributes to the record of theirs."""

    k: int
    linkage: int
    by_repetition: bool

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        column = {name: batch[name].to_numpy() for name in batch.schema.names}
        users = np.unique(column["user_id"])
        user = np.searchsorted(users, column["user_id"])
        profile, search = (np.flatnonzero(column["kind"] == kind) for kind in (0, 1))
        profile = profile[np.lexsort((column["item"][profile], user[profile]))]
        search = search[np.lexsort((column["item"][search], -column["n"][search], user[search]))]
        group = self._groups(user[profile], column["item"][profile], column["n"][profile], len(users))
        start = np.searchsorted(user[search], np.arange(len(users) + 1))
        times = column["n"][search]
        draw = column["mine"][search].view(np.uint64) + column["its"][search].view(np.uint64)
        quota, taken = contributions(start, times, draw, group, by_repetition=self.by_repetition)
        given = np.flatnonzero(taken)
        of = user[search][given]
        none = np.full(len(users), np.iinfo(np.int64).min)
        columns = [
            np.full(len(users) + len(given), column["block"][0]),
            np.concatenate([group, group[of]]).astype(np.int64),
            np.concatenate([users, users[of]]),
            np.concatenate([none, column["item"][search][given]]),
            np.concatenate([quota, taken[given]]),
        ]
        missing = np.concatenate([np.ones(len(users), bool), np.zeros(len(given), bool)])
        arrays = [pa.array(values, mask=missing if i == 3 else None) for i, values in enumerate(columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=MADE)

    def _groups(
        self, user: NDArray[np.int64], node: NDArray[np.int64], n: NDArray[np.int64], users: int
    ) -> NDArray[np.int32]:
        size = np.bincount(user, minlength=users)
        order = np.lexsort((np.arange(users), size == 0))
        place = np.empty(users, np.int64)
        place[order] = np.arange(users)
        rows = np.lexsort((node, place[user]))
        features = int(node.max(initial=0)) + 1
        found = groups.group_users(
            offsets(size[order]), node[rows].astype(np.int32), n[rows].astype(np.int32), features, self.k, self.linkage
        )
        group = np.empty(users, np.int32)
        group[order] = found
        return group


class Records(NamedTuple):
    """The tables that a release of records is made from."""

    rows: Table
    """event_id, user_id, query_id and, if a record is written once, users."""
    members: Table
    """user_id, and the user under whom the record of their group is written, if it is written once."""


class Found(NamedTuple):
    """The result."""

    groups: int
    least: int
    """Users of the smallest group."""
    most: int
    silent: int
    """Users who contributed no query."""


def load_records(log: QueryLog, work: Workspace, made: Table, *, compact: bool) -> tuple[Records, Found]:
    """Write the records of groups.

    Args:
        log: The log.
        work: Where the tables go.
        made: Groups and what their users contribute, as `make_records` returns them.
        compact: Whether a record is written once, with the number of its users.
    """
    with log.workspace() as steps:
        grouped = steps.table(f"SELECT block, member, user_id, n FROM {made} WHERE query_id IS NULL", "group members")
        groups = steps.table(
            f"SELECT block, member, min(user_id) AS holder, count(*) AS users FROM {grouped} GROUP BY block, member",
            "groups",
        )
        members = work.table(
            "SELECT m.block AS block, m.member AS member, m.user_id AS user_id, g.holder AS holder, g.users AS users"
            f" FROM {grouped} m JOIN {groups} g ON g.block = m.block AND g.member = m.member",
            "record members",
        )
        queries = steps.table(
            f"SELECT block, member, query_id, CAST(sum(n) AS BIGINT) AS n FROM {made} WHERE query_id IS NOT NULL"
            " GROUP BY block, member, query_id",
            "record queries",
        )
        copies = steps.map(
            f"SELECT m.user_id AS user_id, r.query_id AS query_id, m.users AS users, r.n AS n FROM {members} m"
            f" JOIN {queries} r ON r.block = m.block AND r.member = m.member"
            + (" WHERE m.user_id = m.holder" if compact else ""),
            _copies,
            _COPIES,
            "copies",
        )
        rows = work.number(
            f"SELECT user_id, query_id, users, copy FROM {copies}",
            ("user_id", "query_id", "copy"),
            "event_id",
            even=True,
            name="records",
        )
        sizes = steps.row(f"SELECT count(*) AS n, min(users) AS least, max(users) AS most FROM {groups}")
        (silent,) = steps.row(f"SELECT count(*) AS n FROM {grouped} WHERE n = 0")
    return Records(rows, members), Found(sizes[0], sizes[1], sizes[2], silent)


def count_unlinked(work: Workspace, profiles: Table) -> int:
    """How many users have no category."""
    linked = f"SELECT user_id FROM {profiles} GROUP BY user_id"
    (unlinked,) = work.row(
        f"SELECT count(*) AS n FROM users u LEFT JOIN ({linked}) AS l ON l.user_id = u.user_id WHERE l.user_id IS NULL"
    )
    return int(unlinked)


def _copies(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row for each time that a query is in a record: 0, 1, 2, ..."""
    n = batch["n"].to_numpy()
    columns = [np.repeat(batch[name].to_numpy(), n) for name in ("user_id", "query_id", "users")]
    copy = Ragged(offsets(n)).within
    return pa.RecordBatch.from_arrays([pa.array(c, pa.int64()) for c in (*columns, copy)], schema=_COPIES)
