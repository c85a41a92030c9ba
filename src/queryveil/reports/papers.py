"""The report of a paper's experiments: its figures as they are on one log, beside what the text of the paper says."""

from collections.abc import Mapping, Sequence
from typing import Any

from queryveil import __version__
from queryveil.assess.reproduce import PAPERS, Published, beside
from queryveil.assess.reproduce import Figure as PaperFigure
from queryveil.log import QueryLog
from queryveil.reports import words
from queryveil.reports.charts import MUTED, finished, ticks, tooltips
from queryveil.reports.looks import Looks
from queryveil.reports.looks import looks as looks_of
from queryveil.reports.page import Drawing, Figure, check_packages, render
from queryveil.text.show import percent, printable

_HEIGHT = 320
"""Pixels of a drawing."""
_ROOM = 1.06
"""Of the scale, beyond the largest value."""
_LINES = 12
"""Most lines that can be distinguished in a drawing; more are a table."""


def paper_page(
    paper: str, figures: Sequence[PaperFigure], log: QueryLog, *, taxonomy: str, seed: int, command: str
) -> str:
    """The report of a paper's experiments as HTML: one file that needs no network.

    Args:
        paper: The name of the paper.
        figures: What `queryveil.assess.reproduce.reproduce` found; those about one person are left out.
        log: The log.
        taxonomy: The name of the taxonomy.
        seed: The random seed that was used.
        command: The command that makes the same figures again, with names in the place of files.
    """
    check_packages()
    shown = [figure for figure in figures if not figure.private and figure.rows]
    published = PAPERS[paper].published
    compared = beside(published, shown)
    sections = [
        (
            figure.name,
            f"{figure.name.replace('-', ' ').capitalize()}: {figure.title}",
            [(one.what, one.value, one.ours, one.where) for one in compared if one.figure == figure.name],
        )
        for figure in shown
    ]
    return render(
        "paper.html",
        [_figure(figure, [one for one in published if one.figure == figure.name]) for figure in shown],
        title=f"The experiments of {paper} on one log",
        paper=paper,
        citation=PAPERS[paper].citation,
        sections=sections,
        glossary=sorted(words.GLOSSARY.items(), key=lambda item: item[0].lower()),
        tiles=[
            ("Users", f"{log.n_users:,}", "in the log", ""),
            ("Events", f"{log.stats.events:,}", "searches", ""),
            ("Distinct queries", f"{log.n_queries:,}", "", ""),
            ("Taxonomy", taxonomy, "where queries are looked up", ""),
        ],
        command=command,
        fingerprint=log.fingerprint,
        seed=seed,
        version=__version__,
    )


def _figure(figure: PaperFigure, published: Sequence[Published]) -> Figure:
    """A figure of a paper as one of a page."""
    looks = looks_of(_line(figure, row) for row in figure.rows)
    points = _points(figure, published)
    panels = [None] if figure.panel is None else list(dict.fromkeys(row[figure.panel] for row in figure.rows))
    drawn = not figure.name.startswith("table") and len(looks) <= _LINES
    columns = [name for name in (figure.panel, figure.colour, figure.x) if name is not None]
    keys = [(f"{colour} {shape}", name) for name, (colour, shape) in looks.items() if name]
    return Figure(
        figure.name,
        _caption(figure),
        tuple(_drawing(figure, panel, points, looks) for panel in panels) if drawn else (),
        (*keys, *([("diamond muted", "the paper")] if points else [])) if drawn else (),
        (*columns, figure.y),
        tuple((*(str(row[name]) for name in columns), _shown(row[figure.y], figure.share)) for row in figure.rows),
        texts=len(columns),
    )


def _points(figure: PaperFigure, published: Sequence[Published]) -> list[Mapping[str, Any]]:
    """The values of the paper that have a place in a figure: on an axis of single positions only at those we have."""
    panels = {row[figure.panel] for row in figure.rows} if figure.panel is not None else set()
    places = {row[figure.x] for row in figure.rows}
    return [
        point
        for one in published
        for point in one.points
        if (figure.panel is None or point[figure.panel] in panels) and (figure.counted or point[figure.x] in places)
    ]


def _caption(figure: PaperFigure) -> str:
    """What is drawn, in a sentence."""
    each = "" if figure.panel is None else f", one drawing for each {figure.panel}"
    return f"{figure.title}: {figure.y} against {figure.x}{each}."


def _line(figure: PaperFigure, row: Mapping[str, Any]) -> str:
    return "" if figure.colour is None else printable(str(row[figure.colour]))


def _drawing(figure: PaperFigure, panel: object, points: Sequence[Mapping[str, Any]], looks: Looks) -> Drawing:
    """The lines of one panel, and what the paper has there."""
    import altair as alt

    here = [row for row in figure.rows if figure.panel is None or row[figure.panel] == panel]
    chosen = [point for point in points if figure.panel is None or point[figure.panel] == panel]
    values = [
        {
            "x": row[figure.x],
            "y": row[figure.y],
            "line": _line(figure, row),
            "shown": _shown(row[figure.y], figure.share),
        }
        for row in here
    ]
    paper = []
    for point in chosen:
        line, shown = _line(figure, point), _shown(point[figure.y], figure.share)
        stroke = f"var(--{looks[line][0]})" if line and line in looks else MUTED
        name = f"the paper, {line}" if line else "the paper"
        paper.append({"x": point[figure.x], "y": point[figure.y], "line": name, "shown": shown, "stroke": stroke})
    every = [row[figure.y] for row in (*figure.rows, *points) if row[figure.y] is not None]
    x = alt.X(
        f"x:{'Q' if figure.counted else 'O'}",
        title=figure.x,
        sort=None,
        axis=alt.Axis(labelAngle=0, grid=False, labelFontSize=13, titleFontSize=13),
    )
    y = alt.Y(
        "y:Q",
        title=figure.y,
        scale=alt.Scale(domain=[min((*every, 0.0)), max((*every, 0.0)) * _ROOM or 1.0], nice=False),
        axis=alt.Axis(tickCount=6, labelFontSize=13, titleFontSize=13, **ticks(figure.share)),
    )
    colours = alt.Scale(domain=list(looks), range=[f"var(--{colour})" for colour, _ in looks.values()])
    shapes = alt.Scale(domain=list(looks), range=[shape for _, shape in looks.values()])
    colour = alt.Color("line:N", scale=colours, legend=None)
    tips = tooltips(("line", "line"), ("x", figure.x), ("shown", figure.y))
    base = alt.Chart({"values": values}).encode(x=x, y=y, color=colour)
    layers = [
        base.mark_line(strokeWidth=2.5),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            shape=alt.Shape("line:N", scale=shapes, legend=None), tooltip=tips
        ),
    ]
    if paper:
        mark = alt.Chart({"values": paper}).mark_point(
            shape="diamond", size=150, fill="var(--page)", strokeWidth=2.5, opacity=1
        )
        layers.append(mark.encode(x=x, y=y, stroke=alt.Stroke("stroke:N", scale=None), tooltip=tips))
    chart = alt.layer(*layers).properties(width="container", height=_HEIGHT)
    title = "" if figure.panel is None else f"{figure.panel} = {panel}"
    return Drawing(title, finished(chart, ""))


def _shown(value: float | None, share: bool) -> str:
    if value is None:
        return "–"
    if share:
        return percent(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"
