"""All attacks together: what they say, of whatever release."""

import json

import pytest

import queryveil as qv
from queryveil.assess.attacks import attack
from queryveil.errors import QueryveilError
from queryveil.release import with_user_map
from tests.assess.attacks.helpers import identity, own_words, random_queries, read, together

RECORDS = {"background_knowledge", "unique_pairs", "record_linkage", "disambiguation"}


def test_the_log_as_it_is_gives_everybody_away():
    log = own_words(users=150)
    found = attack(identity(log), log, n_known=(1, 3))
    won = {finding.attack for finding in found.findings if finding.succeeds}
    assert won == {
        "background_knowledge", "unique_queries", "unique_pairs", "reidentification_risk", "history_linkage",
        "record_linkage", "user_linkage", "sybil",
    }  # fmt: skip
    assert "Singling out (can one person be picked out): yes, by 5 of 5." in found.summary
    assert [finding.setting for finding in found.findings[:2]] == ["1 random", "3 random"]
    assert {skipped.attack for skipped in found.skipped} == {
        "history_linkage", "attribution", "disambiguation", "differencing", "margins", "token_hashing",
    }  # fmt: skip


def test_one_record_for_all_gives_nobody_away():
    log = random_queries(users=200, words=12)
    found = attack(together(log), log, n_known=(1, 3))
    assert not [finding.attack for finding in found.findings if finding.succeeds]
    assert found.summary.count("no attack was above its baseline and its control") == 3


@pytest.mark.parametrize("make", [identity, together])
def test_no_finding_promises_too_much_or_names_anybody(make):
    log = own_words()
    found = attack(make(log), log)
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert "safe" not in text.lower()
    assert not [name for name in ("own1x", "common1", '"u1"') if name in text]
    assert "does not show that no other would succeed" in found.summary


def test_every_finding_has_an_interval_around_it_and_says_what_it_is_compared_with():
    log = own_words()
    for finding in attack(together(log, 4), log).findings:
        assert finding.estimate.low <= finding.estimate.value <= finding.estimate.high
        assert finding.baseline_text
        assert finding.control_text
        assert finding.trials > 0


def test_a_saved_release_needs_its_user_map(tmp_path):
    log = own_words(users=60)
    release = qv.Mdav(k=3, distance="strings").anonymize(log)
    release.save(tmp_path / "r")
    release.save_user_map(tmp_path / "map.csv")
    loaded = qv.Release.load(tmp_path / "r")
    found = attack(loaded, log)
    needing = {skipped.attack for skipped in found.skipped if skipped.why == "needs the user map"}
    assert needing == {"background_knowledge", "history_linkage", "record_linkage", "attribution", "disambiguation"}
    known = attack(with_user_map(loaded, log, tmp_path / "map.csv"), log)
    assert known.as_dict() == attack(release, log).as_dict()


def test_users_dropped_leave_what_is_about_queries():
    log = random_queries(users=400, words=20)
    found = attack(qv.Equality(k=3, link="none").anonymize(log), log)
    assert {finding.attack for finding in found.findings} == {
        "unique_queries", "history_linkage", "user_linkage", "personal_data", "differencing", "sybil",
    }  # fmt: skip


def test_items_leave_what_is_about_groups():
    log = read([(u, ["dog cat", "horse cow", "apple pear"][u % 3]) for u in range(30)])
    found = attack(qv.Clump(k=3).anonymize(log), log)
    assert [finding.attack for finding in found.findings] == ["reidentification_risk"]
    assert "Linkability (can records or queries of one person be brought together): not tried." in found.summary
    assert "1 attack was tried" in found.summary


def test_an_empty_release_leaves_nothing_to_attack():
    log = read([(u, f"w{u}") for u in range(4)])
    found = attack(qv.Equality(k=2).anonymize(log), log)
    assert [finding.attack for finding in found.findings] == ["differencing"]
    assert not found.findings[0].succeeds


def test_half_of_a_log_is_one_attack():
    log = own_words()
    found = attack(identity(log), log, known="half")
    assert [f.setting for f in found.findings if f.attack == "background_knowledge"] == ["half"]
    with pytest.raises(QueryveilError, match="must be one of random, rarest, half"):
        attack(identity(log), log, known="most")


def test_the_steps_are_told():
    log = own_words(users=30)
    told = []
    attack(identity(log), log, n_known=(1,), progress=told.append)
    assert told[0] == "background knowledge of n queries"
    assert told[-1] == "Sybil attack (planted accounts)"
