import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil import graph
from queryveil.claims import AffineUsers
from queryveil.kernels.cores import Users
from queryveil.kernels.heavy import Sets
from queryveil.methods.affinity import Candidates
from tests.oracles.affinity import affinity_degrees, are_affine, degrees
from tests.oracles.log import Row
from tests.strategies import table

WORDS = st.lists(st.sampled_from(["cell", "phone", "case", "nokia", "red", "the", "x1", "x2"]), min_size=1, max_size=5)
LOGS = st.lists(
    st.tuples(st.sampled_from("abcdefghij"), WORDS.map(" ".join)).map(lambda pair: Row(*pair)), min_size=3, max_size=60
)
THETAS = st.sampled_from([0.5, 0.7, 0.8, 0.9, 0.95, 1.0])


def queries_of(release: qv.Release) -> set[str]:
    return set(pa.Table.from_batches(list(release.batches()), release.schema)["query"].to_pylist())


PROTECTION = st.fixed_dictionaries(
    {
        "min_term_users": st.integers(1, 3),
        "min_query_users": st.sampled_from([1, 1, 2]),
        "max_new_users": st.sampled_from([None, None, 0, 1, 2]),
    }
)


@settings(max_examples=150)
@given(LOGS, st.integers(2, 4), THETAS, st.integers(0, 1), PROTECTION, st.sampled_from([4096, 3, 1]))
def test_releases_the_generalized_core_of_the_whole_graph(rows, k, theta, more, protection, most):
    min_users = k + more
    if len({row.user for row in rows}) < k:
        return
    log = qv.read_log(table(rows))
    method = qv.Affinity(k=k, theta=theta, min_users=min_users, **protection)
    expected = affinity_degrees(rows, theta, min_users, **protection)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "MOST_SUBSETS", most)  # small: everything takes the way of very long queries
        release = method.anonymize(log, seed=1)
        degrees = method.degrees(log, max_degree=6)
    assert queries_of(release) == {query for query, degree in expected.items() if degree >= k}
    found = dict(zip(log.query_text.to_pylist(), degrees.tolist(), strict=True))
    assert found == {query: min(degree, 6) for query, degree in expected.items()}


@given(LOGS, st.integers(2, 4), THETAS, PROTECTION)
def test_the_verifier_accepts_every_release(rows, k, theta, protection):
    if len({row.user for row in rows}) < k:
        return
    log = qv.read_log(table(rows))
    verification = qv.verify(qv.Affinity(k=k, theta=theta, min_users=k, **protection).anonymize(log), log)
    assert verification.holds, verification


@given(LOGS, st.lists(THETAS, min_size=1, max_size=3, unique=True))
def test_one_graph_serves_many_k_and_theta(rows, thetas):
    log = qv.read_log(table(rows))
    candidates = Candidates(qv.Affinity(k=2, min_users=3), log)
    for theta, k, kept in candidates.released([2, 3, 5], sorted(thetas)):
        expected = affinity_degrees(rows, theta, 3, 2)
        found = {query for query, keep in zip(log.query_text.to_pylist(), kept, strict=True) if keep}
        assert found == {query for query, degree in expected.items() if degree >= k}


@given(LOGS)
def test_more_users_or_more_likeness_never_release_more(rows):
    if len({row.user for row in rows}) < 4:
        return
    log = qv.read_log(table(rows))

    def released(k, theta):
        return queries_of(qv.Affinity(k=k, theta=theta, min_users=4).anonymize(log))

    assert released(2, 0.8) >= released(3, 0.8) >= released(4, 0.8)
    assert released(2, 0.7) >= released(2, 0.85) >= released(2, 1.0)


def test_threads_change_nothing():
    rows = [Row(f"u{i % 40}", f"{'cell phone' if i % 3 else 'red case'} w{i % 23} {'x' * (i % 5)}") for i in range(600)]

    def released(threads):
        release = qv.Affinity(k=5, theta=0.8).anonymize(qv.read_log(table(rows), threads=threads), seed=7)
        return pa.Table.from_batches(list(release.batches()), release.schema)

    expected = released(1)
    assert len(expected) > 100
    assert released(2).equals(expected)
    assert released(3).equals(expected)


