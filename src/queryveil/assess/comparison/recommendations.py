"""Which release serves an aim best, among those that meet the policy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from queryveil.assess.comparison.results import Comparison, Configuration
from queryveil.assess.evaluation import label_of
from queryveil.assess.policy import Criterion
from queryveil.text.show import percent

HISTORIES = (("profile_retention", ""), ("cluster_retention", ""), ("suggestion", "hit@10"), ("events_kept", ""))
"""What releases of linked events are ranked by: the first of these that separates them."""

_Able = Sequence[tuple[tuple[float, float], Configuration]]
"""Releases that could serve an aim, each with what it is ranked by."""


@dataclass(frozen=True)
class Recommendation:
    """The release that serves an aim best, by a stated rule.

    Attributes:
        aim: The aim.
        rule: How the release was chosen.
        config: The release; None if none meets the policy.
        reason: The numbers behind it; if none will do, why, and the nearest miss.
    """

    aim: str
    rule: str
    config: str | None
    reason: str


def recommend(found: Comparison) -> tuple[Recommendation, ...]:
    """For each of three aims the release that serves it best; only what meets the policy is recommended."""
    return _long_tail(found), _histories(found), _statistics(found)


def _long_tail(found: Comparison) -> Recommendation:
    of = "of the distinct queries of fewer than 5 users"
    able = [
        ((kept, -(found.risk(config.name) or 0.0)), config)
        for config in found.configs
        if (kept := found.kept(config.name)["tail"])
    ]
    return _best(
        found,
        "Keep the long tail",
        f"Of the releases that meet the policy, the one that keeps the most {of}.",
        able,
        lambda score, config: f"It keeps {percent(score)} {of}.",
    )


def _histories(found: Comparison) -> Recommendation:
    linked = [config for config in found.configs if config.linked]
    able: _Able = []
    what = ""
    for measure, setting in HISTORIES:
        what = label_of(measure, setting) + (" kept" if measure == "events_kept" else "")
        able = [
            ((kept, -(found.risk(config.name) or 0.0)), config)
            for config in linked
            if (kept := found.ranked(config.name, measure, setting))
        ]
        if able:
            break
    return _best(
        found,
        "Keep sessions and histories",
        f"Of the releases of linked events that meet the policy, the one with the most {what}.",
        able,
        lambda score, config: f"Its {what}: {percent(score)}.",
    )


def _statistics(found: Comparison) -> Recommendation:
    aim = "Publish statistics"
    rule = (
        "Of the differentially private releases that meet the policy, the one of the smallest epsilon, and of equals"
        " the one with the most distinct queries. Without such a guarantee, statistics that are published day after"
        " day give away who was added in between."
    )
    tried = [config for config in found.configs if "epsilon" in config.parameters]
    made = [config for config in tried if config.status == "done"]
    if not tried:
        return Recommendation(aim, rule, None, "No differentially private method was tried.")
    if not made:
        return Recommendation(aim, rule, None, _none_private(tried))
    able = [
        (
            (
                -config.parameters["epsilon"],
                found.value(config.name, "queries_kept") or 0.0,
            ),
            config,
        )
        for config in made
    ]
    return _best(found, aim, rule, able, lambda score, config: _guarantee(-score, config.parameters["delta"]))


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


def _none_private(tried: Sequence[Configuration]) -> str:
    """Why there is no differentially private release."""
    empty = sorted({float(config.parameters["epsilon"]) for config in tried if config.status == "empty"})
    told = []
    if empty:
        values = " and ".join(f"{epsilon:g}" for epsilon in empty)
        told.append(f"No differentially private release is possible on this log: at epsilon {values} nothing passes.")
    told += dict.fromkeys(config.why for config in tried if config.status == "failed")
    return " ".join(told)


def _best(
    found: Comparison, aim: str, rule: str, able: _Able, told: Callable[[float, Configuration], str]
) -> Recommendation:
    """The first in rank among the releases that meet the policy."""
    if not able:
        return Recommendation(aim, rule, None, "No release keeps anything of it.")
    fit = [one for one in able if found.meets(one[1].name)]
    if not fit:
        return Recommendation(
            aim, rule, None, f"No release that keeps anything of it meets the policy. {_nearest(found, able)}"
        )
    (score, _), config = max(fit, key=lambda one: one[0])
    return Recommendation(aim, rule, config.name, f"{told(score, config)} {_risks(found, config)}".strip())


def _risks(found: Comparison, config: Configuration) -> str:
    """What an attacker learns from a release, and what only a promise about similar queries protects."""
    lines = {one.id: one for one in _criteria(found, config)}
    covered = lines["exposed_queries"].why
    return f"{lines['linkage'].sentence.capitalize()}." + (f" {covered}" if covered else "")


def _nearest(found: Comparison, able: _Able) -> str:
    """The release that misses the fewest lines of the policy, of equals by the least, and which it misses."""
    missed = {config.name: [one for one in _criteria(found, config) if one.met is not True] for _, config in able}

    def distance(one: tuple[tuple[float, float], Configuration]) -> tuple[int, float, float]:
        lines = missed[one[1].name]
        return len(lines), max(map(_excess, lines), default=0.0), -one[0][0]

    _, config = min(able, key=distance)
    return f"The nearest is {config.name}: {'; '.join(one.sentence for one in missed[config.name])}."


def _excess(one: Criterion) -> float:
    """How many times too much, or too little, was found; without end if nothing was, or nothing is allowed."""
    if one.found is None:
        return math.inf
    large, small = (one.limit, one.found) if one.least else (one.found, one.limit)
    return large / small if small else math.inf


def _criteria(found: Comparison, config: Configuration) -> tuple[Criterion, ...]:
    judged = found.judgement(config.name)
    return () if judged is None else judged.criteria
