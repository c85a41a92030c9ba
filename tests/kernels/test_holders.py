from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.assess.attacks.view import Holders
from queryveil.kernels.holders import gaps, overlaps, trigrams
from queryveil.text.arrays import byte_spans

SETS = st.lists(st.sets(st.integers(0, 6), max_size=5), min_size=1, max_size=8)


def flat(sets):
    start = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    return start, np.array([i for s in sets for i in sorted(s)], np.int32)


@given(SETS, SETS, st.data())
def test_holders_are_those_who_have_all_items(records, lists, data):
    people = np.array([data.draw(st.integers(1, 3)) for _ in records], np.int64)
    own = np.array([data.draw(st.integers(-1, len(records) - 1)) for _ in lists], np.int32)
    count, there = Holders.of(*flat(records), 7, people).count(*flat(lists), own)
    for i, queries in enumerate(lists):
        fit = [r for r, record in enumerate(records) if queries <= record]
        assert count[i] == sum(people[r] for r in fit)
        assert there[i] == (own[i] in fit)


@given(SETS, st.lists(st.integers(0, 9), min_size=7, max_size=7), st.data())
def test_overlaps_are_the_common_items_and_the_least_of_their_values(sets, values, data):
    pair = st.tuples(st.integers(0, len(sets) - 1), st.integers(0, len(sets) - 1))
    pairs = data.draw(st.lists(pair, min_size=1, max_size=6))
    start, item = flat(sets)
    one, other = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    count, least = overlaps(start, item, np.array(values, np.int64)[item], one, other)
    for p, (a, b) in enumerate(pairs):
        common = sets[a] & sets[b]
        assert count[p] == len(common)
        assert least[p] == min((values[i] for i in common), default=-1)


@given(SETS, st.data())
def test_gaps_are_the_least_differences(sets, data):
    pair = st.tuples(st.integers(0, len(sets) - 1), st.integers(0, len(sets) - 1))
    pairs = data.draw(st.lists(pair, min_size=1, max_size=6))
    one, other = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    found = gaps(*flat(sets), one, other)
    assert found.tolist() == [min((abs(i - j) for i in sets[a] for j in sets[b]), default=-1) for a, b in pairs]


@given(st.lists(st.text("ab é", max_size=6), min_size=1, max_size=4))
def test_trigrams_are_the_distinct_runs_of_three_bytes(texts):
    start, item = trigrams(*byte_spans(pa.array(texts)))
    for t, text in enumerate(texts):
        padded = b" " + text.encode() + b" "
        runs = {int.from_bytes(padded[i : i + 3], "big") for i in range(len(padded) - 2)}
        assert item[start[t] : start[t + 1]].tolist() == sorted(runs)
        assert not [run for run, n in Counter(item[start[t] : start[t + 1]].tolist()).items() if n > 1]
