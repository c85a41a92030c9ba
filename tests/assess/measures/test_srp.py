"""SRP against the literal share, and its two ends: the log as it is, and users thrown together at random."""

import random
from collections import Counter, defaultdict
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.measures import profile_retention, random_groups, separating_level, srp
from queryveil.assess.measures.random_groups import activity, group_records, permuted
from queryveil.assess.measures.records import user_records
from queryveil.errors import QueryveilError
from queryveil.methods.microaggregation.common import Searches
from tests.assess.attacks.helpers import identity, shuffled, together
from tests.methods.microaggregation.test_common import TREE, WORDS, read, taxonomy
from tests.oracles import microaggregation as oracle
from tests.oracles import random_groups as floors

__all__ = ["taxonomy"]  # a fixture

TOPIC = dict(zip(WORDS, ["a/b/c", "a/b/d", "f/g", "j"], strict=False))


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(1)
    return read([(u, WORDS[int(rng.choice(5))], 0) for u in range(60) for _ in range(int(rng.integers(1, 12)))])


@pytest.mark.parametrize("compact", [False, True])
def test_it_is_the_literal_share(log, taxonomy, compact):
    release = qv.Odp(k=3, taxonomy=taxonomy, compact=compact).anonymize(log, seed=4)
    fresh = {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}
    released, original = defaultdict(Counter), defaultdict(Counter)
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        released[row["user"]][row["query"]] += 1
    names = log.user_text.to_pylist()
    for event in log.events.to_pylist():
        original[names[event["user_id"]]][log.query_text[event["query_id"]].as_py()] += 1
    for row in srp(release, qv.categorize(log, taxonomy), 3):
        shares = []
        for user, queries in original.items():
            before, after = (at_level(bag, row.level) for bag in (queries, released[fresh[user]]))
            if before:
                shares.append(oracle.srp(before, after))
        assert row.users == len(shares)
        assert row.mean == pytest.approx(np.mean(shares))
        assert row.best == pytest.approx(np.mean(sorted(shares)[-100:]))


def at_level(queries, level):
    found = Counter()
    for query, times in queries.items():
        path = oracle.level_path(TREE, TOPIC[query]) if query in TOPIC else []
        if len(path) >= level:
            found[path[level - 1]] += times
    return found


def test_the_log_as_it_is_keeps_everything(log, taxonomy):
    release = qv.Rules(max_characters=1000, link="user").anonymize(log)
    assert [row.mean for row in srp(release, qv.categorize(log, taxonomy), 2)] == [1, 1]


def test_groups_by_lot_keep_one_kth(taxonomy):
    """Users whose interests have nothing in common: of each, only his own quota is left."""
    log = read([(u, WORDS[u % 4], 0) for u in range(400) for _ in range(40)])
    searches = Searches.of(log)
    topic = np.array([WORDS.index(log.query_text[int(q)].as_py()) for q in searches.query])
    place = np.empty(400, int)
    for t in range(4):
        place[np.flatnonzero(topic == t)] = np.arange(100)
    groups = place.astype(np.int32)  # one user of each topic
    release = qv.Odp(k=4, taxonomy=taxonomy).release_groups(log, searches, groups, parts=0, seed=1, notes=[])
    assert qv.verify(release, log).holds
    links = qv.categorize(log, taxonomy)
    # `alpha` and `beta` share level 2, and so each other's quota there; on level 3 nobody shares anything.
    assert srp(release, links, 3)[2].mean == pytest.approx(1 / 4, abs=0.01)
    assert srp(qv.Odp(k=4, taxonomy=taxonomy).anonymize(log), links, 3)[2].mean == pytest.approx(1, abs=0.05)


def test_only_a_release_that_was_just_made_knows(log, taxonomy, tmp_path):
    qv.Odp(k=3, taxonomy=taxonomy).anonymize(log).save(tmp_path / "r")
    with pytest.raises(QueryveilError, match="needs a release that was just made"):
        srp(qv.Release.load(tmp_path / "r"), qv.categorize(log, taxonomy))


NOUNS = [
    *("dog", "cat", "horse", "violin", "piano", "guitar", "apple", "bread", "cheese", "car", "bicycle", "train"),
    *("king", "nurse", "lawyer", "river", "mountain", "island", "winter", "storm", "disease", "cancer", "money"),
    *("tax", "school", "teacher", "house", "garden", "ship", "war"),
]


@pytest.fixture(scope="module")
def many():
    """Users who mostly search for three nouns, of whom some search much more than others."""
    rng = np.random.default_rng(7)
    rows = []
    for u in range(240):
        for _ in range(int(rng.integers(1, 6)) ** 2):
            own = rng.random() < 0.8
            rows.append((u, NOUNS[int((u % 10) * 3 + rng.integers(3) if own else rng.integers(30))], 0))
    return read(rows)


