"""Releases with a pseudonym per session: what works on sessions, and what says why it does not."""

import pytest

import queryveil as qv
from queryveil.assess.attacks import (
    InapplicableError,
    attack,
    background_knowledge,
    record_linkage,
    reidentification_risk,
    unique_pairs,
)
from queryveil.assess.attacks.view import view


@pytest.fixture(scope="module")
def linked(synthetic):
    return qv.Equality(k=3, link="session").anonymize(synthetic)


def test_a_record_is_a_session_of_one_user(synthetic, linked):
    seen = view(linked, synthetic)
    assert seen.sessions
    assert seen.owner is None
    assert seen.records == len(seen.truth.record) == linked.manifest.counts.sessions
    # Everything in a session was issued by the user behind it.
    for record in range(0, seen.records, 97):
        mine = synthetic.engine.fetch(
            f"SELECT DISTINCT query_id FROM events WHERE user_id = {seen.truth.user[record]}"
        )["query_id"].to_pylist()
        assert set(seen.bags.take([record]).item.tolist()) <= set(mine)


@pytest.mark.parametrize("needs_user", [background_knowledge, record_linkage])
def test_what_needs_one_record_per_user_says_so(synthetic, linked, needs_user):
    with pytest.raises(InapplicableError, match="every session has its own"):
        needs_user(linked, synthetic)


def test_what_is_about_records_is_about_sessions(synthetic, linked):
    assert reidentification_risk(linked, synthetic).trials == linked.manifest.counts.sessions
    assert unique_pairs(linked, synthetic).trials > 0


def test_all_attacks_run_on_sessions_and_on_a_saved_release(synthetic, linked, tmp_path):
    found = attack(linked, synthetic, n_known=(2,))
    settings = [one.setting for one in found.findings if one.question == "linkability"]
    assert settings[:2] == ["random half", "older half"]
    linked.save(tmp_path / "r")
    linked.save_user_map(tmp_path / "map.csv")
    loaded = qv.Release.load(tmp_path / "r")
    assert ("history_linkage", "needs the user map") in [
        (one.attack, one.why) for one in attack(loaded, synthetic).skipped
    ]
    known = qv.release.with_user_map(loaded, synthetic, tmp_path / "map.csv")
    again = attack(known, synthetic, n_known=(2,))
    assert again.as_dict() == found.as_dict()
