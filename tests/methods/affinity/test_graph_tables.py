import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.log import meeting
from queryveil.methods.affinity import graph_tables
from queryveil.methods.affinity.concepts import mine_concepts
from queryveil.methods.affinity.graph_tables import AffinityParams, find_affine
from tests.methods.affinity.test_method import LOGS, PROTECTION, THETAS
from tests.oracles.affinity import affinity_degrees
from tests.oracles.log import Row
from tests.strategies import examples, table


def affine(log: qv.QueryLog, concept_min_users: int, params: AffinityParams, vectors: str = "words") -> set[str]:
    words = params.min_term_users if vectors == "words" else None
    with log.workspace() as work:
        kept = find_affine(log, work, mine_concepts(log, concept_min_users, word_min_users=words), params)
        found = work.fetch(f"SELECT q.query AS query FROM {kept} a JOIN queries q ON q.query_id = a.query_id")
    return set(found["query"].to_pylist())


@settings(max_examples=examples(30))
@given(
    LOGS,
    st.integers(2, 4),
    THETAS,
    st.integers(2, 4),
    PROTECTION,
    st.sampled_from([4096, 3, 1]),
    st.sampled_from([1, 3, meeting.QUERIES_OF_PART]),
)
def test_tables_find_the_generalized_core_of_the_whole_graph(
    rows, k, theta, concept_min_users, protection, most, queries_of_part
):
    expected = affinity_degrees(rows, theta, concept_min_users, **protection)
    vectors = protection.pop("vectors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_tables, "MOST_SUBSETS", most)  # small: everything takes the way of very long queries
        patch.setattr(meeting, "QUERIES_OF_PART", queries_of_part)
        found = affine(qv.read_log(table(rows)), concept_min_users, AffinityParams(k, theta, **protection), vectors)
    assert found == {query for query, degree in expected.items() if degree >= k}


@pytest.mark.parametrize("max_new_users", [None, 1])
def test_tables_and_arrays_agree_on_a_larger_log(max_new_users, monkeypatch):
    monkeypatch.setattr(meeting, "QUERIES_OF_PART", 500)
    draw = np.random.default_rng(5)
    words = [f"w{i}" for i in range(60)]
    chosen = [" ".join(words[int(60 * x**3)] for x in draw.random(draw.integers(1, 6))) for _ in range(4000)]
    log = qv.read_log(table([Row(f"u{draw.integers(300)}", query) for query in chosen]))
    method = qv.Affinity(k=4, theta=0.8, max_new_users=max_new_users)
    release = method.anonymize(log)
    by_arrays = {query for batch in release.batches() for query in batch["query"].to_pylist()}
    assert affine(log, 5, AffinityParams(4, 0.8, 4, 1, max_new_users)) == by_arrays
    assert 100 < len(by_arrays) < log.n_queries - 100


def test_every_table_in_between_is_dropped():
    log = qv.read_log(table([Row(f"u{i}", f"cell phone {'case' if i % 2 else 'red'}") for i in range(9)]))
    before = {"events", "clicks", "users", "queries", "urls", "words", "query_terms"}
    affine(log, 3, AffinityParams(3, 0.9, 1, 1, None))
    made = {row[0] for row in log.engine._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    kept = {"query_users", "per_query", "word_users", "rarest"}
    assert made | set(log.engine._arrow) <= before | kept | {f"extra {name}" for name in log.stats.extras}
