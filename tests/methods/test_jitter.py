"""Secret thresholds: each query needs a secret number of further users."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.methods.jitter import _drawn, _key
from tests.both import on_both_engines_weekly


def many(queries=200, users=8):
    """Queries of 2 to 8 users."""
    rows = [(f"u{user}", f"query {query}") for query in range(queries) for user in range(2 + query % (users - 1))]
    return pa.table({"user": [user for user, _ in rows], "query": [query for _, query in rows]})


def released(log, method, seed=1):
    return set(method.anonymize(log, seed=seed).to_arrow()["query"].to_pylist())


def draws(queries, chance, times=0, seed=1):
    ids = pa.array(np.arange(len(queries)), pa.int32())
    batch = pa.record_batch({"query_id": ids, "query": queries, "times": [times] * len(queries)})
    return _drawn(batch, key=_key(seed), chance=chance)["more"].to_numpy()


def test_draws_are_geometric():
    found = draws([f"q{i}" for i in range(20_000)], 0.5)
    share = Counter(found.tolist())
    for more in range(5):
        assert share[more] / len(found) == pytest.approx(0.5 ** (more + 1), abs=0.015)


def test_draws_follow_from_seed_query_and_earlier_releases():
    queries = [f"q{i}" for i in range(200)]
    first = draws(queries, 0.3)
    assert (first == draws(queries, 0.3)).all()
    assert (first[::-1] == draws(queries[::-1], 0.3)).all()
    assert (first != draws(queries, 0.3, seed=2)).any()
    assert (first != draws(queries, 0.3, times=1)).any()


@on_both_engines_weekly
def test_a_query_needs_k_and_its_draw(read):
    log = read(many())
    method = qv.Equality(k=2, jitter=0.5)
    queries = [f"query {i}" for i in range(200)]
    users = np.array([2 + i % 7 for i in range(200)])
    expected = {query for query, ok in zip(queries, users >= 2 + draws(queries, 0.5), strict=True) if ok}
    assert 0 < len(expected) < 200
    assert released(log, method) == expected


@pytest.mark.parametrize("method", [qv.Equality(k=3, jitter=0.5), qv.Rules(min_query_users=3, jitter=0.5)])
def test_the_promise_stays_and_the_release_can_be_made_again(tmp_path, method):
    log = qv.read_log(many())
    release = method.anonymize(log)
    assert released(log, method, release.seed) < released(log, method.model_copy(update={"jitter": None}))
    release.save(tmp_path / "r")
    release.save_certificate(tmp_path / "r.certificate")
    found = qv.verify(tmp_path / "r", log, certificate=tmp_path / "r.certificate")
    assert found.holds
    assert any("byte for byte" in verdict.claim for verdict in found.verdicts)
    without = qv.verify(tmp_path / "r", log)
    assert without.holds
    assert "needs its seed" in without.unchecked[0]


def test_a_step_of_a_pipeline(tmp_path):
    log = qv.read_log(many())
    pipeline = qv.Pipeline([qv.Equality(k=2, jitter=0.3), qv.Rules(max_terms=5)])
    assert released(log, pipeline) == released(log, qv.Equality(k=2, jitter=0.3))
    assert pipeline.repeats == "seed"


def test_rules_need_a_threshold():
    with pytest.raises(qv.QueryveilError, match="set 'min_query_users' too"):
        qv.Rules(max_terms=3, jitter=0.5)


@pytest.mark.parametrize("jitter", [0, 1, 1.5, -0.1])
def test_a_chance_is_between_0_and_1(jitter):
    with pytest.raises(qv.QueryveilError, match=r"must be a number in \(0, 1\)"):
        qv.Equality(jitter=jitter)


def test_explain_says_that_the_threshold_is_secret(tmp_path):
    log = qv.read_log(many())
    qv.Equality(k=2, jitter=0.5).anonymize(log).save(tmp_path / "r")
    reasons = qv.explain(tmp_path / "r", log, "query 3").reasons
    assert any("secret" in reason.rule and reason.passed is None for reason in reasons)
