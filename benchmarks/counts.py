"""Tables of counts against hand-written GROUP BYs in DuckDB, which check nothing and hide only by one threshold.

One peer has the rows in Parquet, as people have them, another the integer tables of the log that queryveil counts on,
so that nothing but counting differs. All write the table as Parquet. Time is that of the processor, so that other work
on the machine does not count.
"""

import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness import DATA, log_file, run, timed

K = 5
TABLES: dict[str, dict[str, list[str]]] = {
    "query": {"by": ["query"]},
    "query, url": {"by": ["query", "url"]},
    "query, url, rank, period": {"by": ["query", "url", "rank", "period"]},
    "query, period; totals": {"by": ["query", "period"], "totals": ["query"]},
}
HERE = "benchmarks.counts"
_RESULTS = 10


def source_of(kind: str, users: int) -> Path:
    """A file of clicks, or of ten results for each event, made from it once."""
    clicks = log_file(users)
    if kind == "clicks":
        return clicks
    import duckdb

    path = DATA / f"views-{users}.parquet"
    if not path.exists():
        columns = {"user": "VARCHAR", "query": "VARCHAR", "time": "VARCHAR", "rank": "INTEGER", "url": "VARCHAR"}
        duckdb.execute(
            f"""COPY (
            WITH events AS (SELECT "user", query, time, min(rank) AS clicked FROM read_csv('{clicks}', delim='\t',
                 quote='', escape='', header=true, columns={columns}) GROUP BY "user", query, time)
            SELECT "user", query, time, r + 1 AS rank, 'http://site' || (hash(query) + r * 7919) % 1000003 || '.example'
                   AS url, CAST(clicked IS NOT NULL AND clicked % {_RESULTS} = r AS INTEGER) AS clicked
            FROM events, range({_RESULTS}) AS shown(r)) TO '{path}.part' (FORMAT parquet, COMPRESSION zstd)"""
        )
        Path(f"{path}.part").rename(path)
    return path


def ours(kind: str, users: str, table: str) -> None:
    """The method on a log that was read before."""
    import queryveil as qv
    from queryveil.formats import writers

    method = qv.Counts(**TABLES[table], min_row_users=K, period="month")
    log = qv.read_log(source_of(kind, int(users)))
    begin = time.process_time()
    with timed():
        release = method.anonymize(log, seed=1)
        writers.write(DATA / "counts-queryveil.parquet", "parquet", release.schema, release.batches())
    _say(begin, release.manifest.counts.rows)


def on_tables(kind: str, users: str, table: str) -> None:
    """A GROUP BY over the integer tables of the log, with texts joined to what is left."""
    import queryveil as qv

    log = qv.read_log(source_of(kind, int(users)))
    by = TABLES[table]["by"]
    keys = {"query": "e.query_id", "url": "r.url_id", "rank": "r.rank", "period": "date_trunc('month', e.time)"}
    names = ", ".join(f"{keys[name]} AS {name}_key" for name in by)
    clicks = "sum(r.clicked)" if log.has_views else "count(r.event_id)"
    views = ", count(r.event_id) AS views" if log.has_views else ""
    shown = {"query": "q.query", "url": "u.url", "rank": "g.rank_key", "period": "g.period_key"}
    selected = ", ".join(f"{shown[name]} AS {name}" for name in by)
    joins = " JOIN queries q ON q.query_id = g.query_key"
    joins += " LEFT JOIN urls u ON u.url_id = g.url_key" if "url" in by else ""
    begin = time.process_time()
    with timed():
        log.engine.materialize(
            f"SELECT {selected}, g.* FROM (SELECT {names}, count(DISTINCT e.user_id) AS users,"
            f" count(DISTINCT e.event_id) AS events, {clicks} AS clicks{views}, avg(r.rank) AS mean_rank"
            f" FROM events e LEFT JOIN {log.results} r ON r.event_id = e.event_id GROUP BY ALL"
            f" HAVING count(DISTINCT e.user_id) >= {K}) AS g{joins}",
            "by hand",
        )
        import pyarrow.parquet as pq

        found = log.engine.fetch('SELECT * FROM "by hand"')
        pq.write_table(found, DATA / "counts-tables.parquet", compression="zstd")
    _say(begin, len(found))


