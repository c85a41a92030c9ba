"""Where the queries of a log sit in a taxonomy, as tables: for logs that outgrow a machine."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from queryveil.engines import Table, Workspace
from queryveil.knowledge import Taxonomy, categorize_texts, open_taxonomy
from queryveil.log import QueryLog
from queryveil.text import Language

_NOUNS = pa.schema([("query_id", pa.int64()), ("node", pa.int32())])

reopened = cache(open_taxonomy)
"""The taxonomy of a `Taxonomy.source`; a worker opens it once."""


def nouns_of_queries(log: QueryLog, work: Workspace, base: Taxonomy) -> Table:
    """The table of query_id and node: the nodes of the terms of each query, each once; the root is none."""
    found = _Terms(base.source, log.language)
    return work.map("SELECT query_id, query FROM queries", found, _NOUNS, "nouns of queries")


def nouns_of_users(log: QueryLog, work: Workspace, base: Taxonomy) -> Table:
    """The table of user_id and node: the nouns of each user, each once."""
    log.ensure_tables("query_users")
    with log.workspace() as steps:
        nouns = nouns_of_queries(log, steps, base)
        return work.table(
            "SELECT CAST(u.user_id AS BIGINT) AS user_id, n.node AS node FROM query_users u"  # noqa: S608  # a table of ours
            f" JOIN {nouns} n ON n.query_id = u.query_id GROUP BY u.user_id, n.node",
            "nouns of users",
        )


@dataclass(frozen=True)
class _Terms:
    source: str
    language: Language

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        links = categorize_texts(batch["query"].cast(pa.string()), reopened(self.source), "terms", self.language)
        start, node = links.nodes()
        owner = np.repeat(np.arange(len(batch)), np.diff(start))
        pairs = np.unique(owner[node > 0] << 32 | node[node > 0])
        query = batch["query_id"].to_numpy()[pairs >> 32].astype(np.int64)
        return pa.RecordBatch.from_arrays(
            [pa.array(query), pa.array((pairs & 0xFFFFFFFF).astype(np.int32))], schema=_NOUNS
        )
