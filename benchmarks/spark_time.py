"""Where Spark spends its time, job by job, from its own event log, beside the local engine in the same run."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import DATA, log_file, run, timed
from benchmarks.knowledge import _world
from benchmarks.spark import jobs

HERE = "benchmarks.spark_time"
JOBS = ("read", "equality", "affinity", "verify equality", "verify affinity")
PYTHON = "time to run Python workers"


def spark(path: str, directory: str, memory: str) -> None:
    """Every job on Spark with two cores of this machine, with what its event log says about each."""
    from queryveil.engines.spark import Spark
    from queryveil.engines.spark_session import start

    work = DATA / f"spark-{os.getpid()}"
    (work / "events").mkdir(parents=True)
    settings = {
        "spark.driver.memory": memory,
        "spark.local.dir": str(work),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{work}/events",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    session = start("local[2]", settings)
    engine = Spark(session, work_dir=str(work))
    spans: dict[str, tuple[float, float]] = {}
    with timed():
        for name, job in jobs(path, engine, directory):
            if name not in JOBS:
                continue
            begin = time.time()
            job()
            spans[name] = (begin * 1000, time.time() * 1000)
    engine.close()
    session.stop()
    (file,) = (work / "events").iterdir()
    print(json.dumps(_by_job(file, spans)))
    shutil.rmtree(work, ignore_errors=True)


def _by_job(file: Path, spans: dict[str, tuple[float, float]]) -> dict[str, dict[str, float]]:
    """What the event log of an application says about each of some spans of time."""
    events = [json.loads(line) for line in file.read_text().splitlines()]
    return {name: _span(events, *span) for name, span in spans.items()}


def _span(events: list[dict[str, Any]], begin: float, end: float) -> dict[str, float]:
    """Wall-clock time, and how much of it Spark ran jobs; what its tasks did, in seconds."""
    started = {
        event["Job ID"]: event["Submission Time"]
        for event in events
        if event["Event"] == "SparkListenerJobStart" and begin <= event["Submission Time"] < end
    }
    ended = {event["Job ID"]: event["Completion Time"] for event in events if event["Event"] == "SparkListenerJobEnd"}
    tasks = [
        event
        for event in events
        if event["Event"] == "SparkListenerTaskEnd" and begin <= event["Task Info"]["Launch Time"] < end
    ]
    metrics = [task["Task Metrics"] for task in tasks if task.get("Task Metrics")]
    ran = [one["Executor Run Time"] for one in metrics]
    return {
        "seconds": (end - begin) / 1000,
        "busy": _covered([(at, ended[job]) for job, at in started.items()]) / 1000,
        "jobs": len(started),
        "tasks": len(tasks),
        "short": sum(one < 50 for one in ran),
        "run": sum(ran) / 1000,
        "cpu": sum(one["Executor CPU Time"] for one in metrics) / 1e9,
        "gc": sum(one["JVM GC Time"] for one in metrics) / 1000,
        "python": _python(tasks) / 1000,
        "shuffle": sum(one["Shuffle Write Metrics"]["Shuffle Bytes Written"] for one in metrics),
        "written": sum(one["Output Metrics"]["Bytes Written"] for one in metrics),
    }


def _python(tasks: list[dict[str, Any]]) -> float:
    """Milliseconds that tasks waited for Python."""
    return sum(
        float(one.get("Update") or 0)
        for task in tasks
        for one in task["Task Info"].get("Accumulables", ())
        if one.get("Name") == PYTHON
    )


def _covered(spans: list[tuple[float, float]]) -> float:
    """How long at least one of some spans lasts."""
    total, last = 0.0, 0.0
    for begin, end in sorted(spans):
        total += max(end - max(begin, last), 0)
        last = max(last, end)
    return total


def report(users: list[int], times: int) -> Iterator[str]:
    """Where the time goes, as Markdown."""
    yield (
        "| log | job | ratio to the local engine | Spark | no job runs | jobs | tasks (under 50 ms) | tasks ran |"
        " Python | garbage collection | shuffled | written |"
    )
    yield "|---" * 12 + "|"
    directory = _world()
    for size in users:
        path = str(log_file(size))
        with open(path, "rb") as file:
            million = (sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 24), b"")) - 1) / 1e6
        here = json.loads(run("benchmarks.spark:local", path, directory).told)
        there = json.loads(run(f"{HERE}:spark", path, directory, "4g").told)
        for job in JOBS:
            one = there[job]
            yield (
                f"| {million:.2f} M rows | {job} | {one['seconds'] / here[job]['seconds']:.0f} | {one['seconds']:.1f} s"
                f" | {one['seconds'] - one['busy']:.1f} s | {one['jobs']} | {one['tasks']} ({one['short']})"
                f" | {one['run']:.1f} s | {one['python']:.1f} s | {one['gc']:.1f} s"
                f" | {one['shuffle'] / 2**20:.0f} MiB | {one['written'] / 2**20:.0f} MiB |"
            )
