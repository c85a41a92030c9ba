"""Measure contenders, each run in a process of its own, so that memory is its own and caches are equal for all."""

import importlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Cost:
    """What the timed part of a run took."""

    seconds: float
    peak_gib: float
    told: str = ""
    """The last line that the contender printed."""


def run(contender: str, *arguments: str | int, times: int = 1) -> Cost:
    """Run `module:function` in a fresh process; the best of `times` runs, because others only add to it."""
    found = []
    for _ in range(times):
        command = [sys.executable, "-m", "benchmarks.harness", contender, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
        if done.returncode:
            raise RuntimeError(f"{contender} failed:\n{done.stderr}")
        *told, cost = done.stdout.splitlines()
        found.append(json.loads(cost) | {"told": told[-1] if told else ""})
    best = min(found, key=lambda cost: cost["seconds"])
    return Cost(best["seconds"], max(cost["peak_gib"] for cost in found), best["told"])


def log_file(users: int) -> Path:
    """A synthetic AOL file of so many users, made once."""
    from queryveil import generate

    DATA.mkdir(exist_ok=True)
    path = DATA / f"aol-{users}.tsv"
    if not path.exists():
        generate(path, users=users, seed=1)
    return path


@contextmanager
def timed() -> Iterator[None]:
    """The part of a contender that counts; everything before it is preparation."""
    start = time.perf_counter()
    yield
    _elapsed.append(time.perf_counter() - start)


_elapsed: list[float] = []


def main() -> None:
    """Run one contender and print its cost."""
    module, function = sys.argv[1].split(":")
    contender: Callable[..., None] = getattr(importlib.import_module(module), function)
    # The module under measurement imports this one by its name, not as __main__.
    shared = importlib.import_module("benchmarks.harness")
    contender(*sys.argv[2:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": sum(shared._elapsed), "peak_gib": peak}))


if __name__ == "__main__":
    main()
