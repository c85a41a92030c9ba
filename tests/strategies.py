"""Random logs for property tests: few users, few words, so that queries are shared."""

import os

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from tests.oracles.log import Row

QUERIES = st.lists(st.sampled_from(["cat", "dog", "Sea", "x1", "a@b", "und", "(tea)", "été", "-", ""]), max_size=3).map(
    " ".join
)
ROWS = st.builds(
    Row,
    user=st.sampled_from([f"u{i}" for i in range(9)]),
    query=QUERIES,
    time=st.sampled_from(["2006-03-01 10:00:00", "2006-03-09 23:59:59", "2006-04-01 00:00:00"]),
    rank=st.none() | st.integers(1, 3),
    url=st.none() | st.sampled_from(["http://a.com", "http://b.org", "http://c.net"]),
    device=st.sampled_from(["phone", "desk", None]),
    country=st.sampled_from(["NL", "US"]),
).map(lambda row: row if row.url else row._replace(rank=None))
LOGS = st.lists(ROWS, min_size=1, max_size=60)


def examples(number: int) -> int:
    """How many random examples a test tries; `make test EXAMPLES=20` tries twenty times as many."""
    return number * int(os.environ.get("EXAMPLES", "1"))


weekly = pytest.mark.skipif(
    examples(1) == 1, reason="takes long; `make test EXAMPLES=10` runs it, and the checks do so once a week"
)
"""For long runs whose promise others test in a smaller way, and for rates that need thousands of tries."""


def table(rows: list[Row]) -> pa.Table:
    """Rows as the Arrow table that `read_log` takes."""
    return pa.table({name: pa.array([getattr(row, name) for row in rows]) for name in Row._fields}).cast(
        pa.schema([(name, pa.int32() if name == "rank" else pa.string()) for name in Row._fields])
    )
