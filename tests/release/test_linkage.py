"""Linkage by background knowledge: what it measures, against the literal way, and where there is nothing to find."""

import re

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.engines import Table
from queryveil.log.draws import keyed
from queryveil.release.linkage import Linkage, measure_linkage
from tests.assess.attacks.helpers import own_words, random_queries, read
from tests.both import on_both_engines_weekly
from tests.oracles import background as oracle


def released(log, size=None, seed=None):
    """Every event under an id of its user, or of each `size` events of a user in turn; or under ids at random."""
    events = log.engine.fetch("SELECT event_id, user_id, query_id FROM events ORDER BY event_id")
    user = events["user_id"].to_numpy()
    if seed is not None:
        user = np.random.default_rng(seed).permutation(user)
    part = np.arange(len(user)) // size if size else np.zeros(len(user), int)
    record = np.unique(user * len(user) + part, return_inverse=True)[1].astype(np.int64)
    log.engine.read("rows", pa.table({"user": record, "query_id": events["query_id"], "event": events["event_id"]}))
    pairs = np.unique(np.stack([user, record], axis=1), axis=0)
    log.engine.read("who", pa.table({"user_id": pa.array(pairs[:, 0], log.id_type), "user": pairs[:, 1]}))
    return 'SELECT "user", query_id, event FROM rows', Table("who")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [None, 3])
def test_it_is_the_literal_way(seed, size):
    log = random_queries(users=12, queries=8, seed=seed, words=9) if seed % 2 else own_words(12, 8, seed, of_own=0.3)
    found = measure_linkage(log, *released(log, size), column="user", seed=seed)
    events = log.engine.fetch("SELECT event_id, user_id, query_id FROM events ORDER BY event_id")
    draw = keyed(log.secret(seed, "background knowledge"), events["event_id"].to_numpy().astype(np.uint64))
    rows = log.engine.fetch('SELECT "user" AS record, query_id FROM rows')
    records = {}
    for record, query in zip(rows["record"].to_pylist(), rows["query_id"].to_pylist(), strict=True):
        records.setdefault(record, []).append(query)
    who = log.engine.fetch('SELECT user_id, "user" AS record FROM who')
    linked, texts, learned = oracle.measure(
        list(zip(draw.tolist(), events["user_id"].to_pylist(), events["query_id"].to_pylist(), strict=True)),
        lambda query: log.query_text[query].as_py().split(),
        records,
        dict(zip(who["record"].to_pylist(), who["user_id"].to_pylist(), strict=True)),
    )
    assert found.texts == texts
    assert found.learned == pytest.approx(learned)
    assert found.linked == pytest.approx(linked)
    assert (found.users, found.pseudonyms) == (12, len(records))
    assert found.low <= found.learned <= found.high


def test_words_of_ones_own_give_everybody_away_and_records_at_random_nobody():
    log = own_words()
    found = measure_linkage(log, *released(log), column="user", seed=0)
    assert found.learned > 0.99
    assert found.baseline == 1 / 120
    null = [measure_linkage(log, *released(log, seed=seed), column="user", seed=seed) for seed in range(10)]
    # What is released under another's id is no text of theirs unless they issued it too.
    assert np.mean([one.learned for one in null]) < 0.1


def test_where_nothing_is_anybodys_nothing_is_learned():
    log = random_queries(users=200, queries=6, words=60)
    found = measure_linkage(log, *released(log, size=1), column="session", seed=0)
    assert found.low <= found.baseline * 3


def test_shorter_sessions_teach_less():
    log = own_words(of_own=0.4)
    learned = [measure_linkage(log, *released(log, size), column="session", seed=0).learned for size in (None, 4, 1)]
    assert learned[0] > learned[1] > learned[2]


def test_what_one_knows_already_is_no_finding():
    log = read([(u, f"only{u}") for u in range(30) for _ in range(4)])
    assert measure_linkage(log, *released(log), column="user", seed=0) is None
    alone = read([(0, "a b"), (0, "c")])
    assert measure_linkage(alone, *released(alone), column="user", seed=0) is None


def test_rows_of_one_event_count_once():
    log = own_words(20, 6, of_own=0.3)
    rows, who = released(log)
    once = measure_linkage(log, rows, who, column="user", seed=0)
    twice = f"{rows} UNION ALL {rows}"
    assert measure_linkage(log, twice, who, column="user", seed=0) == once
    assert Linkage.model_validate_json(once.model_dump_json()) == once
    left = log.engine.fetch("SELECT table_name AS name FROM information_schema.tables")["name"].to_pylist()
    assert not [name for name in left if re.search(r" \d+$", name)]


TABLE = pa.table(
    {
        "user": [f"u{u}" for u in range(24) for _ in range(6)],
        "query": [f"w{(u * 7 + i * i) % 5} v{(u * i + 3 * u) % 4}" for u in range(24) for i in range(6)],
    }
)


@on_both_engines_weekly
def test_both_engines_say_the_same(read):
    log = read(TABLE)
    log.engine.number("SELECT user_id FROM users", ("user_id",), "who", "user")
    rows = (
        'SELECT w."user" AS "user", e.query_id AS query_id, e.event_id AS event FROM events e'
        " JOIN who w ON w.user_id = e.user_id"
    )
    here = qv.read_log(TABLE)
    here.engine.number("SELECT user_id FROM users", ("user_id",), "who", "user")
    found = measure_linkage(log, rows, Table("who"), column="user", seed=3)
    assert found == measure_linkage(here, rows, Table("who"), column="user", seed=3)
    assert 0.1 < found.learned < 0.9
