"""The tree of topics against a dict of parents, and what it says of tables that are no tree."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.errors import QueryveilError
from queryveil.knowledge.tree import Tree
from tests.oracles import tree

FOOD = [
    "fruit/apple",
    "fruit/orange",
    "fruit/banana",
    "meat/chicken",
    "meat/beef",
    "dairy/milk",
    "dairy/butter",
    "dairy/cheese",
]


@st.composite
def parents(draw):
    """A tree in any order of its rows."""
    n = draw(st.integers(1, 25))
    above = {"n0": None} | {f"n{i}": f"n{draw(st.integers(0, i - 1))}" for i in range(1, n)}
    return {node: above[node] for node in draw(st.permutations(sorted(above)))}


def built(parent):
    return Tree.from_table(pa.table({"node": list(parent), "parent": pa.array(parent.values(), pa.string())}))


@pytest.fixture
def food():
    return Tree.from_paths(pa.array(FOOD), root="food")


def node(taxonomy, name):
    return taxonomy.names.to_pylist().index(name)


@given(parents())
def test_all_that_a_tree_says_is_what_its_parents_say(parent):
    taxonomy = built(parent)
    names = taxonomy.names.to_pylist()
    assert sorted(names) == sorted(parent)
    assert [None if p < 0 else names[p] for p in taxonomy.parent] == [parent[name] for name in names]
    everyone = np.arange(len(names))
    start, above = taxonomy.ancestors(everyone)
    for i, name in enumerate(names):
        line = tree.ancestors(parent, name)
        assert taxonomy.depth[i] == len(line) - 1
        assert [names[a] for a in above[start[i] : start[i + 1]]] == line
        assert [names[a] for a in taxonomy.line(i)] == line[::-1]
        assert taxonomy.leaves[i] == tree.leaves(parent, name)
        assert taxonomy.lm([i])[0] == pytest.approx(float(tree.lm(parent, name)))
        assert [names[c] for c in taxonomy.children(i)] == [child for child in parent if parent[child] == name]
        for level in range(taxonomy.height + 2):
            expected = line[-1 - level] if level < len(line) else None
            found = int(taxonomy.at_level([i], level)[0])
            assert (names[found] if found >= 0 else None) == expected
        inside = names[i : taxonomy.end[i]]
        assert inside == [d for d in names if name in tree.ancestors(parent, d)]
        common = taxonomy.lca(i, everyone)
        assert [names[c] for c in common] == [tree.lca(parent, name, other) for other in names]


@given(parents())
def test_children_follow_their_parent(parent):
    taxonomy = built(parent)
    assert taxonomy.parent[0] == -1
    assert (taxonomy.parent[1:] < np.arange(1, len(taxonomy))).all()


def test_lm_of_the_paper(food):
    assert food.lm([node(food, "fruit")])[0] == pytest.approx(2 / 7)
    assert food.lm([0, node(food, "apple")]).tolist() == [1, 0]


def test_ncp(food):
    apple, fruit = node(food, "apple"), node(food, "fruit")
    assert food.ncp([apple, apple, apple, apple, fruit], [apple, fruit, 0, -1, fruit]).tolist() == [0, 3 / 8, 1, 1, 0]


def test_paths(food):
    assert food.path(node(food, "apple")) == "fruit/apple"
    assert food.path(0) == "food"
    assert food.at_level([node(food, "apple"), -1, 0], 1).tolist() == [node(food, "fruit"), -1, -1]


def test_a_tree_does_not_change(food):
    for values in (food.parent, food.depth, food.end, food.leaves):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([("a", None), ("b", None)], "A tree has one root, but it has 2: 'a' and 'b'"),
        ([("a", "b"), ("b", "a")], "none of its nodes is without a parent"),
        ([("r", None), ("a", "b"), ("b", "c"), ("c", "a")], "a cycle: 'a' < 'b' < 'c' < 'a'; give one"),
        ([("r", None), ("a", "a")], "a cycle: 'a' < 'a'"),
        ([("r", None), ("a", "x")], "The node 'a' has the parent 'x', which is not a node"),
        ([("r", None), ("a", "r"), ("a", "r")], "the node 'a' 2 times"),
        ([], "has no rows"),
        ([("r", None), (None, "r")], "has no 'node'"),
    ],
)
def test_a_table_that_is_no_tree(rows, sentence):
    table = pa.table(
        {"node": pa.array([r[0] for r in rows], pa.string()), "parent": pa.array([r[1] for r in rows], pa.string())}
    )
    with pytest.raises(QueryveilError, match=sentence):
        Tree.from_table(table)


@pytest.mark.parametrize("nodes", [[99], [-2], [-1, 3]])
def test_nodes_that_are_not_in_the_tree(food, nodes):
    for method in (food.ancestors, lambda n: food.lca(n, 0), food.line):
        with pytest.raises(QueryveilError, match="A node must be from 0 to 11"):
            method(nodes[0] if method == food.line else nodes)
    if min(nodes) < -1 or max(nodes) > 11:
        for method in (food.lm, lambda n: food.at_level(n, 1), lambda n: food.ncp(n, n)):
            with pytest.raises(QueryveilError, match="A node must be from -1 to 11"):
                method(nodes)


def test_levels_begin_with_the_root(food):
    with pytest.raises(QueryveilError, match="A level must be at least 0"):
        food.at_level([1], -1)


def test_nothing_costs_as_much_as_the_root(food):
    assert food.lm([-1, 0]).tolist() == [1, 1]


def test_parents_that_are_no_places():
    with pytest.raises(QueryveilError, match="must be the place of a node"):
        Tree.from_parents(np.array([-1, 50_000_000]), pa.array(["a", "b"]))


def test_tables_as_other_tools_make_them():
    """Numbers with a missing one as pandas has them, dictionaries, names that are missing."""
    numbers = pa.table({"node": [1, 2], "parent": [float("nan"), 1.0], "name": ["r", None]})
    assert Tree.from_table(numbers).names.to_pylist() == ["r", "2"]
    coded = pa.table(
        {"node": pa.array(["a", "b"]).dictionary_encode(), "parent": pa.array([None, "a"]).dictionary_encode()}
    )
    assert Tree.from_table(coded).names.to_pylist() == ["a", "b"]
    with pytest.raises(QueryveilError, match="holds string, 'node' int64; give both the same type"):
        Tree.from_table(pa.table({"node": [1, 2], "parent": pa.array([None, "x"])}))


def test_a_table_without_the_columns():
    with pytest.raises(QueryveilError, match="no column 'node' and no 'parent'"):
        Tree.from_table(pa.table({"name": ["x"]}))


def test_numbers_and_names_in_chunks():
    chunk = pa.table({"node": [7], "parent": pa.array([None], pa.int64()), "name": ["root"]})
    more = pa.table({"node": [3], "parent": [7], "name": ["leaf"]})
    assert Tree.from_table(pa.concat_tables([chunk, more])).names.to_pylist() == ["root", "leaf"]
