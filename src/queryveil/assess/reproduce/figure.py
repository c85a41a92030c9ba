"""A figure of a paper: its values, and how they are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
_MANY = 100
"""The least number on an axis that is a number of users or queries; k, levels and r are below."""


@dataclass(frozen=True)
class Figure:
    """One figure or table of a paper.

    Attributes:
        name: Such as `figure-3`.
        title: What it shows.
        rows: The values; None where nothing could be measured.
        x: The column along the axis.
        y: The column that is drawn.
        colour: The column that has a line per value.
        panel: The column that has a panel per value, if there is more than one panel.
        share: Whether the values are shares, to be shown in per cent.
        private: Whether it is about one person; it is then shown on the terminal, and written to no file.
    """

    name: str
    title: str
    rows: Sequence[Row]
    x: str
    y: str
    colour: str | None = None
    panel: str | None = None
    share: bool = True
    private: bool = False

    @property
    def counted(self) -> bool:
        """Whether the axis is a number of users or queries: places on it are as far apart as their numbers."""
        return all(isinstance(row[self.x], int) and row[self.x] >= _MANY for row in self.rows)

    def chart(self) -> Any:
        """The figure as an Altair chart."""
        import altair as alt

        if self.panel is None:
            return self._lines(self.rows).properties(title=self.title)
        parts = []
        for value in dict.fromkeys(row[self.panel] for row in self.rows):
            rows = [row for row in self.rows if row[self.panel] == value]
            parts.append(self._lines(rows).properties(title=f"{self.panel} = {value}"))
        return alt.hconcat(*parts, title=self.title).resolve_scale(y="shared")

    def _lines(self, rows: Sequence[Row]) -> Any:
        import altair as alt

        form = "%" if self.share else ",.2f"
        lines = alt.Chart({"values": list(rows)}, width=200, height=180).encode(
            x=alt.X(f"{self.x}:{'Q' if self.counted else 'O'}", title=self.x, axis=alt.Axis(labelAngle=0)),
            y=alt.Y(f"{self.y}:Q", title=self.y, axis=alt.Axis(format=form), scale=alt.Scale(zero=True)),
            tooltip=[f"{name}:{'Q' if isinstance(value, float) else 'N'}" for name, value in rows[0].items()],
        )
        if self.colour is not None:
            order = list(dict.fromkeys(row[self.colour] for row in self.rows))
            lines = lines.encode(
                color=alt.Color(f"{self.colour}:N", title=None, sort=order),
                shape=alt.Shape(f"{self.colour}:N", sort=order, legend=None),
            )
        return lines.mark_line() + lines.mark_point(filled=True, size=50)
