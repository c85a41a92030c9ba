"""`plan` against trying everything: the same releases, each made, checked, attacked and measured.

Time is that of the processor, so that other work on the machine does not count. Of many users everything would take too
long; there, `plan` is compared with one configuration of a comparison, by a pipeline with affinity and odp.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracles.planning import exhaustive

from benchmarks.harness import log_file, run, timed
from queryveil import QueryLog, load_policy, plan, read_log
from queryveil.assess.comparison import Configuration, Job
from queryveil.log.sharing import sharing

AIMS = ("long-tail", "sessions", "profiles", "statistics")
LARGE = 5_000


def report(sizes: Sequence[int], times: int) -> Iterator[str]:
    """The table of README.md."""
    yield "| log | aim | plan | everything, or one configuration | ratio | plan found | everything found |"
    yield "|---|---|---|---|---|---|---|"
    for users in sizes:
        log_file(users)
        for aim in AIMS:
            mine = json.loads(run("benchmarks.planning:planned", users, aim, times=times).told)
            other = "one" if users > LARGE else "everything"
            theirs = json.loads(run(f"benchmarks.planning:{other}", users, aim, times=1).told)
            ratio = mine["seconds"] / theirs["seconds"]
            yield (
                f"| {users:,} users | {aim} | {mine['seconds']:.0f} s | {theirs['seconds']:.0f} s | **{ratio:.2f}** |"
                f" {mine['found']} | {theirs['found']} |"
            )


def planned(users: str, aim: str) -> None:
    """What `plan` finds, and its time."""
    _tell(int(users), lambda log: getattr(plan(log, aim).configuration, "name", None))


def everything(users: str, aim: str) -> None:
    """What trying everything finds, and its time."""
    _tell(int(users), lambda log: (exhaustive(log, aim, load_policy()) or [None])[0])


def one(users: str, aim: str) -> None:
    """The time of one configuration of a comparison."""
    _tell(int(users), _configuration)


def _configuration(log: QueryLog) -> None:
    steps = [{"method": name, "parameters": {"k": 5}} for name in ("affinity", "odp")]
    with TemporaryDirectory() as folder, sharing(log):
        Job(Path(folder), "wordnet", 2_000, 0).do(Configuration("affinity, odp", "pipeline", 5, {"steps": steps}), log)


def _tell(users: int, work: Callable[[QueryLog], str | None]) -> None:
    log, began = read_log(log_file(users)), time.process_time()
    with timed():
        found = work(log)
    print(json.dumps({"seconds": time.process_time() - began, "found": found}))
