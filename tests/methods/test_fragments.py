import datetime
import stat
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import FragmentUsers
from queryveil.claims.fragment_list import read_fragments
from tests.both import on_both_engines_weekly
from tests.oracles import fragments as oracle
from tests.oracles.log import Row, good
from tests.strategies import LOGS, examples, table

RULE = st.fixed_dictionaries(
    {"min_fragment_users": st.integers(2, 3), "fragment_words": st.integers(1, 3), "noun_phrases": st.booleans()}
)


def log_of(*rows: tuple[str, str]) -> qv.QueryLog:
    return qv.read_log(table([Row(*row) for row in rows]).select(["user", "query"]))


def queries_of(release: qv.Release) -> set[str]:
    return set(release.to_arrow()["query"].to_pylist())


PEOPLE = (
    ("a", "cheap john doe"),
    ("b", "john doe"),
    ("c", "john doe pics"),
    ("a", "cheap pics"),
    ("d", "cheap pics"),
    ("e", "doe john"),
    ("f", "..."),
)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ({"fragment_words": 1}, {"cheap john doe", "john doe", "john doe pics", "cheap pics", "doe john"}),
        ({}, {"john doe", "cheap pics"}),
        ({"fragment_words": 1, "noun_phrases": True}, {"john doe", "cheap pics"}),
    ],
    ids=["words", "pairs", "noun phrases"],
)
def test_a_name_is_one_fragment_if_pairs_or_noun_phrases_count(rule, kept):
    log = log_of(*PEOPLE)
    release = qv.Rules(min_fragment_users=2, **rule).anonymize(log)
    assert queries_of(release) == kept
    assert qv.verify(release, log).holds


def test_a_long_noun_phrase_needs_users_of_all_of_it():
    log = log_of(("a", "red tea pot"), ("b", "red tea pot"), ("a", "red tea pot lid shop"), ("b", "lid shop"))
    release = qv.Rules(min_fragment_users=2, fragment_words=1, noun_phrases=True).anonymize(log)
    assert queries_of(release) == {"red tea pot", "lid shop"}
    assert qv.verify(release, log).holds


@settings(max_examples=examples(12))
@given(LOGS, RULE, st.none() | LOGS)
def test_releases_the_queries_whose_fragments_all_have_enough_users(rows, rule, longer):
    counted = rows if longer is None else longer
    if not good(rows) or len({row.user for row in good(counted)}) < 3:
        return
    log = qv.read_log(table(rows))
    other = None if longer is None else qv.read_log(table(longer))
    release = qv.Rules(**rule).anonymize(log, counted_on=other, seed=5)
    assert queries_of(release) == oracle.allowed(rows, rule, longer)
    verification = qv.verify(release, log)
    assert verification.holds, verification


@given(LOGS, RULE, st.sets(st.sampled_from(["cat", "dog", "sea cat", "cat dog", "x1 cat dog", "nobody"])))
@settings(max_examples=examples(6))
def test_fragments_on_the_list_stay_allowed(tmp_path_factory, rows, rule, stays):
    if len({row.user for row in good(rows)}) < 3:
        return
    path = tmp_path_factory.mktemp("list") / "stays.tsv"
    path.write_text("".join(f"{fragment}\t2026-04-30\n" for fragment in stays))
    log = qv.read_log(table(rows))
    release = qv.Rules(**rule, fragment_list=path).anonymize(log, seed=5)
    assert queries_of(release) == oracle.allowed(rows, rule, stays=stays)
    assert qv.verify(release, log).holds


TWINS = pa.table(
    {
        "user": ["a", "b", "c", "a", "b", "c", "d"],
        "query": [
            "new york hotel",
            "hotel new york",
            "cheap new york",
            "cheap tea",
            "tea pot",
            "cheap tea",
            "hotel new",
        ],
    }
)
LONGER = pa.table(
    {
        "user": ["a", "b", "x", "y", "x", "y"],
        "query": ["new york hotel", "new york hotel", "cheap new", "cheap new york", "tea", "tea"],
    }
)


@on_both_engines_weekly
def test_counts_on_another_log_on_both_engines(read):
    log, longer = read(TWINS), read(LONGER)
    method = qv.Rules(min_fragment_users=2, fragment_words=1, noun_phrases=True)
    release = method.anonymize(log, counted_on=longer, seed=1)
    assert queries_of(release) == {"new york hotel", "hotel new"}
    assert [verdict.counterexample for verdict in qv.verify(release, log).verdicts if not verdict.holds] == []


