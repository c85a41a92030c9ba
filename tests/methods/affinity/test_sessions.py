"""Sessions as units of affinity, against the definition."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import AffineSessions
from queryveil.claims.affine_sessions import _pieces_together, _Units
from queryveil.errors import QueryveilError
from tests.oracles.affinity import protected_sessions, vectors_of
from tests.oracles.log import Row
from tests.oracles.sessions import sessions
from tests.strategies import examples, table

ASKED = ["tea", "tea cup", "red tea cup", "red cup", "blue cup", "mug", "big mug", "xyzzy", "plugh"]
LOGS = st.lists(
    st.builds(
        Row,
        user=st.sampled_from("abcdefg"),
        query=st.sampled_from(ASKED),
        time=st.none() | st.integers(0, 120).map(lambda minute: f"2006-03-01 {minute // 60:02}:{minute % 60:02}:00"),
        rank=st.none(),
        url=st.none(),
        device=st.none(),
        country=st.none(),
    ),
    min_size=4,
    max_size=60,
).filter(lambda rows: any(row.time for row in rows))


def contents(groups) -> Counter:
    return Counter(tuple(sorted(group)) for group in groups if group)


def released(release: qv.Release) -> dict[int, list[str]]:
    found = defaultdict(list)
    for row in pa.Table.from_batches(list(release.batches()), release.schema).to_pylist():
        found[row["session"]].append(row["query"])
    return found


def by_definition(log, rows, method, kept):
    """What the oracle releases of the sessions of a log, given the released queries."""
    text = log.query_text.to_pylist()
    event = {row["event_id"]: (row["user_id"], text[row["query_id"]]) for row in log.events.to_pylist()}
    found = []
    for one in sessions(log, method.session_gap, method.session_events):
        asked = [event[e][1] for e in one if event[e][1] in kept]
        if asked:
            found.append((event[one[0]][0], asked))
    events = dict(zip(text, log.events_per_query.tolist(), strict=True))
    history = defaultdict(set)
    for user, query in event.values():
        history[user].add(query)
    new = {user for user, queries in history.items() if len(queries) <= 2}
    vector = vectors_of(rows, method.concept_min_users, method.vectors)
    return contents(protected_sessions(found, vector, events, method.k, method.theta, new, method.max_new_users))


@settings(max_examples=examples(25))
@given(
    LOGS,
    st.integers(2, 4),
    st.sampled_from([0.5, 0.7, 0.9]),
    st.sampled_from(["words", "concepts"]),
    st.none() | st.integers(0, 2),
    st.integers(1, 6),
)
def test_sessions_are_released_as_the_definition_says_and_the_verifier_agrees(rows, k, theta, vectors, most_new, size):
    log = qv.read_log(table(rows))
    if log.n_users < k:
        return
    method = qv.Affinity(
        k=k, theta=theta, vectors=vectors, concept_min_users=2, min_term_users=1, max_new_users=most_new,
        link="session", unit="session", session_gap=20, session_events=size,
    )  # fmt: skip
    release = method.anonymize(log, seed=1)
    groups = released(release)
    kept = {query for group in groups.values() for query in group}
    assert contents(groups.values()) == by_definition(log, rows, method, kept)
    found = qv.verify(release, log)
    assert found.holds, found
    plain = method.model_copy(update={"unit": "query"}).anonymize(log, seed=1)
    assert Counter(q for group in groups.values() for q in group) == Counter(
        q for group in released(plain).values() for q in group
    ), "no event is lost"


def popular() -> list[Row]:
    """Six users with like sessions, and one whose session joins two queries that nobody else joins."""
    rows = []
    for minute, user in enumerate("abcdef"):
        rows += [
            Row(user, query, f"2006-03-0{day} 10:{minute:02}:00")
            for day, query in ((1, "tea cup"), (1, "red tea cup"), (2, "big mug"))
        ]
    return [*rows, *(Row("z", query, "2006-03-05 10:00:00") for query in ("tea cup", "big mug"))]


METHOD = qv.Affinity(k=5, concept_min_users=2, link="session", unit="session")


def test_a_session_that_nobody_else_had_is_cut_and_the_others_stay():
    release = METHOD.anonymize(qv.read_log(table(popular())), seed=1)
    expected = {("red tea cup", "tea cup"): 6, ("big mug",): 7, ("tea cup",): 1}
    assert contents(released(release).values()) == expected
    assert "6 of 7 sessions of several queries are released as one, the others query by query." in release.notes
    claims = [claim for claim in release.manifest.claims if isinstance(claim, AffineSessions)]
    assert [claim.users for claim in claims] == [5]
    assert len(claims[0].headline.split()) <= 15


def forged(release: qv.Release, change) -> qv.Release:
    """A release with other sessions, numbered from 1, in their order."""
    rows = pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()
    rows = sorted(change(rows), key=lambda row: (row["session"], row["query"]))
    numbers = {old: new for new, old in enumerate(sorted({row["session"] for row in rows}), 1)}
    for event, row in enumerate(rows, 1):
        row |= {"session": numbers[row["session"]], "event": event}
    made = pa.Table.from_pylist(rows, release.schema)
    return replace(release, batches=lambda: iter(made.to_batches()))


def of_session(rows, queries):
    groups = defaultdict(list)
    for row in rows:
        groups[row["session"]].append(row)
    return next(group for group in groups.values() if sorted(row["query"] for row in group) == sorted(queries))


def linked(rows):
    """The session that was cut, as one again."""
    alone = of_session(rows, ["tea cup"])
    alone[0]["session"] = of_session(rows, ["big mug"])[0]["session"]
    return rows


def one_dropped(rows):
    """A session of two queries less."""
    gone = of_session(rows, ["tea cup", "red tea cup"])
    return [row for row in rows if row not in gone]


def one_cut(rows):
    """One of six like sessions is cut, so that its user does not stand behind the others."""
    of_session(rows, ["tea cup", "red tea cup"])[0]["session"] = 1000
    return rows


def alone_dropped(rows):
    """A query by itself less."""
    gone = of_session(rows, ["big mug"])
    return [row for row in rows if row not in gone]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (linked, "has 1 users behind it"),
        (one_dropped, "are all queries of 5 released sessions, and of 6 of the log"),
        (one_cut, "are all queries of 5 released sessions, and of 6 of the log"),
        (alone_dropped, "is not as often a session of its own as the log has it"),
    ],
)
def test_the_verifier_finds_what_is_wrong(change, found):
    log = qv.read_log(table(popular()))
    release = METHOD.anonymize(log, seed=1)
    verdicts = qv.verify(forged(release, change), log).verdicts
    ours = [verdict for verdict in verdicts if verdict.headline and "session of several queries" in verdict.headline]
    assert [verdict.holds for verdict in ours] == [False]
    assert found in ours[0].counterexample


def test_units_need_sessions_and_a_log_with_times():
    with pytest.raises(QueryveilError, match="without link='session' there are none"):
        qv.Affinity(unit="session")
    log = qv.read_log(table([Row(user, "tea") for user in "abcdef"]))
    with pytest.raises(QueryveilError, match="this log has none"):
        METHOD.anonymize(log)


def test_pieces_of_one_session_with_neighbouring_numbers_are_seen():
    n = 40
    ids, ones = np.arange(2 * n), np.ones(2 * n, np.int64)
    original = _Units(2 * np.arange(n + 1), ids[:n], ids[:n], ids, ones)
    whole = np.zeros(n, np.bool_)
    released = _Units(np.arange(2 * n + 1), ids, ids, ids, ones)
    assert _pieces_together(released, original, whole)
    at_random = np.random.default_rng(0).permutation(2 * n)
    assert not _pieces_together(replace(released, query=at_random), original, whole)