@pytest.fixture(scope="module")
def links(many):
    return qv.categorize(many, "wordnet")


@pytest.fixture(scope="module")
def on_level(many, links):
    """Gives the categories of a bag of queries on a level of WordNet, literally."""
    start, node = links.nodes()
    parent = links.tree.parent.tolist()
    paths = {}
    for i, query in enumerate(many.query_text.to_pylist()):
        assert start[i + 1] - start[i] == 1
        path = [int(node[start[i]])]
        while path[-1] != 0:
            path.append(parent[path[-1]])
        paths[query] = path[::-1]

    def found(bag, level):
        at = Counter()
        for query, times in bag.items():
            if len(paths[query]) > level:
                at[paths[query][level]] += times
        return at

    return found


def bags(log):
    """The queries of every user, in the order of user ids."""
    found = [Counter() for _ in range(log.n_users)]
    for event in log.events.to_pylist():
        found[event["user_id"]][log.query_text[event["query_id"]].as_py()] += 1
    return found


def released_bags(release):
    """The released queries of every user; None for one who was left out."""
    rows = defaultdict(Counter)
    for row in pa.Table.from_batches(release.batches(), release.schema).to_pylist():
        rows[row.get("user", row.get("session"))][row["query"]] += 1
    found = [None] * release.log.n_users
    names = {name: i for i, name in enumerate(release.log.user_text.to_pylist())}
    for batch in release.user_map():
        for row in batch.to_pylist():
            user = names[row["original"]]
            found[user] = (found[user] or Counter()) + rows[row["released"]]
    return found


def band_of(log):
    return floors.bands([bag.total() for bag in bags(log)], random_groups.BANDS, random_groups.LEAST)


def test_the_level_is_the_first_on_which_groups_of_five_at_random_keep_at_most_half(many, links, on_level):
    mine, draw = bags(many), random.Random(1)
    kept = defaultdict(list)
    levels = range(1, links.tree.height + 1)
    for _ in range(5):
        group = [0] * many.n_users
        for place, user in enumerate(draw.sample(range(many.n_users), many.n_users)):
            group[user] = place // 5
        records = floors.pooled(mine, group, draw)
        for level in levels:
            pairs = [(on_level(a, level), on_level(b, level)) for a, b in zip(mine, records, strict=True)]
            kept[level].append(np.mean([oracle.srp(a, b) for a, b in pairs if a] or [1]))
    found = [level for level in levels if np.mean(kept[level]) <= 0.5]
    assert separating_level(many, links) == found[0] > 2


@pytest.mark.parametrize("method", [qv.Equality(k=36, link="user"), qv.Rules(max_characters=1000, link="user")])
def test_the_floor_of_single_records_is_that_of_permuted_ones(many, links, on_level, method):
    release = method.anonymize(many)
    found = profile_retention(release, links)
    profiles = [on_level(bag, found.level) for bag in bags(many)]
    records = [None if bag is None else on_level(bag, found.level) for bag in released_bags(release)]
    assert (None in records) == (method.name == "equality")
    floor = floors.permuted(profiles, records, band_of(many))
    shares = [oracle.srp(a, b or Counter()) for a, b in zip(profiles, records, strict=True) if a]
    assert found.users == len(shares)
    assert found.kept == pytest.approx(np.mean(shares))
    assert found.random == pytest.approx(floor, abs=0.02)
    assert found.value == pytest.approx(floors.above(np.mean(shares), floor), abs=0.04)


@pytest.mark.parametrize("compact", [False, True])
def test_the_floor_of_shared_records_is_that_of_groups_of_the_same_sizes(many, links, on_level, compact):
    release = qv.Search(k=4, taxonomy="wordnet", compact=compact).release(many, links, seed=1)
    found = profile_retention(release, links)
    group = user_records(release, "a test").group.tolist()
    assert min(Counter(group).values()) >= 4
    mine, draw, floor = bags(many), random.Random(2), []
    for _ in range(10):
        records = floors.pooled(mine, floors.regrouped(group, band_of(many), draw), draw)
        pairs = [(on_level(a, found.level), on_level(b, found.level)) for a, b in zip(mine, records, strict=True)]
        floor.append(np.mean([oracle.srp(a, b) for a, b in pairs if a]))
    assert found.random == pytest.approx(np.mean(floor), abs=0.02)


def test_profiles_kept_above_chance_are_all_in_the_log_itself_and_none_in_groups_at_random(many, links):
    assert profile_retention(identity(many), links).value == 1
    for release in (together(many, 4), shuffled(many)):
        assert profile_retention(release, links).value == pytest.approx(0, abs=0.04)
    # All in one group share one record, so a single draw decides.
    one = [profile_retention(together(many, seed=seed), links).value for seed in range(5)]
    assert np.mean(one) == pytest.approx(0, abs=0.1)
    assert profile_retention(qv.Odp(k=4).anonymize(many), links).value > 0.2


