"""k-theta-affinity: the graph against sparse matrix products, the method as the log grows, what protection costs."""

import json
import math
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import DATA, log_file, run, timed

K = 5
HERE = "benchmarks.affinity"
USERS_OF_VECTORS = 26_000


def make_vectors() -> None:
    """Distinct vectors of a synthetic log of 1.5 M rows, and their weights; words of two users are among them."""
    import queryveil as qv
    from queryveil.methods.affinity.method import Candidates

    log = qv.read_log(log_file(USERS_OF_VECTORS))
    np.savez(DATA / "vectors.npz", **Candidates(qv.Affinity(k=K, min_term_users=2), log).vertices.sets._asdict())


def _some_sets(number: str) -> Any:
    """As many of the vectors, drawn at random but always the same; still the lightest first."""
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
    most = int(np.bincount(np.concatenate([edges >> 32, edges & 0xFFFFFFFF])).max(initial=0)) + 1
    print(json.dumps({"edges": len(edges), "most": most, "digest": hashlib.sha256(edges.tobytes()).hexdigest()[:16]}))


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
    from queryveil.kernels.cores import Users
    from queryveil.methods.affinity.graph import AffinityGraph, Vertices

    sets = _some_sets(number)
    somebody = Users(np.arange(len(sets.total) + 1), np.zeros(len(sets.total), np.int32))
    vertices = Vertices(np.empty(0, np.int32), sets, somebody)
    few = _some_sets("1000")
    AffinityGraph(Vertices(np.empty(0, np.int32), few, somebody), theta, 2)  # loads the compiled kernels
    _edges_of(AffinityGraph(Vertices(np.empty(0, np.int32), few, somebody), theta, 2), theta)
    for place in _twice():
        with place:
            graph = AffinityGraph(vertices, theta, 2)
            if written:
                edges = _edges_of(graph, theta)
    if not written:
        edges = _edges_of(graph, theta)
    _tell(edges)


def _twice() -> Iterator[AbstractContextManager[None]]:
    """Once untimed and once timed, so that no contender pays for fresh memory."""
    yield nullcontext()
    yield timed()


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


def edges_sparse_dot_topn(number: str, theta: str, most: str) -> None:
    """The product of the matrix with its transpose, cut at theta, on two threads.

    On more than one thread it keeps room for `top_n` neighbours of every row, so it is told the largest number.
    """
    from sparse_dot_topn import sp_matmul_topn

    sets = _some_sets(number)
    matrix = _matrix(sets)
    for place in _twice():
        with place:
            found = sp_matmul_topn(
                matrix, matrix.T.tocsr(), top_n=int(most), threshold=float(theta) - 1e-9, n_threads=2, sort=False
            )
    found = found.tocoo()
    _tell(_exact(found.row, found.col, sets, float(theta)))


def edges_scikit_learn(number: str, theta: str, most: str) -> None:
    """Brute-force neighbours within a cosine distance."""
    from sklearn.neighbors import NearestNeighbors

    sets = _some_sets(number)
    matrix = _matrix(sets)
    with timed():
        near = NearestNeighbors(radius=1 - float(theta) + 1e-9, metric="cosine", algorithm="brute", n_jobs=2)
        found = near.fit(matrix).radius_neighbors_graph(matrix)
    found = found.tocoo()
    _tell(_exact(found.row, found.col, sets, float(theta)))


