"""Releases of results shown: what enough users share is released, the verifier checks it, and forgeries are refused."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import NothingToReleaseError
from tests.both import on_both_engines_weekly
from tests.fuzz.forging import put_rows, table_of, tidy
from tests.log.test_views import LOGS, TABLE, Shown, table
from tests.oracles import views as oracle

METHODS = st.sampled_from(
    [
        qv.Equality(k=2, link="user"),
        qv.Equality(k=3, link="session"),
        qv.Affinity(k=2, concept_min_users=2),
        qv.Rules(min_query_users=2, min_row_users=2, time="day"),
        qv.Rules(min_row_users=3, link="user"),
        qv.Pipeline([qv.Equality(k=2), qv.Columns(min_click_users=3, time="week")]),
        qv.Pipeline([qv.Equality(k=2), qv.Columns(min_click_users=2, min_row_users=3)]),
        qv.Odp(k=2),
    ]
)


def rows_of(release: qv.Release) -> list[dict]:
    return pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()


def good(rows: list[Shown]) -> list[Shown]:
    wrong = set().union(*oracle.bad(rows, 1000).values())
    return [row for number, row in enumerate(rows) if number not in wrong]


@given(LOGS, st.integers(2, 3))
def test_equality_releases_what_the_definition_says(rows, k):
    rows = good(rows)
    if len({row.user for row in rows}) < k or not oracle.views(rows):
        return
    release = qv.Equality(k=k).anonymize(qv.read_log(table(rows)), seed=1)
    found = Counter((row["query"], row["rank"], row["url"], row["clicked"]) for row in rows_of(release) if row["url"])
    assert found == Counter(oracle.released(rows, k))
    counts = release.manifest.counts
    assert (counts.views, counts.clicks) == (found.total(), sum(n for row, n in found.items() if row[3]))


@given(LOGS, METHODS)
def test_the_verifier_accepts_every_release(rows, method):
    rows = good(rows)
    if len({row.user for row in rows}) < 3 or not all(row.time for row in rows):
        return
    log = qv.read_log(table(rows))
    try:
        release = method.anonymize(log, seed=1)
    except NothingToReleaseError:
        return
    verification = qv.verify(release, log)
    assert verification.holds, verification


EVENTS = [(f"u{n}", "tea", f"2026-03-0{n + 1} 10:00:00") for n in range(6)]
ROWS = [
    *(Shown(*event, 1, "http://tea.com", n < 3) for n, event in enumerate(EVENTS)),  # three clicked, three did not
    *(Shown(*event, 2, "http://cup.com", n == 0) for n, event in enumerate(EVENTS)),  # one clicked
    *(Shown(*event, 3 if n < 5 else 4, "http://mug.com", False) for n, event in enumerate(EVENTS)),  # one at rank 4
    Shown(*EVENTS[0], 5, "http://own.com", True),
    Shown("u7", "rare", "2026-03-01 11:00:00", 1, "http://tea.com", True),
]


@pytest.fixture(scope="module")
def log():
    return qv.read_log(table(ROWS))


def test_what_few_users_share_is_withheld(log):
    found = {(row["url"], row["rank"], row["clicked"]) for row in rows_of(qv.Equality(k=3).anonymize(log, seed=1))}
    assert found == {
        ("http://tea.com", 1, True),
        ("http://tea.com", 1, False),
        ("http://cup.com", 2, None),
        ("http://mug.com", 3, False),
        ("http://mug.com", None, None),
    }


def at(address: str, **cells):
    """Change the first row of an address."""

    def change(rows):
        row = next(row for row in rows if row["url"] == address)
        row.update(cells)
        return rows

    return change


FORGED = {
    "a view of one user": (
        lambda rows: [*rows, rows[0] | {"url": "http://own.com", "rank": None, "clicked": None}],
        "the combination query 'tea', url 'http://own.com' has 1 users",
    ),
    "a view of nobody": (
        lambda rows: [*rows, rows[0] | {"url": "http://no.com", "rank": None, "clicked": None}],
        "the combination query 'tea', url 'http://no.com' has 0 users",
    ),
    "a rank of one user": (
        lambda rows: [r | {"rank": 4} if r["url"] == "http://mug.com" and r["rank"] is None else r for r in rows],
        "the combination query 'tea', url 'http://mug.com', rank '4' has 1 users",
    ),
    "who clicked": (
        lambda rows: [r | {"clicked": False} if r["url"] == "http://cup.com" else r for r in rows],
        "occurs 6 times in the release, 5 in the log",
    ),
    "the one who clicked": (
        at("http://cup.com", clicked=True),
        "only some views of 'http://cup.com' for 'tea' with the same rank say whether they were clicked",
    ),
    "one of six": (
        lambda rows: [
            r | {"clicked": n == 0} if r["url"] == "http://cup.com" else r
            for n, r in enumerate(sorted(rows, key=lambda r: r["url"] != "http://cup.com"))
        ],
        "the view of 'http://cup.com' for 'tea', clicked, has 1 users",
    ),
    "a click more": (at("http://mug.com", clicked=True), "occurs 1 times in the release, 0 in the log"),
    "a click of nothing": (at("http://tea.com", url=None, rank=None), "without an address"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_views_are_refused(tmp_path, log, name):
    change, said = FORGED[name]
    qv.Equality(k=3).anonymize(log, seed=1).save(tmp_path / "r")
    _, honest = table_of(tmp_path / "r")
    put_rows(tmp_path / "r", log, tidy(change(honest.to_pylist()), honest.column_names), honest.schema)
    found = [verdict.counterexample or "" for verdict in qv.verify(tmp_path / "r", log).verdicts if not verdict.holds]
    assert any(said in one for one in found), found


def test_claims_of_clicks_do_not_stand_for_those_of_views(tmp_path, log):
    clicks = qv.read_log(table([row for row in ROWS if row.clicked]).drop(["clicked"]))
    release = qv.Equality(k=3).anonymize(clicks, seed=1)
    assert b'"views"' not in release.manifest.model_dump_json().encode()
    assert not qv.verify(release, log).holds


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_views_are_written_and_read(tmp_path, log, format):
    release = qv.Equality(k=3).anonymize(log, seed=1)
    release.save(tmp_path / "r", format=format)
    assert rows_of(qv.Release.load(tmp_path / "r")) == rows_of(release)
    assert qv.verify(tmp_path / "r", log).holds
    report = (tmp_path / "r" / "report.md").read_text()
    assert "| views | 20 | 18 |" in report
    with pytest.raises(qv.QueryveilError, match="The aol format has no place for the column 'clicked'"):
        qv.Equality(k=3, link="user").anonymize(log, seed=1).save(tmp_path / "aol", format="aol")


@pytest.mark.filterwarnings("ignore::queryveil.errors.QueryveilWarning")
def test_measures_attacks_and_explanations_tell_views_from_clicks(log):
    release = qv.Equality(k=3).anonymize(log, seed=1)
    found = {(row["measure"], row["detail"]): row["value"] for row in qv.evaluate(release, log).to_arrow().to_pylist()}
    assert found["views_kept", ""] == 18 / 20
    assert found["clicks_kept", ""] == 3 / 6
    assert {row["attack"] for row in qv.attack(release, log).to_arrow().to_pylist()} >= {"differencing"}
    assert all(reason.passed for reason in qv.Rules(min_row_users=3).explain(log, log.find("tea")))


@on_both_engines_weekly
def test_releases_are_the_same_on_both_engines(read):
    release = qv.Rules(min_row_users=2, link="user").anonymize(read(TABLE, max_bad_rows=1), seed=1)
    here = qv.read_log(TABLE, max_bad_rows=1)
    assert rows_of(release) == rows_of(qv.Rules(min_row_users=2, link="user").anonymize(here, seed=1))
    assert release.manifest.counts.views > 0
    assert qv.verify(release, release.log).holds
