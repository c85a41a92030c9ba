"""Intervals hold the truth as often as they say."""

from dataclasses import replace

import numpy as np
import pytest

from queryveil.assess.attacks.finding import (
    Estimate,
    Finding,
    anonymity_loss,
    estimated,
    f1,
    least_gain,
    mean,
    share,
    surest_loss,
)
from tests.strategies import weekly

TRIES = 1_000


def holds(estimate, truth):
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize("n", [12, 200])
@pytest.mark.parametrize("truth", [0.02, 0.3, 0.9])
def test_the_interval_of_a_share_holds_it_at_least_95_times_in_100(n, truth):
    hits = np.random.default_rng(n).binomial(n, truth, TRIES)
    # Two standard deviations of the simulation itself.
    assert np.mean([holds(share(int(h), n), truth) for h in hits]) >= 0.95 - 0.014


def test_a_share_is_not_wider_than_it_must_be():
    hits = np.random.default_rng(1).binomial(200, 0.3, TRIES)
    assert np.mean([holds(share(int(h), 200), 0.3) for h in hits]) <= 0.985


def test_known_values_of_clopper_and_pearson():
    assert share(0, 10) == Estimate(0.0, 0.0, pytest.approx(1 - 0.025 ** (1 / 10)))
    assert share(10, 10) == Estimate(1.0, pytest.approx(0.025 ** (1 / 10)), 1.0)
    assert (share(4, 10).low, share(4, 10).high) == (pytest.approx(0.12155, abs=1e-5), pytest.approx(0.73762, abs=1e-5))
    assert share(0, 0) == Estimate(0.0, 0.0, 1.0)


def test_chances_have_a_share_whose_interval_holds_their_mean():
    rng = np.random.default_rng(5)
    chances = rng.choice([0, 1 / 5, 1 / 2, 1], p=[0.3, 0.4, 0.2, 0.1], size=(TRIES, 60))
    truth = 0.4 / 5 + 0.2 / 2 + 0.1
    assert np.mean([holds(share(float(row.sum()), 60), truth) for row in chances]) >= 0.95


def test_the_bootstrap_of_a_mean_holds_it_about_as_often_as_it_says():
    rng = np.random.default_rng(7)
    found = [holds(mean(rng.exponential(2, 80), seed, 0, 100), 2) for seed in range(400)]
    assert 0.90 <= np.mean(found) <= 0.985


def test_the_bootstrap_of_an_index_holds_its_mean_about_as_often_as_it_says():
    """Most groups are near 0 and a few near 1, as in a split by topic."""
    rng = np.random.default_rng(11)
    values = np.where(rng.random((400, 150)) < 0.2, rng.uniform(0.5, 1, (400, 150)), rng.normal(0, 0.1, (400, 150)))
    truth = 0.2 * 0.75
    assert 0.92 <= np.mean([holds(mean(row, seed, -1, 1), truth) for seed, row in enumerate(values)]) <= 0.98


def test_of_a_few_values_nothing_is_known():
    assert mean(np.array([0.5, 0.7]), 0, -1, 1) == Estimate(pytest.approx(0.6), -1, 1)


def test_the_bootstrap_of_f1_holds_it_about_as_often_as_it_says():
    shares = np.array([0.3, 0.1, 0.2, 0.4])
    truth = 2 * 0.3 / (2 * 0.3 + 0.1 + 0.2)
    drawn = np.random.default_rng(3).multinomial(300, shares, 400)
    assert 0.92 <= np.mean([holds(f1(*map(int, row), seed), truth) for seed, row in enumerate(drawn)]) <= 0.98
    assert f1(0, 0, 5, 5, 0).value == 0


def test_rates_are_shown_in_100_000():
    assert estimated(Estimate(0.0167, 0.015, 0.0184), "rate") == "1,670 in 100,000 (1,500 to 1,840)"


def found(unit="share", value=0.5, low=0.4, high=0.6, baseline=0.1, control=0.1):
    return Finding(
        "sybil", "", "n", unit, Estimate(value, low, high), baseline, "g",
        control if control is None or isinstance(control, Estimate) else Estimate(control, control, control), "c", 10,
    )  # fmt: skip


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("truth", [0.005, 0.05, 0.3, 0.7])
def test_a_share_that_is_that_of_the_control_is_rarely_called_a_success(n, truth):
    """At most 2.5 times in 100, and two standard deviations of the simulation."""
    rng = np.random.default_rng(n)
    pairs = rng.binomial(n, truth, (TRIES, 2)).tolist()
    assert np.mean([least_gain(share(a, n), share(b, n)) > 0 for a, b in pairs]) <= 0.025 + 0.01


