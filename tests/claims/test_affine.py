"""The check of affinity against the definition, for releases of any queries, with certificates that help or lie."""

from collections import defaultdict
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import AffineUsers, affine_tables
from queryveil.claims.affine_tables import check_by_tables
from queryveil.claims.base import Evidence
from tests.both import needs_spark
from tests.oracles.affinity import are_affine, count, vectors_of
from tests.oracles.log import Row, good, users_per_word
from tests.oracles.text import words
from tests.strategies import examples, table, weekly

WORDS = st.lists(st.sampled_from(["cell", "phone", "case", "nokia", "red", "the", "x1", "x2"]), min_size=1, max_size=5)
LOGS = st.lists(
    st.tuples(st.sampled_from("abcdefghij"), WORDS.map(" ".join)).map(lambda pair: Row(*pair)), min_size=3, max_size=50
)
CLAIMS = st.builds(
    AffineUsers,
    users=st.integers(2, 4),
    theta=st.sampled_from([0.3, 0.5, 0.7, 0.8, 0.9, 1.0]),
    vectors=st.sampled_from(["words", "concepts"]),
    concept_min_users=st.integers(2, 5),
    min_term_users=st.integers(1, 3),
    min_query_users=st.sampled_from([1, 1, 2]),
    max_new_users=st.sampled_from([None, None, 0, 1, 2]),
)


def is_kept(rows: list[Row], claim: AffineUsers, released: set[str]) -> bool:
    """Whether a claim holds for some released queries, by its words."""
    vectors = vectors_of(rows, claim.concept_min_users, claim.vectors)
    users, history = defaultdict(set), defaultdict(set)
    for row in good(rows):
        users[row.query].add(row.user)
        history[row.user].add(row.query)
    new = {user for user, queries in history.items() if len(queries) <= 2}
    per_word = users_per_word(rows)
    for query in released:
        near = {query}
        if vectors[query]:
            near |= {o for o in released if vectors[o] and are_affine(vectors[query], vectors[o], claim.theta)}
            if any(per_word[word] < claim.min_term_users for word in words(query)):
                return False
        behind = set().union(*(users[other] for other in near))
        if count(behind, new, claim.max_new_users) < claim.users or len(users[query]) < claim.min_query_users:
            return False
    return True


def looked(log: qv.QueryLog, look, released: set[str], certificate: qv.Certificate | None = None):
    """What a way to look at a release of these queries finds."""
    found = pa.table({"query": pa.array(sorted(released), pa.string())})
    with log.workspace() as work:
        return look(Evidence(log, work, ("query",), work.read(found), certificate))


def some_of(rows: list[Row], data) -> tuple[set[str], list[str]]:
    """Some queries of a log, or all of them; and all."""
    queries = sorted({row.query for row in good(rows)})
    return data.draw(st.sets(st.sampled_from(queries)) | st.just(set(queries))), queries


@settings(max_examples=examples(20))
@given(LOGS, CLAIMS, st.data())
def test_a_release_of_any_queries_holds_if_the_definition_says_so(rows, claim, data):
    log = qv.read_log(table(rows))
    released, queries = some_of(rows, data)
    ids = st.lists(st.integers(-3, len(queries) + 2), min_size=1, max_size=60)
    some, others = data.draw(ids), data.draw(ids)
    pairs = {"query_id": [a for a in some for _ in others], "witness": others * len(some)}
    lie = qv.Certificate(0, {"witnesses": pa.table(pairs)})
    plain, lied = looked(log, claim.look, released), looked(log, claim.look, released, lie)
    assert (plain.counterexample is None) == is_kept(rows, claim, released)
    assert lied.counterexample == plain.counterexample


