"""Every attack succeeds on a release that deserves it, and is not above its baseline where there is nothing to find.

What deserves it is the log as it is. What gives nothing is a record that all users share, or events under the ids of
users at random.
"""

import sys

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess.attacks import (
    background_knowledge,
    differencing,
    disambiguation,
    record_linkage,
    reidentification_risk,
    sybil,
    unique_pairs,
    unique_queries,
)
from tests.assess.attacks.helpers import as_it_is, identity, own_words, random_queries, shuffled, together

RECORDS = {
    "background_knowledge": lambda release, log: background_knowledge(release, log, n_known=3),
    "unique_queries": unique_queries,
    "unique_pairs": unique_pairs,
    "record_linkage": record_linkage,
    "reidentification_risk": reidentification_risk,
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("make", [identity, as_it_is])
def test_records_as_they_are_give_people_away(synthetic, name, make):
    found = RECORDS[name](make(synthetic), synthetic)
    assert found.succeeds
    assert found.estimate.value > 0.8


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("log", ["own words", "synthetic"])
def test_one_record_for_all_gives_nobody_away(synthetic, name, log):
    used = synthetic if log == "synthetic" else own_words()
    assert not RECORDS[name](together(used), used).succeeds


# Sizes of groups say nothing of whose records they are, so the risk of re-identification is about groups alone.
@pytest.mark.parametrize("name", sorted(RECORDS.keys() - {"reidentification_risk"}))
def test_records_of_nobody_give_nobody_away(synthetic, name):
    found = RECORDS[name](shuffled(synthetic), synthetic)
    assert not found.succeeds
    assert found.estimate.low <= max(found.baseline, found.control.high)


def test_what_stands_in_other_records_singles_out_nobody():
    log = own_words()
    for release in (together(log, 4), shuffled(log)):
        found = unique_queries(release, log)
        assert found.estimate.value > 0.5
        assert found.control.value > 0.9 * found.estimate.value
    assert unique_queries(identity(log), log).details["misplaced"] == 0


def test_without_the_user_map_shared_records_are_seen_all_the_same(tmp_path):
    log = own_words()
    together(log, 4).save(tmp_path / "r")
    found = unique_queries(qv.Release.load(tmp_path / "r"), log)
    assert found.details["misplaced"] == found.estimate.value


@pytest.mark.parametrize("k", [3, 5])
def test_groups_by_lot_fall_apart_into_people_better_than_by_lot(synthetic, k):
    found = disambiguation(together(synthetic, k), synthetic)
    assert found.succeeds
    assert found.estimate.value > 0.04


def test_groups_whose_queries_were_permuted_do_not_fall_apart(synthetic):
    rows = synthetic.engine.fetch(
        "SELECT e.user_id AS user_id, q.query AS query FROM events e JOIN queries q ON q.query_id = e.query_id"
        " ORDER BY e.event_id"
    )
    users = np.random.default_rng(1).permutation(rows["user_id"].to_numpy())
    permuted = qv.read_log(pa.table({"user": pa.array(users).cast(pa.string()), "query": rows["query"]}))
    assert not disambiguation(together(permuted, 3), permuted).succeeds


def test_a_threshold_gives_those_away_who_just_reach_it_and_equal_releases_nobody(synthetic):
    release = qv.Equality(k=3).anonymize(synthetic)
    assert differencing(release, synthetic).succeeds
    assert not differencing(release, synthetic, other=qv.Equality(k=3).anonymize(synthetic)).succeeds
    found = differencing(release, synthetic, other=identity(synthetic))
    assert found.succeeds
    assert found.control.value == 0


def test_one_account_plants_where_nothing_is_promised_and_k_do_where_k_are():
    log = random_queries(users=40, words=6)
    found = sybil(identity(log), log)
    assert (found.estimate.value, found.baseline, found.succeeds) == (1, 2, True)
    assert "is not released" in found.control_text
    found = sybil(qv.Equality(k=4).anonymize(log), log)
    assert (found.estimate.value, found.baseline, found.succeeds) == (4, 4, False)


def test_what_is_released_whoever_issues_it_was_not_planted(monkeypatch):
    """The control: other accounts, the same outcome."""
    log = random_queries(users=40, words=6)
    monkeypatch.setattr(sys.modules["queryveil.assess.attacks.sybil"], "_released", lambda *_: True)
    found = sybil(identity(log), log)
    assert not found.succeeds
    assert "released as well" in found.control_text
