"""Which release serves an aim best, among those that meet the policy."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from queryveil.assess.comparison.results import Comparison, Configuration
from queryveil.assess.evaluation import label_of
from queryveil.assess.policy import Criterion
from queryveil.text.show import percent

HISTORIES = (("profile_retention", ""), ("cluster_retention", ""), ("suggestion", "hit@10"), ("events_kept", ""))
"""What releases of linked events are ranked by: the first of these that separates them."""

_Ranked = Mapping[str, tuple[float, float]]
"""Releases that could serve an aim by their names, each with what it is ranked by."""


@dataclass(frozen=True)
class Recommendation:
    """The release that serves an aim best, by a stated rule.

    Attributes:
        aim: The aim.
        rule: How the release was chosen.
        configuration: The release; None if none meets the policy.
        reason: The numbers behind it; if none will do, why, and the nearest miss.
    """

    aim: str
    rule: str
    configuration: str | None
    reason: str


def recommend(found: Comparison) -> tuple[Recommendation, ...]:
    """For each of three aims the release that serves it best; only what meets the policy is recommended."""
    return _long_tail(found), _histories(found), _statistics(found)


TAIL_OF = "of the distinct queries of fewer than 5 users"
"""What the long tail is."""


def _long_tail(found: Comparison) -> Recommendation:
    of = TAIL_OF
    return _best(
        found,
        "Keep the long tail",
        f"Of the releases that meet the policy, the one that keeps the most {of}.",
        _by_kept(found, {one.name: found.kept(one.name)["tail"] for one in found.configurations}),
        lambda score, name: f"It keeps {percent(score)} {of}.",
    )


def _histories(found: Comparison) -> Recommendation:
    linked = [one.name for one in found.configurations if one.linked]
    ranked: _Ranked = {}
    what = ""
    for measure, setting in HISTORIES:
        what = history_label(measure, setting)
        ranked = _by_kept(found, {name: found.ranked(name, measure, setting) for name in linked})
        if ranked:
            break
    return _best(
        found,
        "Keep sessions and histories",
        f"Of the releases of linked events that meet the policy, the one with the most {what}.",
        ranked,
        lambda score, name: f"Its {what}: {percent(score)}.",
    )


def history_label(measure: str, setting: str) -> str:
    """What one of `HISTORIES` is called."""
    return label_of(measure, setting) + (" kept" if measure == "events_kept" else "")


def _by_kept(found: Comparison, kept: Mapping[str, float | None]) -> _Ranked:
    """Releases that keep anything, by how much they keep, and of equals by the least risk."""
    return {name: (share, -(found.risk(name) or 0.0)) for name, share in kept.items() if share}


def _statistics(found: Comparison) -> Recommendation:
    aim = "Publish statistics"
    rule = (
        "Of the differentially private releases that meet the policy, the one of the smallest epsilon, and of equals"
        " the one with the most distinct queries. Without such a guarantee, statistics that are published day after"
        " day give away who was added in between."
    )
    tried = [one for one in found.configurations if one.setting("epsilon") is not None]
    parameters = {one.name: (one.setting("epsilon"), one.setting("delta")) for one in tried if one.status == "done"}
    if not tried:
        return Recommendation(aim, rule, None, "No differentially private method was tried.")
    if not parameters:
        return Recommendation(aim, rule, None, _none_private(tried))
    ranked = {name: (-epsilon, found.value(name, "queries_kept") or 0.0) for name, (epsilon, _) in parameters.items()}
    return _best(found, aim, rule, ranked, lambda score, name: _guarantee(-score, parameters[name][1]))


def _guarantee(epsilon: float, delta: float) -> str:
    weak = f" An epsilon of {epsilon:g} is large: the guarantee is weak, and a larger log would allow a smaller one."
    return (
        "Whatever an attacker knows, one user's whole log changes the chance of any release by at most a factor of"
        f" e^{epsilon:g}, but for a chance of {delta:g}." + (weak if epsilon > 1 else "")
    )


def _none_private(tried: Sequence[Configuration]) -> str:
    """Why there is no differentially private release."""
    empty = sorted({float(one.setting("epsilon")) for one in tried if one.status == "empty"})
    reasons = list(dict.fromkeys(one.why for one in tried if one.status == "failed"))
    if empty:
        at = " and ".join(f"{epsilon:g}" for epsilon in empty)
        reasons = [
            f"No differentially private release is possible on this log: at epsilon {at} nothing passes.",
            *reasons,
        ]
    return " ".join(reasons)


def _best(
    found: Comparison, aim: str, rule: str, ranked: _Ranked, reason: Callable[[float, str], str]
) -> Recommendation:
    """The first in rank among the releases that meet the policy."""
    if not ranked:
        return Recommendation(aim, rule, None, "No release keeps anything of it.")
    fit = [name for name in ranked if found.meets(name)]
    if not fit:
        why = f"No release that keeps anything of it meets the policy. {_nearest(found, ranked)}"
        return Recommendation(aim, rule, None, why)
    best = max(fit, key=lambda name: ranked[name])
    return Recommendation(aim, rule, best, f"{reason(ranked[best][0], best)} {_risks(found, best)}".strip())


def _risks(found: Comparison, name: str) -> str:
    """What an attacker learns from a release, and what only a promise about similar queries protects."""
    lines = {one.id: one for one in _criteria(found, name)}
    covered = lines["exposed_queries"].why
    return f"{lines['linkage'].sentence.capitalize()}." + (f" {covered}" if covered else "")


def _nearest(found: Comparison, ranked: _Ranked) -> str:
    """The release that misses the fewest lines of the policy, of equals by the least, and which it misses."""
    missed = {name: [one for one in _criteria(found, name) if one.met is not True] for name in ranked}
    nearest = min(ranked, key=lambda name: (*distance(missed[name]), -ranked[name][0]))
    return f"The nearest is {nearest}: {'; '.join(one.sentence for one in missed[nearest])}."


def distance(missed: Sequence[Criterion]) -> tuple[int, float]:
    """How far a release is from a policy, by the lines that it does not meet: how many, and by how much."""
    return len(missed), max(map(_excess, missed), default=0.0)


def _excess(one: Criterion) -> float:
    """How many times too much, or too little, was found; without end if nothing was, or nothing is allowed."""
    if one.found is None:
        return math.inf
    large, small = (one.limit, one.found) if one.least else (one.found, one.limit)
    return large / small if small else math.inf


def _criteria(found: Comparison, name: str) -> tuple[Criterion, ...]:
    judged = found.judgement(name)
    return () if judged is None else judged.criteria
