"""Microaggregation by tables, for logs that outgrow a machine: the same groups and records as in its memory.

Profiles are counted by SQL. Users are numbered in the order of their main interests and cut into blocks; the compiled
loops run on one block each, wherever that is.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.kernels import groups, quotas
from queryveil.kernels.digest import digests
from queryveil.knowledge import link_texts, open_knowledge
from queryveil.knowledge.hosts import hosts_of, topical
from queryveil.knowledge.index import offsets
from queryveil.log import QueryLog
from queryveil.log.draws import keyed
from queryveil.text.arrays import byte_spans

_LINKS = pa.schema([("query_id", pa.int64()), ("node", pa.int32())])
_HOSTS = pa.schema([("url_id", pa.int64()), ("host", pa.string())])
_COUNTS = pa.schema([("user_id", pa.int64()), ("node", pa.int32()), ("level", pa.int32()), ("n", pa.int64())])
_DRAWS = pa.schema([("id", pa.int64()), ("draw", pa.int64())])
_BLOCKS = pa.schema([("user_id", pa.int64()), ("block", pa.int64())])
_MADE = pa.schema([(name, pa.int64()) for name in ("block", "member", "user_id", "query_id", "n")])
_COPIES = pa.schema([(name, pa.int64()) for name in ("user_id", "query_id", "users", "copy")])

opened = cache(open_knowledge)
"""A worker opens a knowledge base once."""


def link_queries(log: QueryLog, knowledge: str, linker: str, categories: int) -> None:
    """Make the table `links` (query_id, node), a row for every node of every item of a query."""
    texts = "SELECT query_id, query AS text FROM queries"
    if linker == "domains":
        _find_sites(log)
        texts = "SELECT query_id, host AS text FROM sites"
    log.engine.map(texts, _Link(knowledge, linker, categories), _LINKS, "links")
    log.engine.drop("sites")


@dataclass(frozen=True)
class _Link:
    knowledge: str
    linker: str
    categories: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = link_texts(
            batch["text"].cast(pa.string()), opened(self.knowledge), self.linker, categories=self.categories
        )
        start, node = found.nodes()
        query = np.repeat(batch["query_id"].to_numpy(), np.diff(start))
        return pa.RecordBatch.from_arrays([pa.array(query, pa.int64()), pa.array(node)], schema=_LINKS)


def _find_sites(log: QueryLog) -> None:
    """Make the table `sites` (query_id, host): the most clicked host; of equals the best rank, then the first name."""
    engine = log.engine
    engine.map("SELECT url_id, url FROM urls", _hosts, _HOSTS, "url_hosts")
    engine.materialize(
        "SELECT c.query_id AS query_id, h.host AS host, count(*) AS clicks, min(coalesce(c.rank, 2147483647)) AS best"
        " FROM clicks c JOIN url_hosts h ON h.url_id = c.url_id GROUP BY c.query_id, h.host",
        "clicked",
    )
    most = "SELECT query_id, max(clicks) AS clicks FROM clicked GROUP BY query_id"
    engine.materialize(
        "SELECT c.query_id AS query_id, c.host AS host, c.best AS best FROM clicked c"
        f" JOIN ({most}) AS m ON m.query_id = c.query_id AND m.clicks = c.clicks",
        "most clicked",
    )
    first = 'SELECT query_id, min(best) AS best FROM "most clicked" GROUP BY query_id'
    engine.materialize(
        'SELECT c.query_id AS query_id, min(c.host) AS host FROM "most clicked" c'
        f" JOIN ({first}) AS f ON f.query_id = c.query_id AND f.best = c.best GROUP BY c.query_id",
        "sites",
    )
    engine.drop("url_hosts", "clicked", "most clicked")


def _hosts(batch: pa.RecordBatch) -> pa.RecordBatch:
    host = hosts_of(batch["url"])
    good = topical(host)
    return pa.RecordBatch.from_arrays([batch["url_id"].cast(pa.int64()).filter(good), host.filter(good)], schema=_HOSTS)


def count_interests(log: QueryLog) -> None:
    """Make the table `interests` (user_id, node, n) of `links`."""
    log.need("searchers")
    log.engine.materialize(
        "SELECT s.user_id AS user_id, l.node AS node, CAST(sum(s.events) AS BIGINT) AS n FROM searchers s"
        " JOIN links l ON l.query_id = s.query_id GROUP BY s.user_id, l.node",
        "interests",
    )


def count_levels(log: QueryLog, knowledge: str, levels: int) -> None:
    """Make the table `profiles` (user_id, node, level, n) of `interests`: the same on every level."""
    log.engine.map("SELECT user_id, node, n FROM interests", _Above(knowledge, levels), _COUNTS, "all interests")
    log.engine.materialize(
        'SELECT user_id, node, level, CAST(sum(n) AS BIGINT) AS n FROM "all interests" GROUP BY user_id, node, level',
        "profiles",
    )
    log.engine.drop("all interests")


@dataclass(frozen=True)
class _Above:
    """The nodes at or above each, on all levels that count."""

    knowledge: str
    levels: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        tree, node = opened(self.knowledge).taxonomy, batch["node"].to_numpy()
        levels = range(1, min(self.levels, tree.height) + 1)
        above = np.concatenate([tree.at_level(node, level) for level in levels])
        level = np.repeat(np.array(levels, np.int32), len(node))
        user, n = (np.tile(batch[name].to_numpy(), len(levels)) for name in ("user_id", "n"))
        here = above >= 0
        columns = [user[here].astype(np.int64), above[here], level[here], n[here].astype(np.int64)]
        return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=_COUNTS)


def cut_blocks(log: QueryLog, users: str, count: int, nodes: int, levels: int, parts: int) -> None:
    """Make the table `blocks` (user_id, block): users in the order of their main interests, cut into equal parts.

    Args:
        log: The log, with the table `profiles`.
        users: SQL of the user_id of those who take part.
        count: How many they are.
        nodes: How many nodes there are.
        levels: On how many levels.
        parts: How many blocks.
    """
    wanted = range(1, levels + 1)
    log.engine.materialize(
        "SELECT p.user_id AS user_id, p.level AS level, min(p.node) AS node FROM profiles p JOIN"
        " (SELECT user_id, level, max(n) AS n FROM profiles GROUP BY user_id, level) AS most"
        " ON most.user_id = p.user_id AND most.level = p.level AND most.n = p.n GROUP BY p.user_id, p.level",
        "main",
    )
    names = ", ".join(f"coalesce(m{i}.node, {nodes}) AS m{i}" for i in wanted)
    joins = "".join(f" LEFT JOIN main m{i} ON m{i}.user_id = u.user_id AND m{i}.level = {i}" for i in wanted)
    log.engine.number(
        f"SELECT u.user_id AS user_id, {names}, -coalesce(t.n, 0) AS lack FROM ({users}) AS u LEFT JOIN"
        " (SELECT user_id, CAST(sum(n) AS BIGINT) AS n FROM profiles GROUP BY user_id) AS t"
        f" ON t.user_id = u.user_id{joins}",
        (*(f"m{i}" for i in wanted), "lack", "user_id"),
        "places",
        "place",
    )
    log.engine.map("SELECT user_id, place FROM places", _Cut(count, parts), _BLOCKS, "blocks")
    log.engine.drop("main", "places")


@dataclass(frozen=True)
class _Cut:
    """Equal parts, the first ones larger by one where it does not come out even."""

    users: int
    parts: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        size, more = divmod(self.users, self.parts)
        place = batch["place"].to_numpy() - 1
        block = np.where(
            place < more * (size + 1), place // (size + 1), more + (place - more * (size + 1)) // max(size, 1)
        )
        return pa.RecordBatch.from_arrays([batch["user_id"].cast(pa.int64()), pa.array(block)], schema=_BLOCKS)


def make_records(log: QueryLog, keys: tuple[bytes, bytes], *, k: int, linkage: int, by_repetition: bool) -> None:
    """Make the table `made` of `profiles` and `blocks`.

    Its rows: for each user, member = his group, n = his quota, no query; for each query that he gives, n = how often.

    Args:
        log: The log.
        keys: What the draws of users and of queries are keyed by.
        k: Least users of a group.
        linkage: How a group draws the next user.
        by_repetition: Whether users give the queries that they repeat most, or any.
    """
    engine = log.engine
    engine.map("SELECT user_id AS id, digest FROM users", _Draw(keys[0]), _DRAWS, "user draws")
    engine.map("SELECT query_id AS id, query AS text FROM queries", _Draw(keys[1]), _DRAWS, "query draws")
    rows = (
        "SELECT b.block AS block, CAST(p.user_id AS BIGINT) AS user_id, CAST(0 AS BIGINT) AS kind,"
        " CAST(p.node AS BIGINT) AS item, p.n AS n, CAST(0 AS BIGINT) AS mine, CAST(0 AS BIGINT) AS its FROM profiles p"
        " JOIN blocks b ON b.user_id = p.user_id UNION ALL"
        " SELECT b.block AS block, CAST(s.user_id AS BIGINT) AS user_id, CAST(1 AS BIGINT) AS kind,"
        " CAST(s.query_id AS BIGINT) AS item, CAST(s.events AS BIGINT) AS n, u.draw AS mine, q.draw AS its"
        ' FROM searchers s JOIN blocks b ON b.user_id = s.user_id JOIN "user draws" u ON u.id = s.user_id'
        ' JOIN "query draws" q ON q.id = s.query_id'
    )
    engine.map_groups(rows, "block", _Records(k, linkage, by_repetition), _MADE, "made")
    engine.drop("user draws", "query draws")


@dataclass(frozen=True)
class _Draw:
    """A random number for each id, that follows from a key and from the text behind it."""

    key: bytes

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if "digest" in batch.schema.names:
            number = batch["digest"].to_numpy().astype(np.uint64)
        else:
            number = digests(*byte_spans(batch["text"].cast(pa.string())))[0]
        return pa.RecordBatch.from_arrays(
            [batch["id"].cast(pa.int64()), pa.array(keyed(self.key, number).view(np.int64))], schema=_DRAWS
        )


def gifts(
    start: NDArray[np.int64],
    times: NDArray[np.int64],
    draw: NDArray[np.uint64],
    group: NDArray[np.int32],
    *,
    by_repetition: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What each user gives to the record of his group: how many queries, and how often each of his own.

    Args:
        start: The queries of user u are those from start[u] to start[u + 1], the most repeated first.
        times: How often he issued each.
        draw: A random number for each.
        group: The group of each user.
        by_repetition: Whether he gives the queries that he repeats most, or any.
    """
    size = np.add.reduceat(times, start[:-1])
    member = np.argsort(group, kind="stable").astype(np.int32)
    quota = quotas.quotas(size, np.searchsorted(group[member], np.arange(int(group.max()) + 2)), member)
    if not by_repetition:
        return quota, quotas.at_random(start, times, draw, quota)
    share = size / np.bincount(group, weights=size)[group]
    return quota, quotas.by_repetition(start, times, draw, share, quota)


