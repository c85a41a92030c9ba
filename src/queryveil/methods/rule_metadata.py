"""The rule about metadata: values are merged until every released combination of them has enough users."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.claims import CombinationUsers
from queryveil.engines import Table, Workspace, identifier
from queryveil.errors import QueryveilError, option
from queryveil.log import QueryLog

MERGED = -2
"""The id of a merged metadata value; -1 is the id of a missing one."""

MOST_COMBINATIONS = 1_000_000
"""Metadata with more combinations of values is refused: each step counts the users of all of them again."""

_RESERVED = (
    *("user", "event", "query", "time", "rank", "url", "clicked", "user_id", "event_id", "query_id", "url_id", "draw"),
    *("total", "period", "users", "users_band", "events", "views", "clicks", "mean_rank"),
)
"""Names that metadata cannot have, because a release, or the table it is made from, has a column of that name."""


def metadata_columns(log: QueryLog, asked: Sequence[str]) -> list[str]:
    """The columns of the log among those asked for.

    Raises:
        QueryveilError: If one has a name that a release needs.
    """
    found = [name for name in asked if name in log.stats.extras]
    taken = next((name for name in found if name.casefold() in _RESERVED), None)
    if taken is not None:
        raise QueryveilError(f"A metadata column cannot be called '{taken}', which a release has already; rename it.")
    return found


def missing_columns(asked: Sequence[str], found: Sequence[str]) -> list[str]:
    """A note about the columns that the rule asked for and the log does not have; none if it has all of them."""
    missing = [name for name in asked if name not in found]
    if not missing:
        return []
    what = f"used only {', '.join(found)}" if found else "was not used"
    columns = f"no column {missing[0]}" if len(missing) == 1 else f"none of the columns {', '.join(missing)}"
    return [f"The rule {option('min_metadata_users')} {what}: the log has {columns}."]


def merged_values(log: QueryLog, work: Workspace, rows: Table, columns: Sequence[str], least: int) -> Table:
    """The values under which each combination of metadata is released.

    Args:
        log: The log.
        work: Where the table is made.
        rows: The rows that are released, with their query_id and event_id.
        columns: The metadata, most important first.
        least: Least users of a combination.

    Returns:
        For each combination the `NAME id` of each column in the log, and under its name the value that is released.

    Raises:
        QueryveilError: If there are too many combinations, or too few users.
    """
    ids = [f"{name} id" for name in columns]
    names = ", ".join(f"e.{name} AS {name}" for name in map(identifier, ids))
    keys = ", ".join(f"e.{identifier(name)}" for name in ids)
    with log.workspace() as steps:
        pairs = steps.table(
            f"SELECT e.user_id AS user_id, {names} FROM events e"
            f" JOIN {rows} k ON k.query_id = e.query_id AND k.event_id = e.event_id"
            f" GROUP BY e.user_id, {keys}",
            "users of metadata",
        )
        different = f"SELECT {names} FROM {pairs} e GROUP BY {keys}"
        (n,) = steps.row(f"SELECT count(*) AS n FROM ({different}) AS different")
        if n > MOST_COMBINATIONS:
            raise QueryveilError(
                f"The columns {', '.join(columns)} have {n:,} combinations of values, which identify single users; "
                f"name columns with fewer values with {option('metadata')}."
            )
        found = steps.fetch(different)
        values = [_values(steps, pairs, name) for name in columns]
        combination = np.stack(
            [known.place(found[name].to_numpy()) for known, name in zip(values, ids, strict=True)], axis=1
        )
        same = " AND ".join(f"m.{name} = p.{name}" for name in map(identifier, ids))

        def users(group: NDArray[np.int64]) -> NDArray[np.int64]:
            groups = steps.read(found.append_column("g", pa.array(group)), "groups of metadata")
            counted = steps.fetch(
                f"SELECT g, count(*) AS n FROM (SELECT m.g AS g, p.user_id AS user_id FROM {pairs} p"
                f" JOIN {groups} m ON {same} GROUP BY m.g, p.user_id) AS members GROUP BY g ORDER BY g"
            )
            steps.drop(groups)
            return np.asarray(counted["n"].to_numpy())

        merged = merge_until(combination, users, least)
    released = found
    for known, name, place in zip(values, columns, merged.T, strict=True):
        value = known.text.take(pa.array(place, mask=place < 0))
        value = pc.if_else(pa.array(place == MERGED), CombinationUsers.MERGED, value).cast(pa.string())
        released = released.append_column(name, value)
    return work.read(released, "merged metadata")


def merge_until(
    combination: NDArray[np.int64], users: Callable[[NDArray[np.int64]], NDArray[np.int64]], least: int
) -> NDArray[np.int64]:
    """Merge metadata values until every combination that is left has at least `least` users.

    In combinations with too few users the last column is merged; if there are still too few, the column before it, and
    so on. If the completely merged combinations together have too few users, the smallest other combinations join them.

    Args:
        combination: The different combinations: the numbers of their values.
        users: Counts the distinct users of groups of combinations, given the group 0, 1, ... of each.
        least: Least users of a combination.

    Returns:
        The combinations, with MERGED instead of merged values.
    """
    merged = combination.copy()

    def counted() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        group = np.unique(merged, axis=0, return_inverse=True)[1]
        return users(group), group

    for column in range(combination.shape[1] - 1, -1, -1):
        found, group = counted()
        merged[found[group] < least, column] = MERGED
    while True:
        found, group = counted()
        small = found < least
        if not small.any():
            return merged
        if len(found) == 1:
            raise QueryveilError(
                f"Only {found[0]} users are left in the release, fewer than {option('min_metadata_users')}, which is"
                f" {least}; relax the other rules or lower it."
            )
        # Only the completely merged ones can be too few now; the smallest of the others joins them.
        smallest = np.argmin(np.where(small, np.iinfo(np.int64).max, found))
        merged[group == smallest] = MERGED


class _Values(NamedTuple):
    """The values of a metadata column, in the order of their ids."""

    id: NDArray[Any]
    text: pa.Array

    def place(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """The place of each id, -1 for a missing value."""
        return np.where(ids == -1, -1, np.searchsorted(self.id, ids))


def _values(work: Workspace, pairs: Table, name: str) -> _Values:
    """The values of a column that occur."""
    key = identifier(f"{name} id")
    found = work.fetch(
        f"SELECT x.id AS id, x.value AS value FROM {identifier(f'extra {name}')} x JOIN (SELECT {key} FROM {pairs}"
        f" GROUP BY {key}) AS used ON used.{key} = x.id ORDER BY x.id"
    )
    return _Values(found["id"].to_numpy(), found["value"].combine_chunks())
