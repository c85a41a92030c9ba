"""History linkage: what is learned from every kind of release, and where there is nothing to learn."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess.attacks import InapplicableError, history_linkage, older_history
from queryveil.release import loaded
from queryveil.release.linkage import measure_linkage
from queryveil.release.making import of_events
from tests.assess.attacks.helpers import as_it_is, identity, own_words, random_queries, read, shuffled, together

START = datetime(2026, 1, 1)


def as_texts(log, **link):
    """The log as it is, linked in some way."""
    return qv.Rules(max_characters=1000, **link).anonymize(log)


def timed(rows):
    """A log of (user, query), each a minute after the one before of the same user."""
    table = {"user": [f"u{u}" for u, _ in rows], "query": [query for _, query in rows]}
    seen: dict[int, int] = {}
    minutes = [seen.update({u: seen.get(u, 0) + 1}) or seen[u] for u, _ in rows]
    return qv.read_log(pa.table(table | {"time": [START + timedelta(minutes=m) for m in minutes]}))


def permuted(log, seed=1):
    """Whole records under the ids of others."""
    user = np.random.default_rng(seed).permutation(log.n_users).astype(np.int32)
    log.engine.read("others", pa.table({"user_id": np.arange(log.n_users, dtype=np.int32), "other": user}))
    events = "SELECT e.event_id AS event_id, o.other AS user_id, e.query_id AS query_id FROM events e JOIN others o"
    return of_events(
        log, f"{events} ON o.user_id = e.user_id", None, method="rules", parameters={}, claims=(), limits=(), seed=0
    )


@pytest.mark.parametrize("link", ["user", "session", "none"])
def test_the_log_as_it_is_gives_people_away(synthetic, link):
    found = history_linkage(as_texts(synthetic, link=link), synthetic)
    assert found.succeeds
    assert found.estimate.value > {"user": 0.99, "session": 0.6, "none": 0.1}[link]
    older = older_history(as_texts(synthetic, link=link), synthetic)
    assert older.succeeds
    assert older.estimate.value < found.estimate.value


@pytest.mark.parametrize("make", [shuffled, permuted, together])
def test_records_of_nobody_or_of_all_teach_nothing(synthetic, make):
    found = history_linkage(make(synthetic), synthetic)
    assert not found.succeeds
    assert found.details["linked_records"] < 0.01


@pytest.mark.parametrize("link", ["user", "none"])
def test_where_nothing_is_anybodys_it_hardly_ever_succeeds(link):
    won = 0
    for seed in range(12):
        log = random_queries(users=60, queries=8, seed=seed, words=8)
        made = permuted(log, seed) if link == "user" else as_texts(log, link="none")
        won += history_linkage(made, log, seed=seed).succeeds
    assert won <= 2


def test_it_finds_what_is_measured_when_a_release_is_written(synthetic):
    """Two ways to the same number: from the engine's tables, and from what an attacker sees."""
    events = "SELECT u.user AS user, q.query AS query FROM events e JOIN users u USING (user_id)"
    log = qv.read_log(synthetic.engine.fetch(f"{events} JOIN queries q USING (query_id)"))
    for k in (2, 5):
        release = qv.Equality(k=k, link="user").anonymize(log)
        with loaded(release, log) as released:
            rows = (
                f'SELECT r."user" AS "user", q.query_id AS query_id, r.event AS event FROM {released} r'
                " JOIN queries q ON q.query = r.query"
            )
            measured = measure_linkage(log, rows, release.pseudonyms, column="user", seed=3)
        found = history_linkage(release, log, seed=3)
        assert found.estimate.value == pytest.approx(measured.learned, abs=1e-12)
        assert (found.estimate.low, found.estimate.high) == pytest.approx((measured.low, measured.high))
        assert found.details["linked_records"] == pytest.approx(measured.linked)
        assert (found.details["texts"], found.details["users"]) == (measured.texts, measured.users)
        assert found.baseline == measured.baseline


@pytest.mark.parametrize("k", [3, 5])
def test_a_shared_record_leads_to_its_group_and_to_each_member_once_in_k(k):
    log = own_words(users=120)
    found = history_linkage(together(log, k), log)
    assert found.details["linked_groups"] == 1
    assert found.details["linked_records"] == pytest.approx(1 / k)
    # The member of whom most is known is found, and less is left to learn of them.
    assert 0 < found.estimate.value < 1 / k
    assert "to the right group" in found.beside


def test_one_record_for_several_people_counts_as_one_each(tmp_path):
    log = own_words(users=60)
    shared = [qv.Mdav(k=3, distance="strings", compact=compact).anonymize(log, seed=1) for compact in (False, True)]
    one, other = (history_linkage(release, log) for release in shared)
    assert one.estimate.value == pytest.approx(other.estimate.value)
    assert one.details["linked_groups"] == pytest.approx(other.details["linked_groups"])


def test_a_sample_takes_whole_groups():
    log = own_words(users=120)
    found = history_linkage(together(log, 4), log, users=50)
    assert found.details["users"] == 48
    assert found.details["linked_records"] == pytest.approx(1 / 4)
    assert "tried on 48 of 120 people" in found.beside


