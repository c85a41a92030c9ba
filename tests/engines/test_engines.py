"""What holds on every engine: the same test bodies on DuckDB and on Spark."""

import random
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.knowledge.directory import build_directory
from queryveil.log import LocalLog
from queryveil.methods.microaggregation import common as microaggregation
from queryveil.methods.microaggregation import mdav
from queryveil.release import check_claims
from tests.both import on_both_engines, on_both_engines_weekly, on_one_machine
from tests.knowledge import rdf
from tests.methods.test_rules import allowed
from tests.oracles import log as oracle
from tests.oracles.affinity import affinity_degrees
from tests.oracles.directory import Site
from tests.oracles.log import Row
from tests.strategies import table, weekly


def some_rows(n: int = 400, seed: int = 1) -> list[Row]:
    """A log with all there is: clicks, metadata, rows without a time, empty queries, words from rare to frequent."""
    draw = random.Random(seed)
    words = ["cell", "phone", "case", "red", "(tea)", "the", "été", "a@b", "x1", *(f"w{i}" for i in range(30))]
    rows = []
    for _ in range(n):
        query = " ".join(
            words[int(len(words) * draw.random() ** 2.5)] for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 4]))
        )
        time = draw.choice([None, f"2006-03-{draw.randint(1, 28):02} 10:00:{draw.randint(0, 59):02}"])
        url = draw.choice([None, "http://a.com", "http://b.org", "http://c.net"])
        rows.append(
            Row(
                user=f"u{int(25 * draw.random() ** 2)}",
                query=query.upper() if draw.random() < 0.3 else query,
                time=time,
                rank=draw.randint(1, 3) if url else None,
                url=url,
                device=draw.choice(["phone", "desk", None]),
                country=draw.choice(["NL", "US", "US", "CH"]),
            )
        )
    return [*rows, *rows[:20]]


ROWS = some_rows()
TABLE = table(ROWS)
OTHER = some_rows(250, seed=7)
OTHER_TABLE = table(OTHER)


def rows_of(release: qv.Release) -> list[dict]:
    return pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()


@on_both_engines
def test_events_and_clicks_are_those_of_the_rows(read):
    log = read(TABLE)
    events = log.engine.fetch(
        'SELECT u."user" AS who, q.query AS query, e.time AS time FROM events e JOIN users u ON u.user_id = e.user_id'
        " JOIN queries q ON q.query_id = e.query_id"
    )
    found = Counter((row["who"], row["query"], row["time"] and str(row["time"])) for row in events.to_pylist())
    assert found == oracle.events(ROWS)
    clicks = log.engine.fetch(
        "SELECT q.query AS query, c.rank AS rank, w.url AS url, e.query_id AS a, c.query_id AS b FROM clicks c"
        " JOIN events e ON e.event_id = c.event_id JOIN queries q ON q.query_id = c.query_id"
        " JOIN urls w ON w.url_id = c.url_id"
    ).to_pylist()
    assert all(row["a"] == row["b"] for row in clicks)
    expected = Counter((row.query, row.rank, row.url) for row in oracle.good(ROWS) if row.url)
    assert Counter((row["query"], row["rank"], row["url"]) for row in clicks) == expected
    assert log.stats.events == sum(oracle.events(ROWS).values())
    assert log.stats.empty_rows == len(ROWS) - len(oracle.good(ROWS))


@on_both_engines
def test_ngrams_count_occurrences_events_and_users(read):
    log = read(TABLE)
    word = {row["word_id"]: row["word"] for row in log.engine.fetch("SELECT word_id, word FROM words").to_pylist()}
    for n, least in ((1, 1), (2, 3), (3, 1)):
        found = {
            tuple(word[row[f"word_{i}"]] for i in range(1, n + 1)): (row["occurrences"], row["events"], row["users"])
            for row in log.ngrams(n, min_users=least).to_pylist()
        }
        assert found == {gram: count for gram, count in oracle.ngrams(ROWS, n).items() if count[2] >= least}


@on_both_engines
def test_a_profile_counts_right(read):
    rows = oracle.good(ROWS)
    found = qv.profile(read(TABLE))
    assert (found.rows, found.users, found.queries) == (
        len(rows), len({row.user for row in rows}), len({row.query for row in rows}),
    )  # fmt: skip
    assert found.clicks == sum(row.url is not None for row in rows)
    assert (found.first, found.last) == (min(r.time for r in rows if r.time), max(r.time for r in rows if r.time))
    per_user = Counter()
    for (user, _, _), n in oracle.events(ROWS).items():
        per_user[user] += n
    assert found.queries_per_user["90 %"] == pytest.approx(np.quantile(list(per_user.values()), 0.9))
    assert sum(band.events for band in found.bands) == found.events
    assert sum(length.events for length in found.lengths) == found.events
    for kept in found.kept:
        assert kept.events == sum(oracle.equality(ROWS, kept.k)[0].values())


