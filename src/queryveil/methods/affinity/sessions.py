"""Sessions as units of k-theta-affinity: a session is released as one if sessions of k users are similar to it.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, section 7, name larger chunks of a log than single queries, such as sessions, as future work.
The vector of a session is the union of the vectors of its released queries. A query without a concept is one element,
of the weight of a word that is in as many events: otherwise a session with it would count as one without it.
"""

import numpy as np
import pyarrow as pa

from queryveil.arrays import Ragged, offsets
from queryveil.engines import Table, Workspace
from queryveil.engines.memory import reserve
from queryveil.kernels.types import Ints, Longs
from queryveil.log import LocalLog
from queryveil.log.sessions import Linking, make_sessions
from queryveil.methods.affinity.concepts import FIXED_POINT, Concepts, query_vectors
from queryveil.methods.affinity.graph import AffinityGraph, Vertices, Weights, merged, users_of


def protected_sessions(
    log: LocalLog,
    work: Workspace,
    chosen: Table,
    concepts: Concepts,
    linking: Linking,
    k: int,
    theta: float,
    most_new: int | None,
) -> tuple[Table, int, int]:
    """The event_id, user_id and session of the events of chosen queries, where sessions that lack users are cut.

    A session of one query is never cut, so it always counts behind others. Of the sessions of several queries, the
    largest set remains in which each has k users together with those similar to it. The queries of every other session
    are sessions of their own; these do not count behind others.

    Args:
        log: The log.
        work: Where the table is made.
        chosen: The query_id of each released query.
        concepts: What vectors are made of.
        linking: What a session is.
        k: The least users.
        theta: The least cosine of similar sessions.
        most_new: How many new accounts count as users of a session, None for all.

    Returns:
        The table; how many sessions have several queries; and how many of these are not cut.
    """
    with log.workspace() as steps:
        every = steps.table(
            "SELECT s.event_id AS event_id, s.user_id AS user_id, s.session AS session, e.query_id AS query_id FROM"
            f" {make_sessions(steps, linking)} s JOIN events e ON e.event_id = s.event_id"
            f" JOIN {chosen} r ON r.query_id = e.query_id",
            "sessions of chosen queries",
        )
        held = steps.fetch(
            "SELECT session, query_id, min(user_id) AS user_id FROM"
            f" {every} GROUP BY session, query_id ORDER BY session, query_id"
        )
        session, first, owner = np.unique(held["session"].to_numpy(), return_index=True, return_inverse=True)
        sizes = np.bincount(owner, minlength=len(session))
        several = sizes > 1
        whole = np.zeros(len(session), np.bool_)
        if several.any():
            user = held["user_id"].to_numpy()[first]
            vertices = _vertices(log, concepts, Ragged(offsets(sizes)), held["query_id"].to_numpy(), user)
            graph = AffinityGraph(vertices, theta, log.engine.threads)
            staying = np.zeros(len(vertices), np.bool_)
            staying[vertices.of[~several]] = True
            (core,) = graph.cores([k], most_new=most_new, staying=staying)
            whole = several & core[vertices.of]
        kept = steps.read(pa.table({"session": pa.array(session[whole], log.id_type)}), "whole sessions")
        made = work.table(
            "SELECT e.event_id AS event_id, e.user_id AS user_id, CASE WHEN w.session IS NOT NULL THEN e.session"
            " ELSE min(e.event_id) OVER (PARTITION BY e.session, e.query_id) END AS session"
            f" FROM {every} e LEFT JOIN {kept} w ON w.session = e.session",
            "protected sessions",
        )
        return made, int(several.sum()), int(whole.sum())


def _vertices(log: LocalLog, concepts: Concepts, sessions: Ragged, query: Longs, user: Ints) -> Vertices:
    """Sessions with equal vectors as one vertex, those of one query and of several apart.

    Args:
        log: The log.
        concepts: What vectors are made of.
        sessions: The queries of each session.
        query: These queries.
        user: The user of each session.
    """
    start, concept = query_vectors(log, concepts)
    vectors = Ragged(start)
    bare = np.unique(query[vectors.sizes[query] == 0])
    weight = np.log2(log.events_per_query[bare] + 1.0)
    weights, place = _by_weight(concepts, np.rint(weight * weight * FIXED_POINT).astype(np.int64))
    reserve(24 * int(vectors.sizes[query].sum() + len(query)), "The vectors of sessions")
    owner = sessions.owners
    alone = np.flatnonzero(vectors.sizes[query] == 0)
    elements = np.concatenate([concept[vectors.positions(query)], len(concepts) + np.searchsorted(bare, query[alone])])
    packed = np.concatenate([np.repeat(owner, vectors.sizes[query]), owner[alone]]) << 32 | place[elements]
    packed = np.unique(packed)
    ends = np.searchsorted(packed, np.arange(len(sessions) + 1) << 32)
    element = (packed & 0xFFFFFFFF).astype(np.int32)
    level = (sessions.sizes > 1).astype(np.int64)
    of, sets = merged(ends, element, weights, np.arange(len(sessions)), level)
    return Vertices(of, sets, users_of(log, of, user, len(sets.total)))


def _by_weight(concepts: Concepts, more: Longs) -> tuple[Weights, Longs]:
    """Concepts and further elements behind them, the lightest first: what they weigh, and the new place of each."""
    weight = np.concatenate([concepts.squared, more])
    order = np.argsort(weight, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    part = np.pad(concepts.parts, ((0, len(more)), (0, 0)), constant_values=-1)
    moved = np.append(place, -1).astype(np.int32)[part]
    return Weights(weight[order], moved[order]), place
