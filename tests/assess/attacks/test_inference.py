"""Disambiguation, differencing and planting: against literal ones, on what deserves them, and on what does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.attacks import InapplicableError, differencing, disambiguation, sybil
from queryveil.assess.attacks.disambiguation import adjusted_rand
from queryveil.assess.attacks.sybil import _fewest
from queryveil.methods.microaggregation.common import Searches
from tests.assess.attacks.helpers import identity, own_words, random_queries, read, together
from tests.assess.attacks.test_records import PAIRS
from tests.methods.microaggregation.test_common import WORDS, taxonomy
from tests.methods.microaggregation.test_common import read as read_clicked
from tests.oracles import attacks as oracle
from tests.strategies import examples

__all__ = ["taxonomy"]  # a fixture

LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12)


@given(LABELS)
def test_the_adjusted_rand_index_counts_pairs(labels):
    one, other = (list(side) for side in zip(*labels, strict=True))
    assert adjusted_rand(np.array(one), np.array(other)) == pytest.approx(float(oracle.adjusted_rand(one, other)))


def test_chance_has_an_index_of_zero():
    rng = np.random.default_rng(0)
    found = [adjusted_rand(rng.integers(0, 3, 40), rng.integers(0, 4, 40)) for _ in range(400)]
    assert np.mean(found) == pytest.approx(0, abs=0.005)


TOPICS = [
    "horse riding saddle pony stable rider gallop mare",
    "tax income form refund return deduction filing audit",
    "guitar chords music song band concert album drums",
    "diabetes insulin blood sugar doctor symptoms clinic pills",
    "hotel flight paris vacation beach travel ticket cruise",
]


def topical(users=100, queries=10, seed=0):
    """Every user has one of five interests, in words that all who share it use."""
    rng = np.random.default_rng(seed)
    words = [topic.split() for topic in TOPICS]
    return read(
        [
            (u, " ".join(rng.choice(words[u % 5], 2, replace=False)) + f" {u}")
            for u in range(users)
            for _ in range(queries)
        ]
    )


def test_people_of_different_interests_are_named_by_step_in_a_shared_record():
    log = topical()
    number = np.array([int(name[1:]) for name in log.user_text.to_pylist()])
    release = qv.Odp(k=5).release_groups(
        log, Searches.of(log), (number // 5).astype(np.int32), parts=0, seed=1, notes=[]
    )
    found = disambiguation(release, log)
    assert found.succeeds
    assert found.estimate.value > 0.5
    assert abs(found.control.value) < 0.15
    assert found == disambiguation(release, log)


def test_people_who_search_by_lot_are_not_named_by_step():
    log = random_queries(users=200, queries=12, words=60)
    found = disambiguation(together(log, 5), log)
    assert not found.succeeds
    assert found.estimate.value < 0.1


def test_one_group_says_too_little_to_succeed():
    log = own_words(users=4, queries=40)
    found = disambiguation(together(log), log)
    assert (found.estimate.low, found.estimate.high, found.succeeds) == (-1, 1, False)


def test_nothing_is_shared_in_the_log_as_it_is():
    log = own_words()
    with pytest.raises(InapplicableError, match="no record is shared"):
        disambiguation(identity(log), log)


@settings(max_examples=examples(20))
@given(PAIRS, st.integers(2, 3))
def test_a_person_flips_an_output_if_the_release_without_him_is_another(pairs, k):
    log = read(pairs)
    if log.n_users < k:
        return
    release = qv.Equality(k=k).anonymize(log)
    issued = {f"u{u}": {query for v, query in pairs if v == u} for u, _ in pairs}
    released = {query for _, query in pairs if len(oracle.issuers(issued, query)) >= k}
    found = differencing(release, log)
    assert found.details["people"] == len(oracle.flipped(issued, released, k))
    assert found.estimate.value == pytest.approx(found.details["people"] / log.n_users)
    if log.n_users > k:
        other = differencing(release, log, other=qv.Equality(k=k + 1).anonymize(log))
        assert other.details == found.details


def test_the_same_release_twice_tells_nothing():
    log = random_queries(words=5)
    release = qv.Equality(k=2).anonymize(log)
    found = differencing(release, log, other=qv.Equality(k=2).anonymize(log, seed=5))
    assert (found.estimate.value, found.succeeds) == (0, False)


def test_another_day_tells_who_was_new():
    day = random_queries(users=60, words=4)
    later = random_queries(users=60, words=6, seed=9)
    found = differencing(qv.Equality(k=3).anonymize(later), later, other=qv.Equality(k=3).anonymize(day))
    assert found.succeeds


def test_without_a_threshold_another_release_is_needed():
    log = own_words(users=20)
    with pytest.raises(InapplicableError, match="no threshold"):
        differencing(identity(log), log)


@pytest.mark.parametrize("k", [2, 3, 5, 6])
def test_planting_takes_k_accounts_under_equality(k):
    log = random_queries(users=40, words=6)
    found = sybil(qv.Equality(k=k).anonymize(log), log)
    assert (found.estimate.value, found.baseline, found.succeeds) == (k, k, False)


def test_planting_takes_one_account_where_everything_is_released():
    log = random_queries(users=40, words=6)
    assert sybil(identity(log), log).estimate.value == 1
    found = sybil(together(log, 4), log)
    assert found.baseline == 4
    assert found.succeeds == (found.estimate.value < 4)


def test_planting_is_tried_on_some_users_with_all_that_the_log_has(tmp_path):
    qv.generate(tmp_path / "log.tsv.gz", users=120, seed=1)
    log = qv.read_log(tmp_path / "log.tsv.gz")
    assert log.has_clicks
    found = sybil(qv.Equality(k=3).anonymize(log), log, users=60)
    assert found.details["users"] == 60
    assert found.estimate.value == 3


def test_what_does_not_succeed_is_told_with_the_most_that_was_tried():
    log = random_queries(users=40, words=6)
    found = sybil(qv.Equality(k=8).anonymize(log), log, accounts=6)
    assert found.estimate.value == 6
    assert "do not bring" in found.number


@pytest.mark.parametrize(("accounts", "value"), [(4, 4), (8, 8)])
def test_to_give_up_is_no_success(accounts, value):
    log = random_queries(users=40, words=6)
    found = sybil(qv.Equality(k=8).anonymize(log), log, accounts=accounts)
    assert (found.estimate.value, found.baseline, found.succeeds) == (value, 8, False)
    assert found.gave_up == (accounts < 8)


def test_a_method_that_cannot_be_run_again_is_told(tmp_path, monkeypatch):
    log = random_queries(users=40, words=6)
    (tmp_path / "list").write_text("w1 w1\n")
    release = qv.Rules(block_list=tmp_path / "list", link="user").anonymize(log)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list").unlink()
    with pytest.raises(InapplicableError, match="the method cannot be run again"):
        sybil(release, log)


def test_planting_finds_the_directory_of_the_release(taxonomy):
    log = read_clicked([(u, WORDS[u % 4], u % 4) for u in range(12)] + [(u, "alpha beta", 0) for u in range(12)])
    release = qv.Odp(k=3, taxonomy=taxonomy).anonymize(log, seed=1)
    with pytest.raises(InapplicableError, match="name its folder with 'taxonomy'"):
        sybil(release, log)
    assert sybil(release, log, taxonomy=taxonomy).baseline == 3


def test_items_are_no_queries_to_plant():
    items = qv.Clump(k=2).anonymize(read([(u, "dog cat horse") for u in range(8)]))
    with pytest.raises(InapplicableError, match="needs a release of queries"):
        sybil(items, items.log)


@given(st.integers(1, 70), st.integers(1, 64))
def test_the_fewest_is_found(truth, most):
    asked = []

    def succeeds(j):
        asked.append(j)
        return j >= truth

    assert _fewest(succeeds, most) == (truth if truth <= most else None)
    assert len(asked) == len(set(asked))
    assert max(asked) <= most
