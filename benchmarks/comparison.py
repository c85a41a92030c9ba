"""A comparison of methods against the sum of its single runs: what sharing the log and the work on it saves."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import log_file

METHODS = ("equality", "affinity", "odp", "mdav", "clump", "poblete")
KS = (2, 5, 10, 20)
MAIN = "from queryveil.cli import main; main()"


def report(sizes: list[int], times: int) -> Iterator[str]:
    """The section of benchmarks/README.md; each is run once, because the whole takes its time."""
    yield "| users | releases | what | seconds | of all cores | ratio of seconds | of cores | report |"
    yield "|---|---|---|---|---|---|---|---|"
    for users in sizes:
        log = str(log_file(users))
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            _call("profile", log)  # the log into the cache of the system
            both = {}
            for processes in (1, 2):
                out = place / f"comparison {processes}"
                words = ["--methods", ",".join(METHODS), "-k", ",".join(map(str, KS)), "-o", str(out)]
                both[processes] = _call("compare", log, *words, "--processes", str(processes))
            size = (place / "comparison 1" / "report.html").stat().st_size
            cells = sorted((place / "comparison 1" / "cells").glob("*.json"))
            alone = [_single(log, cell.stem, place / cell.stem) for cell in cells]
        seconds, busy = (sum(one[i] for one in alone) for i in (0, 1))
        yield f"| {users:,} | {len(cells)} | single runs | {seconds:.0f} s | {busy:.0f} s | 1 | 1 | |"
        for processes, (took, used) in both.items():
            what = "compare, one process" if processes == 1 else "compare, two processes"
            yield (
                f"| {users:,} | {len(cells)} | {what} | {took:.0f} s | {used:.0f} s | {took / seconds:.2f}"
                f" | {used / busy:.2f} | {size / 1e6:.2f} MB |"
            )


def _single(log: str, cell: str, place: Path) -> tuple[float, float]:
    """The same release by the other verbs: made and checked, evaluated, attacked."""
    method, *given = cell.split("_")
    parameters = []
    for one in given:
        name, value = one.split("-", 1)
        parameters += [f"-{name}" if len(name) == 1 else f"--{name}", value]
    release, known = str(place / "release"), str(place / "map.csv")
    place.mkdir()
    told = [] if "users-drop" in given else ["--user-map", known]
    costs = [_call("anonymize", log, "--method", method, *parameters, "-o", release, *told, "--allow-empty")]
    costs += [_call("evaluate", release, "--original", log, *told)]
    costs += [_call("attack", release, "--original", log, *told, "-m", "1,3,5")]
    return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)


def _call(*words: str) -> tuple[float, float]:
    """Seconds by the clock, and of all cores, that a command takes."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", MAIN, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begun, busy
