"""What people publish logs for: suggestions, completions, clicks and trends, learnt from a release, tried on its log.

Each model is the plainest that the task has, so that scores speak of the data: suggestions are what the same users
issued, completions the most frequent queries that begin so, clicks the most clicked addresses, trends the counts
themselves. All learn from the release, or from the log for comparison, and are tried on events of the log.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.knowledge.index import ranges
from queryveil.log import LocalLog, QueryLog, local
from queryveil.measures.counts import released_counts
from queryveil.release import Release, loaded

Longs = NDArray[np.int64]
Pairs = tuple[Longs, Longs]

TESTS = 2_000
TOP = 10
SESSION = 30 * 60
"""Seconds after which the next query of a user is not a next query."""
TRENDS = 200
"""Queries whose weekly counts are compared, the most frequent ones."""


@dataclass(frozen=True)
class Task:
    """A score of a task.

    Attributes:
        task: `suggestion`, `completion`, `click prediction` or `trend counts`.
        score: What is measured.
        released: What a model reaches that learns from the release; None where the release has nothing to learn from.
        original: What the same model reaches that learns from the log itself.
        tests: On how many events of the log.
    """

    task: str
    score: str
    released: float | None
    original: float
    tests: int


def tasks(release: Release, log: QueryLog, *, tests: int = TESTS, seed: int = 0) -> list[Task]:
    """Try four tasks on a release and on its log.

    Args:
        release: The release.
        log: Its log.
        tests: On how many events of the log each model is tried.
        seed: Decides which.
    """
    here = local(log, "the tasks")
    rng = np.random.default_rng(seed)
    return [
        *_suggestion(release, here, tests, rng),
        *_completion(release, here, tests, rng),
        *_clicks(release, here, tests, rng),
        *_trends(release, here),
    ]


def _drawn(rng: np.random.Generator, n: int, tests: int) -> Longs:
    return np.sort(rng.choice(n, min(tests, n), replace=False))


def _reciprocal(places: Longs) -> float:
    """The mean reciprocal rank; 0 for what is not among the first."""
    return float(np.where(places > 0, 1 / np.maximum(places, 1), 0).mean()) if len(places) else 0.0


def _hits(places: Longs, most: int) -> float:
    return float(((places > 0) & (places <= most)).mean()) if len(places) else 0.0


def _suggestion(release: Release, log: LocalLog, tests: int, rng: np.random.Generator) -> list[Task]:
    events = log.engine.table("SELECT user_id, query_id, time FROM events ORDER BY user_id, time, event_id")
    user, query = events["user_id"].to_numpy(), events["query_id"].to_numpy()
    follows = (user[1:] == user[:-1]) & (query[1:] != query[:-1])
    if log.has_times:
        time = events["time"].cast(pa.int64()).fill_null(0).to_numpy()
        follows &= np.diff(time) <= SESSION * 1_000_000
    some = np.flatnonzero(follows)
    some = some[_drawn(rng, len(some), tests)]
    now, then = query[some], query[some + 1]
    log.need("searchers")
    mine = log.engine.table("SELECT user_id, query_id FROM searchers")
    theirs: Pairs | None = None
    if {"user", "query"} <= set(release.schema.names):
        with loaded(release, log):
            rows = log.engine.table(
                'SELECT r."user" AS user_id, q.query_id AS query_id FROM released r JOIN queries q ON q.query = r.query'
                ' GROUP BY r."user", q.query_id'
            )
        theirs = rows["user_id"].to_numpy(), rows["query_id"].to_numpy()
    original = _next_places((mine["user_id"].to_numpy(), mine["query_id"].to_numpy()), now, then, log.n_queries)
    released = None if theirs is None else _next_places(theirs, now, then, log.n_queries)
    return [
        Task(
            "suggestion", "hit@10", None if released is None else _hits(released, TOP), _hits(original, TOP), len(now)
        ),
        Task("suggestion", "MRR", None if released is None else _reciprocal(released), _reciprocal(original), len(now)),
    ]


def _next_places(issued: Pairs, now: Longs, then: Longs, queries: int) -> Longs:
    """The place of a query among those that most users share with another one; 0 if it is not among the first."""
    order = np.lexsort((issued[0], issued[1]))
    by_query = issued[0][order]
    first = np.searchsorted(issued[1][order], np.arange(queries + 1))
    users, place = np.unique(issued[0], return_inverse=True)
    order = np.lexsort((issued[1], place))
    by_user = issued[1][order]
    start = np.searchsorted(place[order], np.arange(len(users) + 1))
    found = np.zeros(len(now), np.int64)
    for query in np.unique(now).tolist():
        who = np.searchsorted(users, by_query[first[query] : first[query + 1]])
        others = by_user[ranges(start[who], np.diff(start)[who])]
        also, times = np.unique(others[others != query], return_counts=True)
        best = also[np.lexsort((also, -times))[:TOP]].tolist()
        for i in np.flatnonzero(now == query).tolist():
            found[i] = best.index(int(then[i])) + 1 if int(then[i]) in best else 0
    return found


def _completion(release: Release, log: LocalLog, tests: int, rng: np.random.Generator) -> list[Task]:
    counts = log.events_per_query
    chosen = rng.choice(log.n_queries, min(tests, log.facts.events), p=counts / counts.sum())
    by_text = pc.sort_indices(log.query_text).to_numpy()
    ordered, wanted = log.query_text.take(pa.array(by_text)), log.query_text.take(pa.array(chosen)).to_pylist()
    places = {
        name: _completed(known[by_text], ordered, wanted)
        for name, known in (("original", counts), ("released", released_counts(release, log)))
    }
    released = _reciprocal(places["released"]) if "query" in release.schema.names else None
    return [Task("completion", "MRR", released, _reciprocal(places["original"]), len(chosen))]


def _completed(counts: Longs, texts: pa.Array, wanted: list[str]) -> Longs:
    """The place of each query among the most frequent that begin like its first half; texts ascend."""
    found = np.zeros(len(wanted), np.int64)
    for i, text in enumerate(wanted):
        begins = text[: (len(text) + 1) // 2]
        low, high = (bisect_left(texts, end, key=_text) for end in (begins, begins + chr(0x10FFFF)))
        some = counts[low:high]
        at = bisect_left(texts, text, key=_text) - low
        if some[at] > 0:
            place = int((some > some[at]).sum() + (some[:at] == some[at]).sum()) + 1
            found[i] = place if place <= TOP else 0
    return found


def _text(scalar: pa.Scalar) -> str:
    return str(scalar.as_py())


def _clicks(release: Release, log: LocalLog, tests: int, rng: np.random.Generator) -> list[Task]:
    if not log.has_clicks:
        return []
    clicks = log.engine.table("SELECT query_id, url_id FROM clicks WHERE url_id IS NOT NULL ORDER BY event_id, url_id")
    query, url = clicks["query_id"].to_numpy(), clicks["url_id"].to_numpy()
    some = _drawn(rng, len(query), tests)
    original = _click_places((query, url), query[some], url[some])
    released = None
    if "url" in release.schema.names:
        with loaded(release, log):
            rows = log.engine.table(
                "SELECT q.query_id AS query_id, u.url_id AS url_id FROM released r JOIN queries q ON q.query = r.query"
                " JOIN urls u ON u.url = r.url"
            )
        released = _click_places((rows["query_id"].to_numpy(), rows["url_id"].to_numpy()), query[some], url[some])
    return [
        Task(
            "click prediction",
            f"hit@{most}",
            None if released is None else _hits(released, most),
            _hits(original, most),
            len(some),
        )
        for most in (1, TOP)
    ]


def _click_places(known: Pairs, query: Longs, url: Longs) -> Longs:
    """The place of each address among those most clicked for its query."""
    pairs, times = np.unique(known[0].astype(np.int64) << 32 | known[1], return_counts=True)
    order = np.lexsort((pairs & 0xFFFFFFFF, -times, pairs >> 32))
    of, address = (pairs >> 32)[order], (pairs & 0xFFFFFFFF)[order]
    found = np.zeros(len(query), np.int64)
    for i in range(len(query)):
        low, high = np.searchsorted(of, [query[i], query[i] + 1])
        hit = np.flatnonzero(address[low : min(high, low + TOP)] == url[i])
        found[i] = hit[0] + 1 if len(hit) else 0
    return found


def _trends(release: Release, log: LocalLog) -> list[Task]:
    """The relative error of weekly counts. A release without times has as many of a query in each week."""
    if not log.has_times:
        return []
    week = "CAST(date_trunc('week', time) AS DATE)"
    rows = log.engine.table(
        f"SELECT query_id, {week} AS week, count(*) AS n FROM events WHERE time IS NOT NULL GROUP BY query_id, {week}"
    )
    weeks, at = np.unique(rows["week"].cast(pa.int32()).to_numpy(), return_inverse=True)
    top = np.lexsort((np.arange(log.n_queries), -log.events_per_query))[:TRENDS]
    place = np.full(log.n_queries, -1)
    place[top] = np.arange(len(top))
    truth = _by_week(rows["query_id"].to_numpy(), at, rows["n"].to_numpy(), place, len(weeks))
    if "time" in release.schema.names:
        with loaded(release, log):
            found = log.engine.table(
                f"SELECT q.query_id AS query_id, {week} AS week, count(DISTINCT r.event) AS n FROM released r"
                f" JOIN queries q ON q.query = r.query WHERE time IS NOT NULL GROUP BY q.query_id, {week}"
            )
        their = np.searchsorted(weeks, found["week"].cast(pa.int32()).to_numpy()).clip(0, len(weeks) - 1)
        guess = _by_week(found["query_id"].to_numpy(), their, found["n"].to_numpy(), place, len(weeks))
    else:
        guess = np.repeat(released_counts(release, log)[top][:, None] / len(weeks), len(weeks), axis=1)
    error = float(np.abs(guess - truth).sum() / truth.sum())
    released = error if "query" in release.schema.names else None
    return [Task("trend counts", "relative error", released, 0.0, int(truth.size))]


def _by_week(query: Longs, week: Longs, n: Longs, place: Longs, weeks: int) -> NDArray[np.float64]:
    found = np.zeros((int(place.max()) + 1, weeks))
    some = place[query] >= 0
    np.add.at(found, (place[query[some]], week[some]), n[some])
    return found
