"""A series on Spark: what a period costs for the rows that come and the rows that wait, fitted to several periods.

A daily series of a large log has small periods beside much that waits. So the log is cut into single days and long
periods, in turn: the same waiting rows are met by many fresh ones and by few.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import DATA, log_file, run, timed
from benchmarks.spark import _totals

HERE = "benchmarks.spark_series"
K = 5
PERIODS = (10, 1, 1, 20, 1, 1, 25, 1, 1, 29, 1)
"""In days; the synthetic log has 92."""


def periods(users: int) -> list[Path]:
    """The log cut into periods, made once."""
    folder = DATA / f"periods-{users}"
    if not folder.exists():
        import duckdb

        file = log_file(users)
        folder.mkdir()
        duckdb.execute(
            "CREATE TABLE rows_ AS SELECT *, dense_rank() OVER (ORDER BY QueryTime[:10]) AS day FROM"
            f" read_csv('{file}', delim='\t', quote='', escape='', header=true, all_varchar=true)"
        )
        end = np.cumsum(PERIODS).tolist()
        for number, last in enumerate(end):
            duckdb.execute(
                "COPY (SELECT * EXCLUDE (day) FROM rows_ WHERE day > ? AND day <= ?) TO"
                f" '{folder}/{number:02}.tsv' (DELIMITER '\t', QUOTE '', HEADER)",
                [last - PERIODS[number], last],
            )
        duckdb.execute("DROP TABLE rows_")
    return sorted(folder.iterdir())


def spark(users: str, memory: str) -> None:
    """Every period on Spark with two cores of this machine."""
    import queryveil as qv
    from queryveil.engines.spark import Spark
    from queryveil.engines.spark_session import start

    work = DATA / f"spark-{os.getpid()}"
    work.mkdir(parents=True)
    settings = {
        "spark.driver.memory": memory,
        "spark.local.dir": str(work),
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.ui.retainedStages": "100000",
    }
    session = start("local[2]", settings)
    # Python workers are started before the first period, as in a cluster that runs.
    qv.read_log(log_file(1000), engine=Spark(session, work_dir=str(work))).close()
    series = qv.Series.init(work / "ledger", qv.Equality(k=K), retention="13months")
    found, waited = [], 0
    with timed():
        for number, file in enumerate(periods(int(users))):
            before, begin = _totals(session)["shuffle"], time.perf_counter()
            log = qv.read_log(str(file), engine=Spark(session, work_dir=str(work)))
            read, read_shuffle = time.perf_counter() - begin, _totals(session)["shuffle"] - before
            rows = log.stats.rows
            period = series.add(log, work / f"release-{number}")
            log.close()
            found.append(
                {
                    "rows": rows,
                    "waited": waited,
                    "released": period.released,
                    "read": read,
                    "read shuffle": read_shuffle,
                    "seconds": time.perf_counter() - begin,
                    "shuffle": _totals(session)["shuffle"] - before,
                }
            )
            waited = period.waiting
    session.stop()
    shutil.rmtree(work, ignore_errors=True)
    print(json.dumps(found))


def report(users: list[int], times: int) -> Iterator[str]:
    """The cost of each period, and of a million rows that come or wait, as Markdown."""
    for size in users:
        found = json.loads(run(f"{HERE}:spark", size, "8g").told)
        yield "| period | rows that came | events that waited | released | read | release and ledger | shuffled |"
        yield "|---|---|---|---|---|---|---|"
        for number, one in enumerate(found, 1):
            yield (
                f"| {number} | {one['rows']:,} | {one['waited']:,} | {one['released']:,} | {one['read']:.0f} s"
                f" | {one['seconds'] - one['read']:.0f} s | {one['shuffle'] / 2**20:,.0f} MiB |"
            )
        known = np.array([[1, one["rows"] / 1e6, one["waited"] / 1e6] for one in found])
        yield ""
        yield "| | for each period | a million rows that come | a million events that wait |"
        yield "|---|---|---|---|"
        adding = [(one["seconds"] - one["read"], (one["shuffle"] - one["read shuffle"]) / 2**20) for one in found]
        reading = [(one["read"], one["read shuffle"] / 2**20) for one in found]
        for what, costs, columns in (("read", reading, 2), ("release and ledger", adding, 3)):
            for unit, values in zip(("s", "MiB"), zip(*costs, strict=True), strict=True):
                fitted = np.linalg.lstsq(known[:, :columns], np.array(values), rcond=None)[0]
                yield f"| {what} | " + " | ".join(f"{value:.1f} {unit}" for value in fitted) + " |" * (4 - columns)
        yield ""
