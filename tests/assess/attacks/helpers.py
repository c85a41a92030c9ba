"""Logs and releases that deserve an attack, and such as give nothing."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa

import queryveil as qv
from queryveil.methods.microaggregation.common import Searches
from queryveil.release.making import of_events


def read(pairs):
    return qv.read_log(pa.table({"user": [f"u{u}" for u, _ in pairs], "query": [query for _, query in pairs]}))


def identity(log):
    """The log as it is, but for the names of users."""
    return qv.Rules(max_characters=1000, link="user").anonymize(log)


def as_it_is(log):
    """The log with its times and clicks, but for the names of users: what deserves every attack."""
    times = ", time" if log.has_times else ""
    return of_events(
        log,
        f"SELECT event_id, user_id, query_id{times} FROM events",
        "SELECT event_id, query_id, rank, url_id FROM clicks" if log.has_clicks else None,
        carried=["time"] if times else [],
        method="rules",
        parameters={},
        claims=(),
        limits=(),
        seed=0,
    )


def shuffled(log, seed=1):
    """The events of a log under the ids of random users, so that a record is nobody's."""
    events = log.engine.fetch("SELECT event_id, user_id, query_id FROM events ORDER BY event_id")
    user = np.random.default_rng(seed).permutation(events["user_id"].to_numpy())
    log.engine.read("permuted", events.set_column(1, "user_id", pa.array(user)))
    release = of_events(
        log, "SELECT event_id, user_id, query_id FROM permuted", None, method="rules", parameters={}, claims=(),
        limits=(), seed=0,
    )  # fmt: skip
    log.engine.drop("permuted")
    return release


def together(log, k=None, seed=1):
    """Users in random groups, all of them in one if k is not given."""
    k = log.n_users if k is None else k
    group = (np.random.default_rng(seed).permutation(log.n_users) // k).astype(np.int32)
    group = np.minimum(group, log.n_users // k - 1)
    return qv.Odp(k=k).release_groups(log, Searches.of(log), group, parts=0, seed=seed, notes=[])


def records(release):
    """The bags of a release, and the people behind each record."""
    bags, people = defaultdict(Counter), {}
    for row in pa.Table.from_batches(release.batches(), release.schema).to_pylist():
        bags[row["user"]][row["query"]] += 1
        people[row["user"]] = row.get("users", 1)
    return dict(bags), people


def owners(release):
    return {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}


def own_words(users=120, queries=12, seed=0, of_own=0.9):
    """Users who mostly use words of their own, so that whatever is theirs can be told."""
    rng = np.random.default_rng(seed)
    common = [f"common{i}" for i in range(40)]
    pairs = []
    for u in range(users):
        for _ in range(queries):
            first = f"own{u}x{rng.integers(3)}" if rng.random() < of_own else common[rng.integers(40)]
            pairs.append((u, f"{first} {common[rng.integers(40)]}"))
    return read(pairs)


def random_queries(users=120, queries=12, seed=0, words=30):
    """Users whose queries are drawn at random from the same ones, so that nothing is anybody's."""
    rng = np.random.default_rng(seed)
    return read([(u, f"w{rng.integers(words)} w{rng.integers(words)}") for u in range(users) for _ in range(queries)])
