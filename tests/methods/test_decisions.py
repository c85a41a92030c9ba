"""What a reviewer blocks is never released, what they allow passes rules about texts, and the verifier checks both."""

import json
import os
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.scrubbing import DEFAULT_KINDS, ENGLISH, _mask_but, finds
from queryveil.scrubbing.decisions import Decision, Decisions, read_decisions, write_decisions
from queryveil.text.words import without_phrases
from queryveil.verification.verifier import _allowed
from tests.both import on_both_engines_weekly
from tests.fuzz.forging import mend, put_rows, read
from tests.oracles import decisions as oracle
from tests.strategies import examples

WORDS = st.sampled_from(["tea", "cup", "x1", "me@x.org", "7", "(tea)", "été", "!!", "Tea"])
TEXTS = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
DECISIONS = st.lists(
    st.builds(Decision, kind=st.sampled_from(["block", "allow"]), of=st.sampled_from(["query", "word"]), text=TEXTS),
    max_size=5,
)
ROWS = st.lists(st.tuples(st.sampled_from("abcd"), TEXTS), min_size=4, max_size=30)
PEOPLE = [
    (user, query)
    for user in "abcde"
    for query in ("tea", "tea pot", "secret tea", "route 66", "windows 95", "mp3 player", "jane@example.com pizza",
                  "joe@example.com pizza", "cup")
]  # fmt: skip
REVIEWED = [
    Decision(kind="block", of="query", text="Tea  Pot", comment="a family", by="a reviewer", at="2026-04-30T12:00:00"),
    Decision(kind="block", of="word", text="secret"),
    Decision(kind="allow", of="query", text="route 66"),
    Decision(kind="allow", of="word", text="mp3"),
    Decision(kind="allow", of="query", text="jane@example.com pizza"),
]


def log_of(rows):
    users, queries = zip(*rows, strict=True)
    return qv.read_log(pa.table({"user": users, "query": queries}))


def queries_of(release):
    return set(release.to_arrow()["query"].to_pylist())


@pytest.fixture
def decided(tmp_path):
    write_decisions(REVIEWED, tmp_path / "decisions.jsonl")
    return tmp_path / "decisions.jsonl"


def wrong(verification):
    return [f"{one.claim} {one.counterexample}" for one in verification.verdicts if not one.holds]


@settings(max_examples=examples(15))
@given(ROWS, DECISIONS)
def test_whatever_is_decided_is_done_and_the_verifier_accepts_it(rows, decisions):
    log = log_of(rows)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "decisions.jsonl"
        write_decisions(decisions, file)
        release = qv.Rules(no_digits=True, max_terms=2, decisions=file).anonymize(log, seed=1)
        known = set(log.query_text.to_pylist())
        rules = (lambda text: not any(c.isdigit() for c in text), lambda text: len(oracle.words(text)) <= 2)
        expected = {
            query
            for query in known
            if not oracle.blocked(query, decisions)
            and all(passes(query) or oracle.lifts(query, decisions, passes) for passes in rules)
        }
        assert queries_of(release) == expected
        release.save(Path(folder) / "r", allow_empty=True)
        assert qv.verify(Path(folder) / "r", log, lists=[file], certificate=release.certificate).holds
        # Without the decisions the rest of it would be there, and the claims say so.
        plain = qv.Rules(max_characters=10_000).anonymize(log, seed=1)
        forged = replace(plain, manifest=plain.manifest.model_copy(update={"claims": release.manifest.claims}))
        verdicts = qv.release.check_claims(replace(forged, lists={file.name: file}), log)
        if known == expected:
            assert all(one.holds for one in verdicts)
        else:
            assert not all(one.holds for one in verdicts)


@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_without_phrases_are_what_is_left_of_them(texts, phrases):
    decisions = [Decision(kind="allow", of="word", text=phrase) for phrase in phrases]
    normal = [oracle.normal_form(text) for text in texts]
    found = without_phrases(pa.array(normal, pa.large_string()), Decisions.of(decisions).allowed_words).to_pylist()
    for text, rest in zip(normal, found, strict=True):
        assert oracle.lifts(text, decisions, lambda left, rest=rest: left == rest)


