"""The report of a comparison: which method serves which aim on one log, and what it costs."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queryveil import __version__
from queryveil.assess.attacks.registry import ATTACKS
from queryveil.assess.attacks.run import MEANING, QUESTIONS
from queryveil.assess.comparison import REPORT, Comparison, recommend
from queryveil.assess.comparison import compare as _compare
from queryveil.assess.measures import GROUPS, MEASURES
from queryveil.assess.policy import Criterion, Policy
from queryveil.files.folders import write_whole
from queryveil.log import QueryLog
from queryveil.methods import METHODS
from queryveil.release.bands import Band
from queryveil.reports import words
from queryveil.reports.charts import direction, number, of_the_log, short
from queryveil.reports.frontiers import frontier_figure
from queryveil.reports.page import Column, Field, Figure, Heat, check_packages, render
from queryveil.text.show import percent

if TYPE_CHECKING:
    from queryveil.assess.comparison import Configuration, Row

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
    drawn = frontier_figure(comparison), _bands(comparison), _utility(comparison), _attacks(comparison)
    methods = len({config.family for config in comparison.configurations})
    figures = [figure for figure in drawn if figure is not None]
    return render(
        "comparison.html",
        figures,
        title=f"Comparison of {methods} anonymization {'method' if methods == 1 else 'methods'} on one log",
        done=done,
        other=_unreleased(comparison),
        refuted=[config for config in done if not config.holds],
        tiles=_tiles(comparison, len(done)),
        recommendations=recommend(comparison),
        meeting=comparison.meeting,
        unranked=comparison.unranked,
        limits=_limits(comparison),
        rows=_table(comparison, done),
        attacks=_attacks_in_words(comparison),
        methods=_methods(comparison),
        glossary=sorted((words.GLOSSARY | words.COMPARED).items(), key=lambda item: item[0].lower()),
        command=command(comparison),
        fingerprint=comparison.fingerprint,
        seed=comparison.seed,
        version=__version__,
    )


def _methods(comparison: Comparison) -> list[tuple[str, str]]:
    """What each method does, and the steps of each pipeline."""
    found = {}
    for config in comparison.configurations:
        steps = " then ".join(str(step["method"]) for step in config.parameters.get("steps", ()))
        known = METHODS.get(config.method)
        found[config.family] = f"a pipeline: {steps}" if steps else known.summary if known is not None else ""
    return list(found.items())


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
    columns = tuple(
        Column(
            band.label.removesuffix("s").removesuffix(" user"),
            f"{band.queries:,} queries of {band.label}",
            "queries that so many users issued",
        )
        for band in bands
    )
    heat = Heat(
        "release",
        columns,
        tuple(
            (
                name,
                tuple(
                    Field(_whole(value), value, f"{name}; {column.note}: {number(value, True)} kept")
                    for column, value in zip(columns, known, strict=True)
                ),
            )
            for name, known in lines.items()
        ),
    )
    return Figure(
        "bands",
        caption,
        (),
        (("scale", "from 0 to 100 % kept"),),
        ("release", *(band.label for band in bands)),
        tuple((name, *(number(value, True) for value in known)) for name, known in lines.items()),
        heat=heat,
    )


def _attacks(comparison: Comparison) -> Figure | None:
    """What every attack finds in every release: a line a release, a column an attack, by the question that it asks."""
    tried = [row for row in comparison.rows if row.kind == "risk"]
    found = [row for row in tried if row.value is not None]
    shares = [row for row in found if row.unit != "accounts"]
    if not shares:
        return None
    places = {
        (row.measure, row.setting): Column(_short(row), f"{_title(row)}: {ATTACKS[row.measure].summary}", row.group)
        for one in sorted(ATTACKS.values(), key=lambda one: QUESTIONS.index(one.question))
        for row in shares
        if row.measure == one.id
    }
    fields = {
        (row.configuration, row.measure, row.setting): Field(
            _whole(row.value or 0.0), row.value, _about(row), bool(row.succeeds)
        )
        for row in shares
    }
    why = {(row.configuration, row.measure): row.why for row in tried if row.value is None}
    heat = Heat("release", tuple(places.values()), _lines(comparison, places, fields, why), "alarm")
    return Figure(
        "attacks",
        _successes(found),
        (),
        (
            ("scale alarm", "from 0 to 100 % found"),
            ("strong", "bold, with a frame: above the baseline and the control"),
            ("none", "hatched: not applicable"),
        ),
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
        heat=heat,
    )


def _short(row: "Row") -> str:
    attack = ATTACKS[row.measure]
    return ", ".join(part for part in (attack.short or attack.label, row.setting) if part)


def _about(row: "Row") -> str:
    """All that an attack found, for a field."""
    succeeds = "succeeds" if row.succeeds else "does not succeed"
    return (
        f"{row.configuration}; {_title(row)}: {_estimated(row)}, baseline {_in_unit(row.baseline, row.unit)},"
        f" control {_in_unit(row.control, row.unit)}; {succeeds}"
    )


def _attacks_in_words(comparison: Comparison) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """By question: what it asks, and the attacks that were tried, by their short names with what the attacker does."""
    tried = {row.measure for row in comparison.rows if row.kind == "risk" and row.value is not None}
    return [
        (
            question,
            MEANING[question],
            [(one.short or one.label, one.summary + _elsewhere(comparison, one.id)) for one in some],
        )
        for question in QUESTIONS
        if (some := [one for one in ATTACKS.values() if one.id in tried and one.question == question])
    ]


def _elsewhere(comparison: Comparison, attack: str) -> str:
    """Where an attack is that finds no share."""
    units = {row.unit for row in comparison.rows if row.measure == attack and row.value is not None}
    return "; a number of accounts, which is in the table" if units == {"accounts"} else ""


def _utility(comparison: Comparison) -> Figure | None:
    """What every release is still good for, beside the log: a line a release, a column a measure."""
    found = [
        row
        for row in comparison.rows
        if row.kind == "utility" and row.value is not None and row.measure != "queries_kept_by_users"
    ]
    if not found:
        return None
    order = {group: i for i, group in enumerate(GROUPS)}
    places = {
        (row.measure, row.setting): Column(
            f"{_ARROWS[MEASURES[row.measure].better]} {short(row.label)}",
            f"{row.label}; {direction(row.measure, row.best)}",
            GROUPS[MEASURES[row.measure].group],
        )
        for row in sorted(found, key=lambda row: order[MEASURES[row.measure].group])
    }
    fields = {(row.configuration, row.measure, row.setting): _useful(row) for row in found}
    why = {(row.configuration, row.measure): row.why for row in comparison.rows if row.value is None}
    heat = Heat("release", tuple(places.values()), _lines(comparison, places, fields, why), "main")
    return Figure(
        "utility",
        "The arrow says which direction is good. ↑ is the share of the log's own value that the release reaches, in per"
        " cent: 100 is as good as the log. ↓ is a distance from the log, or an error, in hundredths: 0 is as good as"
        " the log. A stronger colour is better.",
        (),
        (("scale", "from nothing left to as good as the log"), ("none", "hatched: not applicable")),
        ("release", "measure", "good direction", "release has", "log has", "share of the log's"),
        tuple(
            (
                row.configuration,
                row.label,
                MEASURES[row.measure].better,
                number(row.value, row.unit == "share"),
                number(row.best, row.unit == "share"),
                number(of_the_log(row.measure, row.value, row.best), True),
            )
            for row in found
        ),
        texts=2,
        heat=heat,
    )


_ARROWS = {"higher": "↑", "lower": "↓"}


def _useful(row: "Row") -> Field:
    """A field of usefulness: a stronger colour is better, whatever the direction of the measure."""
    value = row.value or 0.0
    reached = of_the_log(row.measure, value, row.best)
    has = f"{row.configuration}; {row.label}: {number(value, row.unit == 'share')}"
    if reached is None:
        return Field(_whole(value), 1 - value if MEASURES[row.measure].better == "lower" else value, has)
    log = number(row.best, row.unit == "share")
    return Field(_whole(reached), reached, f"{has}, which is {number(reached, True)} of the log's {log}")


def _lines(
    comparison: Comparison,
    places: Mapping[tuple[str, str], Column],
    fields: Mapping[tuple[str, str, str], Field],
    why: Mapping[tuple[str, str], str],
) -> tuple[tuple[str, tuple[Field, ...]], ...]:
    """The lines of a heat map: those of the releases that have a field, with the reason where a field is missing."""
    have = {name for name, _, _ in fields}

    def field(name: str, place: tuple[str, str], column: Column) -> Field:
        reason = why.get((name, place[0])) or "not applicable"
        return fields.get((name, *place)) or Field(note=f"{name}; {column.name}: {reason}")

    return tuple(
        (config.name, tuple(field(config.name, place, column) for place, column in places.items()))
        for config in comparison.configurations
        if config.name in have
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
