"""Mechanisms that are not what they claim are refused, and honest ones are not."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import DifferentialPrivacy
from queryveil.claims.base import Evidence
from queryveil.claims.likelihood import FINE, REACH, Chosen, Counted, Noise, evidence_of_counts
from queryveil.methods.private import contributions, dp_set, noise, zealous
from queryveil.release import loaded
from tests.both import on_both_engines_weekly
from tests.methods.private.test_common import USERS, forged, released, rows_of_users
from tests.oracles import private as oracle
from tests.strategies import examples, table


def log_of(queries: int, least: int, most: int, each: int) -> qv.QueryLog:
    """Queries of so few to so many users, who have about `each` of them."""
    users = np.linspace(least, most, queries).round().astype(np.int64)
    query = np.repeat(np.arange(queries), users)
    user = np.arange(len(query)) % (len(query) // each)
    return qv.read_log(
        pa.table(
            {
                "user": pa.array(user).cast(pa.string()),
                "query": pa.array([f"{'abc'[i % 3]} q{i}" for i in query.tolist()]),
                "time": pa.array(np.arange(len(query))).cast(pa.timestamp("s")),
                "url": pa.array([f"http://h{i}.com" for i in query.tolist()]),
            }
        )
    )


@pytest.fixture(scope="module")
def spread():
    """Sums on both sides of the threshold."""
    return log_of(500, 5, 60, 5)


@pytest.fixture(scope="module")
def near():
    """Many sums near the threshold, for sets without counts."""
    return log_of(4000, 12, 40, 5)


HONEST = {"laplace": noise.laplace, "gaussian": noise.gaussian}


def broken(how, method):
    """Draw noise otherwise than stated."""
    thresholds = {step.scale: step.threshold for step in method.claim.steps}

    def made(kind):
        return lambda values, scale: how(values, scale, HONEST[kind], thresholds[scale])

    return {kind: made(kind) for kind in HONEST}


def per_sum(values, scale, draw, _):
    """The same noise for all things of the same sum."""
    distinct, place = np.unique(values, return_inverse=True)
    return values + draw(np.zeros(len(distinct), np.int64), scale)[place]


def lowered(values, scale, draw, threshold):
    noisy = draw(values, scale)
    if threshold is None:
        return noisy
    return np.where(noisy >= threshold - 2 * scale, np.maximum(noisy, threshold), 0)


def raised(values, scale, draw, threshold):
    noisy = draw(values, scale)
    return noisy if threshold is None else np.where(noisy >= threshold + 2 * scale, noisy, 0)


def cut(values, scale, draw, threshold):
    """What is released is decided without noise."""
    noisy = draw(values, scale)
    return noisy if threshold is None else np.where(values >= threshold, np.maximum(noisy, threshold), 0)


def on_half(values, scale, draw, _):
    return np.where(np.arange(len(values)) % 2 == 0, values, draw(values, scale))


def positive(values, scale, draw, _):
    """Only what noise made larger."""
    noisy = draw(values, scale)
    return np.where(noisy > values, noisy, 0)


BROKEN = {
    "none": lambda values, scale, draw, _: values,
    "a quarter": lambda values, scale, draw, _: draw(values, scale / 4),
    "a half": lambda values, scale, draw, _: draw(values, scale / 2),
    "twice": lambda values, scale, draw, _: draw(values, scale * 2),
    "on half": on_half,
    "the same for all": lambda values, scale, draw, _: values + draw(np.zeros(1, np.int64), scale)[0],
    "once a sum": per_sum,
    "rounded": lambda values, scale, draw, _: np.round(draw(values, scale) / 10).astype(np.int64) * 10,
    "positive": positive,
    "cut": cut,
    "lowered": lowered,
    "raised": raised,
}
METHODS = {
    "zealous": (qv.Zealous(max_queries_per_user=3, epsilon=1, delta=1e-3), "spread"),
    "zealous, first": (qv.Zealous(max_queries_per_user=3, epsilon=1, delta=1e-3, keep="first"), "spread"),
    "zealous, clicks": (qv.Zealous(max_queries_per_user=3, epsilon=2, delta=1e-3, clicks=True), "spread"),
    "dp-set": (qv.DpSet(max_queries_per_user=3, epsilon=1, delta=1e-3), "near"),
    "dp-set, one round": (qv.DpSet(max_queries_per_user=3, epsilon=1, delta=1e-3, rounds=1), "near"),
    "dp-set, counts": (qv.DpSet(max_queries_per_user=3, epsilon=1, delta=1e-3, counts=True), "spread"),
    "dp-set, n-grams, counts": (
        qv.DpSet(max_queries_per_user=3, epsilon=3, delta=1e-3, ngrams=1, counts=True),
        "spread",
    ),
}


def wrong(release: qv.Release) -> str | None:
    """What the check of differential privacy finds."""
    (claim,) = (claim for claim in release.manifest.claims if isinstance(claim, DifferentialPrivacy))
    with loaded(release, release.log) as found, release.log.workspace() as work:
        return claim.check(Evidence(release.log, work, tuple(release.schema.names), found))


def refused(method, log):
    """Whether a broken method is refused, in one of a few runs: a release may have too little in it by chance."""
    return any(wrong(method.anonymize(log)) is not None for _ in range(4))


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("name", ["zealous", "zealous, clicks", "dp-set", "dp-set, counts"])
def test_noise_that_is_not_as_stated_is_refused(name, how, request, monkeypatch):
    method, log = METHODS[name][0], request.getfixturevalue(METHODS[name][1])
    if how == "rounded" and name == "dp-set":
        pytest.skip("weights are in millions, and no count is released")
    for kind, draw in broken(BROKEN[how], method).items():
        monkeypatch.setattr(noise, kind, draw)
    assert refused(method, log)


@pytest.mark.parametrize("how", ["none", "a half", "on half", "the same for all", "rounded", "positive"])
def test_noise_of_counts_that_is_not_as_stated_is_refused_behind_ngrams(how, spread, monkeypatch):
    method = METHODS["dp-set, n-grams, counts"][0]
    for kind, draw in broken(BROKEN[how], method).items():
        monkeypatch.setattr(noise, kind, draw)
    assert refused(method, spread)


@pytest.mark.parametrize("name", ["zealous", "zealous, clicks", "dp-set", "dp-set, counts"])
def test_users_who_give_more_than_d_things_are_refused(name, request, monkeypatch):
    method, log = METHODS[name][0], request.getfixturevalue(METHODS[name][1])
    bound, weighed = contributions.bound, contributions.weighed
    for module in (zealous, dp_set):
        monkeypatch.setattr(module, "bound", lambda things, keys, d, keep: bound(things, keys, 1000, keep))
    monkeypatch.setattr(dp_set, "weighed", lambda work, given_, keys, d, n: weighed(work, given_, keys, 1000, n))
    assert wrong(method.anonymize(log)) is not None


@pytest.mark.parametrize("name", METHODS)
def test_honest_noise_is_accepted(name, request):
    method, log = METHODS[name][0], request.getfixturevalue(METHODS[name][1])
    assert [wrong(method.anonymize(log)) for _ in range(3)] == [None] * 3


RANDOM = [
    qv.Zealous(max_queries_per_user=2, threshold=4, scale=1, keep="random", clicks=True, min_users=1),
    qv.Zealous(max_queries_per_user=1, threshold=3, scale=1, keep="first"),
    qv.DpSet(max_queries_per_user=2, epsilon=3, delta=0.3, keep="random", ngrams=1, rounds=3, counts=True),
    qv.DpSet(max_queries_per_user=1, epsilon=3, delta=0.3, ngrams=2, rounds=2, counts=True),
    qv.DpSet(max_queries_per_user=2, epsilon=6, delta=0.3, rounds=3),
]


@settings(max_examples=examples(15))
@given(USERS, st.sampled_from(RANDOM))
def test_honest_releases_of_any_log_are_accepted(users, method):
    rows = [row._replace(url=f"http://{row.query.split()[0]}.com") for row in rows_of_users(users)]
    assert wrong(method.anonymize(qv.read_log(table(rows)))) is None


def assert_all_shared_queries_are_refused(log: qv.QueryLog, method: qv.Zealous | qv.DpSet) -> None:
    """The table of all queries of two users or more, under a promise for which the honest method releases nothing."""
    release = method.anonymize(log)
    assert released(release) == []
    assert wrong(release) is None
    count = {"count": 400} if "count" in release.schema.names else {}
    assert wrong(forged(release, rows=[{"query": f"q{i}", **count} for i in range(40)])) is not None


SHARED = table(rows_of_users([[f"q{(u + i) % 40}" for i in range(4)] for u in range(40)]))


@pytest.mark.parametrize(
    "method",
    [qv.Zealous(), qv.Zealous(keep="random"), qv.DpSet(), qv.DpSet(keep="random"), qv.DpSet(ngrams=1)],
    ids=str,
)
def test_all_shared_queries_are_not_what_noise_would_release(method):
    assert_all_shared_queries_are_refused(qv.read_log(SHARED), method)


@on_both_engines_weekly
def test_on_both_engines_all_shared_queries_are_refused(read):
    assert_all_shared_queries_are_refused(read(SHARED), qv.DpSet(rounds=1, counts=True))


def test_a_click_is_not_released_without_its_query(spread):
    release = METHODS["zealous, clicks"][0].anonymize(spread)
    rows = released(release)
    query = next(row["query"] for row in rows if row["url"] is not None)
    left = [row for row in rows if row["query"] != query or row["url"] is not None]
    assert wrong(forged(release, rows=left)) == "a click is released whose query is not"


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_tails_and_masses_are_those_of_the_noise(kind, scale):
    tail = oracle.laplace_tail if kind == "laplace" else oracle.gaussian_tail
    for k in (-5, -1, 0, 1, 2, 6):
        found = np.exp(Noise(kind, scale).log_tail(np.array([float(k)])))[0]
        assert found == pytest.approx(tail(scale, k), rel=1e-9)
        mass = np.exp(Noise(kind, scale).log_mass(np.array([float(k)])))[0]
        assert mass == pytest.approx(tail(scale, k) - tail(scale, k + 1), rel=1e-6, abs=1e-12)
    assert tail(scale, Noise(kind, scale).beyond(1e-3)) <= 1e-3


def test_the_tails_of_large_noise_go_on_where_sums_end():
    k = np.array([-5000.0, 0.0, 3.0, 20_000.0])
    below, above = Noise("gaussian", 4095.9).log_tail(k), Noise("gaussian", 4096.1).log_tail(k)
    assert below == pytest.approx(above, rel=1e-3)


@pytest.mark.parametrize(("kind", "scale"), [("laplace", 1.0), ("laplace", 4.0), ("gaussian", 2.0)])
def test_the_evidence_of_a_set_is_at_most_1_in_expectation(kind, scale):
    """Over all sets that can be released, each with its probability."""
    made, places = Noise(kind, scale), np.array([-3, -1, 0, 0, 4])
    bins = np.floor(places * FINE / scale).astype(np.int64) + REACH * FINE
    chosen, dropped = made.log_tail(-places.astype(float)), made.log_tail(1.0 + places)
    total = 0.0
    for some in itertools.product([False, True], repeat=len(places)):
        logs = np.where(some, chosen, dropped)
        counted = [np.bincount(bins, weights, minlength=2 * REACH * FINE) for weights in (None, some, logs)]
        found = Chosen(made, counted[0], counted[1].astype(np.int64), counted[2])
        total += math.exp(logs.sum() + found.evidence())
    assert 0.01 < total <= 1 + 1e-9


@pytest.mark.parametrize(
    ("kind", "floor", "censored"), [("laplace", 3, False), ("gaussian", 1, True), ("gaussian", 5, True)]
)
def test_the_evidence_of_counts_is_at_most_1_in_expectation(kind, floor, censored):
    """Over all pairs of counts that can be released, each with its probability."""
    made, exact, others = Noise(kind, 0.8), np.array([4.0, 2.0]), (np.array([5.0, 5.0]), np.array([9.0, 2.0]))
    total = 0.0
    for counts in itertools.product(range(floor, 17), repeat=2):
        part = Counted(made, np.array(counts, float), exact, exact, floor, censored, others, np.array([2, 1]))
        total += math.exp(float(part.log_stated.sum()) + evidence_of_counts([part]))
    assert 0.1 < total <= 1 + 1e-6
