from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.digest import digests
from queryveil.kernels.heavy import count_subsets, group_subsets, groups_of_members, list_subsets, pairs_of
from queryveil.kernels.order import digest_order

WEIGHTS = st.lists(st.integers(1, 60), min_size=1, max_size=6).map(sorted)
THETAS = st.sampled_from([0.3, 0.6, 0.8, 0.95, 1.0])


def arrays(sets, weights):
    start = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    element = np.array([e for s in sets for e in sorted(s)], np.int32)
    weight = np.array(weights, np.int64)
    total = np.array([sum(weights[e] for e in s) for s in sets], np.int64)
    return start, element, weight, total


@given(WEIGHTS, st.data(), THETAS, st.integers(0, 2), st.sampled_from([1000, 2, 0]))
def test_groups_hold_exactly_the_affine_pairs(weights, data, theta, bits, most):
    elements = st.sets(st.integers(0, len(weights) - 1), min_size=1)
    sets = [sorted(s) for s in {frozenset(s) for s in data.draw(st.lists(elements, min_size=1, max_size=12))}]
    start, element, weight, total = arrays(sets, weights)
    theta2 = theta * theta
    counts = count_subsets(start, element, weight, total, theta2, most)
    ids = np.arange(len(weights), dtype=np.int64)
    low, high = digests(ids.view(np.uint8), ids * 8, ids * 8 + 8)
    found = set()

    def collect(groups):
        for g in range(len(groups.weight)):
            members = groups.member[groups.start[g] : groups.start[g + 1]].tolist()
            assert [total[m] for m in members] == sorted(total[m] for m in members)
            common = float(groups.weight[g])
            for a, b in combinations(members, 2):
                if common * common >= theta2 * (float(total[a]) * float(total[b])):
                    found.add(frozenset((a, b)))
        owner_start, owner_group = groups_of_members(groups, len(sets))
        for v in range(len(sets)):
            mine = set(owner_group[owner_start[v] : owner_start[v + 1]].tolist())
            members = [groups.member[groups.start[g] : groups.start[g + 1]] for g in range(len(groups.weight))]
            assert mine == {g for g, ids in enumerate(members) if v in ids}

    for part in range(1 << bits):
        subsets = list_subsets(start, element, weight, low, high, total, counts, theta2, most, part, bits)
        collect(group_subsets(subsets, digest_order(subsets.low, subsets.high), total))
    long = np.flatnonzero(counts > most)
    if len(long):
        owner = np.repeat(np.arange(len(sets), dtype=np.int32), np.diff(start))
        order = np.argsort(element, kind="stable")
        posting_start = np.searchsorted(element[order], np.arange(len(weights) + 1))
        collect(pairs_of(long, start, element, weight, total, posting_start, owner[order], theta2))
    expected = set()
    for a, b in combinations(range(len(sets)), 2):
        common = float(sum(weights[e] for e in set(sets[a]) & set(sets[b])))
        if common * common >= theta2 * (float(total[a]) * float(total[b])):
            expected.add(frozenset((a, b)))
    assert found == expected


@given(WEIGHTS, THETAS)
def test_heavy_subsets_are_counted_one_by_one(weights, theta):
    whole = list(range(len(weights)))
    start, element, weight, total = arrays([whole], weights)
    expected = sum(
        sum(weights[e] for e in whole if e not in gone) >= theta * theta * sum(weights) * (1 - 1e-9)
        for n in range(len(whole) + 1)
        for gone in combinations(whole, n)
    )
    found = int(count_subsets(start, element, weight, total, theta * theta, 1000)[0])
    assert found == expected
