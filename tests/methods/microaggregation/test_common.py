"""Groups and records against the literal algorithms, and releases against the verifier, whatever the log."""

from collections import Counter, defaultdict
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.kernels import groups as kernel
from queryveil.kernels import quotas
from queryveil.knowledge import Tree
from queryveil.knowledge.directory import build_directory
from queryveil.methods.microaggregation import common as microaggregation
from queryveil.methods.microaggregation.common import Profiles, group_users, parts_of
from tests.knowledge import rdf
from tests.oracles import microaggregation as oracle
from tests.oracles.directory import Site
from tests.strategies import examples

PATHS = ["a/b/c", "a/b/d", "a/e", "f/g", "f/h/i", "j"]
TREE: dict[str, str | None] = {"top": None} | {
    "/".join(path.split("/")[:n]): "/".join(path.split("/")[: n - 1]) or "top"
    for path in PATHS
    for n in range(1, path.count("/") + 2)
}
NODES = sorted(TREE)
BAG = st.dictionaries(st.sampled_from(NODES), st.integers(1, 4), max_size=5).map(Counter)


def profiles(bags, levels):
    taxonomy = Tree.from_paths(pa.array(PATHS))
    at = {"top": 0} | {taxonomy.path(i): i for i in range(1, len(taxonomy))}
    start = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])]).astype(np.int64)
    node = np.array([at[node] for bag in bags for node in bag], np.int32)
    times = np.array([n for bag in bags for n in bag.values()], np.int32)
    found = kernel.profiles(start, node, times, taxonomy.parent, taxonomy.depth, levels)
    return taxonomy, Profiles(*found, taxonomy.depth)


@given(st.lists(BAG, min_size=1, max_size=8), st.integers(1, 4))
def test_profiles_are_the_classification_matrices(bags, levels):
    taxonomy, found = profiles(bags, levels)
    literal = {key: n for matrix in oracle.matrices(TREE, bags, levels) for key, n in matrix.items()}
    ours = {
        (user, taxonomy.path(int(found.feature[i]))): int(found.count[i])
        for user in range(len(bags))
        for i in range(found.start[user], found.start[user + 1])
    }
    assert ours == literal
    for user in range(len(bags)):
        mine = found.feature[found.start[user] : found.start[user + 1]]
        assert (np.diff(mine) > 0).all()


@settings(max_examples=examples(30))
@given(st.lists(BAG, min_size=2, max_size=14), st.integers(2, 4), st.integers(1, 3), st.booleans())
def test_groups_are_those_of_the_whole_matrix(bags, k, levels, record):
    # The literal algorithm settles ties by position; ours looks at users without a category last.
    bags = [bag for bag in bags if set(bag) - {"top"}] + [bag for bag in bags if not set(bag) - {"top"}]
    _, found = profiles(bags, levels)
    group, parts = group_users(found, k, kernel.RECORD if record else kernel.SUMMED, "exact")
    literal = oracle.groups(oracle.matrices(TREE, bags, levels), len(bags), k, record=record)
    assert [sorted(np.flatnonzero(group == g).tolist()) for g in range(group.max() + 1)] == [sorted(g) for g in literal]
    assert parts == 1


@given(st.lists(BAG, min_size=1, max_size=60), st.integers(2, 4), st.booleans(), st.integers(1, 20), st.booleans())
def test_every_group_has_k_to_2k_minus_1_users(bags, k, blocks, block, record):
    if len(bags) < k:
        return
    _, found = profiles(bags, 3)
    with patch.object(microaggregation, "BLOCK", block):
        linkage = kernel.RECORD if record else kernel.SUMMED
        group, parts = group_users(found, k, linkage, "blocks" if blocks else "exact")
    assert blocks or parts == 1
    size = np.bincount(group)
    assert size.min() >= k
    assert size.max() <= 2 * k - 1


def test_users_without_a_category_are_grouped_last_with_each_other():
    bags = [Counter(), Counter({"a/e": 1}), Counter(), Counter({"f/g": 1}), Counter({"j": 1}), Counter({"a/b": 1})]
    group, _ = group_users(profiles(bags, 3)[1], 2, kernel.SUMMED, "exact")
    assert group[0] == group[2]
    assert group[0] == group.max()


SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=12)


@given(SIZES)
def test_quotas_add_up_to_the_mean_and_nobody_vanishes_unless_he_must(sizes):
    size = np.array(sizes, np.int64)
    n = len(size)
    quota = quotas.quotas(size, np.array([0, n]), np.arange(n, dtype=np.int32))
    mean = (2 * size.sum() + n) // (2 * n)
    assert quota.sum() == mean
    assert (quota == 0).sum() == max(0, n - mean)
    assert (quota <= size).all()
    if (size >= n).all():
        assert (np.abs(quota - size / n) < 1).all()


