"""One query: is it released, why, and which similar queries stand behind it."""

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.assess.drawings import layout
from queryveil.assess.explanation import explain
from queryveil.assess.neighbourhoods import neighbourhood
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog
from queryveil.methods import Affinity, Reason
from queryveil.release import Release
from queryveil.reports.examples import masked
from queryveil.studio.session import Session
from queryveil.studio.settings import slid
from queryveil.text import normal_form

MOST_DRAWN = 40
_WIDTH, _HEIGHT, _RADIUS = 640, 420, 15


@dataclass(frozen=True)
class Node:
    """A query of the drawing."""

    query_id: int
    text: str
    users: int
    degree: int
    x: float
    y: float


@dataclass(frozen=True)
class Graph:
    """The similar queries around one, placed for a drawing; the one asked for comes first.

    Attributes:
        theta: The least cosine of similar queries.
        whole: Whether degrees are exact, and not lower bounds.
        total: How many queries there are, drawn or not.
        nodes: Those that are drawn.
        edges: Pairs of places of similar ones.
    """

    theta: float
    whole: bool
    total: int
    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]
    width: int = _WIDTH
    height: int = _HEIGHT
    radius: int = _RADIUS


@dataclass(frozen=True)
class Answer:
    """What is known about a query.

    Attributes:
        text: The query, masked unless it may be shown.
        query_id: Its number in the log; None if nobody issued it.
        users: Who issued it.
        events: How often.
        rows: How many rows of the release have it; None if there is no release.
        reasons: The rules that decide, and what was found.
        graph: What stands behind it; None if nothing does.
        why: Why there is no graph.
    """

    text: str
    query_id: int | None
    users: int = 0
    events: int = 0
    rows: int | None = None
    reasons: tuple[Reason, ...] = ()
    graph: Graph | None = None
    why: str = ""


def ask(session: Session, text: str, query_id: int | None = None) -> Answer:
    """Ask about a query.

    Args:
        session: The app.
        text: The query as somebody typed it.
        query_id: Its number in the log instead, where somebody clicked it.
    """
    log = session.open_log
    typed = query_id is None
    if query_id is None:
        query_id = log.find(text)
    elif not 0 <= query_id < log.n_queries:
        raise QueryveilError("There is no such query in the log; load the page again.")
    if query_id is None:
        known = str(normal_form(pa.array([text]))[0].as_py())
        return Answer(known, None, rows=None if session.release is None else rows_of(session.release, known))
    whole = str(log.query_text[query_id].as_py())
    rows, reasons = _explained(session, log, whole, query_id)
    if session.state.masked:
        reasons = tuple(replace(one, found=_unnamed(one.found)) for one in reasons)
    graph, why = _graph(session, log, whole)
    # Who typed a query knows it already.
    shown = whole if typed or not session.state.masked else masked(log, [query_id])[0]
    counts = int(log.users_per_query[query_id]), int(log.events_per_query[query_id])
    return Answer(shown, query_id, *counts, rows, reasons, graph, why)


def rows_of(release: Release, text: str) -> int:
    """How many rows of a release have a text, be it a query of the log or one that was masked."""
    if "query" not in release.schema.names:
        return 0
    return sum(pc.sum(pc.equal(batch["query"], text)).as_py() or 0 for batch in release.batches())


def _unnamed(found: str) -> str:
    """What a rule found, up to the first text that it quotes; a text may hold quotes itself."""
    before, quote, _ = found.partition("'")
    return f"{before}(masked)" if quote else found


def _explained(session: Session, log: LocalLog, text: str, query_id: int) -> tuple[int | None, tuple[Reason, ...]]:
    """How many rows of the release have the query, and why; without a release, what is chosen decides."""
    if session.release is not None:
        found = explain(session.release, log, text)
        return found.rows, found.reasons
    return None, tuple(session.method().explain(log, query_id))


def _graph(session: Session, log: LocalLog, text: str) -> tuple[Graph | None, str]:
    try:
        chosen = slid(session.state.steps if session.release is None else session.release.manifest.steps)
        method = chosen if isinstance(chosen, Affinity) else Affinity()
        rest = {name: getattr(method, name) for name in ("vectors", "concept_min_users", "min_term_users")}
        found = neighbourhood(log, text, theta=method.theta, k=method.k, **rest)
    except QueryveilError as error:
        return None, str(error)
    some = found.queries[:MOST_DRAWN]
    ids = [log.find(one.query) or 0 for one in some]
    texts = masked(log, ids) if session.state.masked else [one.query for one in some]
    edges = tuple(edge for edge in found.edges if edge[1] < len(some))
    room = 2 * _RADIUS
    places = layout(len(some), edges) * [_WIDTH - 2 * room, _HEIGHT - 2 * room] + room
    nodes = tuple(
        Node(number, name, one.users, one.degree, round(float(x), 1), round(float(y), 1))
        for number, name, one, (x, y) in zip(ids, texts, some, places, strict=True)
    )
    return Graph(found.theta, found.whole, len(found.queries), nodes, edges), ""
