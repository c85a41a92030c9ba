"""Attribution: whose query is it, inside a record that several people share?"""

import numpy as np
import pytest

import queryveil as qv
from queryveil.assess.attacks import InapplicableError, attribution, attribution_to_one
from queryveil.log.draws import keyed
from queryveil.release.scoring import half
from tests.assess.attacks.helpers import identity, own_words, random_queries, read, records, together

BOTH = pytest.mark.parametrize("attack", [attribution, attribution_to_one])


@BOTH
def test_words_of_ones_own_say_who_issued_what(attack):
    log = own_words(users=120, queries=16)
    found = attack(together(log, 4), log)
    assert found.succeeds
    assert found.estimate.value > 0.7
    assert found.details["surest_half"] >= found.estimate.value
    assert found.loss > 0.7


@BOTH
@pytest.mark.parametrize("k", [3, 5])
def test_people_like_real_ones_are_told_from_each_other(synthetic, attack, k):
    found = attack(together(synthetic, k), synthetic)
    assert found.succeeds
    assert found.estimate.value > 1.5 * found.baseline


@BOTH
def test_where_nothing_is_anybodys_it_hardly_ever_succeeds(attack):
    won = 0
    for seed in range(12):
        log = random_queries(users=60, queries=12, seed=seed, words=40)
        won += attack(together(log, 4, seed), log, seed=seed).succeeds
    assert won <= 2


def test_only_queries_count_that_no_member_is_known_to_have_issued():
    log = own_words(users=12, queries=10, of_own=0.3)
    release = together(log, 3)
    found = attribution(release, log, seed=2)
    events = log.engine.fetch("SELECT event_id, user_id, query_id FROM events ORDER BY event_id")
    user, query = events["user_id"].to_numpy(), events["query_id"].to_numpy()
    draw = keyed(log.secret(2, "background knowledge"), events["event_id"].to_numpy().astype(np.uint64))
    chosen = half(user.astype(np.int64), draw)
    truth = log.engine.fetch(f'SELECT user_id, "user" AS record FROM {release.pseudonyms}')
    record = dict(zip(truth["user_id"].to_pylist(), truth["record"].to_pylist(), strict=True))
    bags, _ = records(release)
    groups: dict[frozenset, set] = {}
    for u in range(log.n_users):
        groups.setdefault(frozenset(bags[record[u]].items()), set()).add(u)
    texts = log.query_text.to_pylist()
    expected = 0
    for bag, members in groups.items():
        known = {texts[q] for u, q, there in zip(user, query, chosen, strict=True) if there and u in members}
        expected += len({text for text, _ in bag} - known)
    assert found.details["queries"] == expected
    assert found.details["records"] <= len(groups)


@BOTH
def test_what_is_missing_is_said(attack, tmp_path):
    log = own_words(users=24)
    with pytest.raises(InapplicableError, match="not shared"):
        attack(identity(log), log)
    with pytest.raises(InapplicableError, match="with pseudonyms"):
        attack(qv.Rules(max_characters=1000, link="none").anonymize(log), log)
    together(log, 4).save(tmp_path / "r")
    with pytest.raises(InapplicableError, match="needs the user map"):
        attack(qv.Release.load(tmp_path / "r"), log)
    same = read([(u, f"only{u}") for u in range(20) for _ in range(4)])
    if attack is attribution:
        with pytest.raises(InapplicableError, match="does not know already"):
            attack(together(same, 4), same)
