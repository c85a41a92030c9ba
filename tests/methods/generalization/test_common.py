"""Clump, Partition and WNGEN from log to release: the paper's example, verified releases, refuted forgeries."""

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil import knowledge as module
from queryveil.assess.measures import generalization_loss, ncp, transaction_density
from queryveil.assess.measures.generalization import concept_costs
from queryveil.claims import generalized
from queryveil.errors import QueryveilError
from queryveil.knowledge.directory import build_directory
from queryveil.methods.generalization.common import Transactions
from tests.knowledge import rdf
from tests.oracles import ncp as oracle
from tests.oracles.directory import Site
from tests.strategies import examples

FOODS = {"fruit": ["apple", "orange", "banana"], "meat": ["chicken", "beef"], "dairy": ["milk", "butter", "cheese"]}
WORDS = [food for foods in FOODS.values() for food in foods]
ABOVE = {food: kind for kind, foods in FOODS.items() for food in foods} | dict.fromkeys(FOODS, "Top")
FIVE = ["orange chicken beef", "banana beef cheese", "chicken milk butter", "apple chicken", "chicken beef"]


@pytest.fixture(scope="module")
def food(tmp_path_factory):
    """The paper's tree of food."""
    folder = tmp_path_factory.mktemp("food")
    (folder / "s").write_text(rdf.structure([f"{ABOVE[word]}/{word}" for word in WORDS]), "utf-8")
    sites = [Site(f"{ABOVE[word]}/{word}", f"{word}.example.com", word, "") for word in WORDS]
    (folder / "c").write_text(rdf.content(sites), "utf-8")
    build_directory([folder / "s", folder / "c"], folder / "food.qvd")
    return str(folder / "food.qvd")


def read(queries):
    """A log of one query a user, or of several."""
    rows = [
        {"user": f"u{u}", "query": query}
        for u, mine in enumerate(queries)
        for query in ([mine] if isinstance(mine, str) else mine)
    ]
    return qv.read_log(pa.Table.from_pylist(rows))


def bags(release):
    """The items of every released user, by the original name."""
    fresh = {row["released"]: row["original"] for batch in release.user_map() for row in batch.to_pylist()}
    found = defaultdict(Counter)
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        found[fresh[row["user"]]][row["item"]] += 1
    return dict(found)


def test_the_five_transactions_of_the_paper(food):
    log = read(FIVE)
    release = qv.Clump(k=2, taxonomy=food).anonymize(log)
    pair, three = Counter(["fruit", "beef", "Top"]), Counter(["chicken", "Top"])
    assert bags(release) == {"u0": pair, "u1": pair, "u2": three, "u3": three, "u4": three}
    loss = generalization_loss(release, log, qv.categorize(log, food))
    assert loss.distortion == pytest.approx(float(Fraction(46, 7)))
    assert loss.per_item == pytest.approx(float(Fraction(46, 7 * 13)))
    assert loss.length == pytest.approx((2 * 3 + 3 * 2) / 5)
    assert loss.level == pytest.approx((2 * (2 + 3 + 1) + 3 * (3 + 1)) / 12)
    assert qv.verify(release, log).holds
    assert transaction_density(Transactions.of(log, qv.categorize(log, food))) == 13 / (5 * 8)


def test_partition_of_the_five_transactions(food):
    log = read(FIVE)
    release = qv.Partition(k=2, taxonomy=food).anonymize(log)
    two, others = Counter(["fruit", "meat"]), Counter(["Top"])
    assert bags(release) == {"u0": two, "u3": two, "u1": others, "u2": others, "u4": others}
    loss = generalization_loss(release, log, qv.categorize(log, food))
    assert loss.distortion == pytest.approx(float(Fraction(69, 7)))
    assert qv.verify(release, log).holds


def test_duplicates_can_be_removed(food):
    log = read(["orange apple", "banana cheese orange milk", "banana apple"])
    assert bags(qv.Clump(k=3, taxonomy=food).anonymize(log))["u0"] == Counter({"fruit": 2})
    assert bags(qv.Clump(k=3, taxonomy=food, duplicates=False).anonymize(log))["u0"] == Counter({"fruit": 1})


