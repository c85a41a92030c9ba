"""MDAV: distances and groups against the formula, at the size of AOL, what blocks lose, and another implementation."""

import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness import log_file, run, timed

HERE = "benchmarks.mdav"
K = 5


def report(sizes: list[int], times: int) -> Iterator[str]:
    """The sections of benchmarks/README.md."""
    yield from _literal(times)
    yield from _vectors(times)
    for distance in ("semantic", "strings", "features"):
        yield from _whole(distance, "exact", [5_000, 10_000])
    for distance in ("semantic", "strings", "features"):
        yield from _whole(distance, "blocks", sizes if distance == "semantic" else sizes[:1])
    yield from _loss()


def _drawn(users: int, categories: int) -> Any:
    """Users with so many nouns of WordNet each, some of them common to many."""
    from queryveil.knowledge import open_taxonomy
    from queryveil.methods.microaggregation.interests import Interests

    tree = open_taxonomy("wordnet").tree
    rng = np.random.default_rng(1)
    nouns = rng.permutation(np.arange(1, len(tree)))[:8_000]
    chance = 1 / np.arange(1, len(nouns) + 1) ** 0.7
    items = [np.sort(rng.choice(nouns, categories, False, chance / chance.sum())) for _ in range(users)]
    start = np.arange(users + 1) * categories
    weight = rng.integers(1, 5, users * categories)
    return Interests(start, np.concatenate(items).astype(np.int32), weight, len(tree), tree)


def _literal(times: int) -> Iterator[str]:
    yield "| users | categories each | | the formula, NumPy | queryveil | times faster | the same |"
    yield "|---|---|---|---|---|---|---|"
    for users in (250, 500, 1000):
        for what in ("distances", "groups"):
            theirs = run(f"{HERE}:literal", users, 50, what)
            ours = run(f"{HERE}:ours", users, 50, what, times=times)
            same = "yes" if theirs.told == ours.told else "NO"
            yield (
                f"| {users:,} | 50 | {what} | {theirs.seconds:.1f} s | {ours.seconds:.3f} s"
                f" | **{theirs.seconds / ours.seconds:,.0f}** | {same} |"
            )
    yield ""


def literal(users: str, categories: str, what: str) -> None:
    """Formula 4 pair by pair, over the distances of all categories that occur; MDAV with all sums anew at each step."""
    from scipy.sparse import csr_array

    interests = _drawn(int(users), int(categories))
    tree, n = interests.tree, len(interests.start) - 1
    with timed():
        distinct, place = np.unique(interests.item, return_inverse=True)
        lines = [_line(tree.parent, int(node)) for node in distinct]
        size = np.array([len(line) for line in lines])
        above = csr_array((np.ones(size.sum()), np.concatenate(lines), np.append(0, np.cumsum(size))))
        both = (above @ above.T).toarray()
        delta = 1 - both / (size[:, None] + size[None] - both)
        bags = [slice(interests.start[u], interests.start[u + 1]) for u in range(n)]
        far = np.zeros((n, n))
        for a in range(n):
            for b in range(a + 1, n):
                part = delta[np.ix_(place[bags[a]], place[bags[b]])]
                one, other = interests.weight[bags[a]], interests.weight[bags[b]]
                total = one @ part.min(axis=1) + other @ part.min(axis=0)
                far[a, b] = far[b, a] = total / (one.sum() + other.sum())
        if what == "groups":
            far = _mdav(far)
    _tell(far, what)


def _line(parent: Any, node: int) -> list[int]:
    found = []
    while node > 0:
        found.append(node)
        node = int(parent[node])
    return found


def _mdav(far: Any) -> Any:
    left, group, groups = list(range(len(far))), np.full(len(far), -1), 0

    def take(seed: int) -> None:
        nonlocal groups, left
        near = [left[i] for i in np.argsort(far[seed, left], kind="stable") if left[i] != seed][: K - 1]
        group[[seed, *near]] = groups
        left = [u for u in left if group[u] < 0]
        groups += 1

    while len(left) >= 2 * K:
        middle = left[int(far[np.ix_(left, left)].sum(axis=1).argmin())]
        seed = left[int(far[middle, left].argmax())]
        more = len(left) >= 3 * K
        take(seed)
        if more:
            take(left[int(far[seed, left].argmax())])
    group[left] = groups
    return group


def ours(users: str, categories: str, what: str) -> None:
    """The same by queryveil."""
    from queryveil.kernels.semantic import ONE
    from queryveil.methods.microaggregation.interests import distances, group_users

    interests = _drawn(int(users), int(categories))
    _groups(group_users, distances, _drawn(20, 5))
    with timed():
        if what == "groups":
            found = _groups(group_users, distances, interests)
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor() as pool:
                found = distances(interests).matrix(pool.map) / ONE
    _tell(found, what)


def _groups(group_users: Any, distances: Any, interests: Any) -> Any:
    everyone = np.arange(len(interests.start) - 1)
    return group_users(lambda some: distances(interests.take(some)), everyone, 1, K)


def _tell(found: Any, what: str) -> None:
    import hashlib

    if what == "groups":
        print(hashlib.sha256(np.asarray(found, np.int64).tobytes()).hexdigest()[:16])
        return
    # A few numbers in which every entry has a part of its own.
    weight = np.random.default_rng(3).normal(size=(len(found), 4))
    print(np.round(np.diag(weight.T @ found @ weight), 3).tolist())


