"""Charts of a release: each row has its label above it, so they fit a phone too.

Colours are variables of the page's style, which sets them for light, dark and print. Marks also differ in shape, for
people who cannot distinguish the colours.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

from queryveil.assess.attacks import Finding, Findings
from queryveil.assess.attacks.finding import estimated, shown
from queryveil.assess.attacks.registry import ATTACKS
from queryveil.assess.attacks.run import QUESTIONS
from queryveil.assess.evaluation import Measured
from queryveil.assess.measures import GROUPS, MEASURES
from queryveil.release.bands import Band
from queryveil.release.summary import share
from queryveil.reports.page import Drawing, Figure
from queryveil.text.show import percent

INK, MUTED, MAIN, OTHER, ALARM = "currentColor", "var(--muted)", "var(--main)", "var(--other)", "var(--alarm)"
_STEP, _LABEL, _MARK = 50, 10, 28
"""Pixels: the height of a row, and where in it its label and its marks are."""

_LETTERS = 32
"""Of a label that still leaves room for a number on a narrow screen."""
_ROOM = 0.02
"""Of the scale, beyond its ends, for marks that lie there."""


def kept(bands: Sequence[Band]) -> Figure:
    """How much was kept, by the number of users who issued a query."""
    some = [band for band in bands if band.queries]
    values = []
    for i, band in enumerate(some):
        both = (("distinct queries", band.kept_queries, band.queries), ("events", band.kept_events, band.events))
        for j, (kind, part, whole) in enumerate(both):
            top = i * _STEP + 20 + 11 * j
            values.append(
                {
                    "label": "" if j else f"issued by {band.label}",
                    "size": "" if j else f"{band.queries:,} {'query' if band.queries == 1 else 'queries'}",
                    "row": i * _STEP + _LABEL,
                    "top": top,
                    "end": top + 9,
                    "middle": top + 5,
                    "band": band.label,
                    "kind": kind,
                    "share": part / whole,
                    "shown": share(part, whole),
                    "kept": part,
                    "of": whole,
                }
            )
    first, last = some[0], some[-1]
    caption = (
        f"Of the queries that {_people(first)} issued, {share(first.kept_queries, first.queries)} are kept"
        f" ({first.kept_queries:,} of {first.queries:,}); of those of {last.label},"
        f" {share(last.kept_queries, last.queries)} ({last.kept_queries:,} of {last.queries:,})."
    )
    return Figure(
        "kept",
        caption,
        (Drawing("", _kept_chart(len(some)) | {"datasets": {_KEPT: values}, "description": caption}),),
        (("bar main", "distinct queries"), ("bar other", "events")),
        ("issued by", "distinct queries", "kept", "share", "events", "kept", "share"),
        tuple(
            (
                band.label,
                f"{band.queries:,}",
                f"{band.kept_queries:,}",
                share(band.kept_queries, band.queries),
                f"{band.events:,}",
                f"{band.kept_events:,}",
                share(band.kept_events, band.events),
            )
            for band in some
        ),
    )


_KEPT = "kept"


@cache
def _kept_chart(rows: int) -> dict[str, Any]:
    """The drawing of what is kept without its data, made once: a slider asks for it many times."""
    import altair as alt

    height = _STEP * rows
    base = alt.Chart({"name": _KEPT})
    x = _across("share", 0, 1.15, "share that is kept", percent=True)
    colours = alt.Scale(domain=["distinct queries", "events"], range=[MAIN, OTHER])
    bars = base.mark_bar().encode(
        x=x,
        x2=alt.datum(0),
        y=_down("top", height),
        y2="end:Q",
        color=alt.Color("kind:N", scale=colours, legend=None),
        tooltip=[
            *tooltips(("band", "issued by"), ("kind", "what"), ("shown", "share kept")),
            alt.Tooltip("kept:Q", title="kept", format=","),
            alt.Tooltip("of:Q", title="in the log", format=","),
        ],
    )
    numbers = base.mark_text(align="left", dx=5, fontSize=10, color=INK).encode(
        x=x, y=_down("middle", height), text="shown:N"
    )
    return drawn("", height, bars, numbers, *_labels({"name": _KEPT}, height, "label", "size"))


def _people(band: Band) -> str:
    return "one user alone" if band.most == 1 else band.label


def utility(measured: Sequence[Measured]) -> Figure:
    """What a release is still good for, beside the log: one drawing per group and good direction."""
    whole = [one for one in measured if one.measure != "queries_kept_by_users"]
    drawings = []
    for group, some in groupby(whole, key=lambda one: one.group):
        known = [one for one in some if one.value is not None and one.separates]
        shares = [(one, of_the_log(one.measure, one.value, one.best)) for one in known]
        upward = [(one, reached) for one, reached in shares if reached is not None]
        others = [(one, one.value) for one, reached in shares if reached is None and one.value is not None]
        if upward:
            title = "share of the log's own value; higher is better →"
            drawings.append(Drawing(GROUPS[group], _beside(upward, title, percent=True)))
        for better, title in (("lower", "← lower is better"), ("higher", "higher is better →")):
            rest = [(one, value) for one, value in others if MEASURES[one.measure].better == better]
            if rest:
                shared = all(one.share for one, _ in rest)
                what = "distance from the log, or error" if better == "lower" else "value"
                name = GROUPS[group] if better == "higher" else f"{GROUPS[group]}: what is lost"
                drawings.append(Drawing(name, _beside(rest, f"{what}; {title}", percent=shared)))
    dull = ", ".join(one.label for one in whole if one.value is not None and not one.separates)
    left = f" Not drawn, because they say nothing on this log (the table says why): {dull}." if dull else ""
    return Figure(
        "utility",
        _losses(measured) + left,
        tuple(drawings),
        (("dot main", "release"), ("diamond muted", "the log itself")),
        ("", "measure", "good direction", "release has", "log has", "share of the log's", "note"),
        tuple(
            (
                one.group,
                one.label,
                MEASURES[one.measure].better,
                number(one.value, one.share),
                number(one.best, one.share),
                number(of_the_log(one.measure, one.value, one.best), True),
                one.why,
            )
            for one in measured
        ),
        texts=2,
        tail=True,
    )


def of_the_log(measure: str, value: float | None, best: float | None) -> float | None:
    """Which share of the log's own value a release reaches; None for what is better if lower, and if the log has 0."""
    if value is None or best is None or best <= 0 or MEASURES[measure].better == "lower":
        return None
    return value / best


