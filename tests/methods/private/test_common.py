"""Zealous and DpSet: the literal steps without noise, how much one user changes, accounting, refuted forgeries."""

import math
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import DifferentialPrivacy
from queryveil.claims.private import NoisyStep, spent
from queryveil.engines import Workspace
from queryveil.errors import QueryveilError
from queryveil.methods.private import noise
from queryveil.methods.private.contributions import PAIRS, bound, counted, random_keys, weighed
from queryveil.release import check_claims
from queryveil.release.summary import scrub_rows
from tests.both import on_both_engines_weekly
from tests.oracles import private as oracle
from tests.oracles.log import Row
from tests.strategies import examples, table

WORDS = ["cat", "dog", "sea", "tea", "red", "sun"]
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join)
USERS = st.lists(st.lists(QUERIES, min_size=1, max_size=8), min_size=1, max_size=12)


def rows_of_users(users: list[list[str]]) -> list[Row]:
    """One row a search, a second after the one before it."""
    blank = dict.fromkeys(Row._fields)
    return [
        Row(**{**blank, "user": f"u{u}", "query": query, "time": f"2006-03-01 10:00:{i:02}"})
        for u, mine in enumerate(users)
        for i, query in enumerate(mine)
    ]


def released(release: qv.Release) -> list[dict]:
    return pa.Table.from_batches(release.batches(), release.schema).to_pylist()


@pytest.fixture
def silent(monkeypatch):
    """No noise at all."""
    for kind in ("laplace", "gaussian"):
        monkeypatch.setattr(noise, kind, lambda values, scale: values)


@settings(max_examples=examples(15))
@given(USERS, st.integers(1, 4), st.sampled_from(["first", "frequent"]), st.integers(1, 3))
def test_without_noise_zealous_is_the_literal_count(silent, users, d, keep, least):
    rows = rows_of_users(users)
    method = qv.Zealous(max_queries_per_user=d, keep=keep, threshold=least + 1, scale=1, min_users=least)
    release = method.anonymize(qv.read_log(table(rows)))
    expected = oracle.counts(oracle.bounded(rows, d, keep))
    assert {row["query"]: row["count"] for row in released(release)} == {
        query: n for query, n in expected.items() if n >= least + 1
    }
    assert qv.verify(release, release.log).holds


@settings(max_examples=examples(15))
@given(USERS, st.integers(1, 4), st.sampled_from(["first", "frequent"]), st.integers(1, 3))
def test_without_noise_dp_set_is_the_literal_rounds(silent, users, d, keep, n):
    rows = rows_of_users(users)
    method = qv.DpSet(max_queries_per_user=d, keep=keep, epsilon=100, delta=0.5, rounds=n)
    release = method.anonymize(qv.read_log(table(rows)))
    steps = [(step.pre_threshold, step.threshold) for step in method.claim.steps]
    expected = oracle.rounds(oracle.ordered(rows, keep), d, noise.WHOLE, steps)
    assert {row["query"] for row in released(release)} == expected
    assert qv.verify(release, release.log).holds


@settings(max_examples=examples(15))
@given(USERS, st.integers(1, 3))
def test_queries_are_built_of_released_ngrams(silent, users, n):
    rows = rows_of_users(users)
    method = qv.DpSet(max_queries_per_user=3, keep="first", epsilon=100, delta=0.5, rounds=1, ngrams=n)
    release = method.anonymize(qv.read_log(table(rows)))
    runs = [
        row._replace(query=" ".join(words[i : i + n]))
        for row in rows
        for words in [row.query.split()]
        for i in range(len(words) - n + 1)
    ]
    # The order of the runs of one query is that of digests, so that the literal steps are those of users with few runs.
    mine = oracle.things(runs)
    if any(len(grams) > 3 for grams in mine.values()):
        return
    first, last = method.claim.steps
    grams = oracle.rounds(mine, 3, noise.WHOLE, [(first.pre_threshold, first.threshold)])
    built = {
        user: [q for q in queries if {" ".join(q.split()[i : i + n]) for i in range(len(q.split()) - n + 1)} <= grams]
        for user, queries in oracle.things(rows).items()
    }
    expected = oracle.rounds(built, 3, noise.WHOLE, [(last.pre_threshold, last.threshold)])
    assert {row["query"] for row in released(release)} == expected


