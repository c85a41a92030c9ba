"""Release after release: events wait, leave together, and leave once."""

import json
import shutil
import stat
from collections import Counter
from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queryveil as qv
from tests.oracles.series import Event, simulate
from tests.series.conftest import BEGIN, WEEK, Made, log, queries, rows
from tests.strategies import examples

EVENTS = st.tuples(st.sampled_from("abcde"), st.sampled_from(["cats", "dogs", "big cats", "x"]), st.integers(0, 23))
PERIODS = st.lists(st.lists(EVENTS, min_size=1, max_size=12), min_size=1, max_size=5)


def spread(periods):
    """Events of each period in a day of its own; an event is one user, query and time."""
    return [list(dict.fromkeys((u, q, 24 * day + hour) for u, q, hour in one)) for day, one in enumerate(periods)]


def as_events(day):
    return [Event(user, query, hour) for user, query, hour in day]


def test_queries_leave_once_enough_users_wait(week):
    assert [queries(place) for place in week.releases] == [
        ["cats", "cats"],
        ["dogs", "dogs"],
        ["cats"] * 2 + ["fish"] * 2,
    ]


def test_the_verifier_accepts_the_series(week):
    assert week.wrong() == []


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PERIODS, st.sampled_from([None, "2days"]))
def test_a_series_is_the_literal_one(tmp_path_factory, periods, retention):
    days = spread(periods)
    made = Made(tmp_path_factory.mktemp("series"), qv.Equality(k=2), retention=retention)
    expected = simulate([as_events(day) for day in days], 2, None if retention is None else 48)
    for day, simulated in zip(days, expected, strict=True):
        period = made.add(log(*day))
        assert period.released == len(simulated.released)
        assert period.expired == len(simulated.expired)
        assert period.waiting == len(simulated.waiting)
        if period.release is not None:
            released = Counter(queries(made.releases[-1]))
            assert released == Counter(event.query for event in simulated.released)
    assert made.wrong() == []


@settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PERIODS)
def test_every_difference_of_states_has_k_users_and_nothing_is_lost(tmp_path_factory, periods):
    days = spread(periods)
    made = Made(tmp_path_factory.mktemp("series"), qv.Equality(k=2))
    waiting: list[tuple[str, str, int]] = []
    for day in days:
        period = made.add(log(*day))
        waiting += day
        batch = set(queries(made.releases[-1])) if period.release is not None else set()
        for query in batch:
            assert len({user for user, issued, _ in waiting if issued == query}) >= 2
        waiting = [event for event in waiting if event[1] not in batch]
    sums = made.series.status().sums
    assert sums["events"] == sums["released"] + sums["waiting"] + sums["expired"]
    assert sums["waiting"] == len(waiting)


@pytest.mark.parametrize("method", [qv.Equality(k=2), qv.Equality(k=2, link="user"), qv.Affinity(k=2)])
def test_with_one_period_the_series_is_the_single_release(tmp_path, method):
    whole = log(*(event for day in WEEK for event in day), url="http://a.com")
    made = Made(tmp_path, method)
    made.add(whole)
    method.anonymize(whole).save(tmp_path / "single")
    ours, single = (qv.Release.load(place) for place in (made.releases[0], tmp_path / "single"))
    assert ours.manifest.counts == single.manifest.counts
    assert ours.manifest.claims == single.manifest.claims
    columns = ["query", "rank", "url"]
    assert Counter(map(tuple, ours.to_arrow().select(columns).to_pandas().fillna(0).to_numpy().tolist())) == Counter(
        map(tuple, single.to_arrow().select(columns).to_pandas().fillna(0).to_numpy().tolist())
    )


def test_clicks_and_metadata_wait_with_their_events(tmp_path):
    def with_country(*events):
        table = log_table(*events)
        return qv.read_log(table.append_column("country", pa.array(["NL"] * len(table))))

    def log_table(*events):
        return rows(*events, url="http://a.com")

    rules = qv.Rules(min_query_users=2, min_row_users=2, time="day")
    made = Made(tmp_path, rules)
    made.add(with_country(("a", "cats", 1)))
    made.add(with_country(("b", "cats", 30)))
    table = qv.Release.load(made.releases[0]).to_arrow()
    assert table["url"].to_pylist() == ["http://a.com"] * 2
    assert table["country"].to_pylist() == ["NL"] * 2
    assert sorted(table["time"].to_pylist()) == [BEGIN, BEGIN + timedelta(days=1)]
    assert made.wrong() == []