@on_one_machine
@pytest.mark.parametrize("link", ["none", "session", "user"])
def test_equality_releases_what_k_users_issued(read, link):
    log = read(TABLE)
    release = qv.Equality(k=4, link=link).anonymize(log, seed=3)
    found = rows_of(release)
    events, clicks = oracle.equality(ROWS, 4)
    assert Counter(query for _, query in {(row["event"], row["query"]) for row in found}) == events
    assert Counter((row["query"], row["url"]) for row in found if row["url"]) == clicks
    assert sorted({row["event"] for row in found}) == list(range(1, sum(events.values()) + 1))
    verification = qv.verify(release, log)
    assert verification.holds, verification
    if link == "none":
        return
    names = [row["original"] for batch in release.user_map() for row in batch.to_pylist()]
    assert set(names) == {row.user for row in oracle.good(ROWS) if row.query in events}


@on_one_machine
def test_rules_release_what_passes_them(read, tmp_path):
    block = tmp_path / "block"
    block.write_text("red\nthe case\n")
    settings = {
        "min_query_users": 2, "min_row_users": 2, "min_term_users": 3, "max_characters": 12, "max_terms": 3,
        "no_digits": True, "no_at": True, "time": "week", "min_metadata_users": 3, "metadata": ["country", "device"],
    }  # fmt: skip
    log = read(TABLE)
    release = qv.Rules(**settings, block_list=block).anonymize(log, seed=2)
    sharers = defaultdict(set)
    for row in oracle.good(ROWS):
        sharers[row.query, row.url, row.device, row.country].add(row.user)
    kept = {
        query
        for query in allowed(ROWS, settings)
        if "red" not in query.split() and "the case" not in query and max(
            len(users) for key, users in sharers.items() if key[0] == query) >= 2
    }  # fmt: skip
    found = rows_of(release)
    assert {row["query"] for row in found} == kept
    assert {row["time"].weekday() for row in found if row["time"]} == {0}
    assert "*" in {row["device"] for row in found}
    verification = qv.verify(release, log)
    assert verification.holds, verification


@on_both_engines_weekly  # a pipeline in test_spark.py begins with affinity
def test_affinity_releases_the_generalized_core(read):
    log = read(OTHER_TABLE)
    # The defaults run on a whole cluster, in test_cluster.py.
    protection = {"min_term_users": 1, "min_query_users": 2, "max_new_users": 1}
    method = qv.Affinity(k=4, theta=0.9, concept_min_users=4, **protection)
    release = method.anonymize(log, seed=1)
    assert rows_of(release) == rows_of(method.anonymize(qv.read_log(OTHER_TABLE), seed=1))
    expected = affinity_degrees(oracle.good(OTHER), 0.9, 4, **protection)
    assert {row["query"] for row in rows_of(release)} == {query for query, degree in expected.items() if degree >= 4}
    verification = qv.verify(release, log)
    assert verification.holds, verification


@on_one_machine
@pytest.mark.parametrize(
    "method",
    [
        qv.Equality(k=3),
        qv.Rules(min_row_users=2, min_term_users=3, max_characters=9, no_digits=True, time="day", min_metadata_users=3),
        qv.Affinity(k=3, theta=0.7, min_term_users=1),
    ],
    ids=lambda method: method.name,
)
def test_the_verifier_finds_a_broken_promise(read, method):
    log = read(OTHER_TABLE)
    release = method.anonymize(log)
    stricter = {"users": log.n_users + 1, "max_characters": 3, "unit": "week"}
    claims = [
        claim.model_copy(update={name: value for name, value in stricter.items() if getattr(claim, name, None)})
        for claim in release.manifest.claims
    ]
    boast = release.manifest.model_copy(update={"claims": tuple(claims)})
    forged = qv.Release(boast, release.schema, release.batches)
    assert not qv.verify(forged, log).holds  # the verifier stops at claims that the method does not make
    verdicts = check_claims(forged, log)
    broken = {verdict.claim for verdict in verdicts if not verdict.holds}
    assert broken >= {claim.statement for claim in claims if claim.kind != "part-of-log"}


