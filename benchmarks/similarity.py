"""Affinity by words, meaning and clicks: what each releases and what is personal in it; and how fast meanings compare.

Real logs are no part of the project; `EXCITE=file` adds a table for the Excite sample.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import DATA, run, timed

WAYS = ("words", "meaning", "clicks", "words,meaning", "words,clicks", "words,meaning,clicks")
THETA = 0.85


def report(sizes: Sequence[int], times: int) -> Iterator[str]:
    """The tables of README.md."""
    for users in sizes:
        yield from _released(str(users), f"{users:,} synthetic users")
        yield from _sessions(users)
    if "EXCITE" in os.environ:
        yield from _released(os.environ["EXCITE"], "Excite sample")
    yield from speed(times)


def _released(log: str, name: str) -> Iterator[str]:
    found = json.loads(run("benchmarks.similarity:released", log).told)
    yield f"{name}, theta 0.8, theta_meaning {THETA}, theta_clicks 0.8\n"
    yield "| k | similarity | distinct queries | events | one user's | found by the attack | planted | about health |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in found:
        yield "| " + " | ".join(row) + " |"
    yield ""


def released(log: str) -> None:
    """Release a log in each way, and count what is personal in it."""
    import pyarrow.parquet as pq

    import queryveil as qv
    from queryveil.assess.attacks.finding import InapplicableError
    from queryveil.assess.attacks.personal_data import personal_data

    planted, health = set[str](), set[str]()
    if log.isdigit():
        file, truth = _made(log)
        table = pq.read_table(truth / "queries.parquet").to_pylist()
        planted = {row["query"] for row in table if row["sensitive"] not in (None, "health")}
        health = {row["query"] for row in table if row["sensitive"] == "health"}
        read = qv.read_log(file)
    else:
        read = qv.read_log(log)
    texts = read.query_text.to_pylist()
    kinds = [np.array([text in some for text in texts]) for some in (planted, health)]
    rows = []
    with timed():
        for k in (2, 5, 10):
            before: NDArray[np.bool_] | None = None
            for ways in WAYS:
                if "clicks" in ways and not read.has_clicks:
                    continue
                method = qv.Affinity(k=k, theta=0.8, similarity=tuple(ways.split(",")), theta_meaning=THETA)
                release = method.anonymize(read, seed=1)
                names = {query for batch in release.batches() for query in batch["query"].to_pylist()}
                kept = np.array([text in names for text in texts])
                try:
                    hits = 100_000 * personal_data(release, read).estimate.value
                except InapplicableError:  # nothing is released
                    hits = 0.0
                alone = kept & (read.users_per_query == 1)
                rows.append(_row(k, ways, kept, alone, read.events_per_query, kinds, f"{hits:,.0f}"))
                if ways == "words":
                    before = kept
                    few = before & (read.users_per_query < k)
                    rows.append(_row(k, "of these, of fewer than k users", few, alone, read.events_per_query, kinds))
                elif before is not None and ways.startswith("words"):
                    added = kept & ~before
                    rows.append(
                        _row(k, f"of these, not by words: {ways[6:]}", added, alone, read.events_per_query, kinds)
                    )
    print(json.dumps(rows))


def _sessions(users: int) -> Iterator[str]:
    found = json.loads(run("benchmarks.similarity:sessions", users).told)
    yield f"{users:,} synthetic users, sessions of at most 10 events\n"
    yield "| k | theta | unit | sessions of several queries | events in them | sessions linked | texts learned | 95 % |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in found:
        yield "| " + " | ".join(row) + " |"
    yield ""


def sessions(users: str) -> None:
    """Release a log by sessions, with and without a promise about them, and let an attacker link them."""
    from collections import Counter, defaultdict

    import queryveil as qv

    read, rows = qv.read_log(_made(users)[0]), []
    with timed():
        for k, theta, unit in product((2, 5), (0.9, 0.8), ("query", "session")):
            release = qv.Affinity(k=k, theta=theta, link="session", unit=unit).anonymize(read, seed=1)
            queries, events = defaultdict[int, set[str]](set), Counter[int]()
            for batch in release.batches():
                of = batch["session"].to_pylist()
                for session, query in zip(of, batch["query"].to_pylist(), strict=True):
                    queries[session].add(query)
                events.update(dict(set(zip(batch["event"].to_pylist(), of, strict=True))).values())
            several = [session for session, found in queries.items() if len(found) > 1]
            linked, kept = release.linkage, sum(events[session] for session in several)
            assert linked is not None
            shares = f"{linked.linked:.1%}", f"{linked.learned:.1%}", f"{linked.low:.1%} to {linked.high:.1%}"
            rows.append([str(k), str(theta), unit, f"{len(several):,}", f"{kept:,}", *shares])
    print(json.dumps(rows))


def _made(users: str) -> tuple[Path, Path]:
    """A synthetic log and the truth about it."""
    import queryveil as qv

    file, truth = DATA / f"similarity-{users}.tsv", DATA / f"similarity-truth-{users}"
    if not truth.exists():
        DATA.mkdir(exist_ok=True)
        qv.generate(file, users=int(users), seed=1, truth=truth, overwrite=file.exists())
    return file, truth


def _row(
    k: int,
    ways: str,
    kept: NDArray[np.bool_],
    alone: NDArray[np.bool_],
    events: NDArray[np.int64],
    kinds: list[NDArray[np.bool_]],
    hits: str = "",
) -> list[str]:
    counts = [f"{kept.sum():,}", f"{events[kept].sum() / events.sum():.1%}", f"{(kept & alone).sum():,}"]
    shares = [f"{100_000 * (kind[kept].mean() if kept.any() else 0):,.0f}" for kind in kinds]
    return [str(k), ways, *counts, hits, *shares]


def speed(times: int) -> Iterator[str]:
    """Tables about comparing vectors on a CPU."""
    yield "| vectors | contender | seconds of processor time | pairs found |"
    yield "|---|---|---|---|"
    peers = ("ours", "sklearn", *(("faiss",) if find_spec("faiss") else ()))  # of faiss-cpu, which no extra installs
    for n, contender in product((30_000, 100_000), peers):
        told = json.loads(run(f"benchmarks.similarity:{contender}", n, times=times).told)
        yield f"| {n:,} | {contender} | {told['seconds']:,.1f} | {told['pairs']:,} |"
    for n in (125_000, 250_000, 500_000, 1_000_000, 2_000_000):
        told = json.loads(run("benchmarks.similarity:cells", n).told)
        yield f"| {n:,} | cells | {told['seconds']:,.1f} | {told['pairs']:,} |"
    yield ""


def vectors_of(n: int) -> NDArray[np.float32]:
    """Vectors around random ones, of which about five are near each other."""
    rng = np.random.default_rng(n)
    middle = rng.standard_normal((max(1, n // 5), 128), np.float32)
    some = middle[rng.integers(0, len(middle), n)] + np.float32(0.4) * rng.standard_normal((n, 128), np.float32)
    return some / np.linalg.norm(some, axis=1, keepdims=True)


def _told(begin: float, pairs: int) -> None:
    print(json.dumps({"seconds": time.process_time() - begin, "pairs": pairs}))


def ours(n: str) -> None:
    """All pairs, exactly."""
    from queryveil.kernels.close import close_pairs, whole

    vectors = whole(vectors_of(int(n)))
    begin = time.process_time()
    with timed():
        _, near = close_pairs(vectors, THETA)
    _told(begin, len(near) // 2)


def cells(n: str) -> None:
    """The pairs within cells."""
    from queryveil.kernels.close import close_pairs, whole

    vectors = whole(vectors_of(int(n)))
    begin = time.process_time()
    with timed():
        _, near = close_pairs(vectors, THETA, exact=0)
    _told(begin, len(near) // 2)


def faiss(n: str) -> None:
    """All pairs with a flat index of FAISS."""
    import faiss as index_of

    vectors = vectors_of(int(n))
    index = index_of.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    begin = time.process_time()
    with timed():
        start, _, _ = index.range_search(vectors, THETA)
    _told(begin, (int(start[-1]) - len(vectors)) // 2)


def sklearn(n: str) -> None:
    """All pairs with scikit-learn, by brute force in blocks."""
    from sklearn.neighbors import NearestNeighbors

    vectors = vectors_of(int(n))
    index = NearestNeighbors(algorithm="brute", metric="cosine", radius=1 - THETA).fit(vectors)
    begin = time.process_time()
    with timed():
        found = index.radius_neighbors(vectors, return_distance=False)
    _told(begin, (sum(map(len, found)) - len(vectors)) // 2)
