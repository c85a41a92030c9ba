"""What people publish logs for: suggestions, completions, clicks and trends, learnt from a release, tried on its log.

Each model is the plainest that the task has, so that scores speak of the data: suggestions are what the same users
issued, completions the most frequent queries that begin so, clicks the most clicked addresses, trends the counts
themselves. All learn from the release, or from the log for comparison, and are tried on events of the log, one at a
time, each of which is held out: what stands in the release or the log because of that event does not count.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Floats, Longs, Ragged
from queryveil.assess.measures.counts import pseudonym, records_once, released_counts, shares_records
from queryveil.assess.measures.notes import noted
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.sharing import shared
from queryveil.release import Release, is_click, loaded
from queryveil.text.show import percent

Pairs = tuple[Longs, Longs]

TESTS = 2_000
TOP = 10
SESSION = 30 * 60
"""Seconds after which the next query of a user is not a next query."""
TRENDS = 200
"""Queries whose weekly counts are compared, the most frequent ones."""
LEAST = 0.05
"""Least score on the log itself with which releases can be ranked."""
ERROR = "relative error"


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

    @property
    def unranked(self) -> str:
        """Why releases cannot be ranked by this score; nothing if they can.

        The score on the log itself must be at least 5 %, and the lower end of its 95 % interval over the tests at least
        half of it. A mean of values from 0 to 1 varies at most as much as a share of the same size, so the interval of
        a share serves for hits and reciprocal ranks alike. An error of 0 is the best there is, not a low score.
        """
        if self.score == ERROR:
            return ""
        if self.tests == 0:
            return "the log has no event to try it on"
        if self.original < LEAST:
            return f"the log itself scores {percent(self.original)}, too little to rank releases by"
        if _least(self.original, self.tests) < self.original / 2:
            return f"{self.tests:,} tests are too few to rank releases by"
        return ""


def _least(score: float, tests: int) -> float:
    """The lower end of Wilson's 95 % interval of a share."""
    z = 1.96
    middle = score + z * z / (2 * tests)
    spread = z * math.sqrt((score * (1 - score) + z * z / (4 * tests)) / tests)
    return (middle - spread) / (1 + z * z / tests)


def tasks(release: Release, log: QueryLog, *, tests: int = TESTS, seed: int = 0) -> list[Task]:
    """Try four tasks on a release and on its log.

    Args:
        release: The release.
        log: Its log.
        tests: On how many events of the log each model is tried.
        seed: Random seed.
    """
    here = local(log, "the tasks")
    return [
        *_suggestion(release, here, tests, seed),
        *_completion(release, here, tests, seed),
        *_clicks(release, here, tests, seed),
        *_trends(release, here),
    ]


def _drawn(seed: int, n: int, tests: int) -> Longs:
    return np.sort(np.random.default_rng(seed).choice(n, min(tests, n), replace=False))


def _own(release: Release) -> int:
    """How much of a count an event may be behind: nothing where noise hides it."""
    return 0 if release.manifest.private else 1


def _place(counts: Longs, at: int, own: int) -> int:
    """The place of an answer by counts, from 1, less what comes from the event itself; of equals the first is better.

    It is 0 if nothing else speaks for the answer, or it is not among the first.
    """
    left = int(counts[at]) - own
    if left <= 0:
        return 0
    better = int((counts > left).sum()) - (own > 0)
    place = better + int((counts[:at] == left).sum()) + 1
    return place if place <= TOP else 0


def _reciprocal(places: Longs) -> float:
    """The mean reciprocal rank; 0 for what is not among the first."""
    return float(np.where(places > 0, 1 / np.maximum(places, 1), 0).mean()) if len(places) else 0.0


def _hits(places: Longs, most: int) -> float:
    return float(((places > 0) & (places <= most)).mean()) if len(places) else 0.0


def _task(name: str, score: str, of: Callable[[Longs], float], released: Longs | None, original: Longs) -> Task:
    """A score of the places of answers."""
    return Task(name, score, None if released is None else of(released), of(original), len(original))


def _suggestion(release: Release, log: LocalLog, tests: int, seed: int) -> list[Task]:
    now, then, original = shared(log, ("suggestion", tests, seed), lambda: _log_suggestion(log, tests, seed))
    released = None
    if pseudonym(release) is not None and "query" in release.schema.names:
        # Of a release by sessions it learns what stands in one session: nothing else is linked there.
        record, query, _ = records_once(release, log)
        released = _next_places((record, query), now, then, log.n_queries)
    return [
        _task("suggestion", f"hit@{TOP}", partial(_hits, most=TOP), released, original),
        _task("suggestion", "MRR", _reciprocal, released, original),
    ]