def test_a_period_without_a_release(tmp_path):
    made = Made(tmp_path, qv.Equality(k=3))
    period = made.add(log(("a", "cats", 1)))
    assert period.release is None
    assert not (tmp_path / "release-1").exists()
    assert made.add(log(("b", "cats", 30), ("c", "cats", 31))).release == 1
    assert made.wrong() == []


def test_what_waits_too_long_is_deleted(tmp_path):
    made = Made(tmp_path, qv.Equality(k=2), retention="1month")
    made.add(log(("a", "cats", 0), ("b", "dogs", 24 * 5)))
    period = made.add(log(("c", "dogs", 24 * 33), ("d", "cats", 24 * 34)))
    assert (period.expired, queries(made.releases[0])) == (1, ["dogs", "dogs"])
    assert made.wrong() == []


@pytest.mark.parametrize("given", ["", "soon", "0days", "3 fortnights", "-1months"])
def test_a_retention_that_is_no_time(tmp_path, given):
    with pytest.raises(qv.QueryveilError, match="such as 13months"):
        qv.Series.init(tmp_path / "ledger", qv.Equality(), retention=given)


def test_the_same_log_twice_is_refused(week):
    before = (week.ledger / "ledger.json").read_bytes()
    with pytest.raises(qv.QueryveilError, match="was added before, as period 2"):
        week.series.add(log(*WEEK[1]), week.folder / "again")
    assert (week.ledger / "ledger.json").read_bytes() == before
    assert not (week.folder / "again").exists()


def test_events_from_before_the_end_of_the_last_log(week):
    late = log(("x", "cats", 40), ("y", "cats", 70), ("z", "cats", 71))
    with pytest.raises(qv.QueryveilError, match="1 events of the log are not later than the last one ended"):
        week.add(late)
    period = week.add(late, drop_late=True)
    assert (period.late, period.events) == (1, 2)
    assert week.wrong() == []


def test_a_release_that_exists_is_not_replaced(week):
    with pytest.raises(qv.QueryveilError, match="exists already"):
        week.series.add(log(("x", "cats", 90)), week.releases[0])
    assert len(week.series.status().periods) == 3


def test_a_release_inside_the_ledger_is_refused(week):
    with pytest.raises(qv.QueryveilError, match="cannot be inside the ledger"):
        week.series.add(log(("x", "cats", 90)), week.ledger / "release")


def test_the_ledger_is_private_and_names_no_user(tmp_path):
    made = Made(tmp_path, qv.Equality(k=2))
    made.add(log(("somebody@example.org", "cats", 1), ("another person", "cats", 2), ("a third one", "dogs", 3)))
    assert stat.S_IMODE(made.ledger.stat().st_mode) == 0o700
    content = b"".join(path.read_bytes() for path in made.ledger.rglob("*") if path.is_file())
    assert b"dogs" in content  # it waits
    assert not any(name in content for name in (b"somebody", b"person", b"third"))
    assert b"cats" not in content  # it left


def test_a_ledger_that_others_can_read_is_refused(week):
    week.ledger.chmod(0o755)
    with pytest.raises(qv.QueryveilError, match="chmod 700"):
        qv.Series(week.ledger)


def test_no_ledger(tmp_path):
    with pytest.raises(qv.QueryveilError, match="There is no ledger"):
        qv.Series(tmp_path)


def test_a_ledger_is_used_by_one_process_at_a_time(week):
    with week.series._folder.opened(), pytest.raises(qv.QueryveilError, match="in use by another process"):
        week.series.status()


def test_a_series_release_alone_is_not_verified(week):
    found = qv.verify(week.releases[1], week.logs[1])
    assert not found.holds
    assert "check all of it with 'queryveil series verify'" in found.verdicts[-1].counterexample


def test_pseudonyms_do_not_carry_over(tmp_path):
    users = [f"u{i}" for i in range(40)]
    made = Made(tmp_path, qv.Equality(k=2, link="user"))
    for day in range(2):
        made.add(log(*((user, f"query {i // 2}", 24 * day + i % 20) for i, user in enumerate(users))))
    first, second = (qv.Release.load(place).to_arrow() for place in made.releases)
    by_query = [dict(zip(t["query"].to_pylist(), t["user"].to_pylist(), strict=True)) for t in (first, second)]
    same = sum(by_query[0][query] == by_query[1][query] for query in by_query[0])
    assert same < 8  # of 20 queries; about one by chance


