"""Removal by the query-click graph, and hashed words, beside equality; and what an attacker reads of hashed words."""

import json
import math
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.harness import log_file, run, timed

HERE = "benchmarks.removal"
METHODS = {"equality": {"k": 5}, "poblete": {"k": 2, "sites": 2}, "hash": {}}
WORK = {"equality": "events", "poblete": "edges", "hash": "events"}
"""What the time of each should grow with."""
ATTACKED = 10_000, 300


def report(sizes: list[int], times: int) -> Iterator[str]:
    """The section of benchmarks/README.md."""
    yield "| users | method | seconds | of all cores | times equality | peak memory | events | released | edges |"
    yield "|---|---|---|---|---|---|---|---|---|"
    cost: dict[str, list[tuple[int, float]]] = {name: [] for name in METHODS}
    for users in sizes:
        for name in METHODS:
            found = run(f"{HERE}:anonymized", users, name, times=times)
            told = json.loads(found.told)
            cost[name].append((told[WORK[name]], told["busy"]))
            ratio = told["busy"] / cost["equality"][-1][1]
            yield (
                f"| {users:,} | {name} | {found.seconds:.2f} s | {told['busy']:.2f} s | {ratio:.1f}"
                f" | {found.peak_gib:.1f} GiB | {told['events']:,} | {told['released']:,} | {told['edges']:,} |"
            )
    for name, found in cost.items():
        for (a, x), (b, y) in pairwise(found):
            grown = math.log(y / x) / math.log(b / a)
            yield f"\n{name}: growth exponent from {a:,} to {b:,} {WORK[name]}: {grown:.2f}."
    yield ""
    yield "| the attacker has | tokens guessed | right | by frequency alone | of all text | so alone | seconds |"
    yield "|---|---|---|---|---|---|---|"
    for reference in ("the same log", "the other users"):
        found = run(f"{HERE}:attacked", reference)
        told = json.loads(found.told)
        yield f"| {reference} | {' | '.join(told)} | {found.seconds:.1f} s |"


def _method(name: str) -> Any:
    from queryveil.methods import METHODS as KNOWN

    return KNOWN[name](**METHODS[name])


def anonymized(users: str, name: str) -> None:
    """Anonymize a log that was read."""
    from queryveil import Poblete, generate, read_log
    from queryveil.kernels.removal import degrees
    from queryveil.methods.click_graph import classes_of, compact, edges_of

    method = _method(name)
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder) / "small.tsv", users=200, seed=1)
        method.anonymize(read_log(Path(folder) / "small.tsv"))  # compiled before the clock starts
    log = read_log(log_file(int(users)))
    log.ensure_tables("per_query")
    begun = time.process_time()
    with timed():
        release = method.anonymize(log)
    busy = time.process_time() - begun  # others on the machine make a run longer, but not busier
    edges = 0
    if isinstance(method, Poblete):
        pairs = log.engine.fetch("SELECT query_id, url_id FROM clicks GROUP BY query_id, url_id ORDER BY ALL")
        query, url = (pairs[key].to_numpy().astype("int64") for key in ("query_id", "url_id"))
        clicked = classes_of(*compact(query, url, method.removal(log).documents > 0))
        edges = edges_of(clicked, degrees(clicked))
    counts = release.manifest.counts
    print(json.dumps({"events": log.stats.events, "released": counts.queries, "edges": edges, "busy": busy}))


def attacked(reference: str) -> None:
    """Hash the words of half of the users, and guess them by a log of the same or of the other half."""
    import numpy as np
    import pyarrow as pa

    from queryveil import Hash, read_log
    from queryveil.assess.attacks import token_frequency_attack

    users, most = ATTACKED
    log = read_log(log_file(users))
    events = log.engine.fetch(
        "SELECT e.user_id AS user, q.query AS query FROM events e JOIN queries q ON q.query_id = e.query_id"
    )
    half = events["user"].to_numpy() % 2 == 0
    mine, other = (
        read_log(pa.table({"user": part["user"].cast(pa.string()), "query": part["query"]}))
        for part in (events.filter(pa.array(half)), events.filter(pa.array(~half)))
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "key").write_bytes(bytes(32))
        method = Hash(key_file=Path(folder) / "key")
        release = method.anonymize(mine)
        truth = {row["token"]: row["word"] for row in method.tokens(mine).to_pylist()}
    with timed():
        found = token_frequency_attack(release, mine if reference == "the same log" else other, truth, most=most)
    rows = found.guesses.to_pylist()
    told = [f"{len(rows):,}"]
    told += [f"{np.mean([truth[row['token']] == row[by] for row in rows]):.1%}" for by in ("word", "by_frequency")]
    told += [f"{part.occurrences:.1%}" for part in (found.recovered, found.by_frequency) if part is not None]
    print(json.dumps(told))
