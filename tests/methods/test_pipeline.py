"""Pipelines: what each step chooses from what earlier ones left, and what all of them promise of the final table."""

from collections import Counter, defaultdict
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import AffineUsers, AllUsers, RecordQueries, RecordUsers
from queryveil.claims.affine_tables import check_by_tables
from queryveil.claims.limits import limits_of
from queryveil.errors import QueryveilError
from queryveil.methods.affinity.concepts import mine_concepts
from queryveil.methods.affinity.graph_tables import AffinityParams, find_affine
from queryveil.methods.pipeline import Pipeline
from queryveil.release.bands import bands
from queryveil.release.manifest import counts_of
from tests.claims.test_affine import CLAIMS, LOGS, looked, some_of
from tests.methods.test_rules import FILTERS, allowed
from tests.oracles import removal
from tests.oracles.log import Row, good, users_per_query
from tests.oracles.pipeline import protected
from tests.strategies import examples, table

EMAIL = "jo@example.org"
WORDS = st.lists(st.sampled_from(["cell", "phone", "case", "red", "the", "x1", EMAIL]), min_size=1, max_size=3)
FULL_ROWS = st.builds(
    Row,
    user=st.sampled_from("abcdefgh"),
    query=WORDS.map(" ".join),
    time=st.sampled_from(["2006-03-01 10:00:00", "2006-03-09 23:59:59", "2006-04-01 00:00:00"]),
    rank=st.none() | st.integers(1, 2),
    url=st.none() | st.sampled_from(["http://a.com/1", "http://b.org/2", "http://c.net/3"]),
    device=st.sampled_from(["phone", "desk", None]),
    country=st.sampled_from(["NL", "US"]),
).map(lambda row: row if row.url else row._replace(rank=None))
FULL_LOGS = st.lists(FULL_ROWS, min_size=20, max_size=60)
K = st.integers(2, 3)
EQUALITY = st.builds(qv.Equality, k=K)
AFFINITY = st.builds(
    qv.Affinity,
    k=K,
    theta=st.sampled_from([0.5, 0.8]),
    concept_min_users=st.sampled_from([2, 4]),
    min_term_users=st.sampled_from([None, 1]),
    min_query_users=st.sampled_from([1, 1, 2]),
    max_new_users=st.sampled_from([None, None, 1]),
)
RULES = st.sampled_from(
    [{"min_query_users": 2}, {"min_term_users": 2}, {"max_terms": 2}, {"no_digits": True, "max_characters": 12}]
)
ROW_RULES = st.sampled_from([{}, {"min_row_users": 2}, {"time": "day", "min_metadata_users": 2}, {"link": "user"}])
FIRST = st.one_of(EQUALITY, AFFINITY, RULES.map(lambda given: qv.Rules(**given)), st.just(qv.Poblete(k=1, sites=1)))
COLUMNS = st.sampled_from(
    [
        {"min_click_users": 2},
        {"time": "week", "link": "session"},
        {"min_row_users": 2, "min_click_users": 2, "min_metadata_users": 2},
        {"min_row_users": 2, "link": "user"},
    ]
)
LAST = st.one_of(
    COLUMNS.map(lambda given: qv.Columns(**given)),
    EQUALITY,
    AFFINITY,
    st.tuples(RULES, ROW_RULES).map(lambda both: qv.Rules(**both[0], **both[1])),
    st.builds(qv.Odp, k=K, compact=st.booleans()),
    st.builds(qv.Mdav, k=K, distance=st.just("strings")),
)
SCRUB = st.sampled_from([[], [], [qv.Scrub(how="mask")], [qv.Scrub(how="remove", rare_term_users=2)]])
STEPS = st.tuples(SCRUB, st.lists(FIRST, min_size=1, max_size=2), LAST).map(lambda all: [*all[0], *all[1], all[2]])


def rows_of(release):
    return pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()


def queries_of(release):
    return {row["query"] for row in rows_of(release)}