@pytest.mark.parametrize("truth", [0.05, 0.2, 0.4])
def test_so_is_one_of_people_who_are_either_in_it_or_in_the_control(truth):
    n = 300
    drawn = np.random.default_rng(3).multinomial(n, [truth, truth, 1 - 2 * truth], 2 * TRIES).tolist()

    def alarm(a, b):
        together = -a * b / np.sqrt(a * (n - a) * b * (n - b))
        return least_gain(share(a, n), share(b, n), together) > 0

    assert np.mean([alarm(a, b) for a, b, _ in drawn]) <= 0.025 + 0.007
    if truth == 0.4:  # as if they were others
        assert np.mean([least_gain(share(a, n), share(b, n)) > 0 for a, b, _ in drawn]) > 0.035


@weekly
def test_a_mean_that_is_that_of_the_control_is_rarely_called_a_success():
    """About 3 times in 100: the bootstrap of a mean is a little narrow."""
    rng = np.random.default_rng(5)
    tried = [
        least_gain(mean(one, seed, -1, 1), mean(other, seed, -1, 1)) > 0
        for seed, (one, other) in enumerate(rng.normal(0, 0.2, (TRIES, 2, 40)))
    ]
    assert np.mean(tried) <= 0.031 + 0.011


def test_intervals_may_overlap_where_the_difference_is_sure():
    """13 against 3 of 617 is no chance (Fisher's exact test: 1 in 100), although the intervals overlap."""
    one, other = share(13, 617), share(3, 617)
    assert one.low < other.high
    assert least_gain(one, other) > 0 > least_gain(share(9, 617), other)
    assert found(value=one.value, low=one.low, high=one.high, baseline=0, control=other).succeeds


def test_the_worst_correlation_asks_for_intervals_apart():
    one, other = share(40, 100), share(20, 100)
    assert least_gain(one, other, -1) == pytest.approx(one.low - other.high)
    assert least_gain(one, other, -1) < least_gain(one, other) < least_gain(one, other, 1)


def test_the_example_of_newcombe_within_a_hundredth():
    """56 of 70 against 48 of 80: from 0.0524 by the intervals of Wilson; those of Clopper and Pearson are wider."""
    assert 0.0524 - 0.01 < least_gain(share(56, 70), share(48, 80)) < 0.0524


def test_success_is_to_beat_guessing_and_the_control_by_more_than_chance():
    assert found().succeeds
    assert not found(baseline=0.45).succeeds
    assert not found(control=0.45).succeeds
    assert not replace(found(), gave_up=True).succeeds
    assert not found(value=0, low=0).succeeds
    assert found(control=None).succeeds
    assert found(unit="accounts", value=1, low=1, high=1, baseline=5, control=None).succeeds
    assert not found(unit="accounts", value=5, low=5, high=5, baseline=5, control=None).succeeds


@pytest.mark.parametrize(
    ("precision", "recall", "baseline", "loss"),
    [
        (1, 1, 0, 1),
        (0.5, 1, 0.5, 0),
        (0.2, 1, 0.5, -0.6),
        (1, 0.01, 0, 1 - (2 / 4) ** 3),
        (0.5, 0.1, 0.2, (0.5 * (1 - (1 / 4) ** 3) - 0.2) / 0.8),
        (1, 1e-5, 0, 0),
    ],
)
def test_anonymity_loss_is_the_published_one(precision, recall, baseline, loss):
    assert anonymity_loss(precision, recall, baseline) == pytest.approx(loss)


def test_who_is_sure_of_half_gains_by_keeping_silent_about_the_rest():
    right, sure = np.repeat([1.0, 0.0], 40), np.repeat([0.9, 0.1], 40)
    assert surest_loss(right, sure, 0.0) == pytest.approx(1 - (np.log10(0.5) / -4) ** 3)
    assert surest_loss(right, -sure, 0.0) == pytest.approx(0.5)
    # A few sure predictions may all be right by chance.
    assert surest_loss(np.repeat([1.0, 0.0], [5, 75]), np.repeat([0.9, 0.1], [5, 75]), 0.0) == pytest.approx(5 / 80)
