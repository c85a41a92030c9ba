"""Clump: clusters of users whose nouns lose little when all become their least common generalization.

Amin Milani Fard, Ke Wang, An effective clustering approach to web query log anonymization, SECRYPT 2010.
"""

import os
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from queryveil.claims import BagUsers
from queryveil.engines.memory import reserve
from queryveil.errors import option, parameter
from queryveil.kernels import lcg
from queryveil.kernels.clump import greedy, seeds_first
from queryveil.kernels.nearest_clusters import nearest
from queryveil.log import QueryLog, local
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
from queryveil.release import Release

GREEDY = ("r", "order", "leftover")
"""Parameters that only the paper's clustering has."""


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
        here = local(log, "clump")
        base, links = self.opened(here)
        mine = Transactions.of(here, links)
        check_k(self, len(mine), "users with a noun")
        order = self.ordered(mine, seed)
        cluster = self.clusters(mine, order, here.engine.threads)
        bags = self.bags(mine, order, cluster, tight=self.tight)
        notes = notes_of(mine, bags)
        if not self.tight:
            other = sentence(loss_of(mine, self.bags(mine, order, cluster, tight=True)))
            notes.append(f"The same clusters with {option('tight', True)}: {other}")
        claims = (BagUsers(**self.claimed(base), duplicates=self.duplicates),)
        return release_bags(self, here, base, mine, bags, seed=seed, claims=claims, notes=notes)

    def ordered(self, transactions: Transactions, seed: int) -> Longs:
        """The transactions in the order in which they are clustered; ties broken by the user's number."""
        length = transactions.sizes
        if self.clustering == "nearest":
            # Equal transactions are next to each other, so that they get into one cluster.
            node, last = transactions.node, transactions.start[1:] - 1
            sums = transactions.sums(node.astype(np.int64) ** 2)
            return np.lexsort((sums, node[last], node[transactions.start[:-1]], -length))
        longest = np.argsort(-length, kind="stable")
        if self.order == "random":
            return seeds_first(np.random.default_rng(seed).permutation(len(length)), self.k)
        return seeds_first(longest if self.order == "descending" else np.argsort(length, kind="stable"), self.k)

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
