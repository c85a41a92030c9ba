"""Policies: what a release must meet before it is published, and whether it does."""

from queryveil.assess.policy.criteria import ATTACKS, judge
from queryveil.assess.policy.evidence import Evidence, Number, gather, issued_by_few, numbers, promised_k, refuted
from queryveil.assess.policy.judgement import HIGH, Criterion, Judgement
from queryveil.assess.policy.rules import DEFAULT, Policy, load_policy, shipped
from queryveil.assess.policy.run import judge_release

__all__ = [
    "ATTACKS",
    "DEFAULT",
    "HIGH",
    "Criterion",
    "Evidence",
    "Judgement",
    "Number",
    "Policy",
    "gather",
    "issued_by_few",
    "judge",
    "judge_release",
    "load_policy",
    "numbers",
    "promised_k",
    "refuted",
    "shipped",
]