QUERIES = st.lists(st.integers(1, 9), min_size=1, max_size=8).map(lambda times: sorted(times, reverse=True))


@given(st.lists(QUERIES, min_size=1, max_size=4), st.integers(0, 1000), st.booleans(), st.data())
def test_a_user_gives_his_quota_and_no_query_more_often_than_he_typed_it(users, seed, repeated, data):
    start = np.concatenate([[0], np.cumsum([len(times) for times in users])]).astype(np.int64)
    times = np.array([n for user in users for n in user], np.int64)
    size = np.add.reduceat(times, start[:-1])
    quota = np.array([data.draw(st.integers(0, int(n))) for n in size], np.int64)
    draw = np.random.default_rng(seed).integers(0, 1 << 63, len(times), dtype=np.uint64)
    if repeated:
        taken = quotas.by_repetition(start, times, draw, size / size.sum(), quota)
    else:
        taken = quotas.at_random(start, times, draw, quota)
    assert np.add.reduceat(taken, start[:-1]).tolist() == quota.tolist()
    assert ((taken >= 0) & (taken <= times)).all()


def test_the_example_of_the_paper():
    """A query repeated 3 times by a user with a contribution of 0.4 is added once, and again with probability 0.2."""
    n = 20_000
    draw = np.random.default_rng(1).integers(0, 1 << 63, 2 * n, dtype=np.uint64)
    start, times = np.arange(0, 2 * n + 1, 2), np.tile(np.array([3, 1], np.int64), n)
    taken = quotas.by_repetition(start, times, draw, np.full(n, 0.4), np.full(n, 2))[::2]
    # Else the other query comes with 0.4; else a new round, in which the first has 2 left, so comes with 0.8.
    a_round = 0.8 / (1 - 0.2 * 0.6)
    assert set(taken.tolist()) == {1, 2}
    assert taken.mean() - 1 == pytest.approx(0.2 + 0.8 * 0.6 * a_round, abs=0.02)


def test_all_events_are_as_likely():
    n = 20_000
    draw = np.random.default_rng(2).integers(0, 1 << 63, 2 * n, dtype=np.uint64)
    taken = quotas.at_random(np.arange(0, 2 * n + 1, 2), np.tile(np.array([3, 1], np.int64), n), draw, np.full(n, 2))
    assert taken[::2].mean() == pytest.approx(1.5, abs=0.02)


WORDS = ["alpha", "beta", "gamma", "delta", "unknown"]
DIRECTORY = [
    Site(path, f"{word}.example.com", word, "")
    for word, path in zip(WORDS, ["a/b/c", "a/b/d", "f/g", "j"], strict=False)
]


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("taxonomy")
    (folder / "s").write_text(rdf.structure(PATHS), "utf-8")
    (folder / "c").write_text(rdf.content(DIRECTORY), "utf-8")
    build_directory([folder / "s", folder / "c"], folder / "d")
    return str(folder / "d")


EVENT = st.tuples(
    st.integers(0, 11), st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join), st.integers(0, 4)
)


def read(events):
    rows = [{"user": f"u{u}", "query": q, "url": f"http://{WORDS[w]}.example.com/"} for u, q, w in events]
    return qv.read_log(pa.Table.from_pylist(rows))


@settings(max_examples=examples(13))
@given(
    st.lists(EVENT, min_size=4, max_size=40), st.sampled_from(["odp", "search"]), st.integers(2, 3), st.booleans(),
    st.integers(0, 5),
)  # fmt: skip
def test_the_verifier_accepts_every_release(tmp_path_factory, taxonomy, events, method, k, compact, seed):
    log = read(events)
    if log.n_users < k:
        return
    kind = {"odp": qv.Odp, "search": qv.Search}[method]
    release = kind(k=k, taxonomy=taxonomy, compact=compact).anonymize(log, seed=seed)
    assert qv.verify(release, log).holds
    again = kind(k=k, taxonomy=taxonomy, compact=compact).anonymize(log, seed=seed)
    assert pa.Table.from_batches(release.batches()).equals(pa.Table.from_batches(again.batches()))
    rows = pa.Table.from_batches(release.batches()).to_pylist()
    records = defaultdict(Counter)
    for row in rows:
        records[row["user"]][row["query"]] += 1
    fresh = {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}
    assert set(fresh) == {f"u{u}" for u, _, _ in events}
    originals = defaultdict(Counter)
    for u, query, _ in events:
        originals[f"u{u}"][query] += 1
    together = defaultdict(list)
    for user, released in fresh.items():
        together[tuple(sorted(records[released].items())) if not compact else released].append(user)
    for users in together.values():
        assert len(users) >= k
    if not compact:
        # A record holds no query more often than all users of the group typed it.
        for record in {tuple(sorted(records[fresh[user]].items())): user for user in fresh}.values():
            group_of = [user for user in fresh if records[fresh[user]] == records[fresh[record]]]
            total = sum(sum(originals[user].values()) for user in group_of)
            typed = sum((originals[user] for user in group_of), Counter())
            assert sum(records[fresh[record]].values()) <= total
            assert all(typed[query] >= n for query, n in records[fresh[record]].items())


