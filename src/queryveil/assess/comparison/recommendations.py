"""Which release serves an aim best, among those that meet the policy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from queryveil.assess.attacks.finding import shown
from queryveil.assess.comparison.results import Cell, Comparison
from queryveil.assess.evaluation import CLUSTERS, PROFILES
from queryveil.assess.policy import Criterion

HISTORIES = (("interests", PROFILES), ("interests", CLUSTERS), ("task", "suggestion, hit@10"), ("retention", "events"))
"""What releases of linked events are ranked by: the first of these that separates them."""

_Able = Sequence[tuple[tuple[float, float], Cell]]
"""Releases that could serve an aim, each with what it is ranked by."""


@dataclass(frozen=True)
class Recommendation:
    """The release that serves an aim best, by a stated rule.

    Attributes:
        aim: The aim.
        rule: How the release was chosen.
        cell: The release; None if none meets the policy.
        reason: The numbers behind it; if none will do, why, and the nearest miss.
    """

    aim: str
    rule: str
    cell: str | None
    reason: str


def recommend(found: Comparison) -> tuple[Recommendation, ...]:
    """For each of three aims the release that serves it best; only what meets the policy is recommended."""
    return _long_tail(found), _histories(found), _statistics(found)


def _long_tail(found: Comparison) -> Recommendation:
    of = "of the distinct queries of fewer than 5 users"
    able = [
        ((kept, -(found.risk(cell.name) or 0.0)), cell)
        for cell in found.cells
        if (kept := found.kept(cell.name)["tail"])
    ]
    return _best(
        found,
        "Keep the long tail",
        f"Of the releases that meet the policy, the one that keeps the most {of}.",
        able,
        lambda score, cell: f"It keeps {shown(score, 'share')} {of}.",
    )


def _histories(found: Comparison) -> Recommendation:
    linked = [cell for cell in found.cells if cell.linked]
    able: _Able = []
    what = PROFILES
    for group, measure in HISTORIES:
        what = f"{measure} kept" if group == "retention" else measure
        able = [
            ((kept, -(found.risk(cell.name) or 0.0)), cell)
            for cell in linked
            if (kept := found.ranked(cell.name, group, measure))
        ]
        if able:
            break
    return _best(
        found,
        "Keep sessions and histories",
        f"Of the releases of linked events that meet the policy, the one with the most {what}.",
        able,
        lambda score, cell: f"Its {what}: {shown(score, 'share')}.",
    )


def _statistics(found: Comparison) -> Recommendation:
    aim = "Publish statistics"
    rule = (
        "Of the differentially private releases that meet the policy, the one of the smallest epsilon, and of equals"
        " the one with the most distinct queries. Without such a guarantee, statistics that are published day after"
        " day give away who was added in between."
    )
    tried = [cell for cell in found.cells if "epsilon" in cell.parameters]
    made = [cell for cell in tried if cell.status == "done"]
    if not tried:
        return Recommendation(aim, rule, None, "No differentially private method was tried.")
    if not made:
        return Recommendation(aim, rule, None, _none_private(tried))
    able = [
        ((-cell.parameters["epsilon"], found.value(cell.name, "retention", "distinct queries") or 0.0), cell)
        for cell in made
    ]
    return _best(found, aim, rule, able, lambda score, cell: _guarantee(-score, cell.parameters["delta"]))


def _guarantee(epsilon: float, delta: float) -> str:
    told = (
        "Whatever an attacker knows, one user's whole log changes the chance of any release by at most a factor of"
        f" e^{epsilon:g}, but for a chance of {delta:g}."
    )
    if epsilon > 1:
        told += (
            f" An epsilon of {epsilon:g} is large: the guarantee is weak, and a larger log would allow a smaller one."
        )
    return told


def _none_private(tried: Sequence[Cell]) -> str:
    """Why there is no differentially private release."""
    empty = sorted({float(cell.parameters["epsilon"]) for cell in tried if cell.status == "empty"})
    told = []
    if empty:
        values = " and ".join(f"{epsilon:g}" for epsilon in empty)
        told.append(f"No differentially private release is possible on this log: at epsilon {values} nothing passes.")
    told += dict.fromkeys(cell.why for cell in tried if cell.status == "failed")
    return " ".join(told)


def _best(found: Comparison, aim: str, rule: str, able: _Able, told: Callable[[float, Cell], str]) -> Recommendation:
    """The first in rank among the releases that meet the policy."""
    if not able:
        return Recommendation(aim, rule, None, "No release keeps anything of it.")
    fit = [one for one in able if found.meets(one[1].name)]
    if not fit:
        return Recommendation(
            aim, rule, None, f"No release that keeps anything of it meets the policy. {_nearest(found, able)}"
        )
    (score, _), cell = max(fit, key=lambda one: one[0])
    return Recommendation(aim, rule, cell.name, f"{told(score, cell)} {_risks(found, cell)}".strip())


def _risks(found: Comparison, cell: Cell) -> str:
    """What an attacker learns from a release, and what only a promise about similar queries protects."""
    lines = {one.id: one for one in _criteria(found, cell)}
    covered = lines["exposed_queries"].why
    return f"{lines['linkage'].sentence.capitalize()}." + (f" {covered}" if covered else "")


def _nearest(found: Comparison, able: _Able) -> str:
    """The release that misses the fewest lines of the policy, of equals by the least, and which it misses."""
    missed = {cell.name: [one for one in _criteria(found, cell) if one.met is not True] for _, cell in able}

    def distance(one: tuple[tuple[float, float], Cell]) -> tuple[int, float, float]:
        lines = missed[one[1].name]
        return len(lines), max(map(_excess, lines), default=0.0), -one[0][0]

    _, cell = min(able, key=distance)
    return f"The nearest is {cell.name}: {'; '.join(one.sentence for one in missed[cell.name])}."


def _excess(one: Criterion) -> float:
    """How many times too much, or too little, was found; without end if nothing was, or nothing is allowed."""
    if one.found is None:
        return math.inf
    large, small = (one.limit, one.found) if one.least else (one.found, one.limit)
    return large / small if small else math.inf


def _criteria(found: Comparison, cell: Cell) -> tuple[Criterion, ...]:
    judged = found.judgement(cell.name)
    return () if judged is None else judged.criteria
