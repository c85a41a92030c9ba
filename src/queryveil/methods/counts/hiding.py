"""Which rows and numbers are hidden, so that none of few users is published or follows from published ones.

A total minus the rows below it is a number about the rows that are hidden. So these must have enough users together, as
if they were a row. If they have too few, the row with the fewest users is hidden as well; as it has enough users
itself, one is always enough. The users of a total minus those of one row are the users who are only elsewhere. If they
are too few, the users of the total are withheld. Views minus clicks are the views that were not clicked. If too few
users have any, clicks are withheld.
"""

from collections.abc import Sequence
from typing import NamedTuple

from queryveil.engines import Table, Workspace
from queryveil.methods.counts.tally import COUNTED, MISSING, NUMBERS, UNCLICKED

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
    behind = {name: [f"{name}_users", *([UNCLICKED] if name == "clicks" else [])] for name in NUMBERS}
    numbers = ""
    for name, users in behind.items():
        enough = "".join(f" AND (c.{one} = 0 OR c.{one} >= {least})" for one in users)
        numbers += f", CASE WHEN {row}{enough} THEN 1 ELSE 0 END AS {name}_shown"
    given = ", ".join(f"c.{name} AS {name}" for name in (*keys, *COUNTED))
    return work.table(
        f"SELECT {given}, CASE WHEN {row} THEN 1 ELSE 0 END AS shown{numbers} FROM {cells} c{joined}", "what is shown"
    )


def hide_more(work: Workspace, pairs: Table, shown: Shown, keys: Sequence[str], by: Sequence[str], least: int) -> Shown:
    """Hide one more row below each total whose hidden rows have too few users, and users of totals; see above.

    Args:
        work: Where the tables are made.
        pairs: What each user contributes to each row.
        shown: The rows and totals, and what is published of each by itself.
        keys: The keys of a row.
        by: The keys of a total.
        least: Least users.

    Returns:
        The rows, and the totals with `users_shown`.
    """
    same, group = (" AND ".join(f"{{0}}.{key} = {{1}}.{key}" for key in some) for some in (keys, by))
    names = ", ".join(f"p.{key}" for key in by)
    named = ", ".join(f"p.{key} AS {key}" for key in by)
    with Workspace(work.engine) as steps:
        few = steps.table(
            f"SELECT {', '.join(by)} FROM (SELECT {named}, p.user_id AS user_id FROM {pairs} p JOIN {shown.cells} c"
            f" ON {same.format('c', 'p')} JOIN {shown.totals} t ON {group.format('t', 'p')}"
            f" WHERE c.shown = 0 AND t.shown = 1 GROUP BY {names}, p.user_id) AS people"
            f" GROUP BY {', '.join(by)} HAVING count(*) < {least}",
            "totals of few hidden users",
        )
        order = "c.users, c.events"
        for key in keys:  # ids may be negative, so that no address is not the first of them everywhere
            order += f", CASE WHEN c.{key} = {MISSING} THEN 0 ELSE 1 END, c.{key}"
        places = steps.table(
            f"SELECT {', '.join(f'c.{key} AS {key}' for key in keys)}, row_number() OVER (PARTITION BY"
            f" {', '.join(f'c.{key}' for key in by)} ORDER BY {order}) AS place FROM {shown.cells} c JOIN {few} f"
            f" ON {group.format('f', 'c')} WHERE c.shown = 1",
            "rows to hide",
        )
        hidden = ", ".join(f"CASE WHEN h.place IS NULL THEN c.{name} ELSE 0 END AS {name}" for name in FLAGS)
        cells = work.table(
            f"SELECT {', '.join(f'c.{name} AS {name}' for name in (*keys, *COUNTED))}, {hidden} FROM {shown.cells} c"
            f" LEFT JOIN {places} h ON {same.format('h', 'c')} AND h.place = 1",
            "what is shown",
        )
        elsewhere = steps.table(
            f"SELECT {', '.join(f't.{key} AS {key}' for key in by)}, 1 AS few FROM {shown.totals} t JOIN {cells} c"
            f" ON {group.format('t', 'c')} WHERE c.shown = 1 AND t.users > c.users AND t.users - c.users < {least}"
            f" GROUP BY {', '.join(f't.{key}' for key in by)}",
            "totals with few users elsewhere",
        )
        totals = work.table(
            f"SELECT {', '.join(f't.{name} AS {name}' for name in (*by, *COUNTED, *FLAGS))}, CASE WHEN e.few IS NULL"
            f" THEN 1 ELSE 0 END AS users_shown FROM {shown.totals} t LEFT JOIN {elsewhere} e"
            f" ON {group.format('e', 't')}",
            "what is shown of totals",
        )
    return Shown(cells, totals)