def whole_queryveil(path: str, theta: str) -> None:
    """The method on the ingested log, part by part."""
    import time

    import queryveil as qv
    from queryveil.methods.affinity.graph import AffinityGraph
    from queryveil.methods.affinity.method import Candidates

    parts = {}
    start = time.perf_counter()

    def part(name: str) -> None:
        nonlocal start
        parts[name] = time.perf_counter() - start
        start = time.perf_counter()

    # On a small log first, so that no kernel is compiled or loaded within the time.
    small = qv.read_log(log_file(200))
    qv.Affinity(k=K, theta=float(theta)).anonymize(small)
    start = time.perf_counter()
    log = qv.read_log(path)
    part("ingest")
    begun = time.process_time()
    with timed():
        method = qv.Affinity(k=K, theta=float(theta))
        assert log.users_per_word is not None
        part("users of words and queries")
        candidates = Candidates(method, log)
        part("concepts and vectors")
        assert candidates.vertices is not None
        part("vertices")
        graph = AffinityGraph(candidates.vertices, method.theta, log.engine.threads)
        part("graph")
        (core,) = graph.cores([K])
        part("core")
    processor = time.process_time() - begun
    kept = log.users_per_query >= K
    kept[candidates.held > 0] = False
    kept[candidates.chosen] = core[candidates.vertices.of_query[candidates.chosen]]
    told = {"rows": log.stats.rows, "events": len(log.events), "queries": log.n_queries, "released": int(kept.sum())}
    told |= {"equality": int((log.users_per_query >= K).sum()), "vertices": len(candidates.vertices)}
    key = candidates.concepts.key
    told |= {"concepts": int(key.sum()), "words": int((~key).sum())}
    print(json.dumps({**told, "processor": processor, "parts": parts}))


def release_queryveil(path: str, theta: str) -> None:
    """Everything `queryveil anonymize` does: read, anonymize, write, check every claim, publish."""
    import shutil

    import queryveil as qv

    with timed():
        log = qv.read_log(path)
        qv.Affinity(k=K, theta=float(theta)).anonymize(log, seed=1).save(DATA / "release", overwrite=True)
    shutil.rmtree(DATA / "release")


def protection(path: str) -> None:
    """How many queries each protection releases."""
    import queryveil as qv

    log = qv.read_log(path)
    found = {}
    with timed():
        for given in PROTECTIONS:
            found[json.dumps(given)] = [
                [point.queries, point.events] for point in qv.sweep(log, ks=[K], **given).points
            ]
    print(json.dumps({"queries": log.n_queries, "events": len(log.events), "found": found}))


PROTECTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"min_term_users": 2},
    {"min_term_users": 2, "vectors": "concepts"},
    {"min_term_users": 20},
    {"min_query_users": 2},
    {"min_query_users": 3},
    {"max_new_users": 2},
    {"max_new_users": 0},
)


