"""Generalization: what the methods share that publish nodes of a tree of topics in the place of words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from queryveil.arrays import Ragged, offsets
from queryveil.engines import Table
from queryveil.errors import QueryveilError
from queryveil.kernels.types import Bools
from queryveil.knowledge import Links, Taxonomy, categorize, open_taxonomy, recall_taxonomy, taxonomy_name
from queryveil.knowledge.tree import Tree
from queryveil.log import LocalLog, QueryLog
from queryveil.log.sessions import USERS, Linking
from queryveil.methods.base import Method, Reason
from queryveil.methods.microaggregation.common import Searches, plural
from queryveil.methods.microaggregation.interests import interests_of
from queryveil.release import Release
from queryveil.release.making import of_items
from queryveil.text.show import percent

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Transactions(Ragged):
    """The nouns of users, each once: those of transaction t are node[start[t]:start[t + 1]], ascending.

    Users without a noun have none.
    """

    user: Longs
    node: Ints
    tree: Tree

    @classmethod
    def of(cls, log: LocalLog, links: Links) -> "Transactions":
        """The transactions of a log."""
        interests = interests_of(Searches.of(log), links)
        users = np.flatnonzero(interests.sizes)
        some = interests.take(users)
        return cls(some.start, users, some.item, links.tree)

    def take(self, some: Longs) -> "Transactions":
        """Some of them, ascending."""
        return Transactions(offsets(self.sizes[some]), self.user[some], self.node[self.positions(some)], self.tree)


@dataclass(frozen=True, eq=False)
class Bags(Ragged):
    """The generalized transactions: those of group g have n times node[start[g]:start[g + 1]]."""

    group: Ints
    """The group of every transaction."""
    node: Ints
    n: Longs


class Generalization(Method):
    """Publish nodes of a tree of topics, each of which stands for nouns of at least k users."""

    makes = "items"
    fits_aol: ClassVar[bool] = False
    k: int = Field(5, ge=2, description="least users who share what is published")
    taxonomy: str = Field("wordnet", description="the tree: wordnet, a web directory, or several with commas")

    def parameters(self) -> dict[str, Any]:
        """The parameters as the manifest holds them, without the folder of the taxonomy."""
        return super().parameters() | {"taxonomy": taxonomy_name(self.taxonomy)}

    def claimed(self, base: Taxonomy) -> dict[str, Any]:
        """What the claims of these methods say."""
        return {"users": self.k, "taxonomy": taxonomy_name(self.taxonomy), "tree": base.digest}

    def taxonomy_opened(self) -> Taxonomy:
        """The taxonomy."""
        base = open_taxonomy(self.taxonomy)
        if base.tree.leaves[0] < 2:
            raise QueryveilError(f"The tree of '{base.name}' has one leaf, so nothing could be distinguished in it.")
        return base

    def opened(self, log: LocalLog) -> tuple[Taxonomy, Links]:
        """The taxonomy, and where the terms of the log sit in it, each by its first sense."""
        base = self.taxonomy_opened()
        return base, categorize(log, base, "terms")

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """The nouns of the query, which may stand behind a published item; none is published as a query."""
        base = recall_taxonomy(self.taxonomy)
        start, node = categorize(log, base, "terms").nodes()
        mine = node[start[query_id] : start[query_id + 1]]
        names = ", ".join(f"'{base.tree.names[int(i)]}'" for i in mine if i > 0)
        return [
            Reason("queries are published as they are", False, "items of the tree are, which stand for nouns"),
            Reason("the query has a noun of the tree", bool(names), names or "it has none"),
        ]


def release_bags(
    method: Generalization, log: LocalLog, base: Taxonomy, transactions: Transactions, bags: Bags, *, seed: int,
    claims: tuple[Any, ...], notes: list[str],
) -> Release:  # fmt: skip
    """Release the bag of each group under each of its users."""
    each = Ragged(offsets(bags.sums(bags.n)))  # an item as often as it is in its bag
    length = each.sizes[bags.group]
    rows = {
        "event_id": np.arange(length.sum(), dtype=np.int32),
        "user_id": np.repeat(transactions.user, length).astype(np.int32),
        "node": np.repeat(bags.node, bags.n)[each.positions(bags.group)].astype(np.int32),
    }
    with log.workspace() as work:
        items = work.read(pa.table(rows), "items")
        return release_items(method, log, base, items, seed=seed, claims=claims, notes=notes, members=True)


def release_items(
    method: Generalization, log: QueryLog, base: Taxonomy, items: Table, *, seed: int, claims: tuple[Any, ...],
    notes: list[str], linking: Linking = USERS, members: bool = False, certified: Mapping[str, pa.Table] | None = None,
) -> Release:  # fmt: skip
    """Release a table of event_id, user_id and node."""
    return of_items(
        log,
        f"SELECT event_id, user_id, node FROM {items}",
        base.tree.names,
        linking=linking,
        members=members,
        **method.describe(claims, seed, notes, certified),
    )


@dataclass(frozen=True)
class Loss:
    """What is lost when transactions are generalized.

    Attributes:
        distortion: GGD (Milani Fard and Wang 2010): the sum of LM over all published items, and 1 for each suppressed
            one.
        per_item: The same, divided by the items that there were.
        length: How many items users have on average in the release.
        level: The mean level of these items; the root is level 1.
    """

    distortion: float
    per_item: float
    length: float
    level: float

    @classmethod
    def of(cls, tree: Tree, node: Ints, n: Longs, *, users: int, items: int) -> "Loss":
        """The loss of a release.

        Args:
            tree: The tree.
            node: Published items.
            n: How often each is published, over all users.
            users: How many users are in the release.
            items: How many items they had.
        """
        rows = int(n.sum())
        # Sums of whole numbers, which are the same in any order.
        lost = int((n * (tree.leaves[node] - 1)).sum()) / max(int(tree.leaves[0]) - 1, 1) + items - rows
        level = int((n * (tree.depth[node] + 1)).sum()) / max(rows, 1)
        return cls(lost, lost / max(items, 1), rows / max(users, 1), level)


def loss_of(transactions: Transactions, bags: Bags) -> Loss:
    """What is lost when transactions become the bags of their groups."""
    members = np.bincount(bags.group)
    n = members[bags.owners] * bags.n
    return Loss.of(transactions.tree, bags.node, n, users=len(transactions), items=len(transactions.node))


def notes_of(transactions: Transactions, bags: Bags, parts: int = 1) -> list[str]:
    """What a reader of the report should know of generalized transactions."""
    members = np.bincount(bags.group)
    sizes = sizes_of_groups(len(members), int(members.min()), int(members.max()), parts)
    return [sizes, sentence(loss_of(transactions, bags))]


def sizes_of_groups(groups: int, least: int, most: int, parts: int) -> str:
    """How many groups there are, of how many users, and in how many blocks they were made, in words."""
    size = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    how = f", made in {parts:,} blocks of users with like transactions" if parts > 1 else ""
    return f"{plural(groups, 'group')} of {size} users{how}."


def sentence(loss: Loss) -> str:
    """A loss in words."""
    return (
        f"Distortion (GGD) {loss.distortion:,.1f}, {percent(loss.per_item)} of the items that users had; bags have"
        f" {loss.length:.2f} items of mean level {loss.level:.2f} (the root is level 1)."
    )