def test_pseudonyms_that_are_carried_over(tmp_path):
    made = Made(tmp_path, qv.Equality(k=2, link="user"), carry_pseudonyms=True)
    for day in range(2):
        made.add(log(("a", f"only {day}", 24 * day), ("b", f"only {day}", 24 * day + 1), ("a", "both", 24 * day + 2),
                     ("b", "both", 24 * day + 3)))  # fmt: skip
    links = made.series.links()
    assert links["release"].to_pylist() == [1, 1, 2, 2]
    assert sorted(links["person"].to_pylist()) == [1, 1, 2, 2]
    assert links["user"].to_pylist() == [1, 2, 1, 2]
    found = made.series.attack(made.releases, made.logs).findings[-1]
    assert (found.setting, found.estimate.value) == ("pseudonyms carry over", 1)


def test_pseudonyms_are_not_kept_unless_asked_for(tmp_path, week):
    with pytest.raises(qv.QueryveilError, match="keeps no pseudonyms"):
        week.series.links()
    with pytest.raises(qv.QueryveilError, match="Only pseudonyms of users"):
        qv.Series.init(tmp_path / "l", qv.Equality(), carry_pseudonyms=True)


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (qv.Odp(), "groups have in common"),
        (qv.Clump(), "groups have in common"),
        (qv.Hash(), "tokens would"),
        (qv.Poblete(), "show more addresses"),
        (qv.Wngen(), "nothing would wait"),
        (qv.Pipeline([qv.Affinity(), qv.Mdav()]), "groups have in common"),
    ],
)
def test_methods_that_cannot_keep_their_promise(tmp_path, method, why):
    with pytest.raises(qv.QueryveilError, match=why):
        qv.Series.init(tmp_path / "ledger", method)
    assert not (tmp_path / "ledger").exists()


def test_scrubbing_happens_before_events_wait(tmp_path):
    made = Made(tmp_path, qv.Pipeline([qv.Scrub(how="remove"), qv.Equality(k=2)]))
    made.add(log(("a", "mail john@example.org", 1), ("b", "cats", 2)))
    made.add(log(("c", "mail john@example.org", 30), ("d", "cats", 31)))
    content = b"".join(path.read_bytes() for path in made.ledger.rglob("*") if path.is_file())
    assert b"john@example" not in content
    assert queries(made.releases[0]) == ["cats", "cats"]
    assert made.wrong() == []


@pytest.mark.parametrize(("countries", "found"), [(None, "DE"), (("FR",), "FR")])
def test_a_series_keeps_its_language_and_the_countries_of_scrubbing(tmp_path, countries, found):
    method = qv.Pipeline([qv.Scrub(countries=countries), qv.Equality(k=2)])
    made = Made(tmp_path, method, language=["de", "en"])
    for day in (1, 30):
        events = ("a", "katzen", day), ("b", "katzen", day + 1), ("c", "lindenstraße 12 köln", day + 2)
        made.add(qv.read_log(rows(*events), language="de,en"))
    assert b"lindenstra" not in b"".join(path.read_bytes() for path in made.ledger.rglob("*") if path.is_file())
    manifest = qv.Release.load(made.releases[1]).manifest
    assert manifest.language.ids == ("de", "en")
    assert manifest.scrub.countries[0] == found
    assert made.wrong() == []
    with pytest.raises(qv.QueryveilError, match="in the languages de,en, and the log was read in en; read it with"):
        made.add(log(("a", "hunde", 60), ("b", "hunde", 61)))


def test_rare_words_cannot_be_scrubbed(tmp_path):
    with pytest.raises(qv.QueryveilError, match="rare changes from period to period"):
        qv.Series.init(tmp_path / "l", qv.Pipeline([qv.Scrub(rare_term_users=5), qv.Equality()]))


