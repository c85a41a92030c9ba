"""Audits: methods that keep their promise pass, and those with too little noise do not."""

import math

import pytest

import queryveil as qv
from queryveil import audits
from queryveil.audits import audit
from queryveil.errors import QueryveilError
from queryveil.methods import noise

METHODS = [
    qv.Zealous(d=1, epsilon=1, delta=0.01),
    qv.Zealous(d=2, epsilon=2, delta=0.01, clicks=True, which="random"),
    qv.DpSet(d=1, epsilon=2, delta=0.01, rounds=1),
    qv.DpSet(d=2, epsilon=3, delta=0.01, rounds=2, counts=True),
    qv.DpSet(d=1, epsilon=4, delta=0.01, rounds=1, ngrams=2),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_lower_bound_does_not_exceed_the_claim(method):
    found = audit(method, runs=4000, confidence=0.9999)
    assert found.holds
    assert found.claimed == method.epsilon


def test_the_audit_of_laplace_noise_comes_close_to_the_claim():
    found = audit(METHODS[0], runs=8000, confidence=0.9999)
    assert 0.6 < found.epsilon <= 1


@pytest.mark.parametrize(("method", "kind"), [(METHODS[0], "laplace"), (METHODS[2], "gaussian")], ids=str)
def test_a_third_of_the_noise_is_caught(method, kind, monkeypatch):
    honest = getattr(noise, kind)
    monkeypatch.setattr(noise, kind, lambda values, scale: honest(values, scale / 3))
    assert not audit(method, runs=4000).holds


def test_a_threshold_that_is_too_low_is_caught(monkeypatch):
    method = qv.Zealous(d=1, epsilon=1, delta=0.01, min_users=1)
    monkeypatch.setattr(noise.Noisy, "__init__", _lowered(noise.Noisy.__init__))
    found = audit(method, runs=4000, users=[0])
    assert not found.holds


def _lowered(init):
    def lowered(self, keys, kind, scale, threshold):
        init(self, keys, kind, scale, threshold - 3)

    return lowered


def test_the_bound_is_that_of_clopper_and_pearson():
    # Of 10 runs all and none: 0.05 = p^10, and (1 - q)^10 = 0.05.
    low, high = 0.05**0.1, 1 - 0.05**0.1
    assert audits._one_way(10, 0, 10, 0.1, 0.05) == pytest.approx(math.log((low - 0.1) / high))
    assert audits._one_way(0, 10, 10, 0.1, 0.05) == 0


def test_one_run_is_refused():
    with pytest.raises(QueryveilError, match=r"must be at least 2\. Got 1 instead"):
        audit(METHODS[0], runs=1)
