"""The published table: which columns it has, and its rows as they are released, rounded or in bands."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from queryveil.engines import Table, Workspace, identifier
from queryveil.log import QueryLog
from queryveil.methods.counts.hiding import Shown
from queryveil.methods.counts.tally import MISSING, day_texts, keys_of, metadata_of

if TYPE_CHECKING:
    from queryveil.methods.counts.method import Counts

_LARGEST = 10**12
Values = dict[str, Table]
"""The values of combinations of metadata by their numbers: `meta` of rows, `part` of totals."""
MERGED = "*"
"""Stands for all values of a metadata column in a total, as in a combination whose values were merged."""


def table_columns(method: "Counts", log: QueryLog) -> list[str]:
    """The columns of the released table, in their order."""
    chosen = method.by
    columns = [*(["total"] if method.totals else []), *(name for name in ("query", "url", "rank") if name in chosen)]
    columns += [*metadata_of(chosen), *(["period"] if "period" in chosen else [])]
    if method.private:
        return [*columns, "users"]
    columns += ["users_band" if method.users == "band" else "users", "events"]
    if log.has_results and not method.totals:  # beside totals, what is withheld of them would follow
        columns += [*(["views"] if log.has_views else []), "clicks", *(["mean_rank"] if "rank" not in chosen else [])]
    return columns


def table_rows(method: "Counts", work: Workspace, shown: Shown, values: Values) -> str:
    """SQL of the released rows, with the columns that decide their order."""
    days = None
    if "period" in method.by:
        days = day_texts(work, f"SELECT period FROM {shown.cells}")
    found = _rows(method, shown.cells, method.by, values, days, total=False)
    if shown.totals is None:
        return found
    return f"{found} UNION ALL {_rows(method, shown.totals, method.totals, values, days, total=True)}"


def _rows(
    method: "Counts",
    rows: Table,
    by: Sequence[str],
    values: Values,
    days: Table | None,
    *,
    total: bool,
) -> str:
    """SQL of rows, or of totals, whose columns have no value unless totals are by them."""
    meta = "part" if total else "meta"
    keys = keys_of(by, meta)
    selected, joins = [f"CAST({int(total)} AS BIGINT) AS total"], ""
    selected.append(f"{'c.query_id' if 'query' in by else 'CAST(0 AS BIGINT)'} AS query_order")
    for key, kind in (("query_id", "BIGINT"), ("url_id", "BIGINT"), ("rank", "INTEGER")):
        given = f"CAST(nullif(c.{key}, {MISSING}) AS {kind})" if key != "query_id" else "c.query_id"
        selected.append(f"{given if key in keys else f'CAST(NULL AS {kind})'} AS {key}")
    for name in metadata_of(method.by):
        given = f"m.{identifier(name)}" if name in by else f"CAST('{MERGED}' AS STRING)"
        selected.append(f"{given} AS {identifier(name)}")
    selected.append(f"{'d.text' if 'period' in by else 'CAST(NULL AS STRING)'} AS period")
    if meta in keys:
        joins += f" JOIN {values[meta]} m ON m.{meta} = c.{meta}"
    if "period" in keys:
        joins += f" JOIN {days} d ON d.period = c.period"
    selected += _numbers(method, total)
    return f"SELECT {', '.join(selected)} FROM {rows} c{joins} WHERE c.shown = 1"


def _numbers(method: "Counts", total: bool) -> Iterator[str]:
    """SQL of the counts of a row c."""
    name, users = (
        ("users_band", band("c.users")) if method.users == "band" else ("users", rounded("c.users", method.base))
    )
    yield f"{f'CASE WHEN c.users_shown = 1 THEN {users} END' if total and method.secondary else users} AS {name}"
    yield f"{rounded('c.events', method.base)} AS events"
    for name in ("views", "clicks"):
        yield f"CASE WHEN c.{name}_shown = 1 THEN {rounded(f'c.{name}', method.base)} END AS {name}"
    # A mean rank is no count, so it is not rounded to a base. To the nearest hundredth, halves up, by whole numbers: so
    # that every engine gives the same.
    twice, parts = "2 * greatest(c.ranked, 1)", "200 * c.ranks + c.ranked"
    mean = f"CAST({parts} - ({parts}) % ({twice}) AS DOUBLE) / ({twice}) / 100"
    yield f"CASE WHEN c.ranked_shown = 1 AND c.ranked > 0 AND {int(total)} = 0 THEN {mean} END AS mean_rank"


def rounded(sql: str, base: int | None) -> str:
    """SQL of the multiple of a base that is nearest to a number, halves up."""
    return sql if base is None else f"CAST({sql} + {base // 2} - ({sql} + {base // 2}) % {base} AS BIGINT)"


def band(sql: str) -> str:
    """SQL of the band of a number, such as `20-49`: bands begin at 1, 2, 5, 10, 20, 50 and so on."""
    edges = [first * 10**power for power in range(len(str(_LARGEST))) for first in (1, 2, 5)]
    cases = " ".join(
        f"WHEN {sql} < {after} THEN '{low if low == after - 1 else f'{low}-{after - 1}'}'"
        for low, after in pairwise(edges)
    )
    return f"CASE {cases} ELSE '{edges[-1]}+' END"
