"""Results as tables: for every tool that takes Arrow, and as HTML for notebooks."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import pyarrow as pa

from queryveil.errors import require
from queryveil.text.show import isolated, shortened

if TYPE_CHECKING:
    import pandas
    import polars

ROWS = 20
"""How many rows a preview shows."""
_LONGEST = 200
"""Characters of a text in a table; of a longer one a preview shows the beginning."""
_SIDES = {True: ' style="text-align:right"', False: ' style="text-align:left"'}


class Tabular(ABC):
    """A result that is a table. Whatever takes Arrow tables takes it as it is, such as `pyarrow.table(result)`."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The result as an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table by the Arrow PyCapsule interface, for pandas, Polars, DuckDB and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pandas.DataFrame":
        """The result as a pandas data frame; needs the extra `frames`."""
        require("A data frame", "pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """The result as a Polars data frame; needs the extra `frames`."""
        require("A data frame", "polars")
        import polars

        return polars.DataFrame(self)

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self.to_arrow())


def html_table(title: str, table: pa.Table, total: int | None = None) -> str:
    """A preview of an Arrow table, as `html_rows` gives it.

    Args:
        title: The title.
        table: The rows, or the first of them.
        total: How many rows there are, if the table has only the first.
    """
    numbers = [one.name for one in table.schema if pa.types.is_integer(one.type) or pa.types.is_floating(one.type)]
    rows = list(zip(*(column.to_pylist() for column in table.slice(0, ROWS).columns), strict=True))
    return html_rows(title, table.column_names, rows, numbers, len(table) if total is None else total)


def html_rows(
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Collection[str],
    total: int | None = None,
) -> str:
    """A title, the first rows of a table, and how many there are; inert HTML, whatever the texts are.

    Args:
        title: The title.
        names: The names of the columns.
        rows: The rows, or the first of them.
        numbers: The columns that are aligned right.
        total: How many rows there are, if these are only the first.
    """
    total = len(rows) if total is None else total
    sides = [_SIDES[name in numbers] for name in names]
    head = _row("th", zip(names, sides, strict=True))
    body = "".join(_row("td", zip(row, sides, strict=True)) for row in rows[:ROWS])
    size = "1 row" if total == 1 else f"{total:,} rows"
    if total > ROWS:
        size = f"The first {ROWS} of {size}"
    grid = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    return f"<div>{_heading(title)}{grid}<p>{size}.</p></div>"


def html_facts(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A title, and names with their values below each other; inert, whatever the texts are."""
    body = "".join(
        f'<tr><th scope="row"{_SIDES[False]}>{_text(name)}</th>'
        f"<td{_SIDES[type(value) in (int, float)]}>{_text(_shown(value))}</td></tr>"
        for name, value in rows
    )
    return f"<div>{_heading(title)}<table><tbody>{body}</tbody></table></div>"


def html_list(title: str, sentences: Iterable[str]) -> str:
    """A title with sentences below; nothing if there are none."""
    items = "".join(f"<li>{_text(sentence)}</li>" for sentence in sentences)
    return f"<div>{_heading(title)}<ul>{items}</ul></div>" if items else ""


def _heading(title: str) -> str:
    return f"<p><strong>{_text(title)}</strong></p>"


def _row(tag: str, cells: Iterable[tuple[object, str]]) -> str:
    made = "".join(f"<{tag}{side}>{_text(shortened(_shown(value), _LONGEST))}</{tag}>" for value, side in cells)
    return f"<tr>{made}</tr>"


def _text(text: str) -> str:
    return escape(isolated(text))


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    return str(value)
