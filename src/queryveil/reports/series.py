"""The page of a series: what was kept, what waits and what was lost over time, and what attacks find."""

from collections.abc import Sequence
from typing import Any

from queryveil import __version__
from queryveil.assess.attacks.finding import estimated, shown
from queryveil.reports import words
from queryveil.reports.charts import finished, tooltips
from queryveil.reports.page import Drawing, Figure, check_packages, render
from queryveil.series import Status
from queryveil.series.attacks import SeriesFindings
from queryveil.text.show import percent

__all__ = ["check_packages", "series_page"]

_HEIGHT = 280
"""Pixels of a drawing."""

Lines = dict[str, tuple[str, str, list[float]]]
"""By name: the colour of a line, the shape of its points, and its values."""


def series_page(status: Status, findings: SeriesFindings | None = None) -> str:
    """The page of a series as HTML: one file that needs no network.

    Args:
        status: What happened in each period.
        findings: What attacks found; None leaves that part out.
    """
    check_packages()
    sums = status.sums
    ends = [f"{period.end:%Y-%m-%d}" for period in status.periods]
    events = _events(status, ends)
    figures = [events, _queries(status, ends), _waits(status, ends)]
    exposed = findings is not None and bool(findings.exposure)
    if findings is not None and exposed:
        figures.append(_exposure(findings, ends))
    settings = status.ledger.settings
    wait = "–" if status.mean_wait is None else f"{status.mean_wait:.1f} days"
    return render(
        "series.html",
        figures,
        title=f"A series of releases by {settings.method}",
        sections=[
            ("section-events", "Events"),
            ("section-queries", "Distinct queries"),
            ("section-waits", "Waiting"),
            *([("section-exposure", "Exposure")] if exposed else []),
            *(
                [("section-attacks", "Attacks")]
                if findings is not None and (findings.findings or findings.skipped)
                else []
            ),
            ("section-parameters", "Parameters"),
            ("glossary", "Glossary"),
        ],
        glossary=sorted(words.GLOSSARY.items(), key=lambda item: item[0].lower()),
        method=settings.method,
        parameters=[(name, str(value)) for name, value in settings.parameters.items()],
        tiles=[
            ("Releases", f"{sums['releases']:,}", f"in {sums['periods']:,} periods", ""),
            ("Events released", f"{sums['released']:,}", f"{_share(sums['released'], sums['events'])} of all", ""),
            ("Events waiting", f"{sums['waiting']:,}", _share(sums["waiting"], sums["events"]) + " of all", ""),
            (
                "Events lost",
                f"{sums['lost']:,}",
                "left out, too old, forgotten, late",
                "",
            ),
            ("Mean wait", wait, "of released events", ""),
        ],
        findings=[
            (
                one.title,
                one.number,
                estimated(one.estimate, one.unit),
                shown(one.baseline, one.unit),
                "–" if one.control is None else shown(one.control.value, one.unit),
                "yes" if one.succeeds else "no",
            )
            for one in (findings.findings if findings is not None else ())
        ],
        skipped=[(one.label, one.why) for one in (findings.skipped if findings is not None else ())],
        version=__version__,
    )


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "–"


def _events(status: Status, ends: Sequence[str]) -> Figure:
    periods = status.periods
    lines: Lines = {
        "came": ("c7", "circle", [one.events for one in periods]),
        "released": ("c1", "square", [one.released for one in periods]),
        "lost": ("c2", "triangle-up", [one.lost for one in periods]),
        "wait": ("c5", "diamond", [one.waiting for one in periods]),
    }
    last = status.waiting
    caption = f"Events by period. {status.sums['released']:,} were released, and {last:,} wait at the end."
    return _figure("events", caption, ends, lines, "events")


def _queries(status: Status, ends: Sequence[str]) -> Figure:
    periods = status.periods
    lines: Lines = {
        "released": ("c1", "square", [one.queries for one in periods]),
        "for the first time": ("c5", "diamond", [one.new_queries for one in periods]),
    }
    caption = f"Distinct queries of each release. {status.sums['queries']:,} are in any of them."
    return _figure("queries", caption, ends, lines, "distinct queries")


def _waits(status: Status, ends: Sequence[str]) -> Figure:
    lines: Lines = {"days": ("c1", "circle", [round(one.waited, 3) for one in status.periods])}
    mean = status.mean_wait
    caption = "Days that released events had waited on average." + ("" if mean is None else f" Overall {mean:.1f}.")
    return _figure("waits", caption, ends, lines, "days")


def _exposure(findings: SeriesFindings, ends: Sequence[str]) -> Figure:
    found = findings.exposure
    lines: Lines = {
        "this series": ("c1", "square", [one.exposed for one in found]),
        "the whole log released anew": ("c2", "triangle-up", [one.cumulative_exposed for one in found]),
    }
    ours, naive = (sum(values) for _, _, values in lines.values())
    caption = (
        "Changes of published counts that come from fewer users than promised, by period:"
        f" {ours:,} in this series, and {naive:,} if every release were made of the whole log so far."
    )
    return _figure("exposure", caption, ends, lines, "changes")


def _figure(name: str, caption: str, ends: Sequence[str], lines: Lines, unit: str) -> Figure:
    rows = tuple(
        (str(number), end, *(f"{values[number - 1]:,}" for _, _, values in lines.values()))
        for number, end in enumerate(ends, 1)
    )
    keys = tuple((f"{colour} {shape}", line) for line, (colour, shape, _) in lines.items())
    drawing = Drawing("", _chart(ends, lines, unit))
    return Figure(name, caption, (drawing,), keys, ("period", "until", *lines), rows, texts=2, wide=True)


def _chart(ends: Sequence[str], lines: Lines, unit: str) -> dict[str, Any]:
    import altair as alt

    values = [
        {"period": number, "until": ends[number - 1], "line": line, "value": value, "shown": f"{value:,}"}
        for line, (_, _, of_line) in lines.items()
        for number, value in enumerate(of_line, 1)
    ]
    colours = alt.Scale(domain=list(lines), range=[f"var(--{colour})" for colour, _, _ in lines.values()])
    shapes = alt.Scale(domain=list(lines), range=[shape for _, shape, _ in lines.values()])
    axis: dict[str, Any] = {"labelFontSize": 13, "titleFontSize": 13}
    base = alt.Chart({"values": values}).encode(
        x=alt.X("period:Q", title="period", axis=alt.Axis(grid=False, tickMinStep=1, format="d", **axis)),
        y=alt.Y("value:Q", title=unit, axis=alt.Axis(format=",~f", tickCount=6, **axis)),
        color=alt.Color("line:N", scale=colours, legend=None),
    )
    tips = tooltips(("line", "what"), ("period", "period"), ("until", "until"), ("shown", unit))
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        shape=alt.Shape("line:N", scale=shapes, legend=None), tooltip=tips
    )
    return finished((base.mark_line(strokeWidth=2) + points).properties(width="container", height=_HEIGHT), "")