QUERY = st.lists(st.sampled_from([*WORDS, *FOODS, "unknown"]), min_size=1, max_size=3).map(" ".join)
EVENTS = st.lists(
    st.tuples(st.integers(0, 8), QUERY),
    min_size=4,
    max_size=30,
)
METHODS = [
    (qv.Clump, {}),
    (qv.Clump, {"order": "ascending", "r": 2, "duplicates": False}),
    (qv.Clump, {"order": "random", "tight": True, "leftover": "growth"}),
    (qv.Clump, {"clustering": "nearest"}),
    (qv.Clump, {"clustering": "nearest", "tight": True}),
    (qv.Partition, {}),
    (qv.Wngen, {}),
    (qv.Wngen, {"link": "none"}),
]


@settings(max_examples=examples(15))
@given(EVENTS, st.sampled_from(METHODS), st.integers(2, 3), st.integers(0, 3))
def test_the_verifier_accepts_every_release(food, events, method, k, seed):
    log = qv.read_log(pa.Table.from_pylist([{"user": f"u{u}", "query": query} for u, query in events]))
    made = method[0](k=k, taxonomy=food, **method[1])
    users = {u for u, query in events if made.name == "wngen" or set(query.split()) - {"unknown"}}
    if len(users) < k:
        with pytest.raises(QueryveilError, match="so nothing could be released"):
            made.anonymize(log, seed=seed)
        return
    release = made.anonymize(log, seed=seed)
    verdicts = qv.verify(release, log).verdicts
    assert all(verdict.holds for verdict in verdicts), verdicts
    again = made.anonymize(log, seed=seed)
    assert pa.Table.from_batches(release.batches()).equals(pa.Table.from_batches(again.batches()))
    if made.name == "wngen":
        return
    found = bags(release)
    assert set(found) == {f"u{u}" for u in users}
    shared = Counter(frozenset(bag.items()) for bag in found.values())
    assert min(shared.values()) >= k
    loss = generalization_loss(release, log, qv.categorize(log, food))
    lm = {"Top": 1, "fruit": 2 / 7, "meat": 1 / 7, "dairy": 2 / 7}
    had = sum(len({w for v, query in events if v == u for w in query.split()} - {"unknown"}) for u in users)
    shown = [item for bag in found.values() for item in bag.elements()]
    assert loss.distortion == pytest.approx(sum(lm.get(item, 0) for item in shown) + had - len(shown))
    assert loss.distortion >= 0
    for user, bag in found.items():
        nouns = {word for u, query in events if f"u{u}" == user for word in query.split()} - {"unknown"}
        assert stands_for(list(bag.elements()), nouns)


def stands_for(items, nouns):
    """Whether each item can have a noun of its own at or below it, by trying."""
    if not items:
        return True
    return any(stands_for(items[1:], nouns - {noun}) for noun in nouns if items[0] in (noun, ABOVE[noun], "Top"))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda row: row | {"item": "dairy"} if row["item"] == "fruit" else row, "is not the name of node"),
        (lambda row: row | {"user": 1} if row["item"] == "beef" else row, "fewer than 2 users"),
        (lambda row: row | {"item": "banana", "node": "banana"} if row["item"] == "fruit" else row, "fits 1 users"),
        (lambda row: row | {"item": "orange", "node": "orange"} if row["item"] == "fruit" else row, "fits 1 users"),
        (lambda row: row | {"item": "meat", "node": "meat"} if row["item"] == "Top" else row, "fits"),
    ],
    ids=["renamed", "moved", "banana", "orange", "meat"],
)
def test_what_is_no_generalization_is_refuted(food, change, why, whole, monkeypatch):
    if not whole:
        monkeypatch.setattr(generalized, "PAIRS", 1)
    log = read(FIVE)
    tree = qv.open_taxonomy(food).tree
    at = {tree.names[i].as_py(): i for i in range(len(tree))}
    release = qv.Clump(k=2, taxonomy=food).anonymize(log)
    rows = [change(row) for row in pa.Table.from_batches(release.batches()).to_pylist()]
    rows = [row | {"node": at[row["node"]]} if isinstance(row["node"], str) else row for row in rows]
    table = pa.Table.from_pylist(rows, release.schema)
    forged = replace(release, batches=lambda: iter(table.to_batches()))
    wrong = [verdict for verdict in qv.verify(forged, log).verdicts if not verdict.holds]
    assert any("bag" in verdict.claim and why in verdict.counterexample for verdict in wrong), wrong


