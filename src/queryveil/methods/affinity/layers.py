"""Similar queries by meaning and by clicks, as layers of the graph of affine queries.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, section 7, name other similarity measures and auxiliary information as future work. What is
compared is defined in `claims/similarity.py`. An edge that is not found makes a release smaller and breaks no promise;
the verifier computes anew each edge that the release rests on.
"""

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Longs, offsets
from queryveil.claims.similarity import clicked, meanings
from queryveil.errors import QueryveilError, option, require
from queryveil.kernels.close import Device
from queryveil.log import LocalLog
from queryveil.methods.affinity.graph import Layer, Vertices, digests_of, heavy_groups, no_groups


def meaning_layer(log: LocalLog, vertices: Vertices, some: Longs, theta: float, device: Device) -> Layer:
    """Neighbours by the cosine of embeddings.

    Args:
        log: The log.
        vertices: The vertices of the graph.
        some: The queries that are compared, ascending; each is a vertex of its own.
        theta: The least cosine.
        device: What multiplies: `cpu` or `cuda`.
    """
    from queryveil.kernels.close import close_pairs
    from queryveil.kernels.heavy import Groups

    if device == "cuda":
        check_cuda()
    found = meanings(log, some)
    start, near = close_pairs(found.vector, theta, device=device)
    owner = vertices.of[found.query]
    size = np.diff(start)
    has = size > 0
    groups = Groups(offsets(size[has]), owner[near], np.zeros(int(has.sum()), np.int64))
    # What is listed is near enough: no weights decide.
    return Layer("meaning", groups, np.zeros(len(vertices), np.int64), theta, owner[has])


def check_cuda() -> None:
    """Refuse to go on without a graphics processor.

    Raises:
        QueryveilError: If there is none, or a package is missing.
    """
    require(f"{option('device', 'cuda')}", "torch", "triton")
    import torch

    if not torch.cuda.is_available():
        raise QueryveilError(f"There is no graphics processor with CUDA here; leave {option('device')} out.")


def click_layer(log: LocalLog, vertices: Vertices, some: Longs, theta: float, users: int) -> Layer:
    """Neighbours by the cosine of sets of clicked addresses.

    Args:
        log: The log.
        vertices: The vertices of the graph.
        some: The queries that are compared; each is a vertex of its own.
        theta: The least cosine.
        users: The least users who clicked an address.
    """
    from queryveil.kernels.heavy import Sets

    found = clicked(log, users)
    compared = np.zeros(log.n_queries, np.bool_)
    compared[some] = True
    ours = compared[found.query]
    query, address = found.query[ours], found.address[ours]
    vertex = vertices.of[query].astype(np.int64)
    size = np.bincount(vertex, minlength=len(vertices))
    layer = Layer("clicks", no_groups(), size, theta)
    if len(query) == 0:
        return layer
    # Sets are ordered by weight, and each address weighs 1.
    lightest = np.flatnonzero(size)[np.argsort(size[size > 0], kind="stable")].astype(np.int32)
    place = np.empty(len(vertices), np.int64)
    place[lightest] = np.arange(len(lightest))
    order = np.lexsort((address, place[vertex]))
    elements = int(address.max()) + 1
    sets = Sets(
        offsets(size[lightest]),
        address[order],
        size[lightest],
        np.ones(elements, np.int64),
        np.full((elements, 1), -1, np.int32),
        *digests_of(elements),
    )
    groups = heavy_groups(sets, theta, log.engine.threads)
    return Layer("clicks", groups._replace(member=lightest[groups.member]), size, theta)


def apart(level: NDArray[np.int64] | None, each: NDArray[np.bool_]) -> Longs:
    """Levels for `vertices_of` that make each of some queries a vertex of its own."""
    level = np.zeros(len(each), np.int64) if level is None else level
    found: Longs = level + np.where(each, (int(level.max(initial=0)) + 1) * (1 + np.arange(len(each))), 0)
    return found
