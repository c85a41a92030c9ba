"""The report of a comparison: which method serves which aim on one log, and what it costs."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queryveil import __version__
from queryveil.assess.attacks.run import QUESTIONS
from queryveil.assess.comparison import REPORT, Comparison, recommend
from queryveil.assess.comparison import compare as _compare
from queryveil.assess.policy import Criterion, Policy
from queryveil.files.folders import write_whole
from queryveil.log import QueryLog
from queryveil.release.bands import Band
from queryveil.reports import words
from queryveil.reports.charts import INK, finished, number, tooltips
from queryveil.reports.frontiers import frontier_figure
from queryveil.reports.page import Drawing, Figure, check_packages, render
from queryveil.text.show import percent

if TYPE_CHECKING:
    from queryveil.assess.comparison import Configuration, Row

_LINE = 22
"""Pixels: the height of a line of a heat map."""
_TESTS = 2_000
"""On how many events a task is tried unless asked otherwise."""
_KEPT = ("distinct queries", "tail", "profiles", "terms")


@wraps(_compare)
def compare(log: QueryLog, folder: str | Path, **given: Any) -> Comparison:
    """Compare all methods on one log, and write `report.html` beside the numbers."""
    check_packages()
    found = _compare(log, folder, **given)
    write_whole(Path(folder) / REPORT, comparison_page(found).encode(), overwrite=True, private=True)
    return found


def comparison_page(comparison: Comparison) -> str:
    """The report of a comparison as HTML: one file that needs no network.

    Args:
        comparison: What `queryveil.compare` found.
    """
    check_packages()
    done = [config for config in comparison.configurations if config.status == "done"]
    drawn = frontier_figure(comparison), _bands(comparison), _attacks(comparison)
    figures = [figure for figure in drawn if figure is not None]
    return render(
        "comparison.html",
        figures,
        title="Methods compared on one log",
        methods=len({config.family for config in comparison.configurations}),
        done=done,
        other=_unreleased(comparison),
        refuted=[config for config in done if not config.holds],
        tiles=_tiles(comparison, len(done)),
        recommendations=recommend(comparison),
        meeting=comparison.meeting,
        unranked=comparison.unranked,
        limits=_limits(comparison),
        rows=_table(comparison, done),
        glossary=sorted((words.GLOSSARY | words.COMPARED).items(), key=lambda item: item[0].lower()),
        command=command(comparison),
        fingerprint=comparison.fingerprint,
        seed=comparison.seed,
        version=__version__,
    )


def _unreleased(comparison: Comparison) -> list[tuple[str, str]]:
    """Configurations without a release by the reason why."""
    found: dict[str, list[str]] = {}
    for config in comparison.configurations:
        if config.status != "done":
            found.setdefault(config.why, []).append(config.name)
    return [("; ".join(names), why) for why, names in found.items()]


def _tiles(comparison: Comparison, done: int) -> list[tuple[str, str, str, str]]:
    counts = comparison.counts
    return [
        ("Users", f"{counts.users or 0:,}", "in the log", ""),
        ("Events", f"{counts.events:,}", "searches", ""),
        ("Distinct queries", f"{counts.queries:,}", _tail(comparison.bands), ""),
        ("Releases", f"{done} of {len(comparison.configurations)}", "settings released something", ""),
    ]


def _tail(bands: Sequence[Band]) -> str:
    alone = sum(band.queries for band in bands if band.most == 1)
    every = sum(band.queries for band in bands)
    return f"{percent(alone / every)} of one user alone" if every else ""


def _table(comparison: Comparison, done: "Sequence[Configuration]") -> list[tuple[str, ...]]:
    """All releases with their main numbers."""
    tried: dict[str, list[bool]] = {}
    for row in comparison.rows:
        if row.succeeds is not None:
            tried.setdefault(row.configuration, []).append(row.succeeds)
    found = []
    frontiers = comparison.frontiers
    for config in done:
        kept = comparison.kept(config.name)
        won = tried.get(config.name, [])
        on = sum(config.name in frontier.configurations for frontier in frontiers)
        found.append(
            (
                config.name,
                "hold" if config.holds else "REFUTED",
                _meets(comparison, config.name),
                number(comparison.risk(config.name), True),
                *(number(kept.get(name), True) for name in _KEPT),
                f"{sum(won)} of {len(won)}",
                str(on) if on else "–",
            )
        )
    return found


def _meets(comparison: Comparison, config: str) -> str:
    """Whether a release meets the policy, and if not, by how many criteria."""
    judged = comparison.judgement(config)
    if judged is None or judged.meets:
        return "–" if judged is None else "meets"
    missed, left = len(judged.missed), len(judged.open)
    return f"misses {missed}" if missed else f"open: {left}"


def _limits(comparison: Comparison) -> list[tuple[str, ...]]:
    """The policy, line by line, with how many releases meet it, miss it, or leave it open."""
    judged = [found for config in comparison.configurations if (found := comparison.judgement(config.name)) is not None]
    rows: dict[str, list[Criterion]] = {}
    for one in (line for found in judged for line in found.criteria):
        rows.setdefault(one.id, []).append(one)
    return [
        (
            lines[0].label if len({one.label for one in lines}) == 1 else _CHANGING.get(name, name),
            lines[0].limit_text if len({one.limit for one in lines}) == 1 else "at least k",
            *(str(sum(one.met is state for one in lines)) for state in (True, False, None)),
        )
        for name, lines in rows.items()
    ]


_CHANGING = {"exposed_queries": "queries of fewer than k people that no promise covers"}
"""The labels of criteria that go with the k of a release."""


def _bands(comparison: Comparison) -> Figure | None:
    """What is kept by how many users issued a query: a line a release, a column a band."""
    bands = [band for band in comparison.bands if band.queries]
    lines: dict[str, list[float]] = {}
    same: set[tuple[object, ...]] = set()
    without = 0
    for config in comparison.configurations:
        kept = [comparison.value(config.name, "queries_kept_by_users", band.label) for band in bands]
        known = [value for value in kept if value is not None]
        if config.status != "done":
            continue
        if len(known) < len(bands) or not any(known):
            without += 1
            continue
        # Releases that differ only in how events are linked have the same queries, so one line is enough.
        setting = {name: value for name, value in config.parameters.items() if name != "link"}
        release = (config.method, json.dumps(setting, sort_keys=True, default=str), *known)
        if release not in same:
            same.add(release)
            lines[config.name] = known
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
        {"line": name, "column": column, "value": value, "shown": number(value, True), "text": _whole(value)}
        for name, known in lines.items()
        for column, value in zip(columns, known, strict=True)
    ]
    tips = (("line", "release"), ("column", "users"), ("shown", "queries kept"))
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


def _attacks(comparison: Comparison) -> Figure | None:
    """What every attack finds in every release."""
    found = [row for row in comparison.rows if row.kind == "risk" and row.value is not None]
    shares = [row for row in found if row.unit != "accounts"]
    if not shares:
        return None
    columns = list(dict.fromkeys(_title(row) for question in QUESTIONS for row in shares if row.group == question))
    have = {row.configuration for row in shares}
    lines = [config.name for config in comparison.configurations if config.name in have]
    values = [
        {
            "line": row.configuration,
            "column": _title(row),
            "value": min(max(row.value or 0.0, 0.0), 1.0),
            "text": _whole(row.value or 0.0),
            "shown": _estimated(row),
            "question": row.group,
            "baseline": "–" if row.baseline is None else number(row.baseline, row.unit == "share"),
            "control": "–" if row.control is None else number(row.control, row.unit == "share"),
            "succeeds": "yes" if row.succeeds else "no",
        }
        for row in shares
    ]
    caption = f"{_successes(found)} Numbers are in per cent; bold ones are above the baseline and the control."
    tips = (
        ("line", "release"),
        ("column", "attack"),
        ("question", "question"),
        ("shown", "found (95 %)"),
        ("baseline", "baseline"),
        ("control", "control"),
        ("succeeds", "succeeds"),
    )
    return Figure(
        "attacks",
        caption,
        (Drawing("", _heat(values, lines, columns, "var(--alarm)", tips)),),
        (),
        ("release", "attack", "found (95 %)", "baseline", "control", "succeeds"),
        tuple(
            (
                row.configuration,
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
    """On which releases the smallest and the largest share of the attacks succeed."""
    tried: dict[str, list[bool]] = {}
    for row in found:
        tried.setdefault(row.configuration, []).append(bool(row.succeeds))
    won = {name: Fraction(sum(some), len(some)) for name, some in tried.items()}
    least, most = min(won.values()), max(won.values())
    low, high = number(float(least), True), number(float(most), True)
    if least == most:
        return f"On every release, {low} of the attacks tried succeed."
    return (
        f"Of the attacks tried, the smallest share succeeds on {_listed(name for name in won if won[name] == least)}"
        f" ({low}), the largest on {_listed(name for name in won if won[name] == most)} ({high})."
    )


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return every[0] if len(every) == 1 else f"{every[0]} and {len(every) - 1} more"


def _title(row: "Row") -> str:
    return ", ".join(part for part in (row.label, row.setting) if part)


def _in_unit(value: float | None, unit: str) -> str:
    if value is not None and unit == "accounts":
        return f"{value:,.0f} accounts"
    return number(value, unit == "share")


def _estimated(row: "Row") -> str:
    value = _in_unit(row.value, row.unit)
    if row.low is None or row.high is None or row.unit == "accounts":
        return value
    low, high = (_in_unit(bound, row.unit).removesuffix(" %") for bound in (row.low, row.high))
    return f"{value} ({low} to {high})"


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
    """Numbers in coloured fields; a stronger colour is a larger number."""
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
        tooltip=tooltips(*tips),
    )
    dark = alt.condition("datum.value > 0.75", alt.value("var(--page)"), alt.value(INK))
    plain = base.transform_filter("datum.succeeds !== 'yes'").mark_text(fontSize=10.5)
    bold = base.transform_filter("datum.succeeds === 'yes'").mark_text(fontSize=10.5, fontWeight="bold")
    numbers = [some.encode(text="text:N", color=dark, tooltip=alt.value(None)) for some in (plain, bold)]
    chart = alt.layer(fields, *numbers).properties(width="container", height=_LINE * len(lines))
    return finished(chart, "")


def command(comparison: Comparison) -> str:
    """The command that makes the same comparison again, with names in the place of files."""
    methods = list(dict.fromkeys(config.method for config in comparison.configurations))
    ks = sorted({config.k for config in comparison.configurations if config.k is not None})
    epsilons = sorted(
        {float(e) for config in comparison.configurations if (e := config.setting("epsilon")) is not None}
    )
    places = {
        config.method: config.setting("taxonomy")
        for config in comparison.configurations
        if config.setting("taxonomy") is not None
    }
    sites = places.pop("search", "wordnet")
    own = any(place != "wordnet" for place in places.values())
    parts = [
        "queryveil compare LOG",
        f"--methods {','.join(methods)}",
        *([f"-k {','.join(map(str, ks))}"] if ks else []),
        *([f"--epsilon {','.join(f'{epsilon:g}' for epsilon in epsilons)}"] if epsilons else []),
        *(["--taxonomy TAXONOMY"] if own else []),
        *(["--web-directory WEB_DIRECTORY"] if sites not in ("wordnet", *places.values()) else []),
        *([f"--tests {comparison.tests}"] if comparison.tests != _TESTS else []),
        f"--seed {comparison.seed}",
        *(["--policy POLICY"] if comparison.policy != Policy() else []),
        "-o comparison",
    ]
    return re.sub(r"\s+", " ", " ".join(parts))