def test_decisions_are_a_step_before_any_that_follows_rules(decided, tmp_path):
    log = log_of(PEOPLE)
    for last in (qv.Equality(k=2), qv.Affinity(k=2), qv.Odp(k=2)):
        steps = [qv.Scrub(decisions=decided), qv.Rules(no_digits=True, decisions=decided), last]
        release = qv.Pipeline(steps).anonymize(log, seed=1)
        assert queries_of(release) == {"tea", "cup", "route 66", "mp3 player", "jane@example.com pizza"}
        release.save(tmp_path / last.name)
        assert qv.verify(tmp_path / last.name, log, lists=[decided]).holds
        found = qv.verify(tmp_path / last.name, log, lists=[decided], certificate=release.certificate)
        assert found.holds
        assert not found.unchecked
        manifest = read(tmp_path / last.name)
        assert manifest.lists["decisions.jsonl"].entries == 5
        assert manifest.scrub.decisions == "decisions.jsonl"


@on_both_engines_weekly
def test_lists_are_applied_and_checked_on_both_engines(read, decided, tmp_path):
    users, queries = zip(*PEOPLE, strict=True)
    log = read(pa.table({"user": users, "query": queries}))
    (tmp_path / "block.txt").write_text("cup\n")
    rules = qv.Rules(no_digits=True, decisions=decided, block_list=tmp_path / "block.txt")
    release = qv.Pipeline([qv.Scrub(decisions=decided), rules, qv.Equality(k=2)]).anonymize(log, seed=1)
    assert queries_of(release) == {"tea", "route 66", "mp3 player", "jane@example.com pizza"}
    assert qv.verify(release, log).holds


def test_a_mask_spares_what_is_allowed(decided):
    log = log_of(PEOPLE)
    release = qv.Pipeline([qv.Scrub(how="mask", decisions=decided), qv.Equality(k=2)]).anonymize(log)
    assert {"jane@example.com pizza", "<email> pizza"} < queries_of(release)
    rare = qv.Pipeline([qv.Scrub(how="mask", rare_term_users=6, decisions=decided), qv.Equality(k=2)])
    with pytest.raises(qv.QueryveilError, match="Nothing is left"):
        rare.anonymize(log)  # that few users typed a word is not a matter of opinion


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        (["smith"], False),
        (["john", "smith", "chicago", "il"], False),
        (["john smith chicago", "chicago il"], False),
        (["john smith chicago il now"], False),
        (["john smith chicago il"], True),
    ],
)
def test_an_allowed_word_lifts_only_what_is_found_inside_it(words, stays):
    query = "john smith chicago il"
    decided = Decisions.of([Decision(kind="allow", of="word", text=text) for text in words])
    assert (_mask_but(pa.array([query]), DEFAULT_KINDS, ENGLISH, decided).hits[0] == 0) == stays
    assert _allowed(finds(query), set(words)) == stays  # as the verifier sees it
    assert _allowed(finds("tea jane@example.com cup"), {"jane@example.com cup"})
    assert not _allowed(finds("tea jane@example.com cup"), {"example.com", "tea", "cup"})


def test_a_release_with_more_than_the_allowed_word_is_refused(tmp_path):
    file = tmp_path / "decisions.jsonl"
    log = log_of([(user, text) for user in "abc" for text in ("john smith chicago il", "jane@example.com tea", "tea")])
    write_decisions([Decision(kind="allow", of="word", text=text) for text in ("smith", "jane@example.com")], file)
    release = qv.Pipeline([qv.Scrub(decisions=file), qv.Equality(k=2)]).anonymize(log, seed=1)
    assert queries_of(release) == {"tea", "jane@example.com tea"}
    release.save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", log, lists=[file]).holds
    forged(tmp_path / "r", log, "john smith chicago il")
    assert any("but what a reviewer allowed" in one for one in wrong(qv.verify(tmp_path / "r", log, lists=[file])))


