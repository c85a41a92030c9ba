"""Pipelines against their steps: what one release in several steps costs beside the steps one by one.

By hand, each step is a job of its own on the log that it sees in the pipeline: the log is scrubbed, affinity releases
the scrubbed log, and what it chose becomes a log for `odp`. Making a log of it (`QueryLog.only`) is not counted there,
but it is in the pipeline. Time is that of the processor, so that other work on the machine does not count.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.harness import log_file, run, timed
from queryveil import Affinity, Columns, Odp, Pipeline, QueryLog, Scrub, read_log, scrub
from queryveil.engines import Table

PIPELINES = {
    "scrub, affinity": lambda: [Scrub(), Affinity(k=5)],
    "scrub, affinity, columns": lambda: [Scrub(), Affinity(k=5), Columns(min_click_users=5, time="day")],
    "scrub, affinity, odp": lambda: [Scrub(), Affinity(k=5, theta=0.8), Odp(k=5)],
}


def report(sizes: Sequence[int], times: int) -> Iterator[str]:
    """The table of README.md."""
    yield "| log | pipeline | its steps by hand | pipeline | ratio | peak memory by hand | of the pipeline |"
    yield "|---|---|---|---|---|---|---|"
    for users in sizes:
        log_file(users)
        for name in PIPELINES:
            hand = run("benchmarks.pipelines:by_hand", users, name, times=times)
            whole = run("benchmarks.pipelines:pipeline", users, name, times=times)
            steps, seconds = json.loads(hand.told), json.loads(whole.told)["seconds"]
            total = sum(steps.values())
            each = ", ".join(f"{step} {cost:.1f}" for step, cost in steps.items())
            yield (
                f"| {users:,} users | {name} | {total:.1f} s ({each}) | {seconds:.1f} s | **{seconds / total:.2f}** |"
                f" {hand.peak_gib:.1f} GiB | {whole.peak_gib:.1f} GiB |"
            )


def _warm(name: str) -> None:
    """Compile the loops on a small log."""
    Pipeline(PIPELINES[name]()).anonymize(read_log(log_file(500)), seed=1)


def pipeline(users: str, name: str) -> None:
    """The pipeline."""
    _warm(name)
    log, begin = read_log(log_file(int(users))), time.process_time()
    with timed():
        Pipeline(PIPELINES[name]()).anonymize(log, seed=1)
    print(json.dumps({"seconds": time.process_time() - begin}))


def by_hand(users: str, name: str) -> None:
    """The steps, each timed by itself."""
    _warm(name)
    log, costs = read_log(log_file(int(users))), {}

    def cost(step: str, work: Callable[[], object]) -> object:
        begin = time.process_time()
        with timed():
            found = work()
        costs[step] = time.process_time() - begin
        return found

    _, affinity, *last = PIPELINES[name]()
    scrubbed = cost("scrub", lambda: scrub(log))
    assert isinstance(scrubbed, QueryLog)
    cost("affinity", lambda: affinity.anonymize(scrubbed, seed=1))
    if last:
        with scrubbed.workspace() as work:
            chosen: Table = affinity.select(scrubbed, work).queries
            if last[0].name == "columns":
                # It cannot run by itself; rules with a rule that drops nothing do the same.
                from queryveil import Rules

                rules = Rules(max_terms=1_000, time="day")
                cost("columns", lambda: rules.anonymize(scrubbed.only(chosen, "by hand"), seed=1))
            else:
                part = scrubbed.only(chosen, "by hand")
                cost(last[0].name, lambda: last[0].anonymize(part, seed=1))
    print(json.dumps(costs))


if __name__ == "__main__":
    for line in report([2000], 1):
        print(line)
