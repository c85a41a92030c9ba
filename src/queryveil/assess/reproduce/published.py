"""What a paper says of its figures in its text, and the same values of ours beside it.

Most curves of papers are pictures alone, and no value is read off a picture.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.text.show import percent

NONE = "–"
"""What stands for a value that was not measured."""


class Values:
    """The values of figures, by their name and place."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._figures = {figure.name: figure for figure in figures}

    def __call__(self, name: str, y: str | None = None, /, **at: object) -> float | None:
        """The first value of a figure at a place; None if there is none."""
        return next(iter(self.all(name, y, **at)), None)

    def all(self, name: str, y: str | None = None, /, **at: object) -> list[float]:
        """All values of a figure that were measured at a place, in the order of its rows."""
        figure = self._figures.get(name)
        if figure is None:
            return []
        rows = (row for row in figure.rows if all(row.get(key) == value for key, value in at.items()))
        return [float(value) for row in rows if (value := row.get(y or figure.y)) is not None]

    def lines(self, name: str, column: str, /, *values: str, **at: object) -> list[tuple[float, ...]]:
        """The values of several lines of a figure, side by side, wherever all of them were measured.

        Values stand side by side if they are in the same panel and at the same position on the axis.
        """
        figure = self._figures.get(name)
        if figure is None:
            return []
        measured: dict[tuple[object, ...], dict[object, float]] = {}
        for row in figure.rows:
            if row[figure.y] is not None and all(row.get(key) == value for key, value in at.items()):
                place = (row[figure.x], None if figure.panel is None else row[figure.panel])
                measured.setdefault(place, {})[row[column]] = float(row[figure.y])
        return [tuple(here[value] for value in values) for here in measured.values() if {*values} <= here.keys()]

    def places(self, name: str, column: str) -> list[object]:
        """The distinct values of a column, in the order of the rows."""
        figure = self._figures.get(name)
        return [] if figure is None else list(dict.fromkeys(row[column] for row in figure.rows if column in row))


@dataclass(frozen=True)
class Published:
    """A value or a finding in the text of a paper.

    Attributes:
        figure: Our figure that has the value.
        what: What it is.
        value: What the paper says.
        where: Where the paper says so.
        ours: The same of ours, from the values of all figures.
        points: Values of the paper that are drawn into our figure: rows with its columns, and the name of their line.
    """

    figure: str
    what: str
    value: str
    where: str
    ours: Callable[[Values], str]
    points: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Beside:
    """What a paper says, and what was found here."""

    figure: str
    what: str
    value: str
    ours: str
    where: str


def beside(published: Iterable[Published], figures: Sequence[Figure]) -> list[Beside]:
    """What a paper says of its figures, with the values of ours; of figures that were made."""
    values, made = Values(figures), {figure.name for figure in figures}
    return [
        Beside(one.figure, one.what, one.value, one.ours(values), one.where) for one in published if one.figure in made
    ]


def shares(*values: float | None) -> str:
    """Shares in per cent."""
    return ", ".join(NONE if value is None else percent(value) for value in values) or NONE


def numbers(*values: float | None) -> str:
    """Plain numbers."""
    return ", ".join(NONE if value is None else f"{value:,.2f}" for value in values) or NONE


def counts(*values: float | None) -> str:
    """Whole numbers."""
    return ", ".join(NONE if value is None else f"{value:,.0f}" for value in values) or NONE


def more(one: float | None, other: float | None) -> float | None:
    """How much more one is than another, as a share of the other."""
    return None if one is None or not other else one / other - 1


def gains(*values: float | None) -> str:
    """Differences in per cent, with their sign; of more than four the least and the most."""
    known = [value for value in values if value is not None]
    if not known:
        return NONE
    if len(known) > 4:
        return f"{100 * min(known):+,.0f} to {100 * max(known):+,.0f} %"
    return ", ".join(f"{100 * value:+,.0f} %" for value in known)


def differences(*values: float | None) -> str:
    """Differences of plain numbers, with their sign."""
    return ", ".join(NONE if value is None else f"{value:+.3f}" for value in values) or NONE


def held(hold: Iterable[bool]) -> str:
    """In how many of the cases a finding holds."""
    cases = list(hold)
    return f"in {sum(cases)} of {len(cases)} cases" if cases else NONE