def direction(measure: str, best: float | None) -> str:
    """Which direction of a measure is good, and what the log itself has."""
    one = MEASURES[measure]
    return f"{one.better} is better; the log itself has {number(best, one.unit == 'share')}"


def number(value: float | None, of_all: bool) -> str:
    """A measured number for a reader, as a percentage if it is a share."""
    if value is None:
        return "–"
    return percent(value) if of_all else f"{value:.3f}"


def _beside(measured: Sequence[tuple[Measured, float]], title: str, *, percent: bool) -> dict[str, Any]:
    """For each measure the release's place and the log's, on one line."""
    import altair as alt

    values: list[dict[str, Any]] = [
        {
            "label": short(one.label),
            "shown": _reached(one),
            "release": number(one.value, one.share),
            "log": number(one.best, one.share),
            "measure": one.label,
            "value": value,
            "best": one.best if of_the_log(one.measure, one.value, one.best) is None else 1.0,
            "row": i * _STEP + _LABEL,
            "at": i * _STEP + _MARK,
        }
        for i, (one, value) in enumerate(measured)
    ]
    height = _STEP * len(values)
    every = [value[name] for value in values for name in ("value", "best")]
    low, high = min(0.0, *every) - _ROOM, max(1.0, *every) + _ROOM
    base = alt.Chart({"values": values})
    tips = tooltips(("measure", "measure"), ("release", "release"), ("log", "the log itself"))
    value, best = (_across(name, low, high, title, percent=percent) for name in ("value", "best"))
    y = _down("at", height)
    between = base.mark_rule(color=MUTED, strokeWidth=2, opacity=0.5).encode(x=value, x2="best:Q", y=y)
    log = base.mark_point(shape="diamond", size=110, fill="var(--page)", stroke=MUTED, opacity=1, strokeWidth=2)
    release = base.mark_point(shape="circle", size=110, fill=MAIN, stroke="var(--page)", opacity=1)
    return drawn(
        "",
        height,
        between,
        log.encode(x=best, y=y, tooltip=tips),
        release.encode(x=value, y=y, tooltip=tips),
        *_labels({"values": values}, height, "label", "shown"),
    )


def _reached(one: Measured) -> str:
    """What a release has, and of the log's own value if that is not 1."""
    has, reached = number(one.value, one.share), of_the_log(one.measure, one.value, one.best)
    if reached is None or one.best == 1:
        return has
    return f"{number(reached, True)} ({has.removesuffix(' %')} of {number(one.best, one.share)})"