@settings(max_examples=examples(15))
@given(LOGS, CLAIMS, st.data(), st.sampled_from([1, 3, affine_tables.QUERIES_OF_PART]), st.sampled_from([1, 1000]))
def test_tables_find_the_same(rows, claim, data, queries_of_part, at_a_time):
    log = qv.read_log(table(rows))
    released, _ = some_of(rows, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(affine_tables, "QUERIES_OF_PART", queries_of_part)
        patch.setattr(affine_tables, "LISTED", at_a_time)
        by_arrays, by_tables = (looked(log, look, released) for look in (claim.look, partial(check_by_tables, claim)))
    assert by_tables.counterexample == by_arrays.counterexample


@settings(max_examples=examples(15))
@given(LOGS, st.integers(2, 4), st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([None, 1]))
def test_the_witnesses_of_a_certificate_are_enough(rows, k, theta, max_new_users):
    log = qv.read_log(table(rows))
    if log.n_users < k:
        return
    method = qv.Affinity(k=k, theta=theta, concept_min_users=3, max_new_users=max_new_users)
    release = method.anonymize(log)
    found = qv.verify(release, log)
    assert found.holds
    (verdict,) = (v for v in found.verdicts if v.how)
    assert "search" not in verdict.how
    assert qv.verify(release, log, certificate=qv.Certificate(0)).holds


def test_of_a_certificate_only_what_is_wrong_is_searched_for():
    rows = [Row(f"u{i}", "cell phone case") for i in range(6)] + [Row("v", "cell phone case x1")]
    rows += [Row(f"w{i}", "nokia red") for i in range(6)] + [Row("x", "nokia red x2")]
    log = qv.read_log(table(rows))
    release = qv.Affinity(k=5, concept_min_users=5, min_term_users=1).anonymize(log)
    one, other = (log.find(name) for name in ("cell phone case x1", "nokia red x2"))
    half = {"query_id": [one, other], "witness": [log.find("cell phone case")] * 2}
    found = qv.verify(release, log, certificate=qv.Certificate(0, {"witnesses": pa.table(half)}))
    assert found.holds
    (how,) = (verdict.how for verdict in found.verdicts if verdict.how)
    assert "for 1 with the witnesses that the certificate names, for 1 by a search" in how


@pytest.mark.parametrize("witness", ["a query that is not released", "one that is not similar", "itself", "no query"])
def test_a_query_without_users_is_refuted_whatever_a_certificate_names(witness):
    rows = [Row(f"u{i}", "cell phone case") for i in range(6)] + [Row("v", "cell phone red red nokia x1")]
    rows += [Row(f"w{i}", "nokia red x1") for i in range(6)] + [
        Row(f"z{i}", "cell phone red nokia x1") for i in range(6)
    ]
    rows += [Row(f"t{i}", word) for i in range(6) for word in ("red", "x1", "nokia")]
    log = qv.read_log(table(rows))
    claim = AffineUsers(users=5, theta=0.9, vectors="words", concept_min_users=5, min_term_users=1)
    alone = "cell phone red red nokia x1"
    named = {
        "a query that is not released": log.find("cell phone red nokia x1"),
        "one that is not similar": log.find("cell phone case"),
        "itself": log.find(alone),
        "no query": 10**12,
    }[witness]
    pairs = {"query_id": [log.find(alone)] * 9, "witness": [named] * 9}
    certificate = qv.Certificate(0, {"witnesses": pa.table(pairs)})
    released = {"cell phone case", "nokia red x1", alone}
    found = looked(log, claim.look, released, certificate)
    assert found.counterexample == f"the query '{alone}' has 1 users behind it"


@weekly
@needs_spark
def test_on_spark_all_queries_are_compared_by_tables(spark):
    rows = [Row(f"u{i}", "cell phone case") for i in range(6)] + [Row("v", "cell phone case x1"), Row("w", "phone red")]
    log = qv.read_log(spark.createDataFrame(table(rows)), engine=spark)
    claim = AffineUsers(users=5, theta=0.9, vectors="words", concept_min_users=5, min_term_users=1)
    released = {row.query for row in rows}
    found = looked(log, claim.look, released)
    assert found.counterexample == "the query 'phone red' has 1 users behind it"
    assert "by a search of all released queries" in found.how
    log.close()


@weekly  # the pipeline in tests/engines/test_spark.py has this check too, of a release that holds
@needs_spark
def test_on_spark_queries_that_too_few_protect_are_removed_round_by_round(spark):
    rows = [Row(f"u{i}", "cell phone case") for i in range(6)] + [Row("v", "cell phone case x1"), Row("w", "phone red")]
    log = qv.read_log(spark.createDataFrame(table(rows)), engine=spark)
    drawn = AffineUsers(users=5, theta=0.9, vectors="words", concept_min_users=5, min_term_users=1, drawn=True)
    assert looked(log, drawn.look, {"cell phone case x1"}).counterexample is None
    found = looked(log, drawn.look, {row.query for row in rows})
    assert found.counterexample == "the query 'phone red' has too few users behind it"
    log.close()