def on_rows(kind: str, users: str, table: str) -> None:
    """A GROUP BY over the rows as they are in a Parquet file."""
    import duckdb

    source = source_of(kind, int(users))
    if kind == "clicks":
        columns = {"user": "VARCHAR", "query": "VARCHAR", "time": "TIMESTAMP", "rank": "INTEGER", "url": "VARCHAR"}
        path = DATA / "counts-rows.parquet"
        duckdb.execute(
            f"COPY (SELECT * FROM read_csv('{source}', delim='\t', quote='', escape='', header=true,"
            f" columns={columns})) TO '{path}'"
        )
        clicks = "count(url)"
    else:
        path, clicks = source, "sum(clicked) AS clicks, count(*)"
    keys = {"period": "date_trunc('month', CAST(time AS TIMESTAMP)) AS period"}
    names = ", ".join(keys.get(name, name) for name in TABLES[table]["by"])
    begin = time.process_time()
    with timed():
        (rows,) = duckdb.execute(
            f'COPY (SELECT {names}, count(DISTINCT "user") AS users, count(DISTINCT ("user", time)) AS events,'
            f" {clicks}, avg(rank) AS mean_rank FROM '{path}' GROUP BY ALL HAVING count(DISTINCT \"user\") >= {K})"
            f" TO '{DATA / 'counts-rows-out.parquet'}' (COMPRESSION zstd)"
        ).fetchone()
    _say(begin, rows)


def all_tables(kind: str, users: str) -> None:
    """All tables of a log that is read once, by the method alone: for logs on which the peers would take long."""
    import queryveil as qv
    from queryveil.formats import writers

    begin = time.process_time()
    log = qv.read_log(source_of(kind, int(users)), memory_limit="16GiB")
    seconds = {"read": time.process_time() - begin}
    with timed():
        for name, columns in TABLES.items():
            begin = time.process_time()
            release = qv.Counts(**columns, min_row_users=K, period="month").anonymize(log, seed=1)
            writers.write(DATA / "counts-queryveil.parquet", "parquet", release.schema, release.batches())
            seconds[name] = time.process_time() - begin
    print(json.dumps({"rows": log.stats.rows, "seconds": seconds}))


def growth(sizes: Sequence[int], times: int) -> Iterator[str]:
    """What large logs cost, and how that grows with the rows; a negative size is a log of views."""
    yield f"| log | rows | read | {' | '.join(TABLES)} | peak memory |"
    yield "|---" * (len(TABLES) + 4) + "|"
    found: dict[str, list[dict[str, float]]] = {"clicks": [], "views": []}
    for size in sizes:
        kind, users = ("clicks", size) if size > 0 else ("views", -size)
        source_of(kind, users)
        cost = run(f"{HERE}:all_tables", kind, users, times=times)
        told = json.loads(cost.told)
        found[kind].append(told["seconds"] | {"rows": told["rows"]})
        seconds = " | ".join(f"{value:.1f} s" for value in told["seconds"].values())
        yield f"| {users:,} users, {kind} | {told['rows']:,} | {seconds} | {cost.peak_gib:.1f} GiB |"
    for kind, costs in found.items():
        if len(costs) > 1:
            small, large = costs[0], costs[-1]
            more = math.log(large["rows"] / small["rows"])
            grown = ", ".join(
                f"{name}: {math.log(large[name] / small[name]) / more:.2f}" for name in small if name != "rows"
            )
            yield ""
            yield f"Growth exponents of {kind} from {small['rows']:,} to {large['rows']:,} rows (1 is linear): {grown}."


def _say(begin: float, rows: int) -> None:
    print(json.dumps({"seconds": time.process_time() - begin, "rows": rows}))


def report(sizes: Sequence[int], times: int) -> Iterator[str]:
    """The tables of README.md: of clicks, and of views if a size is given as a negative number."""
    yield "| log | table | rows | queryveil | DuckDB on its tables | DuckDB on rows | ratios | peak memory |"
    yield "|---|---|---|---|---|---|---|---|"
    seconds: dict[tuple[str, str, int], float] = {}
    for size in sizes:
        kind, users = ("clicks", size) if size > 0 else ("views", -size)
        source_of(kind, users)
        for table in TABLES:
            found = {
                name: run(f"{HERE}:{name}", kind, users, table, times=times)
                for name in ("ours", "on_tables", "on_rows")
            }
            cost = {name: json.loads(one.told)["seconds"] for name, one in found.items()}
            seconds[kind, table, users] = cost["ours"]
            ratios = " and ".join(f"**{cost['ours'] / cost[name]:.2f}**" for name in ("on_tables", "on_rows"))
            yield (
                f"| {users:,} users, {kind} | {table} | {json.loads(found['ours'].told)['rows']:,} |"
                f" {' | '.join(f'{value:.1f} s' for value in cost.values())} | {ratios} |"
                f" {found['ours'].peak_gib:.1f} GiB |"
            )
    for kind in ("clicks", "views"):
        known = sorted(users for one, _, users in seconds if one == kind)
        if known and known[0] < known[-1]:
            small, large = known[0], known[-1]
            times_more = {table: seconds[kind, table, large] / seconds[kind, table, small] for table in TABLES}
            growth = ", ".join(
                f"{table}: {math.log(more) / math.log(large / small):.2f}" for table, more in times_more.items()
            )
            yield ""
            yield f"Growth exponents of {kind} between {small:,} and {large:,} users (1 is linear): {growth}."
