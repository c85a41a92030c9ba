"""Attacks that look at records: against the literal ones, on a release that deserves them, and on one that does not."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.attacks import (
    InapplicableError,
    background_knowledge,
    record_linkage,
    reidentification_risk,
    unique_pairs,
    unique_queries,
)
from queryveil.assess.measures import record_linkage as measured
from queryveil.errors import QueryveilError
from queryveil.methods.microaggregation.common import Searches
from tests.assess.attacks.helpers import identity, own_words, owners, random_queries, read, records, together
from tests.oracles import attacks as oracle
from tests.strategies import examples, weekly

PAIRS = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["tea", "mug", "red tea", "my cat", "x"])), min_size=6, max_size=40
)
KINDS = st.sampled_from(["identity", "equality", "strings", "compact"])


def released(pairs, kind):
    log = read(pairs)
    methods = {
        "identity": qv.Rules(max_characters=1000, link="user"),
        "equality": qv.Equality(k=2, link="user"),
        "strings": qv.Mdav(k=2, distance="strings"),
        "compact": qv.Mdav(k=2, distance="strings", compact=True),
    }
    release = None if log.n_users < 2 else methods[kind].anonymize(log, seed=1)
    issued = {f"u{u}": {query for v, query in pairs if v == u} for u, _ in pairs}
    return (log, None, issued) if release is None or not release.manifest.counts.rows else (log, release, issued)


@settings(max_examples=examples(20))
@given(PAIRS, KINDS)
def test_the_rarest_queries_lead_where_the_literal_attack_finds(pairs, kind):
    """Of the rarest queries nothing is drawn, so that the literal attack sees the same."""
    log, release, issued = released(pairs, kind)
    if release is None:
        return
    bags, people = records(release)
    mine = owners(release)
    users = {query: sum(query in queries for queries in issued.values()) for _, query in pairs}
    ids = {query: i for i, query in enumerate(log.query_text.to_pylist())}
    for m in (1, 2):
        alone = wrong = total = 0
        sizes = []
        for user, record in mine.items():
            known = set(sorted(issued[user], key=lambda query: (users[query], ids[query]))[:m])
            if len(issued[user]) < m:
                continue
            fit, n = oracle.candidates(bags, people, known)
            total += 1
            sizes.append(n)
            alone += n == 1 and record in fit
            wrong += n - (record in fit) == 1
        if total == 0:
            with pytest.raises(InapplicableError, match="nobody in the release"):
                background_knowledge(release, log, n_known=m, known="rarest")
            continue
        found = background_knowledge(release, log, n_known=m, known="rarest")
        assert (found.trials, found.estimate.value) == (total, pytest.approx(alone / total))
        assert found.control.value == pytest.approx(wrong / total)
        assert found.details["candidates"] == pytest.approx(np.mean(sizes))
        assert found.baseline == pytest.approx(1 / sum(people.values()))


@settings(max_examples=examples(20))
@given(PAIRS, KINDS)
def test_classic_risks_and_uniqueness_are_the_literal_ones(pairs, kind):
    log, release, issued = released(pairs, kind)
    if release is None:
        return
    bags, people = records(release)
    found = reidentification_risk(release, log)
    assert found.estimate.value == pytest.approx(float(oracle.marketer(bags, people)))
    assert found.details["prosecutor"] == pytest.approx(float(oracle.prosecutor(bags, people)))
    assert found.details["journalist"] == pytest.approx(float(oracle.journalist(bags, people, issued)))
    queries = {query for bag in bags.values() for query in bag}
    unique = [query for query in queries if len(oracle.issuers(issued, query)) == 1]
    assert unique_queries(release, log).estimate.value == pytest.approx(len(unique) / len(queries))


@settings(max_examples=examples(13))
@given(PAIRS, KINDS)
def test_unique_pairs_are_possible_ones(pairs, kind):
    """What is drawn differs, but a record with pairs of one sort alone has no choice."""
    log, release, issued = released(pairs, kind)
    if release is None:
        return
    bags, _ = records(release)
    shares = [
        [len(oracle.issuers(issued, a, b)) == 1 for a in bag for b in bag if a < b]
        for bag in bags.values()
        if len(bag) > 1
    ]
    if len(shares) < 2:
        with pytest.raises(InapplicableError):
            unique_pairs(release, log)
        return
    found = unique_pairs(release, log)
    assert found.trials == len(shares)
    hits = round(found.estimate.value * len(shares))
    assert sum(map(all, shares)) <= hits <= sum(map(any, shares))


def test_known_queries_single_out_people_in_the_log_as_it_is_and_nobody_among_equals():
    log = own_words()
    for known in ("random", "rarest", "half"):
        found = background_knowledge(identity(log), log, n_known=2, known=known)
        assert found.succeeds
        assert found.estimate.value > 0.8
        assert found.details["candidates"] < 3
        nothing = background_knowledge(together(log), log, n_known=2, known=known)
        assert (nothing.estimate.value, nothing.succeeds) == (0, False)
        assert nothing.details["candidates"] >= log.n_users * (1 - nothing.details["no_candidate"]) - 1e-9


@weekly
def test_the_interval_holds_the_share_of_all_people_as_often_as_it_says():
    log = random_queries(users=300, words=60)
    release, searches = identity(log), Searches.of(log)
    alone = log.users_per_query[searches.query] == 1
    truth = np.mean([mine.mean() for mine in np.split(alone, searches.start[1:-1])])
    tried = [background_knowledge(release, log, n_known=1, seed=seed, people=50).estimate for seed in range(300)]
    assert 0.1 < truth < 0.9
    assert np.mean([estimate.low <= truth <= estimate.high for estimate in tried]) >= 0.93
    assert np.mean([estimate.value for estimate in tried]) == pytest.approx(truth, abs=0.02)


def test_more_known_queries_single_out_more_people():
    log = random_queries(words=10)
    found = [background_knowledge(identity(log), log, n_known=m).estimate.value for m in (1, 3, 5)]
    assert found[0] < found[1] < found[2]


def test_the_same_seed_knows_the_same_queries():
    log = random_queries()
    release = identity(log)
    tried = partial(background_knowledge, release, log)
    assert tried(n_known=2, seed=3) == tried(n_known=2, seed=3)
    assert tried(n_known=1, seed=3) != tried(n_known=1, seed=4)


def test_a_sample_of_people():
    log = own_words()
    assert background_knowledge(identity(log), log, people=20).trials == 20


def test_what_an_attacker_cannot_know():
    log = own_words(users=5)
    with pytest.raises(QueryveilError, match=r"'n_known' parameter of attack must be a whole number of at least 1"):
        background_knowledge(identity(log), log, n_known=0)
    with pytest.raises(QueryveilError, match=r"must be one of random, rarest, half\. Got 'all' instead"):
        background_knowledge(identity(log), log, known="all")


def test_linkage_is_that_of_the_measure_with_chance_beside_it():
    log = own_words()
    release = identity(log)
    found = record_linkage(release, log)
    assert 100 * found.estimate.value == pytest.approx(measured(release))
    assert found.succeeds
    assert found.control.low < found.baseline < found.control.high
    grouped = record_linkage(together(log, 4), log)
    assert grouped.details["bound"] == 0.25
    assert grouped.estimate.value <= 0.25
    nothing = record_linkage(together(log), log)
    assert not nothing.succeeds
    assert nothing.estimate.value <= 1 / log.n_users + 1e-9


def test_equal_records_hide_people_and_the_log_as_it_is_does_not():
    log = own_words()
    found = reidentification_risk(identity(log), log)
    assert (found.estimate.value, found.details["prosecutor"], found.details["journalist"]) == (1, 1, 1)
    assert found.succeeds
    nothing = reidentification_risk(together(log), log)
    assert nothing.estimate.value == pytest.approx(nothing.baseline)
    assert nothing.details["prosecutor"] == pytest.approx(1 / log.n_users)
    assert not nothing.succeeds


@pytest.mark.parametrize("kind", ["hash", "mask"])
def test_nobody_of_the_log_fits_a_record_with_a_text_that_is_not_in_it(kind):
    """All issued `red tea`, but one alone what was masked; of tokens, nobody issued any."""
    pairs = [*((u, "red tea") for u in range(10)), (0, "jane@example.com pizza")]
    log = read(pairs)
    release = qv.Hash(link="user").anonymize(log) if kind == "hash" else identity(qv.scrub(log, "mask"))
    issued = {f"u{u}": {query for v, query in pairs if v == u} for u, _ in pairs}
    bags, people = records(release)
    found = reidentification_risk(release, log)
    assert found.details["journalist"] == float(oracle.journalist(bags, people, issued)) == 1


def test_pairs_are_unique_in_the_log_as_it_is_and_as_rare_as_across_records_among_equals():
    log = own_words()
    found = unique_pairs(identity(log), log)
    assert found.succeeds
    assert found.estimate.value > 0.9
    assert not unique_pairs(together(log), log).succeeds


def test_shared_queries_are_not_unique():
    log = random_queries(words=3)
    assert unique_queries(qv.Equality(k=2).anonymize(log), log).estimate.value == 0
    log = own_words()
    found = unique_queries(identity(log), log)
    assert found.succeeds
    assert found.details["misplaced"] == 0


def test_a_release_of_another_log_is_refused():
    log = own_words(users=5)
    with pytest.raises(QueryveilError, match="made from another log"):
        unique_queries(identity(log), own_words(users=6))


def test_what_needs_records_or_the_user_map_says_so(tmp_path):
    log = random_queries()
    dropped = qv.Equality(k=2, link="none").anonymize(log)
    for attack in (background_knowledge, record_linkage, unique_pairs, reidentification_risk):
        with pytest.raises(InapplicableError, match="with pseudonyms"):
            attack(dropped, log)
    assert unique_queries(dropped, log).control is None
    qv.Equality(k=2, link="user").anonymize(log).save(tmp_path / "r")
    loaded = qv.Release.load(tmp_path / "r")
    for attack in (background_knowledge, record_linkage):
        with pytest.raises(InapplicableError, match="needs the user map"):
            attack(loaded, log)
    assert reidentification_risk(loaded, log).trials == loaded.manifest.counts.users
