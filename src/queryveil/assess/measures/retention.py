"""What a release keeps of its log: shares of queries, events, users, clicks, views and terms, and the long tail."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Longs
from queryveil.assess.measures.counts import released_counts
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.log import QueryLog, local
from queryveil.release import Release, loaded
from queryveil.release.bands import Band, bands


@dataclass(frozen=True)
class Kept:
    """How many of how many."""

    kept: int
    of: int

    @property
    def share(self) -> float:
        """The share that is kept; 0 of nothing."""
        return self.kept / self.of if self.of else 0.0


@dataclass(frozen=True)
class Retention:
    """What is kept.

    Attributes:
        queries: Distinct queries.
        events: Events; of a query no more than the log has.
        users: Users who appear, also in a record that is written once for several; None where no user ids are released.
        clicks: Clicks.
        views: Results shown, clicked or not.
        terms: Distinct terms.
        bands: Queries and events by how many users issued the query.
        sessions: How many sessions are released under a pseudonym each; None where sessions are not.
    """

    queries: Kept
    events: Kept
    users: Kept | None
    clicks: Kept
    views: Kept
    terms: Kept
    bands: tuple[Band, ...]
    sessions: int | None = None


def retention(release: Release, log: QueryLog) -> Retention:
    """What a release keeps of its log."""
    here = local(log, "retention")
    counts = np.minimum(released_counts(release, here), here.events_per_query)
    kept = np.flatnonzero(counts)
    query_terms = here.engine.fetch("SELECT query_id, word_id FROM query_terms")
    word = query_terms["word_id"].to_numpy()
    some = np.unique(word[np.isin(query_terms["query_id"].to_numpy(), kept)])
    users = release.manifest.counts.users
    if "users" in release.schema.names:
        with loaded(release, here) as released:
            (users,) = here.engine.row(
                f'SELECT CAST(sum(n) AS BIGINT) AS n FROM (SELECT max(users) AS n FROM {released} GROUP BY "user") AS r'
            )
    frequency = here.users_per_query
    order = np.unique(frequency)
    place = np.searchsorted(order, frequency)

    def by_users(values: NDArray[np.generic]) -> Longs:
        return np.bincount(place, weights=values, minlength=len(order)).astype(np.int64)

    table = pa.table(
        {
            "users": order,
            "queries": by_users(np.ones(len(place))),
            "events": by_users(here.events_per_query),
            "kept_queries": by_users(counts > 0),
            "kept_events": by_users(counts),
        }
    )
    return Retention(
        Kept(len(kept), here.n_queries),
        Kept(int(counts.sum()), here.stats.events),
        None if "user" not in release.schema.names else Kept(int(users or 0), here.n_users),
        Kept(release.manifest.counts.clicks, here.stats.clicks),
        Kept(release.manifest.counts.views or 0, here.stats.views),
        Kept(len(some), len(np.unique(word))),
        bands(table),
        release.manifest.counts.sessions,
    )


def _kept(on: Assessment) -> Retention:
    return on.once("retention", lambda: retention(on.release, on.log))


def _share(name: str, on: Assessment) -> Iterator[Value]:
    """The share of something that is released."""
    of: Kept | None = getattr(_kept(on), name)
    if name != "users" and not on.has_queries:
        yield Value(None, "the release has items, not queries")
    elif of is None:
        sessions = _kept(on).sessions
        yield Value(None, "no user ids released" + ("" if sessions is None else f"; {sessions:,} sessions"))
    else:
        yield Value(of.share) if of.of else Value(None, "the log has none")


_LABELS = {
    "queries": "distinct queries",
    "events": "events",
    "users": "users",
    "clicks": "clicks",
    "terms": "distinct terms",
}
for _name, _label in _LABELS.items():
    measure(f"{_name}_kept", label=_label, summary=f"share of {_label} that is released", group="retention")(
        partial(_share, _name)
    )


@measure("views_kept", label="views", summary="share of views that is released", group="retention")
def views_kept(on: Assessment) -> Iterator[Value]:
    """The share of results shown that is released, if the log has any."""
    if on.log.has_views:
        yield from _share("views", on)


@measure(
    "queries_kept_by_users",
    label="distinct queries of",
    summary="share of distinct queries that is released, by how many users issued them",
    group="retention",
)
def queries_kept_by_users(on: Assessment) -> Iterator[Value]:
    """The share of distinct queries that is released, by how many users issued them."""
    for band in _kept(on).bands if on.has_queries else ():
        if band.queries:
            yield Value(band.kept_queries / band.queries, detail=band.label)
