"""Claims about tables of counts: each is refuted by a table that breaks it, with the row that does."""

from dataclasses import replace

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.claims import CellUsers, CountedRows, HiddenRows, PrivateCounts, RoundedCounts
from queryveil.release import check_claims
from queryveil.verification.promises import required_claims

GIVEN = {"by": ("query", "country"), "min_row_users": 3, "totals": ("query",)}


@pytest.fixture(scope="module")
def log():
    """Users u0 to u5 search for cat in NL and BE, and click there; u6 once in US, without a click."""
    rows = [(f"u{n}", "cat", country, 1 + n % 2, "http://a.com") for n in range(6) for country in ("NL", "BE")]
    rows += [("u6", "cat", "US", None, None), *((f"u{n}", "dog", "US", None, None) for n in range(6))]
    names = ("user", "query", "country", "rank", "url")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    times = [f"2006-03-01 10:00:{n:02}" for n in range(len(rows))]
    return qv.read_log(pa.table({**columns, "time": times}))


def release_of(log, **given):
    return qv.Counts(**GIVEN | given).anonymize(log, seed=1)


def forged(release, change):
    """The release with other rows."""
    rows = change(release.to_arrow().to_pylist())
    table = pa.Table.from_pylist(rows, release.schema)
    return replace(release, batches=lambda: iter(table.to_batches()))


def refuted(release, log):
    """The kinds of the claims that do not hold, each with what is wrong."""
    verdicts = check_claims(release, log)
    claims = release.manifest.claims
    return {claim.kind: found.counterexample for claim, found in zip(claims, verdicts, strict=True) if not found.holds}


def row_of(rows, query, country, total=0):
    return next(row for row in rows if (row["query"], row["country"], row.get("total", 0)) == (query, country, total))


def changed(_query, _country, _total=0, /, **values):
    def change(rows):
        row_of(rows, _query, _country, _total).update(values)
        return rows

    return change


def test_an_honest_table_holds_and_hides_one_more_row(log):
    release = release_of(log)
    rows = release.to_arrow().to_pylist()
    assert sum((row["query"], row["total"]) == ("cat", 0) for row in rows) == 1  # of NL and BE, the other is hidden
    # Of its 7 users, 1 is not in the published row of 6.
    assert row_of(rows, "cat", "*", 1) == {"total": 1, "query": "cat", "country": "*", "users": None, "events": 13}
    assert refuted(release, log) == {}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (changed("dog", "US", events=7), "the row query 'dog', country 'US' has 7 events, which it has not in the log"),
        (changed("dog", "US", users=5), "has 5 users"),
        (changed("cat", "*", 1, events=14), "the total query 'cat', country '*' has 14 events"),
        (changed("cat", "*", 1, country="NL"), "is none of the log"),
        (changed("dog", "US", country="FR"), "has 6 users"),
        (changed("dog", "US", query="fish"), "is none of the log"),
        (changed("dog", "US", total=2), "is none of the log"),
        (lambda rows: [*rows, rows[0]], "stands 2 times"),
    ],
)
def test_a_number_that_is_not_that_of_the_log(log, change, what):
    assert what in refuted(forged(release_of(log), change), log)["counted-rows"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (changed("dog", "US", clicks=1), "has 1 clicks"),
        (changed("dog", "US", mean_rank=1.5), "mean rank"),
        (changed("dog", "US", mean_rank=float("nan")), "mean rank"),
    ],
)
def test_clicks_or_a_mean_rank_that_are_not_those_of_the_log(log, change, what):
    assert what in refuted(forged(release_of(log, totals=()), change), log)["counted-rows"]


def test_a_row_of_few_users_with_its_true_numbers(log):
    few = {"total": 0, "query": "cat", "country": "US", "users": 1, "events": 1}
    found = refuted(forged(release_of(log), lambda rows: [*rows, few]), log)
    assert found["cell-users"] == "the row query 'cat', country 'US' has 1 users"
    assert "counted-rows" not in found


def test_a_mean_rank_or_clicks_of_few_users():
    rows = {"user": [f"u{n}" for n in range(4)], "query": ["cat"] * 4, "url": ["http://a.com", None, None, None]}
    log = qv.read_log(pa.table(rows | {"rank": pa.array([2, None, None, None], pa.int32())}))
    release = qv.Counts(min_row_users=3).anonymize(log, seed=1)
    assert release.to_arrow().to_pylist() == [
        {"query": "cat", "users": 4, "events": 4, "clicks": None, "mean_rank": None}
    ]
    for values, what in (({"clicks": 1}, "clicks"), ({"mean_rank": 2.0}, "mean rank")):
        found = refuted(forged(release, lambda rows, values=values: [rows[0] | values]), log)
        assert found == {"cell-users": f"the row query 'cat' has 1 users behind its {what}"}