def test_a_bounded_sample_of_users(many, links, monkeypatch):
    monkeypatch.setattr(import_module("queryveil.assess.measures.srp"), "SAMPLE", 50)
    found = profile_retention(identity(many), links)
    assert found.users <= 50
    assert found.value == 1
    assert profile_retention(together(many, 4), links).value == pytest.approx(0, abs=0.1)


def test_where_no_level_separates_that_is_said(taxonomy):
    """Users who all search for the same."""
    log = read([(u, "alpha", 0) for u in range(40) for _ in range(4)])
    with pytest.raises(QueryveilError, match="No level of the taxonomy separates releases"):
        profile_retention(identity(log), qv.categorize(log, taxonomy))


def test_everybody_in_one_group_is_not_a_number_if_that_keeps_everything():
    assert np.isnan(random_groups.AboveRandom(1.0, 1.0, 5).value)
    assert random_groups.AboveRandom(0.6, 0.2, 5).value == pytest.approx(0.5)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=30), st.integers(0, 1000))
def test_values_stay_in_their_band(pairs, seed):
    values, band = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    found = permuted(values, band, np.random.default_rng(seed))
    for b in range(3):
        assert sorted(found[band == b].tolist()) == sorted(values[band == b].tolist())


@given(st.lists(st.integers(1, 50), min_size=1, max_size=450))
def test_bands_are_users_in_order_of_their_activity(sizes):
    n = len(sizes)
    searches = Searches(np.arange(n + 1), np.zeros(n, np.int32), np.array(sizes, np.int64))
    assert activity(searches).tolist() == floors.bands(sizes, random_groups.BANDS, random_groups.LEAST)


@given(
    st.lists(
        st.tuples(st.dictionaries(st.integers(0, 5), st.integers(1, 5), min_size=1), st.integers(-1, 3)),
        min_size=1,
        max_size=10,
    ),
    st.integers(0, 1000),
    st.booleans(),
    st.data(),
)
def test_records_of_groups_hold_what_their_members_give(users, seed, by_repetition, data):
    start = np.cumsum([0, *(len(bag) for bag, _ in users)])
    bag = [sorted(bag.items(), key=lambda item: -item[1]) for bag, _ in users]
    query, times = (np.array([item[i] for mine in bag for item in mine], np.int64) for i in (0, 1))
    group = np.array([g for _, g in users], np.int64)
    wanted = np.array(sorted(data.draw(st.sets(st.integers(0, len(users) - 1)))), np.int64)
    issued = Searches(start, query.astype(np.int32), times)
    records, of = group_records(issued, group, wanted, np.random.default_rng(seed), by_repetition=by_repetition)
    for user, record in zip(wanted.tolist(), of.tolist(), strict=True):
        here = slice(records.start[record], records.start[record + 1])
        found = Counter(dict(zip(records.query[here].tolist(), records.times[here].tolist(), strict=True)))
        members = [Counter(users[u][0]) for u in range(len(users)) if group[u] == group[user] >= 0]
        assert found.total() == sum(floors.quotas([member.total() for member in members])) if members else not found
        assert found <= sum(members, Counter())


def test_users_of_a_scrubbed_log_are_those_of_the_log():
    """A user whose every query is scrubbed shifts the ids of the others, and has no record."""
    users = [f"u{i}" for i in range(9) for _ in range(3)]
    queries = ["dog", "cat", "wolf", "violin", "piano", "cello"] * 4 + ["ann@example.com"] * 3
    for order in (1, -1):  # whichever end the user without a record is at
        log = qv.read_log(pa.table({"user": [f"{user}{order}" for user in users], "query": queries}))
        release = qv.Pipeline([qv.Scrub(), qv.Equality(k=2, link="user")]).anonymize(log, seed=1)
        found = {one.label: one.value for one in qv.evaluate(release, log, tests=5).measured}
        assert found["profile retention (SRP), level 1"] == 1


def test_groups_at_random_share_what_a_pipeline_left():
    """Records of one frequent query are as good as those of groups at random that have no other."""
    users = [f"u{i}" for i in range(12) for _ in range(4)]
    queries = [query for i in range(12) for query in ("dog", "violin", f"wolf {i}", f"piano {i}")]
    log = qv.read_log(pa.table({"user": users, "query": queries}))
    release = qv.Pipeline([qv.Equality(k=12), qv.Odp(k=3)]).anonymize(log, seed=1)
    found = user_records(release, "It")
    assert set(found.given.query) == set(found.released.query)
    assert len(set(found.issued.query)) == 26
    alone = user_records(qv.Odp(k=3).anonymize(log, seed=1), "It")
    assert alone.given is alone.issued