@pytest.mark.parametrize("method", [qv.Zealous, qv.DpSet])
def test_by_default_a_user_counts_for_what_they_repeated_most(silent, method):
    """Each user tries something of their own first, and comes back to what all of them want."""
    rows = rows_of_users([[f"own{u}", "cat", "cat"] for u in range(40)])
    log = qv.read_log(table(rows))
    given = {"max_queries_per_user": 1, "epsilon": 2, "delta": 0.01}
    by_default, first = (method(**given, **keep).anonymize(log) for keep in ({}, {"keep": "first"}))
    assert {row["query"] for row in released(by_default)} == {"cat"}
    assert released(first) == []


def sums(work: Workspace, sql: str) -> dict[str, int]:
    found = work.fetch(f"SELECT q.query AS query, s.n AS n FROM ({sql}) AS s JOIN queries q ON q.query_id = s.query_id")
    return dict(zip(found["query"].to_pylist(), found["n"].to_pylist(), strict=True))


@settings(max_examples=examples(15))
@given(USERS, st.lists(QUERIES, min_size=1, max_size=8), st.integers(1, 4), st.sampled_from(["first", "frequent"]))
def test_one_user_more_changes_d_counts_by_one_and_weights_by_a_unit(users, more, d, keep):
    found = []
    for everybody in (users, [*users, more]):
        log = qv.read_log(table(rows_of_users(everybody)))
        given_ = bound(PAIRS, ["query_id"], d, keep)
        with log.workspace() as work:
            weights = sums(work, weighed(work, given_, ["query_id"], d, 1))
            found.append((sums(work, counted(given_, ["query_id"], 1)), weights))
    (counts, weights), (more_counts, more_weights) = found
    changed = [more_counts[query] - counts.get(query, 0) for query in more_counts]
    assert set(changed) <= {0, 1}
    assert sum(changed) <= d
    assert sum((more_weights[query] - weights.get(query, 0)) ** 2 for query in more_weights) <= noise.WHOLE**2


def test_a_random_choice_gives_every_query_its_turn_and_never_more_than_d():
    log = qv.read_log(table(rows_of_users([["a", "b", "c", "d"]] * 200)))
    key = ["query_id"]
    with log.workspace() as work:
        found, again = (
            sums(work, counted(bound(random_keys(log, work, PAIRS, key), key, 2, "random"), key, 1)) for _ in range(2)
        )
    assert sum(found.values()) == 400
    assert all(50 < n < 150 for n in found.values())  # 100 +- 7 each
    assert again != found


@pytest.mark.parametrize("scale", [0.7, 5.0, 40.0])
@pytest.mark.parametrize("d", [1, 20])
@pytest.mark.parametrize("first", [1, 3])
def test_the_threshold_of_laplace_noise_is_the_least_one(scale, d, first):
    delta = 1e-5
    threshold = noise.laplace_threshold(d, scale, delta, first)
    tails = [oracle.laplace_tail(scale, k - first) for k in (threshold, threshold - 1)]
    cost = [1 - (1 - tail) ** d for tail in tails]
    assert cost[0] <= delta * (1 + 1e-6)
    assert cost[1] > delta or threshold == first + 1
    assert noise.laplace_delta(d, scale, threshold, first) == pytest.approx(cost[0], rel=1e-6)
    step = NoisyStep(of="queries", noise="laplace", d=d, scale=scale, pre_threshold=first, threshold=threshold)
    assert spent((step,), 1.0) == pytest.approx((d / scale, cost[0]), rel=1e-6)


