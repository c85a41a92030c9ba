"""A plan by trying everything: each release is made, checked, attacked and measured."""

from queryveil.assess.comparison.recommendations import HISTORIES
from queryveil.assess.comparison.results import TAIL
from queryveil.assess.measures import MEASURES, Assessment
from queryveil.assess.planning import Aim, method_of, space
from queryveil.assess.policy import Judgement, Policy, judge_release
from queryveil.errors import QueryveilError
from queryveil.knowledge import open_taxonomy
from queryveil.log import LocalLog
from queryveil.log.sharing import sharing
from queryveil.release import Release, as_of


def exhaustive(log: LocalLog, keep: Aim, policy: Policy) -> tuple[str, float] | None:
    """The name of the best release that meets a policy, and what it keeps; None if there is none."""
    configurations = [
        one
        for family in space(keep, policy, log, taxonomy="wordnet", web_directory=None).families
        for one in family.configurations
    ]
    scores: dict[str, list[float | None]] = {}
    risks: dict[str, float] = {}
    with sharing(log):
        for place, one in enumerate(configurations):
            try:
                release = method_of(one).anonymize(log, seed=0)
            except QueryveilError:
                continue
            if release.manifest.counts.rows == 0:
                continue
            scores[one.name] = [float(-place - 1)] if keep == "statistics" else _scores(release, log, keep)
            judged = judge_release(policy, release, log)
            if judged.meets:
                risks[one.name] = _risk(judged)
    for rank in zip(*scores.values(), strict=True):
        kept = {name: score for name, score in zip(scores, rank, strict=True) if score}
        if kept:
            fit = [name for name in kept if name in risks]
            best = max(fit, key=lambda name: (kept[name], -risks[name]), default=None)
            return None if best is None else (best, kept[best])
    return None


def _scores(release: Release, log: LocalLog, keep: Aim) -> list[float | None]:
    on = Assessment(as_of(release, log), log, open_taxonomy("wordnet"))
    if keep == "long-tail":
        users, kept = log.users_per_query, {value.detail: value.value for value in _values("queries_kept_by_users", on)}
        of = {TAIL[0]: int((users == 1).sum()), TAIL[1]: int(((users > 1) & (users < 5)).sum())}
        return [sum((kept.get(band) or 0.0) * of[band] for band in TAIL) / max(sum(of.values()), 1)]
    found = []
    for measure, detail in HISTORIES:
        values = [value for value in _values(measure, on) if not detail or value.detail == detail]
        found.append(values[0].value if values and values[0].separates else None)
    return found


def _values(measure: str, on: Assessment) -> list:
    try:
        return list(MEASURES[measure].of(on))
    except QueryveilError:
        return []


def _risk(judged: Judgement) -> float:
    return next(line.found for line in judged.criteria if line.id == "linkage") or 0.0
