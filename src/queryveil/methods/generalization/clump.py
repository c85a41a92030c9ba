"""Clump: clusters of users whose nouns lose little when all become their least common generalization.

Amin Milani Fard, Ke Wang, An effective clustering approach to web query log anonymization, SECRYPT 2010.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from queryveil.arrays import offsets
from queryveil.claims import BagUsers
from queryveil.engines import Table, Workspace
from queryveil.engines.memory import reserve
from queryveil.errors import parameter
from queryveil.kernels import lcg
from queryveil.kernels.clump import greedy, seeds_first
from queryveil.kernels.nearest_clusters import nearest
from queryveil.knowledge import Taxonomy
from queryveil.knowledge.tables import reopened
from queryveil.log import LocalLog, QueryLog
from queryveil.log.draws import drawn, keyed, signed
from queryveil.methods.base import check_k
from queryveil.methods.generalization.common import (
    Bags,
    Generalization,
    Ints,
    Longs,
    Transactions,
    loss_of,
    notes_of,
    release_bags,
    sentence,
)
from queryveil.methods.generalization.tables import MADE, made_of, release_by_tables, tighter
from queryveil.methods.microaggregation.common import Grouping, parts_of
from queryveil.release import Release

EXACT = 200_000
"""Most transactions that are clustered together by default."""
BLOCK = 100_000
"""Transactions of a block of more."""

GREEDY = ("r", "order", "leftover")
"""Parameters that only the paper's clustering has."""
_BLOCKS = pa.schema([(name, pa.int64()) for name in ("user_id", "draw", "block")])


