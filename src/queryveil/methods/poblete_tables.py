"""The removal of queries by tables, for logs that are too large for one machine: the same queries stay.

SQL counts addresses and sites. Each removal of the last step depends on all earlier ones, so its graph goes to one
worker, without the addresses that only one query has: these join nothing.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from queryveil.engines import Table, Workspace
from queryveil.engines.memory import reserve
from queryveil.kernels.removal import degrees, remove_by_degree
from queryveil.log import QueryLog
from queryveil.methods.click_graph import classes_of, edges_of, names_target, site_names
from queryveil.methods.queries import joined

BYTES = 100
"""What a pair of query and address takes in the memory of the worker that has the graph."""

_LOOKED_AT = pa.schema([("query_id", pa.int64()), ("site", pa.string()), ("named", pa.int32())])
_GRAPH = pa.schema([("query_id", pa.int64()), ("edges", pa.int64())])


class Clicked(NamedTuple):
    """Which addresses users clicked, as tables."""

    pairs: Table
    """query_id and url_id, each pair once."""
    queries: Table
    """query_id, documents, sites and named: how many addresses and sites, and whether the query names one of these."""


def click_graph(log: QueryLog, work: Workspace) -> Clicked | None:
    """What users clicked for each query; None if no click has an address."""
    pairs = work.table(
        "SELECT query_id, url_id FROM clicks WHERE url_id IS NOT NULL GROUP BY query_id, url_id", "clicked addresses"
    )
    (count,) = work.row(f"SELECT count(*) AS n FROM {pairs}")
    if count == 0:
        return None
    with log.workspace() as steps:
        looked_at = steps.map(
            f"SELECT p.query_id AS query_id, q.query AS text, u.url AS url FROM {pairs} p"
            " JOIN queries q ON q.query_id = p.query_id JOIN urls u ON u.url_id = p.url_id",
            _look_at,
            _LOOKED_AT,
            "sites of clicks",
        )
        queries = work.table(
            "SELECT query_id, CAST(sum(n) AS BIGINT) AS documents, count(*) AS sites, max(named) AS named FROM"
            f" (SELECT query_id, site, count(*) AS n, max(named) AS named FROM {looked_at} GROUP BY query_id, site)"
            " AS sites GROUP BY query_id",
            "clicked queries",
        )
    return Clicked(pairs, queries)


def _look_at(batch: pa.RecordBatch) -> pa.RecordBatch:
    names, site = site_names(batch["url"])
    pair = np.arange(len(batch))
    named = names_target(batch["text"], names, pair, pair)
    columns = [batch["query_id"].cast(pa.int64()), site, pa.array(named.astype(np.int32))]
    return pa.RecordBatch.from_arrays(columns, schema=_LOOKED_AT)


def passing(work: Workspace, clicked: Clicked, k: int, sites: int, within: Table | None) -> Table:
    """The query_id of the queries that pass all steps except the last."""
    return work.table(
        f"SELECT c.query_id AS query_id FROM {clicked.queries} c{joined(within, 'c.query_id')}"
        f" WHERE c.documents >= {k} AND c.sites >= {sites} AND c.named = 0",
        "queries with enough sites",
    )


def failing(log: QueryLog, work: Workspace, clicked: Clicked, k: int, sites: int) -> tuple[int, int, int]:
    """How many queries have too few addresses, name their target, or have clicks on too few sites."""
    enough, named, few = work.row(
        f"SELECT count(CASE WHEN documents >= {k} THEN 1 END) AS enough, count(CASE WHEN named = 1 THEN 1 END)"
        f" AS named, count(CASE WHEN sites < {sites} THEN 1 END) AS few FROM {clicked.queries}"
    )
    return log.n_queries - enough, named, few


def edges(work: Workspace, clicked: Clicked) -> int:
    """How many pairs of queries share an address."""
    found = work.map_groups(_shared(str(clicked.pairs)), "graph", _count, _GRAPH, "edges")
    (count,) = work.row(f"SELECT coalesce(CAST(sum(edges) AS BIGINT), 0) AS n FROM {found}")
    return int(count)


def remove(work: Workspace, clicked: Clicked, passed: Table) -> Table:
    """The table of query_id and edges: a row for each query that the last step removes, and one with the edges."""
    left = work.table(
        f"SELECT c.query_id AS query_id, c.url_id AS url_id FROM {clicked.pairs} c"
        f" JOIN {passed} p ON p.query_id = c.query_id",
        "addresses of the rest",
    )
    return work.map_groups(_shared(str(left)), "graph", _remove, _GRAPH, "removed by degree")


def _shared(pairs: str) -> str:
    """SQL of the pairs whose address has several queries, all in one group."""
    return (
        "SELECT CAST(0 AS BIGINT) AS graph, CAST(p.query_id AS BIGINT) AS query_id, CAST(p.url_id AS BIGINT) AS url_id"
        f" FROM {pairs} p JOIN (SELECT url_id FROM {pairs} GROUP BY url_id HAVING count(*) > 1) AS u"
        " ON u.url_id = p.url_id"
    )


def _remove(batch: pa.RecordBatch) -> pa.RecordBatch:
    return _removed(batch, last_step=True)


def _count(batch: pa.RecordBatch) -> pa.RecordBatch:
    return _removed(batch, last_step=False)


def _removed(batch: pa.RecordBatch, *, last_step: bool) -> pa.RecordBatch:
    reserve(BYTES * len(batch), "The graph of queries and clicked addresses")
    # In the order of ids, which is that of digests on every engine.
    queries, query = np.unique(batch["query_id"].to_numpy(), return_inverse=True)
    _, url = np.unique(batch["url_id"].to_numpy(), return_inverse=True)
    order = np.lexsort((url, query))
    classes = classes_of(query[order], url[order], len(queries))
    degree = degrees(classes)
    count = edges_of(classes, degree)
    gone = queries[~remove_by_degree(classes, degree)] if last_step else queries[:0]
    return pa.RecordBatch.from_arrays(
        [pa.array([None, *gone.tolist()], pa.int64()), pa.array([count, *[None] * len(gone)], pa.int64())],
        schema=_GRAPH,
    )
