import pyarrow as pa
import pytest

import queryveil as qv


@pytest.fixture
def log():
    return qv.read_log(pa.table({"user": list("abcab"), "query": ["tea", "Tea", "tea", "mug", "mug 2"]}))


def test_in_and_out(tmp_path, log):
    qv.Equality(k=2).anonymize(log).save(tmp_path / "r")
    found = qv.explain(tmp_path / "r", log, "  TEA ")
    assert (found.query, found.released, found.rows) == ("tea", True, 3)
    assert found.reasons[0].found == "3 did"
    found = qv.explain(tmp_path / "r", log, "mug")
    assert not found.released
    assert not found.reasons[0].passed


def test_a_query_that_nobody_issued(log):
    found = qv.explain(qv.Equality(k=2).anonymize(log), log, "coffee")
    assert not found.released
    assert found.reasons[0].found == "nobody did"


def test_explain_agrees_with_the_release_for_every_query(log):
    release = qv.Rules(min_term_users=2, max_terms=1).anonymize(log)
    for query in log.query_text.to_pylist():
        found = qv.explain(release, log, query)
        assert found.released == all(reason.passed for reason in found.reasons), query


def test_another_log_is_refused(log):
    other = qv.read_log(pa.table({"user": ["a", "b"], "query": ["x", "x"]}))
    with pytest.raises(qv.QueryveilError, match="another log"):
        qv.explain(qv.Equality(k=2).anonymize(log), other, "tea")
