from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.times import BAD, MISSING, parse_ranks, parse_times
from queryveil.text.arrays import byte_spans

MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2069, 12, 31)).map(lambda t: t.replace(tzinfo=UTC))
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def micros(text: str) -> int:
    return int(parse_times(*byte_spans(pa.array([text])), 0)[0])


def expected(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@given(MOMENTS, ZONES)
def test_iso_times_with_a_zone(moment, zone):
    assert micros(moment.astimezone(zone).isoformat()) == expected(moment)
    assert micros(moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")) == expected(moment)


@given(MOMENTS.map(lambda t: t.replace(microsecond=0)))
def test_spellings_of_whole_seconds(moment):
    for spelling in ("%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%y%m%d%H%M%S", "%Y%m%d%H%M%S", "%Y-%m-%dT%H:%M:%S UTC"):
        assert micros(moment.strftime(spelling)) == expected(moment), spelling


def test_numbers_are_seconds_milliseconds_or_microseconds_since_1970():
    assert micros("1141207200") == micros("1141207200000") == micros("1141207200000000") == 1141207200 * 10**6


def test_a_bare_time_of_day_falls_on_the_given_day():
    assert parse_times(*byte_spans(pa.array(["00:00:01"])), 86_400_000_000)[0] == 86_401_000_000


@pytest.mark.parametrize(
    "text",
    ["soon", "2006-13-01", "2006-02-30 10:00:00", "2006-03-01 25:00:00", "2006-03-01x10:00:00", "2006-3-1",
     "99999999999", "2006-03-01 10:00:00 nine", "2006-03-01 10:00:00.", "2006-03-01 10:61", "-1", "970230101010", "1:2",
     "2006-03-01 1"],
)  # fmt: skip
def test_what_is_no_time_is_bad(text):
    assert micros(text) == BAD


def test_nothing_is_missing():
    assert micros("") == MISSING


@given(st.text("0123456789:-/TZ+. ", max_size=30))
def test_no_text_breaks_the_parser(text):
    micros(text)


def test_ranks():
    values = pa.array(["1", "", "500", "-1", "1.5", "12345678901"])
    assert parse_ranks(*byte_spans(values)).tolist() == [1, -1, 500, -2, -2, -2]
    assert parse_ranks(*byte_spans(values)).dtype == np.int32
