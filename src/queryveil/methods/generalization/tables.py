"""Generalized transactions as tables: what workers make of groups of users, and the release of all of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from queryveil.arrays import Ragged, offsets
from queryveil.claims import BagUsers
from queryveil.engines import Table, Workspace
from queryveil.errors import option
from queryveil.knowledge import Taxonomy
from queryveil.knowledge.tables import nouns_of_users
from queryveil.log import QueryLog
from queryveil.methods.base import check_k
from queryveil.methods.generalization.common import (
    Bags,
    Generalization,
    Longs,
    Loss,
    release_items,
    sentence,
    sizes_of_groups,
)
from queryveil.release import Release

MADE = pa.schema([(name, pa.int64()) for name in ("kind", "user_id", "node", "n")])
"""What workers make: rows of three kinds."""
ITEM, GROUP, TIGHT = 0, 1, 2
"""A released item of a user, n counting its copies from 0; the n users of a group; n items that would be released under
the tighter rule, over all users."""


def made_of(users: Longs, bags: Bags, tight: Bags | None = None) -> pa.RecordBatch:
    """The bags of groups under each of their users, the sizes of groups, and maybe what another rule would release.

    Args:
        users: The id of every transaction.
        bags: The groups, and the bag of each.
        tight: The same groups under the tighter rule.
    """
    members = np.bincount(bags.group)
    copies = Ragged(offsets(bags.n))
    each = Ragged(offsets(bags.sums(bags.n)))
    place, length = each.positions(bags.group), each.sizes[bags.group]
    parts = [
        (ITEM, np.repeat(users, length), np.repeat(bags.node, bags.n)[place], copies.within[place]),
        (GROUP, 0, 0, members),
        *([] if tight is None else [(TIGHT, 0, tight.node, members[tight.owners] * tight.n)]),
    ]
    columns = [np.concatenate(column) for column in zip(*(_full(part) for part in parts), strict=True)]
    return pa.RecordBatch.from_arrays([pa.array(column.astype(np.int64)) for column in columns], schema=MADE)


def _full(part: tuple[Any, ...]) -> list[np.ndarray]:
    return [np.broadcast_to(column, np.shape(part[3])) for column in part]


Maker = Callable[[QueryLog, Workspace, Taxonomy, Table, int], Table]
"""Makes generalized transactions of the nouns of so many users, as `made_of` has them."""


def release_by_tables(
    method: Generalization, log: QueryLog, make: Maker, *, seed: int, duplicates: bool,
    parts: Callable[[int], int] = lambda users: 1,
) -> Release:  # fmt: skip
    """Release what is made of the nouns of users, for a log that is not in the memory of this machine.

    Args:
        method: The method.
        log: The log.
        make: Makes it.
        seed: Random seed.
        duplicates: Whether an item may be more than once in a bag.
        parts: In how many blocks so many users are put into groups.
    """
    base = method.taxonomy_opened()
    with log.workspace() as work:
        with log.workspace() as steps:
            nouns = nouns_of_users(log, steps, base)
            users, items = steps.row(f"SELECT count(DISTINCT user_id) AS users, count(*) AS n FROM {nouns}")
            check_k(method, users, "users with a noun")
            made = make(log, work, base, nouns, users)
        groups, least, most = work.row(
            f"SELECT count(*) AS n, min(n) AS least, max(n) AS most FROM {made} WHERE kind = {GROUP}"
        )
        found = {
            kind: work.fetch(f"SELECT node, {each} AS n FROM {made} WHERE kind = {kind} GROUP BY node")
            for kind, each in ((ITEM, "count(*)"), (TIGHT, "CAST(sum(n) AS BIGINT)"))
        }
        losses = {
            kind: sentence(Loss.of(base.tree, *(rows[i].to_numpy() for i in (0, 1)), users=users, items=items))
            for kind, rows in found.items()
        }
        notes = [sizes_of_groups(groups, least, most, parts(users)), losses[ITEM]]
        if len(found[TIGHT]):
            notes.append(tighter(losses[TIGHT]))
        # Copies of an item are alike, so that any numbers tell them apart.
        rows = work.table(f"SELECT n AS event_id, user_id, node FROM {made} WHERE kind = {ITEM}", "items")
        claims = (BagUsers(**method.claimed(base), duplicates=duplicates),)
        return release_items(method, log, base, rows, seed=seed, claims=claims, notes=notes, members=True)


def tighter(loss: str) -> str:
    """What the same clusters would lose under the tighter rule."""
    return f"The same clusters with {option('tight', True)}: {loss}"
