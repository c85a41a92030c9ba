"""Semantic MDAV: distances and groups against the literal ones, the paper's examples, and releases."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.kernels import semantic
from queryveil.knowledge import Tree
from queryveil.methods.microaggregation import interests as module
from queryveil.methods.microaggregation import mdav
from queryveil.methods.microaggregation.interests import Interests, distances, group_users, partition, representatives
from tests.methods.microaggregation.test_common import WORDS, read, taxonomy
from tests.oracles import semantic as oracle
from tests.strategies import examples

__all__ = ["taxonomy"]  # a fixture

DIVING, WINDSURFING = "Sports/Water Sports/Swimming and Diving", "Sports/Water Sports/Windsurfing"
MEDITERRANEAN = "Regional/Europe/Regions/Mediterranean"
PATHS = [DIVING, WINDSURFING, MEDITERRANEAN, "Arts", "Sports/Soccer"]
TREE: dict[str, str | None] = {"": None} | {
    "/".join(path.split("/")[:n]): "/".join(path.split("/")[: n - 1])
    for path in PATHS
    for n in range(1, path.count("/") + 2)
}
TAXONOMY = Tree.from_paths(pa.array(PATHS))
AT = {TAXONOMY.path(i): i for i in range(1, len(TAXONOMY))}
BAG = st.dictionaries(st.sampled_from(sorted(AT)), st.integers(1, 3), min_size=1, max_size=4).map(Counter)


def interests(bags, *, tree=TAXONOMY):
    bags = [sorted((AT[category], n) for category, n in bag.items()) for bag in bags]
    start = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])]).astype(np.int64)
    item = np.array([item for bag in bags for item, _ in bag], np.int32)
    weight = np.array([n for bag in bags for _, n in bag], np.int64)
    return Interests(start, item, weight, len(TAXONOMY), tree)


def matrix(bags, **options):
    far = distances(interests(bags, **options))
    found = np.array([far.row(v) for v in range(len(bags))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TILE", 2)
        assert (far.matrix() == found).all()
    return found / semantic.ONE


@given(st.lists(BAG, min_size=1, max_size=6))
def test_the_distance_is_the_formula(bags):
    found = matrix(bags)
    for i, one in enumerate(bags):
        for j, other in enumerate(bags):
            assert found[i, j] == pytest.approx(float(oracle.distance(TREE, one, other)), abs=1e-8)
    assert (found == found.T).all()
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diag(found) == 0).all()


@given(st.lists(BAG, min_size=1, max_size=6))
def test_without_semantics_only_the_same_is_alike(bags):
    found = matrix(bags, tree=None)
    for i, one in enumerate(bags):
        for j, other in enumerate(bags):
            apart = sum(n for c, n in one.items() if c not in other) + sum(n for c, n in other.items() if c not in one)
            assert found[i, j] == pytest.approx(apart / (one.total() + other.total()), abs=1e-8)


def test_example_3_of_the_paper():
    assert oracle.delta(TREE, DIVING, WINDSURFING) == Fraction(1, 2)
    assert matrix([Counter([DIVING]), Counter([WINDSURFING])])[0, 1] == 0.5


def test_example_4_of_the_paper():
    one, other = Counter({DIVING: 1, MEDITERRANEAN: 1}), Counter({WINDSURFING: 1, MEDITERRANEAN: 2})
    assert matrix([one, other])[0, 1] == pytest.approx(1 / 5)


@given(st.integers(2, 30), st.integers(2, 4), st.integers(0, 10_000), st.booleans())
def test_the_partition_is_the_literal_algorithm(n, k, seed, ties):
    if n < k:
        return
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4 if ties else 10_000, (n, 2))
    far = np.abs(points[:, None] - points[None]).sum(axis=2).astype(np.int64)
    group = partition(n, k, lambda v: far[v], far.sum(axis=1))
    found = [sorted(np.flatnonzero(group == g).tolist()) for g in range(group.max() + 1)]
    assert found == oracle.mdav(n, k, lambda a, b: int(far[a, b]))
    assert all(k <= len(members) < 2 * k for members in found)


@given(st.lists(BAG, min_size=2, max_size=12), st.integers(2, 3))
def test_groups_are_the_same_with_and_without_the_matrix(bags, k):
    if len(bags) < k:
        return
    everyone, order = interests(bags), np.arange(len(bags))
    whole = group_users(lambda some: distances(everyone.take(some)), order, 1, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MATRIX", 0)
        again = group_users(lambda some: distances(everyone.take(some)), order, 1, k)
    assert again.tolist() == whole.tolist()


@given(st.lists(BAG, min_size=2, max_size=8))
def test_a_record_has_the_categories_nearest_to_the_centre(bags):
    """One group of all: the centre, the quotas and what each user gives, literally."""
    group = np.zeros(len(bags), np.int32)
    of, item = representatives(interests(bags), group)
    assert set(of.tolist()) == {0}
    total = sum(bags, Counter())
    names = sorted(total, key=AT.__getitem__)
    # Similarities are rounded once, to 2**-32.
    alike = {(c, d): int(semantic.ONE * (1 - oracle.delta(TREE, c, d)) + Fraction(1, 2)) for c in names for d in names}
    centre = max(names, key=lambda c: (sum(n * alike[c, d] for d, n in total.items()), -AT[c]))
    mean = (2 * total.total() + len(bags)) // (2 * len(bags))
    assert len(item) == mean
    # Whoever gives a category has given all that are nearer to the centre first.
    found = Counter(TAXONOMY.path(int(i)) for i in item)
    assert all(found[c] <= total[c] for c in found)
    reach = [sorted(bag.elements(), key=lambda c: (oracle.delta(TREE, centre, c), AT[c])) for bag in bags]
    assert any(
        found == sum((Counter(line[:n]) for line, n in zip(reach, quota, strict=True)), Counter())
        for quota in quotas_of([len(line) for line in reach], mean)
    )


@given(st.lists(BAG, min_size=2, max_size=8), st.integers(0, 99))
def test_without_semantics_a_record_has_the_most_repeated(bags, seed):
    group = np.zeros(len(bags), np.int32)
    draw = np.random.default_rng(seed).permutation(len(TAXONOMY)).astype(np.uint64)
    _, item = representatives(interests(bags, tree=None), group, draw)
    total = sum(bags, Counter())
    found = Counter(TAXONOMY.path(int(i)) for i in item)
    reach = [sorted(bag.elements(), key=lambda c, bag=bag: (-total[c], -bag[c], draw[AT[c]])) for bag in bags]
    mean = (2 * total.total() + len(bags)) // (2 * len(bags))
    assert any(
        found == sum((Counter(line[:n]) for line, n in zip(reach, quota, strict=True)), Counter())
        for quota in quotas_of([len(line) for line in reach], mean)
    )


def test_the_control_keeps_what_the_group_repeats_and_not_what_comes_first():
    queries = ["aardvark", "zebra", "zebra", "zebra"]
    log = qv.read_log(pa.table({"user": ["a"] * 4 + ["b"] * 4, "query": queries * 2}))
    release = qv.Mdav(k=2, distance="strings").anonymize(log, seed=1)
    counts = Counter(row["query"] for row in pa.Table.from_batches(release.batches()).to_pylist())
    assert counts == {"zebra": 8}
    assert qv.verify(release, log).holds


def quotas_of(sizes, mean):
    """All quotas that add up to the mean: at least 1, if that leaves enough, and at most a user's share, rounded up."""
    n = len(sizes)
    least = [int(mean >= n)] * n
    most = [max(1, -(-size // n)) for size in sizes]
    return [
        quota
        for quota in product(*(range(low, high + 1) for low, high in zip(least, most, strict=True)))
        if sum(quota) == mean
    ]


EVENT = st.tuples(st.integers(0, 9), st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join), st.just(0))


@settings(max_examples=examples(20))
@given(
    st.lists(EVENT, min_size=4, max_size=40),
    st.sampled_from(["semantic", "strings", "features"]),
    st.integers(2, 3),
    st.booleans(),
    st.integers(0, 5),
)
def test_the_verifier_accepts_every_release(taxonomy, events, distance, k, compact, seed):
    log = read(events)
    looked_up = {"taxonomy": taxonomy, "linker": "terms"} if distance == "semantic" else {}
    method = qv.Mdav(k=k, distance=distance, compact=compact, **looked_up)
    linked = {u for u, query, _ in events if distance != "semantic" or set(query.split()) - {"unknown"}}
    if len(linked) < k:
        with pytest.raises(QueryveilError, match="so nothing could be released"):
            method.anonymize(log, seed=seed)
        return
    release = method.anonymize(log, seed=seed)
    assert qv.verify(release, log).holds
    again = method.anonymize(log, seed=seed)
    assert pa.Table.from_batches(release.batches()).equals(pa.Table.from_batches(again.batches()))
    fresh = {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}
    assert set(fresh) == {f"u{u}" for u in linked}


def test_queries_come_from_the_whole_log(taxonomy):
    """Four users who typed `alpha` in their own words; a record may hold the words of others."""
    log = read([(u, f"alpha unknown{u}", 0) for u in range(40)])
    release = qv.Mdav(k=4, taxonomy=taxonomy, linker="terms").anonymize(log, seed=1)
    records = defaultdict(set)
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        records[row["user"]].add(row["query"])
    drawn = set().union(*records.values())
    assert all(len(record) == 1 for record in records.values())
    assert len(drawn) > 3
    share = float(release.notes[1].split("%")[0])
    assert share < 50


def test_users_without_a_category_are_left_out(taxonomy):
    log = read([*((u, "alpha", 0) for u in range(6)), (7, "unknown", 0)])
    release = qv.Mdav(k=2, taxonomy=taxonomy, linker="terms").anonymize(log)
    assert release.manifest.counts.users == 6
    assert "1 user without a category is left out" in release.notes[1]
    assert qv.verify(release, log).holds


def test_users_can_be_grouped_by_text_alone(small_world):
    log, base = small_world.log, small_world.directory
    made = {}
    for linker in ("phrases", "text"):
        release = qv.Mdav(k=3, taxonomy=base, linker=linker).anonymize(log, seed=1)
        assert release.manifest.parameters["linker"] == linker
        assert qv.verify(release, log).holds
        made[linker] = release.to_arrow()
    assert made["text"] != made["phrases"]


def test_explanations_and_parameters_fit_the_distance(taxonomy):
    log = read([(u, "alpha", 0) for u in range(6)])
    semantic = qv.Mdav(k=2, taxonomy=taxonomy, linker="terms").anonymize(log)
    assert "category" in qv.explain(semantic, log, "alpha").reasons[0].rule
    for distance in ("strings", "features"):
        release = qv.Mdav(k=2, distance=distance).anonymize(log)
        assert set(release.manifest.parameters) == {"k", "distance", "compact", "grouping"}
        assert qv.explain(release, log, "alpha").reasons[0].found.startswith("6 users issued it")
        with pytest.raises(
            QueryveilError, match=f"is for the distance semantic; the distance {distance} looks nothing"
        ):
            qv.Mdav(distance=distance, taxonomy=taxonomy)
    with pytest.raises(QueryveilError, match="Links are for the distance semantic"):
        qv.Mdav(k=2).release(log, None, seed=1)
    with pytest.raises(QueryveilError, match="Links are for the distance semantic"):
        qv.Mdav(k=2, distance="strings").release(log, qv.categorize(log, taxonomy), seed=1)
    with pytest.raises(QueryveilError, match="is 9, but the log has only 6 users"):
        qv.Mdav(k=9, taxonomy="not opened at all").anonymize(log)


@pytest.mark.parametrize("distance", ["semantic", "strings", "features"])
def test_threads_and_the_order_of_rows_do_not_matter(distance, tmp_path, monkeypatch):
    monkeypatch.setattr(mdav, "BLOCK", 12)
    words = ["dog", "violin", "chess", "london", "piano", "cat"]
    rows = [
        {"user": f"u{u}", "query": f"{words[(u + w) % 6]} {words[u % 5]}", "url": f"http://{words[u % 6]}.com/"}
        for u in range(36)
        for w in range(3)
    ]
    for name, some, threads in (("a", rows, 1), ("b", rows[::-1], 4)):
        log = qv.read_log(pa.Table.from_pylist(some), threads=threads)
        release = qv.Mdav(k=3, distance=distance, grouping="blocks").anonymize(log, seed=5)
        assert any("3 blocks" in note for note in release.notes)
        release.save(tmp_path / name)
    for file in ("log.parquet", "manifest.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_in_a_pipeline_only_queries_that_earlier_steps_chose_stand_for_a_category():
    queries = ["domestic dog", "fiddle", "a dog", "wolf", "cat", "the violin"]
    rows = [(f"u{i}", query) for i in range(12) for query in (queries[i % 6], "dog", "violin")]
    log = qv.read_log(pa.table({"user": [user for user, _ in rows], "query": [query for _, query in rows]}))
    for seed in range(5):
        release = qv.Pipeline([qv.Equality(k=6), qv.Mdav(k=3)]).anonymize(log, seed=seed)
        assert set(release.to_arrow()["query"].to_pylist()) <= {"dog", "violin"}