def _log_suggestion(log: LocalLog, tests: int, seed: int) -> tuple[Longs, Longs, Longs]:
    """Queries, what follows them in a session, and the place that the log itself gives that."""
    events = log.engine.fetch("SELECT user_id, query_id, time FROM events ORDER BY user_id, time, event_id")
    user, query = events["user_id"].to_numpy(), events["query_id"].to_numpy()
    follows = (user[1:] == user[:-1]) & (query[1:] != query[:-1])
    if log.has_times:
        time = events["time"].cast(pa.int64())
        known = time.is_valid().to_numpy()
        follows &= known[1:] & known[:-1] & (np.diff(time.fill_null(0).to_numpy()) <= SESSION * 1_000_000)
    some = np.flatnonzero(follows)
    some = some[_drawn(seed, len(some), tests)]
    now, then = query[some], query[some + 1]
    mine = log.query_users
    places = _next_places((mine["user_id"].to_numpy(), mine["query_id"].to_numpy()), now, then, log.n_queries)
    return now, then, places


def _next_places(issued: Pairs, now: Longs, then: Longs, queries: int) -> Longs:
    """The place of a query among those that most users share with another one; 0 if it is not among the first."""
    order = np.lexsort((issued[0], issued[1]))
    by_query = issued[0][order]
    first = np.searchsorted(issued[1][order], np.arange(queries + 1))
    users, place = np.unique(issued[0], return_inverse=True)
    order = np.lexsort((issued[1], place))
    by_user = issued[1][order]
    of_user = Ragged(np.searchsorted(place[order], np.arange(len(users) + 1)))
    found = np.zeros(len(now), np.int64)
    for query in np.unique(now).tolist():
        who = np.searchsorted(users, by_query[first[query] : first[query + 1]])
        others = by_user[of_user.positions(who)]
        also, times = np.unique(others[others != query], return_counts=True)
        for i in np.flatnonzero(now == query).tolist():
            at = int(np.searchsorted(also, then[i]))
            # The user who went from the one query to the other is one of those who issued both.
            found[i] = _place(times, at, 1) if at < len(also) and also[at] == then[i] else 0
    return found


def _completion(release: Release, log: LocalLog, tests: int, seed: int) -> list[Task]:
    by_text, spans, original = shared(log, ("completion", tests, seed), lambda: _log_completion(log, tests, seed))
    released = None
    if "query" in release.schema.names:
        released = _completed(_counts_once(release, log)[by_text], spans, _own(release))
    return [_task("completion", "MRR", _reciprocal, released, original)]


def _counts_once(release: Release, log: LocalLog) -> Longs:
    """How often a release has every query of the log, what several users share taken once."""
    if not shares_records(release):
        return released_counts(release, log)
    _, query, n = records_once(release, log)
    return np.bincount(query, n, log.n_queries).astype(np.int64)


def _log_completion(log: LocalLog, tests: int, seed: int) -> tuple[Longs, "Spans", Longs]:
    """The order of the queries as texts, some of them, and the place that the log itself gives each."""
    counts = log.events_per_query
    rng = np.random.default_rng(seed)
    chosen = rng.choice(log.n_queries, min(tests, log.stats.events), p=counts / counts.sum())
    by_text = pc.sort_indices(log.query_text).to_numpy()
    ordered, texts = log.query_text.take(pa.array(by_text)), log.query_text.take(pa.array(chosen)).to_pylist()
    spans = _spans(ordered, texts)
    return by_text, spans, _completed(counts[by_text], spans, 1)


Spans = list[tuple[int, int, int]]


