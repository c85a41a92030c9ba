"""The report of a comparison: which method serves which aim on one log, and what it costs."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from queryveil import __version__
from queryveil.attacks.run import QUESTIONS
from queryveil.bands import Band
from queryveil.reports import words
from queryveil.reports.charts import INK, MUTED, finished, number
from queryveil.reports.page import Drawing, Figure, render

if TYPE_CHECKING:
    from queryveil.comparison import Cell, Comparison, Frontier, Row

_COLOURS = tuple(f"c{i}" for i in range(1, 8))
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
_LINE = 22
"""Pixels: the height of a line of a heat map."""
_TESTS = 2_000
"""On how many events a task is tried unless asked otherwise."""
_KEPT = ("distinct queries", "tail", "interests", "terms")


def comparison_page(comparison: "Comparison") -> str:
    """The report of a comparison as HTML: one file that needs no network.

    Args:
        comparison: What `queryveil.compare` found.
    """
    done = [cell for cell in comparison.cells if cell.status == "done"]
    figures = [_frontiers(comparison)] if any(frontier.points for frontier in comparison.frontiers) else []
    figures += [figure for figure in (_bands(comparison), _attacks(comparison)) if figure is not None]
    return render(
        "comparison.html",
        figures,
        title="Methods compared on one log",
        methods=len({cell.method for cell in comparison.cells}),
        done=done,
        other=_unreleased(comparison),
        refuted=[cell for cell in done if not cell.holds],
        tiles=_tiles(comparison, len(done)),
        recommendations=comparison.recommendations,
        rows=_table(comparison, done),
        glossary=sorted((words.GLOSSARY | words.COMPARED).items(), key=lambda item: item[0].lower()),
        command=command(comparison),
        fingerprint=comparison.fingerprint,
        seed=comparison.seed,
        version=__version__,
    )


def _unreleased(comparison: "Comparison") -> list[tuple[str, str]]:
    """Cells without a release by the reason why."""
    found: dict[str, list[str]] = {}
    for cell in comparison.cells:
        if cell.status != "done":
            found.setdefault(cell.why, []).append(cell.name)
    return [("; ".join(names), why) for why, names in found.items()]


def _tiles(comparison: "Comparison", done: int) -> list[tuple[str, str, str, str]]:
    counts = comparison.counts
    return [
        ("Users", f"{counts.users or 0:,}", "in the log", ""),
        ("Events", f"{counts.events:,}", "searches", ""),
        ("Distinct queries", f"{counts.queries:,}", _tail(comparison.bands), ""),
        ("Releases", f"{done} of {len(comparison.cells)}", "settings released something", ""),
    ]


def _tail(bands: Sequence[Band]) -> str:
    alone = sum(band.queries for band in bands if band.most == 1)
    every = sum(band.queries for band in bands)
    return f"{100 * alone / every:.0f} % of one user alone" if every else ""


def _table(comparison: "Comparison", done: "Sequence[Cell]") -> list[tuple[str, ...]]:
    """All releases with their main numbers."""
    tried: dict[str, list[bool]] = {}
    for row in comparison.rows:
        if row.succeeds is not None:
            tried.setdefault(row.cell, []).append(row.succeeds)
    found = []
    for cell in done:
        kept = comparison.kept(cell.name)
        won = tried.get(cell.name, [])
        on = sum(cell.name in frontier.cells for frontier in comparison.frontiers)
        found.append(
            (
                cell.name,
                "hold" if cell.holds else "REFUTED",
                _risk(comparison, cell.name),
                *(number(kept.get(name), True) for name in _KEPT),
                f"{sum(won)} of {len(won)}",
                str(on) if on else "–",
            )
        )
    return found


def _without_records(comparison: "Comparison", cell: str) -> bool:
    """Whether users are not told apart in a release, so that there is no record to bring back."""
    found = (("linkability", "record linkage"), ("singling out", "classic risks"))
    return not comparison.risk(cell) and all(comparison.value(cell, *attack) is None for attack in found)


def _risk(comparison: "Comparison", cell: str) -> str:
    return "no records" if _without_records(comparison, cell) else number(comparison.risk(cell), True)


def _looks(comparison: "Comparison") -> dict[str, tuple[str, str]]:
    """A colour and a shape for each method; the two go round at different speeds, so that no pair comes twice soon."""
    methods = list(dict.fromkeys(cell.method for cell in comparison.cells))
    return {name: (_COLOURS[i % len(_COLOURS)], _SHAPES[i % len(_SHAPES)]) for i, name in enumerate(methods)}


def _frontiers(comparison: "Comparison") -> Figure:
    """Risk against what is kept: each release a point, those that no other beats on a line."""
    looks = _looks(comparison)
    shown = {cell.method for cell in comparison.cells if cell.status == "done"}
    drawings = []
    for frontier in comparison.frontiers:
        if frontier.points:
            chart = _scattered(comparison, frontier, looks)
            listed = tuple(_point(comparison, frontier, name) for name in frontier.cells)
            drawings.append(Drawing(f"Risk against {frontier.utility}", chart, _ends(listed), listed))
    keys = [(f"{colour} {shape}", name) for name, (colour, shape) in looks.items() if name in shown]
    return Figure(
        "frontier",
        "Lower right is best: more is kept, and fewer people are found. On the frontier are those that no other beats.",
        tuple(drawings),
        (*keys, ("hollow circle", "hollow: users are not told apart"), ("dash", "frontier")),
        ("utility", "release", "kept", "risk", "on the frontier"),
        tuple(
            (
                frontier.utility,
                name,
                number(kept, True),
                _risk(comparison, name),
                "yes" if name in frontier.cells else "no",
            )
            for frontier in comparison.frontiers
            for name, (kept, _) in sorted(frontier.points.items(), key=lambda point: (point[1][1], -point[1][0]))
        ),
        texts=2,
    )


def _ends(listed: Sequence[str]) -> str:
    """Where a frontier begins and ends; it is empty if no release keeps anything."""
    if not listed:
        return "No release keeps anything of it, so that there is no frontier."
    if len(listed) == 1:
        return f"No other release comes up to {listed[0]}:"
    return f"The frontier goes from {listed[0]} to {listed[-1]}:"


def _point(comparison: "Comparison", frontier: "Frontier", cell: str) -> str:
    risk = "no records" if _without_records(comparison, cell) else f"risk {_risk(comparison, cell)}"
    return f"{cell} ({number(frontier.points[cell][0], True)} kept, {risk})"


def _scattered(comparison: "Comparison", frontier: "Frontier", looks: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    import altair as alt

    of = {cell.name: cell for cell in comparison.cells}
    named = frontier.cells
    values: list[dict[str, Any]] = []
    for name, (kept, risk) in frontier.points.items():
        colour = f"var(--{looks[of[name].method][0]})"
        values.append(
            {
                "name": name,
                "method": of[name].method,
                "kept": kept,
                "risk": risk,
                "told": number(kept, True),
                "found": _risk(comparison, name),
                "frontier": "yes" if name in frontier.cells else "no",
                "label": named.index(name) + 1 if name in named else 0,
                "stroke": colour,
                "fill": "var(--page)" if _without_records(comparison, name) else colour,
            }
        )
    values.sort(key=lambda value: value["frontier"])  # those on the frontier are drawn last, on top
    names = [name for name in looks if any(value["method"] == name for value in values)]
    high = max(0.05, *(value["risk"] for value in values)) * 1.06
    wide = max(0.05, *(value["kept"] for value in values)) * 1.06
    x = alt.X(
        "kept:Q",
        title=f"{frontier.utility} →",
        scale=alt.Scale(domain=[-0.02 * wide, wide], nice=False),
        axis=alt.Axis(format="~%", tickCount=5),
    )
    y = alt.Y(
        "risk:Q",
        title="risk →",
        scale=alt.Scale(domain=[-0.11 * high, high], nice=False),
        axis=alt.Axis(format="~%", tickCount=5),
    )
    line = [{"kept": kept, "risk": risk} for kept, risk in (frontier.points[name] for name in named)]
    base = alt.Chart({"values": values})
    points = base.mark_point(size=85, opacity=1, strokeWidth=1.8).encode(
        x=x,
        y=y,
        shape=alt.Shape(
            "method:N", scale=alt.Scale(domain=names, range=[looks[name][1] for name in names]), legend=None
        ),
        fill=alt.Fill("fill:N", scale=None),
        stroke=alt.Stroke("stroke:N", scale=None),
        tooltip=[
            alt.Tooltip("name:N", title="release"),
            alt.Tooltip("told:N", title=frontier.utility),
            alt.Tooltip("found:N", title="risk"),
            alt.Tooltip("frontier:N", title="on the frontier"),
        ],
    )
    lines = alt.Chart({"values": line}).mark_line(color=MUTED, strokeDash=[5, 4], strokeWidth=1.5, opacity=0.9)
    # Names would cover each other, so that points are numbered and named below.
    numbers = base.transform_filter("datum.label > 0").mark_text(dx=7, dy=11, fontSize=11, color=INK)
    chart = alt.layer(
        lines.encode(x=x, y=y, order="risk:Q"), points, numbers.encode(x=x, y=y, text="label:N")
    ).properties(width="container", height=340)
    return finished(chart, "")


def _bands(comparison: "Comparison") -> Figure | None:
    """What is kept by how many users issued a query: a line a release, a column a band."""
    bands = [band for band in comparison.bands if band.queries]
    of = {(row.cell, row.measure): row.value for row in comparison.rows if row.group == "retention"}
    lines: dict[str, list[float]] = {}
    same: set[tuple[object, ...]] = set()
    without = 0
    for cell in comparison.cells:
        kept = [of.get((cell.name, f"distinct queries of {band.label}")) for band in bands]
        known = [value for value in kept if value is not None]
        if cell.status != "done":
            continue
        if len(known) < len(bands) or not any(known):
            without += 1
            continue
        # A release without users has the same queries as the one with them, and but for that they are set alike.
        setting = {name: value for name, value in cell.parameters.items() if name != "users"}
        release = (cell.method, json.dumps(setting, sort_keys=True, default=str), *known)
        if release not in same:
            same.add(release)
            lines[cell.name] = known
    if not lines:
        return None
    best = max(lines, key=lambda name: lines[name][0])
    caption = (
        f"Of the queries of {bands[0].label} ({bands[0].queries:,}), {best} keeps the most:"
        f" {number(lines[best][0], True)}."
    )
    if without:
        what = "release publishes" if without == 1 else "releases publish"
        caption += f" {without} {what} no query of the log as it was typed."
    columns = [band.label.removesuffix("s").removesuffix(" user") for band in bands]
    values = [
        {"line": name, "column": column, "value": value, "told": number(value, True), "text": _whole(value)}
        for name, known in lines.items()
        for column, value in zip(columns, known, strict=True)
    ]
    tips = (("line", "release"), ("column", "users"), ("told", "queries kept"))
    return Figure(
        "bands",
        caption,
        (
            Drawing(
                "", _heat(values, list(lines), columns, "var(--main)", tips, title="queries that so many users issued")
            ),
        ),
        (),
        ("release", *(band.label for band in bands)),
        tuple((name, *(number(value, True) for value in known)) for name, known in lines.items()),
    )


def _attacks(comparison: "Comparison") -> Figure | None:
    """What every attack finds in every release."""
    found = [row for row in comparison.rows if row.kind == "risk" and row.value is not None]
    shares = [row for row in found if row.unit != "accounts"]
    if not shares:
        return None
    columns = list(dict.fromkeys(_title(row) for question in QUESTIONS for row in shares if row.group == question))
    have = {row.cell for row in shares}
    lines = [cell.name for cell in comparison.cells if cell.name in have]
    values = [
        {
            "line": row.cell,
            "column": _title(row),
            "value": min(max(row.value or 0.0, 0.0), 1.0),
            "text": _whole(row.value or 0.0),
            "told": _estimated(row),
            "question": row.group,
            "guessing": "–" if row.baseline is None else number(row.baseline, row.unit == "share"),
            "control": "–" if row.control is None else number(row.control, row.unit == "share"),
            "beats": "yes" if row.succeeds else "no",
        }
        for row in shares
    ]
    caption = f"{_successes(found)} Numbers are in per cent; bold ones beat guessing and the control."
    tips = (
        ("line", "release"),
        ("column", "attack"),
        ("question", "question"),
        ("told", "found (95 %)"),
        ("guessing", "guessing"),
        ("control", "control"),
        ("beats", "beats both"),
    )
    return Figure(
        "attacks",
        caption,
        (Drawing("", _heat(values, lines, columns, "var(--alarm)", tips)),),
        (),
        ("release", "attack", "found (95 %)", "guessing", "control", "beats"),
        tuple(
            (
                row.cell,
                _title(row),
                _estimated(row),
                _in_unit(row.baseline, row.unit),
                _in_unit(row.control, row.unit),
                "yes" if row.succeeds else "no",
            )
            for row in found
        ),
        texts=2,
        wide=True,
    )


def _successes(found: "Sequence[Row]") -> str:
    """On which releases the smallest and the largest share of the attacks that were tried work."""
    tried: dict[str, list[bool]] = {}
    for row in found:
        tried.setdefault(row.cell, []).append(bool(row.succeeds))
    won = {name: Fraction(sum(some), len(some)) for name, some in tried.items()}
    least, most = min(won.values()), max(won.values())
    low, high = number(float(least), True), number(float(most), True)
    if least == most:
        return f"On every release, {low} of the attacks tried work."
    return (
        f"Of the attacks tried, the smallest share works on {_listed(name for name in won if won[name] == least)}"
        f" ({low}), the largest on {_listed(name for name in won if won[name] == most)} ({high})."
    )


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return every[0] if len(every) == 1 else f"{every[0]} and {len(every) - 1} more"


def _title(row: "Row") -> str:
    return ", ".join(part for part in (row.measure, row.setting) if part)


def _in_unit(value: float | None, unit: str) -> str:
    if value is not None and unit == "accounts":
        return f"{value:,.0f} accounts"
    return number(value, unit == "share")


def _estimated(row: "Row") -> str:
    told = _in_unit(row.value, row.unit)
    if row.low is None or row.high is None or row.unit == "accounts":
        return told
    low, high = (_in_unit(bound, row.unit).removesuffix(" %") for bound in (row.low, row.high))
    return f"{told} ({low} to {high})"


def _whole(value: float) -> str:
    """A share in whole per cent that does not round something to nothing."""
    return "<1" if 0 < value < 0.005 else f"{100 * value:.0f}"


def _heat(
    values: Sequence[Mapping[str, Any]],
    lines: Sequence[str],
    columns: Sequence[str],
    colour: str,
    tips: Sequence[tuple[str, str]],
    *,
    title: str | None = None,
) -> dict[str, Any]:
    """Numbers in coloured fields, the stronger the colour the larger."""
    import altair as alt

    x = alt.X(
        "column:N",
        sort=list(columns),
        title=title,
        axis=alt.Axis(orient="top", labelAngle=0 if title else -90, grid=False, labelLimit=160),
    )
    y = alt.Y("line:N", sort=list(lines), title=None, axis=alt.Axis(grid=False, labelLimit=190))
    base = alt.Chart({"values": list(values)}).encode(x=x, y=y)
    fields = base.mark_rect(fill=colour, stroke="var(--page)", strokeWidth=1).encode(
        fillOpacity=alt.FillOpacity(
            "value:Q", scale=alt.Scale(domain=[0, 1], range=[0.05, 0.95], clamp=True), legend=None
        ),
        tooltip=[alt.Tooltip(f"{name}:N", title=title) for name, title in tips],
    )
    dark = alt.condition("datum.value > 0.75", alt.value("var(--page)"), alt.value(INK))
    plain = base.transform_filter("datum.beats !== 'yes'").mark_text(fontSize=10.5)
    bold = base.transform_filter("datum.beats === 'yes'").mark_text(fontSize=10.5, fontWeight="bold")
    numbers = [some.encode(text="text:N", color=dark, tooltip=alt.value(None)) for some in (plain, bold)]
    chart = alt.layer(fields, *numbers).properties(width="container", height=_LINE * len(lines))
    return finished(chart, "")


def command(comparison: "Comparison") -> str:
    """The command that makes the same comparison again, with names in the place of files."""
    methods = list(dict.fromkeys(cell.method for cell in comparison.cells))
    ks = sorted({cell.k for cell in comparison.cells if cell.k is not None})
    epsilons = sorted({float(e) for cell in comparison.cells if (e := cell.parameters.get("epsilon")) is not None})
    places = {cell.method: cell.parameters["knowledge"] for cell in comparison.cells if "knowledge" in cell.parameters}
    sites = places.pop("search", "wordnet")
    own = any(place != "wordnet" for place in places.values())
    parts = [
        "queryveil compare LOG",
        f"--methods {','.join(methods)}",
        *([f"-k {','.join(map(str, ks))}"] if ks else []),
        *([f"--epsilon {','.join(f'{epsilon:g}' for epsilon in epsilons)}"] if epsilons else []),
        *(["--knowledge KNOWLEDGE"] if own else []),
        *(["--directory DIRECTORY"] if sites not in ("wordnet", *places.values()) else []),
        *([f"--tests {comparison.tests}"] if comparison.tests != _TESTS else []),
        f"--seed {comparison.seed}",
        "-o comparison",
    ]
    return re.sub(r"\s+", " ", " ".join(parts))
