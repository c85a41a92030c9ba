"""Measures, attacks and reports of releases whose log is on Spark."""

import subprocess
import sys

import pytest

import queryveil as qv
from queryveil.assess.measures.distribution import _by_tables, distribution
from queryveil.assess.sampling import NoSampleError, bring
from queryveil.reports import report
from tests.both import QUICK, as_options, needs_spark
from tests.strategies import weekly

pytestmark = needs_spark
METHODS = {
    "users": qv.Equality(k=2, link="user"),
    "events": qv.Equality(k=2),
    "groups": qv.Mdav(k=3, compact=True),
    "counts": qv.Counts(by=("query",), min_row_users=2),
}


@pytest.fixture(scope="module")
def there(small_world, read_on_spark):
    return read_on_spark(small_world.file)


@pytest.fixture
def large(monkeypatch):
    """Let ten users be as many as are brought here."""
    monkeypatch.setattr("queryveil.assess.sampling.USERS", 10)


@weekly
@pytest.mark.parametrize("kind", METHODS)
def test_the_report_of_a_small_log_is_that_of_one_machine(there, small_world, tmp_path, kind):
    pages = []
    for log in (small_world.log, there):
        target = tmp_path / f"{len(pages)}.html"
        report(METHODS[kind].anonymize(log, seed=3), log, target)
        pages.append(target.read_text())
    assert pages[1] == pages[0]


def test_rows_that_nothing_links_are_sampled_in_proportion(there, small_world):
    release = METHODS["events"].anonymize(there, seed=3)
    some = bring(release, there, 1, users=10)
    assert some.share == f"10 of {there.n_users} users, drawn at random"
    count = (
        "SELECT q.query AS query, count(*) AS n FROM {} e JOIN queries q ON q.query_id = e.query_id GROUP BY q.query"
    )
    theirs = {row["query"]: row["n"] for row in some.log.engine.fetch(count.format("events")).to_pylist()}
    released = some.release.to_arrow().to_pylist()
    kept = {row["query"]: set() for row in released}
    for row in released:
        kept[row["query"]].add(row["event"])
    # This method releases all events of a query or none, so as many are here as these users have.
    assert kept
    assert all(len(events) == theirs[query] for query, events in kept.items())
    everywhere = {row["query"] for row in release.to_arrow().to_pylist()}
    assert set(kept) == everywhere & set(theirs)


@weekly
def test_users_who_share_a_record_are_drawn_together(there):
    release = METHODS["groups"].anonymize(there, seed=3)
    some = bring(release, there, 1, users=10)
    sizes = {row["user"]: row["users"] for row in some.release.to_arrow().to_pylist()}
    assert 3 <= some.log.n_users == sum(sizes.values()) <= 10
    assert len(next(some.release.user_map())) == some.log.n_users


def test_frequencies_by_tables_are_those_by_arrays(small_world):
    log = small_world.log
    for method in METHODS.values():
        release = method.anonymize(log, seed=3)
        one, other = distribution(release, log), _by_tables(release, log)
        assert (one.queries, one.terms, one.ranks) == pytest.approx((other.queries, other.terms, other.ranks))


@weekly
def test_sampled_figures_are_shown_as_sampled(there, small_world, large, tmp_path):
    one, other = (METHODS["events"].anonymize(log, seed=3) for log in (small_world.log, there))
    found, expected = qv.evaluate(other, there, seed=1), qv.evaluate(one, small_world.log, seed=1)
    drawn = f"on 10 of {there.n_users} users, drawn at random"
    by_id = {(each.measure, each.detail): each for each in expected.measured}
    for each in found.measured:
        if each.group in ("retention", "distribution"):
            assert each.value == pytest.approx(by_id[each.measure, each.detail].value)
        else:
            assert each.why.startswith(drawn)
    tried = qv.attack(other, there, seed=1)
    exact = {each.attack: each.estimate for each in qv.attack(one, small_world.log, seed=1).findings}
    assert f"10 of {there.n_users} users" in tried.summary
    assert {each.attack: each.estimate for each in tried.findings if each.attack in exact}["personal_data"] == exact[
        "personal_data"
    ]
    assert {"sybil", "margins"} <= {each.attack for each in tried.skipped}
    report(other, there, tmp_path / "page.html", seed=1)
    page = (tmp_path / "page.html").read_text()
    assert f"Tried on 10 of {there.n_users} users, drawn at random" in page


def test_a_release_without_a_sample_is_counted_all_the_same(there, large):
    release = METHODS["counts"].anonymize(there, seed=3)
    with pytest.raises(NoSampleError, match="belongs to some users alone"):
        bring(release, there, 1, users=10)
    found = {each.measure: each for each in qv.evaluate(release, there).measured}
    assert found["queries_kept"].value > 0
    assert found["completion"].value is None
    assert "sample of users" in found["completion"].why
    assert [each.attack for each in qv.attack(release, there, only=["personal_data", "sybil"]).skipped] == ["sybil"]


def test_another_release_is_refused_on_spark(there):
    release = METHODS["events"].anonymize(there, seed=3)
    with pytest.raises(qv.QueryveilError, match="must be on one machine"):
        qv.attack(release, there, other=release)


@weekly
def test_the_command_line_reports_on_spark(small_world, tmp_path):
    release, secret = tmp_path / "release", tmp_path / "map.csv"
    made = METHODS["users"].anonymize(small_world.log, seed=3)
    made.save(release)
    made.save_user_map(secret)
    there = ["--engine", "spark", "--master", "local[2]", *as_options(QUICK)]
    for name, more in (("here", []), ("there", there)):
        words = [release, "--original", small_world.file, "--user-map", secret, *more]
        subprocess.run([*_QUERYVEIL, "report", *words, "-o", tmp_path / f"{name}.html"], check=True)
        for verb in ("evaluate", "attack"):
            found = subprocess.run([*_QUERYVEIL, verb, *words, "--json"], check=True, capture_output=True)
            (tmp_path / f"{name}-{verb}.json").write_bytes(found.stdout)
    for page in ("{}.html", "{}-evaluate.json", "{}-attack.json"):
        assert (tmp_path / page.format("there")).read_text() == (tmp_path / page.format("here")).read_text()
    refused = [*_QUERYVEIL, "attack", *words, "--other", release]
    assert "leave --engine out" in subprocess.run(refused, check=False, capture_output=True, text=True).stderr


_QUERYVEIL = (sys.executable, "-m", "queryveil.cli")
