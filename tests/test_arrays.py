from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.arrays import Ragged, offsets, ranges

LISTS = st.lists(st.lists(st.integers(-9, 9), max_size=5), max_size=8)


def ragged(lists):
    return Ragged(offsets(np.array([len(one) for one in lists], np.int32)))


def flat(lists):
    return np.array([value for one in lists for value in one], np.int64)


@given(LISTS)
def test_every_list_is_between_its_start_and_the_next(lists):
    start, values = ragged(lists).start, flat(lists)
    assert start.dtype == np.int64
    assert [values[a:b].tolist() for a, b in pairwise(start)] == lists


@given(LISTS)
def test_lists_are_counted_and_measured(lists):
    found = ragged(lists)
    assert len(found) == len(lists)
    assert found.sizes.tolist() == [len(one) for one in lists]


@given(LISTS)
def test_every_value_has_a_list_and_a_place_in_it(lists):
    found = ragged(lists)
    places = [(i, j) for i, one in enumerate(lists) for j in range(len(one))]
    assert list(zip(found.owners.tolist(), found.within.tolist(), strict=True)) == places


@given(LISTS, st.data())
def test_the_values_of_some_lists_are_found_in_the_order_asked_for(lists, data):
    some = data.draw(st.lists(st.sampled_from(range(len(lists))), max_size=9)) if lists else []
    found = flat(lists)[ragged(lists).positions(np.array(some, np.int32))]
    assert found.tolist() == [value for one in some for value in lists[one]]


@given(LISTS)
def test_sums_are_those_of_each_list(lists):
    found, values = ragged(lists), flat(lists)
    assert found.sums(values).tolist() == [sum(one) for one in lists]
    assert found.sums(values > 0).tolist() == [sum(value > 0 for value in one) for one in lists]


def test_sums_of_digests_wrap_around_in_their_own_type():
    large = np.array([2**64 - 1, 3, 7], np.uint64)
    found = Ragged(np.array([0, 2, 2, 3])).sums(large)
    assert found.dtype == np.uint64
    assert found.tolist() == [2, 0, 7]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_ranges_are_put_one_after_the_other(pairs):
    begin, size = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    assert ranges(begin, size).tolist() == [value for a, n in pairs for value in range(a, a + n)]