def _spans(ordered: pa.Array, texts: list[str]) -> Spans:
    """Where those queries are that begin like the first half of each text, and where it is itself."""
    found = []
    for text in texts:
        begins = text[: (len(text) + 1) // 2]
        low, high, at = (bisect_left(ordered, end, key=str) for end in (begins, begins + chr(0x10FFFF), text))
        found.append((low, high, at))
    return found


def _completed(counts: Longs, spans: Spans, own: int) -> Longs:
    """The place of each query among the most frequent that begin like its first half."""
    return np.array([_place(counts[low:high], at - low, own) for low, high, at in spans], np.int64)


def _clicks(release: Release, log: LocalLog, tests: int, seed: int) -> list[Task]:
    if not log.has_clicks:
        return []
    query, url, original = shared(log, ("click prediction", tests, seed), lambda: _log_clicks(log, tests, seed))
    released = None
    if "url" in release.schema.names:
        with loaded(release, log) as table:
            rows = log.engine.fetch(
                f"SELECT q.query_id AS query_id, u.url_id AS url_id FROM {table} r"
                f" JOIN queries q ON q.query = r.query JOIN urls u ON u.url = r.url WHERE {is_click(release)}"
            )
        known = rows["query_id"].to_numpy(), rows["url_id"].to_numpy()
        released = _click_places(known, query, url, _own(release))
    return [
        _task("click prediction", f"hit@{most}", partial(_hits, most=most), released, original) for most in (1, TOP)
    ]


def _log_clicks(log: LocalLog, tests: int, seed: int) -> tuple[Longs, Longs, Longs]:
    """The queries and addresses of some clicks, and the place that the log itself gives each."""
    clicks = log.engine.fetch("SELECT query_id, url_id FROM clicks WHERE url_id IS NOT NULL ORDER BY event_id, url_id")
    query, url = clicks["query_id"].to_numpy(), clicks["url_id"].to_numpy()
    some = _drawn(seed, len(query), tests)
    return query[some], url[some], _click_places((query, url), query[some], url[some], 1)


def _click_places(known: Pairs, query: Longs, url: Longs, own: int) -> Longs:
    """The place of each address among those most clicked for its query."""
    pairs, times = np.unique(known[0].astype(np.int64) << 32 | known[1], return_counts=True)
    query = query.astype(np.int64)
    key = query << 32 | url
    first, end = np.searchsorted(pairs, query << 32), np.searchsorted(pairs, (query + 1) << 32)
    at = np.searchsorted(pairs, key)
    found = np.zeros(len(query), np.int64)
    for i in np.flatnonzero(np.isin(key, pairs)).tolist():
        found[i] = _place(times[first[i] : end[i]], int(at[i] - first[i]), own)
    return found


def _trends(release: Release, log: LocalLog) -> list[Task]:
    """The relative error of weekly counts. A release without times has as many of a query in each week."""
    if not log.has_times:
        return []
    week = "CAST(date_trunc('week', time) AS DATE)"
    rows = log.engine.fetch(
        f"SELECT query_id, {week} AS week, count(*) AS n FROM events WHERE time IS NOT NULL GROUP BY query_id, {week}"
    )
    weeks, at = np.unique(rows["week"].cast(pa.int32()).to_numpy(), return_inverse=True)
    top = np.lexsort((np.arange(log.n_queries), -log.events_per_query))[:TRENDS]
    place = np.full(log.n_queries, -1)
    place[top] = np.arange(len(top))
    truth = _by_week(rows["query_id"].to_numpy(), at, rows["n"].to_numpy(), place, len(weeks))
    if not truth.any():
        return []
    if "time" in release.schema.names:
        with loaded(release, log) as table:
            found = log.engine.fetch(
                f"SELECT q.query_id AS query_id, {week} AS week, count(DISTINCT r.event) AS n FROM {table} r"
                f" JOIN queries q ON q.query = r.query WHERE time IS NOT NULL GROUP BY q.query_id, {week}"
            )
        their = np.searchsorted(weeks, found["week"].cast(pa.int32()).to_numpy()).clip(0, len(weeks) - 1)
        guess = _by_week(found["query_id"].to_numpy(), their, found["n"].to_numpy(), place, len(weeks))
    else:
        guess = np.repeat(released_counts(release, log)[top][:, None] / len(weeks), len(weeks), axis=1)
    error = float(np.abs(guess - truth).sum() / truth.sum())
    released = error if "query" in release.schema.names else None
    return [Task("trend counts", ERROR, released, 0.0, int(truth.size))]


def _by_week(query: Longs, week: Longs, n: Longs, place: Longs, weeks: int) -> Floats:
    found = np.zeros((int(place.max()) + 1, weeks))
    some = place[query] >= 0
    np.add.at(found, (place[query[some]], week[some]), n[some])
    return found


def _scores(name: str, on: Assessment) -> Iterator[Value]:
    """The scores of one task."""
    found = on.once("tasks", lambda: tasks(on.release, on.log, tests=on.tests, seed=on.seed))
    within = name == "suggestion" and pseudonym(on.release) == "session"
    for task in found:
        if task.task == name:
            nothing = "the release has nothing to learn from" if task.released is None else ""
            session = "learnt from queries within one session" if within else ""
            why = noted(nothing, task.unranked, session)
            yield Value(task.released, why, task.score, task.original, separates=not task.unranked)


_SUMMARIES = {
    "suggestion": "how well the next query of a session is suggested",
    "completion": "how well a query is completed from its first half",
    "click prediction": "how well the address clicked for a query is predicted",
    "trend counts": "relative error of the weekly counts of frequent queries",
}
for _name, _summary in _SUMMARIES.items():
    measure(
        _name.replace(" ", "_"),
        label=_name,
        summary=_summary,
        group="task",
        better="lower" if _name == "trend counts" else "higher",
    )(partial(_scores, _name))
