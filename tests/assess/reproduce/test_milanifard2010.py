import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess.measures import transaction_density
from queryveil.assess.reproduce import reproduce
from queryveil.methods.generalization.common import Transactions


@pytest.fixture(scope="module")
def figures(world):
    return {figure.name: figure for figure in reproduce("milanifard2010", *world)}


def test_milanifard2010(figures):
    per_item = {(row["k"], row["method"]): row["distortion per item"] for row in figures["figure-3"].rows}
    assert len(per_item) == 4 * 4
    for k in (5, 7, 10, 15):
        assert per_item[k, "nearest, tight"] < 0.9 * per_item[k, "Clump1"]
        assert per_item[k, "Clump1"] <= per_item[k, "Clump2"]
    items = {(row["k"], row["method"]): row["items a user"] for row in figures["figure-4"].rows}
    assert items[5, "Clump1"] > items[5, "Clump2"]
    assert all(row["level"] >= 1 for row in figures["figure-5"].rows)
    assert [row["r"] for row in figures["figure-6"].rows] == [5, 10, 30, 50, 100]
    assert {row["method"] for row in figures["figure-7"].rows} == {"Clump1", "nearest, tight", "Partition"}


def test_orders_are_compared(figures):
    lost = {(row["order"], row["k"]): row["distortion per item"] for row in figures["orders"].rows}
    paper = {row["k"]: row["distortion per item"] for row in figures["figure-3"].rows if row["method"] == "Clump1"}
    assert {k: lost["decreasing, as in the paper", k] for k in paper} == paper
    assert len(lost) == 4 * len(paper)
    assert len(set(lost.values())) > 3 * len(paper)


def test_the_density_of_as_many_transactions_as_the_paper_has():
    tree = qv.open_taxonomy("wordnet").tree
    users = np.arange(53_058)
    one = Transactions(np.arange(53_059), users, np.ones(53_058, np.int32), tree)
    assert transaction_density(one) == pytest.approx(1 / tree.leaves[0])


def test_the_first_transactions_are_the_first_of_the_log(monkeypatch):
    """The first twenty users of the file have three nouns each, the others one."""
    users = np.random.default_rng(1).permutation(40)
    queries = ["dog cat horse" if i < 20 else "dog" for i in range(40)]
    log = qv.read_log(pa.table({"user": [f"u{u}" for u in users], "query": queries}))
    monkeypatch.setattr("queryveil.assess.reproduce.milanifard2010.DENSE", (20, 30, 50))
    density = {row["users"]: row["density"] for row in reproduce("milanifard2010", log)[0].rows}
    leaves = qv.open_taxonomy("wordnet").tree.leaves[0]
    assert density == pytest.approx({20: 3 / leaves, 30: 70 / 30 / leaves, 40: 2 / leaves})
