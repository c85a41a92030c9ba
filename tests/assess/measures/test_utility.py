"""Retention, distances of frequencies and tasks: literal on small logs, perfect on a log released as it is."""

import json
from collections import Counter, defaultdict
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.evaluation import evaluate, finite
from queryveil.assess.measures import MEASURES, Value, distribution, record_linkage, retention, tasks
from queryveil.assess.measures.distribution import jensen_shannon
from queryveil.assess.measures.notes import SESSIONS
from queryveil.assess.measures.records import records
from queryveil.assess.measures.tasks import ERROR, TRENDS, Task, _click_places, _completed, _next_places, _spans
from tests.assess.attacks.helpers import as_it_is, together
from tests.strategies import examples

QUERY = st.sampled_from(["red tea", "red", "green tea", "tea pot", "ham", "hamlet", "red team"])
EVENT = st.tuples(
    st.integers(0, 5), QUERY, st.integers(0, 60), st.sampled_from([None, "http://a.com/", "http://b.com/"])
)


def read(rows):
    table = [
        {"user": f"u{u}", "query": q, "time": f"2006-03-{1 + t // 3:02} 00:{t % 60:02}:00", "url": c}
        for u, q, t, c in rows
    ]
    return qv.read_log(pa.Table.from_pylist(table, pa.schema([(name, pa.string()) for name in table[0]])))


PROFILES, CLUSTERS = (MEASURES[name].label for name in ("profile_retention", "cluster_retention"))
BEST_OF_ITSELF = {
    "distance of query frequencies (Jensen-Shannon)": 0,
    "distance of term frequencies (Jensen-Shannon)": 0,
    "rank correlation of the 1,000 most frequent queries": 1,
    "normalized certainty penalty (NCP)": 0,
    "profile retention (SRP), level 1": 1,
    "profile retention (SRP), level 2": 1,
    "information loss (L)": 0,
    PROFILES: 1,
    CLUSTERS: 1,
    "trend counts, relative error": 0,
}


def test_every_number_of_the_log_as_it_is_is_that_of_the_log_itself(tmp_path):
    """With clicks and times: all shares are 1, all distances 0, and all tasks score as on the log."""
    qv.generate(tmp_path / "log.tsv", users=200, seed=1, truth=tmp_path / "truth")
    log = qv.read_log(tmp_path / "log.tsv")
    labels = pq.read_table(tmp_path / "truth" / "queries.parquet")
    found = {one.label: one for one in evaluate(as_it_is(log), log, tests=300, sensitive=labels).measured}
    none = [name for name, one in found.items() if one.value is None]
    assert none == ["distortion per item (GGD)"]
    for name, one in found.items():
        if name in none:
            continue
        assert one.value == pytest.approx(one.best, abs=1e-9), name
        if one.group == "retention":
            assert one.value == 1
    for name, best in BEST_OF_ITSELF.items():
        assert found[name].value == pytest.approx(best, abs=1e-9), name
    for name in ("completion, MRR", "click prediction, hit@1"):
        assert 0 < found[name].value <= 1
    shared = {one.label: one for one in evaluate(together(log, 5), log, tests=300).measured}
    for name in ("distinct queries", "completion, MRR", "profile retention (SRP), level 1"):
        assert shared[name].value < found[name].value


IDENTITY = qv.Rules(max_characters=1000, link="user", time="day")


@settings(max_examples=examples(15))
@given(st.lists(EVENT, min_size=3, max_size=25))
def test_a_log_as_it_is_keeps_everything_but_what_times_within_days_tell(rows):
    log = read(rows)
    release = IDENTITY.anonymize(log)
    kept = retention(release, log)
    assert kept.queries.share == kept.events.share == kept.users.share == kept.terms.share == 1
    assert kept.clicks.share == 0  # which rules leave out
    found = distribution(release, log)
    assert found.queries == found.terms == 0
    assert np.isnan(found.ranks) or found.ranks == pytest.approx(1)
    for task in tasks(release, log, tests=50):
        if task.task == "click prediction":
            assert task.released is None
        else:
            assert task.released == pytest.approx(task.original), task


