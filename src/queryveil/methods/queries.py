"""What methods that keep or drop whole queries have in common: the release itself, and which clicks go with it."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from queryveil.claims import Claim, ClickedUsers, LinkedEvents, PartOfLog, RowUsers, Sessions, ViewUsers
from queryveil.engines import Table, Workspace
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.log.sessions import Linking
from queryveil.methods.base import Method
from queryveil.methods.linked import LinkedMethod
from queryveil.release import Release
from queryveil.release.making import of_events


@dataclass(frozen=True)
class Selection:
    """The queries that a method chose.

    Attributes:
        queries: The query_id of each.
        notes: Sentences about what the method did.
        certified: The tables of the certificate.
    """

    queries: Table
    notes: Sequence[str] = ()
    certified: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True)
class Speaker:
    """Who makes a release, and what it promises beside what its last step does.

    Attributes:
        method: The method, or the pipeline that it is the last step of.
        claims: What earlier steps promise about queries.
    """

    method: Method
    claims: Sequence[Claim] = ()


class QueryMethod(LinkedMethod):
    """A method that chooses queries by rules about them, and releases their events."""

    makes = "events"

    @abstractmethod
    def select(self, log: QueryLog, work: Workspace, within: Table | None = None) -> Selection:
        """Choose queries.

        Args:
            log: The log.
            work: Where tables are made.
            within: The query_id of those that earlier steps left; by default all. Users are counted in the whole log.
        """

    def choose(self, log: QueryLog, work: Workspace, seed: int, within: Table | None = None) -> Selection:
        """Choose queries, where a method may also draw something at random.

        Args:
            log: The log.
            work: Where tables are made.
            seed: Random seed.
            within: As for `select`.
        """
        return self.select(log, work, within)

    @abstractmethod
    def claims(self, log: QueryLog) -> list[Claim]:
        """What it promises about each query that it chose."""

    @property
    def click_users(self) -> int | None:
        """Least users of a released click; None for a release without clicks."""
        return None

    def sessions(self, log: QueryLog, work: Workspace, chosen: Table) -> tuple[Table | None, Sequence[str]]:
        """The event_id, user_id and session of the events of chosen queries, and sentences about them.

        The table is None if sessions are those of the log.
        """
        return None, ()

    def link_claims(self, log: QueryLog) -> list[Claim]:
        """What pseudonyms promise, if there are any."""
        return [*link_claims(self.linking)]

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Release the events of the queries that it chooses."""
        with log.workspace() as work:
            return self.publish(log, work, self.choose(log, work, seed), Speaker(self), seed=seed)

    def publish(self, log: QueryLog, work: Workspace, chosen: Selection, speaker: Speaker, *, seed: int) -> Release:
        """Release all events of the chosen queries, with the clicks that enough users made."""
        k, linking = self.click_users, self.linking
        promised = (PartOfLog(), *speaker.claims, *self.claims(log), *click_claims(k, log), *self.link_claims(log))
        sessions, notes = self.sessions(log, work, chosen.queries)
        return of_events(
            log,
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id FROM events e"
            f" JOIN {chosen.queries} r ON r.query_id = e.query_id",
            clicks_of(log, chosen.queries, k) if k is not None and log.has_results else None,
            linking=linking,
            sessions=sessions,
            **speaker.method.describe(promised, seed, [*chosen.notes, *notes], chosen.certified),
        )


def joined(within: Table | None, query_id: str) -> str:
    """SQL that leaves only the queries of a table, if one is given."""
    return "" if within is None else f" JOIN {within} within_ ON within_.query_id = {query_id}"


def flags_of(log: LocalLog, queries: Table | None) -> Bools | None:
    """Which queries of a log are in a table; None without a table."""
    if queries is None:
        return None
    found = np.zeros(log.n_queries, np.bool_)
    found[log.engine.fetch(f"SELECT query_id FROM {queries}")["query_id"].to_numpy()] = True
    return found


def click_claims(k: int | None, log: QueryLog) -> list[Claim]:
    """What `clicks_of` keeps: an address, and a rank, only if k users clicked it for the query, or were shown it."""
    if k is None or not log.has_results:
        return []
    if log.has_views:
        return [ViewUsers(users=k), ViewUsers(users=k, ranks=True), ClickedUsers(users=k)]
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


def clicks_of(log: QueryLog, released: Table, k: int, results: str | None = None) -> str:
    """SQL of the clicks on released queries that at least k users made; a rank stays if k users clicked at it.

    Its columns are event_id, query_id, rank and url_id.

    If the log has views, these are treated as clicks are, and have a column `clicked`. It is known for all views of a
    query that show the same address and rank, or for none: k users must have clicked there, or nobody, and k users not,
    or nobody. So no view differs from fewer than k others in it.

    Args:
        log: The log.
        released: The query_id of each released query.
        k: Least users of a click.
        results: The table, or a query in brackets, that holds the clicks or views; by default that of the log.
    """
    results = results or log.results
    url, rank = (_shared(released, results, keys, k) for keys in ("query_id, url_id", "query_id, url_id, rank"))
    views = ", c.user_id AS user_id, c.clicked AS clicked" if log.has_views else ""
    kept = (
        "SELECT c.event_id AS event_id, c.query_id AS query_id, ranks.rank AS rank, c.url_id AS url_id"
        f"{views} FROM {results} c"
        f" JOIN ({url}) AS shared ON shared.query_id = c.query_id AND shared.url_id = c.url_id LEFT JOIN ({rank}) AS"
        " ranks ON ranks.query_id = c.query_id AND ranks.url_id = c.url_id AND ranks.rank = c.rank"
    )
    if not log.has_views:
        return kept
    alike = "query_id, url_id, place"
    return (
        f"WITH kept AS ({kept}), people AS (SELECT query_id, url_id, coalesce(rank, -1) AS place, clicked, user_id"
        " FROM kept GROUP BY query_id, url_id, coalesce(rank, -1), clicked, user_id),"
        f" counted AS (SELECT {alike}, clicked, count(*) AS n FROM people GROUP BY {alike}, clicked),"
        f" known AS (SELECT {alike} FROM counted GROUP BY {alike} HAVING min(n) >= {k})"
        " SELECT v.event_id AS event_id, v.query_id AS query_id, v.rank AS rank, v.url_id AS url_id,"
        " CASE WHEN known.place IS NOT NULL THEN v.clicked = 1 END AS clicked FROM kept v"
        " LEFT JOIN known ON known.query_id = v.query_id AND known.url_id = v.url_id"
        " AND known.place = coalesce(v.rank, -1)"
    )


def _shared(released: Table, results: str, keys: str, k: int) -> str:
    """SQL of the combinations of columns that the clicks or views of at least k users share."""
    given = " AND ".join(f"c.{key} IS NOT NULL" for key in keys.split(", "))
    named = ", ".join(f"c.{key} AS {key}" for key in keys.split(", "))
    grouped = ", ".join(f"c.{key}" for key in keys.split(", "))
    pairs = (
        f"SELECT {named}, c.user_id AS user_id FROM {results} c JOIN {released} r ON r.query_id = c.query_id"
        f" WHERE {given} GROUP BY {grouped}, c.user_id"
    )
    return f"SELECT {keys} FROM ({pairs}) AS pairs GROUP BY {keys} HAVING count(*) >= {k}"
