"""The verifier must refute what is wrong: each test tampers with a good release in one way."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryveil as qv
from queryveil.claims import TermUsers
from queryveil.claims.limits import LIMITS
from queryveil.formats import writers
from queryveil.methods import METHODS
from queryveil.release.manifest import Manifest
from tests.fuzz.forging import mend, put_rows, read, tidy

EQUALITY = qv.Equality(k=3, link="user")
LOG = pa.table(
    {
        "user": [*"aabbccddee", "f"],
        "query": ["tea", "rare", "tea", "mug 1", "tea", "mug 1", "tea", "mug 1", "tea", "tea", "me@x.org"],
        "time": [f"2006-03-{i + 1:02} 10:00:00" for i in range(11)],
        "rank": [1] * 11,
        "url": ["http://t.com", None, "http://t.com", "http://m.com", "http://t.com", "http://m.com", "http://own.com",
                "http://m.com", None, None, None],
        "device": ["phone", "phone", "phone", "desk", "phone", "desk", "desk", "desk", "phone", "desk", "desk"],
        "country": ["NL"] * 10 + ["US"],
        "language": ["nl"] * 11,
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def log():
    return qv.read_log(LOG)


def tampered(tmp_path, log, method, change) -> qv.Release:
    """A release whose table was changed, with a manifest and a report that fit the changed file."""
    method.anonymize(log, seed=1).save(tmp_path / "r")
    rows = pq.read_table(tmp_path / "r" / "log.parquet")
    put_rows(tmp_path / "r", log, change(rows.to_pylist()), rows.schema)
    return qv.Release.load(tmp_path / "r")


def broken(tmp_path, log, method, change) -> list[str]:
    """The promises that the verifier refutes."""
    verification = qv.verify(tampered(tmp_path, log, method, change), log)
    assert not verification.holds
    wrong = [verdict for verdict in verification.verdicts if not verdict.holds]
    # A changed table changes the numbers and the order of rows as well: not what these tests are about.
    return [
        f"{v.claim} {v.counterexample}" for v in wrong if not v.claim.startswith(("The manifest counts", "Ids are"))
    ]


def edited(tmp_path, log, **fields) -> list[str]:
    """What the verifier refutes when fields of the manifest are changed."""
    EQUALITY.anonymize(log, seed=1).save(tmp_path / "r")
    values = json.loads((tmp_path / "r" / "manifest.json").read_text()) | fields
    mend(tmp_path / "r", Manifest.model_validate_json(json.dumps(values)))
    return [f"{v.claim} {v.counterexample}" for v in qv.verify(tmp_path / "r", log).verdicts if not v.holds]


def test_a_good_release_holds(tmp_path, log):
    assert qv.verify(tampered(tmp_path, log, EQUALITY, lambda rows: rows), log).holds


def test_a_query_of_too_few_users(tmp_path, log):
    found = broken(tmp_path, log, EQUALITY, lambda rows: [*rows, {"user": 1, "event": 99, "query": "rare"}])[0]
    assert "at least 3 users" in found
    assert "the query 'rare' was issued by 1 users" in found


def test_an_invented_query_or_event(tmp_path, log):
    found = broken(
        tmp_path,
        log,
        EQUALITY,
        lambda rows: [*rows, {"user": 1, "event": 99, "query": "invented"}],
    )
    assert any("'invented' has 1 rows in the release and 0 in the log" in text for text in found)


def test_an_event_too_many(tmp_path, log):
    found = broken(tmp_path, log, EQUALITY, lambda rows: [*rows, {"user": 1, "event": 99, "query": "tea"}])[0]
    assert "'tea' has 7 rows in the release and 6 in the log" in found


def test_events_that_were_split_or_joined(tmp_path, log):
    found = broken(tmp_path, log, EQUALITY, lambda rows: [row | {"event": 1} for row in rows])[0]
    assert "event 1 has several pseudonyms or queries" in found


def test_claims_that_were_struck_out_or_weakened(tmp_path, log):
    assert "it does not claim: No query" in edited(tmp_path, log, claims=[])[0]


def test_a_claim_that_the_method_does_not_make(log):
    release = EQUALITY.anonymize(log, seed=1)
    more = (*release.manifest.claims, TermUsers(users=2))
    forged = replace(release, manifest=release.manifest.model_copy(update={"claims": more}))
    assert [v.counterexample for v in qv.verify(forged, log).verdicts if not v.holds] == [
        f"it makes {len(more)} claims in another order, not these {len(more) - 1}"
    ]


def test_a_manifest_that_is_written_otherwise(tmp_path, log):
    EQUALITY.anonymize(log, seed=1).save(tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    path.write_text(path.read_text() + " ")
    wrong = [v.counterexample for v in qv.verify(tmp_path / "r", log).verdicts if not v.holds]
    assert wrong == ["manifest.json is written otherwise"]


def test_parameters_that_the_claims_do_not_fit(tmp_path, log):
    found = edited(tmp_path, log, parameters={"k": 100, "link": "user"})
    assert "it does not claim: Every released query was issued by at least 100 users" in found[0]


def test_a_method_that_nobody_knows(tmp_path, log):
    assert "not those of the method 'magic'" in edited(tmp_path, log, method="magic")[0]


def test_limits_that_were_struck_out_of_the_manifest(tmp_path, log):
    found = edited(tmp_path, log, limits=[])
    assert found[0].startswith(
        "The manifest says what its method does not promise, and nothing else. it does not say: k-anonymity of"
    )


def test_a_limit_that_was_struck_out_of_manifest_and_report(tmp_path, log):
    """Whoever forges a manifest can write the report anew."""
    release = EQUALITY.anonymize(log, seed=1)
    forged = replace(release, manifest=release.manifest.model_copy(update={"limits": release.manifest.limits[:-1]}))
    forged.save(tmp_path / "r")
    (wrong,) = [verdict for verdict in qv.verify(tmp_path / "r", log).verdicts if not verdict.holds]
    assert wrong.counterexample == f"it does not say: {release.manifest.limits[-1]}"


@pytest.mark.parametrize("method", METHODS.values(), ids=str)
def test_the_verifier_knows_the_limits_of_every_method(method):
    if method is not qv.Pipeline:  # its limits are those of its steps
        assert LIMITS[method.name]


def test_an_input_that_is_counted_otherwise(tmp_path, log):
    counts = {"rows": 1, "events": 1, "users": 1, "queries": 1, "clicks": 1}
    assert "its counts of the log are wrong" in edited(tmp_path, log, input_counts=counts)[0]


def test_a_column_too_many(tmp_path, log):
    EQUALITY.anonymize(log, seed=1).save(tmp_path / "r")
    path = tmp_path / "r" / "log.parquet"
    rows = pq.read_table(path)
    wider = rows.append_column("original_user", pa.array(["x"] * len(rows)))
    writers.write(path, "parquet", wider.schema, iter(wider.to_batches()))
    manifest = read(tmp_path / "r")
    mend(tmp_path / "r", manifest.model_copy(update={"columns": (*manifest.columns, "original_user")}))
    found = [v.counterexample for v in qv.verify(tmp_path / "r", log).verdicts if not v.holds]
    assert "the column 'original_user'" in found


def test_a_rank_that_too_few_users_share(tmp_path, log):
    def change(rows):
        at = next(i for i, row in enumerate(rows) if row["url"])
        return [row | {"rank": 9} if i == at else row for i, row in enumerate(rows)]

    found = broken(tmp_path, log, EQUALITY, change)
    assert any("at its rank occurs 1 times in the release, 0 in the log" in text for text in found)
    assert any("Every released rank shares" in text for text in found)


def test_a_damaged_table_is_one_sentence(tmp_path, log):
    EQUALITY.anonymize(log, seed=1).save(tmp_path / "r")
    path = tmp_path / "r" / "log.parquet"
    good = path.read_bytes()
    path.write_bytes(good[:-20])
    with pytest.raises(qv.QueryveilError, match=r"log\.parquet is damaged"):
        qv.verify(tmp_path / "r", log)
    rows = pq.read_table(pa.BufferReader(good))
    wrong = rows.set_column(rows.column_names.index("query"), "query", pa.array(range(len(rows))))
    pq.write_table(wrong, path)
    with pytest.raises(qv.QueryveilError, match=r"'query' of .* is of the wrong type"):
        qv.verify(tmp_path / "r", log)


@pytest.mark.parametrize("key", [str, int], ids=["as texts", "as numbers"])
def test_pseudonyms_in_the_order_of_the_users(tmp_path, key):
    pairs = [(user, f"q{shared}") for user in range(95, 135) for shared in (user, user + 1)]
    log = qv.read_log(pa.table({"user": [str(user) for user, _ in pairs], "query": [query for _, query in pairs]}))
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    release.save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", log).holds
    owner = {row["released"]: row["original"] for batch in release.user_map() for row in batch.to_pylist()}
    place = {name: i for i, name in enumerate(sorted(owner.values(), key=key))}
    rows = pq.read_table(tmp_path / "r" / "log.parquet")
    moved = [row | {"user": place[owner[row["user"]]]} for row in rows.to_pylist()]
    put_rows(tmp_path / "r", log, tidy(moved, rows.column_names), rows.schema)
    wrong = [verdict.counterexample for verdict in qv.verify(tmp_path / "r", log).verdicts if not verdict.holds]
    assert wrong == ["the numbers of users follow users"]


def test_a_click_of_too_few_users(tmp_path, log):
    def change(rows):
        at = next(i for i, row in enumerate(rows) if row["query"] == "tea" and row["url"] is None)
        return [row | {"url": "http://own.com"} if i == at else row for i, row in enumerate(rows)]

    (found,) = broken(tmp_path, log, EQUALITY, change)
    assert "(query, url)" in found
    assert "url 'http://own.com' has 1 users" in found


def test_an_invented_click(tmp_path, log):
    def change(rows):
        return [row | {"url": "http://m.com"} if row["query"] == "tea" else row for row in rows]

    assert any(
        "occurs 6 times in the release, 0 in the log" in text for text in broken(tmp_path, log, EQUALITY, change)
    )


def test_a_time_that_is_not_rounded(tmp_path, log):
    method = qv.Rules(min_query_users=3, time="day")

    def change(rows):
        return [row | {"time": row["time"].replace(hour=10)} for row in rows]

    (found,) = broken(tmp_path, log, method, change)
    assert "rounded down to the day" in found


@pytest.mark.parametrize(
    ("rule", "query", "said"),
    [
        ({"no_digits": True}, "mug 1", "holds no digit"),
        ({"no_at": True}, "me@x.org", "holds no @"),
        ({"max_characters": 4}, "mug 1", "at most 4 characters"),
        ({"max_terms": 1}, "mug 1", "at most 1 words"),
        ({"min_term_users": 2}, "rare", "used by at least 2 users"),
    ],
)
def test_a_query_that_breaks_a_rule(tmp_path, log, rule, query, said):
    (found,) = broken(tmp_path, log, qv.Rules(**rule), lambda rows: [*rows, {"user": 1, "event": 99, "query": query}])
    assert said in found
    assert query in found


def test_a_row_that_too_few_users_share(tmp_path, log):
    row = {
        "user": 1,
        "event": 99,
        "query": "tea",
        "device": "desk",
        "country": "NL",
        "rank": 1,
        "url": "http://own.com",
    }
    found = broken(tmp_path, log, qv.Rules(min_row_users=2), lambda rows: [*rows[1:], row])
    assert any("(query, url, device, country)" in text for text in found)


@pytest.mark.parametrize("link", ["none", "user"])
def test_a_combination_of_metadata_with_too_few_users(tmp_path, log, link):
    method = qv.Rules(max_terms=9, min_metadata_users=3, link=link)

    def change(rows):
        at = next(i for i, row in enumerate(rows) if row["query"] == "me@x.org")
        return [
            row | {"country": "US", "device": "desk", "language": "nl"} if i == at else row
            for i, row in enumerate(rows)
        ]

    (found,) = broken(tmp_path, log, method, change)
    assert "country 'US', device 'desk', language 'nl' has 1 users" in found


def test_a_changed_file_or_one_too_many(tmp_path, log):
    EQUALITY.anonymize(log, seed=1).save(tmp_path / "r")
    report = tmp_path / "r" / "report.md"
    good = report.read_text()
    report.write_text(good + "All is well.")
    assert "report.md was changed" in qv.verify(tmp_path / "r", log).verdicts[0].counterexample
    report.write_text(good)
    (tmp_path / "r" / "notes.txt").write_text("the original users are ...")
    assert "notes.txt is not in the manifest" in qv.verify(tmp_path / "r", log).verdicts[0].counterexample
    (tmp_path / "r" / "notes.txt").unlink()
    report.unlink()
    assert "report.md is missing" in qv.verify(tmp_path / "r", log).verdicts[0].counterexample


def test_another_log(tmp_path, log):
    EQUALITY.anonymize(log, seed=1).save(tmp_path / "r")
    other = qv.read_log(LOG.slice(1))
    verdict = qv.verify(tmp_path / "r", other).verdicts[-1]
    assert (verdict.holds, verdict.counterexample) == (False, "its counts of the log are wrong")
    verdict = qv.verify(EQUALITY.anonymize(log, seed=1), other).verdicts[-1]
    assert (verdict.holds, verdict.claim) == (False, "The release was made from this log.")


def test_wrong_counts(tmp_path, log):
    EQUALITY.anonymize(log, seed=1).save(tmp_path / "r")
    manifest = read(tmp_path / "r")
    counts = manifest.counts.model_copy(update={"queries": 9})
    mend(tmp_path / "r", manifest.model_copy(update={"counts": counts}))
    found = [v for v in qv.verify(tmp_path / "r", log).verdicts if not v.holds]
    assert "it says 9 queries, the table has 2" in [v.counterexample for v in found]


def test_a_release_in_memory_can_be_verified(log):
    assert qv.verify(EQUALITY.anonymize(log), log).holds
