"""What ties released events together: nothing, sessions or users; and what the verifier sees of it."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims.linked import clustered, follows
from queryveil.errors import QueryveilWarning
from queryveil.log.sessions import Linking, make_sessions
from tests.oracles.log import Row
from tests.oracles.sessions import sessions
from tests.strategies import table

TIMES = st.integers(0, 400).map(lambda minute: f"2006-03-01 {minute // 60:02}:{minute % 60:02}:00")
LOGS = st.lists(
    st.builds(
        Row,
        user=st.sampled_from("abcd"),
        query=st.sampled_from(["tea", "mug", "red cup", "blue tea", "cup"]),
        time=st.none() | TIMES,
        rank=st.none(),
        url=st.none() | st.sampled_from(["http://a.com", "http://b.org"]),
        device=st.none(),
        country=st.none(),
    ),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(row.time for row in rows))


def rows_of(release: qv.Release) -> list[dict]:
    return pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()


def contents(groups) -> Counter:
    return Counter(tuple(sorted(group)) for group in groups if group)


@given(LOGS, st.integers(1, 90), st.integers(1, 6))
def test_sessions_are_those_of_the_definition(rows, gap, most):
    log = qv.read_log(table(rows))
    with log.workspace() as work:
        made = make_sessions(work, Linking("session", gap, most))
        found = work.fetch(f"SELECT event_id, session FROM {made}").to_pylist()
    groups = {}
    for row in found:
        groups.setdefault(row["session"], []).append(row["event_id"])
    assert contents(groups.values()) == contents(sessions(log, gap, most))
    assert all(key == min(group) for key, group in groups.items())


@given(LOGS, st.integers(1, 90), st.integers(1, 6))
def test_what_stands_under_a_session_id_is_what_its_session_asked(rows, gap, most):
    log = qv.read_log(table(rows))
    if log.n_users < 2:
        return
    release = qv.Equality(k=2, link="session", session_gap=gap, session_events=most).anonymize(log, seed=1)
    kept = {row["query"] for row in rows_of(release)}
    query = {row["event_id"]: log.query_text[row["query_id"]].as_py() for row in log.events.to_pylist()}
    expected = contents([[query[e] for e in one if query[e] in kept] for one in sessions(log, gap, most)])
    found = {}
    for row in {(row["session"], row["event"], row["query"]) for row in rows_of(release)}:
        found.setdefault(row[0], []).append(row[2])
    assert contents(found.values()) == expected
    assert sorted(found) == list(range(1, len(found) + 1))
    assert release.manifest.counts.sessions == len(found)
    assert "user" not in release.schema.names
    verification = qv.verify(release, log)
    assert verification.holds, verification


LINKS = ["none", "session", "user"]
METHODS = [
    qv.Equality(k=2, link="session"),
    qv.Affinity(k=2, link="session"),
    qv.Rules(min_query_users=2, link="session"),
    qv.Rules(min_query_users=2, min_row_users=2, link="session"),
    qv.Poblete(k=1, sites=1, link="session"),
    qv.Wngen(k=2, link="session"),
    qv.Hash(link="session"),
]


@pytest.fixture(scope="module")
def log():
    """Forty people, each with three sessions of two or three queries that others ask too."""
    rng = np.random.default_rng(3)
    words = ["tea", "mug", "cup", "plate", "fork", "knife", "spoon", "bowl"]
    rows = [
        Row(
            f"u{user:02}",
            " ".join(rng.choice(words, 1 + rng.integers(2), replace=False)),
            f"2006-03-{1 + user % 28:02} {3 * visit + 1:02}:{7 * i:02}:00",
            url=f"http://{rng.choice(['a', 'b'])}.com",
        )
        for user in range(40)
        for visit in range(3)
        for i in range(2 + rng.integers(2))
    ]
    return qv.read_log(table(rows))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_that_releases_events_has_sessions(log, method):
    release = method.anonymize(log, seed=1)
    assert "session" in release.schema.names
    assert release.manifest.counts.sessions > (3 if method.name == "poblete" else 40)
    verification = qv.verify(release, log)
    assert verification.holds, verification


@pytest.mark.parametrize("method", [type(method)(**method.parameters() | {"link": "none"}) for method in METHODS])
def test_by_default_nothing_ties_events_together(log, method):
    assert type(method).model_fields["link"].default == "none"
    release = method.anonymize(log, seed=1)
    assert not {"user", "session"} & set(release.schema.names)
    assert (release.pseudonyms, release.linkage) == (None, None)
    with pytest.raises(qv.QueryveilError, match="no user ids or session ids"):
        next(release.user_map())


def forged(release: qv.Release, change) -> qv.Release:
    rows = pa.Table.from_pylist(change(rows_of(release)), release.schema)
    return replace(release, batches=lambda: iter(rows.to_batches()))


def refuted(release: qv.Release, log: qv.QueryLog) -> str:
    return "; ".join(v.counterexample or "" for v in qv.verify(release, log).verdicts if not v.holds)


@pytest.mark.parametrize("link", ["session", "user"])
@pytest.mark.parametrize("least", [None, 2], ids=["whole", "rows"])
def test_two_under_one_pseudonym_are_refuted(log, link, least):
    release = qv.Rules(min_query_users=2, min_row_users=least, link=link).anonymize(log, seed=1)
    most = max(row[link] for row in rows_of(release))
    joined = forged(release, lambda rows: [row | {link: min(row[link], most - 1)} for row in rows])
    assert "are not those of any" in refuted(joined, log) or f"no {link} of the log has all" in refuted(joined, log)


def test_queries_that_change_places_between_sessions_are_refuted(log):
    release = qv.Equality(k=2, link="session").anonymize(log, seed=1)
    rows = rows_of(release)
    at = next(i for i, row in enumerate(rows) if row["query"] != rows[0]["query"] and row["session"] > 5)
    swap = {0: rows[at]["query"], at: rows[0]["query"]}
    changed = forged(release, lambda rows: [row | {"query": swap.get(i, row["query"])} for i, row in enumerate(rows)])
    assert refuted(changed, log)


def test_a_session_that_is_longer_than_promised_is_refuted(log):
    release = qv.Equality(k=2, link="session", session_events=3).anonymize(log, seed=1)
    less = release.manifest.parameters | {"session_events": 1}
    claims = [
        claim.model_copy(update={"sessions": claim.sessions.model_copy(update={"events": 1})})
        if claim.kind == "linked-events"
        else claim
        for claim in release.manifest.claims
    ]
    posed = release.manifest.model_copy(update={"parameters": less, "claims": tuple(claims)})
    assert "are not those of any session left" in refuted(replace(release, manifest=posed), log)


def test_a_claim_about_sessions_cannot_be_left_out(log):
    release = qv.Equality(k=2, link="session").anonymize(log, seed=1)
    claims = tuple(claim for claim in release.manifest.claims if claim.kind != "linked-events")
    posed = replace(release, manifest=release.manifest.model_copy(update={"claims": claims}))
    assert "it does not claim: The events under one pseudonym" in refuted(posed, log)


@pytest.mark.parametrize("by", ["user", "time"])
def test_ids_that_follow_users_or_times_are_refuted(log, by):
    method = qv.Equality(k=2, link="session")
    release = method.anonymize(log, seed=1)
    whose = {row["user"]: row["user_id"] for row in truth(release, log)}
    began = {one["session"]: one["time"] for one in starts(release, log)}
    order = sorted(whose, key=lambda session: (whose if by == "user" else began)[session])
    number = {session: i for i, session in enumerate(order, 1)}

    def change(rows):
        rows = sorted((row | {"session": number[row["session"]]} for row in rows), key=lambda row: row["session"])
        ids = {log.query_text[i].as_py(): i for i in range(log.n_queries)}
        rows.sort(key=lambda row: (row["session"], ids[row["query"]]))
        return [row | {"event": i} for i, row in enumerate(rows, 1)]

    found = refuted(forged(release, change), log)
    assert "follow users" in found or "follow times" in found or "neighbouring numbers" in found


def truth(release, log):
    return log.engine.fetch(f'SELECT user_id, "user" FROM {release.pseudonyms}').to_pylist()


def starts(release, log):
    """When each released session began."""
    return log.engine.fetch(
        f'SELECT f."user" AS session, e.time AS time FROM {release.pseudonyms} f JOIN events e'
        " ON e.event_id = f.session"
    ).to_pylist()


def test_events_in_the_order_of_their_times_are_refuted(log):
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    rows = rows_of(release)
    n = max(row["event"] for row in rows)
    backwards = forged(release, lambda rows: [row | {"event": n + 1 - row["event"]} for row in rows])
    assert "not in the order of pseudonyms and texts" in refuted(backwards, log)


@pytest.mark.parametrize("method", [type(m)(**m.parameters() | {"link": link}) for m in METHODS for link in LINKS])
def test_rows_in_another_order_are_refuted(log, method):
    release = method.anonymize(log, seed=1)
    moved = forged(release, lambda rows: [*rows[1:], rows[0]])
    assert "is not in the order of pseudonyms and texts" in refuted(moved, log)
    swapped = forged(release, lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]])
    same = rows_of(release)[2] == rows_of(release)[3]
    assert same or "row 4 is not" in refuted(swapped, log)


def test_what_cannot_be_measured_is_warned_of_too(tmp_path):
    rows = [Row(user, "tea", "2006-03-01 10:00:00") for user in "abc"]
    log = qv.read_log(table(rows))
    release = qv.Equality(k=2, link="user").anonymize(log)
    assert release.linkage is None
    with pytest.warns(QueryveilWarning, match="could not be measured"):
        release.save(tmp_path / "r")
    assert "could not be measured" in (tmp_path / "r" / "report.md").read_text()
    assert qv.verify(tmp_path / "r", log).holds


def test_a_robot_does_not_take_the_place_of_people(monkeypatch):
    from queryveil.release import linkage as background

    monkeypatch.setattr(background, "HEAVY", 50)
    monkeypatch.setattr(background, "EVENTS", 200)
    rows = [Row(f"u{i % 20}", f"word{i % 7} {i % 3}", f"2006-03-01 10:{i % 60:02}:{i % 7:02}") for i in range(120)]
    rows += [Row("robot", f"word{i % 7} {i % 3}", f"2006-03-02 {i // 60:02}:{i % 60:02}:00") for i in range(300)]
    found = qv.Equality(k=2, link="user").anonymize(qv.read_log(table(rows))).linkage
    assert found.users == 20


def test_random_orders_are_not_taken_for_a_pattern():
    rng = np.random.default_rng(1)
    for _ in range(300):
        user = rng.permutation(np.repeat(np.arange(40), 5))
        assert not follows(user)
        assert not clustered(user)
    assert follows(np.arange(60))
    assert clustered(np.repeat(rng.permutation(40), 5))


def test_sessions_need_times():
    log = qv.read_log(pa.table({"user": list("abc"), "query": ["tea"] * 3}))
    with pytest.raises(qv.QueryveilError, match="found by the times of events, and this log has none; choose link"):
        qv.Equality(k=2, link="session").anonymize(log)


@pytest.mark.parametrize(("name", "value"), [("session_gap", 0), ("session_events", 0), ("session_gap", "soon")])
def test_a_session_without_length_is_refused(name, value):
    with pytest.raises(qv.QueryveilError, match=f"The '{name}' parameter of Equality must be an integer"):
        qv.Equality(link="session", **{name: value})


def test_the_user_map_of_sessions_brings_them_back(log, tmp_path):
    from queryveil.release import Release, with_user_map

    release = qv.Equality(k=2, link="session").anonymize(log, seed=1)
    release.save_user_map(tmp_path / "map.csv")
    with pytest.warns(QueryveilWarning, match=r"events of each session are linked.*half of a person's history links"):
        release.save(tmp_path / "r")
    known = with_user_map(Release.load(tmp_path / "r"), log, tmp_path / "map.csv")
    found = log.engine.fetch(f'SELECT user_id, "user" FROM {known.pseudonyms} ORDER BY "user"').to_pylist()
    assert found == sorted(truth(release, log), key=lambda row: row["user"])
    lines = (tmp_path / "map.csv").read_text().splitlines()
    (tmp_path / "less.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(qv.QueryveilError, match="does not fit the release"):
        with_user_map(Release.load(tmp_path / "r"), log, tmp_path / "less.csv")


def test_what_was_measured_stands_in_manifest_and_report(log, tmp_path):
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    with pytest.warns(QueryveilWarning):
        release.save(tmp_path / "r")
    loaded = qv.Release.load(tmp_path / "r")
    assert loaded.linkage == release.linkage
    assert loaded.linkage.users == 40
    text = (tmp_path / "r" / "report.md").read_text()
    assert f"{100 * loaded.linkage.learned:.1f} % of a person's released queries" in text
    assert qv.verify(tmp_path / "r", log).holds
