"""Generalization by the nouns of WordNet, top down: Partition of users, WNGEN of queries."""

import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness import DATA, log_file, run, timed

HERE = "benchmarks.generalization"
K = 5


def report(sizes: list[int], times: int) -> Iterator[str]:
    """The sections of benchmarks/README.md."""
    for users in sizes:
        if not _prepared(users).exists():
            run(f"{HERE}:prepare", users)
    yield "| transactions | items each | seconds | peak memory | kernel alone | partitions | nodes each | GGD |"
    yield "|---|---|---|---|---|---|---|---|"
    yield from _rows("partitioned", sizes, times, "items", "each", "partitions", "nodes", "ggd")
    yield "| distinct queries | query, user | seconds | peak memory | kernel alone | clusters | at the root | depth |"
    yield "|---|---|---|---|---|---|---|---|"
    yield from _rows("clustered", sizes, times, "pairs", "pairs", "clusters", "root", "depth")


def _rows(contender: str, sizes: list[int], times: int, unit: str, *told: str) -> Iterator[str]:
    """A row a size, and how the time grows."""
    work, seconds = [], []
    for users in sizes:
        cost = run(f"{HERE}:{contender}", users, times=times)
        found = json.loads(cost.told)
        work.append(found[unit])
        seconds.append(cost.seconds)
        yield (
            f"| {found['size']:,} | {found[told[0]]:,} | {cost.seconds:.2f} s | {cost.peak_gib:.1f} GiB"
            f" | {found['kernel']} | {' | '.join(found[name] for name in told[1:])} |"
        )
    for (a, b), (x, y) in zip(pairwise(work), pairwise(seconds), strict=True):
        yield f"\nGrowth exponent from {a:,} to {b:,} {unit}: {math.log(y / x) / math.log(b / a):.2f}."
    yield ""


def _prepared(users: int) -> Any:
    return DATA / f"wordnet-{users}.npz"


def prepare(users: str) -> None:
    """Keep what the kernels take, so that their memory is not that of reading a log and linking its queries."""
    from queryveil import read_log
    from queryveil.arrays import offsets
    from queryveil.knowledge import categorize
    from queryveil.methods.microaggregation.common import Searches
    from queryveil.methods.microaggregation.mdav import interests_of

    log = read_log(log_file(int(users)))
    links, searches = categorize(log, "wordnet", "terms"), Searches.of(log)
    first, nodes = links.nodes()
    pairs = np.unique(np.repeat(np.arange(len(links)) << 32, np.diff(first)) | nodes)
    interests = interests_of(searches, links)
    some = np.diff(interests.start) > 0
    tree = links.tree
    np.savez(
        _prepared(int(users)),
        start=np.append(0, interests.start[1:][some]),
        item=interests.item,
        query_start=np.searchsorted(pairs >> 32, np.arange(len(links) + 1)),
        query_node=(pairs & 0xFFFFFFFF).astype(np.int32),
        user_start=offsets(np.bincount(searches.query, minlength=len(links))),
        user=searches.owners[np.argsort(searches.query, kind="stable")].astype(np.int32),
        parent=tree.parent,
        depth=tree.depth,
        end=tree.end,
        leaves=tree.leaves,
    )


def _measured(work: Any) -> tuple[Any, str]:
    """What a timed call gives, and by how much it raised the peak of memory."""

    def resident(field: str) -> int:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(field))

    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")  # the peak so far is forgotten
    before = resident("VmRSS")
    with timed():
        found = work()
    return found, f"{(resident('VmHWM') - before) / 2**20:.2f} GiB"


def partitioned(users: str) -> None:
    """Partition the users of a log by their nouns."""
    from queryveil.kernels.partitions import partition_transactions

    kept = np.load(_prepared(int(users)))
    start, item = kept["start"], kept["item"]
    tree = [kept[name] for name in ("parent", "depth", "end", "leaves")]
    partition_transactions(start[:21], item[: start[20]], *tree, K)
    (part, first, node), kernel = _measured(lambda: partition_transactions(start, item, *tree, K))
    size, width = np.bincount(part), np.diff(first)
    leaves = tree[-1]
    generalized = np.add.reduceat((leaves[node] - 1) / (leaves[0] - 1), first[:-1])
    ggd = (size * generalized).sum() + len(item) - (size * width).sum()
    print(
        json.dumps(
            {
                "size": len(part),
                "items": len(item),
                "each": round(len(item) / len(part), 1),
                "kernel": kernel,
                "partitions": f"{len(size):,}",
                "nodes": f"{(size * width).sum() / len(part):.2f}",
                "ggd": f"{ggd / len(item):.1%}",
            }
        )
    )


def clustered(users: str) -> None:
    """Cluster the queries of a log by their nouns."""
    from queryveil.kernels.wngen import cluster_queries

    kept = np.load(_prepared(int(users)))
    log = [kept[name] for name in ("query_start", "query_node", "user_start", "user")]
    tree = [kept[name] for name in ("parent", "depth", "end")]
    cluster_queries(np.zeros(1, np.int64), log[1][:0], np.zeros(1, np.int64), log[3][:0], 0, *tree, K)
    found, kernel = _measured(lambda: cluster_queries(*log, int(log[3].max()) + 1, *tree, K))
    print(
        json.dumps(
            {
                "size": len(found),
                "pairs": len(log[3]),
                "kernel": kernel,
                "clusters": f"{len(np.unique(found)):,}",
                "root": f"{(found == 0).mean():.1%}",
                "depth": f"{tree[1][found].mean():.2f}",
            }
        )
    )
