"""Views that wait in a series: they are joined, stored and become a log again, and are not mixed with clicks."""

from collections import Counter

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.engines import DuckDB
from queryveil.log.waiting import load_waiting, waiting_of
from queryveil.text import language
from tests.log.test_views import FLAT, views_of

KEY = (1, 2)


def test_views_wait_and_become_a_log_again(tmp_path):
    later = [row | {"user": "v", "time": row["time"].replace("2026", "2027")} for row in FLAT]
    first, second = (qv.read_log(pa.Table.from_pylist(rows)) for rows in (FLAT, later))
    waiting_of(first, KEY, 1).joined(waiting_of(second, KEY, 2)).save(tmp_path / "w")
    made = load_waiting(tmp_path / "w").as_log(DuckDB(), content=b"x", language=language(), scrub=None, series=None)
    assert (made.stats.rows, made.stats.views, made.stats.clicks) == (8, 6, 2)
    without_users = Counter(row[1:] for log in (first, second) for row in views_of(log).elements())
    assert Counter(row[1:] for row in views_of(made).elements()) == without_users
    clicks = qv.read_log(pa.Table.from_pylist(later).drop(["clicked"]))
    with pytest.raises(qv.QueryveilError, match="Some of the waiting events have views, and others have clicks alone"):
        waiting_of(first, KEY, 1).joined(waiting_of(clicks, KEY, 2))