@settings(max_examples=examples(15))
@given(st.lists(EVENT, min_size=3, max_size=25), st.integers(2, 3))
def test_retention_counts_what_is_there(rows, k):
    log = read(rows)
    if log.n_users < k:
        return
    release = qv.Equality(k=k).anonymize(log)
    events = Counter(log.query_text[event["query_id"]].as_py() for event in log.events.to_pylist())
    users = defaultdict(set)
    for u, query, _, _ in rows:
        users[query].add(u)
    kept = {query for query in events if len(users[query]) >= k}
    found = retention(release, log)
    assert (found.queries.kept, found.queries.of) == (len(kept), len(events))
    assert (found.events.kept, found.events.of) == (sum(events[q] for q in kept), events.total())
    words = {word for query in events for word in query.split()}
    assert (found.terms.kept, found.terms.of) == (len({w for q in kept for w in q.split()}), len(words))
    assert sum(band.kept_queries for band in found.bands) == len(kept)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_the_jensen_shannon_distance_is_the_formula(pairs):
    from scipy.spatial.distance import jensenshannon

    one, other = (np.array(values) for values in zip(*pairs, strict=True))
    found = jensen_shannon(one, other)
    if one.sum() and other.sum():
        assert found == pytest.approx(jensenshannon(one, other, base=2), abs=1e-7)
    else:
        assert found == float(bool(one.sum()) != bool(other.sum()))


@given(
    st.sets(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=6),
)
def test_suggestions_are_what_most_users_share(issued, tests):
    who, what = (np.array(values, np.int64) for values in zip(*sorted(issued), strict=True))
    now, then = (np.array(values, np.int64) for values in zip(*tests, strict=True))
    found = _next_places((who, what), now, then, 7)
    for i, (query, wanted) in enumerate(tests):
        mine = {u for u, q in issued if q == query}
        times = Counter(q for u, q in issued if u in mine and q != query)
        assert found[i] == held_out(times, wanted)


def held_out(times, wanted, own=1):
    """The place of an answer once its own event is taken off the counts."""
    left = Counter({answer: n - own * (answer == wanted) for answer, n in times.items()})
    order = sorted((answer for answer in left if left[answer] > 0), key=lambda answer: (-left[answer], answer))[:10]
    return order.index(wanted) + 1 if wanted in order else 0


@given(st.dictionaries(QUERY, st.integers(0, 4), min_size=1), st.sampled_from([0, 1]), st.data())
def test_completions_are_the_most_frequent_that_begin_so(counts, own, data):
    texts = sorted(counts)
    wanted = data.draw(st.sampled_from(texts))
    spans = _spans(pa.array(texts), [wanted])
    (found,) = _completed(np.array([counts[text] for text in texts]), spans, own)
    begins = wanted[: (len(wanted) + 1) // 2]
    assert found == held_out({text: n for text, n in counts.items() if text.startswith(begins)}, wanted, own)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20), st.sampled_from([0, 1]))
def test_clicks_are_the_most_clicked(clicks, own):
    query, url = (np.array(values, np.int64) for values in zip(*clicks, strict=True))
    found = _click_places((query, url), query, url, own)
    for i, (q, u) in enumerate(clicks):
        assert found[i] == held_out(Counter(b for a, b in clicks if a == q), u, own)


def test_nobody_learns_from_the_event_that_is_tried():
    """Queries and clicks of one user each: once the event is held out, nothing is left to learn from."""
    log = read([(u, f"{'red' * u} {u}", 0, f"http://{u}.com/") for u in range(1, 9)])
    found = {task.task: task.original for task in tasks(IDENTITY.anonymize(log), log)}
    assert found["completion"] == found["click prediction"] == 0