def test_the_worked_example_of_the_paper():
    weight = {"cell": 14.32, "phone": 15.33, "case": 13.24, "nokia": 11.35, "cell phone": 10.8, "phone case": 6.95}
    short = {(name,): w * w for name, w in weight.items() if name != "nokia"}
    long = {(name,): w * w for name, w in weight.items()}
    common = sum(w for name, w in long.items() if name in short)
    cosine = common / math.sqrt(sum(short.values()) * sum(long.values()))
    assert cosine == pytest.approx(0.926, abs=0.0005)
    assert are_affine(short, long, 0.92)
    assert not are_affine(short, long, 0.93)
    # The same through the graph: elements by ascending weight, the parts of `cell phone` and `phone case` among them.
    names = sorted(weight, key=weight.__getitem__)
    squared = np.rint(np.array([weight[name] for name in names]) ** 2 * 2**20).astype(np.int64)
    part = np.full((len(names), 5), -1, np.int32)
    for name in ("cell phone", "phone case"):
        part[names.index(name), :2] = [names.index(word) for word in name.split()]
    members = [[i for i, name in enumerate(names) if name != "nokia"], list(range(len(names)))]
    sets = Sets(
        np.array([0, 5, 11]), np.array([*members[0], *members[1]], np.int32),
        np.array([squared[m].sum() for m in members]), squared, part,
        np.arange(1, 7, dtype=np.uint64) << np.uint64(50), np.arange(1, 7, dtype=np.uint64),
    )  # fmt: skip
    vertices = graph.Vertices(np.arange(2, dtype=np.int32), sets, Users(np.arange(3), np.arange(2, dtype=np.int32)))
    for theta, near in ((0.92, [1]), (0.925, [1]), (0.93, [])):
        assert graph.AffinityGraph(vertices, theta, 1).neighbours(0).tolist() == near


def test_a_vertex_linked_to_two_classes_can_still_be_of_order_one():
    # After figure 3 of the paper: `m` links two triangles through vertices of the two other classes, which peel first.
    users = {"a": {1}, "b": {2}, "c": {3}, "m": {2}, "p": {1}, "q": {3}}
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("m", "p"), ("m", "q")]
    graph = {v: {b if v == a else a for a, b in edges if v in (a, b)} for v in users}
    found = degrees(graph, users)
    assert found["a"] == found["b"] == found["c"] == 3
    assert found["m"] == 2, "three users stand around it, but p and q fall first"


def test_private_data_joined_to_a_frequent_query_is_not_released():
    rows = [Row(f"u{i}", "visa") for i in range(9)] + [Row("me", "123XYZ visa")]
    log = qv.read_log(table(rows))
    assert "123xyz visa" not in queries_of(qv.Affinity(k=5, theta=0.8).anonymize(log))
    assert "123xyz visa" in queries_of(qv.Affinity(k=5, theta=0.8, min_term_users=1).anonymize(log))


def test_a_log_without_concepts_falls_back_to_equality_and_says_so():
    rows = [Row(f"u{i}", f"q{i % 4}") for i in range(12)]
    log = qv.read_log(table(rows))
    release = qv.Affinity(k=3, min_users=9).anonymize(log)
    assert queries_of(release) == queries_of(qv.Equality(k=3).anonymize(log))
    assert "No concept survives, so every query falls back to equality." in release.manifest.notes


def test_a_log_of_one_repeated_query_and_one_of_a_thousand_words():
    log = qv.read_log(table([Row(f"u{i % 6}", "tea") for i in range(30)]))
    assert queries_of(qv.Affinity(k=5).anonymize(log)) == {"tea"}
    long = " ".join(f"w{i % 300}" for i in range(1000))
    rows = [Row(f"u{i}", long) for i in range(6)] + [Row(f"v{i}", long + " w7") for i in range(6)]
    log = qv.read_log(table(rows))
    assert len(queries_of(qv.Affinity(k=10, theta=0.8).anonymize(log))) == 2


@pytest.mark.parametrize("theta", [0, -0.1, 1.01, "high"])
def test_theta_must_lie_in_the_unit_interval(theta):
    with pytest.raises(qv.QueryveilError, match=r"The 'theta' parameter of Affinity must be a number in \(0, 1\]. Got"):
        qv.Affinity(theta=theta)


def test_a_concept_needs_as_many_users_as_a_release():
    with pytest.raises(qv.QueryveilError, match="'min_users' is 3, fewer than the 5 of 'k'"):
        qv.Affinity(k=5, min_users=3)


def told(method, log, query):
    return [(reason.passed, reason.rule, reason.found) for reason in method.explain(log, log.find(query))]


