"""Differencing of totals: a log on which it succeeds, one on which nothing is found, and what it does not apply to."""

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess.attacks.finding import InapplicableError
from queryveil.assess.attacks.margins import margins, margins_of_users

COLUMNS = {"by": ("query", "country"), "min_row_users": 3, "min_metadata_users": 3, "totals": ("query",)}


@pytest.fixture(scope="module")
def log():
    """Forty queries of three to eight people in NL and BE; of each, one to three more times one person in US."""
    rows = []
    for query in range(40):
        for user in range(3 + query % 6):
            rows += [
                (f"u{user}", f"query {query}", f"2006-03-01 10:{query:02}:00", country) for country in ("NL", "BE")
            ]
        rows += [
            (f"v{query}", f"query {query}", f"2006-03-02 10:{times:02}:00", "US") for times in range(1 + query % 3)
        ]
    names = ("user", "query", "time", "country")
    return qv.read_log(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))))


def test_without_secondary_suppression_totals_give_hidden_rows_away(log):
    release = qv.Counts(**COLUMNS, secondary=False).anonymize(log, seed=1)
    found = margins(release, log)
    assert found.estimate.value == 1
    assert found.trials == 40
    assert found.baseline == pytest.approx(14 / 40)
    assert found.control is not None
    assert found.control.high < found.estimate.low
    assert found.succeeds
    of_users = margins_of_users(release, log)
    assert of_users.details == {"differences": 40, "few": 40, "found": 40}  # one person is only in US
    assert qv.attack(release, log, only="margins").findings == (found, of_users)


def test_with_secondary_suppression_nothing_is_found(log):
    release = qv.Counts(**COLUMNS).anonymize(log, seed=1)
    found = margins(release, log)
    assert (found.estimate.value, found.details["few"], found.succeeds) == (0, 0, False)
    with pytest.raises(InapplicableError, match="no row has fewer users than its total"):  # those are withheld
        margins_of_users(release, log)
    with pytest.raises(InapplicableError, match="bands"):
        margins_of_users(qv.Counts(**COLUMNS, users="band").anonymize(log, seed=1), log)


def test_rounding_leaves_a_guess(log):
    found = margins(qv.Counts(**COLUMNS, secondary=False, base=6).anonymize(log, seed=1), log)
    assert found.details["few"] == 40
    assert found.estimate.value < 0.5
    assert not found.succeeds


def test_a_table_without_totals_and_other_releases_leave_no_room(log):
    for method in (qv.Counts(by=("query", "country")), qv.Equality(k=3)):
        with pytest.raises(InapplicableError, match="with totals"):
            margins(method.anonymize(log, seed=1), log)
    three = {"user": ["a", "b", "c"], "query": ["x"] * 3, "time": ["2006-03-01 10:00:00"] * 3}
    whole = qv.read_log(pa.table(three))
    release = qv.Counts(by=("query", "period"), totals=("query",), period="day", min_row_users=3).anonymize(whole)
    with pytest.raises(InapplicableError, match="no row is hidden"):
        margins(release, whole)