@on_both_engines
def test_the_verifier_finds_what_is_not_in_the_log(read):
    log = read(TABLE)
    release = qv.Equality(k=3).anonymize(log)
    rows = pa.Table.from_batches(list(release.batches()), release.schema)
    rows = pa.concat_tables([rows, rows.slice(0, 1)])
    forged = qv.Release(release.manifest, release.schema, lambda: iter(rows.to_batches()))
    verdicts = [verdict for verdict in qv.verify(forged, log).verdicts if not verdict.holds]
    assert any("more often than in the log" in verdict.claim for verdict in verdicts)
    assert any("counts in the manifest" in verdict.claim for verdict in verdicts)


@on_both_engines
@pytest.mark.parametrize("name", ["query", "url"])
def test_the_verifier_finds_a_text_of_no_log(read, name):
    log = read(TABLE)
    release = qv.Equality(k=3).anonymize(log)
    rows = pa.Table.from_batches(list(release.batches()), release.schema)
    texts = rows[name].to_pylist()
    texts[next(place for place, text in enumerate(texts) if text is not None)] = "invented"
    rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(texts))
    forged = qv.Release(release.manifest, release.schema, lambda: iter(rows.to_batches()))
    found = [str(verdict.counterexample) for verdict in check_claims(forged, log) if not verdict.holds]
    assert len(found) >= 2
    assert all("invented" in counterexample for counterexample in found)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A directory that knows some of the words and addresses of `some_rows`."""
    folder = tmp_path_factory.mktemp("directory")
    paths = ["Shop/Phones", "Shop/Tea/Red", "Arts", "Home/Cases"]
    sites = [
        Site("Shop/Phones", "a.com", "cell phone", ""),
        Site("Home/Cases", "b.org", "case w1 w2", ""),
        Site("Shop/Tea/Red", "c.net", "red tea w3", "été"),
    ]
    (folder / "s").write_text(rdf.structure(paths), "utf-8")
    (folder / "c").write_text(rdf.content(sites), "utf-8")
    build_directory([folder / "s", folder / "c"], folder / "odp.qvd")
    return str(folder / "odp.qvd")


@on_both_engines
@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (qv.Odp, {"k": 2, "categories": 2, "grouping": "blocks", "compact": True}),
        (qv.Search, {"k": 3, "levels": 2}),
        (qv.Mdav, {"k": 2, "grouping": "blocks"}),
        (qv.Mdav, {"k": 3, "distance": "strings", "compact": True}),
        # Without Spark, test_navarro.py compares them on many logs.
        pytest.param(qv.Mdav, {"k": 2, "distance": "features", "grouping": "blocks"}, marks=weekly),
    ],
)
def test_groups_of_users_are_the_same(read, directory, method, parameters, monkeypatch):
    """Made by tables on either engine, a release is that of the arrays of one machine, row by row."""
    monkeypatch.setattr(microaggregation, "BLOCK", 10)
    monkeypatch.setattr(mdav, "BLOCK", 8)
    taxonomy = f"{directory},wordnet" if method is qv.Mdav else directory
    looked_up = {} if "distance" in parameters else {"taxonomy": taxonomy}
    chosen = method(**looked_up, **parameters)
    expected = chosen.anonymize(qv.read_log(TABLE), seed=3)
    log = read(TABLE)
    if isinstance(log, LocalLog) and method is qv.Mdav:
        released = chosen.release_by_tables(log, seed=3)
    elif isinstance(log, LocalLog):
        linker = "terms" if method is qv.Odp else "domains"
        released = chosen.release_by_tables(log, chosen.taxonomy, linker, parameters.get("categories", 1), seed=3)
    else:
        released = chosen.anonymize(log, seed=3)
    assert (" blocks" in released.notes[0]) == (parameters.get("grouping") == "blocks")
    assert released.manifest == expected.manifest
    log.engine.load("found", released.schema, released.batches)
    rows = sorted(map(tuple, (r.values() for r in log.engine.fetch("SELECT * FROM found").to_pylist())))
    assert rows == sorted(map(tuple, (r.values() for b in expected.batches() for r in b.to_pylist())))
    assert qv.verify(released, log).holds


@on_both_engines
def test_a_function_sees_each_group_whole(read):
    log = read(TABLE)
    schema = pa.schema([("query_id", pa.int64()), ("n", pa.int64())])

    def count(batch):
        assert len(set(batch["query_id"].to_pylist())) == 1
        return pa.RecordBatch.from_pylist([{"query_id": batch["query_id"][0].as_py(), "n": len(batch)}], schema)

    log.engine.map_groups("SELECT query_id, user_id FROM events", "query_id", count, schema, "counted")
    found = sorted(tuple(row.values()) for row in log.engine.fetch("SELECT query_id, n FROM counted").to_pylist())
    asked = "SELECT query_id, count(*) AS n FROM events GROUP BY query_id"
    assert found == sorted(tuple(row.values()) for row in log.engine.fetch(asked).to_pylist())