def test_explain_tells_the_rule_that_decided():
    rows = [Row(f"u{i}", "cell phone") for i in range(6)] + [Row("z", "cell phone xyz"), Row("z", "unheard of thing")]
    log = qv.read_log(table(rows))
    method = qv.Affinity(k=5)
    found = told(method, log, "cell phone")
    assert found[0] == (None, "degree under equality", "6, the users who issued it")
    assert [passed for passed, _, _ in found] == [None, True, None, True, None]
    assert found[2][2].startswith("'phone' (3.00), 'cell' (3.00), 'cell phone' (")
    assert found[3][2] == "its degree under affinity is 6"
    assert found[4][1:] == ("affine queries that are released", "none")
    assert (False, "at least 2 users used each of its words", "1 used the rarest") in told(
        method, log, "cell phone xyz"
    )
    assert told(method, log, "unheard of thing")[-1] == (
        False,
        "no concept, so at least 5 users issued the query",
        "1 did",
    )


def test_explain_names_affine_queries_only_if_they_are_released():
    rows = [Row(f"u{i}", "cell phone case") for i in range(4)]
    rows += [Row("v", "the cell phone case"), Row("w", "cell phone case the"), Row("v", "the"), Row("w", "the")]
    rows += [Row("x", "cell phone case xyz"), Row("u1", "in cell phone case")]
    log = qv.read_log(table(rows))
    (*_, degree, near) = told(qv.Affinity(k=6), log, "the cell phone case")
    assert degree[0]
    assert near[2] == "2, issued by 5 users: 'cell phone case' (4), 'cell phone case the' (1)"
    # `in` is the word of one user, so that query is kept back, and so is its name.
    assert "in cell" not in str(told(qv.Affinity(k=6), log, "the cell phone case"))
    (*_, degree, near) = told(qv.Affinity(k=7, min_users=7), qv.read_log(table(rows + [Row("y", "cell")] * 3)), "cell")
    assert not degree[0]
    assert near[2] == "none"


def test_a_query_of_one_user_can_be_kept_back():
    rows = [Row(f"u{i}", "cell phone case") for i in range(5)] + [Row("v", "the cell phone case"), Row("w", "the")]
    log = qv.read_log(table(rows))
    assert "the cell phone case" in queries_of(qv.Affinity(k=5).anonymize(log))
    careful = qv.Affinity(k=5, min_query_users=2)
    assert queries_of(careful.anonymize(log)) == {"cell phone case"}
    assert (False, "at least 2 users issued it", "1 did") in told(careful, log, "the cell phone case")


def test_planted_accounts_protect_nobody():
    # Five users who never ask for anything else make the address of a person look like a popular query.
    rows = [Row(f"planted{i}", "jo doe 12 elm street") for i in range(5)] + [Row("jo", "jo doe 12 elm street")]
    rows += [Row("jo", f"thing {i}") for i in range(3)]
    log = qv.read_log(table(rows))
    assert "jo doe 12 elm street" in queries_of(qv.Affinity(k=5).anonymize(log))
    for most, released in ((0, False), (3, False), (4, True)):
        release = qv.Affinity(k=5, max_new_users=most).anonymize(log)
        assert ("jo doe 12 elm street" in queries_of(release)) is released
        assert qv.verify(release, log).holds


@pytest.mark.parametrize(
    ("promise", "counterexample"),
    [
        ({"min_query_users": 2}, "'the cell phone case' has 1 users who issued it"),
        ({"max_new_users": 1}, "has 1 users behind it"),
        ({"min_term_users": 6}, "has 5 users or fewer who used one of its words"),
    ],
)
def test_the_claim_refutes_a_release_without_the_protection(promise, counterexample):
    rows = [Row(f"u{i}", "cell phone case") for i in range(6)] + [Row("u5", "the cell phone case"), Row("u4", "the")]
    log = qv.read_log(table(rows))
    release = qv.Affinity(k=5).anonymize(log)
    claim = release.manifest.claims[1].model_copy(update=promise)
    boast = qv.Release(release.manifest.model_copy(update={"claims": (claim,)}), release.schema, release.batches)
    assert any(counterexample in str(verdict.counterexample) for verdict in qv.verify(boast, log).verdicts)