def made(steps, log, **options):
    """A release by steps that make sense, of a log that has enough users for them."""
    try:
        return Pipeline(steps).anonymize(log, **options)
    except QueryveilError as error:
        sentence = str(error)
        reasons = (
            "so nothing could be released",
            "Nothing is left of the log",
            "no click of the log",
            "put poblete last",
        )
        assert any(reason in sentence for reason in reasons), sentence
    return assume(False)


@settings(max_examples=examples(12))
@given(FULL_LOGS, STEPS)
def test_the_verifier_accepts_every_pipeline_and_what_steps_promise_is_still_promised(rows, steps):
    log = qv.read_log(table(rows))
    release = made(steps, log, seed=1)
    found = qv.verify(release, log)
    assert found.holds, found
    assert qv.verify(release, log, certificate=qv.Certificate(1), rebuild=False).holds
    base = steps[0].scrubbed(log) if isinstance(steps[0], qv.Scrub) else log
    *first, last = [step for step in steps if not isinstance(step, qv.Scrub)]
    claims = list(release.manifest.claims)
    for place, step in enumerate(first):
        later = [*first[place + 1 :], last]
        whole = all(isinstance(after, qv.Columns) and after.min_row_users is None for after in later)
        for claim in step.claims(base):
            form = claim if whole or not isinstance(claim, AffineUsers) else claim.model_copy(update={"drawn": True})
            assert form in claims
    for claim in last.anonymize(base).manifest.claims if last.alone else ():
        if isinstance(claim, RecordQueries):
            claim = claim.model_copy(update={"part": True})
        assert claim in claims or isinstance(claim, AllUsers)
    assert not any(isinstance(claim, AllUsers) for claim in claims)
    records = isinstance(last, qv.Odp | qv.Mdav)
    assert any(isinstance(claim, RecordUsers) for claim in claims) == records
    assert release.manifest.input_counts == counts_of(base)
    assert [(band.queries, band.events) for band in release.manifest.bands] == [
        (band.queries, band.events) for band in bands(base.frequencies())
    ]
    kept = Counter(row["query"] for row in {(row["event"], row["query"]): row for row in rows_of(release)}.values())
    assert sum(band.kept_queries for band in release.manifest.bands) == len(kept)


NOT_OF_WORDS = {"kind", "drawn", "similarity", "theta_meaning", "theta_clicks", "tables"}
"""What the oracle, which compares by words, does not take of a claim."""


@settings(max_examples=examples(15))
@given(LOGS, CLAIMS, st.data())
def test_a_drawn_release_holds_if_its_queries_are_among_those_that_protect_each_other(rows, claim, data):
    log = qv.read_log(table(rows))
    claim = claim.model_copy(update={"drawn": True})
    released, queries = some_of(rows, data)
    given = claim.model_dump(exclude=NOT_OF_WORDS)
    best = protected(rows, set(queries), **given)
    released = data.draw(st.sampled_from([released, released & best, best]))
    lie = data.draw(st.lists(st.integers(-3, len(queries) + 2), max_size=len(queries)))
    plain = looked(log, claim.look, released)
    assert (plain.counterexample is None) == (released <= best)
    if plain.counterexample is not None:
        first = min(released - best)
        assert plain.counterexample == f"the query '{first}' has too few users behind it"
    for named in (lie, range(len(queries)), [log.find(query) for query in best]):
        tables = {"protected": pa.table({"query_id": pa.array(list(named), pa.int64())})}
        assert looked(log, claim.look, released, qv.Certificate(0, tables)).counterexample == plain.counterexample


@settings(max_examples=examples(4))
@given(LOGS, CLAIMS, st.data())
def test_tables_find_the_same_of_a_drawn_release(rows, claim, data):
    log = qv.read_log(table(rows))
    claim = claim.model_copy(update={"drawn": True})
    released, _ = some_of(rows, data)
    by_arrays, by_tables = (looked(log, look, released) for look in (claim.look, partial(check_by_tables, claim)))
    assert by_tables.counterexample == by_arrays.counterexample


