"""Microaggregation: against the literal algorithm with a dense matrix, at the size of AOL, and what blocks lose."""

import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness import log_file, run, timed
from benchmarks.knowledge import _world

HERE = "benchmarks.microaggregation"
K = 5


def report(sizes: list[int], times: int) -> Iterator[str]:
    """The sections of benchmarks/README.md."""
    yield from _literal(times)
    yield from _exact()
    yield from _blocks(sizes)
    yield from _loss()


def _log(users: int) -> Any:
    from queryveil import read_log

    return read_log(log_file(users))


def _profiles(log: Any, taxonomy: str, linker: str) -> Any:
    from queryveil.knowledge import categorize
    from queryveil.methods.microaggregation.common import Profiles, Searches

    searches = Searches.of(log)
    return searches, Profiles.of(searches, categorize(log, taxonomy, linker), 5)


def _literal(times: int) -> Iterator[str]:
    yield "| users | groups by | the literal algorithm, NumPy | queryveil | times faster | same groups |"
    yield "|---|---|---|---|---|---|"
    for users in (500, 1000, 2000):
        theirs = run(f"{HERE}:literal", users)
        ours = run(f"{HERE}:grouped", users, "exact", times=times)
        same = "yes" if theirs.told == ours.told else "NO"
        yield (
            f"| {users:,} | terms, WordNet | {theirs.seconds:.2f} s | {ours.seconds:.3f} s"
            f" | **{theirs.seconds / ours.seconds:,.0f}** | {same} |"
        )
    yield ""


def literal(users: str) -> None:
    """Algorithms 2 to 4 with the whole matrix of similarities."""
    _, profiles = _profiles(_log(int(users)), "wordnet", "terms")
    n = len(profiles.start) - 1
    user = np.repeat(np.arange(n), np.diff(profiles.start))
    with timed():
        matrix = np.zeros((n, n), np.int64)
        for feature in np.unique(profiles.feature):
            here = profiles.feature == feature
            column = np.zeros(n, np.int64)
            column[user[here]] = profiles.count[here]
            matrix += np.minimum.outer(column, column)
        order = np.lexsort((np.arange(n), ~profiles.linked))
        matrix = matrix[np.ix_(order, order)]
        np.fill_diagonal(matrix, -1)
        group, left, groups = np.full(n, -1), n, 0
        alive = np.ones(n, bool)
        while left >= 2 * K:
            one, other = np.unravel_index(matrix.argmax(), matrix.shape)
            row = matrix[one] + matrix[other]
            members = [one, other]
            while len(members) < K:
                row[members] = -1
                members.append(int(np.where(alive, row, -1).argmax()))
                row = row + matrix[members[-1]]
            group[members] = groups
            alive[members] = False
            matrix[members] = matrix[:, members] = -1
            left -= K
            groups += 1
        group[alive] = groups
    found = np.empty(n, np.int64)
    found[order] = group
    _tell(found)


def _tell(group: Any) -> None:
    import hashlib

    print(hashlib.sha256(np.asarray(group, np.int64).tobytes()).hexdigest()[:16])


def grouped(users: str, grouping: str) -> None:
    """Our groups of the same users."""
    from queryveil.kernels.groups import SUMMED
    from queryveil.methods.microaggregation.common import group_users

    _, profiles = _profiles(_log(int(users)), "wordnet", "terms")
    group_users(profiles.take(np.arange(20)), K, SUMMED, "exact")
    with timed():
        group, _ = group_users(profiles, K, SUMMED, grouping)  # type: ignore[arg-type]
    _tell(group)


def _exact() -> Iterator[str]:
    yield "| users | events | method | groups and records | peak memory |"
    yield "|---|---|---|---|---|"
    for method in ("odp", "search"):
        cost = run(f"{HERE}:released", 20_000, method, "exact")
        told = json.loads(cost.told)
        yield f"| {told['users']:,} | {told['events']:,} | {method} | {cost.seconds:.1f} s | {cost.peak_gib:.1f} GiB |"
    yield ""


def released(users: str, method: str, grouping: str) -> None:
    """Make a release, without reading the log and linking its queries."""
    from queryveil import Odp, Search
    from queryveil.knowledge import categorize

    log = _log(int(users))
    made: Any = {"odp": Odp, "search": Search}[method](k=K, taxonomy=_world(), grouping=grouping)
    links = categorize(log, _world(), "terms" if method == "odp" else "domains")
    with timed():
        release = made.release(log, links, seed=1)
    print(json.dumps({"users": log.n_users, "events": log.stats.events, "note": release.manifest.notes[0]}))


def _blocks(sizes: list[int]) -> Iterator[str]:
    yield "| users | events | groups and records, in blocks | peak memory | what the manifest notes |"
    yield "|---|---|---|---|---|"
    seconds = []
    for users in sizes:
        cost = run(f"{HERE}:released", users, "odp", "blocks")
        told = json.loads(cost.told)
        seconds.append(cost.seconds)
        yield (
            f"| {told['users']:,} | {told['events']:,} | {cost.seconds:,.0f} s | {cost.peak_gib:.1f} GiB"
            f" | {told['note']} |"
        )
    for (a, b), (x, y) in zip(pairwise(sizes), pairwise(seconds), strict=True):
        yield f"\nGrowth exponent from {a:,} to {b:,} users: {math.log(y / x) / math.log(b / a):.2f}."
    yield ""


def _loss() -> Iterator[str]:
    from queryveil import Odp
    from queryveil.assess.measures import srp
    from queryveil.knowledge import categorize
    from queryveil.methods.microaggregation import common as microaggregation

    log = _log(20_000)
    levels = 2
    yield "| 20,000 users, groups by | k | SRP exact, levels 1 and 2 | in blocks of 5,000 | of 10,000 | most lost |"
    yield "|---|---|---|---|---|---|"
    for name, taxonomy, linker in (
        ("terms, directory", _world(), "terms"), ("domains, directory", _world(), "domains"),
        ("terms, WordNet", "wordnet", "terms"), ("meaning, directory", _world(), "embedding"),
    ):  # fmt: skip
        links = categorize(log, taxonomy, linker)
        for k in (2, 5, 10):
            found = []
            for block in (None, 5_000, 10_000):
                microaggregation.BLOCK = block or 20_000
                method = Odp(k=k, grouping="exact" if block is None else "blocks")
                release = method.release(log, links, seed=1)
                found.append([row.mean for row in srp(release, links, levels)])
            lost = max(a - b for blocks in found[1:] for a, b in zip(found[0], blocks, strict=True))
            shown = " | ".join(", ".join(f"{value:.3f}" for value in row) for row in found)
            yield f"| {name} | {k} | {shown} | {lost:.3f} |"
    yield ""
