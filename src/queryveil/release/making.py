"""New releases: what a method chose from a log, as a released table with its manifest."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, Unpack

import pyarrow as pa

from queryveil.claims import Claim, DifferentialPrivacy, HashedWords, LinkedEvents
from queryveil.claims.certificates import Certificate
from queryveil.claims.lists import StatedList, stated_list
from queryveil.engines import Batches, Table, Workspace
from queryveil.log import LocalLog, QueryLog
from queryveil.log.sessions import USERS, Linking
from queryveil.release.bands import Band, bands
from queryveil.release.linkage import measure_linkage
from queryveil.release.manifest import UNPUBLISHED, Counts, Kind, Manifest, counted_on, counts_of, languages_of
from queryveil.release.release import Release
from queryveil.release.rows import ReleasedRows, count_pseudonyms, id_column, shuffled_rows, typed_columns


class ReleaseMetadata(TypedDict):
    """What a method says about a release that it makes."""

    method: str
    """Its name."""
    parameters: Mapping[str, Any]
    claims: Sequence[Claim]
    """What the release promises."""
    limits: Sequence[str]
    """What it does not promise, in plain words."""
    seed: int
    """Random seed for everything except the noise of differential privacy."""
    notes: NotRequired[Sequence[str]]
    """Sentences about what the method did."""
    certified: NotRequired[Mapping[str, pa.Table]]
    """The tables of its certificate."""
    lists: NotRequired[Mapping[str, Path]]
    """The lists that it was made with, by the names of their files."""


_LINKED_AS: dict[str, Kind] = {"none": "events", "session": "sessions", "user": "records"}


def of_events(
    log: QueryLog,
    events: str,
    clicks: str | None,
    *,
    linking: Linking = USERS,
    sessions: Table | None = None,
    carried: Sequence[str] = (),
    holders: str | None = None,
    **metadata: Unpack[ReleaseMetadata],
) -> Release:
    """A release of some of the log's events, in random order, under pseudonyms if they are linked.

    Args:
        log: The original log.
        events: SQL that gives event_id, user_id, query_id and the carried columns of the released events.
        clicks: SQL that gives event_id, query_id, rank, url_id of the released clicks; None for a release without
            clicks. Of a log with views, these are released, and it gives clicked as well.
        linking: How released events are linked.
        sessions: The table of event_id, user_id and session, if events are linked by other sessions than those of the
            log.
        carried: Further columns of `events` that are released.
        holders: SQL of user_id and holder, the user under whose pseudonym they are released; by default their own.
        metadata: What the method says about it.
    """
    work = log.workspace()
    made = shuffled_rows(log, work, events, clicks, _draws(log, metadata), linking, carried, sessions)
    results = [] if clicks is None else ["rank", "url", *(["clicked"] if log.has_views else [])]
    schema = typed_columns((*id_column(linking), "event", "query", *carried, *results))
    shown = "count(url_id)" if clicks is not None else "0"
    clicked = "count(CASE WHEN clicked THEN 1 END)" if "clicked" in results else shown
    n_rows, n_shown, n_clicks = work.row(
        f"SELECT count(*) AS n, {shown} AS shown, {clicked} AS clicks FROM {made.rows}"  # noqa: S608  # names of tables are made here
    )
    found = bands(log.frequencies(f"SELECT query_id, n FROM {made.counted}"))  # noqa: S608  # a table of ours
    counts = Counts(
        rows=n_rows,
        events=sum(band.kept_events for band in found),
        queries=sum(band.kept_queries for band in found),
        clicks=n_clicks,
        views=n_shown if "clicked" in results else None,
        **count_pseudonyms(work, made, linking),
    )
    if holders is not None and made.pseudonyms is not None:
        of_all = work.table(
            f'SELECT h.user_id AS user_id, f."user" AS "user" FROM ({holders}) AS h'  # noqa: S608  # parts are this package's own
            f" JOIN {made.pseudonyms} f ON f.user_id = h.holder",
            "pseudonyms of all",
        )
        made = made._replace(pseudonyms=of_all)
    manifest = _manifest(log, metadata, _LINKED_AS[linking.by], schema, counts, found)
    return Release(
        manifest,
        schema,
        log.texts(made.rows, schema),
        **_known(log, work, metadata),
        **_linked(log, made, linking, metadata),
    )


def of_items(
    log: QueryLog,
    items: str,
    names: pa.Array,
    *,
    linking: Linking = USERS,
    members: bool = False,
    **metadata: Unpack[ReleaseMetadata],
) -> Release:
    """A release of nodes of a tree instead of queries, in random order, under pseudonyms if they are linked.

    Args:
        log: The original log.
        items: SQL that gives event_id, user_id and node.
        names: The name of every node.
        linking: How released items are linked; sessions need the event_id of events of the log.
        members: Whether its certificate says who has which pseudonym.
        metadata: What the method says about it.
    """
    work = log.workspace()
    # A node is treated like a query everywhere; only its text comes from elsewhere.
    rows = f"SELECT event_id, user_id, node AS query_id FROM ({items}) AS items"  # noqa: S608  # parts are this package's own

    def named(released: Table, schema: pa.Schema) -> Batches:
        return log.items(work, released, schema, names)

    release = _instead_of_queries(log, work, rows, ("item", "node"), "items", linking, named, metadata)
    if not members or release.pseudonyms is None:
        return release
    if not isinstance(log, LocalLog):
        return replace(release, certificate=Certificate(metadata["seed"], kept={"members": release.pseudonyms}))
    who = work.fetch(f'SELECT user_id, "user" FROM {release.pseudonyms} ORDER BY user_id')  # noqa: S608  # a table of ours
    return replace(release, certificate=Certificate(metadata["seed"], {"members": who}))


def of_texts(
    log: QueryLog,
    texts: Table,
    *,
    linking: Linking = USERS,
    **metadata: Unpack[ReleaseMetadata],
) -> Release:
    """A release of other texts instead of queries, in random order, without clicks.

    Args:
        log: The original log.
        texts: The table of query_id, query, low and high: what is published instead of a query, and its digest.
            Events of other queries are left out.
        linking: How released events are linked.
        metadata: What the method says about it.
    """
    work = log.workspace()
    # Ids of queries are in the order of their digests, which would say something about them; what is published may.
    numbered = work.number(
        f"SELECT query_id, query, low, high FROM {texts}",  # noqa: S608  # a table of ours
        ("low", "high"),
        "text_id",
        even=True,
    )
    rows = (
        "SELECT e.event_id AS event_id, e.user_id AS user_id, n.text_id AS query_id FROM events e"  # noqa: S608  # a table of ours
        f" JOIN {numbered} n ON n.query_id = e.query_id"
    )

    def published(released: Table, schema: pa.Schema) -> Batches:
        text = work.table(
            f"SELECT text_id AS query_id, min(query) AS query FROM {numbered} GROUP BY text_id",  # noqa: S608  # a table of ours
            "published texts",
        )
        work.drop(numbered)
        return log.texts(released, schema, text)

    return _instead_of_queries(log, work, rows, ("event", "query"), "tokens", linking, published, metadata)


def of_counts(
    log: QueryLog,
    rows: str,
    *,
    columns: Sequence[str],
    **metadata: Unpack[ReleaseMetadata],
) -> Release:
    """A release of queries, and maybe of noisy counts, that is differentially private.

    The manifest says nothing exact about the log: no fingerprint, no counts, no frequency bands. The number of
    events is the sum of the published counts of queries or, if there are none, the number of queries.

    Args:
        log: The original log.
        rows: SQL that gives query_id, and with the columns `url` and `count` also url_id (NULL in the row of the
            query itself) and count.
        columns: The columns of the released table, of `query`, `url` and `count`.
        metadata: What the method says about it.
    """
    work = log.workspace()
    then = ("url_id",) if "url" in columns else ()
    made = work.number(rows, ("query_id",), "place", then=then, even=True, name="released counts")
    schema = typed_columns(columns)
    plain = "url_id IS NULL" if "url" in columns else "1 = 1"
    counted = '"count"' if "count" in columns else "1"
    n_rows, n_queries, n_events = work.row(
        f"SELECT count(*) AS n, coalesce(CAST(sum(CASE WHEN {plain} THEN 1 ELSE 0 END) AS BIGINT), 0) AS queries,"  # noqa: S608  # parts are this package's own
        f" coalesce(CAST(sum(CASE WHEN {plain} THEN {counted} ELSE 0 END) AS BIGINT), 0) AS events"
        f" FROM {made}"
    )
    counts = Counts(rows=n_rows, events=n_events, users=None, queries=n_queries, clicks=n_rows - n_queries)
    manifest = _manifest(log, metadata, "counts", schema, counts, ())
    return Release(manifest, schema, log.texts(made, schema), **_known(log, work, metadata))


def of_table(
    log: QueryLog,
    rows: str,
    *,
    columns: Sequence[str],
    **metadata: Unpack[ReleaseMetadata],
) -> Release:
    """A release of a table of counts: those of the log, rounded, or with noise.

    Rows are in the order of query, address, rank and metadata. The number of events is the sum of the published ones,
    of users with noise if there are no others, and the number of clicks is that of rows with an address; totals do not
    count.

    Args:
        log: The original log.
        rows: SQL that gives the columns, with query_id and url_id for texts; rank, also if it is no column; total, 1 or
            0; and query_order, which is the query_id or 0.
        columns: The columns of the released table.
        metadata: What the method says about it.
    """
    work = log.workspace()
    schema = typed_columns(columns)
    texts = [name for name in columns if schema.field(name).type == pa.string()]
    then = ("url_id", "rank", *(name for name in texts if name not in ("query", "url", "users_band")))
    made = work.number(rows, ("total", "query_order"), "place", then=then, name="released counts")
    each = "events" if "events" in columns else "users"
    n_rows, n_queries, n_events, n_clicks = work.row(
        "SELECT count(*) AS n, count(DISTINCT query_id) AS queries, coalesce(CAST(sum(CASE WHEN total = 0 THEN"  # noqa: S608  # a table of ours
        f" {each} ELSE 0 END) AS BIGINT), 0) AS events, count(CASE WHEN total = 0 THEN url_id END) AS clicks"
        f" FROM {made}"
    )
    counts = Counts(rows=n_rows, events=n_events, users=None, queries=n_queries, clicks=n_clicks)
    manifest = _manifest(log, metadata, "counts", schema, counts, ())
    return Release(manifest, schema, log.texts(made, schema), **_known(log, work, metadata))


def _instead_of_queries(
    log: QueryLog,
    work: Workspace,
    rows: str,
    names: Sequence[str],
    kind: Kind,
    linking: Linking,
    batches: Callable[[Table, pa.Schema], Batches],
    metadata: ReleaseMetadata,
) -> Release:
    """A release of what stands in the place of queries, and has ids of its own as `query_id`, without clicks."""
    made = shuffled_rows(log, work, rows, None, _draws(log, metadata), linking, (), own=True)
    schema = typed_columns((*id_column(linking), *names))
    n_rows, n_items = work.row(
        f"SELECT coalesce(CAST(sum(n) AS BIGINT), 0) AS n, count(*) AS items FROM {made.counted}"  # noqa: S608  # a table of ours
    )
    pseudonyms = count_pseudonyms(work, made, linking)
    counts = Counts(rows=n_rows, events=n_rows, queries=n_items, clicks=0, **pseudonyms)
    return Release(
        _manifest(log, metadata, kind, schema, counts, bands(log.frequencies())),
        schema,
        batches(made.rows, schema),
        **_known(log, work, metadata),
        **_linked(log, made, linking, metadata, own=True),
    )


def _draws(log: QueryLog, metadata: ReleaseMetadata) -> Callable[[str], bytes]:
    """Keys for draws. They depend on method, parameters and language: two releases of a log cannot be matched."""
    chosen = f"{metadata['method']} {json.dumps(metadata['parameters'], sort_keys=True)}"
    spoken = languages_of(log, private=False)
    return partial(log.secret, metadata["seed"], chosen, *([] if spoken is None else [spoken.model_dump_json()]))


def _manifest(
    log: QueryLog, metadata: ReleaseMetadata, kind: Kind, schema: pa.Schema, counts: Counts, found: tuple[Band, ...]
) -> Manifest:
    """The manifest of a new release; for a private one it says nothing exact about the log."""
    scrub = log.stats.scrub
    private = any(isinstance(claim, DifferentialPrivacy) for claim in metadata["claims"])
    return Manifest(
        method=metadata["method"],
        kind=kind,
        parameters=dict(metadata["parameters"]),
        claims=tuple(metadata["claims"]),
        limits=tuple(metadata["limits"]),
        language=languages_of(log, private=private or log.stats.series is not None),
        scrub=scrub.without_counts if private and scrub is not None else scrub,
        series=log.stats.series,
        input_fingerprint=None if private else log.keyed_fingerprint(metadata["seed"]),
        # In a series most of the log still waits, and exact numbers about it would show who came from day to day. The
        # size of the log is also a total of a table of counts, from which hidden rows would follow.
        input_counts=UNPUBLISHED if private or kind == "counts" or log.stats.series is not None else counts_of(log),
        input=None if log.stats.read_as is None else log.stats.read_as.kept,
        counted_on=None if log.counted is log else counted_on(log, metadata["seed"]),
        lists=stated_lists(log, metadata.get("lists", {}), metadata["seed"]),
        counts=counts,
        bands=() if log.stats.series is not None else found,
        columns=tuple(schema.names),
    )


def stated_lists(log: QueryLog, lists: Mapping[str, Path], seed: int) -> dict[str, StatedList]:
    """What a manifest says about the lists of a release."""
    return {name: stated_list(lists[name], log, seed) for name in sorted(lists)}


def _known(log: QueryLog, work: Workspace, metadata: ReleaseMetadata) -> dict[str, Any]:
    """What a new release knows and does not publish."""
    return {
        "log": log,
        "workspace": work,
        "notes": tuple(metadata.get("notes", ())),
        "lists": metadata.get("lists", {}),
        "certificate": Certificate(metadata["seed"], metadata.get("certified", {})),
    }


def _linked(
    log: QueryLog, made: ReleasedRows, linking: Linking, metadata: ReleaseMetadata, *, own: bool = False
) -> dict[str, Any]:
    """Who has which pseudonym, and what measures linkage on demand unless several users share a record.

    With `own`, what is released has ids of its own instead of those of queries, one for each event.
    """
    alone = any(isinstance(claim, LinkedEvents | HashedWords) for claim in metadata["claims"])
    if made.pseudonyms is None or linking.by == "none" or not alone:
        return {"pseudonyms": made.pseudonyms}
    column: Literal["user", "session"] = linking.by
    issued = (
        f"SELECT r.event_id AS event_id, e.user_id AS user_id, r.query_id AS query_id FROM {made.rows} r"  # noqa: S608  # names of tables are made here
        " JOIN events e ON e.event_id = r.event_id"
    )
    measured = partial(
        measure_linkage,
        log,
        f'SELECT "{column}" AS "user", query_id, event FROM {made.rows}',  # noqa: S608  # a table of ours
        made.pseudonyms,
        column=column,
        seed=metadata["seed"],
        issued=issued if own else None,
    )
    return {"pseudonyms": made.pseudonyms, "measured": measured}