def test_totals_without_secondary_suppression_give_a_row_away(log):
    release = release_of(log, secondary=False)
    assert refuted(release, log) == {}
    parameters = release.manifest.parameters | {"secondary": True}
    manifest = release.manifest.model_copy(update={"parameters": parameters})
    claims = tuple(required_claims(manifest, log))
    found = refuted(replace(release, manifest=manifest.model_copy(update={"claims": claims})), log)
    assert found == {"hidden-rows": "the total query 'cat', country '*' gives away 1 users by its events"}
    assert not qv.verify(replace(release, manifest=manifest), log).holds


def test_users_of_a_total_that_give_few_away(log):
    found = refuted(forged(release_of(log), changed("cat", "*", 1, users=7)), log)
    assert found == {"hidden-rows": "the total query 'cat', country '*' gives away 1 users by its users"}


def test_a_table_with_totals_has_no_clicks(log):
    """Those of few users that are withheld would follow from the total and the other rows."""
    release = release_of(log)
    assert release.schema.names == ["total", "query", "country", "users", "events"]
    clicks = release.to_arrow().append_column("clicks", pa.nulls(len(release.to_arrow()), pa.int64()))
    found = refuted(replace(release, schema=clicks.schema, batches=lambda: iter(clicks.to_batches())), log)
    assert found["counted-rows"] == "the column 'clicks' beside totals"


def test_rounding_and_bands(log):
    release = release_of(log, base=5, users="band")
    row = row_of(release.to_arrow().to_pylist(), "dog", "US")
    assert (row["users_band"], row["events"]) == ("5-9", 5)
    assert refuted(release, log) == {}
    assert refuted(forged(release, changed("dog", "US", events=6)), log) == {
        "counted-rows": "the row query 'dog', country 'US' has 6 events, which it has not in the log",
        "rounded-counts": "a row has 6 events",
    }
    for values in ({"events": 10}, {"users_band": "10-19"}, {"users_band": "6"}):
        assert "counted-rows" in refuted(forged(release, changed("dog", "US", **values)), log)


def test_claims_that_no_table_has_are_refused():
    wrong = [
        (CountedRows, {"columns": ("query",), "users": 3, "totals": ("url",)}),
        (CellUsers, {"columns": ("query", "Users"), "users": 3}),
        (CellUsers, {"columns": ("query", "url"), "users": 3, "totals": ("query",)}),
        (HiddenRows, {"columns": ("query", "period"), "users": 3, "totals": ("query",)}),
        (RoundedCounts, {"base": 1}),
        (PrivateCounts, {"epsilon": 1, "delta": 0.1, "steps": (), "columns": ("period",)}),
    ]
    for claim, given in wrong:
        with pytest.raises(ValueError, match="error"):
            claim(**given)


@pytest.fixture(scope="module")
def many():
    """Four hundred queries of 20 to 60 users."""
    rows = [(f"u{n}", f"query {query}") for query in range(400) for n in range(20 + query % 41)]
    return qv.read_log(pa.table({"user": [user for user, _ in rows], "query": [query for _, query in rows]}))


def test_noise_that_is_missing_or_not_worth_what_it_says(many):
    pytest.importorskip("opendp")
    method = qv.Counts(epsilon=400, delta=1e-6, max_rows_per_user=400, min_row_users=2)
    release = method.anonymize(many)
    assert qv.verify(release, many).holds
    rows = [
        {"query": f"query {n}", "users": 20 + n % 41}
        for n in range(400)
        if 20 + n % 41 >= method.claim.steps[0].threshold
    ]
    bare = pa.Table.from_pylist(rows, release.schema)
    found = refuted(replace(release, batches=lambda: iter(bare.to_batches())), many)
    assert "otherwise than such noise" in found["private-counts"]
    (step,) = method.claim.steps
    for change, what in (
        ({"scale": step.scale / 2}, "worth epsilon"),
        ({"threshold": 3}, "worth delta"),
        ({"threshold": None}, "worth delta"),
    ):
        claim = method.claim.model_copy(update={"steps": (step.model_copy(update=change),)})
        manifest = release.manifest.model_copy(update={"claims": (claim,)})
        assert what in refuted(replace(release, manifest=manifest), many)["private-counts"]
    for change, what in (
        (lambda rows: [*rows, rows[0]], "stands twice"),
        (lambda rows: [rows[0] | {"users": 1}, *rows[1:]], "below the threshold"),
        (lambda rows: [rows[0] | {"query": "fish"}, *rows[1:]], "none of the log"),
    ):
        assert what in refuted(forged(release, change), many)["private-counts"]
