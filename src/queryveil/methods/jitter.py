"""Secret thresholds: how many users more than k a query needs is drawn for each query, and nobody outside knows it.

An attacker who plants k - 1 accounts that issue a query learns from its release that somebody else issued it too. If
the threshold is secret, they would have to plant more accounts, and then do not know whether these were enough alone.
"""

import hashlib
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from queryveil.engines import Table, Workspace
from queryveil.log import QueryLog
from queryveil.log.draws import keyed
from queryveil.methods.base import Reason
from queryveil.methods.queries import QueryMethod, Selection
from queryveil.text.arrays import byte_spans


class JitteredMethod(QueryMethod):
    """A method with a least number of users per query, which can be raised by a secret draw."""

    jitter: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="raise the least users of each query by a secret number: by none with this chance, by one with this"
        " chance of the rest, and so on; against planted accounts",
    )

    @property
    @abstractmethod
    def least_users(self) -> int | None:
        """Least users of a released query; None if there is no such rule."""

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """Only with the same seed if thresholds are drawn."""
        return "always" if self.jitter is None else "seed"

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written in the manifest, that of secret thresholds only if there are any."""
        given = super().parameters()
        return given if self.jitter is not None else {name: v for name, v in given.items() if name != "jitter"}

    def choose(self, log: QueryLog, work: Workspace, seed: int, within: Table | None = None) -> Selection:
        """Choose queries, and of these the ones that reach their secret thresholds."""
        chosen = self.select(log, work, within)
        if self.jitter is None:
            return chosen
        log.ensure_tables("per_query")
        drawing = partial(_drawn, key=_key(seed), chance=self.jitter)
        schema = pa.schema([("query_id", log.id_type), ("more", pa.int64())])
        before, joined = "0", ""
        if log.stats.series is not None:  # a query is drawn for again once it was released
            before, joined = "coalesce(b.times, 0)", " LEFT JOIN earlier_releases b ON b.query_id = q.query_id"
        with log.workspace() as steps:
            more = steps.map(
                f"SELECT q.query_id AS query_id, q.query AS query, CAST({before} AS BIGINT) AS times FROM queries q"
                f" JOIN {chosen.queries} c ON c.query_id = q.query_id{joined}",
                drawing,
                schema,
                "secret thresholds",
            )
            kept = work.table(
                f"SELECT p.query_id AS query_id FROM per_query p JOIN {more} m ON m.query_id = p.query_id"
                f" WHERE p.users >= {self.least_users} + m.more",
                "kept queries",
            )
        return replace(chosen, queries=kept)

    def jitter_reasons(self) -> list[Reason]:
        """That a threshold is secret, if it is."""
        if self.jitter is None:
            return []
        return [Reason("a secret number of users more issued the query", None, "depends on the seed, not shown")]


def _key(seed: int) -> bytes:
    return hashlib.sha256(b"jitter|%d" % seed).digest()[:16]


def _drawn(batch: pa.RecordBatch, *, key: bytes, chance: float) -> pa.RecordBatch:
    """How many users more each query needs: a geometric draw that follows from key, query and earlier releases."""
    from queryveil.kernels.digest import digests

    low, high = digests(*byte_spans(batch["query"].cast(pa.large_string())))
    times = batch["times"].to_numpy().astype(np.uint64)
    uniform = keyed(key, keyed(key, keyed(key, low) ^ high) ^ times).astype(np.float64) / 2.0**64
    # The largest draws are too rare to matter; without a bound a uniform draw of 1 would be infinite.
    more = np.minimum(np.log1p(-np.minimum(uniform, 1 - 2.0**-53)) / np.log1p(-chance), 1e6).astype(np.int64)
    schema = pa.schema([("query_id", batch.schema.field("query_id").type), ("more", pa.int64())])
    return pa.RecordBatch.from_arrays([batch["query_id"], pa.array(more)], schema=schema)
