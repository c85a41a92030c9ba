"""Clump: against the literal algorithm over the whole tree, up to the size of AOL, and what better clusters gain."""

import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness import DATA, log_file, run, timed
from benchmarks.microaggregation import _tell

HERE = "benchmarks.clump"
K, R = 5, 10
PAPER = 65_000, 53_058  # users of a log with as many transactions as the paper has, and these


def report(sizes: list[int], times: int) -> Iterator[str]:
    """The sections of benchmarks/README.md."""
    yield from _literal(times)
    yield from _growth(sizes, times)
    yield from _gain()
    yield from _blocks()


def _transactions(users: int, most: int) -> tuple[Any, ...]:
    """The first transactions of a log as in the paper, every noun of a user once, and the arrays of their tree.

    They are made in a process of their own and kept, so that the memory of reading the log is not counted.
    """
    path = DATA / f"clump-{users}.npz"
    if not path.exists():
        run(f"{HERE}:prepared", users)
    data = np.load(path)
    size = np.diff(data["start"])
    size = size[size > 0][:most]
    start = np.concatenate([[0], np.cumsum(size)])
    node = data["node"][: start[-1]]
    return start, node, np.ones(len(node), np.int64), data["parent"], data["depth"], data["leaves"]


def prepared(users: str) -> None:
    """Read and link a log."""
    from queryveil import read_log
    from queryveil.knowledge import categorize
    from queryveil.methods.microaggregation.common import Searches
    from queryveil.methods.microaggregation.mdav import interests_of

    log = read_log(log_file(int(users)))
    links = categorize(log, "wordnet", "terms")
    found, tree = interests_of(Searches.of(log), links), links.tree
    np.savez(
        DATA / f"clump-{users}.npz",
        start=found.start, node=found.item, parent=tree.parent, depth=tree.depth, leaves=tree.leaves,
    )  # fmt: skip


def _longest_first(start: Any) -> Any:
    return np.argsort(-np.diff(start), kind="stable")


def _literal(times: int) -> Iterator[str]:
    yield "| transactions | rule | the literal algorithm, NumPy | queryveil | times faster | same clusters |"
    yield "|---|---|---|---|---|---|"
    for most in (500, 1000):
        theirs = run(f"{HERE}:literal", most)
        ours = run(f"{HERE}:clustered", 2000, most, "greedy", K, "paper", times=times)
        same = "yes" if theirs.told == json.loads(ours.told)["clusters"] else "NO"
        yield (
            f"| {most:,} | paper | {theirs.seconds:.1f} s | {ours.seconds:.4f} s"
            f" | **{theirs.seconds / ours.seconds:,.0f}** | {same} |"
        )
    yield ""