def test_the_last_decision_about_a_text_counts(tmp_path):
    file = tmp_path / "decisions.jsonl"
    first, second = (
        {"of": "query", "text": text, "kind": kind} for text, kind in (("tea", "block"), (" TEA", "allow"))
    )
    write_decisions([Decision(**first), Decision(**second)], file)
    assert "tea" in queries_of(qv.Rules(decisions=file).anonymize(log_of(PEOPLE)))
    write_decisions([Decision(**second), Decision(**first)], file, overwrite=True)
    assert "tea" not in queries_of(qv.Rules(decisions=file).anonymize(log_of(PEOPLE)))


def test_no_promise_about_users_is_lifted(decided):
    rows = [*PEOPLE, ("a", "mp3 zebra")]
    write_decisions([*REVIEWED, Decision(kind="allow", of="query", text="mp3 zebra")], decided, overwrite=True)
    for rule in ({"min_query_users": 2}, {"min_term_users": 2}, {"min_fragment_users": 2}):
        assert "mp3 zebra" not in queries_of(qv.Rules(**rule, decisions=decided).anonymize(log_of(rows)))


def forged(folder, log, query):
    """The same release with one row more, everything else mended."""
    table = pq.read_table(folder / "log.parquet")
    put_rows(folder, log, [*table.to_pylist(), {"event": len(table) + 1, "query": query}], table.schema)


@pytest.mark.parametrize(
    ("query", "claim"),
    [
        ("tea pot", "No released query is one that a reviewer blocked"),
        ("secret tea", "No released query is one that a reviewer blocked"),
        ("windows 95", "or so does the rest of it without what a reviewer allowed"),
        ("joe@example.com pizza", "of the kinds that were scrubbed, but what a reviewer allowed"),
    ],
)
def test_a_forged_release_with_a_blocked_query_or_one_that_is_not_allowed_is_refused(decided, tmp_path, query, claim):
    log = log_of(PEOPLE)
    steps = [qv.Scrub(decisions=decided), qv.Rules(no_digits=True, decisions=decided), qv.Equality(k=2)]
    qv.Pipeline(steps).anonymize(log, seed=1).save(tmp_path / "r")
    forged(tmp_path / "r", log, query)
    found = wrong(qv.verify(tmp_path / "r", log, lists=[decided]))
    assert any(claim in one for one in found), found


@pytest.mark.parametrize(("use", "text", "query"), [("block_list", "pot\n", "tea pot"), ("allow_list", "tea\n", "cup")])
def test_block_and_allow_lists_are_checked_too(tmp_path, use, text, query):
    log, file = log_of(PEOPLE), tmp_path / "list.txt"
    file.write_text(text)
    release = qv.Rules(**{use: file}).anonymize(log, seed=1)
    release.save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", log, lists=[file], certificate=release.certificate).holds
    forged(tmp_path / "r", log, query)
    assert any(f"the query '{query}'" in one for one in wrong(qv.verify(tmp_path / "r", log, lists=[file])))


def test_a_list_that_is_missing_another_or_changed_is_told_in_a_sentence(decided, tmp_path):
    log = log_of(PEOPLE)
    release = qv.Rules(decisions=decided).anonymize(log, seed=1)
    release.save(tmp_path / "r")
    with pytest.raises(qv.QueryveilError, match=r"a list that is not part of it; give lists=\['decisions.jsonl'\]"):
        qv.verify(tmp_path / "r", log)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "decisions.jsonl"
    write_decisions(REVIEWED[1:], other)
    assert wrong(qv.verify(tmp_path / "r", log, lists=[other])) == [
        "The lists are those that the release was made with. 'decisions.jsonl' has 4 entries, and had 5"
    ]
    write_decisions([Decision(kind="block", of="query", text="tea"), *REVIEWED[1:]], other, overwrite=True)
    assert any("is blocked" in one for one in wrong(qv.verify(tmp_path / "r", log, lists=[other])))
    found = wrong(qv.verify(tmp_path / "r", log, lists=[other], certificate=release.certificate))
    assert found == [
        "The lists are those that the release was made with. 'decisions.jsonl' has other entries than it had"
    ]


