"""Spark in local mode against the local engine, job by job on the same file, with what Spark shuffled and spilled."""

import json
import math
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import DATA, log_file, run, timed
from benchmarks.knowledge import _world

HERE = "benchmarks.spark"
JOBS = (
    "read", "profile", "rules", "affinity", "verify affinity", "equality", "verify equality", "odp", "verify odp",
    "counts", "verify counts", "partition", "verify partition", "wngen", "verify wngen", "clump", "verify clump",
)  # fmt: skip


def jobs(path: str, engine: Any, directory: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """The jobs, each on what the one before made; odp needs a web directory."""
    import queryveil as qv
    from queryveil.methods.recipe import load_recipe

    made: dict[str, Any] = {}

    def read() -> None:
        made["log"] = qv.read_log(path, engine=engine)

    def profile() -> None:
        qv.profile(made["log"])

    def write(method: Any) -> None:
        made.pop("release", None)
        made["release"] = release = method.anonymize(made["log"], seed=1)
        place = DATA / f"spark-out-{os.getpid()}"
        place.mkdir()
        made["log"].write(made["log"].folder(place), "log.parquet", "parquet", release.schema, release.batches)
        shutil.rmtree(place)

    def check() -> None:
        if not qv.verify(made["release"], made["log"]).holds:
            raise RuntimeError("a release was refuted")

    recipe = load_recipe("dma-30-5")
    yield "read", read
    yield "profile", profile
    yield "rules", lambda: write(qv.Rules(**recipe.parameters))
    yield "affinity", lambda: write(qv.Affinity(k=5, theta=0.9))
    yield "verify affinity", check
    yield "equality", lambda: write(qv.Equality(k=5))
    yield "verify equality", check
    yield "odp", lambda: write(qv.Odp(k=5, taxonomy=directory))
    yield "verify odp", check
    yield "counts", lambda: write(qv.Counts(by=("query", "url"), min_row_users=5))
    yield "verify counts", check
    for name, method in (("partition", qv.Partition(k=5)), ("wngen", qv.Wngen(k=5)), ("clump", qv.Clump(k=5))):
        yield name, lambda method=method: write(method)
        yield f"verify {name}", check


def local(path: str, directory: str) -> None:
    """Every job on DuckDB."""
    import queryveil as qv

    qv.read_log(Path(__file__).parent / "warm.tsv")
    seconds = {}
    with timed():
        for name, job in jobs(path, None, directory):
            start = time.perf_counter()
            job()
            seconds[name] = {"seconds": time.perf_counter() - start}
    print(json.dumps(seconds))


def spark(path: str, directory: str, memory: str) -> None:
    """Every job on Spark with two cores of this machine."""
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
    engine = Spark(session, work_dir=str(work))
    found: dict[str, dict[str, float]] = {}
    before = _totals(session)
    with timed():
        for name, job in jobs(path, engine, directory):
            start_time = time.perf_counter()
            job()
            seconds = time.perf_counter() - start_time
            after = _totals(session)
            found[name] = {"seconds": seconds} | {key: after[key] - before[key] for key in after}
            found[name]["stored"] = sum(f.stat().st_size for f in work.glob("queryveil_*/**/*") if f.is_file())
            before = after
            print(name, json.dumps(found[name]), file=sys.stderr, flush=True)
    engine.close()
    session.stop()
    shutil.rmtree(work, ignore_errors=True)
    print(json.dumps(found))


def _totals(session: Any) -> dict[str, float]:
    """What all stages so far shuffled, and spilled to disk."""
    context = session.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(address) as answer:
        stages = json.load(answer)
    return {
        "shuffle": sum(stage["shuffleWriteBytes"] for stage in stages),
        "spill": sum(stage["diskBytesSpilled"] for stage in stages),
        "stages": len(stages),
    }


def report(users: list[int], times: int) -> Iterator[str]:
    """Ratios, shuffles and growth, as Markdown."""
    costs: dict[tuple[str, str, int], dict[str, float]] = {}
    yield "| log | job | local engine | Spark | ratio | shuffled a million rows | spilled a million rows |"
    yield "|---|---|---|---|---|---|---|"
    rows, directory = {}, _world()
    for size in users:
        path = str(log_file(size))
        with open(path, "rb") as file:
            rows[size] = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 24), b"")) - 1
        here = json.loads(run(f"{HERE}:local", path, directory).told)
        there = json.loads(run(f"{HERE}:spark", path, directory, "8g").told)
        for job in JOBS:
            costs["local", job, size], costs["spark", job, size] = here[job], there[job]
            million = rows[size] / 1e6
            mib = {key: there[job][key] / million / 2**20 for key in ("shuffle", "spill")}
            ratio = there[job]["seconds"] / here[job]["seconds"]
            yield (
                f"| {million:.1f} M rows | {job} | {here[job]['seconds']:.1f} s | {there[job]['seconds']:.0f} s "
                f"| {ratio:.1f} | {mib['shuffle']:.0f} MiB | {mib['spill']:.0f} MiB |"
            )
        stored = there["read"]["stored"] / million / 2**20
        yield f"| {million:.1f} M rows | the log's own tables | | {stored:.0f} MiB a million rows | | | |"
    if len(users) > 1:
        small, large = users[0], users[-1]
        larger = math.log(rows[large] / rows[small])
        times_longer = {
            job: costs["spark", job, large]["seconds"] / costs["spark", job, small]["seconds"] for job in JOBS
        }
        growth = [f"{job} {math.log(times_longer[job]) / larger:.2f}" for job in JOBS]
        yield ""
        yield f"Growth exponents on Spark between {small:,} and {large:,} users (1 is linear): {', '.join(growth)}."