def test_bags_that_fit_one_by_one_but_not_together_are_refuted(food):
    """Two bags of oranges and two of fruit; only the two with oranges fit the first, and only they are left for it."""
    log = read(["orange beef", "orange milk", "apple beef", "banana milk"])
    release = qv.Clump(k=2, taxonomy=food).anonymize(log)
    tree = qv.open_taxonomy(food).tree
    at = {tree.names[i].as_py(): i for i in range(len(tree))}

    def verdict(one, other):
        rows = [
            {"user": user, "item": item, "node": at[item]}
            for user in range(1, 5)
            for item in (one if user < 3 else other)
        ]
        table = pa.Table.from_pylist(rows, release.schema)
        forged = replace(release, batches=lambda: iter(table.to_batches()))
        return next(v for v in qv.verify(forged, log).verdicts if "bag" in v.claim)

    assert verdict(["orange", "Top"], ["fruit", "Top"]).holds
    found = verdict(["orange", "Top"], ["fruit", "beef"])
    assert not found.holds
    assert "left without a user" in found.counterexample


def forged(release, rows, food, **manifest):
    """The release with other rows, a user and an item each, and another manifest."""
    tree = qv.open_taxonomy(food).tree
    at = {tree.names[i].as_py(): i for i in range(len(tree))}
    table = pa.Table.from_pylist([{"user": u, "item": item, "node": at[item]} for u, item in rows], release.schema)
    return replace(
        release,
        manifest=release.manifest.model_copy(update=manifest),
        batches=lambda: iter(table.select(release.schema.names).to_batches()),
    )


def refuted(release, log):
    return " ".join(v.counterexample or v.claim for v in qv.verify(release, log).verdicts if not v.holds)


def test_one_user_cannot_pose_as_k(food):
    """One person asked for apples five times; under five fresh ids that is still one person."""
    log = read([["apple"] * 5, *["chicken"] * 5])
    release = qv.Wngen(k=5, taxonomy=food).anonymize(log)
    rows = [*((u, "apple") for u in range(1, 6)), *((u, "chicken") for u in range(1, 6))]
    assert "'apple' fits queries of fewer than 5 users" in refuted(forged(release, rows, food), log)


@pytest.mark.parametrize("whole", [True, False])
def test_a_query_with_two_nouns_stands_once(food, whole, monkeypatch):
    """Five asked for apple beef, five for what is no noun: apples and beef cannot both be there five times."""
    log = read(["apple beef"] * 5 + ["unknown"] * 5)
    release = qv.Wngen(k=5, taxonomy=food).anonymize(log)
    rows = [*((u, "apple") for u in range(1, 6)), *((u, "beef") for u in range(6, 11))]
    if not whole:
        monkeypatch.setattr(generalized, "PAIRS", 1)
    found = refuted(forged(release, rows, food), log)
    assert ("5 events are left without a concept" in found) == whole  # a large log is checked node by node alone


def test_all_bags_are_looked_at_even_where_no_assignment_is_looked_for(food, monkeypatch):
    """Nobody has two nouns of milk and butter but one; the other bag fits all who have it."""
    monkeypatch.setattr(generalized, "PAIRS", 1)
    log = read(FIVE)
    release = qv.Clump(k=2, taxonomy=food).anonymize(log)
    rows = [
        *((u, i) for u in (1, 2) for i in ("milk", "butter")),
        *((u, i) for u in (3, 4, 5) for i in ("chicken", "Top")),
    ]
    assert "the bag of user 1 fits 1 users of the log, not 2" in refuted(forged(release, rows, food), log)


