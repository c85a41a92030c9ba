"""A scrubbed log is a log like any other, and a release of it is a release of the original."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.release.manifest import Manifest
from queryveil.release.summary import band_rows, kept_rows, scrub_rows
from queryveil.scrubbing import mask
from queryveil.text import normal_form
from tests.both import on_both_engines_weekly, on_one_machine
from tests.engines.test_engines import rows_of, some_rows
from tests.fuzz.forging import mend, put_rows
from tests.oracles.text import words
from tests.strategies import LOGS, examples, table

PERSONAL = ["jane@example.com tea", "bob@example.com tea", "212-555-0123", "jane doe springfield"]


def with_personal(rows, step=5):
    """The rows with personal data in every `step`-th query."""
    return [row._replace(query=PERSONAL[i // step % 4]) if i % step == 0 else row for i, row in enumerate(rows)]


ROWS = with_personal(some_rows(200))
TABLE = table(ROWS)


def events_of(log) -> list[tuple]:
    """All events with their texts, in any order."""
    joins = "".join(f' LEFT JOIN "extra {name}" x{i} ON x{i}.id = e."{name} id"' for i, name in enumerate(names(log)))
    extras = "".join(f", x{i}.value AS x{i}" for i, _ in enumerate(names(log)))
    found = log.engine.fetch(
        f'SELECT u."user" AS "user", q.query AS query, e.time AS time{extras} FROM events e JOIN users u'
        f" ON u.user_id = e.user_id JOIN queries q ON q.query_id = e.query_id{joins}"
    )
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=str)


def names(log) -> list[str]:
    return sorted(log.stats.extras)


def clicks_of(log) -> list[tuple]:
    found = log.engine.fetch(
        'SELECT u."user" AS "user", q.query AS query, e.time AS time, c.rank AS rank, l.url AS url FROM clicks c'
        " JOIN events e ON e.event_id = c.event_id AND e.user_id = c.user_id AND e.query_id = c.query_id"
        " JOIN users u ON u.user_id = e.user_id JOIN queries q ON q.query_id = e.query_id"
        " LEFT JOIN urls l ON l.url_id = c.url_id"
    )
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=str)


def written_rows(log) -> int:
    """In how many rows a log can be written: one a click, and one an event without any."""
    clicked = Counter(log.clicks["event_id"].to_pylist())
    return sum(max(1, clicked[event]) for event in log.events["event_id"].to_pylist())


def hit(row) -> bool:
    return bool(mask(normal_form(pa.array([row.query]))).hits[0])


@settings(max_examples=examples(15))
@given(LOGS, st.integers(2, 5))
def test_a_log_with_events_removed_is_the_log_of_the_other_rows(rows, step):
    rows = with_personal(rows, step)
    rest = [row for row in rows if not hit(row) and row.query.strip() not in ("", "-")]
    log = qv.read_log(table(rows))
    if not rest:
        with pytest.raises(qv.QueryveilError, match="Nothing is left"):
            qv.scrub(log)
        return
    found, expected = qv.scrub(log), qv.read_log(table(rest))
    assert events_of(found) == events_of(expected)
    assert clicks_of(found) == clicks_of(expected)
    assert found.stats.rows == written_rows(expected)
    for name in ("query_text", "user_text"):
        assert getattr(found, name).equals(getattr(expected, name))
    assert found.tokens.text.equals(expected.tokens.text)
    assert np.array_equal(found.tokens.word, expected.tokens.word)
    for name in ("event_id", "user_id", "query_id", "time"):
        assert found.events[name].equals(expected.events[name])
    assert found.clicks.select(["event_id", "user_id", "query_id"]).equals(
        expected.clicks.select(["event_id", "user_id", "query_id"])
    )


@settings(max_examples=examples(15))
@given(LOGS, st.integers(2, 5))
def test_a_masked_log_has_the_events_under_masked_queries_and_no_clicks_of_these(rows, step):
    rows = with_personal(rows, step)
    log = qv.read_log(table(rows))
    texts = dict(zip(log.query_text.to_pylist(), mask(log.query_text).texts.to_pylist(), strict=True))
    texts = {query: text for query, text in texts.items() if text == query or words(text)}
    expected = [(u, texts[q], *more) for u, q, *more in events_of(log) if q in texts]
    if not expected:
        with pytest.raises(qv.QueryveilError, match="Nothing is left"):
            qv.scrub(log, "mask")
        return
    found = qv.scrub(log, "mask")
    assert events_of(found) == sorted(expected, key=str)
    left_out = found.stats.scrub.left_out
    assert (left_out.queries, left_out.events) == (log.n_queries - len(texts), log.stats.events - len(expected))
    assert clicks_of(found) == [click for click in clicks_of(log) if texts.get(click[1]) == click[1]]
    assert found.events["event_id"].to_pylist() == list(range(len(found.events)))
    order = list(
        zip(
            *(found.events[name].to_numpy(zero_copy_only=False) for name in ("user_id", "time", "query_id")),
            strict=True,
        )
    )
    assert order == sorted(order)
    assert sorted(found.query_text.to_pylist()) == sorted(set(texts.values()))


def test_users_stay_in_the_order_of_the_rows():
    users = [f"u{i * 7 % 10}" for i in range(10)]
    queries = [f"me{i}@example.com" if i % 3 == 1 else f"tea {i}" for i in range(10)]
    found = qv.scrub(qv.read_log(pa.table({"user": users, "query": queries})))
    rest = [user for i, user in enumerate(users) if i % 3 != 1]
    assert found.user_text.take(pa.array(found.first_seen)).to_pylist() == rest


def test_the_log_says_how_it_was_scrubbed_and_stays_the_same_log():
    log = qv.read_log(pa.table({"user": [*"abca"], "query": [*PERSONAL[:3], PERSONAL[0]]}))
    found = qv.scrub(log, "mask", kinds=["phone", "email"])
    assert found.fingerprint == log.fingerprint
    assert log.stats.scrub is None
    done = found.stats.scrub
    assert (done.how, done.kinds, done.rare_term_users) == ("mask", ("email", "phone"), None)
    assert {kind: (hits.queries, hits.events) for kind, hits in done.hits.items()} == {"email": (2, 3), "phone": (1, 1)}
    assert (done.total.queries, done.total.events) == (3, 4)


def test_draws_differ_from_those_of_the_original():
    log = qv.read_log(TABLE)
    assert qv.scrub(log, "mask").secret(1, "user") != log.secret(1, "user")


def test_rare_words_are_counted_over_users():
    users, queries = [*"aaabbc"], ["red tea", "red tea", "blue", "red blue", "version 8.8.8.8", "tea"]
    log = qv.read_log(pa.table({"user": users, "query": queries}))
    found = qv.scrub(log, "mask", kinds=["ip"], rare_term_users=2)
    assert set(found.query_text.to_pylist()) == {"red tea", "blue", "red blue", "tea"}
    removed = qv.scrub(log, kinds=[], rare_term_users=2)
    assert set(removed.query_text.to_pylist()) == {"red tea", "blue", "red blue", "tea"}
    assert removed.stats.scrub.hits["rare"].events == 1


def test_what_masking_a_word_uncovers_is_masked_too():
    log = qv.read_log(pa.table({"user": [*"abc"], "query": ["tea version 8.8.8.8", "tea", "tea"]}))
    found = qv.scrub(log, "mask", kinds=["ip"], rare_term_users=2)
    assert set(found.query_text.to_pylist()) == {"tea <rare> <rare>", "tea"}


RARE = [
    *(("tea shop", f"u{u}") for u in range(6)),
    *((f"tea zzz{u}", f"u{u}") for u in range(6)),
    *((f"qqq{u}", f"u{u}") for u in range(6)),
    ("jane@example.com", "u0"),
    ("jane@example.com shop", "u0"),
    ("one rare email", "u1"),
    ("one rare email", "u2"),
]


def rare_log(read=qv.read_log) -> qv.QueryLog:
    return read(pa.table({"user": [user for _, user in RARE], "query": [query for query, _ in RARE]}))


@on_one_machine
def test_masks_are_no_words_and_queries_of_masks_alone_are_left_out(read):
    found = qv.scrub(rare_log(read), "mask", rare_term_users=2)
    texts = found.engine.fetch("SELECT query FROM queries")["query"].to_pylist()
    assert sorted(texts) == ["<email> shop", "one rare email", "tea <rare>", "tea shop"]
    assert sorted(found.engine.fetch("SELECT word FROM words")["word"].to_pylist()) == [
        "email", "one", "rare", "shop", "tea"
    ]  # fmt: skip
    found.ensure_tables("word_users")
    users = found.engine.fetch(
        "SELECT w.word AS word, u.users AS users FROM words w JOIN word_users u ON u.word_id = w.word_id"
    ).to_pylist()
    assert {row["word"]: row["users"] for row in users} == {"tea": 6, "shop": 6, "one": 2, "rare": 2, "email": 2}
    done = found.stats.scrub
    assert (done.total.queries, done.total.events) == (14, 14)
    assert (done.left_out.queries, done.left_out.events) == (7, 7)
    assert (done.log.queries, done.log.events, done.log.users) == (16, 22, 6)
    found.close()


@on_one_machine
def test_what_is_masked_is_not_counted_as_kept(read, tmp_path):
    log = rare_log(read)
    release = qv.Equality(k=2).anonymize(qv.scrub(log, "mask", rare_term_users=2))
    assert release.manifest.counts.events == 14
    assert [(b.label, b.queries, b.events, b.kept_events) for b in release.manifest.bands if b.queries] == [
        ("2-4 users", 1, 2, 2),
        ("5-9 users", 1, 6, 6),
        ("masked", 2, 7, 6),
    ]
    assert kept_rows(release.manifest)[:4] == [
        ("distinct queries", "16", "2", "12.5 %"),
        ("distinct queries with a mask", "-", "1", "-"),
        ("events", "22", "8", "36.4 %"),
        ("events with a mask", "-", "6", "-"),
    ]
    assert band_rows(release.manifest)[-1] == ("masked", "2", "-", "7", "-")
    assert scrub_rows(release.manifest)[-1] == ("no word left", "7", "7", "-", "-")
    release.save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", log).holds


def test_what_was_removed_is_not_counted_as_kept():
    release = qv.Equality(k=2).anonymize(qv.scrub(rare_log(), rare_term_users=2))
    assert kept_rows(release.manifest)[:2] == [
        ("distinct queries", "16", "2", "12.5 %"),
        ("events", "22", "8", "36.4 %"),
    ]
    assert not any(band.masked for band in release.manifest.bands)


def test_a_mask_that_somebody_typed_counts_as_kept():
    """Only scrubbing makes masked queries; in a log as it is, this is a query like any other."""
    log = qv.read_log(pa.table({"user": [*"ab"], "query": ["<address> tag"] * 2}))
    release = qv.Equality(k=2).anonymize(log)
    assert kept_rows(release.manifest)[1] == ("events", "2", "2", "100.0 %")
    assert log.tokens.text.to_pylist() == ["tag"]


@settings(max_examples=examples(10))
@given(
    LOGS,
    st.sampled_from(
        [
            qv.Equality(k=2),
            qv.Affinity(k=2, concept_min_users=2),
            qv.Rules(min_term_users=2),
            qv.Rules(max_terms=2),
            qv.Mdav(k=2, distance="strings"),
            qv.Odp(k=2),
            qv.Hash(),
        ]
    ),
)
def test_releases_of_logs_without_their_rare_words_verify(rows, method):
    log = qv.read_log(table(with_personal(rows, 3)))
    try:
        release = method.anonymize(qv.scrub(log, "mask", rare_term_users=2), seed=1)
    except qv.QueryveilError:  # too few users, or nothing is left
        return
    assert [verdict for verdict in qv.verify(release, log).verdicts if not verdict.holds] == []
    released = {row["query"] for batch in release.batches() for row in batch.to_pylist()}
    assert not any("<" in query and not words(query) for query in released)


@pytest.mark.parametrize(
    ("given_", "sentence"),
    [
        ({"how": "hide"}, "The 'how' parameter of scrub must be one of remove, mask. Got 'hide' instead."),
        ({"kinds": ["mail"]}, "The 'kinds' parameter of scrub must name some of url, email,.* Got 'mail' instead."),
        ({"kinds": []}, "The 'kinds' parameter of scrub must name some of .* Got none instead."),
        ({"rare_term_users": 1}, "The 'rare_term_users' parameter of scrub must be an integer of at least 2. Got 1"),
    ],
)
def test_wrong_parameters_are_refused_in_a_sentence(given_, sentence):
    log = qv.read_log(pa.table({"user": ["a"], "query": ["tea"]}))
    with pytest.raises(qv.QueryveilError, match=sentence):
        qv.scrub(log, **given_)


def test_a_log_is_scrubbed_once():
    log = qv.scrub(qv.read_log(TABLE))
    with pytest.raises(qv.QueryveilError, match="was scrubbed already"):
        qv.scrub(log)


@pytest.mark.parametrize("how", ["remove", "mask"])
@pytest.mark.parametrize(
    "method",
    [
        qv.Equality(k=2),
        qv.Affinity(k=2, concept_min_users=2),
        qv.Mdav(k=3, distance="strings"),
        qv.Wngen(k=2),
        qv.Rules(min_query_users=2),
    ],
    ids=lambda method: method.name,
)
def test_a_release_of_a_scrubbed_log_verifies_against_the_original(tmp_path, method, how):
    log = qv.read_log(TABLE)
    release = method.anonymize(qv.scrub(log, how), seed=1)
    release.save(tmp_path / "r")
    found = qv.verify(tmp_path / "r", log)
    assert [verdict for verdict in found.verdicts if not verdict.holds] == []
    assert "The log was scrubbed as the manifest says." in [verdict.claim for verdict in found.verdicts]
    assert qv.Release.load(tmp_path / "r").manifest.scrub == release.manifest.scrub
    report = (tmp_path / "r" / "report.md").read_text()
    assert "## What was scrubbed" in report
    text = (tmp_path / "r" / "log.parquet").read_bytes() + report.encode()
    assert not any(secret.encode() in text for secret in ("jane@", "555-0123", "jane doe"))


def test_a_manifest_from_before_scrubbing_is_read(tmp_path):
    log = qv.read_log(TABLE)
    qv.Equality(k=2).anonymize(log).save(tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["scrub"]
    path.write_text(json.dumps(manifest))
    assert qv.Release.load(tmp_path / "r").manifest.scrub is None


def forged(tmp_path, log, method, query) -> list[str]:
    """What the verifier refutes when a masked query is put back."""
    method.anonymize(qv.scrub(log, "mask"), seed=1).save(tmp_path / "r")
    rows = pq.read_table(tmp_path / "r" / "log.parquet")
    at = rows["query"].to_pylist().index(mask(pa.array([query])).texts[0].as_py())
    changed = rows.to_pylist()
    changed[at]["query"] = query
    put_rows(tmp_path / "r", log, changed, rows.schema)
    return [f"{v.claim} {v.counterexample}" for v in qv.verify(tmp_path / "r", log).verdicts if not v.holds]


def test_a_release_with_an_unmasked_address_is_refuted(tmp_path):
    found = forged(tmp_path, qv.read_log(TABLE), qv.Equality(k=2), "jane@example.com tea")
    assert (
        "No released query or address holds anything of the kinds that were scrubbed. 1 of its distinct queries do"
        in found
    )
    assert any("'jane@example.com tea' has 1 rows in the release and 0 in the log" in text for text in found)


def edited(tmp_path, **fields) -> list[str]:
    """What the verifier refutes when the manifest tells other things about scrubbing."""
    log = qv.read_log(TABLE)
    qv.Equality(k=2).anonymize(qv.scrub(log, "mask")).save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    manifest["scrub"] = manifest["scrub"] | fields if fields else None
    mend(tmp_path / "r", Manifest.model_validate_json(json.dumps(manifest)))
    return [str(v.counterexample) for v in qv.verify(tmp_path / "r", log).verdicts if not v.holds]


def test_a_manifest_that_hides_the_scrubbing_is_refuted(tmp_path):
    assert edited(tmp_path) != []


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"kinds": ["email"]}, "scrubbing the log finds other numbers of hits"),
        ({"hits": {}}, "scrubbing the log finds other numbers of hits"),
        ({"kinds": ["magic"]}, "the log cannot be scrubbed so"),
    ],
)
def test_a_manifest_with_another_scrubbing_is_refuted(tmp_path, fields, because):
    assert edited(tmp_path, **fields) == [because]


def test_a_scrubbed_log_can_be_given_to_the_verifier_if_it_is_the_right_one():
    log = qv.read_log(TABLE)
    scrubbed = qv.scrub(log, "mask")
    release = qv.Equality(k=2).anonymize(scrubbed)
    assert qv.verify(release, scrubbed).holds
    assert qv.verify(release, log).holds
    assert not qv.verify(release, qv.scrub(log)).holds
    assert not qv.verify(qv.Equality(k=2).anonymize(log), scrubbed).holds


def test_explain_says_that_scrubbing_removed_a_query():
    log = qv.read_log(TABLE)
    release = qv.Equality(k=2).anonymize(qv.scrub(log))
    (reason,) = qv.explain(release, log, "Jane@example.com tea").reasons
    assert (reason.rule, reason.passed) == ("scrubbing finds no personal data in the query", False)
    assert qv.explain(release, log, "cell").reasons[0].rule == "at least 2 users issued the query"
    release = qv.Equality(k=2).anonymize(qv.scrub(rare_log(), "mask", rare_term_users=2))
    for query, rule in (
        ("tea zzz3", "scrubbing finds no personal data in the query"),
        ("nothing", "somebody issued the query"),
    ):
        assert qv.explain(release, rare_log(), query).reasons[0].rule == rule


@on_both_engines_weekly
def test_scrubbing_does_the_same_on_both_engines(read, tmp_path):
    log, local = read(TABLE), qv.read_log(TABLE)
    for how, rare in (("remove", None), ("mask", 3)):
        found = qv.scrub(log, how, rare_term_users=rare)
        expected = qv.scrub(local, how, rare_term_users=rare)
        assert found.stats.scrub == expected.stats.scrub
        assert found.fingerprint == log.fingerprint
        assert events_of(found) == events_of(expected)
        assert clicks_of(found) == clicks_of(expected)
        for name in ("rows", "events", "users", "queries", "words", "clicks", "timed"):
            assert getattr(found.stats, name) == getattr(expected.stats, name)
    # One of them is released, because a release follows from what was compared; masks have a band of their own.
    release = qv.Equality(k=2).anonymize(found, seed=1)
    same = qv.Equality(k=2).anonymize(expected, seed=1)
    assert rows_of(release) == rows_of(same)
    assert release.manifest.bands == same.manifest.bands
    release.save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", log).holds
    found.close()


CLICKS = pa.table(
    {
        "user": [*"aaabbbcc"],
        "query": ["white pages", "white pages", "tea", "white pages", "tea", "jane@example.com", "white pages", "tea"],
        "time": [f"2006-03-01 00:00:0{i}" for i in (0, 0, 1, 2, 3, 4, 5, 6)],
        "rank": [1, 2, 1, 1, 1, 1, 1, 1],
        "url": [
            "http://example.com/find?q=jane+doe+springfield",
            "http://example.com",
            "http://tea.example.com/~jdoe/",
            "http://example.com/find?q=jane+doe+springfield",
            "http://tea.example.com/",
            "http://tea.example.com/?to=jane%40example.com",
            "http://example.com",
            "http://tea.example.com/",
        ],
        "note": ["jane@example.com"] * 8,
    }
)


@on_one_machine
@pytest.mark.parametrize("how", ["remove", "mask"])
def test_clicks_on_personal_addresses_are_left_out_and_their_events_stay(read, tmp_path, how):
    log = read(CLICKS)
    found = qv.scrub(log, how)
    record = found.stats.scrub
    assert {kind: (hits.urls, hits.clicks) for kind, hits in record.hits.items()} == {
        "url": (1, 1), "email": (1, 1), "name_place": (1, 2)
    }  # fmt: skip
    assert (record.total.urls, record.total.clicks, record.total.queries) == (3, 4, 1)
    assert sorted(click[-1] for click in clicks_of(found)) == [
        "http://example.com", "http://example.com", "http://tea.example.com/", "http://tea.example.com/"
    ]  # fmt: skip
    assert (found.stats.events, found.stats.clicks) == (6, 4)
    # Two clicks of the first event became one; the others are events without a click, or with one.
    assert found.stats.rows == 6
    release = qv.Equality(k=2).anonymize(found, seed=1)
    release.save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", log).holds
    assert "Extra columns were not searched." in (tmp_path / "r" / "report.md").read_text()
    urls = {row["url"] for batch in release.batches() for row in batch.to_pylist()}
    assert urls - {None} == {"http://example.com", "http://tea.example.com/"}


def test_only_the_kinds_asked_for_are_looked_for_in_addresses():
    found = qv.scrub(qv.read_log(CLICKS), "mask", kinds=["email"])
    assert found.stats.scrub.total.clicks == 1
    assert any("~jdoe" in click[-1] for click in clicks_of(found))


def test_a_release_with_a_personal_address_is_refuted(tmp_path):
    log = qv.read_log(CLICKS)
    qv.Equality(k=2).anonymize(qv.scrub(log), seed=1).save(tmp_path / "r")
    rows = pq.read_table(tmp_path / "r" / "log.parquet")
    changed = rows.to_pylist()
    next(row for row in changed if row["url"])["url"] = "http://example.com/find?q=jane+doe+springfield"
    put_rows(tmp_path / "r", log, changed, rows.schema)
    found = {v.claim: v.counterexample for v in qv.verify(tmp_path / "r", log).verdicts if not v.holds}
    claim = "No released query or address holds anything of the kinds that were scrubbed."
    assert found[claim] == "1 of its distinct addresses do"


def test_hits_of_a_manifest_from_before_addresses_were_looked_at_are_read():
    assert qv.log.Hits.model_validate({"queries": 1, "events": 2}).clicks == 0