def test_a_record_that_users_share_speaks_once():
    """Nothing else speaks for what one user did, though his whole group has it."""
    rows = [
        (u, f"{['dog', 'cat'][u % 2]} {word}", t, None)
        for u in range(4)
        for t, word in enumerate(f"w{u}x{i}" for i in range(5))
    ]
    log = read(rows)
    for method in (qv.Odp(k=4), qv.Odp(k=4, compact=True)):
        found = {(task.task, task.score): task.released for task in tasks(method.anonymize(log), log)}
        assert found["suggestion", "hit@10"] == found["completion", "MRR"] == 0


def test_clicks_that_k_users_share_are_predicted_as_well_as_from_the_log():
    rows = [(u, "red", 0, "http://a.com/") for u in range(4)] + [(u, "ham", 0, "http://b.com/") for u in range(4)]
    log = read(rows)
    found = [task for task in tasks(qv.Equality(k=2).anonymize(log), log) if task.task == "click prediction"]
    assert [(task.score, task.released, task.original) for task in found] == [("hit@1", 1, 1), ("hit@10", 1, 1)]
    assert retention(qv.Equality(k=2).anonymize(log), log).clicks.share == 1


def test_an_event_with_several_clicks_is_one_event():
    """Two users of the same two queries, and of the same record but for the number of clicks."""
    rows = [(u, query, 0, url) for u, query, url in [
        (0, "red", "http://a.com/"), (0, "red", "http://b.com/"), (0, "ham", None), (1, "red", None), (1, "ham", None),
    ]]  # fmt: skip
    log = read(rows)
    assert log.stats.events == 4
    _, released = records(as_it_is(log), "a test")
    assert released.times.tolist() == [1, 1, 1, 1]
    assert record_linkage(as_it_is(log)) == 50


def test_trends_without_times_are_spread_over_all_weeks():
    log = read([(u, "red", 30 * (u % 2), None) for u in range(8)])  # two weeks, four events each
    found = {task.task: task for task in tasks(qv.Equality(k=2).anonymize(log), log)}
    assert found["trend counts"].released == pytest.approx(0)
    log = read([(u, "red", 0 if u else 30, None) for u in range(8)])  # seven events and one
    found = {task.task: task for task in tasks(qv.Equality(k=2).anonymize(log), log)}
    assert found["trend counts"].released == pytest.approx((3 + 3) / 8)


def test_an_evaluation_says_what_does_not_apply(tmp_path):
    log = read([(u, f"{['dog', 'cat', 'violin'][u % 3]} {u % 2}", u, "http://a.com/") for u in range(12)])
    release = qv.Equality(k=2, link="user").anonymize(log)
    found = {one.label: one for one in evaluate(release, log).measured}
    assert found["distinct queries"].value == 1
    assert found["information loss (L)"].value is not None
    release.save(tmp_path / "r")
    found = {one.label: one for one in evaluate(qv.Release.load(tmp_path / "r"), log).measured}
    for name in ("profile retention (SRP), level 1", "information loss (L)"):
        assert "still knows whose record" in found[name].why
    found = {one.label: one for one in evaluate(qv.Clump(k=2).anonymize(log), log).measured}
    assert found["distinct queries"].value is None
    assert found["distortion per item (GGD)"].value is not None
    other = read([(u, "dog", u, None) for u in range(4)])
    with pytest.raises(qv.QueryveilError, match="made from another log"):
        evaluate(release, other)


def test_an_event_without_a_time_follows_nothing():
    rows = [
        {"user": f"u{u}", "query": q, "time": t}
        for u in range(3)
        for q, t in (("red", "2006-03-01 00:00:00"), ("ham", None))
    ]
    log = qv.read_log(pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in rows[0]])))
    found = {task.task: task for task in tasks(qv.Equality(k=2, link="user").anonymize(log), log)}
    assert found["suggestion"].tests == 0


