"""What methods that keep or drop whole queries have in common: the release itself, and which clicks go with it."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from queryveil.claims import Claim, LinkedEvents, PartOfLog, RowUsers, Sessions
from queryveil.engines import Table
from queryveil.log import QueryLog
from queryveil.log.sessions import Linking
from queryveil.methods.linked import LinkedMethod
from queryveil.release import Release
from queryveil.release.making import of_events


def release_queries(
    method: LinkedMethod,
    log: QueryLog,
    kept: Table,
    *claims: Claim,
    k: int | None,
    seed: int,
    notes: Sequence[str] = (),
    certified: Mapping[str, pa.Table] | None = None,
) -> Release:
    """Release all events of some queries, with the clicks that at least k users made.

    Args:
        method: The method.
        log: The log.
        kept: The query_id of each query.
        claims: What the method promises about them.
        k: Least users of a click; None for a release without clicks.
        seed: Random seed.
        notes: Sentences about what the method did.
        certified: The tables of the certificate.
    """
    promised = (PartOfLog(), *claims, *click_claims(k, log), *link_claims(method.linking))
    return of_events(
        log,
        "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id FROM events e"
        f" JOIN {kept} r ON r.query_id = e.query_id",
        clicks_of(kept, k) if k is not None and log.has_clicks else None,
        linking=method.linking,
        **method.describe(promised, seed, notes, certified),
    )


def click_claims(k: int | None, log: QueryLog) -> list[RowUsers]:
    """What `clicks_of` keeps: an address, and a rank, only if k users clicked it for the query."""
    if k is None or not log.has_clicks:
        return []
    return [RowUsers(users=k, columns=columns, clicked=True) for columns in (("url",), ("url", "rank"))]


def link_claims(linking: Linking, *, whole: bool = True, items: bool = False) -> list[LinkedEvents]:
    """What pseudonyms promise, if there are any.

    Args:
        linking: How released events are linked.
        whole: Whether all events of a released query are released.
        items: Whether an item replaces each event.
    """
    if linking.by == "none":
        return []
    return [LinkedEvents(sessions=claimed_sessions(linking), whole=whole, items=items)]


def claimed_sessions(linking: Linking) -> Sessions | None:
    """What a session is, for claims; None if events are not linked by sessions."""
    return Sessions(gap=linking.gap, events=linking.events) if linking.by == "session" else None


def clicks_of(released: Table, k: int, clicks: str = "clicks") -> str:
    """SQL of the clicks on released queries that at least k users made; a rank stays if k users clicked at it.

    Args:
        released: The query_id of each released query.
        k: Least users of a click.
        clicks: The table, or a query in brackets, that holds the clicks.
    """
    url, rank = (_shared(released, clicks, keys, k) for keys in ("query_id, url_id", "query_id, url_id, rank"))
    return (
        f"SELECT c.event_id AS event_id, ranks.rank AS rank, c.url_id AS url_id FROM {clicks} c JOIN ({url}) AS shared"
        f" ON shared.query_id = c.query_id AND shared.url_id = c.url_id LEFT JOIN ({rank}) AS ranks"
        " ON ranks.query_id = c.query_id AND ranks.url_id = c.url_id AND ranks.rank = c.rank"
    )


def _shared(released: Table, clicks: str, keys: str, k: int) -> str:
    """SQL of the combinations of columns that the clicks of at least k users share."""
    given = " AND ".join(f"c.{key} IS NOT NULL" for key in keys.split(", "))
    named = ", ".join(f"c.{key} AS {key}" for key in keys.split(", "))
    grouped = ", ".join(f"c.{key}" for key in keys.split(", "))
    pairs = (
        f"SELECT {named}, c.user_id AS user_id FROM {clicks} c JOIN {released} r ON r.query_id = c.query_id"
        f" WHERE {given} GROUP BY {grouped}, c.user_id"
    )
    return f"SELECT {keys} FROM ({pairs}) AS pairs GROUP BY {keys} HAVING count(*) >= {k}"
