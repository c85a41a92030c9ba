import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.methods.affinity.concepts import default_concept_min_users, mine_concepts, query_vectors
from tests.oracles import log as oracle
from tests.oracles.affinity import vectors_of
from tests.oracles.concepts import concepts
from tests.oracles.log import Row
from tests.strategies import table

WORDS = st.lists(st.sampled_from(["cell", "phone", "case", "the", "of", "red"]), min_size=1, max_size=5).map(" ".join)
LOGS = st.lists(st.tuples(st.sampled_from("abcdefg"), WORDS).map(lambda pair: Row(*pair)), min_size=1, max_size=40)


@given(LOGS, st.integers(2, 4))
def test_concepts_and_weights_are_those_of_the_paper(rows, min_users):
    log = qv.read_log(table(rows))
    found = mine_concepts(log, min_users)
    expected = concepts(rows, min_users)
    weights = {tuple(found.text(i).split()): found.weight[i] for i in range(len(found))}
    assert weights == pytest.approx(expected)
    counts = {gram: oracle.ngrams(rows, len(gram))[gram] for gram in expected}
    for i in range(len(found)):
        gram = tuple(found.text(i).split())
        assert (found.events[i], found.users[i]) == counts[gram][1:]
        assert found.order[i] == len(gram)


@given(LOGS, st.integers(2, 4), st.integers(1, 3) | st.none())
def test_a_vector_holds_concepts_and_words_once_lightest_first(rows, concept_min_users, word_min_users):
    log = qv.read_log(table(rows))
    found = mine_concepts(log, concept_min_users, word_min_users=word_min_users)
    start, concept = query_vectors(log, found)
    expected = vectors_of(rows, concept_min_users, "concepts" if word_min_users is None else "words")
    per_word = oracle.users_per_word(rows)
    for i, query in enumerate(log.query_text.to_pylist()):
        mine = concept[start[i] : start[i + 1]]
        held = {tuple(found.text(c).split()): int(found.squared[c]) for c in mine}
        rare = {word for word in query.split() if per_word[word] < min(concept_min_users, word_min_users or 9)}
        assert held == {gram: w for gram, w in expected[query].items() if not rare & set(gram)}
        assert len(mine) == len(held)
        assert (np.diff(found.weight[mine]) >= 0).all()


def test_key_concepts_are_those_of_enough_users_and_rarer_words_are_no_concepts():
    rows = [Row(user, "red phone") for user in "abc"] + [Row("a", "red x1 the"), Row("b", "x1"), Row("a", "x2 phone")]
    found = mine_concepts(qv.read_log(table(rows)), 3, word_min_users=2)
    named = {found.text(i): (bool(found.key[i]), round(float(found.weight[i]), 4)) for i in range(len(found))}
    assert {name: named[name] for name in ("red", "phone", "x1")} == {
        "red": (True, 2.3219), "phone": (True, 2.3219), "x1": (False, 1.585),
    }  # fmt: skip
    assert named.keys() == {"red", "phone", "red phone", "x1"}


def test_word_order_matters():
    rows = pa.table({"user": list("abcd"), "query": ["book bar", "book bar", "bar book", "bar"]})
    log = qv.read_log(rows)
    found = mine_concepts(log, 2)
    assert {found.text(i) for i in range(len(found))} == {"book", "bar", "book bar"}


def test_a_log_without_a_frequent_word_has_no_concepts():
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["x y z", "u v w"]}))
    assert len(mine_concepts(log, 2)) == 0


def test_the_threshold_follows_the_users_and_never_falls_below_five():
    class Log:
        n_users = 650_000

    assert default_concept_min_users(Log()) == 65
    Log.n_users = 1000
    assert default_concept_min_users(Log()) == 5


@given(LOGS, st.integers(2, 3))
def test_a_concept_names_the_concepts_inside_it(rows, min_users):
    log = qv.read_log(table(rows))
    found = mine_concepts(log, min_users)
    gram = [tuple(found.text(i).split()) for i in range(len(found))]
    for i, parts in enumerate(found.parts):
        inside = {gram[i][a : a + n] for n in range(1, len(gram[i])) for a in range(len(gram[i]) - n + 1)}
        inner = [int(p) for p in parts if p >= 0]
        assert {gram[p] for p in inner} == inside & set(gram)
        assert (parts[len(inner) :] == -1).all()