@dataclass(frozen=True)
class _Records:
    """The groups of a block, and what each user gives to the record of his."""

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
        quota, taken = gifts(start, times, draw, group, by_repetition=self.by_repetition)
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
        return pa.RecordBatch.from_arrays(arrays, schema=_MADE)

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


class Found(NamedTuple):
    """What came out."""

    groups: int
    least: int
    """Users of the smallest group."""
    most: int
    unlinked: int
    """Users without a category."""
    silent: int
    """Users who gave no query."""


def load_records(log: QueryLog, *, compact: bool) -> Found:
    """Make the tables `records` and `record members` that a release is made of, of `made`, and let go of all others.

    Args:
        log: The log.
        compact: Whether a record is written once, with the number of its users.
    """
    engine = log.engine
    engine.materialize("SELECT block, member, user_id, n FROM made WHERE query_id IS NULL", "group members")
    engine.materialize(
        'SELECT block, member, min(user_id) AS holder, count(*) AS users FROM "group members" GROUP BY block, member',
        "groups",
    )
    engine.materialize(
        "SELECT m.block AS block, m.member AS member, m.user_id AS user_id, g.holder AS holder, g.users AS users"
        ' FROM "group members" m JOIN groups g ON g.block = m.block AND g.member = m.member',
        "record members",
    )
    engine.materialize(
        "SELECT block, member, query_id, CAST(sum(n) AS BIGINT) AS n FROM made WHERE query_id IS NOT NULL"
        " GROUP BY block, member, query_id",
        "record queries",
    )
    engine.map(
        'SELECT m.user_id AS user_id, r.query_id AS query_id, m.users AS users, r.n AS n FROM "record members" m'
        ' JOIN "record queries" r ON r.block = m.block AND r.member = m.member'
        + (" WHERE m.user_id = m.holder" if compact else ""),
        _copies,
        _COPIES,
        "copies",
    )
    engine.number(
        "SELECT user_id, query_id, users, copy FROM copies", ("user_id", "query_id", "copy"), "records", "event_id"
    )
    sizes = engine.row("SELECT count(*) AS n, min(users) AS least, max(users) AS most FROM groups")
    linked = "SELECT user_id FROM profiles GROUP BY user_id"
    (unlinked,) = engine.row(
        f"SELECT count(*) AS n FROM users u LEFT JOIN ({linked}) AS l ON l.user_id = u.user_id WHERE l.user_id IS NULL"
    )
    (silent,) = engine.row('SELECT count(*) AS n FROM "group members" WHERE n = 0')
    engine.drop(
        "links", "interests", "profiles", "blocks", "made", "group members", "groups", "record queries", "copies"
    )
    return Found(sizes[0], sizes[1], sizes[2], unlinked, silent)


def _copies(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row for each time that a query stands in a record: 0, 1, 2, ..."""
    n = batch["n"].to_numpy()
    columns = [np.repeat(batch[name].to_numpy(), n) for name in ("user_id", "query_id", "users")]
    copy = np.arange(n.sum()) - np.repeat(offsets(n)[:-1], n)
    return pa.RecordBatch.from_arrays([pa.array(c, pa.int64()) for c in (*columns, copy)], schema=_COPIES)
