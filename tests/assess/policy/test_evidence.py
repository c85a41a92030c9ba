import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.attacks import Estimate, Finding, Findings, Skipped
from queryveil.assess.policy import Evidence, Number, gather, issued_by_few, promised_k
from queryveil.claims import CombinationUsers, QueryUsers, RecordUsers, RowUsers, TermUsers, Verdict
from queryveil.verification.verifier import Verification
from tests.assess.attacks.helpers import read


def test_the_k_of_a_release_is_about_queries_and_records():
    assert promised_k(()) is None
    assert promised_k((TermUsers(users=50), CombinationUsers(users=1000, columns=("country",)))) is None
    assert promised_k((QueryUsers(users=30), RowUsers(users=5, columns=("country",)))) == 30
    assert promised_k((RowUsers(users=5, columns=("url",), clicked=True),)) is None
    assert promised_k((RowUsers(users=5, columns=("country",)),)) == 5
    assert promised_k((RecordUsers(users=7),)) == 7


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["tea", "mug", "pot", "cup"])), min_size=1, max_size=30)


@given(PAIRS, st.integers(1, 6))
def test_queries_of_few_users_are_counted(pairs, k):
    log = read(pairs)
    users = {}
    for user, query in pairs:
        users.setdefault(query, set()).add(user)
    release = qv.Rules(max_characters=1000).anonymize(log)
    assert issued_by_few(release, log, k) == sum(len(some) < k for some in users.values())


def test_queries_of_few_users_are_counted_in_the_log_as_it_was_scrubbed(tmp_path):
    log = read([(u, f"jane{u}@example.com tea") for u in range(6)] + [(u, "mug") for u in range(2)])
    scrubbed = qv.scrub(log, "mask")
    release = qv.Rules(max_characters=1000).anonymize(scrubbed)
    assert issued_by_few(release, log, 3) == issued_by_few(release, scrubbed, 3) == 1
    assert issued_by_few(release, log, 7) == 2


def found(attack, value, unit="share", high=None):
    estimate = Estimate(value, value, value if high is None else high)
    return Finding(attack, "", "", unit, estimate, 0.0, "", None, "", 9)


def test_evidence_is_gathered_from_a_release(tmp_path):
    log = read([(u, "tea") for u in range(6)] + [(0, "my own"), (1, "mug"), (2, "mug")])
    release = qv.Rules(max_characters=1000).anonymize(log)
    findings = Findings("rules", (found("history_linkage", 0.3, high=0.4),), (Skipped("sybil", "no"),))
    known = gather(release, log, findings, Verification((Verdict("a", True), Verdict("b", False))))
    assert known == Evidence(
        kind="events",
        shared=False,
        k=None,
        epsilon=None,
        few=2,
        covered=False,
        refuted=1,
        numbers=(Number("history_linkage", "", 0.3, 0.4), Number("sybil", "", None, why="no")),
    )
    assert gather(release, log, findings).refuted is None


@pytest.mark.parametrize(
    ("method", "kind", "shared", "k", "covered"),
    [
        (qv.Equality(k=3), "events", False, 3, True),
        (qv.Affinity(k=3), "events", False, 3, True),
        (qv.Odp(k=3), "records", True, 3, False),
        (qv.Clump(k=3), "items", False, 3, False),
        (qv.Wngen(k=3), "items", False, 3, False),
        (qv.Hash(), "tokens", False, None, False),
        (qv.DpSet(epsilon=50.0, delta=0.1), "counts", False, None, True),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_every_kind_of_release_has_evidence(method, kind, shared, k, covered):
    log = read([(u, f"cheap dog {i % 3}") for u in range(12) for i in range(4)])
    known = gather(method.anonymize(log), log, Findings("", (), ()))
    assert (known.kind, known.shared, known.k, known.covered) == (kind, shared, k, covered)
    assert (known.epsilon is not None) == (method.name == "dp-set")