@pytest.mark.parametrize(
    ("use", "content", "weaker", "idle"),
    [
        ("block_list", "pot\nzzz\n", "zzz\nyyy\n", "pot\nyyy\n"),
        ("allow_list", "tea\nzzz\n", "tea\ncup\n", "tea\nyyy\n"),
    ],
)
def test_another_list_as_long_is_refuted_if_it_makes_another_release_or_by_the_certificate(
    tmp_path, use, content, weaker, idle
):
    log, file = log_of(PEOPLE), tmp_path / "list.txt"
    file.write_text(content)
    release = qv.Rules(**{use: file}).anonymize(log, seed=1)
    release.save(tmp_path / "r")
    file.write_text(weaker)  # every claim holds with it, and still it is another list
    assert wrong(qv.verify(tmp_path / "r", log, lists=[file])) == [
        "Made again from the log and the parameters, the release is the same, except for its pseudonyms."
        " 'counts' differs"
    ]
    file.write_text(idle)  # what it does to this log is the same
    found = qv.verify(tmp_path / "r", log, lists=[file])
    assert found.holds
    assert "compared by their length; with the certificate, also by their entries" in {
        one.how for one in found.verdicts
    }
    assert wrong(qv.verify(tmp_path / "r", log, lists=[file], certificate=release.certificate)) == [
        "The lists are those that the release was made with. 'list.txt' has other entries than it had"
    ]


def test_a_manifest_that_hides_its_lists_is_refused(decided, tmp_path):
    log = log_of(PEOPLE)
    qv.Pipeline([qv.Scrub(decisions=decided), qv.Equality(k=2)]).anonymize(log, seed=1).save(tmp_path / "r")
    honest = read(tmp_path / "r")
    mend(tmp_path / "r", honest.model_copy(update={"lists": {}}))
    assert "does not say how long the lists are" in wrong(qv.verify(tmp_path / "r", log, lists=[decided]))[0]
    bare = {"steps": [{"method": "scrub", "parameters": {}}, honest.parameters["steps"][1]]}
    bare["steps"][0]["parameters"] = {
        name: value for name, value in honest.parameters["steps"][0]["parameters"].items() if name != "decisions"
    }
    mend(tmp_path / "r", honest.model_copy(update={"parameters": bare}))
    assert wrong(qv.verify(tmp_path / "r", log, lists=[decided]))


def test_the_release_holds_nothing_of_the_list(decided, tmp_path):
    log = log_of(PEOPLE)
    manifests = []
    for seed in (1, 2):
        qv.Rules(decisions=decided).anonymize(log, seed=seed).save(tmp_path / f"r{seed}")
        for file in (tmp_path / f"r{seed}").iterdir():
            assert not any(text in file.read_bytes() for text in (b"secret", b"tea pot", b"a family", b'reviewer"'))
            assert file.name != decided.name
        manifests.append(read(tmp_path / f"r{seed}"))
    digests = {manifest.lists["decisions.jsonl"].digest for manifest in manifests}
    assert len(digests) == 2, "a digest without a key would confirm a guess"
    assert qv.Equality(k=2).anonymize(log).manifest.lists == {}
    assert "lists" not in json.loads(qv.Equality(k=2).anonymize(log).manifest.model_dump_json())


def test_explain_says_what_was_decided(decided, tmp_path):
    log = log_of(PEOPLE)
    qv.Rules(no_digits=True, decisions=decided).anonymize(log, seed=1).save(tmp_path / "r")
    release = qv.Release.load(tmp_path / "r", lists=[decided])

    def found(query):
        return {reason.rule: (reason.passed, reason.found) for reason in qv.explain(release, log, query).reasons}

    assert found("tea pot")["not blocked by a decision"] == (False, "it is")
    assert found("secret tea")["no word blocked by a decision"] == (False, "it has one")
    assert found("mp3 player")["no digit"] == (True, "it has one, and a decision allows that")
    assert found("windows 95")["no digit"] == (False, "it has one")


