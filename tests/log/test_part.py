"""Part of a log: the events of some queries, with the ids of queries that the whole has, on every engine."""

from collections import Counter

import pyarrow as pa
import pytest

import queryveil as qv
from tests.both import on_both_engines, on_one_machine
from tests.oracles.log import Row, good
from tests.strategies import table

ROWS = [
    Row("a", "tea", "2006-03-01 10:00:00", 1, "http://tea.com", "phone", "NL"),
    Row("a", "red mug", "2006-03-01 10:05:00", None, None, "phone", "NL"),
    Row("b", "red mug", "2006-03-02 10:00:00", 2, "http://mug.com", "desk", "NL"),
    Row("c", "coffee", "2006-03-02 11:00:00", 1, "http://coffee.com", None, "US"),
    Row("d", "tea", "2006-03-03 10:00:00", 1, "http://tea.com", "desk", "US"),
    Row("d", "jo@example.org", "2006-03-03 10:01:00", None, None, "desk", "US"),
]
TABLE = table(ROWS)


def ids(log, *queries):
    found = log.engine.fetch("SELECT query_id, query FROM queries").to_pylist()
    return pa.table({"query_id": pa.array([row["query_id"] for row in found if row["query"] in queries], log.id_type)})


def searches(log):
    found = log.engine.fetch(
        'SELECT u."user" AS name, q.query AS query, w.url AS url, x.value AS country FROM events e'
        " JOIN users u ON u.user_id = e.user_id JOIN queries q ON q.query_id = e.query_id"
        ' JOIN "extra country" x ON x.id = e."country id"'
        " LEFT JOIN clicks c ON c.event_id = e.event_id LEFT JOIN urls w ON w.url_id = c.url_id"
    )
    return Counter(tuple(row.values()) for row in found.to_pylist())


def in_both(part, log):
    """The id of each user in the part: by the names of the whole, and by those of the part."""
    with log.workspace() as work, part.workspace() as own:
        there = part.in_whole(own.table('SELECT user_id, CAST(user_id AS BIGINT) AS "user" FROM users', "who"), work)
        named = work.fetch(f'SELECT u."user" AS name, w."user" AS id FROM {there} w JOIN users u USING (user_id)')
        mine = own.fetch('SELECT "user" AS name, user_id AS id FROM users')
    return [{row["name"]: row["id"] for row in found.to_pylist()} for found in (named, mine)]


@on_both_engines
def test_a_part_has_the_events_of_its_queries_and_their_ids(read):
    log = read(TABLE)
    with log.workspace() as work:
        part = log.only(work.read(ids(log, "red mug", "coffee"), "some"), "why")
    expected = [row for row in good(ROWS) if row.query in ("red mug", "coffee")]
    assert searches(part) == Counter((row.user, row.query, row.url, row.country) for row in expected)
    assert (part.stats.events, part.stats.users, part.stats.clicks, part.stats.rows) == (3, 3, 2, 3)
    assert part.fingerprint == log.fingerprint
    assert part.whole is log
    assert log.whole is log
    assert part.secret(1, "x") != log.secret(1, "x")
    same = "SELECT DISTINCT q.query_id AS a, q.query AS b FROM events e JOIN queries q ON q.query_id = e.query_id"
    whole = {tuple(row.values()) for row in log.engine.fetch(same).to_pylist()}
    assert {tuple(row.values()) for row in part.engine.fetch(same).to_pylist()} < whole
    there, mine = in_both(part, log)
    assert there == mine
    assert set(mine) == {"a", "b", "c"}
    part.close()


@on_one_machine
def test_a_scrubbed_log_knows_its_users_in_the_original(read):
    log = read(TABLE)
    scrubbed = qv.scrub(log, "remove", kinds=["email"])
    assert scrubbed.whole is scrubbed, "its queries have ids of their own"
    there, mine = in_both(scrubbed, log)
    assert there == mine


@on_one_machine
def test_a_part_of_nothing_is_refused(read):
    log = read(TABLE)
    with log.workspace() as work:
        nothing = work.read(ids(log), "nothing")
        with pytest.raises(qv.QueryveilError, match="Nothing is left of the log after the first steps"):
            log.only(nothing, "why")
