"""The queries that are similar to one, and how they protect each other: the paper's procedure for a single query.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, section 3.4: grow a graph around the query, neighbours of neighbours, until it is complete or
large enough, and take its cores. Omitted queries could only raise a degree, so the degrees found are lower bounds, and
exact if the graph is complete.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from queryveil.arrays import Ints, Longs, Ragged, offsets
from queryveil.assess.drawings import draw_graph
from queryveil.errors import QueryveilError, parameter
from queryveil.files.folders import check_file, write_whole
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods.affinity.graph import AffinityGraph, Vertices, affine_pairs
from queryveil.methods.affinity.method import Affinity, Candidates

MOST_DEGREE = 1000
"""Higher degrees count as this one."""

MOST_DRAWN = 200
"""More vertices than this are unreadable; those found first are drawn."""


@dataclass(frozen=True)
class Neighbour:
    """A query of the graph around another."""

    query: str
    users: int
    """Who issued it."""
    degree: int
    """Its anonymity degree within the graph; 1,000 stands for any higher one."""
    steps: int
    """Its distance from the query that was asked for."""


@dataclass(frozen=True)
class Neighbourhood:
    """The graph of similar queries around one, which comes first; the others by steps, then by users."""

    theta: float
    whole: bool
    """Whether the graph is a whole component of the log's graph, so that degrees are exact; else lower bounds."""
    queries: tuple[Neighbour, ...]
    edges: tuple[tuple[int, int], ...]
    """Positions in `queries` of similar ones, the smaller first."""

    @property
    def degree(self) -> int:
        """The anonymity degree of the query that was asked for, or its lower bound; 1,000 stands for any higher one."""
        return self.queries[0].degree

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "theta": self.theta,
            "whole": self.whole,
            "degree": self.degree,
            "queries": [vars(neighbour) for neighbour in self.queries],
            "edges": self.edges,
        }

    def save_drawing(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Draw the graph as the paper's figure 4: the darker a vertex, the higher its degree.

        The drawing names queries as they were typed. It is for people who may see the log, and not a release; only its
        owner can read the file.

        Args:
            path: The file, which ends with .svg.
            overwrite: Whether a file at this place may be replaced.
        """
        place = check_file(path, (".svg",), overwrite)
        shown = self.queries[:MOST_DRAWN]
        exact = "degrees are exact" if self.whole else f"cut at {len(self.queries):,} queries, degrees are lower bounds"
        more = f"; the first {MOST_DRAWN} of {len(self.queries):,} are drawn" if len(self.queries) > MOST_DRAWN else ""
        svg = draw_graph(
            title=f"Similar queries, θ = {self.theta:g}: {exact}{more}",
            names=[f"{n.query} ({n.users:,} user{'s' * (n.users != 1)})" for n in shown],
            degrees=[n.degree for n in shown],
            edges=[edge for edge in self.edges if edge[1] < MOST_DRAWN],
        )
        write_whole(place, svg.encode(), overwrite=overwrite, private=True)


def neighbourhood(
    log: QueryLog, query: str, *, theta: float = 0.9, max_vertices: int = 2000, **parameters: Any
) -> Neighbourhood:
    """Grow the graph of similar queries around one, and find the degree of each.

    Args:
        log: The log.
        query: The query; case and spaces do not matter.
        theta: Least cosine of similar queries.
        max_vertices: Most queries in the graph, the paper's V_max.
        **parameters: Further parameters of `Affinity`; its k is used only for the default of `min_term_users`.

    Raises:
        QueryveilError: If nobody issued the query, or it is in no graph.
    """
    log = local(log, "neighbourhood")
    if max_vertices < 1:
        named = parameter("neighbourhood", "max_vertices")
        raise QueryveilError(f"{named} must be an integer of at least 1. Got {max_vertices!r} instead.")
    method = Affinity(theta=theta, **parameters)
    query_id = log.find(query)
    if query_id is None:
        raise QueryveilError("Nobody issued this query; give one that is in the log.")
    candidates = Candidates(method, log)
    users = int(log.users_per_query[query_id])
    if candidates.held[query_id] == 0:
        raise QueryveilError(
            f"The query holds no concept, so there is no graph around it: its degree is {users}, the users who issued"
            " it."
        )
    if not candidates.chosen[query_id]:
        raise QueryveilError(
            "The query is released for no k, so there is no graph around it: one of its words, or the query itself, has"
            " fewer users than these parameters ask for."
        )
    return _grown(log, candidates, query_id, theta, max_vertices)


def degree_around(log: LocalLog, candidates: Candidates, query_id: int, theta: float, max_vertices: int) -> int:
    """The anonymity degree of a query, or its lower bound if the graph around it is larger than `max_vertices`.

    It is 0 for a query that is released for no k, and at most `MOST_DEGREE`.
    """
    if candidates.held[query_id] == 0:
        return int(candidates.issued[query_id])
    if not candidates.chosen[query_id]:
        return 0
    around = _around(log, candidates, query_id, theta, max_vertices)
    return int(around.degree[around.of_query[query_id]])


@dataclass(frozen=True, eq=False)
class _Around:
    """The graph around a query: its vertices, and for each its degree and its distance from the query."""

    graph: AffinityGraph
    of_query: Ints
    """The vertex of each query of the log, -1 for one that is not around."""
    degree: Longs
    steps: Longs
    whole: bool


def _around(log: LocalLog, candidates: Candidates, query_id: int, theta: float, most: int) -> _Around:
    vertices = candidates.vertices
    # The graph of words is never made as a whole; what is similar otherwise is found with all others.
    everything = None if candidates.by_words_alone else candidates.graph(theta)
    size = np.bincount(vertices.of[vertices.of >= 0], minlength=len(vertices))
    steps = np.full(len(vertices), -1, np.int64)
    frontier = vertices.of[[query_id]].astype(np.int64)
    steps[frontier] = 0
    room = most - int(size[frontier].sum())
    whole = room >= 0
    while len(frontier) and whole:
        if everything is None:
            pairs = affine_pairs(vertices.sets, vertices.postings, frontier, theta, log.engine.threads)
            met = np.unique(pairs.member)
        else:
            met = np.unique(np.concatenate([everything.neighbours(int(vertex)) for vertex in frontier]))
        met = met[steps[met] < 0]
        fits = np.cumsum(size[met]) <= room
        whole = bool(fits.all())
        room -= int(size[met[fits]].sum())
        steps[met[fits]] = steps[frontier[0]] + 1
        frontier = met[fits].astype(np.int64)
    if everything is None:
        inside = np.flatnonzero(steps >= 0)
        graph, steps = AffinityGraph(_only(vertices, inside), theta, 1), steps[inside]
    else:
        graph = everything
    around = steps >= 0
    degree = np.zeros(len(steps), np.int64)
    cores = graph.cores(range(1, MOST_DEGREE + 1), most_new=candidates.most_new, within=lambda k: around)
    for k, core in enumerate(cores, 1):
        if not core.any():
            break
        degree[core] = k
    of_query = graph.vertices.of
    return _Around(graph, np.where(np.append(around, False)[of_query], of_query, -1), degree, steps, whole)


def _grown(log: LocalLog, candidates: Candidates, query_id: int, theta: float, most: int) -> Neighbourhood:
    around = _around(log, candidates, query_id, theta, most)
    of_query = around.of_query
    queries = np.flatnonzero(of_query >= 0)
    if len(queries) > most:  # more queries than fit have the concepts of the one asked for
        queries = np.concatenate([[query_id], queries[queries != query_id][: most - 1]])
    users, far = log.users_per_query[queries], around.steps[of_query[queries]]
    queries = queries[np.lexsort((queries, -users, far, queries != query_id))]
    found = tuple(
        Neighbour(
            log.query_text[int(q)].as_py(),
            int(log.users_per_query[q]),
            int(around.degree[of_query[q]]),
            int(around.steps[of_query[q]]),
        )
        for q in queries
    )
    return Neighbourhood(theta, around.whole, found, _edges(around.graph, of_query[queries]))


def _only(vertices: Vertices, inside: Longs) -> Vertices:
    """Some of the vertices, as a graph of their own."""
    from queryveil.kernels.cores import Users

    sets, users = vertices.sets, vertices.users
    number = np.full(len(vertices) + 1, -1, np.int32)
    number[inside] = np.arange(len(inside), dtype=np.int32)

    def rows(start: Longs, values: Ints) -> tuple[Longs, Ints]:
        lists = Ragged(start)
        return offsets(lists.sizes[inside]), values[lists.positions(inside)]

    start, element = rows(sets.start, sets.element)
    return Vertices(
        number[vertices.of],
        sets._replace(start=start, element=element, total=sets.total[inside]),
        Users(*rows(users.start, users.user)),
    )


def _edges(graph: AffinityGraph, vertex: Ints) -> tuple[tuple[int, int], ...]:
    """The positions of similar queries, given the vertex of each; queries of one vertex are similar too."""
    places: dict[int, list[int]] = {}
    for place, v in enumerate(vertex.tolist()):
        places.setdefault(v, []).append(place)
    found = []
    for v, mine in places.items():
        for other in [v, *graph.neighbours(v).tolist()]:
            found += [(a, b) for a in mine for b in places.get(other, ()) if a < b]
    return tuple(sorted(set(found)))
