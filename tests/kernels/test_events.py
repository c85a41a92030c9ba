import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.events import find_events
from queryveil.kernels.times import MISSING

ROWS = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from([MISSING, 5, 6]), st.integers(0, 2), st.integers(-1, 2), st.integers(-1, 2)
    ),
    max_size=30,
).map(sorted)


@given(ROWS)
def test_events_are_runs_and_clicks_hang_on_them(rows):
    user, time, query, rank, url = (np.array([row[i] for row in rows], np.int64) for i in range(5))
    events, clicks = find_events(
        *(a.astype(np.int32) for a in (user, query)), time, *(a.astype(np.int32) for a in (rank, url))
    )
    expected, hanging = [], []
    for i, row in enumerate(rows):
        if i == 0 or row[:3] != rows[i - 1][:3] or row[1] == MISSING:
            expected.append((i, row[0], row[2], row[1]))
        if row[3] >= 0 or row[4] >= 0:
            hanging.append((len(expected) - 1, row[0], row[2], row[3], row[4]))
    assert list(zip(*(column.tolist() for column in events), strict=True)) == expected
    assert list(zip(*(column.tolist() for column in clicks), strict=True)) == hanging
