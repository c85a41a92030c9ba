"""Audits: methods that keep their promise pass, and those with too little noise do not."""

import math

import pytest

import queryveil as qv
from queryveil.assess import audits
from queryveil.assess.audits import audit
from queryveil.errors import QueryveilError
from queryveil.methods.private import contributions, dp_set, noise, zealous
from queryveil.methods.private.contributions import bound

METHODS = [
    qv.Zealous(max_queries_per_user=1, epsilon=1, delta=0.01),
    qv.Zealous(max_queries_per_user=2, epsilon=2, delta=0.01, clicks=True, keep="random"),
    qv.DpSet(max_queries_per_user=1, epsilon=2, delta=0.01, rounds=1),
    qv.DpSet(max_queries_per_user=2, epsilon=3, delta=0.01, rounds=2, counts=True),
    qv.DpSet(max_queries_per_user=1, epsilon=4, delta=0.01, rounds=1, ngrams=2),
    qv.DpSet(max_queries_per_user=2, epsilon=4, delta=0.01, rounds=2, ngrams=1, keep="first"),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_lower_bound_does_not_exceed_the_claim(method):
    found = audit(method, confidence=0.9999)
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


CLICKS = qv.Zealous(max_queries_per_user=1, epsilon=2, delta=0.01, clicks=True)
COUNTS = qv.DpSet(max_queries_per_user=1, epsilon=2, delta=0.01, rounds=1, counts=True)
ROUNDS = qv.DpSet(max_queries_per_user=1, epsilon=1, delta=0.01, rounds=2)
WORDS = qv.DpSet(max_queries_per_user=1, epsilon=2, delta=0.01, rounds=1, ngrams=1)


@pytest.mark.parametrize(
    ("module", "method", "table", "turn", "event"),
    [
        (zealous, CLICKS, "public clicks", 0, "of clicks"),
        (dp_set, COUNTS, "public counts", 0, "the sum of counts"),
        (dp_set, ROUNDS, "new queries", 1, "the rows released"),
        (dp_set, WORDS, "public ngrams", 0, "the rows released"),
    ],
    ids=["clicks", "counts", "second round", "n-grams"],
)
def test_one_step_with_too_little_noise_is_caught(module, method, table, turn, event, monkeypatch):
    turns = []

    def publish(log, work, sums, keys, kind, scale, threshold, name):
        if name == table:
            turns.append(name)
            scale = scale / 8 if (len(turns) - 1) % (turn + 1) == turn else scale
        return contributions.publish(log, work, sums, keys, kind, scale, threshold, name)

    monkeypatch.setattr(module, "publish", publish)
    found = audit(method, runs=3000)
    assert not found.holds
    assert event in max(found.trials, key=lambda trial: trial.epsilon).event


@pytest.mark.parametrize(
    ("module", "method", "users"),
    [
        (zealous, METHODS[0], [5, 7]),
        (zealous, qv.Zealous(max_queries_per_user=1, epsilon=1, delta=0.01, keep="first"), [5, 7]),
        (zealous, qv.Zealous(max_queries_per_user=1, epsilon=1, delta=0.01, keep="random"), [5, 7]),
        (dp_set, METHODS[2], [1]),
    ],
    ids=["frequent", "first", "random", "weights"],
)
def test_a_bound_on_users_that_does_not_hold_is_caught(module, method, users, monkeypatch):
    """Noise is made for d queries a user, and he counts for twice as many, or with four times the weight."""
    if module is zealous:
        monkeypatch.setattr(module, "bound", lambda things, keys, d, keep: bound(things, keys, 2 * d, keep))
    else:
        monkeypatch.setattr(contributions, "WHOLE", 4 * contributions.WHOLE)
    assert not audit(method, runs=8000, users=users).holds


def test_counts_of_repetitions_are_caught(monkeypatch):
    """The user who is added repeats himself, and must not count for more."""

    def counted(bounded, keys, least):
        return (
            f"SELECT g.query_id AS query_id, count(*) AS n FROM ({bounded}) AS g JOIN events e"
            f" ON e.user_id = g.user_id AND e.query_id = g.query_id GROUP BY g.query_id HAVING count(*) >= {least}"
        )

    monkeypatch.setattr(zealous, "counted", counted)
    assert not audit(METHODS[0], runs=2000).holds


def test_a_threshold_that_is_too_low_is_caught(monkeypatch):
    method = qv.Zealous(max_queries_per_user=1, epsilon=1, delta=0.01, min_users=1)
    monkeypatch.setattr(noise.Noisy, "__init__", _lowered(noise.Noisy.__init__))
    found = audit(method, users=[0])
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


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"runs": 1}, "The 'runs' of an audit must be at least 2. Got 1 instead."),
        ({"users": ()}, "The 'users' of an audit must be some numbers of at least 0. Got () instead."),
        ({"users": [3, -1]}, "The 'users' of an audit must be some numbers of at least 0. Got (3, -1) instead."),
        ({"confidence": 1}, "The 'confidence' of an audit must be in (0, 1). Got 1 instead."),
        ({"confidence": 0.0}, "The 'confidence' of an audit must be in (0, 1). Got 0.0 instead."),
        ({"confidence": math.nan}, "The 'confidence' of an audit must be in (0, 1). Got nan instead."),
        ({"method": qv.Equality()}, "An audit takes Zealous or DpSet with its parameters"),
    ],
    ids=str,
)
def test_bad_arguments_are_told_in_a_sentence(given, sentence):
    with pytest.raises(QueryveilError) as error:
        audit(**{"method": METHODS[0], **given})
    assert sentence in str(error.value)
