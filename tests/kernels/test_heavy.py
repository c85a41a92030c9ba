from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.digest import digests
from queryveil.kernels.heavy import Sets, group_subsets, pairs_of, turned, walk_subsets

# With and without weights whose products are too long for a word.
SCALES = st.sampled_from([1, 2**29])
WEIGHTS = st.lists(st.integers(1, 60), min_size=1, max_size=6)
THETAS = st.sampled_from([0.3, 0.6, 0.8, 0.95, 1.0])
EVERY = np.empty(0, np.int32), np.empty(0, np.bool_)


@st.composite
def weighted_sets(draw):
    """Sets of elements that may have parts, which the sets then hold too."""
    scale = draw(SCALES)
    weights = sorted(w * scale for w in draw(WEIGHTS))
    n = len(weights)
    parts = [set() for _ in range(n)]
    rank = draw(st.permutations(range(n)))
    for a in range(n):
        inside = draw(st.sets(st.integers(0, a - 1), max_size=2)) if a else set()
        parts[rank[a]] = {rank[b] for b in inside} | {p for b in inside for p in parts[rank[b]]}
    drawn = draw(st.lists(st.sets(st.integers(0, n - 1), min_size=1), min_size=1, max_size=12))
    closed = {frozenset(s | {p for e in s for p in parts[e]}) for s in drawn}
    return weights, parts, sorted(closed, key=lambda s: (sum(weights[e] for e in s), sorted(s)))


def arrays(weights, parts, sets):
    start = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    element = np.array([e for s in sets for e in sorted(s)], np.int32)
    total = np.array([sum(weights[e] for e in s) for s in sets], np.int64)
    ids = np.arange(len(weights), dtype=np.int64)
    low, high = digests(ids.view(np.uint8), ids * 8, ids * 8 + 8)
    part = np.full((len(weights), 5), -1, np.int32)
    for e, inside in enumerate(parts):
        part[e, : len(inside)] = sorted(inside)
    return Sets(start, element, total, np.array(weights, np.int64), part, low, high)


def are_affine(a, b, weights, theta):
    common, one, other = (float(sum(weights[e] for e in s)) for s in (a & b, a, b))
    return common * common >= theta * theta * (one * other)


@given(weighted_sets(), THETAS, st.sampled_from([1000, 2, 0]), st.sampled_from([6, 12]))
def test_groups_hold_exactly_the_affine_pairs(drawn, theta, most, bits):
    weights, parts, plain = drawn
    sets, theta2 = arrays(weights, parts, plain), theta * theta
    counts = np.zeros(len(plain), np.int32)
    met = np.zeros((1 << bits) // 32, np.uint64)
    walk_subsets(sets, 0, len(plain), theta2, most, counts, bits, met, False, *EVERY)
    subsets = walk_subsets(sets, 0, len(plain), theta2, most, counts, bits, met, True, *EVERY)
    found = [group_subsets(subsets, bits // 2)]
    long = np.flatnonzero(counts > most)
    postings = turned(sets.start, sets.element, len(weights))
    found.append(pairs_of(long, counts > most, sets, *postings, theta2))
    pairs = set()
    for groups in found:
        for g in range(len(groups.weight)):
            members = groups.member[groups.start[g] : groups.start[g + 1]].tolist()
            assert members == sorted(members), "the lightest first"
            common = float(groups.weight[g])
            for a, b in combinations(members, 2):
                if common * common >= theta2 * (float(sets.total[a]) * float(sets.total[b])):
                    pairs.add((a, b))
    n = range(len(plain))
    assert pairs == {(a, b) for a, b in combinations(n, 2) if are_affine(plain[a], plain[b], weights, theta)}


@given(weighted_sets(), THETAS)
def test_only_closed_heavy_subsets_are_counted(drawn, theta):
    weights, parts, plain = drawn
    counts = np.zeros(len(plain), np.int32)
    met = np.zeros(2, np.uint64)
    walk_subsets(arrays(weights, parts, plain), 0, len(plain), theta * theta, 1000, counts, 6, met, False, *EVERY)
    for s, count in zip(plain, counts, strict=True):
        least = theta * theta * sum(weights[e] for e in s) * (1 - 1e-9)
        subsets = (set(kept) for n in range(len(s) + 1) for kept in combinations(s, n))
        closed = [kept for kept in subsets if all(parts[e] <= kept for e in kept)]
        assert count == sum(sum(weights[e] for e in kept) >= least for kept in closed)


def test_digests_that_agree_in_their_top_bits_are_distinguished():
    from queryveil.kernels.heavy import Subsets

    high = np.array([1, 2, 1, 1, 3, 2], np.uint64)
    subsets = Subsets(np.zeros(6, np.uint64), high, np.array([10, 20, 10, 10, 30, 20]), np.arange(6, dtype=np.int32))
    groups = group_subsets(subsets, 3)
    assert groups.member.tolist() == [0, 2, 3, 1, 5]
    assert (groups.start.tolist(), groups.weight.tolist()) == ([0, 3, 5], [10, 20])


@given(st.lists(st.sets(st.integers(0, 5)), max_size=8))
def test_turned_lists_the_rows_of_each_item(rows):
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    begin, found = turned(start, np.array([i for row in rows for i in sorted(row)], np.int32), 6)
    for item in range(6):
        assert found[begin[item] : begin[item + 1]].tolist() == [r for r, row in enumerate(rows) if item in row]