def test_there_are_no_trends_where_frequent_queries_have_no_time():
    rows = [{"user": f"u{u}", "query": f"red {n}", "time": None} for u in range(2) for n in range(TRENDS)]
    rows.append({"user": "u9", "query": "ham", "time": "2006-03-01 00:00:00"})
    log = qv.read_log(pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in rows[0]])))
    assert "trend counts" not in {task.task for task in tasks(qv.Equality(k=2, link="user").anonymize(log), log)}


def measured(method, log):
    return {one.label: one for one in evaluate(method.anonymize(log), log, tests=20).measured}


def test_a_log_without_a_word_of_the_knowledge_base_has_reasons_in_the_place_of_numbers():
    log = read(
        [
            (u, query, 0, None)
            for u in range(12)
            for query in ("天气预报", "北京 地图", f"私人{'甲乙丙丁戊己庚辛壬癸子丑'[u]}")
        ]
    )
    release = qv.Equality(k=3, link="user").anonymize(log)
    found = evaluate(release, log, tests=20)
    json.dumps(asdict(found), allow_nan=False)
    by_name = {one.label: one for one in found.measured}
    for level in (1, 2):
        one = by_name[f"profile retention (SRP), level {level}"]
        assert one.value is None
        assert "no user of the log has a category" in one.why
    assert "at least two users with a category" in by_name["information loss (L)"].why


def test_what_is_not_finite_is_not_told_as_a_number():
    for value in (float("nan"), float("inf")):
        one = finite(MEASURES["completion"], Value(value))
        assert one.value is None
        assert one.why


def test_where_users_are_not_named_by_step_none_are_said_to_be_lost():
    log = read([(u, f"dog {i}", u, None) for u in range(12) for i in range(2)])
    for method in (qv.Equality(k=2, link="none"), qv.DpSet(epsilon=50.0, delta=0.1)):
        assert retention(method.anonymize(log), log).users is None
        one = measured(method, log)["users"]
        assert (one.value, one.why) == (None, "no user ids released")
    assert measured(qv.Equality(k=2, link="user"), log)["users"].value == 1
    assert measured(qv.Odp(k=2, compact=True), log)["users"].value == 1


def test_the_information_loss_tells_releases_of_a_small_log_apart(tmp_path):
    qv.generate(tmp_path / "log.tsv", users=200, seed=1)
    log = qv.read_log(tmp_path / "log.tsv")
    near, far = (
        measured(method, log)["information loss (L)"].value for method in (qv.Mdav(k=2), qv.Equality(k=20, link="user"))
    )
    assert 0.1 < near < far - 0.1


def test_where_no_record_has_a_category_there_is_no_information_loss():
    """SRP is measured all the same: nothing is left, which is a number."""
    words = ["dog", "cat", "violin", "piano"]
    log = read([(u, query, 0, None) for u in range(8) for query in ("天气预报", f"{words[u % 4]} {u}")])
    found = measured(qv.Equality(k=4, link="user"), log)
    assert (found["information loss (L)"].value, found["information loss (L)"].why) == (
        None,
        "no released record has a category",
    )
    assert found["profile retention (SRP), level 1"].value == 0


def test_of_interests_each_measure_has_its_own_reason():
    """One user alone has a category: enough for SRP, not for L."""
    log = read([(u, "天气预报", 0, None) for u in range(4)] + [(0, "dog", 0, None)])
    found = measured(qv.Equality(k=2, link="user"), log)
    interests = [name for name, one in found.items() if one.group == "profiles" and ("SRP" in name or "L)" in name)]
    levels = ["profile retention (SRP), level 1", "profile retention (SRP), level 2"]
    assert set(interests) == {*levels, PROFILES, "information loss (L)", CLUSTERS}
    assert found[levels[0]].value == 0
    assert "No level of the taxonomy separates" in found[PROFILES].why
    assert "at least two users" in found["information loss (L)"].why
    assert "at least two users" in found[CLUSTERS].why
    dropped = measured(qv.Equality(k=2, link="none"), log)
    assert {dropped[name].why for name in interests} == {"it is for releases of queries with user or session ids"}


