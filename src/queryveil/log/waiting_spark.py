"""Events that wait on a cluster: the tables of a log as Parquet in a folder, joined with a new log, and thinned out.

As on one machine (`log/waiting.py`), with the same events in the same order. Ids follow from the texts, so events of
two logs are joined by a union of their tables. Nothing that grows with a log reaches the driver.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from queryveil.engines import InFiles, Table, Workspace, identifier
from queryveil.engines.spark import Spark, unglobbed
from queryveil.engines.spark_errors import working
from queryveil.errors import QueryveilError
from queryveil.formats.rows import BadRows
from queryveil.kernels.times import MISSING
from queryveil.log.ingest.spark_tables import make_words, stats_of, word_ids
from queryveil.log.spark import SparkLog, n_rows
from queryveil.log.stats import LogStats, Scrub, SeriesPlace
from queryveil.log.waiting import SAME_HALF, SOME_VIEWS, keyed_names
from queryveil.text import Language
from queryveil.text.arrays import byte_spans

_MASK = 2**64 - 1
_TEXTS = {"users": ("user_id", "user"), "queries": ("query_id", "query"), "urls": ("url_id", "url")}
"""The tables of texts, with their columns of ids and texts."""
_MICROS = "unix_micros(CAST(e.time AS TIMESTAMP))"
_NAMED = pa.schema([("user_id", pa.int64()), ("new_id", pa.int64()), ("user", pa.string()), ("digest", pa.int64())])


@dataclass(frozen=True)
class Fresh:
    """What a log brings: numbers of the events that are not late, and how many are late.

    Attributes:
        log: The log.
        in_time: SQL that holds for events `e` that are not late.
        events: How many events are not late.
        users: How many users these have.
        late: How many events are late.
        start: The time of the first event that is not late, in microseconds; None without times.
        end: That of the last.
    """

    log: SparkLog
    in_time: str
    events: int
    users: int
    late: int
    start: int | None
    end: int | None


def fresh_of(log: SparkLog, last: int | None) -> Fresh:
    """Count what a log brings.

    Args:
        log: The log.
        last: The end of the logs before it, in microseconds; events up to then are late.
    """
    in_time = "true" if last is None else f"(e.time IS NULL OR {_MICROS} > {last})"
    events, users, start, end = log.engine.row(
        "SELECT coalesce(CAST(sum(u.events) AS BIGINT), 0) AS events, count(*) AS users, min(u.first) AS first,"  # noqa: S608  # numbers of ours
        f" max(u.last) AS last FROM (SELECT e.user_id AS user_id, count(*) AS events, min({_MICROS}) AS first,"
        f" max({_MICROS}) AS last FROM events e WHERE {in_time} GROUP BY e.user_id) AS u"
    )
    return Fresh(log, in_time, events, users, log.stats.events - events, start, end)


@dataclass(frozen=True)
class SparkWaiting:
    """Waiting events as the tables of an engine.

    The tables are those of a log, without words; `events` has a further column `since`, the number of the period that
    an event came in. The table `published` has query_id and times: how many releases have each query.

    Attributes:
        engine: Where the tables are.
        extras: The names of the extra columns.
        views: Whether there is a table of views.
    """

    engine: Spark
    extras: tuple[str, ...]
    views: bool

    @classmethod
    def load(cls, engine: Spark, address: str) -> "SparkWaiting":
        """The events that `save` wrote.

        Args:
            engine: Where their tables will be; it has no others.
            address: The folder.
        """
        extras, views = _columns_in(engine, address)
        for name, folder in _folders(extras, views).items():
            _open(engine.load, name, f"{address}/{folder}")
        return cls(engine, extras, views)

    def as_log(
        self, *, content: bytes, language: Language, scrub: Scrub | None, series: SeriesPlace | None, drawn: bool
    ) -> SparkLog:
        """A log of these events.

        Args:
            content: What takes the place of the digest of its rows.
            language: The language of its queries.
            scrub: How the events were scrubbed before they came here.
            series: Where in its series a release of the log is.
            drawn: Whether the table `earlier_releases` is needed.
        """
        make_words(self.engine, {}, _MASK, language)
        if self.views:
            self.engine.materialize(
                "SELECT event_id, user_id, query_id, rank, url_id FROM views WHERE clicked = 1", "clicks"
            )
        if drawn:
            self.engine.materialize(
                "SELECT p.query_id AS query_id, p.times AS times FROM published p JOIN queries q"
                " ON q.query_id = p.query_id",
                "earlier_releases",
            )
        known = LogStats(
            rows=0, events=0, users=0, queries=0, words=0, clicks=0, timed=0, extras=self.extras, empty_rows=0,
            bad_rows=BadRows(), content=content, scrub=scrub, series=series,
        )  # fmt: skip
        stats = stats_of(self.engine, known, self.views)
        return SparkLog(self.engine, replace(stats, rows=n_rows(self.engine, stats)), language)

    def save(self, address: str, stays: str, published: str) -> tuple[int, int]:
        """Write some events with the texts that they need, and count them and their distinct queries.

        Args:
            address: The folder, in which nothing is yet.
            stays: SQL of the events to write, with all their columns.
            published: SQL of query_id and times.
        """
        written = {name: f"{address}/{folder}" for name, folder in _folders(self.extras, self.views).items()}
        with Workspace(self.engine) as work:

            def write(name: str, query: str) -> Table:
                write_parquet(self.engine, query, written[name])
                return _opened(work, written[name])

            events = write("events", stays)
            table, more = _results(self.views)
            results = write(
                table,
                f"SELECT c.event_id AS event_id, c.user_id AS user_id, c.query_id AS query_id{more} FROM {table} c"  # noqa: S608  # names of ours
                f" JOIN {events} k ON k.event_id = c.event_id",
            )
            write("users", _used('u.user_id AS user_id, u."user" AS "user", u.digest AS digest', "users", events))
            queries = write("queries", _used("u.query_id AS query_id, u.query AS query", "queries", events))
            write("urls", _used("u.url_id AS url_id, u.url AS url", "urls", results))
            for name in self.extras:
                used = f"SELECT {identifier(f'{name} id')} AS id FROM {events}"  # noqa: S608  # names are escaped
                write(f"extra {name}", _used("u.id AS id, u.value AS value", f"extra {name}", f"({used})", "id"))
            write("published", published)
            counts = work.row(
                f"SELECT (SELECT count(*) FROM {events}) AS events, (SELECT count(*) FROM {queries}) AS queries"  # noqa: S608  # names of ours
            )
        return counts[0], counts[1]


def joined(
    fresh: Fresh, address: str | None, *, key: Sequence[int], since: int, bound: int | None, ends: Sequence[int]
) -> tuple[SparkWaiting, int]:
    """The events of a log and those that wait already, and how many of these had waited too long.

    Args:
        fresh: The log.
        address: The folder of the events that wait; None before the first log.
        key: The key of the digests that take the place of the names of users.
        since: The number of the period of the log.
        bound: The oldest time that an event may have that waits already, in microseconds; None for any time.
        ends: The end of each earlier period, in microseconds: the time of events without one.
    """
    log, engine = fresh.log, fresh.log.engine
    new = engine.beside()
    with log.workspace() as work:
        old, extras, views, stays, first, expired = {}, log.stats.extras, log.has_views, "true", 0, 0
        if address is not None:
            before, viewed = _columns_in(engine, address)
            folders = _folders(before, viewed)
            old = {name: _opened(work, f"{address}/{folder}") for name, folder in folders.items()}
            stays = "true" if bound is None else f"{waits_since(ends)} >= {bound}"
            first, total, left = work.row(
                f"SELECT coalesce(max(e.event_id), -1) + 1 AS first, count(*) AS n, count(CASE WHEN {stays} THEN 1 END)"  # noqa: S608  # numbers of ours
                f" AS stay FROM {old['events']} e"
            )
            expired = total - left
            if left:
                extras = tuple(dict.fromkeys((*before, *extras)))
            if viewed != views:
                views = _either_has_views(work, fresh, old, stays, viewed)
        engine.expect(log.stats.rows + first)
        new.expect(log.stats.rows + first)
        named = work.map('SELECT user_id, "user" FROM users', partial(_named, key=tuple(key)), _NAMED, "keyed users")
        numbered = _numbered(work, fresh, named, old, extras, since, stays, first)
        for name, query in _joined_tables(log, named, old, extras, views, numbered, first).items():
            new.keep(engine.sql(query), name)
    _refuse_same_halves(new, extras)
    if address is None:
        new.read("published", pa.table({"query_id": np.empty(0, np.int64), "times": np.empty(0, np.int64)}))
    else:
        _open(new.load, "published", f"{address}/published")
    return SparkWaiting(new, extras, views), expired


def _either_has_views(work: Workspace, fresh: Fresh, old: Mapping[str, Table], stays: str, viewed: bool) -> bool:
    """Whether the events of the log or those that wait have views, of which only one side has the table."""
    table = old["views" if viewed else "clicks"]
    counts = [
        work.row(f"SELECT count(*) AS n FROM {results} c JOIN {events} e ON e.event_id = c.event_id WHERE {those}")[0]  # noqa: S608  # names of ours
        for results, events, those in (
            (fresh.log.results, "events", fresh.in_time),
            (table, old["events"], stays),
        )
    ]
    if all(counts):
        raise QueryveilError(SOME_VIEWS)
    return viewed if counts[1] else fresh.log.has_views


def waits_since(ends: Sequence[int]) -> str:
    """SQL of the time of an event `e` in microseconds, or of the end of the period that it came in."""
    if not ends:
        return _MICROS
    whens = " ".join(f"WHEN {number} THEN {end}" for number, end in enumerate(ends, 1))
    return f"CASE WHEN e.time IS NULL THEN CASE e.since {whens} END ELSE {_MICROS} END"


def _numbered(
    work: Workspace,
    fresh: Fresh,
    named: Table,
    old: Mapping[str, Table],
    extras: Sequence[str],
    since: int,
    stays: str,
    first: int,
) -> Table:
    """All events in the order of user, time and query; those that waited come before like ones of the log."""
    moment = f"CASE WHEN e.time IS NULL THEN CAST('{MISSING}' AS BIGINT) ELSE {_MICROS} END AS moment"

    def ids(known: Sequence[str]) -> str:
        return "".join(f", {_id_or_none(name, known)} AS {identifier(f'{name} id')}" for name in extras)

    rows = (
        f"SELECT e.event_id + {first} AS old_id, n.new_id AS user_id, e.query_id AS query_id, e.time AS time, {moment},"  # noqa: S608  # names are escaped
        f" CAST({since} AS INT) AS since{ids(fresh.log.stats.extras)} FROM events e JOIN {named} n"
        f" ON n.user_id = e.user_id WHERE {fresh.in_time}"
    )
    if old:
        known = [name.removeprefix("extra ") for name in old if name.startswith("extra ")]
        rows += (
            f" UNION ALL SELECT e.event_id AS old_id, e.user_id AS user_id, e.query_id AS query_id, e.time AS time,"  # noqa: S608  # names are escaped
            f" {moment}, e.since AS since{ids(known)} FROM {old['events']} e WHERE {stays}"
        )
    return work.number(rows, ("user_id", "moment", "query_id", "old_id"), "n")


def _id_or_none(name: str, known: Sequence[str]) -> str:
    return f"e.{identifier(f'{name} id')}" if name in known else "CAST(-1 AS BIGINT)"


def _joined_tables(
    log: SparkLog,
    named: Table,
    old: Mapping[str, Table],
    extras: Sequence[str],
    views: bool,
    numbered: Table,
    first: int,
) -> dict[str, str]:
    """SQL of each table of the events in `numbered`."""
    ids = "".join(f", {identifier(f'{name} id')}" for name in extras)
    tables = {"events": f"SELECT n - 1 AS event_id, user_id, query_id, time, since{ids} FROM {numbered}"}  # noqa: S608  # names are escaped
    name, more = _results(views)
    both = []
    if log.results == name:
        both.append(f"SELECT c.event_id + {first} AS event_id{more} FROM {name} c")  # noqa: S608  # names of ours
    if name in old:
        both.append(f"SELECT c.event_id AS event_id{more} FROM {old[name]} c")  # noqa: S608  # names of ours
    tables[name] = (
        f"SELECT r.n - 1 AS event_id, r.user_id AS user_id, r.query_id AS query_id{more} FROM"  # noqa: S608  # names of ours
        f" ({' UNION ALL '.join(both)}) AS c JOIN {numbered} r ON r.old_id = c.event_id"
    )
    users = f'SELECT new_id AS user_id, "user", digest FROM {named}'  # noqa: S608  # a table of ours
    if old:
        users += f' UNION ALL SELECT user_id, "user", digest FROM {old["users"]}'  # noqa: S608  # a table of ours
    whole = 'u.user_id AS user_id, u."user" AS "user", u.digest AS digest'
    tables["users"] = f'{_used(whole, f"({users})", numbered, "user_id")} GROUP BY u.user_id, u."user", u.digest'
    queries = _either("query_id, query", "queries", old, True)
    texts = _used("u.query_id AS query_id, u.query AS query", f"({queries})", numbered, "query_id")
    tables["queries"] = f"{texts} GROUP BY u.query_id, u.query"
    tables["urls"] = f"SELECT url_id, url FROM ({_either('url_id, url', 'urls', old, True)}) AS u GROUP BY url_id, url"  # noqa: S608  # names of ours
    for name in extras:
        table = f"extra {name}"
        found = _either("id, value", table, old, name in log.stats.extras)
        tables[table] = f"SELECT id, value FROM ({found}) AS u GROUP BY id, value"  # noqa: S608  # names are escaped
    return tables


def _either(columns: str, name: str, old: Mapping[str, Table], in_log: bool) -> str:
    """SQL of a table of texts of the log, of what waits already, or of both."""
    found = [identifier(name)] if in_log else []
    found += [str(old[name])] if name in old else []
    return " UNION ALL ".join(f"SELECT {columns} FROM {table}" for table in found)  # noqa: S608  # names are escaped


def _used(columns: str, texts: str, by: Table | str, key: str | None = None) -> str:
    """SQL of the texts `u` whose id some rows have."""
    key = key or _TEXTS[texts][0]
    source = texts if texts.startswith("(") else identifier(texts)
    return (
        f"SELECT {columns} FROM {source} AS u JOIN (SELECT {key} FROM {by} GROUP BY {key}) AS used"  # noqa: S608  # names are escaped
        f" ON used.{key} = u.{key}"
    )


def _refuse_same_halves(engine: Spark, extras: Sequence[str]) -> None:
    """Refuse two texts whose digests begin with the same half: their ids would not follow from the texts alone.

    Such texts have the same id, or ids side by side if they came in one log.
    """
    tables = _TEXTS | {f"extra {name}": ("id", "value") for name in extras}
    listed = " UNION ALL ".join(
        f'SELECT {kind} AS kind, {near} AS id, "{text}" AS text FROM {identifier(name)}'  # noqa: S608  # names are escaped
        for kind, (name, (number, text)) in enumerate(tables.items())
        for near in (f'"{number}"', f'try_add("{number}", CAST(1 AS BIGINT))')
    )
    found = engine.fetch(
        f"SELECT min(t.text) AS one, max(t.text) AS other FROM ({listed}) AS t WHERE t.id IS NOT NULL"  # noqa: S608  # names are escaped
        " GROUP BY t.kind, t.id HAVING count(*) > 1"
    )
    one, other = (word_ids(found[name].combine_chunks(), {}, _MASK) for name in ("one", "other"))
    if (one == other).any():
        raise QueryveilError(SAME_HALF)


def _named(batch: pa.RecordBatch, *, key: Sequence[int]) -> pa.RecordBatch:
    """Users with keyed digests instead of their names, and the ids of these."""
    from queryveil.kernels.digest import digests

    names = keyed_names(batch["user"].cast(pa.large_string()), key).cast(pa.string())
    low = digests(*byte_spans(names))[0].view(np.int64)
    columns = [batch["user_id"], pa.array(word_ids(names, {}, _MASK)), names, pa.array(low)]
    return pa.RecordBatch.from_arrays(columns, schema=_NAMED)


def _results(views: bool) -> tuple[str, str]:
    """The table of the results that events have, and SQL of its columns in an alias `c`, beside ids of the event."""
    more = ", c.rank AS rank, c.url_id AS url_id"
    return ("views", f"{more}, c.clicked AS clicked") if views else ("clicks", more)


def _folders(extras: Sequence[str], views: bool) -> dict[str, str]:
    """The folder of each table; the name of an extra column may be anything, so it is no name of a folder."""
    names = {name: name for name in ("events", *_TEXTS, "published")} | {_results(views)[0]: "results"}
    return names | {f"extra {name}": f"extra-{at}" for at, name in enumerate(sorted(extras))}


def _columns_in(engine: Spark, address: str) -> tuple[tuple[str, ...], bool]:
    """The names of the extra columns of what was saved, and whether it has views."""
    with working(address):
        events, results = (
            engine.session.read.parquet(unglobbed(f"{address}/{name}")).columns for name in ("events", "results")
        )
    return tuple(sorted(name.removesuffix(" id") for name in events if name.endswith(" id"))), "clicked" in results


def _open(load: Callable[[str, pa.Schema, InFiles], object], name: str, address: str) -> None:
    load(name, pa.schema([]), InFiles((unglobbed(address),), _nothing, None))


def _opened(work: Workspace, address: str) -> Table:
    return work.load(pa.schema([]), InFiles((unglobbed(address),), _nothing, None), "waiting")


def _nothing() -> Iterator[pa.RecordBatch]:
    return iter(())


def write_parquet(engine: Spark, query: str, address: str) -> None:
    """Write the result of a query into a new folder."""
    options = {"compression": "zstd", "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    engine.progress("waiting")
    with working(address):
        engine.sql(query).write.options(**options).parquet(address)