def verdict_of(release, log, certificate):
    """The verdict on bags or concepts."""
    bare = replace(release, certificate=None)
    found = qv.verify(bare, log, certificate=certificate).verdicts
    return next(v for v in found if "generalize" in v.claim or "concept" in v.claim)


@settings(max_examples=examples(15))
@given(EVENTS, st.sampled_from(METHODS), st.data())
def test_a_certificate_helps_and_is_not_believed(food, events, method, data):
    log = qv.read_log(pa.Table.from_pylist([{"user": f"u{u}", "query": query} for u, query in events]))
    made = method[0](k=2, taxonomy=food, **method[1])
    try:
        release = made.anonymize(log)
    except QueryveilError:
        return
    assert verdict_of(release, log, None).holds
    found = verdict_of(release, log, release.certificate)
    assert found.holds
    assert "the certificate names" in found.how
    (name, table), *_ = release.certificate.tables.items()
    numbers = st.integers(-2, 12)
    columns = [
        data.draw(st.permutations(column.to_pylist()) | st.lists(numbers, min_size=len(table), max_size=len(table)))
        for column in table.columns
    ]
    lie = qv.Certificate(0, {name: pa.table(columns, names=table.column_names)})
    assert verdict_of(release, log, lie).holds


def test_a_certificate_does_not_save_a_bag_that_fits_nobody(food):
    log = read(FIVE)
    release = qv.Clump(k=2, taxonomy=food).anonymize(log)
    rows = [(u, i) for u in range(1, 6) for i in ("milk", "butter")]
    for users in ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], [0, 1, 2, 3, 99]):
        members = pa.table({"user_id": [2, 2, 2, 2, 2] if users[1] == 1 else [0, 1, 2, 3, 4], "user": users})
        found = verdict_of(forged(release, rows, food), log, qv.Certificate(0, {"members": members}))
        assert not found.holds


def test_a_certificate_does_not_save_concepts_that_fit_no_query(food):
    log = read(["apple beef"] * 5 + ["unknown"] * 5)
    release = qv.Wngen(k=5, taxonomy=food, link="none").anonymize(log)
    rows = [*((u, "apple") for u in range(1, 6)), *((u, "beef") for u in range(6, 11))]
    changed = forged(release, rows, food)
    tree = qv.open_taxonomy(food).tree
    at = {tree.names[i].as_py(): i for i in range(len(tree))}
    lies = (
        {"query_id": [0, 1], "node": [at["apple"], at["beef"]], "events": [5, 5]},
        {"query_id": [0, 0], "node": [at["apple"], at["beef"]], "events": [5, 5]},
        {"query_id": [0, 0, 1, 1], "node": [at["apple"], at["beef"]] * 2, "events": [10, -5, -5, 10]},
    )
    for lie in lies:
        for ids in ([0, 1], [1, 0]):
            told = lie | {"query_id": [ids[q] for q in lie["query_id"]]}
            found = verdict_of(changed, log, qv.Certificate(0, {"concepts": pa.table(told)}))
            assert "5 events are left without a concept" in found.counterexample


def test_what_parameters_say_of_the_table_is_checked(food):
    log = read(["orange apple", "banana cheese orange milk", "banana apple"])
    once = qv.Clump(k=3, taxonomy=food, duplicates=False).anonymize(log)
    twice = [(u, "fruit") for u in (1, 2, 3) for _ in range(2)]
    assert "has an item more than once" in refuted(forged(once, twice, food), log)
    dropped = qv.Wngen(k=3, taxonomy=food, link="none").anonymize(log)
    fresh = qv.Wngen(k=3, taxonomy=food, link="user").anonymize(log)
    posed = replace(fresh, manifest=fresh.manifest.model_copy(update={"parameters": dropped.manifest.parameters}))
    assert "it makes 2 claims" in refuted(posed, log)


