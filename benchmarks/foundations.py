"""Ingest and equality against hand-written DuckDB and Polars doing the same job on the same file."""

import math
from pathlib import Path

from benchmarks.harness import DATA, Cost, log_file, run, timed

K = 5
HERE = "benchmarks.foundations"


def ingest_queryveil(path: str) -> None:
    """Read, normal form, ids for users, queries, words and addresses, events, fingerprint."""
    import queryveil as qv

    qv.read_log(Path(__file__).parent / "warm.tsv")  # loads the compiled kernels, which no peer has to do
    with timed():
        print(qv.read_log(path).fingerprint)


def ingest_duckdb(path: str) -> None:
    """A plain CSV scan to Parquet."""
    import duckdb

    columns = {"user": "VARCHAR", "query": "VARCHAR", "time": "TIMESTAMP", "rank": "INTEGER", "url": "VARCHAR"}
    with timed():
        duckdb.execute(
            f"COPY (SELECT * FROM read_csv('{path}', delim='\t', quote='', escape='', header=true, columns={columns}))"
            f" TO '{DATA / 'duckdb.parquet'}'"
        )


def ingest_polars(path: str) -> None:
    """A plain CSV scan to Parquet."""
    import polars as pl

    with timed():
        names = ["user", "query", "time", "rank", "url"]
        scan = pl.scan_csv(path, separator="\t", quote_char=None, new_columns=names)
        scan.sink_parquet(DATA / "polars.parquet")


def equality_queryveil(path: str) -> None:
    """Equality on the ingested log, to a Parquet file; checks and manifest are not counted, peers have none."""
    import queryveil as qv
    from queryveil.formats import writers

    log = qv.read_log(path)
    with timed():
        release = qv.Equality(k=K).anonymize(log, seed=1)
        writers.write(DATA / "out-queryveil.parquet", "parquet", release.schema, release.batches())
    print(release.manifest.counts)


def equality_duckdb(path: str) -> None:
    """The same in SQL: rows of queries of K users, clicks of K users, fresh ids in random order, sorted by user."""
    import duckdb

    source = f"read_parquet('{DATA / 'duckdb.parquet'}')"
    with timed():
        duckdb.execute(
            f"""COPY (
            WITH kept AS (SELECT query FROM {source} GROUP BY query HAVING count(DISTINCT "user") >= {K}),
            clicks AS (SELECT query, url FROM {source} WHERE url IS NOT NULL GROUP BY query, url
                       HAVING count(DISTINCT "user") >= {K}),
            rows AS (SELECT l.* FROM {source} l SEMI JOIN kept ON kept.query = l.query),
            ids AS (SELECT "user", row_number() OVER (ORDER BY hash("user")) AS fresh
                    FROM (SELECT DISTINCT "user" FROM rows))
            SELECT ids.fresh AS "user", rows.query,
                   CASE WHEN clicks.url IS NOT NULL THEN rank END AS rank, clicks.url AS url
            FROM rows JOIN ids ON ids."user" = rows."user"
            LEFT JOIN clicks ON clicks.query = rows.query AND clicks.url = rows.url
            ORDER BY ids.fresh, rows.query) TO '{DATA / "out-duckdb.parquet"}' (COMPRESSION zstd)"""
        )


def equality_polars(path: str) -> None:
    """The same in Polars."""
    import polars as pl

    with timed():
        log = pl.scan_parquet(DATA / "polars.parquet")
        users = pl.col("user").n_unique().alias("n")
        kept = log.group_by("query").agg(users).filter(pl.col("n") >= K).select("query")
        clicks = log.filter(pl.col("url").is_not_null()).group_by("query", "url").agg(users).filter(pl.col("n") >= K)
        rows = log.join(kept, on="query", how="semi")
        ids = rows.select("user").unique().with_columns(pl.int_range(pl.len()).shuffle(seed=1).alias("fresh"))
        out = (
            rows.join(clicks, on=["query", "url"], how="left")
            .with_columns(
                pl.when(pl.col("n").is_not_null()).then("url").alias("url"),
                pl.when(pl.col("n").is_not_null()).then("rank").alias("rank"),
            )
            .join(ids, on="user")
            .select(pl.col("fresh").alias("user"), "query", "rank", "url")
            .sort("user", "query")
        )
        out.sink_parquet(DATA / "out-polars.parquet", compression="zstd")


def whole_queryveil(path: str) -> None:
    """Everything `queryveil anonymize` does: read, anonymize, write, check every claim, publish."""
    import shutil

    import queryveil as qv

    with timed():
        log = qv.read_log(path)
        qv.Equality(k=K).anonymize(log, seed=1).save(DATA / "release", overwrite=True)
    shutil.rmtree(DATA / "release")


def report(users: list[int], times: int) -> list[str]:
    """The results as Markdown."""
    head = "| log | job | queryveil | DuckDB | Polars | ratio to the faster | peak memory |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    costs: dict[tuple[str, int], Cost] = {}
    for size in users:
        path = log_file(size)
        with path.open("rb") as file:
            rows = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 24), b"")) - 1
        for job in ("ingest", "equality"):
            found = {name: run(f"{HERE}:{job}_{name}", path, times=times) for name in ("queryveil", "duckdb", "polars")}
            ours, best = found["queryveil"], min(found["duckdb"].seconds, found["polars"].seconds)
            costs[job, size] = ours
            cells = [f"{cost.seconds:.1f} s" for cost in found.values()]
            lines.append(
                f"| {rows / 1e6:.1f} M rows | {job} | {' | '.join(cells)} | **{ours.seconds / best:.2f}** "
                f"| {ours.peak_gib:.1f} GiB |"
            )
        whole = run(f"{HERE}:whole_queryveil", path)
        costs["whole", size] = whole
        lines.append(
            f"| {rows / 1e6:.1f} M rows | log to checked release | {whole.seconds:.1f} s | | | "
            f"| {whole.peak_gib:.1f} GiB |"
        )
    if len(users) > 1:
        small, large = users[0], users[-1]
        growth = {
            job: math.log(costs[job, large].seconds / costs[job, small].seconds) / math.log(large / small)
            for job in ("ingest", "equality", "whole")
        }
        told = ", ".join(f"{job} {value:.2f}" for job, value in growth.items())
        lines += ["", f"Growth exponents between {small:,} and {large:,} users (1 is linear): {told}."]
    return lines