def short(measure: str) -> str:
    """A measure without what is in brackets, for a narrow place."""
    return re.sub(r" \([^)]*\)", "", measure).replace("the 1,000 most frequent", "the top 1,000")


def _losses(measured: Sequence[Measured]) -> str:
    """Where least is lost, and where most."""
    whole = [one for one in measured if one.measure != "queries_kept_by_users"]
    known = [(_lost(one, one.value), one) for one in whole if one.value is not None and one.separates]
    if not known:
        return "None of the measures applies to this release."
    if max(lost for lost, _ in known) <= 0:
        return "By no measure is the release worse than the log itself."
    extremes = [
        f"{one.label} ({number(one.value, one.share)}; the log: {number(one.best, one.share)})"
        for _, one in (min(known, key=lambda each: each[0]), max(known, key=lambda each: each[0]))
    ]
    return (
        f"Least is lost in {extremes[0]}, most in {extremes[1]}."
        if len(known) > 1
        else f"What can be measured: {extremes[0]}."
    )


def _lost(one: Measured, value: float) -> float:
    """How much worse a value is than the log's, as a share of that; less than 0 if it is better."""
    if MEASURES[one.measure].better == "lower":
        return value - one.best
    return (one.best - value) / one.best if one.best > 0 else -value


def attacks(found: Findings) -> Figure:
    """What attacks found, beside their baselines and controls: one drawing per question."""
    drawings = []
    for question in QUESTIONS:
        some = [finding for finding in found.findings if finding.question == question and finding.unit != "accounts"]
        if some:
            drawings.append(Drawing(question.capitalize(), _intervals(some)))
    won = sum(finding.succeeds for finding in found.findings)
    caption = f"{won} of {len(found.findings)} attacks succeed: they are above their baseline and their control."
    if not found.findings:
        caption = "No attack could be tried."
    shares = [finding for finding in found.findings if finding.unit == "share"]
    if shares:
        most = max(shares, key=lambda finding: finding.estimate.value)
        caption += f" The largest share is that of {most.title}: {estimated(most.estimate, most.unit)}."
    accounts = next((finding for finding in found.findings if finding.unit == "accounts"), None)
    if accounts is not None:
        caption += (
            f" {accounts.number.capitalize()}: {shown(accounts.estimate.value, 'accounts')}"
            f" (the release promises {shown(accounts.baseline, 'accounts')} users)."
        )
    return Figure(
        "attacks",
        caption,
        tuple(drawings),
        (
            ("dot alarm", "succeeds: above baseline and control"),
            ("dot main", "does not"),
            ("diamond muted", "control"),
            ("tick ink", "baseline"),
        ),
        ("question", "attack", "found (95 %)", "baseline", "control", "succeeds", "trials", "what the number is"),
        tuple(
            (
                finding.question,
                finding.title,
                estimated(finding.estimate, finding.unit),
                shown(finding.baseline, finding.unit),
                "–" if finding.control is None else estimated(finding.control, finding.unit),
                "yes" if finding.succeeds else "no",
                f"{finding.trials:,}",
                finding.number + (f"; {finding.beside}" if finding.beside else ""),
            )
            for finding in found.findings
        ),
        texts=2,
        tail=True,
    )