def test_the_manifest_must_claim_the_protection_that_its_parameters_promise():
    log = qv.read_log(table([Row(f"u{i}", "cell phone case") for i in range(6)]))
    release = qv.Affinity(k=5).anonymize(log)
    parameters = release.manifest.parameters | {"min_query_users": 3}
    boast = qv.Release(release.manifest.model_copy(update={"parameters": parameters}), release.schema, release.batches)
    (wrong,) = (verdict for verdict in qv.verify(boast, log).verdicts if not verdict.holds)
    assert "at least 3 users issued each released query" in str(wrong.counterexample)


def test_the_claim_refutes_a_release_that_keeps_too_much():
    rows = [Row(f"u{i}", "cell phone") for i in range(6)] + [Row("z", "red case"), Row("y", "red")]
    log = qv.read_log(table(rows))
    honest = qv.Affinity(k=5).anonymize(log)
    everything = qv.Rules(max_terms=9).anonymize(log)
    boast = qv.Release(
        everything.manifest.model_copy(update={"claims": honest.manifest.claims[1:]}),
        everything.schema,
        everything.batches,
    )
    found = [verdict for verdict in qv.verify(boast, log).verdicts if not verdict.holds]
    assert any("has 1 users behind it" in str(verdict.counterexample) for verdict in found)


def test_vertices_of_equal_vectors_share_their_users():
    # `the` is a stop word, so that all three have the same concepts: together they have three users.
    rows = [Row("a", "red case"), Row("b", "the red case"), Row("c", "red case the")] + [
        Row(user, word) for user, word in [("a", "the"), ("b", "the"), ("c", "the")]
    ]
    log = qv.read_log(table(rows))
    assert {"red case", "the red case", "red case the"} <= queries_of(qv.Affinity(k=3, theta=1.0).anonymize(log))


def test_a_large_release_is_checked_by_lot(monkeypatch):
    rows = [Row(f"u{i}", "cell phone case") for i in range(6)] + [Row(f"v{i}", f"cell {i} phone {i}") for i in range(9)]
    rows += [Row(f"w{i}", str(i)) for i in range(9)]
    log = qv.read_log(table(rows))
    honest = qv.Affinity(k=5).anonymize(log)
    everything = qv.Rules(max_terms=9).anonymize(log)
    boast = everything.manifest.model_copy(update={"claims": honest.manifest.claims[1:]})
    release = qv.Release(boast, everything.schema, everything.batches)
    monkeypatch.setattr(AffineUsers, "SAMPLE", 3)
    found = {verdict.counterexample for _ in range(30) for verdict in qv.verify(release, log).verdicts}
    # Queries of single digits have no concept, and are all looked at; of the nine others, three at a time.
    assert any("has 1 users behind it" in str(text) for text in found)
    monkeypatch.setattr(AffineUsers, "SAMPLE", 0)
    assert "drawn by lot" in honest.manifest.claims[1].statement


def test_many_queries_of_one_user_protect_none():
    words = ["red", "blue", "new", "old", "the", "of", "in", "for"]
    rows = [Row("bot", f"cell phone case {word}") for word in words]
    rows += [Row(f"u{i}", word) for i in range(3) for word in ["cell", "phone", "case", *words]]
    released = queries_of(qv.Affinity(k=3, theta=0.6).anonymize(qv.read_log(table(rows))))
    assert not any(query.startswith("cell phone case") for query in released)


@pytest.mark.parametrize("k", [40, 70])
def test_a_large_k_goes_through_smaller_ones(k):
    rows = [Row(f"u{i}", f"{'the ' * (i % 3)}cell phone") for i in range(69)] + [Row("u1", "the")]
    log = qv.read_log(table(rows))
    released = queries_of(qv.Affinity(k=k).anonymize(log)) if k <= log.n_users else set()
    assert released == ({"cell phone", "the cell phone", "the the cell phone"} if k == 40 else set())


def test_a_degree_of_none_is_refused():
    with pytest.raises(qv.QueryveilError, match="'max_degree' must be an integer of at least 1"):
        qv.Affinity().degrees(qv.read_log(table([Row("a", "x")])), max_degree=0)


@pytest.mark.parametrize("wrong", [{"theta": float("nan")}, {"min_term_users": -1}, {"users": 0}, {"theta": 1.5}])
def test_a_claim_that_promises_nothing_is_no_claim(wrong):
    with pytest.raises(ValueError, match="AffineUsers"):
        AffineUsers(**({"users": 5, "theta": 0.9, "min_users": 5, "min_term_users": 2} | wrong))
