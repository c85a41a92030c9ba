import json
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.attacks import Estimate, Finding, Findings, Skipped
from queryveil.assess.policy import (
    ATTACKS,
    HIGH,
    Evidence,
    Number,
    Policy,
    gather,
    issued_by_few,
    judge,
    judge_release,
    load_policy,
    promised_k,
    shipped,
)
from queryveil.claims import CombinationUsers, QueryUsers, RecordUsers, RowUsers, TermUsers, Verdict
from queryveil.verification.verifier import Verification
from tests.assess.attacks.helpers import read

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


def without(attack, known=GOOD, why=None):
    left = tuple(one for one in known.numbers if one.attack != attack)
    return replace(known, numbers=left if why is None else (*left, Number(attack, "", None, why=why)))


def having(attack, value, high=None, known=GOOD, setting="random half"):
    return replace(known, numbers=(*without(attack, known).numbers, Number(attack, setting, value, high)))


def criterion(known, id, policy=None):
    return next(one for one in judge(policy or Policy(), known).criteria if one.id == id)


def test_the_shipped_policy_has_the_values_of_the_class_and_a_comment_for_each():
    assert load_policy() == load_policy("default") == Policy()
    text = shipped()
    assert set(tomllib.loads(text)) == set(Policy.model_fields)
    for name in Policy.model_fields:
        before = text[: text.index(f"\n{name} = ")].rsplit("\n\n", 1)[1]
        assert "our choice" in before.lower() or "Source:" in before, name


def test_a_file_needs_only_what_differs(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("max_linkage = 0.2\nmin_planted_accounts = 7\nmax_residual_pii = 3\n")
    assert load_policy(path) == Policy(max_linkage=0.2, min_planted_accounts=7, max_residual_pii=3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("max_linkge = 0.1", "has an unknown key 'max_linkge'; did you mean 'max_linkage'?"),
        ("colour = 'red'", "has an unknown key 'colour'; there are max_linkage, "),
        ("max_linkage = 'low'", "The 'max_linkage' of the policy {} must be a number from 0 to 1. Got 'low' instead."),
        ("max_linkage = 1.5", "must be a number from 0 to 1. Got 1.5 instead."),
        ("max_linkage = nan", "must be a number from 0 to 1. Got nan instead."),
        ("max_linkage = true", "must be a number from 0 to 1. Got True instead."),
        ("max_exposed_queries = 0.5", "must be a whole number of at least 0. Got 0.5 instead."),
        ("min_planted_accounts = 'm'", "must be a whole number of at least 0, or \"k\". Got 'm' instead."),
        ("min_planted_accounts = true", 'must be a whole number of at least 0, or "k". Got True instead.'),
        ("min_k = 0", "must be a whole number of at least 1. Got 0 instead."),
        ("max_linkage 0.1", "is not TOML: Expected"),
    ],
)
def test_a_bad_policy_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(qv.QueryveilError) as error:
        load_policy(path)
    assert sentence.format(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_policy_that_is_not_there(tmp_path):
    with pytest.raises(qv.QueryveilError, match=r"There is no readable policy file '.*'; give a TOML file"):
        load_policy(tmp_path / "nowhere.toml")


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
    found = criterion(without("history_linkage", why="needs the user map"), "linkage")
    assert "user_map=FILE" in found.why
    found = criterion(without("sybil", why="the method cannot be run again: No space."), "planted_accounts")
    assert found.why == "The attack was not tried: the method cannot be run again: No space."


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
    known = replace(known, numbers=(*known.numbers, Number("history_linkage", "", None, why="needs the user map")))
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


def test_what_a_promise_covers_is_told():
    found = criterion(replace(GOOD, few=1003), "exposed_queries")
    assert (found.met, found.found) == (True, 0)
    assert "1,003 released queries of fewer than 5 people are covered" in found.why


def test_the_k_of_a_release_is_about_queries_and_records():
    assert promised_k(()) is None
    assert promised_k((TermUsers(users=50), CombinationUsers(users=1000, columns=("country",)))) is None
    assert promised_k((QueryUsers(users=30), RowUsers(users=5, columns=("country",)))) == 30
    assert promised_k((RowUsers(users=5, columns=("url",), clicked=True),)) is None
    assert promised_k((RowUsers(users=5, columns=("country",)),)) == 5
    assert promised_k((RecordUsers(users=7),)) == 7


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["tea", "mug", "pot", "cup"])), min_size=1, max_size=30)


@given(PAIRS, st.integers(1, 6))
def test_queries_of_few_users_are_counted(pairs, k):
    log = read(pairs)
    users = {}
    for user, query in pairs:
        users.setdefault(query, set()).add(user)
    release = qv.Rules(max_characters=1000).anonymize(log)
    assert issued_by_few(release, log, k) == sum(len(some) < k for some in users.values())