def test_who_is_known_to_have_issued_a_text_is_passed_over():
    """Two people issued every text: if one is known to have, it is the other, and else a guess between two."""
    log = read([(u, f"pair{u // 2} {i}") for u in range(80) for i in range(12)])
    found = history_linkage(as_texts(log, link="none"), log)
    assert found.estimate.value == pytest.approx(0.75, abs=0.05)


def test_items_in_the_place_of_queries_give_people_away_too(synthetic):
    found = history_linkage(qv.Wngen(k=3, link="user").anonymize(synthetic), synthetic)
    assert found.setting == "items, random half"
    assert found.succeeds
    assert found.estimate.value > 0.5
    assert "items" in found.number
    none = history_linkage(qv.Wngen(k=3).anonymize(synthetic), synthetic)
    assert none.estimate.value < 0.05
    shared = history_linkage(qv.Clump(k=5).anonymize(synthetic), synthetic)
    assert shared.estimate.value < 0.2


def test_an_item_above_what_is_known_is_nothing_new():
    """All nouns of a person are known: what generalizes them is no finding."""
    log = read([(u, ["dog", "cat", "horse", "apple"][u % 4]) for u in range(40) for _ in range(2)])
    with pytest.raises(InapplicableError, match="does not know already"):
        history_linkage(qv.Clump(k=5).anonymize(log), log)


def test_what_generalizes_the_other_half_is_to_be_learned():
    """Everybody has an animal and a fruit, and the attacker knows one of the two."""
    animals = ["dog", "cat", "horse", "cow", "lion"]
    fruits = ["apple", "pear", "plum", "cherry", "grape"]
    log = read([(u, word) for u in range(25) for word in (animals[u % 5], fruits[u // 5])])
    # One bag is of 'physical entity', which is nothing new to one who knows the animal.
    assert 15 < history_linkage(qv.Clump(k=5).anonymize(log), log).details["texts"] < 25


def test_the_older_half_is_the_older_one():
    new = [(u, f"new{u} {i}") for i in range(4) for u in range(30)]
    changed = timed([(u, f"old{u} {i}") for i in range(4) for u in range(30)] + new)
    same = timed([(u, f"new{u} before{i}") for i in range(4) for u in range(30)] + new)
    release = as_texts(changed, link="user")
    assert history_linkage(release, changed).estimate.value > 0.95
    assert not older_history(release, changed).succeeds
    found = older_history(as_texts(same, link="user"), same)
    assert found.estimate.value == 1
    assert found.details["texts"] == 120
    assert found.setting == "older half"


def test_half_of_the_newer_events_are_released_by_the_method_of_the_release():
    """What k users issued in the newer half alone is released there."""
    rows = [(u, f"word{u % 10} {i}") for i in range(8) for u in range(60)]
    log = timed(rows)
    found = older_history(qv.Equality(k=5, link="user").anonymize(log), log)
    assert found.details["users"] == 60
    assert found.details["texts"] == 60 * 4


@pytest.mark.parametrize("how", ["remove", "mask"])
def test_a_scrubbed_release_is_made_again_from_a_scrubbed_log(tmp_path, how):
    rows = [(u, f"word{u} {i}") for i in range(8) for u in range(30)]
    rows += [(u, f"me{u}@example.com word{u} mail") for u in range(30)]
    log = timed(rows)
    qv.Rules(max_characters=1000, link="user").anonymize(qv.scrub(log, how)).save(tmp_path / "r")
    found = older_history(qv.Release.load(tmp_path / "r"), log)
    # Of nine events the older five are known; the last is the address, which is no query of the log any more.
    assert found.details["texts"] == 30 * 3


def test_what_is_missing_is_said(tmp_path, synthetic):
    log = own_words(users=30)
    release = identity(log)
    with pytest.raises(InapplicableError, match="the log has no times"):
        older_history(release, log)
    with pytest.raises(InapplicableError, match="cannot be run again"):
        older_history(as_it_is(synthetic), synthetic)
    with pytest.raises(InapplicableError, match="no query of the log"):
        history_linkage(qv.Hash(link="user").anonymize(log), log)
    release.save(tmp_path / "r")
    with pytest.raises(InapplicableError, match="needs the user map"):
        history_linkage(qv.Release.load(tmp_path / "r"), log)
    as_texts(log, link="none").save(tmp_path / "none")
    assert history_linkage(qv.Release.load(tmp_path / "none"), log).trials > 0
    alone = read([(0, "a b"), (0, "c d")])
    with pytest.raises(InapplicableError, match="fewer than two people"):
        history_linkage(identity(alone), alone)


def test_the_same_seed_finds_the_same_and_nobody_is_named(synthetic):
    release = as_texts(synthetic, link="session")
    assert history_linkage(release, synthetic, seed=4) == history_linkage(release, synthetic, seed=4)
    assert history_linkage(release, synthetic, seed=4) != history_linkage(release, synthetic, seed=5)
