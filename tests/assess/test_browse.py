"""Pages over what is released and what is held back."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.browse import ORDERS, Browser
from tests.oracles.log import Row
from tests.strategies import LOGS, examples, table


@settings(max_examples=examples(15))
@given(
    LOGS,
    st.sampled_from(["released", "held"]),
    st.sampled_from(ORDERS),
    st.booleans(),
    st.sampled_from(["", "A", "cat", "  x1 "]),
    st.integers(1, 4),
)
def test_pages_together_are_what_was_asked_for(rows, which, order, one_user, contains, size):
    if not any(row.query not in ("", "-") for row in rows):
        return
    log = qv.read_log(table(rows))
    if log.n_users < 2:
        return
    release = qv.Equality(k=2).anonymize(log, seed=1)
    browser = Browser(release, log)
    asked = {"order": order, "one_user": one_user, "contains": contains, "size": size}
    first = browser.page(which, **asked)
    pages = [browser.page(which, page=page, **asked) for page in range(first.pages + 1)]
    assert pages[0] == first
    assert pages[-1].rows == ()
    found = [row for page in pages for row in page.rows]
    assert {page.total for page in pages} == {len(found)}
    released = release.to_arrow()["query"].to_pylist()
    issued = {}
    for user, query in zip(*(log_columns(log)), strict=True):
        issued.setdefault(query, []).append(user)
    expected = {
        query
        for query, users in issued.items()
        if (query in released) == (which == "released")
        and (not one_user or len(set(users)) == 1)
        and contains.strip().lower() in query
    }
    assert sorted(row.query for row in found) == sorted(expected)
    for row in found:
        users = issued[row.query]
        assert (row.users, row.events, row.rows) == (len(set(users)), len(users), released.count(row.query))
        assert row.kinds is None
    ranks = {
        "longest": [-len(row.query) for row in found],
        "rarest_word": [row.word_users for row in found],
        "users": [-row.users for row in found],
    }
    if order in ranks:
        assert ranks[order] == sorted(ranks[order])


def log_columns(log):
    rows = log.engine.fetch(
        "SELECT e.user_id AS u, q.query AS query FROM events e JOIN queries q ON q.query_id = e.query_id"
    )
    return rows["u"].to_pylist(), rows["query"].to_pylist()


def people():
    return qv.read_log(
        table([Row(f"u{i % 6}", ["tea", f"jane{i}@example.com", "call 555-0123 tea", "pot"][i % 4]) for i in range(48)])
    )


def test_queries_with_personal_data_can_be_looked_for():
    log = people()
    browser = Browser(qv.Equality(k=3).anonymize(log), log, kinds=["email"])
    found = browser.page("held", flagged=True, order="longest", size=100)
    assert found.total == 12
    assert {row.kinds for row in found.rows} == {("email",)}
    assert {row.kinds for row in browser.page("released").rows} == {()}


def test_pages_can_be_prepared():
    log = people()
    browser = Browser(qv.Equality(k=3).anonymize(log), log, kinds=["email"])
    assert browser.page("released").rows[0].kinds is None
    browser.prepare()
    assert browser.page("released").rows[0].kinds is None
    browser.prepare(flagged=True)
    assert browser.page("released").rows[0].kinds == ()


def test_masked_queries_of_a_release_are_among_its_queries():
    log = people()
    release = qv.Pipeline([qv.Scrub(how="mask", kinds=["email"]), qv.Equality(k=2)]).anonymize(log)
    rows = [*release.to_arrow().to_pylist()]
    assert {row["query"] for row in rows} == {"tea", "call 555-0123 tea", "pot"}
    masked = qv.read_log(table([Row(f"u{i}", f"jane{i}@example.com pizza") for i in range(4)]))
    release = qv.Pipeline([qv.Scrub(how="mask", kinds=["email"]), qv.Equality(k=2)]).anonymize(masked)
    browser = Browser(release, masked, kinds=["email"])
    (row,) = browser.page("released").rows
    assert (row.query, row.users, row.rows) == ("<email> pizza", 0, 4)
    assert browser.page("held").total == 4
    assert browser.page("held", flagged=True).total == 4


def test_the_random_order_follows_from_the_seed():
    log = people()
    release = qv.Equality(k=3).anonymize(log)
    order = [[row.query for row in Browser(release, log, seed=seed).page("held").rows] for seed in (1, 1, 2)]
    assert order[0] == order[1] != order[2]


def test_what_cannot_be_browsed_is_refused_in_a_sentence(tmp_path):
    log = people()
    release = qv.Equality(k=3).anonymize(log)
    release.save(tmp_path / "r")
    assert Browser(tmp_path / "r", log).page().total == 3
    with pytest.raises(qv.QueryveilError, match="The release was made from another log"):
        Browser(release, qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"]})))
    with pytest.raises(qv.QueryveilError, match="The release has no queries that could be browsed"):
        Browser(qv.Hash().anonymize(log), log)
    browser = Browser(release, log)
    for asked, sentence in (
        ({"which": "all"}, "must be one of released, held. Got 'all'"),
        ({"order": "best"}, "must be one of random, longest, rarest_word, users"),
        ({"page": -1}, "must be a whole number of at least 0"),
        ({"size": 0}, "must be a whole number of at least 1"),
    ):
        with pytest.raises(qv.QueryveilError, match=sentence):
            browser.page(**asked)
