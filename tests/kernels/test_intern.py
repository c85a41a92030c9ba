import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.intern import Interner

DIGEST = st.tuples(st.integers(0, 5), st.integers(0, 2))


def add(interner, pairs):
    low, high = (np.array([pair[i] for pair in pairs], np.uint64) for i in (0, 1))
    return interner.add(low, high)


@given(st.lists(st.lists(DIGEST, max_size=30), max_size=6))
def test_numbers_follow_first_appearance(batches):
    interner, known = Interner(), {}
    for batch in batches:
        numbers, fresh = add(interner, batch)
        first_seen = [i for i, pair in enumerate(batch) if pair not in known and pair not in batch[:i]]
        for pair in batch:
            known.setdefault(pair, len(known))
        assert numbers.tolist() == [known[pair] for pair in batch]
        assert fresh.tolist() == first_seen
    assert interner.count == len(known)


@given(st.lists(DIGEST, min_size=1, max_size=40), st.randoms())
def test_ranks_do_not_depend_on_the_order_of_appearance(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    ids = []
    for order in (pairs, shuffled):
        interner = Interner()
        numbers, _ = add(interner, order)
        ranks = interner.ranks()
        ids.append({pair: int(ranks[number]) for pair, number in zip(order, numbers, strict=True)})
    assert ids[0] == ids[1]
    assert sorted(ids[0].values()) == list(range(len(set(pairs))))


def test_grows_past_its_first_size():
    interner = Interner()
    values = np.arange(6_000, dtype=np.uint64) * np.uint64(2**20)  # all land in the same few slots
    for part in np.array_split(values, 7):
        interner.add(part, part)
    numbers, fresh = interner.add(values, values)
    assert numbers.tolist() == list(range(6_000))
    assert len(fresh) == 0