@on_both_engines_weekly
def test_counts_on_the_log_itself_on_both_engines(read, tmp_path):
    log = read(TWINS)
    (tmp_path / "list.tsv").write_text("pot\t2026-04-30\ntea pot\t2026-04-30\n")
    for listed, kept in ((None, set()), (tmp_path / "list.tsv", {"tea pot"})):
        method = qv.Rules(min_fragment_users=2, fragment_words=2, noun_phrases=True, fragment_list=listed)
        release = method.anonymize(log, seed=1)
        assert queries_of(release) == {"cheap tea", "hotel new"} | kept
        assert qv.verify(release, log).holds


def forged(release: qv.Release, *queries: str) -> qv.Release:
    """The release with other queries, as if they had passed."""
    batch = pa.RecordBatch.from_pydict(
        {"event": list(range(1, len(queries) + 1)), "query": sorted(queries)}, schema=release.schema
    )
    return replace(release, batches=lambda: iter([batch]))


@pytest.mark.parametrize(
    ("words", "phrases", "query", "found"),
    [
        (1, False, "doe john", None),
        (2, False, "doe john", "the fragment 'doe john' of 'doe john' was used by 1 users"),
        (1, True, "john doe pics", "the fragment 'john doe pics' of 'john doe pics' was used by 1 users"),
        (1, False, "...", "the query '...' has no word"),
        (1, False, "nobody", "the query 'nobody' was issued by nobody"),
    ],
)
def test_the_check_names_the_first_rare_fragment(words, phrases, query, found):
    log = log_of(*PEOPLE)
    release = qv.Rules(min_fragment_users=2, fragment_words=words, noun_phrases=phrases).anonymize(log)
    verdicts = {verdict.claim: verdict for verdict in qv.verify(forged(release, query), log).verdicts}
    claim = next(claim for claim in release.manifest.claims if isinstance(claim, FragmentUsers))
    assert verdicts[claim.statement].counterexample == found


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> tuple:
    """A log, a longer one, and the folder of a release whose users were counted there."""
    log, longer = log_of(*PEOPLE), log_of(*PEOPLE, ("x", "doe john"), ("y", "cheap john doe"))
    release = qv.Rules(min_fragment_users=2).anonymize(log, counted_on=longer, seed=7)
    folder = tmp_path_factory.mktemp("elsewhere") / "r"
    release.save(folder)
    return log, longer, folder, release


def test_a_release_says_where_users_were_counted(elsewhere):
    log, longer, folder, release = elsewhere
    assert queries_of(release) == {"john doe", "cheap pics", "doe john", "cheap john doe"}
    stated = release.manifest.counted_on
    assert stated.fingerprint == longer.keyed_fingerprint(7)
    assert stated.counts.users == 8
    assert (
        "Users of fragments were counted on another log, of 8 users and 9 events" in (folder / "report.md").read_text()
    )
    assert qv.verify(folder, log, counted_on=longer).holds
    assert qv.verify(folder, log.counted_on(longer), certificate=release.certificate).holds


def test_both_logs_have_the_same_language():
    german, english = (
        qv.read_log(pa.table({"user": ["a", "b"], "query": ["tee kanne"] * 2}), language=id) for id in ("de", "en")
    )
    assert german.counted_on(german).language.ids == ("de",)
    with pytest.raises(qv.QueryveilError, match="read in de and the one to count on in en, which have other words"):
        german.counted_on(english)


def test_the_other_log_must_be_given_and_be_the_right_one(elsewhere):
    log, _, folder, release = elsewhere
    with pytest.raises(qv.QueryveilError, match="counted on another log than the one released; give that log as well"):
        qv.verify(folder, log)
    with pytest.raises(qv.QueryveilError, match=r"give that log as well, with log.counted_on\(other\)"):
        qv.explain(folder, log, "doe john")
    assert not qv.verify(folder, log, counted_on=log).holds
    same_size = log_of(*PEOPLE, ("x", "doe john"), ("z", "cheap john doe"))
    assert qv.verify(folder, log, counted_on=same_size).holds  # as with the log itself, its size is all that is known
    wrong = qv.verify(folder, log, counted_on=same_size, certificate=release.certificate)
    assert "the fingerprints differ" in [verdict.counterexample for verdict in wrong.verdicts]


def test_a_manifest_cannot_hide_or_invent_the_other_log(elsewhere):
    log, longer, _, release = elsewhere
    hidden = replace(release, log=log, manifest=release.manifest.model_copy(update={"counted_on": None}))
    assert not qv.verify(hidden, log).holds
    plain = qv.Rules(min_query_users=2).anonymize(log, seed=7)
    invented = plain.manifest.model_copy(update={"counted_on": release.manifest.counted_on})
    verification = qv.verify(replace(plain, manifest=invented), log, counted_on=longer)
    assert verification.verdicts[-1].counterexample == "no rule counts users of fragments"


