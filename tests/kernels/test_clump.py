"""The clusters of Clump against algorithm 1, the run of the paper, and what clusters of the nearest promise."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels import nearest_clusters
from queryveil.kernels.clump import greedy, seeds_first
from queryveil.kernels.nearest_clusters import nearest
from tests.kernels.test_lcg import BOTH, TREE, arrays, bag, generalized, logs
from tests.oracles import clump as oracle

FIVE = [bag(text) for text in (
    "orange chicken beef", "banana beef cheese", "chicken milk butter", "apple chicken", "chicken beef",
)]  # fmt: skip


def longest_first(bags):
    return np.array(sorted(range(len(bags)), key=lambda t: -bags[t].total()), np.int64)


@BOTH
@pytest.mark.parametrize("growth", [False, True])
def test_the_run_of_the_paper(tight, growth):
    order = seeds_first(longest_first(FIVE), 2)
    assert order.tolist() == [0, 2, 1, 3, 4]
    cluster = greedy(*arrays(TREE, FIVE), order, 2, 10, tight, growth)
    assert cluster.tolist() == [0, 0, 1, 1, 1]
    found = generalized(TREE, FIVE, order, cluster, tight=tight)
    assert [made for made, _ in found] == [bag("fruit beef food"), bag("chicken food")]
    assert [ggd for _, ggd in found] == [Fraction(18, 7), 4]
    assert sum(ggd for _, ggd in found) == Fraction(46, 7)


@BOTH
@given(log=logs(least=2, most=14), k=st.integers(1, 4), r=st.integers(1, 4), growth=st.booleans(), data=st.data())
def test_clusters_are_those_of_algorithm_1(log, tight, k, r, growth, data):
    tree, bags = log
    k = min(k, len(bags))
    order = np.array(data.draw(st.permutations(range(len(bags)))), np.int64)
    expected = oracle.clump(tree, bags, order.tolist(), k, r, tight=tight, growth=growth)
    taken = seeds_first(order, k)
    assert sorted(taken) == sorted(order)
    found = greedy(*arrays(tree, bags), taken, k, r, tight, growth)
    # Members as they join, which is also the order in which LCGs are taken.
    assert [[t for t in taken if found[t] == c] for c in range(len(bags) // k)] == expected
    for (made, ggd), members in zip(generalized(tree, bags, taken, found, tight=tight), expected, strict=True):
        mine = [bags[t] for t in members]
        assert made == oracle.one_by_one(tree, mine, tight=tight)
        assert ggd == oracle.ggd(tree, mine, made)


@BOTH
def test_the_last_one_goes_to_the_least_distortion_or_where_it_grows_least(tight):
    """The last is like the long ones, and adds 12/7 to their 24/7; with the short ones it costs 3, all of it new."""
    long = [bag("apple orange chicken milk"), bag("banana banana beef beef")]
    bags = [*long, bag("beef"), bag("beef"), bag("apple banana beef milk")]
    order = np.array([0, 2, 1, 3, 4])
    for growth, members in ((False, [0, 0, 1, 1, 1]), (True, [0, 0, 1, 1, 0])):
        assert greedy(*arrays(TREE, bags), order, 2, 1, tight, growth).tolist() == members


@BOTH
@given(log=logs(least=2, most=14), k=st.integers(1, 4), block=st.integers(1, 16))
def test_clusters_of_the_nearest(log, tight, k, block):
    tree, bags = log
    k = min(k, len(bags))
    order = longest_first(bags)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest_clusters, "BLOCK", block)
        found = nearest(*arrays(tree, bags), order, k, tight, 1)
        again = nearest(*arrays(tree, bags), order, k, tight, 3)
    assert (found == again).all()
    size = np.bincount(found)
    assert len(size) == len(bags) // k
    assert size.min() >= k
    assert size.max() < 2 * k
    for c, (made, ggd) in enumerate(generalized(tree, bags, order, found, tight=tight)):
        mine = [bags[t] for t in order if found[t] == c]
        assert made == oracle.one_by_one(tree, mine, tight=tight)
        assert ggd == oracle.ggd(tree, mine, made) >= 0


@BOTH
def test_equal_transactions_find_each_other(tight):
    """Thirty transactions of three kinds; the greedy way mixes them, because the order does."""
    kinds = [bag("apple chicken milk"), bag("orange beef butter"), bag("banana beef cheese")]
    bags = [kinds[t % 3] for t in range(30)]
    order = longest_first(bags)
    found = nearest(*arrays(TREE, bags), order, 5, tight, 2)
    assert [ggd for _, ggd in generalized(TREE, bags, order, found, tight=tight)] == [0] * 6
    taken = seeds_first(order, 5)
    greedy_found = greedy(*arrays(TREE, bags), taken, 5, 2, tight, False)
    assert sum(ggd for _, ggd in generalized(TREE, bags, taken, greedy_found, tight=tight)) > 0


@BOTH
def test_clusters_swap_what_fits_better_elsewhere(tight):
    """<apple chicken> takes <apple beef> first, which leaves two that have little in common."""
    bags = [bag("apple chicken"), bag("apple beef"), bag("banana chicken"), bag("apple milk")]
    order = longest_first(bags)
    found = nearest(*arrays(TREE, bags), order, 2, tight, 1)
    assert found[0] == found[2] != found[1] == found[3]
    assert sum(ggd for _, ggd in generalized(TREE, bags, order, found, tight=tight)) == Fraction(18, 7)


@BOTH
def test_the_nearest_lose_a_tenth_less(tight):
    draw = np.random.default_rng(5)
    bags = [bag(" ".join(draw.choice(sorted(TREE), draw.integers(1, 9)))) for _ in range(200)]
    order = longest_first(bags)
    taken = seeds_first(order, 4)
    by_greed = generalized(TREE, bags, taken, greedy(*arrays(TREE, bags), taken, 4, 10, tight, False), tight=tight)
    by_nearness = generalized(TREE, bags, order, nearest(*arrays(TREE, bags), order, 4, tight, 1), tight=tight)
    assert sum(ggd for _, ggd in by_nearness) < sum(ggd for _, ggd in by_greed) * Fraction(9, 10)