def _intervals(findings: Sequence[Finding]) -> dict[str, Any]:
    """For each attack its interval, that of its control, and its baseline."""
    import altair as alt

    values = []
    for i, finding in enumerate(findings):
        control = finding.control
        values.append(
            {
                "label": _fitting(finding) + (" (index)" if finding.unit == "index" else ""),
                "shown": estimated(finding.estimate, finding.unit),
                "number": finding.number,
                "value": finding.estimate.value,
                "low": finding.estimate.low,
                "high": finding.estimate.high,
                "baseline": finding.baseline,
                "baseline_text": f"{shown(finding.baseline, finding.unit)} ({finding.baseline_text})",
                "control": None if control is None else control.value,
                "control_low": None if control is None else control.low,
                "control_high": None if control is None else control.high,
                "controlled": "none" if control is None else estimated(control, finding.unit),
                "succeeds": "yes" if finding.succeeds else "no",
                "row": i * _STEP + _LABEL,
                "at": i * _STEP + _MARK - 3,
                "below": i * _STEP + _MARK + 6,
                "from": i * _STEP + _MARK - 9,
                "to": i * _STEP + _MARK + 12,
            }
        )
    height = _STEP * len(values)
    low = min(0.0, *(finding.estimate.low for finding in findings)) - _ROOM
    base = alt.Chart({"values": values})

    def at(name: str) -> Any:
        return _across(name, low, 1 + _ROOM, "share found; the lower, the more private", percent=True)

    colour = alt.Color("succeeds:N", scale=alt.Scale(domain=["yes", "no"], range=[ALARM, MAIN]), legend=None)
    tips = tooltips(
        ("number", "what"),
        ("shown", "found (95 %)"),
        ("baseline_text", "baseline"),
        ("controlled", "control"),
        ("succeeds", "succeeds"),
    )
    y, below = _down("at", height), _down("below", height)
    controls = base.transform_filter("isValid(datum.control)")
    return drawn(
        "",
        height,
        base.mark_rule(strokeWidth=1.5, color=INK).encode(
            x=at("baseline"), y=_down("from", height), y2="to:Q", tooltip=tips
        ),
        controls.mark_rule(strokeWidth=2, color=MUTED).encode(x=at("control_low"), x2="control_high:Q", y=below),
        controls.mark_point(
            shape="diamond", size=60, fill="var(--page)", stroke=MUTED, strokeWidth=2, opacity=1
        ).encode(x=at("control"), y=below, tooltip=tips),
        base.mark_rule(strokeWidth=4, opacity=0.55).encode(x=at("low"), x2="high:Q", y=y, color=colour, tooltip=tips),
        base.mark_point(shape="circle", size=90, filled=True, opacity=1).encode(
            x=at("value"), y=y, color=colour, tooltip=tips
        ),
        *_labels({"values": values}, height, "label", "shown"),
    )


def _fitting(finding: Finding) -> str:
    """What an attack is called beside its number, on a narrow screen too."""
    short = ATTACKS[finding.attack].short
    return finding.title.replace(finding.label, short) if short and len(finding.label) > _LETTERS else finding.title


def tooltips(*titles: tuple[str, str]) -> list[Any]:
    """What is shown about a mark under the pointer: fields and their titles."""
    import altair as alt

    return [alt.Tooltip(f"{field}:N", title=title) for field, title in titles]


def drawn(caption: str, height: int, *layers: Any) -> dict[str, Any]:
    """Layers as one drawing that is as wide as there is room, as plain values."""
    import altair as alt

    chart = alt.layer(*layers).properties(width="container", height=height)
    return finished(chart, caption)


def finished(chart: Any, caption: str) -> dict[str, Any]:
    """A chart in the style of all charts, as plain values."""
    axis = {
        "labelColor": INK,
        "labelOpacity": 0.7,
        "labelFontSize": 11,
        "titleColor": INK,
        "titleOpacity": 0.7,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "gridColor": INK,
        "gridOpacity": 0.13,
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
    }
    looks = {
        "font": "system-ui, sans-serif",
        "background": None,
        "padding": {"left": 1, "right": 4, "top": 2, "bottom": 2},
        "view": {"stroke": None},
        "axis": axis,
        "legend": {"labelColor": INK, "titleColor": INK, "labelFontSize": 11},
        "text": {"fontSize": 12},
    }
    values: dict[str, Any] = chart.to_dict()
    values["config"] = looks
    values["autosize"] = {"type": "fit-x", "contains": "padding"}
    if caption:
        values["description"] = caption
    return values


def _across(field: str, low: float, high: float, title: str | None, *, percent: bool) -> Any:
    import altair as alt

    marks = [0, 0.25, 0.5, 0.75, 1] if low > -0.1 and high < 1.2 else alt.Undefined
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=[low, high], nice=False),
        axis=alt.Axis(values=marks, tickCount=5, **ticks(percent, ".2~f")),
    )


def ticks(percent: bool, other: str = ",~f") -> dict[str, Any]:
    """How the numbers of an axis are written: `25 %`, or in another format."""
    return {"format": "~%", "labelExpr": "replace(datum.label, '%', ' %')"} if percent else {"format": other}


def _down(field: str, height: int) -> Any:
    """Pixels from the top: rows hold a label and marks, which no scale of names would place."""
    import altair as alt

    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, height], reverse=True, nice=False), axis=None)


def _labels(data: dict[str, Any], height: int, left: str, right: str) -> list[Any]:
    """What is above a row: its name on the left, a number on the right."""
    import altair as alt

    base = alt.Chart(data)
    y = _down("row", height)
    return [
        base.mark_text(align="left", baseline="middle", color=INK).encode(x=alt.value(0), y=y, text=f"{left}:N"),
        base.mark_text(align="right", baseline="middle", color=INK, opacity=0.75).encode(
            x=alt.value("width"), y=y, text=f"{right}:N"
        ),
    ]
