"""What a release keeps of its log: shares of queries, events, users, clicks, views and terms, and the long tail."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from queryveil.assess.measures.counts import counted
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.log import QueryLog, check_is_log
from queryveil.release import Release, loaded
from queryveil.release.bands import Band, bands

NO_QUERY = "SELECT query_id, 0 AS n FROM per_query WHERE 1 = 0"
"""What a release of items has of queries."""


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
    check_is_log(log, "retention")
    log.ensure_tables("per_query")
    users = release.manifest.counts.users
    with loaded(release, log) as released, log.workspace() as work:
        counts = counted(release, released) if "query" in release.schema.names else NO_QUERY
        kept = work.table(
            f"SELECT p.query_id AS query_id, least(c.n, p.events) AS n FROM per_query p JOIN ({counts}) AS c"
            " ON c.query_id = p.query_id WHERE c.n > 0",
            "kept queries",
        )
        found = log.engine.fetch(
            "SELECT p.users AS users, count(*) AS queries, CAST(sum(p.events) AS BIGINT) AS events, count(k.n) AS"
            " kept_queries, CAST(coalesce(sum(k.n), 0) AS BIGINT) AS kept_events FROM per_query p"
            f" LEFT JOIN {kept} k ON k.query_id = p.query_id GROUP BY p.users ORDER BY p.users"
        )
        (terms,) = work.row("SELECT count(DISTINCT word_id) AS n FROM query_terms")
        (kept_terms,) = work.row(
            f"SELECT count(DISTINCT t.word_id) AS n FROM query_terms t JOIN {kept} k ON k.query_id = t.query_id"
        )
        if "users" in release.schema.names:
            (users,) = work.row(
                f'SELECT CAST(sum(n) AS BIGINT) AS n FROM (SELECT max(users) AS n FROM {released} GROUP BY "user") AS r'
            )
    return Retention(
        Kept(sum(found["kept_queries"].to_pylist()), log.n_queries),
        Kept(sum(found["kept_events"].to_pylist()), log.stats.events),
        None if "user" not in release.schema.names else Kept(int(users or 0), log.n_users),
        Kept(release.manifest.counts.clicks, log.stats.clicks),
        Kept(release.manifest.counts.views or 0, log.stats.views),
        Kept(kept_terms, terms),
        bands(found),
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