def test_queries_of_few_users_are_counted_in_the_log_as_it_was_scrubbed(tmp_path):
    log = read([(u, f"jane{u}@example.com tea") for u in range(6)] + [(u, "mug") for u in range(2)])
    scrubbed = qv.scrub(log, "mask")
    release = qv.Rules(max_characters=1000).anonymize(scrubbed)
    assert issued_by_few(release, log, 3) == issued_by_few(release, scrubbed, 3) == 1
    assert issued_by_few(release, log, 7) == 2


def found(attack, value, unit="share", high=None):
    estimate = Estimate(value, value, value if high is None else high)
    return Finding(attack, "", "", unit, estimate, 0.0, "", None, "", 9)


def test_evidence_is_gathered_from_a_release(tmp_path):
    log = read([(u, "tea") for u in range(6)] + [(0, "my own"), (1, "mug"), (2, "mug")])
    release = qv.Rules(max_characters=1000).anonymize(log)
    findings = Findings("rules", (found("history_linkage", 0.3, high=0.4),), (Skipped("sybil", "no"),))
    known = gather(release, log, findings, Verification((Verdict("a", True), Verdict("b", False))))
    assert known == Evidence(
        kind="events",
        shared=False,
        k=None,
        epsilon=None,
        few=2,
        covered=False,
        refuted=1,
        numbers=(Number("history_linkage", "", 0.3, 0.4), Number("sybil", "", None, why="no")),
    )
    assert gather(release, log, findings).refuted is None


@pytest.mark.parametrize(
    ("method", "kind", "shared", "k", "covered"),
    [
        (qv.Equality(k=3), "events", False, 3, True),
        (qv.Affinity(k=3), "events", False, 3, True),
        (qv.Odp(k=3), "records", True, 3, False),
        (qv.Clump(k=3), "items", False, 3, False),
        (qv.Wngen(k=3), "items", False, 3, False),
        (qv.Hash(), "tokens", False, None, False),
        (qv.DpSet(epsilon=50.0, delta=0.1), "counts", False, None, True),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_every_kind_of_release_has_evidence(method, kind, shared, k, covered):
    log = read([(u, f"cheap dog {i % 3}") for u in range(12) for i in range(4)])
    known = gather(method.anonymize(log), log, Findings("", (), ()))
    assert (known.kind, known.shared, known.k, known.covered) == (kind, shared, k, covered)
    assert (known.epsilon is not None) == (method.name == "dp-set")


def synthetic(tmp_path_factory):
    place = tmp_path_factory.mktemp("logs") / "log.tsv.gz"
    qv.generate(place, users=600, seed=1)
    return qv.read_log(place)


@pytest.fixture(scope="module", name="log")
def _log(tmp_path_factory):
    return synthetic(tmp_path_factory)


def test_queries_of_five_people_that_nothing_links_meet_the_default_policy(log):
    judged = judge_release(Policy(), qv.Equality(k=5).anonymize(log), log)
    assert judged.meets is True, judged.summary
    assert judged.grade == "low"


@pytest.mark.parametrize(
    ("method", "missed"),
    [
        (qv.Equality(k=5, link="user"), {"linkage"}),
        (qv.Equality(k=2), {"k"}),
        (qv.Odp(k=5), {"linkage", "attribution", "exposed_queries", "planted_accounts", "residual_pii"}),
        (qv.Rules(max_characters=1000), {"k", "exposed_queries", "planted_accounts", "residual_pii"}),
        (qv.Hash(), {"k", "tokens"}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_what_gives_people_away_does_not_meet_it(log, method, missed):
    judged = judge_release(Policy(), method.anonymize(log), log)
    assert judged.meets is False
    assert missed <= {one.id for one in judged.missed}, judged.summary


def test_a_loaded_release_of_linked_events_cannot_be_judged_without_its_user_map(log, tmp_path):
    release = qv.Equality(k=5, link="session").anonymize(log)
    release.save(tmp_path / "release")
    found = judge_release(Policy(), qv.Release.load(tmp_path / "release"), log)
    assert found.meets is None
    assert {one.id for one in found.open} == {"linkage", "promises"}
    assert "user_map=FILE" in found.summary
    assert judge_release(Policy(), release, log).meets is True


def test_accounts_are_planted_and_the_policy_is_met(log):
    assert judge_release(Policy(), qv.Equality(k=5).anonymize(log), log).meets is True


def test_the_attacks_that_a_policy_asks_for_can_be_run_alone():
    log = read([(u, f"cheap dog {i % 3}") for u in range(12) for i in range(4)])
    found = qv.attack(qv.Equality(k=3).anonymize(log), log, only=ATTACKS)
    assert {one.attack for one in (*found.findings, *found.skipped)} <= set(ATTACKS)