@pytest.mark.parametrize("method", [qv.Clump, qv.Wngen])
def test_every_number_of_the_manifest_is_checked(food, method):
    log = read(FIVE)
    release = method(k=2, taxonomy=food).anonymize(log)
    assert qv.verify(release, log).holds
    counts, bands = release.manifest.counts, release.manifest.bands
    kept = tuple(band.model_copy(update={"kept_queries": band.queries}) for band in bands)
    for change in (
        {"counts": counts.model_copy(update={"events": 99})},
        {"counts": counts.model_copy(update={"clicks": 7})},
        {"counts": counts.model_copy(update={"queries": 9})},
        {"bands": kept},
    ):
        wrong = replace(release, manifest=release.manifest.model_copy(update=change))
        refuted = [verdict.claim for verdict in qv.verify(wrong, log).verdicts if not verdict.holds]
        assert refuted == ["All counts in the manifest are correct."]


def test_twins_find_each_other():
    """Pairs of users with one and the same noun of a large tree lose nothing in clusters of the nearest."""
    tree = qv.open_taxonomy("wordnet").tree
    nouns = [tree.names[i].as_py() for i in range(1000, 60000, 97) if tree.end[i] == i + 1]
    single = list(dict.fromkeys(noun for noun in nouns if noun.isalpha() and len(noun) > 6))[:300]
    log = read([noun for noun in single for _ in range(2)])
    release = qv.Clump(k=2, clustering="nearest", tight=True).anonymize(log)
    lost = generalization_loss(release, log, qv.categorize(log))
    assert lost.per_item < 0.02


def test_options_without_effect_are_refused(food):
    for name, value in (("r", 5), ("order", "random"), ("leftover", "growth")):
        with pytest.raises(QueryveilError, match=f"'{name}' parameter of Clump is only for the clustering greedy"):
            qv.Clump(clustering="nearest", **{name: value})
    release = qv.Clump(k=2, taxonomy=food, clustering="nearest").anonymize(read(FIVE))
    assert not {"r", "order", "leftover"} & set(release.manifest.parameters)


def test_a_directory_is_known_by_its_own_name(food, tmp_path, monkeypatch):
    import shutil

    monkeypatch.chdir(food)
    release = qv.Clump(k=2, taxonomy=".").anonymize(read(FIVE))
    assert release.manifest.parameters["taxonomy"] == "food.qvd"
    shutil.copytree(food, tmp_path / "wordnet")
    with pytest.raises(QueryveilError, match="cannot be called 'wordnet', which is built in"):
        qv.Clump(k=2, taxonomy=str(tmp_path / "wordnet")).anonymize(read(FIVE))


@pytest.mark.parametrize("link", ["none", "user"])
@pytest.mark.parametrize(("old", "new"), [("fruit", "apple"), ("Top", "milk"), ("meat", "chicken")])
def test_a_concept_that_is_none_of_its_queries_is_refuted(food, old, new, link):
    log = read(["orange", "apple", "chicken", "beef", "unknown", "else"])
    release = qv.Wngen(k=2, taxonomy=food, link=link).anonymize(log)
    tree = qv.open_taxonomy(food).tree
    at = {tree.names[i].as_py(): i for i in range(len(tree))}
    rows = pa.Table.from_batches(release.batches()).to_pylist()
    assert Counter(row["item"] for row in rows) == {"fruit": 2, "meat": 2, "Top": 2}
    rows = [row | {"item": new, "node": at[new]} if row["item"] == old else row for row in rows]
    table = pa.Table.from_pylist(rows, release.schema)
    forged = replace(release, batches=lambda: iter(table.to_batches()))
    wrong = [verdict for verdict in qv.verify(forged, log).verdicts if not verdict.holds]
    assert any("concept" in verdict.claim for verdict in wrong)


def test_ncp_is_the_mean_of_all_terms(food):
    log = read(["orange pie", "apple", "chicken", "beef", "unknown", "orange pie", "else"])
    links = qv.categorize(log, food)
    # fruit stands for three terms of nine, meat for two; pie twice, unknown and else are lost.
    wngen = qv.Wngen(k=2, taxonomy=food).anonymize(log)
    for reading in ("terms", "items"):
        assert ncp(wngen, log, links, reading=reading) == pytest.approx((3 * 3 / 8 + 2 * 2 / 8 + 4) / 9)
    assert ncp(qv.Equality(k=2).anonymize(log), log, links) == pytest.approx(5 / 9)
    assert ncp(qv.Rules(max_characters=99).anonymize(log), log, links) == 0
    with pytest.raises(QueryveilError, match="NCP is for releases of the log's own events"):
        ncp(qv.Odp(k=2, taxonomy=food).anonymize(log), log, links)
    with pytest.raises(QueryveilError, match="GGD is for releases of items per user"):
        generalization_loss(qv.Equality(k=2).anonymize(log), log, links)