class Clump(Generalization):
    """Publish for at least k users the least common generalization of their nouns (Milani Fard and Wang 2010).

    The nouns of a user are a transaction, each noun once. Transactions are put into clusters of at least k such that
    little is lost when each becomes the bag of items that generalizes all of its cluster. Queries, clicks, times and
    users without a noun are dropped.
    """

    name: ClassVar[str] = "clump"
    plain: ClassVar[str] = (
        "It holds no queries. Each group of at least {k} people has one list of general terms, which stand "
        "for nouns that they typed."
    )
    summary: ClassVar[str] = "cluster users and replace their nouns by common, general terms"

    clustering: Literal["greedy", "nearest"] = Field(
        "greedy",
        description="the paper's way: each transaction chooses among r clusters; or nearest: each cluster chooses the"
        " nearest transactions, which loses less information",
    )
    r: int = Field(
        10, ge=1, description="clusters that a transaction chooses from; more are not always better; for greedy only"
    )
    order: Literal["descending", "ascending", "random"] = Field(
        "descending", description="the order of transactions, by length or at random; for greedy only"
    )
    leftover: Literal["distortion", "growth"] = Field(
        "distortion",
        description="where the fewer than k transactions go that are left when all clusters are full: to the least"
        " distortion, as in the paper, or to the least growth of it; for greedy only",
    )
    tight: bool = Field(
        False,
        description="generalize the surplus items of a node, which not all transactions have, instead of dropping them"
        " as the paper does",
    )
    duplicates: bool = Field(
        True, description="publish an item as often as it is in the bag (Clump1), or once (Clump2)"
    )
    grouping: Grouping = Field(
        "auto", description="cluster all users together, or in blocks of like transactions; auto by their number"
    )

    @model_validator(mode="after")
    def _order_is_used(self) -> "Clump":
        unused = next((name for name in GREEDY if name in self.model_fields_set), None)
        if self.clustering == "nearest" and unused is not None:
            raise ValueError(f"{parameter('Clump', unused)} is only for the clustering greedy; leave it out.")
        return self

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """With the same seed, if that decides the order of transactions."""
        return "seed" if self.clustering == "greedy" and self.order == "random" else "always"

    def parameters(self) -> dict[str, Any]:
        """The parameters that are used, as they are written in the manifest."""
        unused = GREEDY if self.clustering == "nearest" else ()
        return {name: value for name, value in super().parameters().items() if name not in unused}

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Put users into clusters, and release the bag of each cluster."""
        key = log.secret(seed, self.name, "order")
        if not isinstance(log, LocalLog):
            make = partial(self._by_tables, key=key)
            return release_by_tables(self, log, make, seed=seed, duplicates=self.duplicates, parts=self._parts)
        base, links = self.opened(log)
        mine = Transactions.of(log, links)
        check_k(self, len(mine), "users with a noun")
        draw = None
        if self.repeats == "seed":
            digest = log.engine.fetch("SELECT digest FROM users ORDER BY user_id")["digest"].to_numpy()
            draw = signed(keyed(key, digest[mine.user].astype(np.uint64)))
        parts = self._parts(len(mine))
        bags, tight = self.in_blocks(mine, parts, draw, log.engine.threads)
        notes = notes_of(mine, bags, parts)
        if not self.tight:
            notes.append(tighter(sentence(loss_of(mine, tight))))
        claims = (BagUsers(**self.claimed(base), duplicates=self.duplicates),)
        return release_bags(self, log, base, mine, bags, seed=seed, claims=claims, notes=notes)

    def _parts(self, users: int) -> int:
        return parts_of(users, self.k, self.grouping, EXACT, BLOCK)

    def _by_tables(
        self, log: QueryLog, work: Workspace, base: Taxonomy, nouns: Table, users: int, *, key: bytes
    ) -> Table:
        """The bags of users, of all blocks side by side."""
        with log.workspace() as steps:
            draws = steps.map(
                "SELECT user_id, digest FROM users", *drawn(pa.schema([("user_id", log.id_type)]), "digest", key),
                "draws of users",
            )  # fmt: skip
            places = steps.number(
                "SELECT n.user_id AS user_id, n.size AS size, -n.size AS lack, n.first AS first, n.last AS last,"
                " n.squares AS squares, d.draw AS draw FROM (SELECT user_id, count(*) AS size, min(node) AS first,"
                " max(node) AS last, CAST(sum(CAST(node AS BIGINT) * node) AS BIGINT) AS squares"
                f" FROM {nouns} GROUP BY user_id) AS n JOIN {draws} d ON d.user_id = n.user_id",
                (*self._order, "user_id"),
                "place",
                name="users in order",
            )
            ends = np.cumsum([len(part) for part in np.array_split(np.arange(users), self._parts(users))])
            blocks = steps.map(f"SELECT user_id, draw, place FROM {places}", _Cut(ends), _BLOCKS, "blocks")
            return work.map_groups(
                "SELECT b.block AS block, b.user_id AS user_id, b.draw AS draw, CAST(n.node AS BIGINT) AS node"
                f" FROM {blocks} b JOIN {nouns} n ON n.user_id = b.user_id",
                "block",
                _Block(base.source, self),
                MADE,
                "clusters",
            )

    @property
    def _order(self) -> tuple[str, ...]:
        """What transactions are sorted by, before the user's number."""
        if self.clustering == "nearest":
            return "lack", "first", "last", "squares"
        return {"descending": ("lack",), "ascending": ("size",), "random": ("draw",)}[self.order]

    def in_blocks(
        self, transactions: Transactions, parts: int, draw: Longs | None = None, threads: int | None = None
    ) -> tuple[Bags, Bags]:
        """What `clumped` gives, of so many blocks of like transactions."""
        # Inside a block, ties are settled as they are without blocks.
        blocks = [np.sort(part) for part in np.array_split(self._sorted(transactions, draw), parts)]
        made = [self.clumped(transactions.take(some), None if draw is None else draw[some], threads) for some in blocks]
        bags, tight = (_joined(blocks, found) for found in zip(*made, strict=True))
        return bags, tight

    def clumped(
        self, transactions: Transactions, draw: Longs | None = None, threads: int | None = None
    ) -> tuple[Bags, Bags]:
        """Clusters of transactions, and what is published of each: as it is, and under the tighter rule.

        Args:
            transactions: The transactions.
            draw: A random number for each, if their order is random.
            threads: How many threads.
        """
        order = self.ordered(transactions, draw)
        cluster = self.clusters(transactions, order, threads)
        tight = self.bags(transactions, order, cluster, tight=True)
        return tight if self.tight else self.bags(transactions, order, cluster, tight=False), tight

    def ordered(self, transactions: Transactions, draw: Longs | None = None) -> Longs:
        """The transactions in the order in which they are clustered; ties broken by the user's number.

        Args:
            transactions: The transactions.
            draw: A random number for each, if their order is random.
        """
        order = self._sorted(transactions, draw)
        return seeds_first(order, self.k) if self.clustering == "greedy" else order

    def _sorted(self, transactions: Transactions, draw: Longs | None) -> Longs:
        node, start = transactions.node, transactions.start
        keys: dict[str, Callable[[], Any]] = {
            "size": lambda: transactions.sizes,
            "lack": lambda: -transactions.sizes,
            # Equal transactions are next to each other, so that the nearest clustering gets them into one cluster.
            "first": lambda: node[start[:-1]],
            "last": lambda: node[start[1:] - 1],
            "squares": lambda: transactions.sums(node.astype(np.int64) ** 2),
            "draw": lambda: draw,
        }
        found: Longs = np.lexsort([keys[name]() for name in reversed(self._order)])
        return found

    def clusters(self, transactions: Transactions, order: Longs, threads: int | None = None) -> Ints:
        """The cluster of every transaction, taken in the order that `ordered` gives."""
        tree, count = transactions.tree, np.ones(len(transactions.node), np.int64)
        items = (transactions.start, transactions.node, count, tree.parent, tree.depth, tree.leaves)
        # Memory holds the path of every item to the root: for the first transaction of each cluster, or for all.
        shared = self.k if self.clustering == "greedy" else 1
        reserve(12 * int(tree.depth[transactions.node].sum(dtype=np.int64)) // shared, "The nouns of users")
        if self.clustering == "greedy":
            return greedy(*items, order, self.k, self.r, self.tight, self.leftover == "growth")
        return nearest(*items, order, self.k, self.tight, threads or os.cpu_count() or 1)

    def bags(self, transactions: Transactions, order: Longs, cluster: Ints, *, tight: bool) -> Bags:
        """What is published of each cluster."""
        tree, count = transactions.tree, np.ones(len(transactions.node), np.int64)
        start, node, n = lcg.lcgs(
            transactions.start, transactions.node, count, tree.parent, tree.depth, tree.leaves,
            order, cluster, int(cluster.max()) + 1, tight,
        )  # fmt: skip
        return Bags(start, cluster, node, n if self.duplicates else np.ones_like(n))


def _joined(blocks: Sequence[Longs], found: Sequence[Bags]) -> Bags:
    """The bags of all blocks, from the transactions of each."""
    group = np.empty(sum(map(len, blocks)), np.int32)
    before = 0
    for some, bags in zip(blocks, found, strict=True):
        group[some] = bags.group + before
        before += len(bags)
    node, n = (np.concatenate([getattr(bags, name) for bags in found]) for name in ("node", "n"))
    return Bags(offsets(np.concatenate([bags.sizes for bags in found])), group, node, n)


@dataclass(frozen=True)
class _Cut:
    """The blocks of users, by their places from 1 on."""

    ends: Longs

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        block = np.searchsorted(self.ends, batch["place"].to_numpy() - 1, side="right")
        columns = [batch["user_id"].to_numpy(), batch["draw"].to_numpy(), block]
        return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=_BLOCKS)


@dataclass(frozen=True)
class _Block:
    """The clusters of a block."""

    source: str
    method: Clump

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        user, node, draw = (batch[name].to_numpy() for name in ("user_id", "node", "draw"))
        order = np.lexsort((node, user))
        users, start = np.unique(user[order], return_index=True)
        mine = Transactions(
            np.append(start, len(user)), users, node[order].astype(np.int32), reopened(self.source).tree
        )
        bags, tight = self.method.clumped(mine, draw[order][start], 1)
        return made_of(users, bags, None if self.method.tight else tight)