def selected(method, log, within):
    """What a method chooses from some queries."""
    with log.workspace() as work:
        ids = pa.table({"query_id": pa.array([log.find(query) for query in sorted(within)], log.id_type)})
        chosen = method.select(log, work, work.read(ids, "within")).queries
        found = work.fetch(f"SELECT query_id FROM {chosen}")["query_id"]
    texts = log.query_text.take(found).to_pylist()
    assert len(texts) == len(set(texts))
    return set(texts)


@settings(max_examples=examples(15))
@given(LOGS, CLAIMS, st.data())
def test_affinity_chooses_from_a_set_of_queries_with_the_users_and_weights_of_the_log(rows, claim, data):
    log = qv.read_log(table(rows))
    assume(log.n_users >= claim.users)
    within, _ = some_of(rows, data)
    given = claim.model_dump(exclude=NOT_OF_WORDS)
    expected = protected(rows, within, **given)
    assert selected(qv.Affinity(k=given.pop("users"), **given), log, within) == expected


@settings(max_examples=examples(4))
@given(LOGS, CLAIMS, st.data())
def test_affinity_by_tables_chooses_the_same_from_a_set_of_queries(rows, claim, data):
    log = qv.read_log(table(rows))
    within, _ = some_of(rows, data)
    given = claim.model_dump(exclude=NOT_OF_WORDS)
    params = AffinityParams(claim.users, claim.theta, claim.min_term_users, claim.min_query_users, claim.max_new_users)
    words = claim.min_term_users if claim.vectors == "words" else None
    with log.workspace() as work:
        ids = pa.table({"query_id": pa.array([log.find(query) for query in sorted(within)], log.id_type)})
        concepts = mine_concepts(log, claim.concept_min_users, word_min_users=words)
        kept = find_affine(log, work, concepts, params, work.read(ids, "within"))
        found = work.fetch(f"SELECT q.query AS query FROM {kept} a JOIN queries q ON q.query_id = a.query_id")
    assert set(found["query"].to_pylist()) == protected(rows, within, **given)


@settings(max_examples=examples(8))
@given(FULL_LOGS, K, RULES, st.data())
def test_other_methods_choose_from_a_set_of_queries_with_the_users_of_the_log(rows, k, rules, data):
    log = qv.read_log(table(rows))
    assume(log.n_users >= 3)
    within, _ = some_of(rows, data)
    users = users_per_query(rows)
    assert selected(qv.Equality(k=k), log, within) == {query for query in within if users[query] >= k}
    assert selected(qv.Rules(**rules), log, within) == within & allowed(rows, dict.fromkeys(FILTERS) | rules)
    clicked = defaultdict(set)
    for row in good(rows):
        if row.url and row.query in within:
            clicked[log.find(row.query)].add(row.url)
    if any(row.url for row in good(rows)):
        chosen = {log.find(query) for query in selected(qv.Poblete(k=1, sites=1), log, within)}
        assert chosen == removal.disconnected(clicked)