def test_seeds_give_other_records(taxonomy):
    log = read([(u, f"{WORDS[u % 3]} {WORDS[w]}", w) for u in range(12) for w in range(5) for _ in range(1 + w)])
    made = [pa.Table.from_batches(qv.Odp(k=3, taxonomy=taxonomy).anonymize(log, seed=s).batches()) for s in (1, 2)]
    assert not made[0].equals(made[1])


def test_a_k_that_no_group_reaches(taxonomy):
    with pytest.raises(QueryveilError, match="is 9, but the log has only 2 users, so nothing could be released"):
        qv.Odp(k=9, taxonomy=taxonomy).anonymize(read([(1, "alpha", 0), (2, "beta", 0)]))


def test_search_needs_a_directory():
    log = read([(1, "alpha", 0), (2, "beta", 0)])
    with pytest.raises(QueryveilError, match="must name a web directory"):
        qv.Search(k=2).anonymize(log)
    with pytest.raises(QueryveilError, match="'wordnet' has no sites"):
        qv.Search(k=2, taxonomy="wordnet").anonymize(log)
    for wrong in ({"send_queries_to": "http://127.0.0.1:9"}, {"cache": "c"}):
        with pytest.raises(QueryveilError, match="'send_queries_to' needs 'cache'"):
            qv.Search(k=2, taxonomy="wordnet", **wrong).anonymize(log)
    with pytest.raises(QueryveilError, match="Give either 'resolver' or 'send_queries_to'"):
        qv.Search(k=2, taxonomy="w", send_queries_to="http://x", cache="c", resolver="sites").anonymize(log)
    with pytest.raises(QueryveilError, match="is 9, but the log has only 2 users"):  # before anything is sent or opened
        qv.Search(k=9, taxonomy="nowhere", send_queries_to="http://127.0.0.1:9", cache="c").anonymize(log)


def test_blocks_lose_little(taxonomy, monkeypatch):
    """Four interests, told apart by the words: blocks keep the groups as pure as comparing everybody does."""
    rng = np.random.default_rng(3)
    events = [(u, WORDS[u % 4], 0) for u in range(400) for _ in range(int(rng.integers(1, 9)))]
    log = read(events)
    monkeypatch.setattr(microaggregation, "BLOCK", 100)
    release = qv.Odp(k=4, taxonomy=taxonomy, grouping="blocks").anonymize(log)
    assert "in 4 blocks" in release.notes[0]
    assert qv.verify(release, log).holds
    records = defaultdict(set)
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        records[row["user"]].add(row["query"])
    assert np.mean([len(queries) == 1 for queries in records.values()]) > 0.95


def test_a_compact_release_cannot_be_aol(taxonomy, tmp_path):
    release = qv.Odp(k=2, taxonomy=taxonomy, compact=True).anonymize(read([(u, "alpha", 0) for u in range(4)]))
    with pytest.raises(QueryveilError, match="no place for the column 'users'"):
        release.save(tmp_path / "r", format="aol")
    release.save(tmp_path / "r", format="csv")
    assert qv.Release.load(tmp_path / "r").manifest.counts.users == 2


def test_a_manifest_names_no_folder_of_the_machine(taxonomy, tmp_path):
    release = qv.Odp(k=2, taxonomy=taxonomy).anonymize(read([(u, "alpha", 0) for u in range(4)]))
    assert release.manifest.parameters["taxonomy"] == "d"
    release.save(tmp_path / "r")
    assert taxonomy not in (tmp_path / "r" / "manifest.json").read_text()


