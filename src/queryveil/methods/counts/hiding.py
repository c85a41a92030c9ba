"""Which rows and numbers are hidden, so that none of few users is published or follows from published totals.

A total minus the rows below it is a number about the rows that are hidden. So these must have enough users together, as
if they were a row. If they have too few, the row with the fewest users is hidden as well; as it has enough users
itself, one is always enough. The same holds for views and clicks, whose users may be fewer.
"""

from collections.abc import Sequence
from typing import NamedTuple

from queryveil.engines import Table, Workspace
from queryveil.methods.counts.tally import COUNTED, MISSING, NUMBERS

ADDED = ("views", "clicks")
"""Numbers beside events that add up to a total; a mean rank is not published for totals."""

FLAGS = ("shown", *(f"{name}_shown" for name in NUMBERS))
"""What is published of a row: the row itself, and some of its numbers."""


class Shown(NamedTuple):
    """Rows of a table of counts, with what is published of each: `shown` of the row, `NAME_shown` of its numbers."""

    cells: Table
    totals: Table | None


def shown_cells(work: Workspace, cells: Table, keys: Sequence[str], least: int, within: Table | None = None) -> Table:
    """Rows, and what may be published of each by itself: what enough users contribute to, or nobody.

    Args:
        work: Where the table is made.
        cells: All rows, from `added_up`.
        keys: Their keys.
        least: Least users.
        within: The query_id of queries of enough users, if rows of others are among these.
    """
    joined = "" if within is None else f" LEFT JOIN {within} w ON w.query_id = c.query_id"
    known = "" if within is None else " AND w.query_id IS NOT NULL"
    row = f"c.users >= {least}{known}"
    numbers = ", ".join(
        f"CASE WHEN {row} AND (c.{name}_users = 0 OR c.{name}_users >= {least}) THEN 1 ELSE 0 END AS {name}_shown"
        for name in NUMBERS
    )
    given = ", ".join(f"c.{name} AS {name}" for name in (*keys, *COUNTED))
    return work.table(
        f"SELECT {given}, CASE WHEN {row} THEN 1 ELSE 0 END AS shown, {numbers} FROM {cells} c{joined}", "what is shown"
    )


def hide_more(work: Workspace, pairs: Table, shown: Shown, keys: Sequence[str], by: Sequence[str], least: int) -> Table:
    """Hide further rows, and further views and clicks, until totals say nothing about few users.

    Args:
        work: Where the table is made.
        pairs: What each user contributes to each row.
        shown: The rows and totals, and what is published of each by itself.
        keys: The keys of a row.
        by: The keys of a total.
        least: Least users.
    """
    rows = _with_one_more(work, pairs, shown, keys, by, least, None)
    for number in ADDED:
        rows = _with_one_more(work, pairs, Shown(rows, shown.totals), keys, by, least, number)
    return rows


def _with_one_more(
    work: Workspace,
    pairs: Table,
    shown: Shown,
    keys: Sequence[str],
    by: Sequence[str],
    least: int,
    number: str | None,
) -> Table:
    """Hide one more row, or the number of one more row, below each total whose hidden rows have too few users."""
    flag, users, some = (
        ("shown", "users", "1 = 1") if number is None else (f"{number}_shown", f"{number}_users", f"p.{number} > 0")
    )
    same, group = (" AND ".join(f"{{0}}.{key} = {{1}}.{key}" for key in some_keys) for some_keys in (keys, by))
    names = ", ".join(f"p.{key}" for key in by)
    named = ", ".join(f"p.{key} AS {key}" for key in by)
    with Workspace(work.engine) as steps:
        few = steps.table(
            f"SELECT {', '.join(by)} FROM (SELECT {named}, p.user_id AS user_id FROM {pairs} p JOIN {shown.cells} c"
            f" ON {same.format('c', 'p')} JOIN {shown.totals} t ON {group.format('t', 'p')}"
            f" WHERE c.{flag} = 0 AND t.{flag} = 1 AND {some} GROUP BY {names}, p.user_id) AS people"
            f" GROUP BY {', '.join(by)} HAVING count(*) < {least}",
            "totals of few hidden users",
        )
        value = "events" if number is None else number
        order = ", ".join(f"c.{name}" for name in (users, value))
        for key in keys:  # ids may be negative, so that no address is not the first of them everywhere
            order += f", CASE WHEN c.{key} = {MISSING} THEN 0 ELSE 1 END, c.{key}"
        places = steps.table(
            f"SELECT {', '.join(f'c.{key} AS {key}' for key in keys)}, row_number() OVER (PARTITION BY"
            f" {', '.join(f'c.{key}' for key in by)} ORDER BY {order}) AS place FROM {shown.cells} c JOIN {few} f"
            f" ON {group.format('f', 'c')} WHERE c.{flag} = 1 AND c.{users} > 0",
            "rows to hide",
        )
        flags = FLAGS if number is None else (flag,)
        kept = [name for name in (*keys, *COUNTED, *FLAGS) if name not in flags]
        hidden = ", ".join(f"CASE WHEN h.place IS NULL THEN c.{name} ELSE 0 END AS {name}" for name in flags)
        return work.table(
            f"SELECT {', '.join(f'c.{name} AS {name}' for name in kept)}, {hidden} FROM {shown.cells} c"
            f" LEFT JOIN {places} h ON {same.format('h', 'c')} AND h.place = 1",
            "what is shown",
        )