def test_only_the_rule_about_fragments_counts_elsewhere(elsewhere):
    log, longer, *_ = elsewhere
    with pytest.raises(qv.QueryveilError, match="Only the rule 'min_fragment_users' counts on another log"):
        qv.Equality(k=2).anonymize(log, counted_on=longer)
    plain = qv.Rules(min_query_users=2).anonymize(log)
    with pytest.raises(qv.QueryveilError, match="counted no users on another log"):
        qv.verify(plain, log, counted_on=longer)
    with pytest.raises(qv.QueryveilError, match="'min_fragment_users' parameter of Rules is 9"):
        qv.Rules(min_fragment_users=9).anonymize(log, counted_on=longer)


def test_a_pipeline_counts_elsewhere_too(elsewhere, tmp_path):
    log, longer, *_ = elsewhere
    rule = qv.Rules(min_fragment_users=2)
    for steps in ([qv.Scrub(how="mask", kinds=["email"]), rule], [rule, qv.Equality(k=2)]):
        release = qv.Pipeline(steps).anonymize(log, counted_on=longer, seed=1)
        folder = tmp_path / "-".join(step.name for step in steps)
        release.save(folder)
        assert qv.verify(folder, log, counted_on=longer, certificate=release.certificate).holds


def test_explain_names_the_rarest_fragment(elsewhere):
    log, longer, folder, _ = elsewhere
    (reason,) = qv.explain(folder, log.counted_on(longer), "john doe pics").reasons
    assert (reason.passed, reason.found) == (False, "1 used 'doe pics', the rarest")
    (reason,) = qv.Rules(min_fragment_users=2).explain(log, log.find("..."))
    assert (reason.passed, reason.found) == (False, "it has no word")


def test_a_list_is_private_sorted_and_keeps_the_first_date(tmp_path):
    log = log_of(*PEOPLE)
    (tmp_path / "old.tsv").write_text("Doe!\t2026-01-31\nold  word\t2025-12-01\n")
    day = datetime.date(2026, 4, 30)
    n = qv.list_fragments(log, tmp_path / "new.tsv", min_users=2, since=day, keep=tmp_path / "old.tsv")
    lines = (tmp_path / "new.tsv").read_text().splitlines()
    assert lines == [
        "cheap\t2026-04-30",
        "cheap pics\t2026-04-30",
        "doe\t2026-01-31",
        "john\t2026-04-30",
        "john doe\t2026-04-30",
        "old word\t2025-12-01",
        "pics\t2026-04-30",
    ]
    assert n == len(lines)
    assert stat.S_IMODE((tmp_path / "new.tsv").stat().st_mode) == 0o600
    with pytest.raises(qv.QueryveilError, match="exists already"):
        qv.list_fragments(log, tmp_path / "new.tsv")
    with pytest.raises(qv.QueryveilError, match="Got 1 and 2 instead"):
        qv.list_fragments(log, tmp_path / "other.tsv", min_users=1)


@pytest.mark.parametrize("line", ["tea", "tea\t", "\t2026-04-30", "tea\t30.4.2026", "tea\t20260430"])
def test_a_list_with_a_bad_line_is_one_sentence(tmp_path, line):
    (tmp_path / "list.tsv").write_text(f"pot\t2026-04-30\n{line}\n")
    with pytest.raises(qv.QueryveilError, match=r"Line 2 of the list .* is not a fragment, a tab and a date"):
        qv.Rules(min_fragment_users=2, fragment_list=tmp_path / "list.tsv").anonymize(log_of(*PEOPLE))


def test_a_list_has_no_date_in_the_future(tmp_path):
    (tmp_path / "list.tsv").write_text("pot\t2026-04-30\ntea\t9999-12-31\n")
    with pytest.raises(qv.QueryveilError, match=r"Line 2 of the list .* has a date in the future; mend it\."):
        read_fragments(tmp_path / "list.tsv")


def test_a_loaded_release_needs_its_list(tmp_path):
    log, path = log_of(*PEOPLE), tmp_path / "list.tsv"
    path.write_text("doe john\t2026-04-30\n")
    release = qv.Rules(min_fragment_users=2, fragment_list=path).anonymize(log)
    assert release.manifest.parameters["fragment_list"] == "list.tsv"
    release.save(tmp_path / "r")
    with pytest.raises(qv.QueryveilError, match=r"give lists=\['list.tsv'\]"):
        qv.verify(tmp_path / "r", log)
    assert qv.verify(tmp_path / "r", log, lists=[path]).holds
    path.write_text("doe\t2026-04-30\n")
    assert not qv.verify(tmp_path / "r", log, lists=[path]).holds


def test_a_list_needs_the_rule():
    with pytest.raises(qv.QueryveilError, match="A list of fragments needs min_fragment_users=50 as well"):
        qv.Rules(min_query_users=2, fragment_list="list.tsv")
