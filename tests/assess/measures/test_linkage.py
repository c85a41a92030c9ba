"""RL against the literal comparison of all records with all users."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.measures import record_linkage
from queryveil.assess.measures.linkage import linkage_chances
from queryveil.errors import QueryveilError
from queryveil.release import with_user_map
from tests.methods.microaggregation.test_common import WORDS, read, taxonomy
from tests.methods.microaggregation.test_mdav import EVENT
from tests.strategies import examples

__all__ = ["taxonomy"]  # a fixture


def literal(log, release):
    original, released = defaultdict(Counter), defaultdict(Counter)
    names = log.user_text.to_pylist()
    for event in log.events.to_pylist():
        original[names[event["user_id"]]][log.query_text[event["query_id"]].as_py()] += 1
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        released[row["session" if "session" in row else "user"]][row["query"]] += 1
    found = []
    for batch in release.user_map():
        for row in batch.to_pylist():
            record = released[row["released"]]
            common = {user: (record & log).total() for user, log in original.items()}
            best = [user for user, n in common.items() if n == max(common.values())]
            found.append(1 / len(best) if row["original"] in best else 0)
    return 100 * np.mean(found)


@settings(max_examples=examples(13))
@given(
    st.lists(EVENT, min_size=6, max_size=40),
    st.sampled_from(["odp", "odp compact", "semantic", "strings", "features", "rules"]),
    st.integers(2, 3),
)
def test_it_is_the_literal_comparison(taxonomy, events, kind, k):
    log = read(events)
    if log.n_users < k:
        return
    method = {
        "odp": qv.Odp(k=k, taxonomy=taxonomy),
        "odp compact": qv.Odp(k=k, taxonomy=taxonomy, compact=True),
        "semantic": qv.Mdav(k=k, taxonomy=taxonomy, linker="terms"),
        "strings": qv.Mdav(k=k, distance="strings"),
        "features": qv.Mdav(k=k, distance="features"),
        "rules": qv.Rules(max_characters=1000, link="user"),
    }[kind]
    if kind == "semantic" and len({u for u, query, _ in events if set(query.split()) - {"unknown"}}) < k:
        return
    release = method.anonymize(log, seed=1)
    found = record_linkage(release)
    assert found == pytest.approx(literal(log, release))
    if kind != "rules":
        assert found <= 100 / k + 1e-9


def test_the_log_as_it_is_links_everybody_who_differs():
    log = read([(u, f"{WORDS[u % 4]} {u}", 0) for u in range(8)])
    assert record_linkage(qv.Rules(max_characters=1000, link="user").anonymize(log)) == 100


def test_a_record_without_a_query_of_the_log_fits_all(tmp_path):
    rows = [(u, f"u{u}@example.com beta", 0) for u in range(10)] + [(u, "alpha", 0) for u in range(10, 20)]
    log = read(rows)
    made = qv.Rules(max_characters=1000, link="user").anonymize(qv.scrub(log, "mask"))
    made.save(tmp_path / "r")
    made.save_user_map(tmp_path / "map.csv")
    release = with_user_map(qv.Release.load(tmp_path / "r"), log, tmp_path / "map.csv")
    # Ten fit all twenty, and ten fit one another.
    assert record_linkage(release) == pytest.approx(literal(log, release)) == pytest.approx(7.5)
    for seed in range(3):
        permuted = linkage_chances(release, seed)
        assert (permuted == 1 / 20).sum() == 10
        assert set(permuted.tolist()) <= {0, 1 / 20, 1 / 10}


def test_without_users_there_is_nothing_to_link():
    log = read([(u, "alpha", 0) for u in range(8)])
    with pytest.raises(QueryveilError, match="RL needs a release that was just made, with users"):
        record_linkage(qv.Equality(k=2, link="none").anonymize(log))


def test_of_a_release_by_sessions_every_session_is_a_record():
    rng = np.random.default_rng(4)
    rows = [
        {"user": f"u{u}", "query": WORDS[int(rng.choice([u % 4, rng.integers(4)]))], "time": f"2006-03-{1 + day:02}"}
        for u in range(12)
        for day in range(4)
        for _ in range(2)
    ]
    log = qv.read_log(pa.Table.from_pylist(rows))
    release = qv.Rules(max_characters=1000, link="session").anonymize(log)
    assert len(linkage_chances(release)) == 48
    assert record_linkage(release) == pytest.approx(literal(log, release))
