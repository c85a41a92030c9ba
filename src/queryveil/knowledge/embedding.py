"""Categories by the meaning of a query: the nearest nodes of the tree among vectors of small integers.

This is not in the papers. A query and every node have a vector (see `vectors.py`); the categories of a query are the
nodes with the largest cosine. The confidence is the cosine times the share of the query's meaning that comes from known
words.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import offsets
from queryveil.errors import QueryveilError
from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.links import Links
from queryveil.knowledge.vectors import embed

_PART = 20_000


def categorize_embedding(
    queries: pa.Array, taxonomy: Taxonomy, *, categories: int = 1, min_confidence: float = 0.4
) -> Links:
    """The nodes that are nearest in meaning to every query as a whole.

    Args:
        queries: Distinct queries in normal form.
        taxonomy: Where to look.
        categories: Most nodes of a query.
        min_confidence: Least confidence of a category, from 0 to 1.
    """
    if not 0 <= min_confidence <= 1:
        raise QueryveilError(f"The least confidence must be from 0 to 1. Got {min_confidence} instead.")
    cells = taxonomy.meanings()

    def part(at: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        vectors, known = embed(queries.slice(at, _PART))
        place, cosine = cells.nearest(vectors, categories)
        return place, cosine * known[:, None]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(part, range(0, len(queries), _PART)))
    if not parts:
        parts = [(np.empty((0, categories), np.int64), np.empty((0, categories), np.float32))]
    node = np.concatenate([place for place, _ in parts])
    confidence = np.clip(np.concatenate([sure for _, sure in parts]), 0, 1)
    good = (node >= 0) & (confidence >= min_confidence) & (confidence > 0)
    return Links(
        tree=taxonomy.tree,
        start=np.arange(len(queries) + 1),
        item=np.arange(len(queries), dtype=np.int32),
        items=queries,
        first=offsets(good.sum(axis=1)),
        node=node[good].astype(np.int32),
        confidence=confidence[good],
    )
