"""Partition: against the literal algorithm, the example of the paper, and what holds of every partition."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from queryveil.kernels.partitions import partition_transactions
from queryveil.knowledge import Tree
from tests.oracles import partition as oracle
from tests.strategies import examples

FOOD = Tree.from_paths(
    pa.array(
        f"{kind}/{item}"
        for kind, items in {
            "fruit": "apple orange banana",
            "meat": "chicken beef",
            "dairy": "milk butter cheese",
        }.items()
        for item in items.split()
    ),
    root="food",
)
NAMES = FOOD.names.to_pylist()


@st.composite
def trees(draw):
    """A tree of up to 14 nodes; deep ones and wide ones."""
    size = draw(st.integers(1, 13))
    parent = [-1, *(draw(st.integers(max(0, node - draw(st.integers(1, 14))), node)) for node in range(size))]
    return Tree.from_parents(np.array(parent), pa.array(map(str, range(size + 1))))[0]


@st.composite
def transactions(draw):
    tree = draw(trees())
    # Few distinct transactions, so that sub-partitions of k are common.
    kinds = draw(st.lists(st.sets(st.integers(0, len(tree) - 1), min_size=1, max_size=6), min_size=1, max_size=8))
    return tree, draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=24))


def partitioned(tree, found, k):
    start = np.concatenate([[0], np.cumsum([len(t) for t in found])]).astype(np.int64)
    item = np.array([node for t in found for node in sorted(t)], np.int32)
    part, first, node = partition_transactions(start, item, tree.parent, tree.depth, tree.end, tree.leaves, k)
    return [(np.flatnonzero(part == p).tolist(), node[first[p] : first[p + 1]].tolist()) for p in range(len(first) - 1)]


def as_dict(tree):
    return {node: above if above >= 0 else None for node, above in enumerate(tree.parent.tolist())}


def plain(*named):
    return [{NAMES.index(name) for name in names.split()} for names in named]


def named(found):
    return [(members, " ".join(NAMES[node] for node in nodes)) for members, nodes in found]


FIVE = plain("orange chicken beef", "banana beef cheese", "chicken milk butter", "apple chicken", "chicken beef")


def test_the_example_of_the_paper():
    found = partitioned(FOOD, FIVE, 2)
    assert named(found) == [([0, 3], "fruit meat"), ([1, 2, 4], "food")]
    costs = [oracle.ggd(as_dict(FOOD), [FIVE[t] for t in members], set(nodes)) for members, nodes in found]
    assert costs == [2 * Fraction(3, 7) + 1, 3 + 5]
    assert sum(costs) == Fraction(69, 7)


@settings(max_examples=examples(30))
@given(transactions(), st.integers(1, 6))
def test_partitions_are_the_literal_ones(drawn, k):
    tree, found = drawn
    expected = oracle.partition(as_dict(tree), found, k)
    assert partitioned(tree, found, k) == [(members, sorted(nodes)) for members, nodes in expected]


@given(transactions(), st.integers(1, 6))
def test_every_partition_has_k_members_and_every_node_an_item_of_its_own(drawn, k):
    tree, found = drawn
    for members, nodes in partitioned(tree, found, k):
        assert len(members) >= min(k, len(found))
        # Nodes that do not overlap: items below different ones are distinct.
        assert all(tree.end[a] <= b for a, b in pairwise(nodes))
        assert all(any(node <= item < tree.end[node] for item in found[t]) for t in members for node in nodes)


@given(transactions(), st.integers(1, 6))
def test_it_never_costs_more_than_the_root_for_all(drawn, k):
    tree, found = drawn
    assume(tree.leaves[0] > 1)
    literal = as_dict(tree)
    cost = sum(
        oracle.ggd(literal, [found[t] for t in members], set(nodes)) for members, nodes in partitioned(*drawn, k)
    )
    assert cost <= oracle.ggd(literal, found, {0})


def test_fewer_than_k_are_one_partition():
    assert named(partitioned(FOOD, plain("apple", "apple"), 3)) == [([0, 1], "food")]


def test_the_node_that_gains_most_goes_first():
    # Only one of the two can be split in two; fruit has more items below it, so meat stays.
    found = partitioned(FOOD, plain("apple banana beef", "apple banana chicken", "orange beef", "orange chicken"), 2)
    assert named(found) == [([0, 1], "apple banana meat"), ([2, 3], "orange meat")]


def test_a_leaf_has_no_penalty():
    tree = Tree.from_paths(pa.array(["u/a", "u/b", "u/c", "v/p/1", "v/p/2", "v/q/3", "v/q/4", "v/q/5"]))
    at = {tree.path(node): node for node in range(len(tree))}
    found = [{at[a], at[b]} for a in ("u/a", "u/b") for b in ("v/p/1", "v/q/3")]
    # Each item below u gains 3 - 0 leaves, those below v 5 - 2 and 5 - 3.
    assert partitioned(tree, found, 2) == [([0, 1], [at["u/a"], at["v"]]), ([2, 3], [at["u/b"], at["v"]])]


def test_a_left_over_takes_the_last_transactions_of_the_largest():
    found = partitioned(FOOD, plain(*["apple"] * 4, *["beef"] * 4, "milk"), 3)
    assert named(found) == [([0, 1, 2], "apple"), ([3, 7, 8], "food"), ([4, 5, 6], "beef")]


def test_the_smallest_comes_back_if_they_cannot_give_enough():
    # Milk lacks two, and only the apples have one to spare.
    found = partitioned(FOOD, plain(*["apple"] * 4, *["beef"] * 3, "milk"), 3)
    assert named(found) == [([0, 1, 2, 3], "apple"), ([4, 5, 6, 7], "food")]
    found = partitioned(FOOD, plain("apple", "apple", "beef", "beef", "milk"), 2)
    assert named(found) == [([0, 1, 4], "food"), ([2, 3], "beef")]


def test_an_item_at_the_node_itself_gives_way_to_one_below():
    found = partitioned(FOOD, plain("fruit apple", "apple", "fruit", "fruit"), 2)
    assert named(found) == [([0, 1], "apple"), ([2, 3], "fruit")]


@pytest.mark.parametrize("seed", range(3))
def test_many_are_partitioned_alike_again_and_again(seed):
    draws = np.random.default_rng(seed)
    found = [set(draws.integers(0, len(FOOD), draws.integers(1, 6)).tolist()) for _ in range(300)]
    expected = [(members, sorted(nodes)) for members, nodes in oracle.partition(as_dict(FOOD), found, 3)]
    assert len(expected) > 20
    assert all(partitioned(FOOD, found, 3) == expected for _ in range(3))