def test_costs_are_of_the_tree_of_the_release(food):
    log = read(FIVE)
    other = qv.categorize(log, "wordnet")
    sentence = r"not in the taxonomy that the release was made with; use taxonomy='food\.qvd'"
    for reading in ("terms", "items"):
        with pytest.raises(QueryveilError, match=sentence):
            ncp(qv.Wngen(k=2, taxonomy=food).anonymize(log), log, other, reading=reading)
    with pytest.raises(QueryveilError, match=sentence):
        generalization_loss(qv.Clump(k=2, taxonomy=food).anonymize(log), log, other)
    # What holds queries has no tree.
    assert ncp(qv.Rules(max_characters=99).anonymize(log), log, other) == 0


def test_ncp_of_queries_with_several_nouns(food):
    """By terms every noun is generalized until it covers the concept; by items a concept stands for one noun."""
    log = read(["orange apple", "banana the", "beef apple", "chicken", "beef"])
    links = qv.categorize(log, food)
    release = qv.Wngen(k=2, taxonomy=food).anonymize(log)
    assert Counter(row["item"] for row in release.to_arrow().to_pylist()) == {"fruit": 3, "meat": 2}
    # The beef of the third query is generalized to the root, which covers fruit.
    assert ncp(release, log, links) == pytest.approx((4 * 3 / 8 + 1 + 1 + 2 * 2 / 8) / 8)
    assert ncp(release, log, links, reading="items") == pytest.approx((3 * 3 / 8 + 3 + 2 * 2 / 8) / 8)


NODES = st.sampled_from(["Top", *FOODS, *WORDS])


@settings(max_examples=30)
@given(st.lists(st.tuples(QUERY, NODES), min_size=1, max_size=8, unique_by=lambda pair: pair[0]))
def test_the_cost_of_concepts_is_that_of_the_oracle(food, pairs):
    concept = dict(pairs)
    log = read(list(concept))
    links = qv.categorize(log, food)
    at = {name: i for i, name in enumerate(links.tree.names.to_pylist())}
    texts = log.query_text.to_pylist()
    node = np.array([at[concept[text]] for text in texts], np.int32)
    for reading in ("terms", "items"):
        expected = [oracle.cost({"Top": None} | ABOVE, text.split(), concept[text], reading) for text in texts]
        assert concept_costs(log, links, node, reading).tolist() == pytest.approx([float(cost) for cost in expected])


def test_a_release_is_verified_where_the_tree_lies(food, tmp_path, monkeypatch):
    log = read(FIVE)
    qv.Clump(k=2, taxonomy=food).anonymize(log).save(tmp_path / "r", format="csv")
    assert qv.Release.load(tmp_path / "r").manifest.parameters["taxonomy"] == "food.qvd"
    assert qv.verify(tmp_path / "r", log).holds
    monkeypatch.setattr(module, "_opened", {})
    with pytest.raises(QueryveilError, match="which is not here; name its folder with 'taxonomy'"):
        qv.verify(tmp_path / "r", log)
    monkeypatch.setattr(module, "_opened", {"food.qvd": ("wordnet",)})
    assert not qv.verify(tmp_path / "r", log).holds


def test_why_a_query_is_not_there(food):
    log = read(FIVE)
    release = qv.Clump(k=2, taxonomy=food).anonymize(log)
    found = qv.explain(release, log, "apple chicken")
    assert not found.released
    assert found.reasons[1].found == "'apple', 'chicken'"


def test_a_measure_of_records_refuses_items(food):
    from queryveil.assess.measures import record_linkage

    with pytest.raises(QueryveilError, match="with users and queries"):
        record_linkage(qv.Clump(k=2, taxonomy=food).anonymize(read(FIVE)))