def test_a_file_of_decisions_is_private_and_read_as_it_was_written(decided):
    assert stat.S_IMODE(os.stat(decided).st_mode) == 0o600
    assert list(read_decisions(decided)) == REVIEWED
    odd = [Decision(kind="block", of="query", text="a\u2028b\x85c"), Decision(kind="allow", of="word", text='"\\')]
    write_decisions(odd, decided, overwrite=True)
    assert list(read_decisions(decided)) == odd
    with pytest.raises(qv.QueryveilError, match="exists already"):
        write_decisions(odd, decided)


@pytest.mark.parametrize(
    "line",
    [
        "tea",
        "[]",
        '{"kind": "block", "of": "query"}',
        '{"kind": "ban", "of": "query", "text": "private text"}',
        '{"kind": "block", "of": "query", "text": "  "}',
        '{"kind": "block", "of": "query", "text": "tea", "at": "yesterday"}',
        '{"kind": "block", "of": "query", "text": "tea", "more": 1}',
        '{"kind": "block", "of": "query", "text": "\\ud800"}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_decision_is_named_and_not_shown(decided, line):
    decided.write_text('\n{"kind": "block", "of": "word", "text": "tea"}\n' + line)
    with pytest.raises(qv.QueryveilError, match=r"Line 3 of the decisions .* is no decision") as error:
        qv.Rules(decisions=decided).anonymize(log_of(PEOPLE))
    assert "private" not in str(error.value)


def test_what_decisions_cannot_be_used_for_is_refused(decided, tmp_path):
    (tmp_path / "x").mkdir()
    write_decisions([], tmp_path / "x" / "decisions.jsonl")
    steps = [qv.Scrub(decisions=decided), qv.Rules(decisions=tmp_path / "x" / "decisions.jsonl"), qv.Equality(k=2)]
    with pytest.raises(qv.QueryveilError, match=r"Two lists are called decisions\.jsonl"):
        qv.Pipeline(steps).anonymize(log_of(PEOPLE))
    with pytest.raises(qv.QueryveilError, match="differentially private only if nothing before it depends on"):
        qv.Pipeline([qv.Scrub(decisions=decided), qv.Zealous(epsilon=1, delta=1e-6)])
    with pytest.raises(qv.QueryveilError, match="a backslash or a control character"):
        qv.Scrub(decisions=tmp_path / "a\ab")


def test_a_list_that_was_left_out_is_not_passed_over(tmp_path):
    log = qv.read_log(pa.table({"user": list("abc"), "query": ["tea"] * 3}))
    qv.Equality(k=2).anonymize(log, seed=1).save(tmp_path / "r")
    write_decisions([Decision(kind="block", of="query", text="tea")], tmp_path / "decisions.jsonl")
    with pytest.raises(qv.QueryveilError, match=r"was made without a list 'decisions\.jsonl', so it may hold"):
        qv.verify(tmp_path / "r", log, lists=[tmp_path / "decisions.jsonl"])


def test_a_blocked_query_is_left_out_and_not_masked(tmp_path):
    queries = ["jane.doe@example.com pizza", "call 212 555 0199 now", "call 212 555 0188 now", "tea"]
    rows = {"user": [f"u{n}" for n in range(3) for _ in queries], "query": queries * 3}
    log, file = qv.read_log(pa.table(rows)), tmp_path / "decisions.jsonl"
    blocked = [("query", "Jane.Doe@example.com pizza"), ("word", "0199")]
    write_decisions([Decision(kind="block", of=of, text=text) for of, text in blocked], file)
    steps = [qv.Scrub(how="mask", decisions=file), qv.Rules(min_query_users=2, decisions=file)]
    release = qv.Pipeline(steps).anonymize(log, seed=1)
    assert set(release.to_arrow()["query"].to_pylist()) == {"tea", "call <phone> now"}
    assert qv.verify(release, log).holds
    with pytest.raises(qv.QueryveilError, match="give scrub the decisions as well, with 'decisions'"):
        qv.Pipeline([qv.Scrub(how="mask"), steps[1]])
