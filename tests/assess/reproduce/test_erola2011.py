import numpy as np

import queryveil as qv
from queryveil.assess.measures import srp
from queryveil.assess.reproduce import reproduce
from queryveil.assess.reproduce.common import Run
from queryveil.knowledge import Clicks


def test_erola2011(world):
    steps = []
    reach, kept, cost, partition, grown = reproduce("erola2011", *world, seed=2, progress=steps.append)
    shares = {(row["of"], row["level"]): row["share"] for row in reach.rows}
    assert 0 < shares["terms", 5] <= shares["terms", 2] <= shares["terms", 1] < shares["distinct queries", 1] < 1
    found = {(row["level"], row["k"], row["groups"]): row["SRP"] for row in kept.rows}
    assert len(found) == 5 * 4 * 3
    for level in range(1, 6):
        # Similar users keep more than users thrown together, and larger groups keep less.
        assert all(found[level, k, "first category"] > found[level, k, "at random"] > 0.8 / k for k in (2, 3, 4))
        assert found[level, 2, "first category"] > found[level, 5, "first category"]
    assert all(row["seconds"] > 0 for row in cost.rows)
    assert all(0 < row["partition"] < 1 for row in partition.rows)
    queries = [row["queries"] for row in grown.rows if row["groups"] == "first category"]
    assert len(queries) == 4
    assert queries == sorted(queries)
    assert queries[-1] == world[0].stats.events
    assert "level 5, k 5" in steps


def test_terms_have_several_categories_which_part_on_deep_levels(world):
    log, taxonomy = world
    links = qv.categorize(log, taxonomy, categories=5)
    several = np.diff(links.first) >= 2
    assert several.mean() > 0.2
    tree = links.tree
    first, second = (links.node[links.first[:-1][several] + i] for i in (0, 1))
    deep = (tree.depth[first] == 5) & (tree.depth[second] == 5)
    same = [(tree.at_level(first[deep], n) == tree.at_level(second[deep], n)).mean() for n in (1, 2, 5)]
    assert same[0] > 0.8 > 0.1 > same[2]


def test_erola2011_where_a_term_has_one_category(world):
    # WordNet takes a word for its first sense, so that five categories are the same as one.
    _, kept, cost, *_ = reproduce("erola2011", world[0], "wordnet")
    assert {row["groups"] for row in kept.rows} == {"first category", "at random"}
    assert {row["groups"] for row in cost.rows} == {"first category"}


def test_the_baseline_is_random(world):
    log, taxonomy = world
    links = qv.categorize(log, taxonomy)
    runs = [Run(log, taxonomy, Clicks(), None, None, seed, str) for seed in (1, 2)]
    first, second = (srp(run.random_groups(3), links, 2)[-1].mean for run in runs)
    assert first != second