@pytest.mark.parametrize(("users", "parts"), [(40_000, 1), (40_001, 2), (650_000, 32)])
def test_blocks_begin_where_exact_groups_take_long(users, parts):
    assert parts_of(users, 5, "auto") == parts
    assert parts_of(users, 5, "exact") == 1
    assert parts_of(1000, 5, "blocks") == 1


def test_how_a_record_is_written_does_not_decide_what_it_holds(taxonomy):
    log = read([(u, f"{WORDS[u % 3]} {WORDS[w]}", w) for u in range(12) for w in range(5) for _ in range(1 + w)])
    records = []
    for options in ({}, {"compact": True}, {"grouping": "exact"}, {"taxonomy": taxonomy + "/../d"}):
        release = qv.Odp(**{"k": 3, "taxonomy": taxonomy, **options}).anonymize(log, seed=5)
        found = defaultdict(Counter)
        for row in pa.Table.from_batches(release.batches()).to_pylist():
            found[row["user"]][row["query"]] += 1
        records.append({frozenset(record.items()) for record in found.values()})
    assert all(record == records[0] for record in records)


def test_the_order_of_rows_does_not_matter(taxonomy, tmp_path):
    events = [(u, f"{WORDS[u % 3]} {WORDS[w]}", w) for u in range(12) for w in range(5)]
    for name, rows in (("a", events), ("b", events[::-1])):
        qv.Odp(k=3, taxonomy=taxonomy).anonymize(read(rows), seed=5).save(tmp_path / name)
    assert (tmp_path / "a/log.parquet").read_bytes() == (tmp_path / "b/log.parquet").read_bytes()
    assert (tmp_path / "a/manifest.json").read_bytes() == (tmp_path / "b/manifest.json").read_bytes()


def forged(release, change):
    """The release with other rows, as its own log would be asked to vouch for them."""
    rows = change(pa.Table.from_batches(release.batches()).to_pylist())
    table = pa.Table.from_pylist(rows, release.schema)
    return replace(release, batches=lambda: iter(table.to_batches()))


def renamed(rows):
    return [*rows[:-1], rows[-1] | {"query": "never typed"}]


def moved(rows):
    return [*rows[:-1], rows[-1] | {"user": rows[0]["user"]}]


def without_a_user(rows):
    return [row for row in rows if row["user"] != rows[0]["user"]]


def tripled(rows):
    return [row for row in rows for _ in range(3)]


def of_one_query(rows):
    """As long as before, but of one query alone."""
    return [row | {"query": rows[0]["query"]} for row in rows]


def for_fewer(rows):
    return [row | {"users": 2} if row["user"] == rows[0]["user"] else row for row in rows]


def for_many(rows):
    return [row | {"users": 6} if row["user"] == rows[0]["user"] else row for row in rows]


def for_nobody(rows):
    return [rows[0] | {"users": None}, *rows[1:]]


@pytest.mark.parametrize("kind", [qv.Odp, qv.Search])
@pytest.mark.parametrize(
    ("compact", "change", "claim"),
    [
        (False, renamed, "issued-queries"),
        (False, moved, "record-users"),
        (False, without_a_user, "all-users"),
        (False, tripled, "record-queries"),
        (False, of_one_query, "record-queries"),
        (True, renamed, "issued-queries"),
        (True, without_a_user, "all-users"),
        (True, tripled, "record-queries"),
        (True, of_one_query, "record-queries"),
        (True, for_fewer, "record-users"),
        (True, for_many, "record-queries"),
        (True, for_nobody, "record-users"),
    ],
)
def test_the_verifier_finds_what_is_wrong(taxonomy, kind, compact, change, claim):
    events = [(u, f"{WORDS[u % 4]} {WORDS[w]}", u % 4) for u in range(12) for w in range(4)]
    log = read(events)
    release = kind(k=3, taxonomy=taxonomy, compact=compact).anonymize(log, seed=2)
    wrong = next(promise for promise in release.manifest.claims if promise.kind == claim)
    verdicts = {verdict.claim: verdict for verdict in qv.verify(forged(release, change), log).verdicts}
    assert not verdicts[wrong.statement].holds
    assert verdicts[wrong.statement].counterexample


@pytest.mark.parametrize("gone", range(4))
def test_the_verifier_misses_a_claim_that_was_struck_out(taxonomy, gone):
    log = read([(u, WORDS[u % 4], 0) for u in range(8)])
    release = qv.Odp(k=2, taxonomy=taxonomy).anonymize(log)
    claims = tuple(claim for i, claim in enumerate(release.manifest.claims) if i != gone)
    fewer = replace(release, manifest=release.manifest.model_copy(update={"claims": claims}))
    assert not qv.verify(fewer, log).holds
