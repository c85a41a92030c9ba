"""Evaluating and attacking a release, beside reading its log: time, memory, growth, and where the time goes."""

import json
import math
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.harness import log_file, run, timed

HERE = "benchmarks.evaluation"
METHODS: dict[str, dict[str, Any]] = {
    "equality": {"k": 5, "link": "session"},
    "odp": {"k": 5},
    "rules": {"max_characters": 1000, "link": "user"},
    "hash": {"link": "user"},
}
"""Sessions of few queries; records that are shared; the log as it is, which rules so wide release; tokens."""
BACKGROUND = ("history linkage", "attribution")
"""Attacks whose time is shown even where others take longer."""
WORK = {"evaluate": "evaluated", "attack": "attacked"}


def report(sizes: list[int], times: int) -> Iterator[str]:
    """The section of benchmarks/README.md."""
    yield "| users | events | release by | what | seconds | of all cores | times reading | memory | slowest parts |"
    yield "|---|---|---|---|---|---|---|---|---|"
    cost: dict[tuple[str, str], list[tuple[int, float]]] = {(name, what): [] for name in METHODS for what in WORK}
    for users in sizes:
        read = run(f"{HERE}:reading", users, times=times)
        told = json.loads(read.told)
        base = told["busy"]
        yield (
            f"| {users:,} | {told['events']:,} | | reading the log | {read.seconds:.1f} s | {base:.1f} s | 1"
            f" | {read.peak_gib:.1f} GiB | |"
        )
        for name, what in cost:
            found = run(f"{HERE}:{WORK[what]}", users, name, times=times)
            told = json.loads(found.told)
            cost[name, what].append((told["events"], told["busy"]))
            parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in told["parts"])
            yield (
                f"| {users:,} | {told['events']:,} | {name} | {what} | {found.seconds:.1f} s | {told['busy']:.1f} s"
                f" | {told['busy'] / base:.1f} | {found.peak_gib:.1f} GiB | {parts} |"
            )
    for (name, what), found in cost.items():
        for (a, x), (b, y) in pairwise(found):
            grown = math.log(y / x) / math.log(b / a)
            yield f"\n{what}, {name}: growth exponent from {a:,} to {b:,} events: {grown:.2f}."


def reading(users: str) -> None:
    """Read a log."""
    from queryveil import read_log

    path = log_file(int(users))
    with tempfile.TemporaryDirectory() as folder:
        read_log(_small(folder))
    begun = time.process_time()
    with timed():
        log = read_log(path)
    print(json.dumps({"events": log.stats.events, "busy": time.process_time() - begun}))


def evaluated(users: str, name: str) -> None:
    """Evaluate a release that was just made."""
    from queryveil.assess.evaluation import evaluate

    _measured(users, name, lambda release, log, step: evaluate(release, log, progress=step))


def attacked(users: str, name: str) -> None:
    """Attack a release that was just made, with five numbers of known queries."""
    from queryveil.assess.attacks import attack

    _measured(users, name, lambda release, log, step: attack(release, log, progress=step))


def _measured(users: str, name: str, work: Any) -> None:
    from queryveil import read_log
    from queryveil.methods import METHODS as KNOWN

    method = KNOWN[name](**METHODS[name])
    with tempfile.TemporaryDirectory() as folder:
        small = read_log(_small(folder))
        work(method.anonymize(small), small, lambda what: None)  # compiled before the clock starts
    log = read_log(log_file(int(users)))
    release = method.anonymize(log)
    steps: list[tuple[str, float]] = []
    begun = time.process_time()
    with timed():
        work(release, log, lambda what: steps.append((what, time.process_time())))
        steps.append(("", time.process_time()))
    busy = time.process_time() - begun  # others on the machine make a run longer, but not busier
    parts: dict[str, float] = {}
    for (what, begin), (_, end) in pairwise(steps):
        parts[what] = parts.get(what, 0.0) + end - begin
    slowest = sorted(parts.items(), key=lambda part: -part[1])[:3]
    slowest += [(what, parts[what]) for what in BACKGROUND if what in parts and (what, parts[what]) not in slowest]
    print(json.dumps({"events": log.stats.events, "busy": busy, "parts": slowest}))


def _small(folder: str) -> Path:
    from queryveil import generate

    generate(Path(folder) / "small.tsv", users=300, seed=2)
    return Path(folder) / "small.tsv"