@given(st.integers(1, 3_000), st.floats(0, 1))
def test_releases_are_not_ranked_by_a_score_that_is_low_or_unsure_on_the_log_itself(tests, share):
    from scipy.stats import binomtest

    hits = round(share * tests)
    score = hits / tests
    low = binomtest(hits, tests).proportion_ci(0.95, "wilson").low
    unranked = Task("completion", "MRR", 0.0, score, tests).unranked
    if abs(low - score / 2) > 1e-4:  # 1.96 is not all of that number
        assert bool(unranked) == (score < 0.05 or low < score / 2)
    assert bool(unranked) or score >= 0.05


def test_a_task_says_why_releases_are_not_ranked_by_it():
    assert "scores 1.1 %" in Task("suggestion", "hit@10", 0.01, 0.0114, 2_000).unranked
    assert "20 tests are too few" in Task("completion", "MRR", 0.1, 0.2, 20).unranked
    assert "no event" in Task("suggestion", "hit@10", 0.0, 0.0, 0).unranked
    assert Task("trend counts", ERROR, 0.3, 0.0, 1_000).unranked == ""
    assert Task("completion", "MRR", 0.1, 0.5, 2_000).unranked == ""


def test_an_evaluation_says_which_tasks_do_not_separate():
    """Nobody issues the same query as another, so that the log itself suggests nothing."""
    log = read([(u, f"{word} {u}", t, None) for u in range(20) for t, word in enumerate(("red", "ham"))])
    for link in ("user", "none"):
        found = measured(qv.Rules(max_characters=1000, link=link), log)["suggestion, hit@10"]
        assert not found.separates
        assert "too little to rank releases by" in found.why
        assert ("nothing to learn from" in found.why) == (link == "none")


def days(rows):
    """A log of (user, query, day, minute)."""
    table = [
        {"user": f"u{u}", "query": query, "time": f"2006-03-{1 + day:02} 00:{minute:02}:00"}
        for u, query, day, minute in rows
    ]
    return qv.read_log(pa.Table.from_pylist(table))


def test_suggestions_are_learnt_within_a_session_where_sessions_are_released():
    """Ten queries that more users issued, on another day, come before what follows in the session."""
    rows = [(u, query, 0, minute) for u in range(3) for minute, query in enumerate(("red", "ham"))]
    rows += [(u, "red", 0, 0) for u in range(3, 10)]
    rows += [(u, f"tea {i}", 1 + i, 0) for u in range(10) for i in range(10)]
    log = days(rows)
    scores = {}
    for link in ("user", "session"):
        found = measured(qv.Rules(max_characters=1000, link=link), log)["suggestion, hit@10"]
        scores[link] = found.value
        assert ("within one session" in found.why) == (link == "session")
    assert scores == {"user": 0, "session": 1}


def test_sessions_of_a_user_are_put_together_by_the_user_map():
    """SRP and L are those of a release by users, and say that a reader cannot measure them."""
    words = ["dog", "cat", "violin", "piano", "river", "money"]
    log = days([(u, f"{words[(u + i) % 6]} {i % 2}", i, u % 50) for u in range(24) for i in range(6)])
    users, sessions = (measured(qv.Equality(k=2, link=link), log) for link in ("user", "session"))
    same = [name for name in users if "SRP" in name or "L)" in name]
    assert len(same) == 5
    for name in same:
        assert sessions[name].value == users[name].value, name
        assert SESSIONS not in users[name].why
        if sessions[name].value is not None:
            assert SESSIONS in sessions[name].why
    assert sessions["information loss (L)"].value is not None


def test_where_sessions_are_released_no_user_is_counted():
    log = days([(u, "dog", day, 0) for u in range(12) for day in range(3)])
    release = qv.Equality(k=2, link="session").anonymize(log)
    assert retention(release, log).sessions == 36
    one = measured(qv.Equality(k=2, link="session"), log)["users"]
    assert (one.value, one.why) == (None, "no user ids released; 36 sessions")
