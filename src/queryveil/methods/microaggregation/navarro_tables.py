"""The distance by features with tables, for logs that are too large for one machine: the same groups and records.

SQL counts what users are compared by and cuts them into blocks. A block is complete on one worker, with the texts of
its queries, and is grouped there as in memory.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import offsets
from queryveil.engines import Table, Workspace
from queryveil.kernels.types import Longs
from queryveil.log import QueryLog
from queryveil.methods.microaggregation import record_tables
from queryveil.methods.microaggregation.common import Searches
from queryveil.methods.microaggregation.interests import group_users
from queryveil.methods.microaggregation.navarro import (
    MISSING,
    Features,
    clicked_domains,
    mean_length,
    mean_time,
    prototypes,
    typical_of,
)
from queryveil.text import Language

_DOMAINS = pa.schema([("url_id", pa.int64()), ("domain", pa.string())])
_LENGTHS = pa.schema([("query_id", pa.int64()), ("characters", pa.int64())])
_SECONDS = pa.schema([("user_id", pa.int64()), ("second", pa.int64())])
_MEANS = pa.schema([("user_id", pa.int64()), ("time", pa.int64()), ("length", pa.int64())])
_NO_DOMAIN = 2**63 - 1
"""After all domains."""
_USER, _CLICK, _SEARCH = range(3)


class Described(NamedTuple):
    """What users are compared by, as tables."""

    users: Table
    """user_id, time and length: the means of a user; the time is `MISSING` if no event has one."""
    clicks: Table
    """user_id, node, level and n: how often each user clicked on each domain, which is the number of an address."""
    domains: int
    """How many domains the log has."""


def describe_users(log: QueryLog, work: Workspace) -> Described:
    """What the users of a log are compared by."""
    log.ensure_tables("query_users")
    with log.workspace() as steps:
        of_url = steps.map("SELECT url_id, url FROM urls", _domains, _DOMAINS, "domains of addresses")
        # The first of its addresses stands for a domain: on one machine, domains are in this order too.
        domains = steps.table(f"SELECT domain, min(url_id) AS node FROM {of_url} GROUP BY domain", "domains")
        clicks = work.table(
            "SELECT c.user_id AS user_id, d.node AS node, CAST(1 AS INT) AS level, count(*) AS n FROM clicks c"
            f" JOIN {of_url} u ON u.url_id = c.url_id JOIN {domains} d ON d.domain = u.domain"
            " GROUP BY c.user_id, d.node",
            "clicked domains",
        )
        (count,) = steps.row(f"SELECT count(*) AS n FROM {domains}")
        lengths = steps.map("SELECT query_id, query FROM queries", _lengths, _LENGTHS, "lengths")
        typed = (
            "SELECT s.user_id AS user_id, CAST(sum(s.events * l.characters) AS BIGINT) AS characters,"
            " CAST(sum(s.events) AS BIGINT) AS events"
            f" FROM query_users s JOIN {lengths} l ON l.query_id = s.query_id GROUP BY s.user_id"
        )
        seconds = steps.map(
            "SELECT user_id, time FROM events WHERE time IS NOT NULL", _seconds, _SECONDS, "seconds of events"
        )
        first, last = steps.row(
            f"SELECT coalesce(min(second), 0) AS first, coalesce(max(second), 0) AS last FROM {seconds}"
        )
        timed = (
            f"SELECT user_id, CAST(sum(second - {first}) AS BIGINT) AS total, count(*) AS times FROM {seconds}"
            " GROUP BY user_id"
        )
        users = work.map(
            "SELECT a.user_id AS user_id, a.characters AS characters, a.events AS events, coalesce(t.total, 0)"
            f" AS total, coalesce(t.times, 0) AS times FROM ({typed}) AS a LEFT JOIN ({timed}) AS t"
            " ON t.user_id = a.user_id",
            _Means(last - first),
            _MEANS,
            "means of users",
        )
    return Described(users, clicks, int(count))


def _domains(batch: pa.RecordBatch) -> pa.RecordBatch:
    domain = clicked_domains(batch["url"])
    known = domain.is_valid()
    return pa.RecordBatch.from_arrays(
        [batch["url_id"].cast(pa.int64()).filter(known), domain.filter(known)], schema=_DOMAINS
    )


def _lengths(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [batch["query_id"].cast(pa.int64()), pc.utf8_length(batch["query"]).cast(pa.int64())], schema=_LENGTHS
    )


def _seconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    second = batch["time"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() // 1_000_000
    return pa.RecordBatch.from_arrays([batch["user_id"].cast(pa.int64()), pa.array(second)], schema=_SECONDS)


@dataclass(frozen=True)
class _Means:
    """The mean time and length of each user."""

    span: int

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        characters, events, total, times = (
            batch[name].to_numpy() for name in ("characters", "events", "total", "times")
        )
        time = np.where(times > 0, mean_time(total, np.maximum(times, 1), self.span), MISSING)
        columns = [batch["user_id"].cast(pa.int64()), pa.array(time), pa.array(mean_length(characters, events))]
        return pa.RecordBatch.from_arrays(columns, schema=_MEANS)


def cut_blocks(log: QueryLog, work: Workspace, described: Described, parts: int) -> Table:
    """The table of user_id and block."""
    if described.domains:
        return record_tables.cut_blocks(
            log,
            work,
            described.clicks,
            "SELECT user_id FROM users",
            count=log.n_users,
            nodes=_NO_DOMAIN,
            levels=1,
            parts=parts,
        )
    with log.workspace() as steps:
        places = steps.number(
            f"SELECT user_id, time, length FROM {described.users}",
            ("time", "length", "user_id"),
            "place",
            name="users in order",
        )
        return record_tables.cut(work, places, log.n_users, parts)


def make_records(log: QueryLog, work: Workspace, described: Described, blocks: Table, key: bytes, k: int) -> Table:
    """The table of block, member, user_id, query_id and n: groups, and the queries of their records.

    Its rows: for each user, member = their group, no query; for each query of a record, n = how often.
    """
    with log.workspace() as steps:
        draws = record_tables.draw_queries(steps, key)
        none = "CAST(0 AS BIGINT)"
        rows = (
            f"SELECT b.block AS block, CAST({_USER} AS BIGINT) AS kind, u.user_id AS user_id, u.time AS item,"
            f" u.length AS n, {none} AS draw, CAST(NULL AS VARCHAR(1)) AS text FROM {described.users} u JOIN {blocks} b"
            " ON b.user_id = u.user_id UNION ALL"
            f" SELECT b.block AS block, CAST({_CLICK} AS BIGINT) AS kind, CAST(c.user_id AS BIGINT) AS user_id,"
            f" CAST(c.node AS BIGINT) AS item, c.n AS n, {none} AS draw, CAST(NULL AS VARCHAR(1)) AS text"
            f" FROM {described.clicks} c JOIN {blocks} b ON b.user_id = c.user_id UNION ALL"
            f" SELECT b.block AS block, CAST({_SEARCH} AS BIGINT) AS kind, CAST(s.user_id AS BIGINT) AS user_id,"
            " CAST(s.query_id AS BIGINT) AS item, CAST(s.events AS BIGINT) AS n, d.draw AS draw, q.query AS text"
            f" FROM query_users s JOIN {blocks} b ON b.user_id = s.user_id JOIN {draws} d ON d.id = s.query_id"
            " JOIN queries q ON q.query_id = s.query_id"
        )
        block = _Block(k, described.domains, log.has_times, log.language)
        return work.map_groups(rows, "block", block, record_tables.MADE, "groups and records")


@dataclass(frozen=True)
class _Block:
    """The groups of a block, and the queries of their records."""

    k: int
    domains: int
    timed: bool
    language: Language

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        column = {name: batch[name].to_numpy() for name in ("kind", "user_id", "item", "n", "draw")}
        kind, item, n = column["kind"], column["item"], column["n"]
        of_user = np.flatnonzero(kind == _USER)
        of_user = of_user[np.argsort(column["user_id"][of_user])]
        users = column["user_id"][of_user]
        user = np.searchsorted(users, column["user_id"])
        click, search = (np.flatnonzero(kind == which) for which in (_CLICK, _SEARCH))
        click = click[np.lexsort((item[click], user[click]))]
        search = search[np.lexsort((item[search], -n[search], user[search]))]
        # Ids of queries can be any numbers; here they are positions in a list.
        queries, known, query = np.unique(item[search], return_index=True, return_inverse=True)
        text = batch["text"].take(pa.array(search[known]))
        searches = Searches(_starts(user[search], len(users)), query.astype(np.int32), n[search])
        words = self.language.words(text)
        features = Features(
            _starts(user[click], len(users)),
            item[of_user] if self.timed else None,
            item[click],
            n[click],
            self.domains,
            n[of_user],
            typical_of(searches),
            text,
            (offsets(words.per_query), pc.dictionary_encode(words.text).indices.to_numpy()),
        )
        group = group_users(features.rows_of, np.arange(len(users)), 1, self.k, 1)
        of, taken = prototypes(searches, group, column["draw"][search[known]].view(np.uint64))
        holder = users[np.unique(group, return_index=True)[1]]
        missing = np.concatenate([np.ones(len(users), bool), np.zeros(len(of), bool)])
        arrays = [
            pa.array(np.full(len(missing), batch["block"][0].as_py())),
            pa.array(np.concatenate([group, of]).astype(np.int64)),
            pa.array(np.concatenate([users, holder[of]])),
            pa.array(np.concatenate([users, queries[taken]]), mask=missing),
            pa.array(np.ones(len(missing), np.int64)),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=record_tables.MADE)


def _starts(user: Longs, users: int) -> Longs:
    return np.asarray(np.searchsorted(user, np.arange(users + 1)))
