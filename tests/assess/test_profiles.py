import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.release.bands import bands


def test_a_small_log_in_numbers():
    log = qv.read_log(
        pa.table(
            {
                "user": list("aabbbc"),
                "query": ["tea", "tea pot", "tea", "x y z w v", "", "tea"],
                "time": [f"2006-03-0{i} 10:00:00" for i in range(1, 7)],
                "url": ["http://a.com"] + [None] * 5,
                "device": ["phone"] * 6,
            }
        )
    )
    found = qv.profile(log)
    assert (found.rows, found.empty_rows, found.events, found.users, found.queries, found.clicks) == (5, 1, 5, 3, 3, 1)
    assert (found.first, found.last) == ("2006-03-01 10:00:00", "2006-03-06 10:00:00")
    assert found.queries_per_user["most"] == 2
    assert [(part.words, part.queries, part.events) for part in found.lengths] == [
        ("1", 1, 3), ("2", 1, 1), ("3", 0, 0), ("4", 0, 0), ("5+", 1, 1),
    ]  # fmt: skip
    assert [(part.k, part.queries, part.events) for part in found.kept] == [
        (2, 1, 3), (5, 0, 0), (10, 0, 0), (30, 0, 0), (100, 0, 0),
    ]  # fmt: skip
    assert found.extras == {"device": 1}
    assert found.as_dict()["bands"][0]["queries"] == 2


def test_a_log_without_times_or_clicks_is_fine():
    found = qv.profile(qv.read_log(pa.table({"user": ["a"], "query": ["!!!"]})))
    assert (found.first, found.clicks) == (None, 0)
    assert found.lengths[0].words == "0"


def test_scripts_are_counted_by_distinct_queries_the_most_frequent_first():
    found = qv.profile(qv.read_log(pa.table({"user": ["a"] * 4, "query": ["tea", "tea", "tee καφές", "北京"]})))
    assert [(one.name, one.queries) for one in found.scripts] == [("latin", 2), ("greek", 1), ("han", 1)]
    assert "zh" in [one.name for one in found.languages]
    rows = found.to_arrow().to_pylist()
    assert {"group": "scripts", "name": "latin", "measure": "queries", "value": 2.0} in rows


def test_words_that_look_implausible_are_warned_of():
    single = qv.profile(qv.read_log(pa.table({"user": ["a"] * 30, "query": [f"word{i}" for i in range(30)]})))
    assert ["100.0 % of the distinct queries are one word" in warning for warning in single.warnings] == [True]
    assert "language" in single.warnings[0]
    long = qv.profile(qv.read_log(pa.table({"user": ["a"], "query": ["x" * 20 + " " + "y" * 10]})))
    assert ["15.0 characters on average" in warning for warning in long.warnings] == [True]
    assert "15.0 characters" in long._repr_html_()
    assert qv.profile(qv.read_log(pa.table({"user": ["a"], "query": ["tea pot"]}))).warnings == ()


def test_a_missing_detector_is_mentioned_where_scripts_do_not_decide(monkeypatch):
    monkeypatch.setattr("queryveil.assess.profiles.missing", lambda module: "needs it")
    log = qv.read_log(pa.table({"user": ["a", "a"], "query": ["tea pot", "καλός καφές"]}))
    assert "Latin and Cyrillic script were not looked at; detecting them needs it." in qv.profile(log).warnings[0]
    assert qv.profile(qv.read_log(pa.table({"user": ["a"], "query": ["καλός καφές"]}))).warnings == ()


@given(st.lists(st.tuples(st.integers(1, 150), st.integers(1, 9), st.booleans()), max_size=30))
def test_bands_add_up(queries):
    users, events, kept = (np.array([q[i] for q in queries], np.int64) for i in range(3))
    columns = {"users": users, "queries": np.ones_like(users), "events": events}
    columns |= {"kept_queries": kept.astype(np.int64), "kept_events": events * kept}
    found = bands(pa.table(columns))
    assert sum(band.queries for band in found) == len(queries)
    assert sum(band.events for band in found) == events.sum()
    assert sum(band.kept_events for band in found) == (events * kept).sum()
    for band in found:
        inside = [u for u in users if band.least <= u and (band.most is None or u <= band.most)]
        assert band.queries == len(inside)
    assert [band.label for band in found] == [
        "1 user", "2-4 users", "5-9 users", "10-29 users", "30-99 users", "100+ users",
    ]  # fmt: skip