@pytest.mark.parametrize("d", [1, 7, 100])
@pytest.mark.parametrize("first", [1, 40])
def test_the_threshold_of_gaussian_noise_covers_the_worst_number_of_queries(d, first, monkeypatch):
    monkeypatch.setattr(noise, "WHOLE", 100)  # so small that all tails can be summed up
    delta, scale = 1e-4, 250.0
    threshold = noise.gaussian_threshold(d, scale, delta, first)
    worst = max(
        1 - (1 - oracle.gaussian_tail(scale, threshold - (first - 1) - math.isqrt(100**2 // n))) ** n
        for n in range(1, d + 1)
    )
    assert 0.95 * delta < worst <= delta
    step = NoisyStep(
        of="queries", noise="gaussian", d=d, scale=scale, weight=100, pre_threshold=first, threshold=threshold
    )
    rho = 100**2 / (2 * scale**2)
    assert spent((step,), 1.0)[1] - spent(
        (step.model_copy(update={"of": "counts", "threshold": None, "d": 100**2, "weight": None}),), 1.0
    )[1] == pytest.approx(worst, rel=0.05)
    assert rho == pytest.approx(0.08)


def test_opendp_accounts_alike():
    dp = noise.opendp()
    domain = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
    metric = dp.l01inf_distance(dp.absolute_distance(T="i64"))
    # OpenDP releases what is above its threshold, we what reaches ours.
    made = dp.m.make_laplace_threshold(domain, metric, scale=20.0, threshold=199)
    epsilon, delta = made.map((20, 20, 1))
    step = NoisyStep(of="queries", noise="laplace", d=20, scale=20.0, pre_threshold=1, threshold=200)
    assert spent((step,), 1.0) == pytest.approx((epsilon, delta), rel=1e-6)
    for scale in (2.0, 5.0, 20.0):
        gauss = dp.m.make_gaussian(dp.atom_domain(T="i64"), dp.absolute_distance(T=float), scale=scale)
        theirs = dp.c.make_zCDP_to_approxDP(gauss).map(1.0).delta(1.0)
        ours = spent((NoisyStep(of="counts", noise="gaussian", d=1, scale=scale),), 1.0)[1]
        assert ours == pytest.approx(theirs, rel=1e-2)


METHODS = [
    qv.Zealous(),
    qv.Zealous(max_queries_per_user=3, epsilon=0.3, delta=1e-9, clicks=True, min_users=1),
    qv.Zealous(max_queries_per_user=5, threshold=60, scale=7.5, clicks=True),
    qv.DpSet(),
    qv.DpSet(max_queries_per_user=1, rounds=1, epsilon=4),
    qv.DpSet(max_queries_per_user=100, epsilon=0.2, delta=1e-10, rounds=5, ngrams=2, counts=True),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_steps_are_worth_the_promise_and_hardly_less(method):
    claim = method.claim
    epsilon, delta = spent(claim.steps, claim.epsilon)
    assert epsilon == pytest.approx(claim.epsilon)
    assert 0.8 * claim.delta < delta <= claim.delta * (1 + 1e-9)


def test_opendp_draws_noise_of_the_stated_scale():
    zeros = np.zeros(20_000, np.int64)
    assert np.abs(noise.laplace(zeros, 9.0)).mean() == pytest.approx(9, rel=0.05)
    assert noise.gaussian(zeros, 9.0).std() == pytest.approx(9, rel=0.05)
    assert (noise.laplace(zeros, 9.0) != noise.laplace(zeros, 9.0)).any()


SHARED = table(
    [
        Row(f"u{u}", query, f"2006-03-01 10:00:{i:02}", 1, f"http://{query}.com", None, None)
        for u in range(60)
        for i, query in enumerate(["cat", "dog", "sea", f"own{u}"])
        if u < 40 or query != "sea"
    ]
)


@pytest.fixture(scope="module")
def shared():
    return qv.read_log(SHARED)


@pytest.mark.parametrize(
    "method",
    [
        qv.Zealous(max_queries_per_user=3, epsilon=5, delta=1e-3, clicks=True),
        qv.Zealous(max_queries_per_user=3, threshold=20, scale=1, keep="random", min_users=1),
        qv.DpSet(max_queries_per_user=3, epsilon=5, delta=1e-3, counts=True),
        qv.DpSet(max_queries_per_user=3, epsilon=5, delta=1e-3, keep="random", ngrams=1),
    ],
    ids=str,
)
def test_releases_are_saved_loaded_and_verified(shared, method, tmp_path):
    method.anonymize(shared, seed=3).save(tmp_path / "r", allow_empty=True)
    loaded = qv.Release.load(tmp_path / "r")
    assert qv.verify(tmp_path / "r", shared).holds
    assert {row["query"] for row in released(loaded)} <= {"cat", "dog", "sea"}
    # Nothing exact is published about the log.
    assert loaded.manifest.bands == ()
    assert (loaded.manifest.input_counts.users, loaded.manifest.input_counts.rows) == (None, 0)
    report = (tmp_path / "r" / "report.md").read_text("utf-8")
    assert "not published" in report
    assert "differentially private" in report
    assert "Accounting" in report


def test_what_is_released_is_what_many_users_issued(shared):
    release = qv.Zealous(max_queries_per_user=3, threshold=20, scale=0.1, clicks=True).anonymize(shared)
    rows = {(row["query"], row["url"]): row["count"] for row in released(release)}
    assert rows == {
        (query, url): n
        for query, n in {"cat": 60, "dog": 60, "sea": 40}.items()
        for url in (None, f"http://{query}.com")
    }
    counts = release.manifest.counts
    assert (counts.rows, counts.queries, counts.clicks, counts.events, counts.users) == (6, 3, 3, 160, None)
    with pytest.raises(QueryveilError, match="so there is no user map"):
        list(release.user_map())


def forged(release: qv.Release, **changes) -> qv.Release:
    """The release with another claim, table or parameters."""
    manifest, rows = release.manifest, changes.pop("rows", None)
    if "claim" in changes:
        claims = [
            claim.model_copy(update=changes["claim"]) if isinstance(claim, DifferentialPrivacy) else claim
            for claim in manifest.claims
        ]
        manifest = manifest.model_copy(update={"claims": tuple(claims)})
    if "parameters" in changes:
        manifest = manifest.model_copy(update={"parameters": {**manifest.parameters, **changes["parameters"]}})
    if rows is None:
        return replace(release, manifest=manifest)
    made = pa.Table.from_pylist(rows, release.schema)
    return replace(release, manifest=manifest, batches=lambda: iter(made.to_batches()))


def test_forgeries_are_refuted(shared):
    release = qv.Zealous(max_queries_per_user=3, threshold=20, scale=1.0, clicks=True).anonymize(shared)
    rows, claim = released(release), release.manifest.claims[-1]
    step = claim.steps[0]

    def found(**changes) -> list[str]:
        other = forged(release, **changes)
        # The verifier stops at claims that do not fit the parameters; each claim must see what is wrong by itself.
        verdicts = (*qv.verify(other, shared).verdicts, *check_claims(other, shared))
        return [verdict.counterexample or verdict.claim for verdict in verdicts if not verdict.holds]

    assert found() == []
    lowered = (step.model_copy(update={"threshold": 10}), *claim.steps[1:])
    assert any("delta" in text for text in found(claim={"steps": lowered}))
    assert any("epsilon 6" in text for text in found(claim={"epsilon": 1.0}))
    assert any("does not claim" in text for text in found(parameters={"scale": 2.0}))
    assert any("does not claim" in text for text in found(parameters={"max_queries_per_user": 1}))
    assert any("does not claim" in text for text in found(parameters={"clicks": False}))
    assert any("below the threshold" in text for text in found(rows=[{**rows[0], "count": 19}, *rows[1:]]))
    assert any("below the threshold" in text for text in found(rows=[{**rows[0], "count": None}, *rows[1:]]))
    assert any("stands twice" in text for text in found(rows=[rows[0], *rows]))
    assert any("nobody made" in text for text in found(rows=[{**rows[0], "url": "http://x.com"}, *rows[1:]]))
    assert any("the query 'own'" in text for text in found(rows=[{**rows[0], "query": "own"}, *rows[1:]]))
    assert any("1 users" in text for text in found(rows=[{**rows[0], "query": "own3", "url": None}, *rows[1:]]))
    assert any("it says" in text for text in found(rows=[*rows[:-1], {**rows[-1], "count": 500}]))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: qv.Zealous(epsilon=0), "The 'epsilon' parameter of Zealous must be a number above 0. Got 0 instead."),
        (
            lambda: qv.Counts(epsilon=1e-20).claim,
            "Noise of scale 2e+21 is larger than any log; choose a larger 'epsilon'.",
        ),
        (lambda: qv.DpSet(epsilon=-1), "The 'epsilon' parameter of DpSet must be a number above 0. Got -1 instead."),
        (lambda: qv.DpSet(epsilon=float("inf")), "parameter of DpSet must be a number above 0. Got inf instead."),
        (lambda: qv.DpSet(delta=1), "The 'delta' parameter of DpSet must be a number in (0, 1). Got 1 instead."),
        (
            lambda: qv.Zealous(max_queries_per_user=0),
            "The 'max_queries_per_user' parameter of Zealous must be an integer in [1, 10000]. Got 0 instead.",
        ),
        (
            lambda: qv.DpSet(max_queries_per_user=0),
            "The 'max_queries_per_user' parameter of DpSet must be an integer in [1, 10000]. Got 0 instead.",
        ),
        (
            lambda: qv.DpSet(keep="last"),
            "The 'keep' parameter of DpSet must be one of frequent, first, random. Got 'last'",
        ),
        (lambda: qv.Zealous(epsilon=1, scale=2), "leave 'epsilon' or 'scale' out."),
        (lambda: qv.Zealous(delta=1e-6, threshold=9, scale=2), "leave 'delta' or 'threshold' out."),
        (lambda: qv.Zealous(threshold=9), "Zealous needs 'scale' with 'threshold'"),
        (lambda: qv.Zealous(scale=9), "Zealous needs 'threshold' with 'scale'"),
        (
            lambda: qv.Zealous(threshold=5, scale=1, min_users=5),
            "must be above 'min_users', which is 5. Got 5 instead.",
        ),
    ],
)
def test_bad_parameters_are_told_in_a_sentence(make, sentence):
    with pytest.raises(QueryveilError) as error:
        make()
    assert sentence in str(error.value)


def test_a_delta_that_means_nothing_is_warned_of(shared):
    (warning,) = qv.DpSet(max_queries_per_user=3, delta=0.02).warnings(shared)
    assert "Warning: delta is 0.02, which is not below 1 / users" in warning
    assert (
        qv.DpSet(max_queries_per_user=3, delta=0.01).warnings(shared)
        == qv.Zealous(max_queries_per_user=3, delta=0.01).warnings(shared)
        == []
    )
    # It is exact, so it is not published.
    assert not any("Warning" in note for note in qv.DpSet(max_queries_per_user=3, delta=0.02).anonymize(shared).notes)


def test_clicks_need_a_log_with_clicks():
    log = qv.read_log(table(rows_of_users([["cat"]])))
    with pytest.raises(QueryveilError, match="the log has no clicks; leave it off"):
        qv.Zealous(clicks=True).anonymize(log)


@pytest.mark.parametrize("method", [qv.Zealous(), qv.DpSet()], ids=str)
def test_without_opendp_it_says_how_to_get_it(shared, method, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(QueryveilError, match=r"get it with: pip install 'queryveil\[dp\]'"):
        method.anonymize(shared)


@pytest.mark.parametrize(
    "method", [qv.Zealous(max_queries_per_user=3, epsilon=5, delta=1e-3), qv.DpSet(max_queries_per_user=3)], ids=str
)
def test_explain_tells_what_noise_decided(shared, method):
    found = qv.explain(method.anonymize(shared), shared, "own7")
    assert not found.released
    assert any("noise" in reason.rule for reason in found.reasons)


@on_both_engines_weekly
def test_both_engines_release_the_same_where_noise_is_next_to_nothing(read):
    log = read(SHARED)
    zealous = qv.Zealous(max_queries_per_user=3, threshold=20, scale=0.02, clicks=True).anonymize(log)
    assert {(row["query"], row["url"]): row["count"] for row in released(zealous)} == {
        (query, url): n
        for query, n in {"cat": 60, "dog": 60, "sea": 40}.items()
        for url in (None, f"http://{query}.com")
    }
    assert qv.verify(zealous, log).holds
    union = qv.DpSet(max_queries_per_user=3, epsilon=1e4, keep="random", ngrams=1, counts=True).anonymize(log)
    assert {row["query"] for row in released(union)} == {"cat", "dog", "sea"}
    assert qv.verify(union, log).holds


@settings(max_examples=examples(20))
@given(
    USERS,
    st.sampled_from(
        [
            qv.Zealous(max_queries_per_user=2, threshold=3, scale=1),
            qv.DpSet(max_queries_per_user=2, epsilon=3, delta=0.3, counts=True),
        ]
    ),
)
def test_the_verifier_accepts_every_release(users, method):
    log = qv.read_log(table(rows_of_users(users)))
    verdicts = qv.verify(method.anonymize(log), log).verdicts
    assert all(verdict.holds for verdict in verdicts), verdicts


def test_a_promise_that_the_table_gives_the_lie_is_refuted(shared):
    """The noise of one table does not show, but what no such noise could have released does."""
    release = qv.DpSet(max_queries_per_user=3, epsilon=20, delta=0.01).anonymize(shared)
    rows, claim = released(release), release.manifest.claims[-1]
    assert len(rows) >= 3

    def found(**changes) -> str:
        verdicts = qv.verify(forged(release, **changes), shared).verdicts
        return " ".join(verdict.counterexample or verdict.claim for verdict in verdicts if not verdict.holds)

    assert found() == ""
    louder = tuple(
        step.model_copy(update={"scale": 1000 * step.scale, "threshold": 100_000 * step.threshold})
        for step in claim.steps
    )
    asked = {"epsilon": 0.1}
    assert "could not be released by such noise" in found(claim={**asked, "steps": louder}, parameters=asked)
    laplace = (NoisyStep(of="queries", noise="laplace", d=3, scale=1e9, threshold=10**12),)
    assert "does not claim" in found(claim={**asked, "steps": laplace}, parameters=asked)
    assert "does not claim" in found(parameters={"rounds": 1})
    assert "does not claim" in found(parameters={"keep": "xxx"})
    assert "does not claim" in found(parameters={"more": 1})
    zealous = qv.Zealous(max_queries_per_user=3, threshold=20, scale=0.5).anonymize(shared)
    fewer = tuple(step.model_copy(update={"d": 1}) for step in zealous.manifest.claims[-1].steps)
    posed = forged(zealous, claim={"steps": fewer, "epsilon": 2.0}, parameters={"max_queries_per_user": 1})
    wrong = [v.counterexample for v in qv.verify(posed, shared).verdicts if not v.holds]
    assert any("could not be released by such noise" in text for text in wrong)


def test_numbers_out_of_all_bounds_are_refused():
    for wrong in ({"weight": 10**400}, {"scale": 1e-300}, {"d": 10**12}, {"threshold": 0}):
        with pytest.raises(ValueError, match="validation error"):
            NoisyStep.model_validate({"of": "queries", "noise": "gaussian", "d": 1, "scale": 1.0, **wrong})


@pytest.mark.parametrize("posed", [{"of": "counts"}, {"noise": "laplace"}], ids=str)
def test_a_weight_where_things_are_counted_is_refused(posed):
    """A user gives 1 to each; a smaller weight would make the noise look better than it is."""
    with pytest.raises(ValueError, match="counts and Laplace noise have no weight"):
        NoisyStep.model_validate({"of": "queries", "noise": "gaussian", "d": 9, "scale": 1.0, "weight": 1, **posed})


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (qv.Zealous(), "reached the threshold of 325 users, each counting for at most 20 queries;"),
        (
            qv.DpSet(max_queries_per_user=4),
            "reached the threshold, which is the weight of 27 users of one query or 53 users of 4 queries;",
        ),
    ],
    ids=["zealous", "dp-set"],
)
def test_an_empty_release_says_which_threshold_was_not_reached(method, sentence, tmp_path):
    few = qv.read_log(table(rows_of_users([["cat"]] * 4)))
    with pytest.raises(QueryveilError) as error:
        method.anonymize(few).save(tmp_path / "r")
    assert "The release would be empty: with its noise no query " + sentence in str(error.value)
    advice = "use a log of more users, a larger 'epsilon', or a smaller 'max_queries_per_user', or write"
    assert advice in str(error.value)


