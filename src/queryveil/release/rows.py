"""Released rows as integers, in an order that reveals nothing, under pseudonyms if they are linked."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from queryveil.engines import Table, Workspace, identifier
from queryveil.formats import writers
from queryveil.log import QueryLog
from queryveil.log.draws import drawn
from queryveil.log.sessions import Linking, check_linking, make_sessions


class ReleasedRows(NamedTuple):
    """The tables of a new release."""

    rows: Table
    """Released rows as integers."""
    pseudonyms: Table | None
    """The user_id and the released id of each user or session in them; None if rows are not linked."""
    counted: Table
    """The query_id of each released query, and the number n of its events."""


def shuffled_rows(
    log: QueryLog,
    work: Workspace,
    events: str,
    clicks: str | None,
    draws: Callable[[str], bytes],
    linking: Linking,
    carried: Sequence[str],
    sessions: Table | None = None,
    *,
    own: bool = False,
) -> ReleasedRows:
    """Released rows in the order of pseudonym, query, and a keyed draw per event.

    Columns: user or session if rows are linked, event (renumbered), query_id, rank, url_id, and the carried ones. An
    event has one row per click, or one row without a click. Views of a log that has them are in the place of clicks,
    with a column clicked. Sessions are those of the log unless a table of event_id, user_id and session is given. With
    `own`, what is released has ids of its own as query_id, which count from 0.
    """
    check_linking(log, linking)
    ids = [(name, log.id_type) for name in ("event_id", "user_id", "query_id")]
    schema = pa.schema([*ids, *((name, writers.type_of(name)) for name in carried)])
    by_query = linking.by == "none" and not own
    within = () if clicks is None else ("rank", "url_id", *(["clicked"] if log.has_views else []))
    with log.workspace() as steps:
        kept = steps.map(events, *drawn(schema, "event_id", draws("event")), "kept events")
        # Here events are still together by query.
        counted = work.table(f"SELECT query_id, count(*) AS n FROM {kept} GROUP BY query_id", "released events")  # noqa: S608  # a table of ours
        columns = ["k.event_id AS event_id", "k.query_id AS query_id", "k.draw AS draw"]
        columns += [f"k.{identifier(name)} AS {identifier(name)}" for name in carried]
        pseudonyms, joined = None, ""
        if linking.by != "none":
            pseudonyms, joined = _number_owners(log, work, steps, kept, draws, linking, sessions)
            columns += [f'f."user" AS "{linking.by}"']
        if clicks is not None:
            columns += [f"c.{name} AS {name}" for name in within]
            # An event has one query. Tables are kept together by it, so they are joined where they are.
            joined += f" LEFT JOIN ({clicks}) AS c ON c.query_id = k.query_id AND c.event_id = k.event_id"
        rows = work.number(
            f"SELECT {', '.join(columns)} FROM {kept} k{joined}",  # noqa: S608  # names are escaped
            (*id_column(linking), "query_id", "draw", "event_id"),
            "event",
            then=within,
            even=by_query,
            frequent=f"SELECT query_id AS value, n FROM {counted}" if by_query else None,  # noqa: S608  # a table of ours
            name="released rows",
        )
    return ReleasedRows(rows, pseudonyms, counted)


def _number_owners(
    log: QueryLog,
    work: Workspace,
    steps: Workspace,
    kept: Table,
    draws: Callable[[str], bytes],
    linking: Linking,
    sessions: Table | None,
) -> tuple[Table, str]:
    """Number the users or sessions of the kept events at random: user_id and "user"; the join that finds the number."""
    if linking.by == "user":
        members = steps.map(
            "SELECT u.user_id AS user_id, u.digest AS digest FROM users u"  # noqa: S608  # a table of ours
            f" JOIN (SELECT user_id FROM {kept} GROUP BY user_id) AS k ON k.user_id = u.user_id",
            *drawn(pa.schema([("user_id", log.id_type)]), "digest", draws("user")),
            "users",
        )
        made = work.number(
            f"SELECT user_id, draw FROM {members}",  # noqa: S608  # a table of ours
            ("draw", "user_id"),
            "user",
            even=True,
            name="pseudonyms",
        )
        return made, f" JOIN {made} f ON f.user_id = k.user_id"
    found = make_sessions(steps, linking) if sessions is None else sessions
    ours = steps.table(
        f"SELECT s.event_id AS event_id, s.user_id AS user_id, s.session AS session FROM {found} s"  # noqa: S608  # a table of ours
        f" JOIN {kept} k ON k.event_id = s.event_id",
        "sessions of kept events",
    )
    if sessions is None:
        steps.drop(found)
    members = steps.map(
        f"SELECT session, min(user_id) AS user_id FROM {ours} GROUP BY session",  # noqa: S608  # a table of ours
        *drawn(pa.schema([("user_id", log.id_type), ("session", log.id_type)]), "session", draws("session")),
        "sessions",
    )
    made = work.number(
        f"SELECT user_id, session, draw FROM {members}",  # noqa: S608  # a table of ours
        ("draw", "session"),
        "user",
        even=True,
        name="pseudonyms",
    )
    return made, f" JOIN {ours} s ON s.event_id = k.event_id JOIN {made} f ON f.session = s.session"


def id_column(linking: Linking) -> tuple[str, ...]:
    """The column of pseudonyms, if there is one."""
    return () if linking.by == "none" else (linking.by,)


def count_pseudonyms(work: Workspace, made: ReleasedRows, linking: Linking) -> dict[str, int | None]:
    """How many users and sessions have a pseudonym, None if they have none."""
    found: dict[str, int | None] = {"users": None, "sessions": None}
    if made.pseudonyms is not None:
        (found[f"{linking.by}s"],) = work.row(f"SELECT count(*) AS n FROM {made.pseudonyms}")  # noqa: S608  # a table of ours
    return found


def typed_columns(names: Sequence[str]) -> pa.Schema:
    """Columns of a released table with their types."""
    return pa.schema([(name, writers.type_of(name)) for name in names])
