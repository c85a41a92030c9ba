"""Queries in parts: whatever the weights, two that are similar meet in the part of the rarest element of both."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.log import meeting
from queryveil.log.meeting import MET, USER, Counting, bring_together, parts_of
from queryveil.text.arrays import packed, unpacked
from tests.oracles.log import Row
from tests.strategies import examples, table

ELEMENTS = 8
SETS = st.lists(st.sets(st.integers(0, ELEMENTS - 1), min_size=1), min_size=2, max_size=12)
WEIGHTS = st.lists(st.integers(1, 50), min_size=ELEMENTS, max_size=ELEMENTS)


@settings(max_examples=examples(25))
@given(SETS, WEIGHTS, st.permutations(range(ELEMENTS)), st.sampled_from([0.3, 0.7, 0.9, 1.0]), st.integers(1, 4))
def test_similar_queries_meet_in_the_part_of_the_rarest_element_of_both(sets, weight, rank, theta, queries_of_part):
    log = qv.read_log(table([Row(f"u{i}", f"word{i}") for i in range(len(sets))]))
    weights = np.array(weight)
    total = [sum(weight[element] for element in one) for one in sets]
    vector = packed(np.cumsum([0, *map(len, sets)]), np.array([e for one in sets for e in sorted(one)], np.int32))
    given_sets = pa.table({"query_id": pa.array(range(len(sets)), log.id_type), "total": total, "vector": vector})
    with pytest.MonkeyPatch.context() as patch, log.workspace() as work:
        patch.setattr(meeting, "QUERIES_OF_PART", queries_of_part)
        vectors, counting = work.read(given_sets), Counting(3, None)
        met = bring_together(log, work, vectors, weights, np.array(rank), theta**2, counting, None)
        found = work.fetch(f"SELECT * FROM {met}")
        parts = parts_of(log, counting)
    there = set(zip(found["query_id"].to_pylist(), found["part"].to_pylist(), strict=True))
    assert len(there) == len(found)
    for i, one in enumerate(sets):
        for j, other in enumerate(sets):
            common = one & other
            shared = sum(weight[element] for element in common)
            if common and shared**2 >= theta**2 * total[i] * total[j]:
                part = min(common, key=lambda element: rank[element]) % parts
                assert {(i, part), (j, part)} <= there


@pytest.mark.parametrize(("most_new", "n_users", "n_new", "own"), [(None, 4, 0, 4), (1, 6, 2, 5), (0, 6, 2, 4)])
def test_a_query_comes_with_as_many_users_of_a_kind_as_are_asked_for(most_new, n_users, n_new, own):
    rows = [Row(f"u{i}", query) for i in range(6) for query in ("cell phone", "case", "red")]
    rows += [Row(f"new{i}", "cell phone") for i in range(2)]
    log = qv.read_log(table(rows))
    with log.workspace() as work:
        accounts = work.table("""SELECT user_id AS user_id, CASE WHEN "user" LIKE 'new%' THEN 1 ELSE 0 END AS new
                                 FROM users""")
        one = {"query_id": pa.array([log.find("cell phone")], log.id_type), "total": [9]}
        vectors = work.read(pa.table(one | {"vector": packed(np.array([0, 1]), np.array([0], np.int32))}))
        accounts = None if most_new is None else accounts
        met = bring_together(log, work, vectors, np.array([9]), np.array([0]), 0.81, Counting(4, most_new), accounts)
        (row,) = work.fetch(f"SELECT * FROM {met}").to_pylist()
    _, users = unpacked(pa.array([row["users"]]), USER)
    assert list(row) == MET.names
    assert (len(set(users["id"])), int(users["new"].sum()), row["fresh"]) == (n_users, n_new, n_new)
    assert row["own"] == own