def test_the_steps_are_computed_once():
    method = qv.DpSet(max_queries_per_user=3)
    assert method.steps is method.steps
    assert method == qv.DpSet(max_queries_per_user=3)
    assert method.parameters() == qv.DpSet(max_queries_per_user=3).parameters()


@given(st.floats(1e-8, 100), st.integers(1, 300), st.floats(1e-9, 0.1))
def test_a_threshold_is_never_too_low(epsilon, d, delta):
    budget = qv.Zealous(epsilon=epsilon, max_queries_per_user=d, delta=delta).budget
    assert spent(qv.Zealous(epsilon=epsilon, max_queries_per_user=d, delta=delta).claim.steps, epsilon)[1] <= delta * (
        1 + 1e-9
    )
    assert budget.threshold > 2


@pytest.mark.parametrize(
    "method",
    [
        qv.Zealous(max_queries_per_user=1, epsilon=20, delta=0.01),
        qv.DpSet(max_queries_per_user=1, epsilon=20, delta=0.01),
    ],
)
def test_of_scrubbing_nothing_exact_is_told(method):
    log = qv.read_log(table(rows_of_users([["cat"]] * 40 + [["jane@example.com cat"]] * 3)))
    release = method.anonymize(qv.scrub(log, "mask"))
    assert release.manifest.scrub.how == "mask"
    assert release.manifest.scrub.hits == {}
    assert "jane" not in release.manifest.model_dump_json()
    assert scrub_rows(release.manifest) == [("any of them", *["not published"] * 4)]
    assert qv.verify(release, log).holds
    with pytest.raises(QueryveilError, match="Rare terms were scrubbed, which depends on all users together"):
        method.anonymize(qv.scrub(log, "mask", rare_term_users=5))


def test_a_hashed_release_of_a_scrubbed_log_is_verified():
    """Of so many tokens some look like telephone numbers."""
    many = [[f"word{i} other{i}" for i in range(u, 3000, 60)] for u in range(60)]
    log = qv.read_log(table(rows_of_users(many + [["jane@example.com cat"]] * 3)))
    release = qv.Hash().anonymize(qv.scrub(log, "mask"))
    assert release.manifest.scrub.total.events == 3
    assert qv.verify(release, log).holds
