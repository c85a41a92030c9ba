"""Attacks on a series: differencing, planted accounts, linkage across releases."""

import pytest

import queryveil as qv
from tests.series.conftest import WEEK, Made, log


def by_attack(made, **given):
    found = made.series.attack(made.releases, made.logs, **given)
    return found, {(one.attack, one.setting): one for one in found.findings}


def test_differencing_finds_nothing_in_a_series_and_something_in_its_control(tmp_path):
    made = Made(tmp_path, qv.Equality(k=2))
    made.add(log(("a", "cats", 1), ("b", "cats", 2), ("c", "dogs", 3)))
    made.add(log(("c", "cats", 30), ("d", "dogs", 31)))  # cats: one user more, which a cumulative release would show
    made.add(log(("d", "cats", 60), ("a", "cats", 61), ("e", "dogs", 62)))
    found, one = by_attack(made)
    differencing = one["state_differencing", ""]
    assert differencing.estimate.value == 0
    # Of the cumulative log: cats +1 user (day 2), +2 users (day 3), dogs +1 user (day 3).
    assert differencing.control.value == pytest.approx(2 / 3)
    assert "3 of 5 users would be behind" in differencing.beside or "2 of 5 users" in differencing.beside
    assert [(e.cumulative_changes, e.cumulative_exposed) for e in found.exposure] == [(0, 0), (1, 1), (2, 1)]
    assert [e.exposed for e in found.exposure] == [0, 0, 0]


def test_planted_accounts_and_a_newcomer(week):
    _, one = by_attack(week)
    newcomer = one["newcomer", "1 planted account"]
    assert (newcomer.estimate.value, newcomer.control.value) == (1, 0)
    assert newcomer.trials == 2  # secret diary and birds wait
    assert one["newcomer", "2 planted accounts"].control.value == 1


def test_secret_thresholds_hinder_the_newcomer_attack(tmp_path):
    made = Made(tmp_path, qv.Equality(k=2, jitter=0.4), seed=7)
    made.add(log(*((f"u{i % 9}", f"private query {i}", i % 20) for i in range(80)), ("a", "cats", 1), ("b", "cats", 2),
                 ("c", "cats", 2), ("d", "cats", 2), ("e", "cats", 2), ("f", "cats", 2), ("g", "cats", 2)))  # fmt: skip
    _, one = by_attack(made)
    assert 0.2 < one["newcomer", "1 planted account"].estimate.value < 0.6


def test_linkage_across_releases(tmp_path):
    made = Made(tmp_path, qv.Equality(k=2, link="user"))
    for day in range(2):
        made.add(
            log(*((f"u{i}", f"query {(i + shift) // 2}", 24 * day + i % 20) for i in range(30) for shift in (0, 1)))
        )
    _, one = by_attack(made)
    linkage = one["release_linkage", ""]
    assert linkage.estimate.value > 0.5  # everybody repeats two queries, of which one other user has both or one
    assert linkage.control.value < linkage.estimate.value
    assert linkage.succeeds


def test_without_links_there_is_no_linkage(week):
    found, _ = by_attack(week)
    assert [one.attack for one in found.skipped] == ["release_linkage"]
    assert "tried on this series" in found.summary


def test_other_releases_or_logs_are_refused(week):
    with pytest.raises(qv.QueryveilError, match="not the releases of this ledger: release 3 is missing"):
        week.series.attack(week.releases[:-1], week.logs)
    with pytest.raises(qv.QueryveilError, match="not the logs of this ledger: another log"):
        week.series.attack(week.releases, [week.logs[0], log(*WEEK[0]), week.logs[2]])


def test_a_private_series_promises_no_number_of_users(tmp_path):
    method = qv.Zealous(epsilon=50, delta=0.1, max_queries_per_user=2)
    made = Made(tmp_path, method, budget_epsilon=100, budget_delta=0.3)
    made.add(log(*((f"u{i}", "cats", i % 20) for i in range(60))))
    found, _ = by_attack(made)
    assert {one.attack for one in found.skipped} == {"state_differencing", "newcomer", "release_linkage"}
