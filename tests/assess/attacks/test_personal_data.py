"""Personal data left in a release: counted against what was planted, and never shown."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryveil as qv
from queryveil.assess.attacks import InapplicableError, attack, personal_data
from queryveil.scrubbing import DEFAULT_KINDS
from tests.assess.attacks.helpers import identity, read, together

PLANTED = [
    "jane.roe@example.com", "pizza 212-555-0123", "my card 4111 1111 1111 1111", "jane roe springfield ohio",
]  # fmt: skip
PLAIN = [f"{a} {b}" for a in ("red", "green", "blue", "black") for b in ("tea", "cup", "shoes", "car", "house")]


def log_of(users=40):
    return read([(u, PLAIN[(u + i) % len(PLAIN)]) for u in range(users) for i in range(10)] + list(enumerate(PLANTED)))


def test_what_was_planted_is_counted_by_kind_and_shown_masked():
    log = log_of()
    found = personal_data(identity(log), log)
    assert found.estimate.value == pytest.approx(len(PLANTED) / log.n_queries)
    for kind in ("email", "phone", "card", "name_place"):
        assert found.details[f"{kind}_queries"] == 1
        assert found.details[kind] == pytest.approx(100_000 / log.n_queries)
    assert found.details["log"] == pytest.approx(100_000 * len(PLANTED) / log.n_queries)
    assert found.control is None
    assert found.examples == ("<email>", "<name_place>", "<rare> <phone>", "<rare> <rare> <card>")
    text = json.dumps(found.as_dict())
    assert not [word for word in ("jane", "roe", "555", "4111", "springfield", "pizza") if word in text]


def test_words_that_many_typed_stay_in_examples():
    log = read([(u, "pizza") for u in range(5)] + [(9, "pizza 212-555-0123")])
    assert personal_data(identity(log), log).examples == ("pizza <phone>",)


def test_what_many_share_is_no_ones_own():
    """A number that many users typed is told beside, and is nobody's."""
    log = read([(u, "212-555-0123") for u in range(30)] + [(u, "red tea") for u in range(30)])
    found = personal_data(identity(log), log)
    assert (found.estimate.value, found.succeeds, found.examples) == (0, False, ())
    assert (found.details["widespread"], found.details["log"]) == (50_000, 0)
    assert "not counted, of 3 or more users: 50,000" in found.beside


def test_what_two_users_typed_is_their_own():
    log = read([(u, "212-555-0123") for u in range(2)] + [(u, "red tea") for u in range(30)])
    found = personal_data(identity(log), log)
    assert (found.estimate.value, found.succeeds, found.details["widespread"]) == (0.5, True, 0)


def test_what_is_published_is_published_however_few_others_there_are_to_compare_with(tmp_path):
    """Of the few queries that many users typed, nothing can be said with any certainty."""
    qv.generate(tmp_path / "log.tsv", users=200, seed=1)
    log = qv.read_log(tmp_path / "log.tsv")
    found = attack(identity(log), log, n_known=(1,))
    (personal,) = [one for one in found.findings if one.attack == "personal_data"]
    assert personal.succeeds
    assert "Inference (can something be learnt about a person): yes" in found.summary
    assert "hold something personal" in found.summary


def test_it_succeeds_on_a_log_as_it_is_and_in_whatever_groups_but_not_where_it_was_scrubbed(synthetic_truth):
    log, folder = synthetic_truth
    truth = pq.read_table(folder / "queries.parquet").to_pylist()
    planted = sum(row["sensitive"] in DEFAULT_KINDS for row in truth)
    found = personal_data(identity(log), log)
    assert found.succeeds
    assert found.estimate.value * found.trials == pytest.approx(planted, rel=0.1)
    assert personal_data(together(log, 5), log).succeeds
    for how in ("remove", "mask"):
        scrubbed = identity(qv.scrub(log, how))
        found = personal_data(scrubbed, log)
        assert (found.estimate.value, found.succeeds, found.examples) == (0, False, ())
        assert found.details["log"] > 0
    assert not personal_data(qv.Equality(k=3).anonymize(log), log).succeeds


def test_the_same_seed_shows_the_same_examples(synthetic):
    release = identity(synthetic)
    assert personal_data(release, synthetic) == personal_data(release, synthetic)


def test_where_it_cannot_be_looked_for():
    log = read([(u, "dog cat horse") for u in range(8)])
    with pytest.raises(InapplicableError, match="in releases of queries"):
        personal_data(qv.Clump(k=2).anonymize(log), log)
    with pytest.raises(InapplicableError, match="tokens stand for the words"):
        personal_data(qv.Hash().anonymize(log), log)
    alone = read([(u, f"w{u}") for u in range(4)])
    with pytest.raises(InapplicableError, match="no query of the log"):
        personal_data(qv.Equality(k=2).anonymize(alone), alone)
    assert personal_data(identity(alone), alone).control is None
    assert pa.array(personal_data(identity(alone), alone).examples).to_pylist() == []