def _vectors(times: int) -> Iterator[str]:
    yield "| vectors of 4 numbers | anonypyx: seconds | SSE | queryveil: seconds | SSE | times faster |"
    yield "|---|---|---|---|---|---|"
    for n in (500, 1000, 2000):
        theirs = run(f"{HERE}:anonypyx", n)
        mine = run(f"{HERE}:plain", n, times=times)
        yield (
            f"| {n:,} | {theirs.seconds:.2f} | {float(theirs.told):.1f} | {mine.seconds:.3f} | {float(mine.told):.1f}"
            f" | **{theirs.seconds / mine.seconds:,.0f}** |"
        )
    yield ""


def _points(n: str) -> Any:
    points = np.random.default_rng(2).normal(size=(int(n), 4))
    return (points - points.mean(axis=0)) / points.std(axis=0, ddof=1)


def _sse(points: Any, groups: list[Any]) -> None:
    print(sum(float(((points[g] - points[g].mean(axis=0)) ** 2).sum()) for g in groups))


def anonypyx(n: str) -> None:
    """MDAV-generic of anonypyx, whose centroid is the mean."""
    import pandas as pd
    from anonypyx.microaggregation import MDAVGeneric

    points = _points(n)
    frame = pd.DataFrame(points, columns=list("abcd"))
    with timed():
        groups = MDAVGeneric(frame, list("abcd")).partition(K)
    _sse(points, [np.asarray(g) for g in groups])


def plain(n: str) -> None:
    """Ours, whose centroid is the medoid."""
    from queryveil.methods.microaggregation.interests import partition

    points = _points(n)
    with timed():
        square = ((points[:, None] - points[None]) ** 2).sum(axis=2)
        far = (np.sqrt(square) * 2**24).astype(np.int64)
        group = partition(len(points), K, far.__getitem__, far.sum(axis=1))
    _sse(points, [np.flatnonzero(group == g) for g in range(group.max() + 1)])


def _whole(distance: str, grouping: str, sizes: list[int]) -> Iterator[str]:
    yield f"| users | distance | in groups | items each | groups and records, {grouping} | peak memory | notes |"
    yield "|---|---|---|---|---|---|---|"
    seconds = []
    for users in sizes:
        cost = run(f"{HERE}:released", users, distance, grouping)
        told = json.loads(cost.told)
        seconds.append(cost.seconds)
        yield (
            f"| {users:,} | {distance} | {told['linked']:,} | {told['categories']:.1f} | {cost.seconds:,.1f} s"
            f" | {cost.peak_gib:.1f} GiB | {told['note']} |"
        )
    for (a, b), (x, y) in zip(pairwise(sizes), pairwise(seconds), strict=True):
        yield f"\nGrowth exponent from {a:,} to {b:,} users: {math.log(y / x) / math.log(b / a):.2f}."
    yield ""


def released(users: str, distance: str, grouping: str) -> None:
    """Make a release, without reading the log and linking its queries."""
    from queryveil import Mdav, read_log
    from queryveil.knowledge import categorize
    from queryveil.methods.microaggregation.common import Searches
    from queryveil.methods.microaggregation.interests import interests_of, strings_of

    log = read_log(log_file(int(users)))
    links = categorize(log, "wordnet", "phrases") if distance == "semantic" else None
    searches = Searches.of(log)
    interests = interests_of(searches, links) if links is not None else strings_of(searches, log.n_queries)
    size = np.diff(interests.start)
    method: Any = Mdav(k=K, distance=distance, grouping=grouping)  # type: ignore[arg-type]
    small = read_log(log_file(200))
    method.release(small, categorize(small, "wordnet", "phrases") if links is not None else None, seed=1)
    with timed():
        release = method.release(log, links, seed=1)
    told = {"linked": int((size > 0).sum()), "categories": float(size[size > 0].mean())}
    print(json.dumps(told | {"note": release.manifest.notes[0]}))


def _loss() -> Iterator[str]:
    from queryveil import Mdav, read_log
    from queryveil.assess.measures import information_loss, record_linkage, srp, user_clusters
    from queryveil.knowledge import categorize
    from queryveil.methods.microaggregation import mdav

    log = read_log(log_file(10_000))
    yield "| 10,000 users, compared by | k | | SRP, levels 1 and 3 | L | RL |"
    yield "|---|---|---|---|---|---|"
    for what in ("phrases", "terms", "strings", "features"):
        links = categorize(log, "wordnet", what if what in ("phrases", "terms") else "phrases")
        clusters = user_clusters(log, links, clusters=80)
        for k in (2, 5, 10):
            for block in (None, 2_000, 1_000):
                mdav.BLOCK = block or 2_000
                grouping = "exact" if block is None else "blocks"
                if what in ("phrases", "terms"):
                    release = Mdav(k=k, grouping=grouping).release(log, links, seed=1)
                else:
                    release = Mdav(k=k, distance=what, grouping=grouping).anonymize(log, seed=1)
                kept = srp(release, links, 3)
                yield (
                    f"| {what} | {k} | {'exact' if block is None else f'blocks of {block:,}'}"
                    f" | {kept[0].mean:.3f}, {kept[2].mean:.3f} | {information_loss(release, clusters):.1f} %"
                    f" | {record_linkage(release):.1f} % |"
                )
    yield ""
