"""Partition: top-down, local generalization of users' nouns.

Yeye He, Jeffrey F. Naughton, Anonymization of set-valued data via top-down, local generalization, VLDB 2009.
"""

from typing import ClassVar

import numpy as np

from queryveil.claims import BagUsers
from queryveil.engines import Table, Workspace
from queryveil.engines.memory import reserve
from queryveil.kernels.partitions import partition_transactions
from queryveil.knowledge import Taxonomy
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import check_k
from queryveil.methods.generalization.common import Bags, Generalization, Transactions, notes_of, release_bags
from queryveil.methods.generalization.partition_tables import find_groups
from queryveil.methods.generalization.tables import release_by_tables
from queryveil.release import Release


class Partition(Generalization):
    """Publish for at least k users one set of items that generalizes the nouns of each (He and Naughton 2009).

    All users begin in one group, published as the root of the tree. A group is split by the item whose specialization
    gains most, as long as groups of k users remain. Queries, clicks, times and users without a noun are dropped.
    """

    name: ClassVar[str] = "partition"
    plain: ClassVar[str] = (
        "It holds no queries. Each group of at least {k} people has one set of general terms, which stand for "
        "the nouns that they typed."
    )
    summary: ClassVar[str] = "split users into groups that share one set of generalized nouns"

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Split users into groups, and release the items of each group."""
        if not isinstance(log, LocalLog):
            return release_by_tables(self, log, self._by_tables, seed=seed, duplicates=False)
        base, links = self.opened(log)
        mine = Transactions.of(log, links)
        check_k(self, len(mine), "users with a noun")
        bags = self.bags(mine)
        claims = (BagUsers(**self.claimed(base), duplicates=False),)
        return release_bags(self, log, base, mine, bags, seed=seed, claims=claims, notes=notes_of(mine, bags))

    def _by_tables(self, log: QueryLog, work: Workspace, base: Taxonomy, nouns: Table, users: int) -> Table:
        return find_groups(log, work, base, nouns, self.k)

    def bags(self, transactions: Transactions) -> Bags:
        """The groups, and what is published of each."""
        tree = transactions.tree
        reserve(64 * len(transactions.node), "The nouns of users")
        group, start, node = partition_transactions(
            transactions.start, transactions.node, tree.parent, tree.depth, tree.end, tree.leaves, self.k
        )
        return Bags(start, group, node, np.ones(len(node), np.int64))
