from collections import Counter
from itertools import combinations

import pytest

import queryveil as qv
from queryveil.assess.reproduce import Figure, erola2012, reproduce
from queryveil.assess.reproduce.erola2012 import _most_similar
from queryveil.assess.reproduce.published import Values
from queryveil.methods.microaggregation.common import Profiles, Searches


def test_erola2012(reproduced):
    everyone, best, similar = reproduced("erola2012")
    srp = {(row["level"], row["k"], row["method"]): row["SRP"] for row in everyone.rows}
    top = {(row["level"], row["k"], row["method"]): row["SRP"] for row in best.rows}
    assert set(srp) == {
        (level, k, m)
        for level in range(1, 6)
        for k in (2, 3, 4, 5)
        for m in ("search (2012)", "terms (2011)", "at random")
    }
    assert all(top[key] >= srp[key] > 0 for key in srp)
    near = {(row["level"], row["k"], row["method"]): row["SRP"] for row in similar.rows}
    assert all(top[key] >= near[key] > 0 for key in srp)


def test_pairs_are_not_sought_among_very_many_users(world, monkeypatch):
    monkeypatch.setattr(erola2012, "EXACT", 149)
    monkeypatch.setattr(erola2012, "_most_similar", pytest.fail)
    monkeypatch.setattr(erola2012, "KS", (2,))
    everyone, best = reproduce("erola2012", *world)
    assert (everyone.name, best.name) == ("figure-2", "figure-3")
    assert best.title.endswith("; those most similar to another are not sought among more than 149 users")


def test_a_level_that_keeps_as_much_does_not_keep_less():
    rows = [{"level": level, "k": 2, "method": "search (2012)", "SRP": srp}
            for level, srp in ((1, 0.9), (2, 0.8), (3, 0.8))]  # fmt: skip
    values = Values([Figure("figure-2", "SRP", rows, "level", "SRP", "method", "k")])
    (found,) = [one.ours(values) for one in erola2012.EROLA2012.published if "upper levels" in one.what]
    assert found == "in 1 of 2 cases"


def test_the_most_similar_users_are_those_of_the_best_pairs(world):
    log, taxonomy = world
    searches, links = Searches.of(log), qv.categorize(log, taxonomy)
    profiles = Profiles.of(searches, links, 2)
    bags = [Counter(dict(zip(profiles.feature[a:b].tolist(), profiles.count[a:b].tolist(), strict=True)))
            for a, b in zip(profiles.start[:-1], profiles.start[1:], strict=True)]  # fmt: skip
    pairs = sorted(combinations(range(log.n_users), 2), key=lambda pair: -(bags[pair[0]] & bags[pair[1]]).total())
    found: list[int] = []
    for pair in pairs:
        if len(found) < 100 and not set(pair) & set(found):
            found += pair
    least = (bags[found[-2]] & bags[found[-1]]).total()
    mine = _most_similar(searches, links, 2)
    assert len(mine) == 100
    # Equally similar pairs may be taken in another order at the end.
    assert len(set(mine.tolist()) ^ set(found)) <= 2 * sum((bags[a] & bags[b]).total() == least for a, b in pairs)
    assert set(found[:40]) <= set(mine.tolist())
