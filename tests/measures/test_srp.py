"""SRP against the literal share, and its two ends: the log as it is, and users thrown together by lot."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.measures import srp
from queryveil.methods.microaggregation import Searches
from tests.methods.test_microaggregation import TREE, WORDS, knowledge, read
from tests.oracles import microaggregation as oracle

__all__ = ["knowledge"]  # a fixture

TOPIC = dict(zip(WORDS, ["a/b/c", "a/b/d", "f/g", "j"], strict=False))


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(1)
    return read([(u, WORDS[int(rng.choice(5))], 0) for u in range(60) for _ in range(int(rng.integers(1, 12)))])


@pytest.mark.parametrize("compact", [False, True])
def test_it_is_the_literal_share(log, knowledge, compact):
    release = qv.Odp(k=3, knowledge=knowledge, compact=compact).anonymize(log, seed=4)
    fresh = {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}
    released, original = defaultdict(Counter), defaultdict(Counter)
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        released[row["user"]][row["query"]] += 1
    names = log.user_text.to_pylist()
    for event in log.events.to_pylist():
        original[names[event["user_id"]]][log.query_text[event["query_id"]].as_py()] += 1
    for row in srp(release, qv.link(log, knowledge), 3):
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


def test_the_log_as_it_is_keeps_everything(log, knowledge):
    release = qv.Rules(max_characters=1000, users="fresh").anonymize(log)
    assert [row.mean for row in srp(release, qv.link(log, knowledge), 2)] == [1, 1]


def test_groups_by_lot_keep_one_kth(knowledge):
    """Users whose interests have nothing in common: of each, only his own quota is left."""
    log = read([(u, WORDS[u % 4], 0) for u in range(400) for _ in range(40)])
    searches = Searches.of(log)
    topic = np.array([WORDS.index(log.query_text[int(q)].as_py()) for q in searches.query])
    place = np.empty(400, int)
    for t in range(4):
        place[np.flatnonzero(topic == t)] = np.arange(100)
    groups = place.astype(np.int32)  # one user of each topic
    release = qv.Odp(k=4, knowledge=knowledge).release_groups(log, searches, groups, parts=0, seed=1, notes=[])
    assert qv.verify(release, log).holds
    links = qv.link(log, knowledge)
    # `alpha` and `beta` share level 2, and so each other's quota there; on level 3 nobody shares anything.
    assert srp(release, links, 3)[2].mean == pytest.approx(1 / 4, abs=0.01)
    assert srp(qv.Odp(k=4, knowledge=knowledge).anonymize(log), links, 3)[2].mean == pytest.approx(1, abs=0.05)


def test_only_a_release_that_was_just_made_knows(log, knowledge, tmp_path):
    qv.Odp(k=3, knowledge=knowledge).anonymize(log).save(tmp_path / "r")
    with pytest.raises(QueryveilError, match="needs a release that was just made"):
        srp(qv.Release.load(tmp_path / "r"), qv.link(log, knowledge))