def test_forgetting_a_user(week):
    done = week.series.forget(user="c")
    assert (done.events, done.published) == (1, {2: 1})
    assert week.series.forget(user="nobody") == type(done)(0, {})
    sums = week.series.status().sums
    assert (sums["waiting"], sums["forgotten"]) == (1, 1)
    week.add(log(("x", "secret diary", 80), ("y", "birds", 81)))
    assert queries(week.releases[-1]) == ["birds", "birds"]
    assert week.wrong() == []


def test_forgetting_all_before_a_time(week):
    assert week.series.forget(before=BEGIN + timedelta(hours=10)).events == 1
    with pytest.raises(qv.QueryveilError, match="either"):
        week.series.forget()
    assert week.wrong() == []


# What a verifier must refuse.


def test_a_release_that_was_changed(week):
    manifest = json.loads((week.releases[1] / "manifest.json").read_text())
    manifest["parameters"]["k"] = 3
    (week.releases[1] / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    assert "is not a release of this ledger, or was changed" in week.wrong()[0]


def test_a_table_that_was_changed(week):
    shutil.copy(week.releases[2] / "log.parquet", week.releases[0] / "log.parquet")
    assert any("log.parquet was changed" in sentence for sentence in week.wrong())


def test_a_release_that_is_left_out(week):
    del week.releases[1]
    assert "is release 3, and stands in the place of 2" in week.wrong()[0]


def test_the_last_release_left_out(week):
    del week.releases[-1]
    assert "release 3 is missing" in week.wrong()[0]


def test_releases_in_another_order(week):
    week.releases.reverse()
    assert "is release 3, and stands in the place of 1" in week.wrong()[0]


def test_a_release_that_is_given_twice(week):
    week.releases.insert(1, week.releases[0])
    assert "is given twice" in week.wrong()[0]


def test_a_release_of_another_series(week, tmp_path_factory):
    other = Made(tmp_path_factory.mktemp("other"), qv.Equality(k=2))
    other.add(log(*WEEK[0]))
    week.releases[0] = other.releases[0]
    assert "is not a release of this ledger" in week.wrong()[0]


def test_a_release_without_a_series(week, tmp_path):
    qv.Equality(k=2).anonymize(week.logs[0]).save(tmp_path / "single")
    week.releases[0] = tmp_path / "single"
    assert "is not part of a series" in week.wrong()[0]


def test_logs_that_are_missing_or_others(week):
    del week.logs[2]
    assert "the log of period 3 is missing" in week.wrong()[0]
    week.logs.append(log(("q", "cats", 99)))
    assert "another log stands in the place of that of period 3" in week.wrong()[0]


def test_more_logs_than_periods(week):
    week.logs.append(log(("q", "cats", 99)))
    assert "there are more logs than periods" in week.wrong()[0]


def test_an_event_that_is_published_twice(tmp_path):
    """A ledger that was tampered with, so that published events wait again, and are published once more."""
    made = Made(tmp_path, qv.Equality(k=2))
    made.add(log(("a", "cats", 1), ("b", "cats", 2), ("c", "dogs", 3)))
    (tmp_path / "forged").mkdir()
    forged = Made(tmp_path / "forged", qv.Equality(k=3))
    forged.add(log(("a", "cats", 1), ("b", "cats", 2), ("c", "dogs", 3)))
    place = made.ledger / "waiting-1"
    keep = (place / "published.arrow").read_bytes()
    shutil.rmtree(place)
    # The keyed digests of another key, but the same queries: they wait again.
    shutil.copytree(forged.ledger / "waiting-1", place)
    (place / "published.arrow").write_bytes(keep)
    made.add(log(("e", "birds", 30)))
    assert queries(made.releases[1]) == ["cats", "cats"]
    assert any(sentence.startswith("Release 2: ") for sentence in made.wrong())


def test_a_ledger_that_counts_wrong(week):
    place = week.ledger / "ledger.json"
    ledger = json.loads(place.read_text())
    ledger["periods"][1]["expired"] = 7
    place.write_text(json.dumps(ledger))
    assert "'expired' of period 2 is not right" in week.wrong()[0]


def test_without_logs_less_is_checked(week):
    found = week.series.verify(week.releases)
    assert found.holds
    assert "Nothing was checked against the logs" in found.unchecked[0]


def test_without_logs_a_changed_file_is_found(week):
    (week.releases[1] / "report.md").write_text("All is well.")
    found = week.series.verify(week.releases)
    assert "report.md was changed" in found.verdicts[0].counterexample


def test_a_ledger_with_other_parameters(week):
    place = week.ledger / "ledger.json"
    ledger = json.loads(place.read_text())
    ledger["settings"]["parameters"]["k"] = 3
    place.write_text(json.dumps(ledger))
    assert "was made in another way than the ledger says" in week.wrong()[0]


def test_a_ledger_of_two_times(week):
    place = week.ledger / "ledger.json"
    ledger = json.loads(place.read_text())
    ledger["changes"] = 2
    place.write_text(json.dumps(ledger))
    with pytest.raises(qv.QueryveilError, match="of another time"):
        week.series.status()
    assert (week.ledger / "waiting-3").exists()


def test_a_log_of_nothing_but_late_events_ends_nothing(tmp_path):
    made = Made(tmp_path, qv.Equality(k=2), retention="1month")
    made.add(log(("a", "cats", 10)))
    late = made.add(log(("b", "cats", 5)), drop_late=True)
    assert (late.events, late.late, late.expired, late.waiting) == (0, 1, 0, 1)
    assert made.add(log(("c", "cats", 20))).release == 1
    assert made.wrong() == []


def test_events_of_the_future_are_refused(tmp_path):
    made = Made(tmp_path, qv.Equality(k=2))
    with pytest.raises(qv.QueryveilError, match="events of the future"):
        made.add(log(("a", "cats", 24 * 365 * 300)))


def test_what_rules_about_rows_leave_out_is_lost(tmp_path):
    from tests.series.conftest import rows

    table = pa.concat_tables(
        [rows(("a", "cats", 1), ("b", "cats", 2), url="http://a.com"), rows(("c", "cats", 3), url="http://b.org")]
    )
    made = Made(tmp_path, qv.Rules(min_query_users=2, min_row_users=2))
    period = made.add(qv.read_log(table))
    assert (period.released, period.left_out, period.waiting) == (2, 1, 0)
    assert made.wrong() == []


def test_a_manifest_says_nothing_exact_about_what_waits(week):
    manifest = qv.Release.load(week.releases[0]).manifest
    assert (manifest.bands, manifest.input_counts.events) == ((), 0)
    assert "not published" in (week.releases[0] / "report.md").read_text()


# Differential privacy.


def many(day):
    return log(*((f"u{i}", query, 24 * day + i % 20) for i in range(60) for query in ("cats", "dogs")))


def test_a_budget_is_spent_and_then_refused(tmp_path):
    method = qv.Zealous(epsilon=4, delta=0.01, max_queries_per_user=2)
    made = Made(tmp_path, method, budget_epsilon=8, budget_delta=0.03)
    epsilons = [made.add(many(day)).epsilon for day in range(2)]
    assert 3.9 < epsilons[0] <= 4  # at the delta of the budget, which is larger
    assert 4 < epsilons[1] <= 8
    assert qv.Release.load(made.releases[1]).manifest.series.spent.epsilon == epsilons[1]
    with pytest.raises(qv.QueryveilError, match="The privacy budget is spent: with release 3"):
        made.add(many(2))
    assert len(made.series.status().periods) == 2
    assert made.wrong() == []


def test_a_private_series_needs_a_budget_and_others_have_none(tmp_path):
    with pytest.raises(qv.QueryveilError, match="needs a budget"):
        qv.Series.init(tmp_path / "l", qv.Zealous(epsilon=1, delta=1e-3))
    with pytest.raises(qv.QueryveilError, match="is not differentially private"):
        qv.Series.init(tmp_path / "l", qv.Equality(), budget_epsilon=1, budget_delta=1e-3)
    with pytest.raises(qv.QueryveilError, match="is spent"):
        qv.Series.init(tmp_path / "l", qv.Zealous(epsilon=2, delta=1e-3), budget_epsilon=1, budget_delta=1e-2)


def test_a_budget_that_a_manifest_states_wrong(tmp_path):
    made = Made(
        tmp_path, qv.Zealous(epsilon=4, delta=0.01, max_queries_per_user=2), budget_epsilon=9, budget_delta=0.03
    )
    made.add(many(0))
    place = made.ledger / "ledger.json"
    ledger = json.loads(place.read_text())
    ledger["settings"]["budget_epsilon"] = 3.5
    place.write_text(json.dumps(ledger))
    assert "states another budget, or more than that" in made.wrong()[0]