SCRUB_LAST = "Scrub promises nothing, so it cannot be the last step; add one that protects queries or users."
NO_STEP = "A step is a method, or a table that names one with a table of its parameters."
REFUSED = {
    "no step": ([], "A pipeline has at least two steps; for one alone, use the method itself."),
    "one step": ([qv.Equality()], "A pipeline has at least two steps; for one alone, use the method itself."),
    "scrub last": ([qv.Equality(), qv.Scrub()], SCRUB_LAST),
    "scrub later": (
        [qv.Equality(), qv.Scrub(), qv.Odp()],
        "Scrub must be the first step, because it changes the queries that all others count.",
    ),
    "a pipeline": (
        [Pipeline([qv.Equality(), qv.Odp()]), qv.Equality()],
        "A pipeline cannot be a step of another; list all steps in one.",
    ),
    "columns first": (
        [qv.Scrub(), qv.Columns(time="day")],
        "Columns drops no query, so it needs a step before it that protects queries, such as affinity.",
    ),
    "columns before others": (
        [qv.Equality(), qv.Columns(time="day"), qv.Odp()],
        "columns decides what is published beside queries, so no step can follow it; put it last, or leave rules about"
        " rows, times and metadata to a last step columns.",
    ),
    "rules about rows": (
        [qv.Rules(min_row_users=2), qv.Odp()],
        "rules decides what is published beside queries, so no step can follow it; put it last, or leave rules about"
        " rows, times and metadata to a last step columns.",
    ),
    "links": (
        [qv.Equality(link="user"), qv.Odp()],
        "Only the last step can link events, and equality is not the last; link by the last step.",
    ),
    "records": ([qv.Odp(), qv.Equality()], "equality cannot follow odp, which makes records: every step needs events."),
    "counts": (
        [qv.DpSet(), qv.Equality()],
        "equality cannot follow dp-set, which makes counts: every step needs events.",
    ),
    "items": (
        [qv.Affinity(), qv.Wngen()],
        "wngen cannot follow affinity: it publishes terms of a taxonomy instead of queries, so nothing is left of what"
        " affinity promises about queries.",
    ),
    "tokens": (
        [qv.Equality(), qv.Hash()],
        "hash cannot follow equality: it publishes tokens instead of words, so nothing is left of what equality"
        " promises about queries.",
    ),
    "private": (
        [qv.Equality(), qv.Zealous()],
        "zealous cannot follow equality: it is differentially private only if nothing before it chooses by what users"
        " did, as equality does.",
    ),
    "clicks": (
        [qv.Poblete(), qv.Affinity()],
        "affinity publishes clicks, and what poblete promises is lost with them; put poblete last.",
    ),
    "clicks beside": (
        [qv.Poblete(), qv.Equality(), qv.Columns(min_click_users=2)],
        "columns publishes clicks, and what poblete promises is lost with them; put poblete last.",
    ),
    "an unknown step": (
        [{"method": "equalty", "parameters": {}}, {"method": "odp"}],
        "There is no step 'equalty'; did you mean 'equality'?",
    ),
    "no method": ([{"name": "odp"}, qv.Odp()], NO_STEP),
    "a name": (["equality", "odp"], NO_STEP),
    "no parameters": ([{"method": "equality", "parameters": 5}, qv.Odp()], NO_STEP),
    "a bad parameter": (
        [{"method": "equality", "parameters": {"k": 1}}, qv.Odp()],
        "The 'k' parameter of Equality must be an integer of at least 2. Got 1 instead.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_steps_that_make_no_sense_are_refused_with_the_reason(name):
    steps, sentence = REFUSED[name]
    with pytest.raises(QueryveilError) as refused:
        Pipeline(steps)
    assert str(refused.value).startswith(sentence)


def test_nothing_left_for_the_last_step_is_one_sentence():
    log = qv.read_log(table([Row(f"u{i}", f"query {i}") for i in range(5)]))
    with pytest.raises(QueryveilError, match="Nothing is left of the log after the first steps of the pipeline"):
        Pipeline([qv.Equality(k=2), qv.Odp(k=2)]).anonymize(log)
    assert rows_of(Pipeline([qv.Equality(k=2), qv.Columns(link="user")]).anonymize(log)) == []
    with pytest.raises(QueryveilError, match="'k' parameter of Equality is 9, but the log has only 5 users"):
        Pipeline([qv.Equality(k=9), qv.Odp(k=2)]).anonymize(log)


PEOPLE = [
    *(Row(f"u{i}", "red phone") for i in range(6)),
    *(Row(f"u{i}", "red phone case") for i in range(3)),
    *(Row(f"u{i}", "tea") for i in range(2)),
    Row("u0", "jo@example.org"),
    Row("u1", "nobody else"),
    *(Row(f"w{i}", "a very long query of many words") for i in range(6)),
]


def test_explain_names_the_step_that_dropped_a_query(tmp_path):
    log = qv.read_log(table(PEOPLE))
    steps = [qv.Scrub(), qv.Rules(max_terms=4), qv.Equality(k=2), qv.Affinity(k=5, theta=0.8, min_term_users=2)]
    Pipeline([*steps, qv.Columns(link="user")]).anonymize(log).save(tmp_path / "r")
    dropped = {}
    for query in {row.query for row in PEOPLE}:
        found = qv.explain(tmp_path / "r", log, query)
        failed = {reason.step for reason in found.reasons if reason.passed is False}
        assert len(failed) == (not found.released)
        dropped[query] = next(iter(failed), "released")
        if failed and failed != {None}:
            assert found.reasons[-1].step in failed, "no later step is asked about it"
    assert dropped == {
        "red phone": "released",
        "red phone case": "released",
        "tea": "affinity",
        "jo@example.org": "scrub",
        "nobody else": "equality",
        "a very long query of many words": "rules",
    }


@settings(max_examples=examples(6))
@given(FULL_LOGS, st.lists(FIRST, min_size=1, max_size=2), LAST)
def test_explain_agrees_with_the_release(rows, first, last):
    log = qv.read_log(table(rows))
    release = made([*first, last], log)
    if isinstance(last, qv.Odp | qv.Mdav):
        return
    released = queries_of(release)
    for query in {row.query for row in good(rows)}:
        reasons = qv.explain(release, log, query).reasons
        assert all(reason.passed is not False for reason in reasons) == (query in released), reasons


RECORDS = [qv.Scrub(how="mask"), qv.Affinity(k=2, theta=0.5), qv.Odp(k=3)]
LINKED = [qv.Scrub(), qv.Equality(k=2), qv.Columns(min_click_users=2, time="day", link="user")]


def mapped(release):
    return {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}


def searches(log):
    """What each user searched for."""
    found = log.engine.fetch(
        'SELECT u."user" AS name, q.query AS query FROM events e JOIN users u ON u.user_id = e.user_id'
        " JOIN queries q ON q.query_id = e.query_id"
    )
    bags = defaultdict(Counter)
    for row in found.to_pylist():
        bags[row["name"]][row["query"]] += 1
    return bags


def records(release):
    bags = defaultdict(Counter)
    for user, _, query in {(row["user"], row["event"], row["query"]) for row in rows_of(release)}:
        bags[user][query] += 1
    return bags


def test_the_user_map_of_linked_events_names_the_users_of_the_whole_log(small_world):
    release = Pipeline(LINKED).anonymize(small_world.log, seed=1)
    names, found, issued = mapped(release), records(release), searches(LINKED[0].scrubbed(small_world.log))
    kept = queries_of(release)
    expected = {user: Counter({q: n for q, n in bag.items() if q in kept}) for user, bag in issued.items()}
    assert {user: found[record] for user, record in names.items()} == {u: bag for u, bag in expected.items() if bag}


def test_the_user_map_of_records_names_the_users_of_the_whole_log(small_world):
    pipeline = Pipeline(RECORDS)
    release = pipeline.anonymize(small_world.log, seed=1)
    names, found, issued = mapped(release), records(release), searches(RECORDS[0].scrubbed(small_world.log))
    alone = qv.Affinity(k=2, theta=0.5).anonymize(RECORDS[0].scrubbed(small_world.log))
    chosen = queries_of(alone)
    assert set(names) == {user for user, bag in issued.items() if chosen & set(bag)}
    assert set(names.values()) == set(found)
    groups = defaultdict(list)
    for user, record in names.items():
        groups[frozenset(found[record].items())].append(user)
    assert len(groups) > 1
    for bag, users in groups.items():
        together = sum((issued[user] for user in users), Counter())
        assert len(users) >= 3
        assert Counter(dict(bag)) <= together, "a record holds queries of the users whose it is"


@pytest.mark.parametrize("steps", [RECORDS, LINKED], ids=["records", "linked"])
def test_measures_and_attacks_know_who_is_who(small_world, tmp_path, steps):
    """In this session as with the map that was written for a later one."""
    log = small_world.log
    release = Pipeline(steps).anonymize(log, seed=1)
    release.save(tmp_path / "r")
    release.save_user_map(tmp_path / "map.csv")
    later = qv.Release.load(tmp_path / "r", log=log, user_map=tmp_path / "map.csv")
    now, then = (qv.evaluate(one, log).to_arrow().to_pylist() for one in (release, later))
    assert now == then
    now, then = (qv.attack(one, log, seed=1).as_dict() for one in (release, later))
    assert now == then
    assert any(finding["attack"] == "record_linkage" for finding in now["findings"])


@pytest.mark.parametrize("steps", [RECORDS, LINKED], ids=["records", "linked"])
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_saved_release_is_verified_and_made_again(small_world, tmp_path, steps, format):
    log = small_world.log
    release = Pipeline(steps).anonymize(log, seed=2**127)
    release.save(tmp_path / "r", format=format)
    release.save_certificate(tmp_path / "r.certificate")
    without = qv.verify(tmp_path / "r", log)
    assert without.holds, without
    found = qv.verify(tmp_path / "r", log, certificate=qv.load_certificate(tmp_path / "r.certificate"))
    assert found.holds, found
    assert any(verdict.claim.endswith("byte for byte.") for verdict in found.verdicts)
    Pipeline(steps).anonymize(log, seed=2**127).save(tmp_path / "again", format=format)
    for file in (tmp_path / "r").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_a_recipe_or_manifest_gives_the_same_pipeline():
    pipeline = Pipeline([qv.Scrub(how="mask"), qv.Affinity(k=4), qv.Columns(min_click_users=3, metadata=("country",))])
    assert Pipeline(**pipeline.parameters()) == pipeline
    assert Pipeline(pipeline.parameters()["steps"]).parameters() == pipeline.parameters()


def test_limits_say_what_later_steps_leave_and_nothing_twice():
    limits = limits_of(["affinity", "odp"], drawn=True)
    assert not any("one session" in limit for limit in limits), "records are not linked events"
    assert sum(limit.startswith("Accounts controlled by one person") for limit in limits) == 1
    assert any("may be left out of the release" in limit for limit in limits)
    assert any("its day or its metadata" in limit for limit in limits_of(["affinity", "columns"]))
    assert any("one session" in limit for limit in limits_of(["scrub", "affinity"]))


def test_a_list_before_records_is_kept(tmp_path):
    rows = [Row(f"u{i}", query) for i in range(6) for query in ("cat food", "dog food", "john doe cat", "tea pot")]
    (tmp_path / "block.txt").write_text("john doe\n")
    log = qv.read_log(table(rows))
    for distance in ("semantic", "strings"):
        steps = [qv.Rules(block_list=tmp_path / "block.txt"), qv.Mdav(k=2, distance=distance)]
        release = qv.Pipeline(steps).anonymize(log, seed=1)
        assert "john doe cat" not in release.to_arrow()["query"].to_pylist()
        assert qv.verify(release, log).holds


def test_privacy_is_not_claimed_of_a_log_without_its_rare_words(monkeypatch):
    log = qv.read_log(table([Row(f"u{i}", "cat food") for i in range(30)]))
    with pytest.raises(qv.QueryveilError, match="differentially private only if nothing before it"):
        qv.Pipeline([qv.Scrub(rare_term_users=2), qv.DpSet(epsilon=1, delta=0.1)])
    scrubbed = qv.scrub(log, rare_term_users=2)
    monkeypatch.setattr("queryveil.methods.private.dp_set.prepare", lambda log: None)
    release = qv.DpSet(epsilon=50, delta=0.1, max_queries_per_user=1).anonymize(scrubbed)
    found = qv.verify(release, log)
    assert not found.holds
    assert found.verdicts[-1].claim.startswith("The manifest claims what its method")


@pytest.mark.parametrize("steps", [5, "affinity", {"method": "affinity"}])
def test_what_is_no_list_of_steps_is_one_sentence(steps):
    with pytest.raises(qv.QueryveilError, match="must be a list of methods"):
        qv.Pipeline(steps)
