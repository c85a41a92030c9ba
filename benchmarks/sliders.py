"""Sliders and pages of a reviewer: a grid against a sweep over the same k and theta, look-ups, and pages of queries.

Time of the heavy parts is that of the processor, so that other work on the machine does not count; of look-ups and
pages it is the slowest answer as a person would wait for it.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from benchmarks.harness import log_file, run, timed
from queryveil import Equality, read_log, sweep
from queryveil.assess.browse import ORDERS, Browser
from queryveil.assess.grid import KS, THETAS, WORD_USERS
from queryveil.assess.grid_making import grid


def report(sizes: Sequence[int], times: int) -> Iterator[str]:
    """The table of README.md."""
    yield (
        "| log | grid | sweep of the same k and theta | ratio | slowest look-up: affinity, equality | pages prepared |"
        " slowest page | peak memory |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for users in sizes:
        log_file(users)
        cost = run("benchmarks.sliders:sliders", users, times=times)
        mine = json.loads(cost.told)
        theirs = json.loads(run("benchmarks.sliders:swept", users, times=times).told)
        yield (
            f"| {users:,} users | {mine['grid']:.1f} s | {theirs['sweep']:.1f} s |"
            f" **{mine['grid'] / theirs['sweep']:.1f}** |"
            f" {1000 * mine['slowest']:.0f}, {1000 * mine['equality']:.0f} ms |"
            f" {mine['prepared']:.1f} s | {1000 * mine['page']:.0f} ms | {cost.peak_gib:.1f} GiB |"
        )


def sliders(users: str) -> None:
    """A grid without linkage, every one of its settings, and the pages of what equality holds back."""
    log = read_log(log_file(int(users)))
    release = Equality(k=5).anonymize(log)
    with timed():
        began = time.process_time()
        found = grid(log, linkage_ks=())
        heavy = time.process_time() - began
        settings = product(found.ks, found.thetas, (None, *WORD_USERS))
        slowest = max(
            _waited(lambda at=at: found.at("affinity", k=at[0], theta=at[1], min_word_users=at[2])) for at in settings
        )
        equality = max(_waited(lambda k=k: found.at("equality", k=k)) for k in found.ks)
        began = time.process_time()
        browser = Browser(release, log)
        browser.prepare()
        prepared = time.process_time() - began
        last = browser.page("held").pages - 1
        asked = [{"order": order, "page": page} for order in ORDERS for page in (0, last // 2, last)]
        asked += [{"one_user": True, "page": 1}, {"contains": "a", "page": 1}]
        page = max(_waited(lambda one=one: browser.page("held", **one)) for one in asked)
    told = {"grid": heavy, "slowest": slowest, "equality": equality, "prepared": prepared, "page": page}
    print(json.dumps(told))


def swept(users: str) -> None:
    """A sweep over every k and theta of a grid, with one rule about words instead of four."""
    log = read_log(log_file(int(users)))
    with timed():
        began = time.process_time()
        sweep(log, ks=[k for k in KS if k <= log.n_users], thetas=THETAS)
        heavy = time.process_time() - began
    print(json.dumps({"sweep": heavy}))


def _waited(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
