"""k-theta-affinity: the graph against sparse matrix products, the whole method as the log grows, what protection costs."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import DATA, log_file, run, timed

K = 5
HERE = "benchmarks.affinity"
USERS_OF_VECTORS = 26_000


def make_vectors() -> None:
    """Distinct concept vectors of a synthetic log of 1.5 M rows, and their weights."""
    import queryveil as qv
    from queryveil.methods.affinity import Candidates

    log = qv.read_log(log_file(USERS_OF_VECTORS))
    np.savez(DATA / "vectors.npz", **Candidates(qv.Affinity(k=K), log).vertices.sets._asdict())


def _some_sets(number: str) -> Any:
    """As many of the vectors, drawn by lot but always the same; still the lightest first."""
    from queryveil.kernels.heavy import Sets

    sets = Sets(**np.load(DATA / "vectors.npz"))
    chosen = np.sort(np.random.default_rng(1).choice(len(sets.total), int(number), replace=False))
    size = np.diff(sets.start)[chosen]
    start = np.concatenate([[0], np.cumsum(size)])
    at = np.repeat(sets.start[chosen] - start[:-1], size) + np.arange(start[-1])
    return sets._replace(start=start, element=sets.element[at], total=sets.total[chosen])


def _matrix(sets: Any) -> Any:
    """The vectors as rows of length one."""
    from scipy.sparse import csr_matrix

    value = np.sqrt(sets.weight[sets.element] / np.repeat(sets.total, np.diff(sets.start)))
    return csr_matrix((value, sets.element, sets.start), shape=(len(sets.total), len(sets.weight)))


def _tell(edges: Any) -> None:
    """How many edges there are, and a digest by which they can be compared."""
    import hashlib

    edges = np.sort(edges)
    print(json.dumps({"edges": len(edges), "digest": hashlib.sha256(edges.tobytes()).hexdigest()[:16]}))


def _exact(a: Any, b: Any, sets: Any, theta: float) -> Any:
    """The edges among candidates that a product found; it rounds, so its threshold is a hair low."""
    keep = a < b
    a, b = a[keep].astype(np.int64), b[keep].astype(np.int64)
    keep = np.empty(len(a), np.bool_)
    for i in range(0, len(a), 1 << 20):
        part = slice(i, i + (1 << 20))
        keep[part] = _common(sets, a[part], b[part], theta)
    return a[keep] << 32 | b[keep]


def _common(sets: Any, a: Any, b: Any, theta: float) -> Any:
    from scipy.sparse import csr_matrix

    plain = csr_matrix(
        (np.sqrt(sets.weight[sets.element].astype(float)), sets.element, sets.start),
        shape=(len(sets.total), len(sets.weight)),
    )
    common = np.rint(np.asarray(plain[a].multiply(plain[b]).sum(axis=1)).ravel())
    return common * common >= theta * theta * (sets.total[a].astype(float) * sets.total[b].astype(float))


def graph_queryveil(number: str, theta: str) -> None:
    """The groups that hold every edge: what the peeling walks."""
    _queryveil(number, float(theta), written=False)


def edges_queryveil(number: str, theta: str) -> None:
    """The same, with every edge written out once, as the peers give them."""
    _queryveil(number, float(theta), written=True)


def _queryveil(number: str, theta: float, written: bool) -> None:
    from queryveil.graph import AffinityGraph, Vertices
    from queryveil.kernels.cores import Users

    sets = _some_sets(number)
    nobody = Users(np.zeros(len(sets.total) + 1, np.int64), np.empty(0, np.int32))
    vertices = Vertices(np.empty(0, np.int32), sets, nobody)
    few = _some_sets("1000")
    AffinityGraph(Vertices(np.empty(0, np.int32), few, nobody), theta, 2)  # loads the compiled kernels
    _edges_of(AffinityGraph(Vertices(np.empty(0, np.int32), few, nobody), theta, 2), theta)
    with timed():
        graph = AffinityGraph(vertices, theta, 2)
        if written:
            edges = _edges_of(graph, theta)
    if not written:
        edges = _edges_of(graph, theta)
    _tell(edges)


def _edges_of(graph: Any, theta: float) -> Any:
    edges = _write_edges(graph.groups, graph.vertices.sets.total, theta * theta)
    edges.sort()
    return edges[np.diff(edges, prepend=-1) > 0]


def _write_edges(groups: Any, total: Any, theta2: float) -> Any:
    global _compiled
    if _compiled is None:
        _compiled = _compile()
    return _compiled(groups.start, groups.member, groups.weight, total, theta2)


_compiled: Any = None


def _compile() -> Any:
    import numba

    from queryveil.kernels.heavy import affine

    @numba.njit
    def write(start: Any, member: Any, weight: Any, total: Any, theta2: float) -> Any:
        out = np.empty(1024, np.int64)
        n = 0
        for g in range(len(weight)):
            for i in range(start[g], start[g + 1]):
                for j in range(i + 1, start[g + 1]):
                    a, b = member[i], member[j]
                    if not affine(weight[g], total[a], total[b], theta2):
                        break
                    if n == len(out):
                        longer = np.empty(2 * n, np.int64)
                        longer[:n] = out
                        out = longer
                    out[n] = np.int64(a) << 32 | np.int64(b)
                    n += 1
        return out[:n]

    return write


def _most_neighbours(sets: Any, theta: float) -> int:
    from queryveil.graph import AffinityGraph, Vertices
    from queryveil.kernels.cores import Users

    nobody = Users(np.zeros(len(sets.total) + 1, np.int64), np.empty(0, np.int32))
    edges = _edges_of(AffinityGraph(Vertices(np.empty(0, np.int32), sets, nobody), theta, 2), theta)
    return int(np.bincount(np.concatenate([edges >> 32, edges & 0xFFFFFFFF])).max())


def edges_sparse_dot_topn(number: str, theta: str) -> None:
    """The product of the matrix with its transpose, cut at theta, on two threads.

    On more than one thread it keeps room for `top_n` neighbours of every row, so it is told how many there are.
    """
    from sparse_dot_topn import sp_matmul_topn

    sets = _some_sets(number)
    matrix = _matrix(sets)
    most = _most_neighbours(sets, float(theta)) + 1
    with timed():
        found = sp_matmul_topn(
            matrix, matrix.T.tocsr(), top_n=most, threshold=float(theta) - 1e-9, n_threads=2, sort=False
        )
    found = found.tocoo()
    _tell(_exact(found.row, found.col, sets, float(theta)))


def edges_scikit_learn(number: str, theta: str) -> None:
    """Brute-force neighbours within a cosine distance."""
    from sklearn.neighbors import NearestNeighbors

    sets = _some_sets(number)
    matrix = _matrix(sets)
    with timed():
        near = NearestNeighbors(radius=1 - float(theta) + 1e-9, metric="cosine", algorithm="brute", n_jobs=2)
        found = near.fit(matrix).radius_neighbors_graph(matrix)
    found = found.tocoo()
    _tell(_exact(found.row, found.col, sets, float(theta)))
