import json
from dataclasses import replace

import pytest

from queryveil.assess.policy import HIGH, Evidence, Number, Policy, judge

GOOD = Evidence(
    kind="events",
    shared=False,
    k=5,
    epsilon=None,
    few=0,
    covered=True,
    refuted=0,
    numbers=(
        Number("history_linkage", "random half", 0.02, 0.03),
        Number("history_linkage", "older half", 0.01, 0.02),
        Number("sybil", "", 5.0, 5.0),
        Number("personal_data", "", 0.0, 0.001),
    ),
)


NO_MAP = Number("history_linkage", "", None, why="it lacks something", needs_user_map=True)


def without(attack, *skipped, known=GOOD):
    left = tuple(one for one in known.numbers if one.attack != attack)
    return replace(known, numbers=(*left, *skipped))


def having(attack, value, high=None, known=GOOD, setting="random half"):
    return replace(known, numbers=(*without(attack, known=known).numbers, Number(attack, setting, value, high)))


def criterion(known, id, policy=None):
    return next(one for one in judge(policy or Policy(), known).criteria if one.id == id)


def test_all_criteria_met():
    judged = judge(Policy(), GOOD)
    assert judged.meets is True
    assert judged.grade == "low"
    assert (judged.missed, judged.open) == ((), ())
    json.dumps(judged.as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("known", "id"),
    [
        (having("history_linkage", 0.86, 0.88), "linkage"),
        (having("sybil", 4.0), "planted_accounts"),
        (having("personal_data", 0.00001), "residual_pii"),
        (replace(GOOD, few=1, covered=False), "exposed_queries"),
        (replace(GOOD, k=4), "k"),
        (replace(GOOD, k=None), "k"),
        (replace(GOOD, epsilon=11.0), "epsilon"),
        (replace(GOOD, refuted=1), "promises"),
        (having("attribution", 0.7, 0.8, replace(GOOD, shared=True), "half of all members"), "attribution"),
        (having("token_hashing", 0.4, 0.5, replace(GOOD, kind="tokens")), "tokens"),
    ],
)
def test_one_criterion_that_is_not_met_is_enough(known, id):
    judged = judge(Policy(), known)
    assert judged.meets is False
    assert [one.id for one in judged.missed] == [id]
    assert judged.missed[0].why


@pytest.mark.parametrize(
    ("known", "id"),
    [
        (without("history_linkage"), "linkage"),
        (without("sybil"), "planted_accounts"),
        (without("personal_data"), "residual_pii"),
        (replace(GOOD, refuted=None), "promises"),
        (replace(GOOD, shared=True), "attribution"),
        (replace(GOOD, kind="tokens"), "tokens"),
    ],
)
def test_what_was_not_measured_is_not_met(known, id):
    judged = judge(Policy(), known)
    assert judged.meets is None
    assert [one.id for one in judged.open] == [id]
    assert judged.open[0].found_text == "not measured"
    assert "un 'queryveil" in judged.open[0].why


def test_it_says_what_to_run():
    assert "user_map=FILE" in criterion(without("history_linkage", NO_MAP), "linkage").why
    failed = Number("sybil", "", None, why="the method cannot be run again: the user map is full.")
    found = criterion(without("sybil", failed), "planted_accounts")
    assert found.why == "The attack was not tried: the method cannot be run again: the user map is full."


def test_a_criterion_that_is_missed_outweighs_one_that_is_open():
    assert judge(Policy(), replace(without("history_linkage"), k=2)).meets is False


def test_an_estimate_is_within_a_limit_if_its_interval_is():
    known = having("history_linkage", 0.08, 0.1)
    found = criterion(known, "linkage")
    assert (found.met, judge(Policy(), known).meets) == (None, None)
    assert "its interval is not" in found.why
    assert criterion(known, "linkage", Policy(max_linkage=0.1)).met is True
    assert criterion(known, "linkage", Policy(max_linkage=0.07)).met is False


def test_the_worst_setting_counts():
    known = having("history_linkage", 0.05, 0.06, setting="random half")
    known = replace(known, numbers=(*known.numbers, Number("history_linkage", "older half", 0.2, 0.25)))
    found = criterion(known, "linkage")
    assert (found.found, found.met) == (0.2, False)
    assert "older half" in found.why
    known = replace(known, numbers=(*known.numbers, Number("history_linkage", "", None, why="the log has no times")))
    assert criterion(known, "linkage") == found


def test_a_weaker_attacker_alone_does_not_show_that_a_limit_is_kept():
    known = having("history_linkage", 0.02, 0.03, setting="older half")
    known = replace(known, numbers=(*known.numbers, NO_MAP))
    found = criterion(known, "linkage")
    assert (found.met, found.found) == (None, 0.02)
    assert "user_map=FILE" in found.why
    known = having("history_linkage", 0.5, 0.6, known=known, setting="older half")
    assert criterion(known, "linkage").met is False
    assert criterion(having("history_linkage", 0.01, 0.02, setting="items, random half"), "linkage").met is True


@pytest.mark.parametrize(
    ("value", "high", "grade"),
    [(0.05, 0.09, "low"), (0.05, 0.091, "elevated"), (0.2, HIGH, "elevated"), (0.3, 0.34, "high"), (0.9, 0.95, "high")],
)
def test_the_headline_risk_is_graded(value, high, grade):
    judged = judge(Policy(), having("history_linkage", value, high))
    assert (judged.headline.id, judged.grade) == ("linkage", grade)


def test_the_headline_is_the_largest_risk():
    known = having("attribution", 0.7, 0.8, replace(GOOD, shared=True), "half of all members")
    assert judge(Policy(), known).headline.id == "attribution"
    bare = replace(GOOD, numbers=())
    assert (judge(Policy(), bare).headline, judge(Policy(), bare).grade) == (None, None)


def test_accounts_are_counted_against_the_k_of_the_release_unless_the_policy_has_a_number():
    known = having("sybil", 7.0, known=replace(GOOD, k=10))
    assert criterion(known, "planted_accounts").limit == 10
    assert criterion(known, "planted_accounts").met is False
    assert criterion(known, "planted_accounts", Policy(min_planted_accounts=7)).met is True
    assert criterion(replace(GOOD, k=None), "planted_accounts").limit == 5


def test_items_and_tokens_have_no_queries_to_expose():
    for kind in ("items", "tokens"):
        found = criterion(replace(GOOD, kind=kind, few=9, covered=False), "exposed_queries")
        assert (found.met, found.found_text) == (True, "does not apply")
        assert found.why


def test_what_a_promise_covers_is_shown():
    found = criterion(replace(GOOD, few=1003), "exposed_queries")
    assert (found.met, found.found) == (True, 0)
    assert "1,003 released queries of fewer than 5 people are covered" in found.why
