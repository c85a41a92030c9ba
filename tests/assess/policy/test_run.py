from dataclasses import replace

import pytest

import queryveil as qv
from queryveil.assess.policy import ATTACKS, Policy, judge_release
from queryveil.claims import QueryUsers, Verdict
from queryveil.verification.verifier import Verification
from tests.assess.attacks.helpers import read


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    place = tmp_path_factory.mktemp("logs") / "log.tsv.gz"
    qv.generate(place, users=600, seed=1)
    return qv.read_log(place)


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


def test_a_release_that_was_not_saved_is_checked():
    log = read([(u, f"cheap dog {i % 3}") for u in range(12) for i in range(4)])
    release = qv.Equality(k=3).anonymize(log)
    assert promises(judge_release(Policy(), release, log)) == (0, True)
    refuted = release.manifest.model_copy(update={"claims": (QueryUsers(users=50),)})
    found, met = promises(judge_release(Policy(), replace(release, manifest=refuted), log))
    assert found > 0
    assert met is False


def test_what_the_verifier_found_counts():
    log = read([(u, f"cheap dog {i % 3}") for u in range(12) for i in range(4)])
    release = qv.Equality(k=3).anonymize(log)
    found = Verification((Verdict("a", True), Verdict("b", False)))
    assert promises(judge_release(Policy(), release, log, verification=found)) == (1, False)


def promises(judged):
    one = next(one for one in judged.criteria if one.id == "promises")
    return one.found, one.met