def _graphs(sizes: list[int], times: int) -> list[str]:
    """The graph against its peers, which must find the same edges."""
    run(f"{HERE}:make_vectors")
    peers = ("sparse_dot_topn", "scikit_learn")
    head = (
        "| vectors | edges | graph | with edges written out | sparse_dot_topn | scikit-learn | times faster | memory |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for size in sizes:
        graph = run(f"{HERE}:graph_queryveil", size, 0.9, times=times)
        ours = run(f"{HERE}:edges_queryveil", size, 0.9, times=times)
        most = json.loads(ours.told)["most"]
        found = {
            peer: run(f"{HERE}:edges_{peer}", size, 0.9, most, times=1 if peer == "scikit_learn" else times)
            for peer in peers
        }
        if {ours.told, graph.told} != {peer.told for peer in found.values()} | {ours.told}:
            raise RuntimeError(f"not the same edges: {ours} {found}")
        best = min(peer.seconds for peer in found.values())
        seconds = [f"{cost.seconds:.3f} s" for cost in (graph, ours, *found.values())]
        memory = " / ".join(f"{cost.peak_gib:.2f}" for cost in (graph, *found.values()))
        lines.append(
            f"| {size:,} | {json.loads(ours.told)['edges']:,} | {' | '.join(seconds)} | **{best / graph.seconds:.0f}**"
            f" ({best / ours.seconds:.0f} with edges) | {memory} GiB |"
        )
    return lines


def _whole(users: list[int], times: int) -> list[str]:
    lines = [
        "| log | theta | ingest | method | of it: users of words, concepts and vectors, vertices, graph, core"
        " | processor time of the method | peak memory | vertices | released | equality releases |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    processor: dict[tuple[str, int], float] = {}
    for theta in ("0.9", "0.8"):
        for size in users:
            cost = run(f"{HERE}:whole_queryveil", log_file(size), theta, times=times)
            told = json.loads(cost.told)
            ingest, *parts = told["parts"].values()
            processor[theta, size] = told["processor"]
            shares = ", ".join(f"{part:.1f}" for part in parts)
            released = f"{told['released']:,} ({told['released'] / told['queries']:.1%})"
            lines.append(
                f"| {told['rows'] / 1e6:.1f} M rows | {theta} | {ingest:.1f} s | {cost.seconds:.1f} s | {shares} s"
                f" | {told['processor']:.1f} s | {cost.peak_gib:.1f} GiB | {told['vertices']:,} | {released}"
                f" | {told['equality']:,} |"
            )
    small, large = users[0], users[-1]
    for theta in ("0.9", "0.8") if small != large else ():
        # By processor time, which other work on the machine changes little.
        spent = [processor[theta, size] for size in users]
        steps = [
            f"{math.log(spent[i + 1] / spent[i]) / math.log(b / a):.2f}" for i, (a, b) in enumerate(pairwise(users))
        ]
        over = math.log(spent[-1] / spent[0]) / math.log(large / small)
        lines += [
            "",
            f"Growth exponent of the method at theta {theta}: {over:.2f} overall, step by step {', '.join(steps)}.",
        ]
    return lines


def _protections(users: int) -> list[str]:
    told = json.loads(run(f"{HERE}:protection", log_file(users)).told)
    lines = [
        "| protection | released at theta 0.9 | change | released at theta 0.8 | change |",
        "|---|---|---|---|---|",
    ]
    plain = told["found"]["{}"]
    for given, points in told["found"].items():
        cells = [", ".join(f"`{name}` = {value}" for name, value in json.loads(given).items()) or "none"]
        for place in (1, 2):
            cells += [f"{points[place][0]:,}", f"{points[place][0] / plain[place][0] - 1:+.1%}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"Of {told['queries']:,} distinct queries; equality releases {plain[0][0]:,}. A sweep for each line."]
    return lines


def _compiling() -> list[str]:
    """How long the kernels take to compile where nothing is cached, and to load where everything is."""
    lines = ["| | nothing cached | everything cached |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for verb in ("ingest_and_affinity", "synthetic_log"):
            cold, warm = (run(f"{HERE}:compile_{verb}", folder).seconds for _ in range(2))
            lines.append(f"| {verb.replace('_', ' ')} | {cold:.1f} s | {warm:.1f} s |")
    return lines


def compile_ingest_and_affinity(folder: str) -> None:
    """Read a small log, anonymize it and look around a query: every kernel but those of synthetic logs."""
    path = log_file(200)
    _cache_in(folder)
    import queryveil as qv

    with timed():
        log = qv.read_log(path)
        qv.Affinity(k=K, theta=0.8).anonymize(log)
        qv.neighbourhood(log, "google", min_term_users=1)


def compile_synthetic_log(folder: str) -> None:
    """Make a small synthetic log."""
    _cache_in(folder)
    import queryveil as qv

    with timed():
        qv.generate(Path(folder) / "log.tsv", users=200, overwrite=True)


def _cache_in(folder: str) -> None:
    from queryveil.kernels import _jit

    _jit._cache_folder = lambda: folder


def report(users: list[int], times: int) -> Iterator[str]:
    """The results as Markdown, part by part."""
    yield from ["### The graph against its peers", "", *_graphs([25_000, 50_000, 100_000, 200_000], times), ""]
    yield from ["### The whole method", "", *_whole(users, times), ""]
    yield from [
        "### From the log to a checked release",
        "",
        "| log | theta | time | peak memory |",
        "|---|---|---|---|",
    ]
    for theta in ("0.9", "0.8"):
        cost = run(f"{HERE}:release_queryveil", log_file(users[-1]), theta)
        yield f"| {users[-1]:,} users | {theta} | {cost.seconds:.0f} s | {cost.peak_gib:.1f} GiB |"
    yield from ["", "### What protection costs", "", *_protections(users[min(1, len(users) - 1)])]
    yield from ["", "### Compiling", "", *_compiling()]