def literal(most: str) -> None:
    """Algorithms 1 and 2 with arrays as long as the tree."""
    start, node, _, parent, depth, leaves = _transactions(2000, int(most))
    n = len(start) - 1
    levels = [np.flatnonzero(depth == level) for level in range(1, int(depth.max()) + 1)][::-1]
    # The children of a node are neighbours on their level.
    families = [(level, np.flatnonzero(np.diff(parent[level], prepend=-1))) for level in levels]
    lost = leaves.astype(np.int64) - 1

    def row(t: int) -> Any:
        found = np.zeros(len(parent), np.int64)
        found[node[start[t] : start[t + 1]]] = 1
        return found

    def lcg(one: Any, other: Any) -> Any:
        found = np.zeros(len(parent), np.int64)
        both = np.stack([one, other])
        shortest = both.sum(axis=1).min()
        for level, first in families:
            least = both[:, level].min(axis=0)
            found[level] = least
            handed = np.where(least > 0, 0, both[:, level])
            both[:, parent[level[first]]] += np.add.reduceat(handed, first, axis=1)
        found[0] = shortest - found.sum()
        return found

    with timed():
        order = _longest_first(start)
        clusters = [[int(t)] for t in order[: n // K * K : K]]
        seeds = {cluster[0] for cluster in clusters}
        lcgs = [row(cluster[0]) for cluster in clusters]
        items = np.diff(start)
        for t in order.tolist():
            if t in seeds:
                continue
            open_ = [c for c in range(len(clusters)) if len(clusters[c]) < K][:R]
            options = []
            for c in open_ or range(len(clusters)):
                found = lcg(lcgs[c], row(t))
                members = [*clusters[c], t]
                distortion = len(members) * found @ lost + lost[0] * (items[members] - found.sum()).sum()
                options.append((int(distortion), c, found))
            _, best, lcgs[best] = min(options, key=lambda option: option[:2])
            clusters[best].append(t)
    cluster = np.empty(n, np.int64)
    for c, members in enumerate(clusters):
        cluster[members] = c
    _tell(cluster)


def clustered(users: str, most: str, clustering: str, k: str, rule: str) -> None:
    """Our clusters and their LCGs."""
    import hashlib

    from queryveil.kernels.clump import greedy, seeds_first
    from queryveil.kernels.lcg import distortions, lcgs
    from queryveil.kernels.nearest_clusters import nearest

    def made(data: tuple[Any, ...]) -> tuple[Any, Any]:
        order = _longest_first(data[0])
        if clustering == "greedy":
            order = seeds_first(order, int(k))
            cluster = greedy(*data, order, int(k), R, rule == "tight", False)
        else:
            cluster = nearest(*data, order, int(k), rule == "tight", 2)
        found = lcgs(*data, order, cluster, len(order) // int(k), rule == "tight")
        return cluster, distortions(*found, data[5], np.diff(data[0]), cluster)

    made(_transactions(2000, 50))
    data = _transactions(int(users), int(most))
    with timed():
        cluster, distortion = made(data)
    told = {
        "transactions": len(cluster),
        "items": int(data[0][-1]),
        "distortion": int(distortion.sum()) / (int(data[5][0]) - 1),
        "least": int(np.bincount(cluster).min()),
        "clusters": hashlib.sha256(np.asarray(cluster, np.int64).tobytes()).hexdigest()[:16],
    }
    print(json.dumps(told))


def _growth(sizes: list[int], times: int) -> Iterator[str]:
    yield "| users | transactions | items each | rule | clusters | time | peak memory | distortion | of all items |"
    yield "|---|---|---|---|---|---|---|---|---|"
    ends = []
    for rule in ("paper", "tight"):
        for clustering in ("greedy", "nearest"):
            found = []
            for users, most in (PAPER, *((users, users) for users in sizes)):
                cost = run(f"{HERE}:clustered", users, most, clustering, K, rule, times=times)
                told = json.loads(cost.told)
                found.append((told["transactions"], cost.seconds))
                yield (
                    f"| {users:,} | {told['transactions']:,} | {told['items'] / told['transactions']:.1f} | {rule}"
                    f" | {clustering} | {cost.seconds:,.1f} s | {cost.peak_gib:.2f} GiB | {told['distortion']:,.0f}"
                    f" | {told['distortion'] / told['items']:.1%} |"
                )
            grown = [math.log(y / x) / math.log(b / a) for (a, x), (b, y) in pairwise(found)]
            ends.append(f"{rule}, {clustering}: " + ", ".join(f"{exponent:.2f}" for exponent in grown))
    yield f"\nGrowth exponents from size to size: {'; '.join(ends)}."
    yield ""


def _gain() -> Iterator[str]:
    yield "| transactions | k | rule | greedy | nearest | gain | tight instead of paper, greedy | nearest |"
    yield "|---|---|---|---|---|---|---|---|"
    for users, most in ((10_000, 10_000), PAPER):
        for k in (5, 10):
            paper: dict[str, float] = {}
            for rule in ("paper", "tight"):
                told = {
                    clustering: json.loads(run(f"{HERE}:clustered", users, most, clustering, k, rule).told)
                    for clustering in ("greedy", "nearest")
                }
                loss = {clustering: one["distortion"] for clustering, one in told.items()}
                shown = [f"{1 - loss[name] / paper[name]:.1%}" if paper else "" for name in loss]
                gain = 1 - loss["nearest"] / loss["greedy"]
                yield (
                    f"| {told['greedy']['transactions']:,} | {k} | {rule} | {loss['greedy']:,.0f}"
                    f" | {loss['nearest']:,.0f} | **{gain:.1%}** | {shown[0]} | {shown[1]} |"
                )
                paper = paper or loss
    yield ""


def _blocks() -> Iterator[str]:
    yield "| users | clusters | rule | transactions of a block | distortion, of all items | more than exact |"
    yield "|---|---|---|---|---|---|"
    for clustering in ("greedy", "nearest"):
        for rule in ("paper", "tight"):
            lost = json.loads(run(f"{HERE}:in_blocks", 20_000, clustering, rule).told)
            for size, share in lost.items():
                yield (
                    f"| 20,000 | {clustering} | {rule} | {'all' if size == '0' else f'{int(size):,}'} | {share:.4f}"
                    f" | {share - lost['0']:+.4f} |"
                )
    yield ""


def in_blocks(users: str, clustering: str, rule: str) -> None:
    """The distortion of clusters that are made in blocks of several sizes; 0 stands for one block."""
    from queryveil.knowledge import open_taxonomy
    from queryveil.methods.generalization.clump import Clump
    from queryveil.methods.generalization.common import Transactions, loss_of

    start, node, *_ = _transactions(int(users), int(users))
    mine = Transactions(start, np.arange(len(start) - 1), node, open_taxonomy("wordnet").tree)
    method = Clump(k=K, clustering=clustering, tight=rule == "tight")
    lost = {}
    with timed():
        for size in (0, 10_000, 5_000, 2_000, 500):
            parts = max(1, round(len(mine) / size)) if size else 1
            lost[str(size)] = loss_of(mine, method.in_blocks(mine, parts, threads=2)[0]).per_item
    print(json.dumps(lost))
