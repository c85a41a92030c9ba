"""The LCG of transactions against algorithm 2 over the whole tree, and the examples of the paper."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels import lcg as kernel
from queryveil.knowledge.tree import Tree
from tests.oracles import clump as oracle
from tests.oracles.tree import ancestors, lm

FOOD = {"fruit": "apple orange banana", "meat": "chicken beef", "dairy": "milk butter cheese"}
TREE = {"food": None} | dict.fromkeys(FOOD, "food")
TREE |= {item: kind for kind, items in FOOD.items() for item in items.split()}
SMALL = {"root": None, "p": "root", "q": "root", "a": "p", "b": "p", "c": "p", "d": "q", "e": "d", "f": "d", "g": "q"}
BOTH = pytest.mark.parametrize("tight", [False, True])


def taxonomy(tree):
    return Tree.from_table(pa.table({"node": list(tree), "parent": pa.array(tree.values(), pa.string())}))


def arrays(tree, bags):
    """Transactions and their tree as kernels take them."""
    made = taxonomy(tree)
    names = made.names.to_pylist()
    rows = [sorted((names.index(item), n) for item, n in bag.items()) for bag in bags]
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    node = np.array([item for row in rows for item, _ in row], np.int32)
    count = np.array([n for row in rows for _, n in row], np.int64)
    return start, node, count, made.parent, made.depth, made.leaves


def generalized(tree, bags, order, cluster, *, tight):
    """The LCG of every cluster and its GGD."""
    data = arrays(tree, bags)
    names = taxonomy(tree).names.to_pylist()
    cluster = np.array(cluster, np.int32)
    found = kernel.lcgs(*data, np.array(order), cluster, int(cluster.max()) + 1, tight)
    length = np.array([bag.total() for bag in bags])
    unit = max(int(data[5][0]) - 1, 1)
    ggd = [Fraction(int(d), unit) for d in kernel.distortions(*found, data[5], length, cluster)]
    start, node, count = found
    bounds = list(pairwise(start))
    assert all((np.diff(node[a:b]) > 0).all() for a, b in bounds)
    made = [Counter({names[i]: int(n) for i, n in zip(node[a:b], count[a:b], strict=True)}) for a, b in bounds]
    return list(zip(made, ggd, strict=True))


def lcg(tree, bags, *, tight):
    return generalized(tree, bags, range(len(bags)), [0] * len(bags), tight=tight)[0]


def bag(text):
    return Counter(text.split())


@st.composite
def trees(draw, most=12):
    """A tree of at least two leaves."""
    n = draw(st.integers(3, most))
    return {"n0": None, "n1": "n0", "n2": "n0"} | {f"n{i}": f"n{draw(st.integers(0, i - 1))}" for i in range(3, n)}


@st.composite
def logs(draw, least=1, most=6):
    """A tree and transactions of any nodes of it, also inner ones and the root, also empty ones."""
    tree = draw(trees())
    one = st.dictionaries(st.sampled_from(sorted(tree)), st.integers(1, 3), max_size=5).map(Counter)
    return tree, draw(st.lists(one, min_size=least, max_size=most))


EXAMPLES = [
    ("orange beef, apple chicken beef", "fruit beef"),
    ("orange milk, apple cheese butter", "fruit dairy"),
    ("orange apple, orange banana milk, banana apple beef", "fruit fruit"),
    ("orange beef, apple milk", "fruit food"),
]


def test_lm_of_the_paper():
    assert lm(TREE, "fruit") == Fraction(2, 7)
    made = taxonomy(TREE)
    assert made.leaves[made.names.to_pylist().index("fruit")] - 1 == 2
    assert made.leaves[0] - 1 == 7


@BOTH
@pytest.mark.parametrize(("bags", "expected"), EXAMPLES)
def test_examples_of_the_paper(bags, expected, tight):
    bags = [bag(text) for text in bags.split(",")]
    assert lcg(TREE, bags, tight=tight)[0] == bag(expected) == oracle.lcg(TREE, bags, tight=tight)


@BOTH
def test_ggd_of_the_paper(tight):
    assert lcg(TREE, [bag("orange beef"), bag("apple chicken beef")], tight=tight)[1] == Fraction(11, 7)


@BOTH
@given(log=logs())
def test_the_lcg_is_algorithm_2_one_by_one(log, tight):
    tree, bags = log
    found, ggd = lcg(tree, bags, tight=tight)
    assert found == oracle.one_by_one(tree, bags, tight=tight)
    assert ggd == oracle.ggd(tree, bags, found)
    assert ggd >= 0


@BOTH
@given(log=logs(), data=st.data())
def test_every_cluster_has_its_own(log, tight, data):
    tree, bags = log
    order = data.draw(st.permutations(range(len(bags))))
    cluster = data.draw(st.lists(st.integers(0, 2), min_size=len(bags), max_size=len(bags)))
    cluster = [sorted(set(cluster)).index(c) for c in cluster]
    for c, (found, ggd) in enumerate(generalized(tree, bags, order, cluster, tight=tight)):
        mine = [bags[t] for t in order if cluster[t] == c]
        assert found == oracle.one_by_one(tree, mine, tight=tight)
        assert ggd == oracle.ggd(tree, mine, found)


@BOTH
@given(log=logs())
def test_it_generalizes_all_and_is_as_long_as_the_shortest(log, tight):
    tree, bags = log
    found, _ = lcg(tree, bags, tight=tight)
    assert found.total() == min(b.total() for b in bags)
    assert all(oracle.generalizes(tree, found, b) for b in bags)


@given(logs())
def test_the_tighter_rule_is_the_least_total_at_every_node(log):
    tree, bags = log

    def totals(b):
        return {node: sum(n for item, n in b.items() if node in ancestors(tree, item)) for node in tree}

    found, _ = lcg(tree, bags, tight=True)
    assert totals(found) == {node: min(totals(b)[node] for b in bags) for node in tree}
    assert found == oracle.lcg(tree, bags, tight=True)


@given(logs(), st.data())
def test_the_tighter_rule_is_associative_and_independent_of_order(log, data):
    tree, bags = log
    found, _ = lcg(tree, bags, tight=True)
    assert lcg(tree, data.draw(st.permutations(bags)), tight=True)[0] == found
    cut = data.draw(st.integers(0, len(bags)))
    parts = [lcg(tree, part, tight=True)[0] for part in (bags[:cut], bags[cut:]) if part]
    assert lcg(tree, parts, tight=True)[0] == found


@given(logs())
def test_the_tighter_rule_never_loses_more(log):
    tree, bags = log
    tight = lcg(tree, bags, tight=True)[1]
    assert tight <= lcg(tree, bags, tight=False)[1]
    assert tight <= oracle.ggd(tree, bags, oracle.lcg(tree, bags))


@given(logs(least=2, most=2))
def test_of_two_bags_the_order_does_not_matter_under_the_papers_rule(log):
    tree, (one, other) = log
    found, _ = lcg(tree, [one, other], tight=False)
    assert found == lcg(tree, [other, one], tight=False)[0] == oracle.lcg(tree, [one, other])


def test_lemma_1_fails_under_the_papers_rule():
    bags = [bag("a a c"), bag("a a a"), bag("b b b")]
    assert oracle.lcg(SMALL, bags) == bag("p p p")
    assert lcg(SMALL, bags, tight=False)[0] == bag("p p root")
    assert lcg(SMALL, bags[::-1], tight=False)[0] == bag("p p p")
    assert lcg(SMALL, bags, tight=True)[0] == bag("p p p")


def test_what_exceeds_the_minimum_is_dropped_or_handed_up():
    bags = [bag("a a"), bag("a b")]
    assert lcg(SMALL, bags, tight=False)[0] == bag("a root")
    assert lcg(SMALL, bags, tight=True)[0] == bag("a p")


def test_items_that_were_taken_out_are_suppressed():
    """Clump2: <fruit fruit> of three transactions with eight items becomes <fruit>."""
    data = arrays(TREE, [bag("orange apple"), bag("orange banana milk"), bag("banana apple beef")])
    cluster, length = np.zeros(3, np.int32), np.array([2, 3, 3])
    start, node, count = kernel.lcgs(*data, np.arange(3), cluster, 1, False)
    assert count.tolist() == [2]
    assert kernel.distortions(start, node, count, data[5], length, cluster).tolist() == [3 * 2 * 2 + 2 * 7]
    once = np.ones_like(count)
    assert kernel.distortions(start, node, once, data[5], length, cluster).tolist() == [3 * 2 + 5 * 7]


def test_a_tree_with_one_leaf_suppresses_only():
    tree = {"root": None, "leaf": "root"}
    assert lcg(tree, [Counter(leaf=3), Counter(leaf=1)], tight=False) == (Counter(leaf=1), 2)
