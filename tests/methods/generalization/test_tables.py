"""Generalization by tables: what one machine makes and finds, at any number of rows that a worker may hold."""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import generalized, generalized_tables
from queryveil.claims.base import Evidence
from queryveil.claims.certificates import Certificate
from queryveil.errors import QueryveilError, QueryveilWarning
from queryveil.knowledge.tables import nouns_of_users
from queryveil.methods.generalization import clump, partition_tables, wngen_tables
from queryveil.methods.generalization.common import Transactions
from queryveil.methods.generalization.tables import GROUP, ITEM
from queryveil.release import loaded
from tests.methods.generalization.test_common import EVENTS, FOODS, WORDS, food  # noqa: F401  # a fixture
from tests.strategies import examples, weekly

METHODS = [
    partial(qv.Wngen, k=3),
    partial(qv.Partition, k=3),
    partial(qv.Clump, k=3, grouping="blocks"),
    partial(qv.Clump, k=2, grouping="blocks", order="random", tight=True),
    partial(qv.Clump, k=2, grouping="blocks", clustering="nearest", duplicates=False),
    lambda **given: qv.Pipeline([qv.Scrub(), qv.Wngen(k=3, link="user", **given)]),
]
IDS = ["wngen", "partition", "clump", "random", "nearest", "pipeline"]


def log_of(events):
    return qv.read_log(pa.Table.from_pylist([{"user": f"u{u}", "query": query} for u, query in events]))


@settings(max_examples=examples(15))
@given(EVENTS, st.integers(1, 4), st.sampled_from([0, 12, 10**6]))
def test_concepts_by_tables_are_those_of_the_kernel(food, events, k, worker):  # noqa: F811
    log, method = log_of(events), qv.Wngen(k=max(k, 2), taxonomy=food)
    base, links = method.opened(log)
    with pytest.MonkeyPatch.context() as patch, log.workspace() as work:
        patch.setattr(wngen_tables, "WORKER", worker)
        made = wngen_tables.find_concepts(log, work, base, method.k)
        found = work.fetch(f"SELECT query_id, node FROM {made} ORDER BY query_id")
    assert found["query_id"].to_pylist() == list(range(log.n_queries))
    assert found["node"].to_pylist() == method.concepts(log, links).tolist()


@settings(max_examples=examples(15))
@given(EVENTS, st.sampled_from(METHODS[2:5]), st.integers(1, 4))
def test_clusters_by_tables_are_those_of_arrays(food, events, method, block):  # noqa: F811
    log, made = log_of(events), method(taxonomy=food)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clump, "BLOCK", block)
        try:
            one = made.anonymize(log, seed=2)
        except QueryveilError:
            return
        patch.setattr(clump, "LocalLog", type(None))
        other = made.anonymize(log, seed=2)
    assert one.notes == other.notes
    assert pa.Table.from_batches(one.batches()).equals(pa.Table.from_batches(other.batches()))


TRANSACTIONS = st.lists(
    st.lists(st.sampled_from([*WORDS[:5], *FOODS]), min_size=1, max_size=4).map(" ".join), min_size=2, max_size=24
)


@settings(max_examples=examples(15))
@given(TRANSACTIONS, st.integers(2, 4), st.sampled_from([1, 9, 10**6]))
def test_groups_by_tables_are_those_of_the_kernel(food, transactions, k, worker):  # noqa: F811
    log, method = log_of(enumerate(transactions)), qv.Partition(k=k, taxonomy=food)
    base, links = method.opened(log)
    mine = Transactions.of(log, links)
    bags = method.bags(mine)
    with pytest.MonkeyPatch.context() as patch, log.workspace() as work:
        patch.setattr(partition_tables, "WORKER", worker)
        made = partition_tables.find_groups(log, work, base, nouns_of_users(log, work, base), k)
        items = work.fetch(f"SELECT user_id, node, n FROM {made} WHERE kind = {ITEM} ORDER BY user_id, node")
        sizes = work.fetch(f"SELECT n FROM {made} WHERE kind = {GROUP} ORDER BY n")["n"].to_pylist()
    place = bags.positions(bags.group)
    owner = np.repeat(mine.user, bags.sizes[bags.group])
    assert (items["user_id"].to_pylist(), items["node"].to_pylist()) == (owner.tolist(), bags.node[place].tolist())
    assert not any(items["n"].to_pylist())
    assert sizes == sorted(np.bincount(bags.group).tolist())


def looks(release, log, kept):
    """What is found by arrays, and by tables."""
    with loaded(release, log) as released, log.workspace() as work:
        given = Certificate(0, kept=kept(work))
        claim = release.manifest.claims[0]
        evidence = Evidence(log, work, tuple(release.schema.names), released, given)
        one = claim.look(evidence)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(generalized, "LocalLog", type(None))
            return one, claim.look(evidence)


@settings(max_examples=examples(15))
@given(EVENTS, st.sampled_from([qv.Clump, qv.Partition, qv.Wngen]), st.sampled_from([10**7, 0]), st.data())
def test_the_verdict_by_tables_is_that_of_arrays(food, events, method, pairs, data):  # noqa: F811
    log = log_of(events)
    try:
        release = method(k=2, taxonomy=food).anonymize(log)
    except QueryveilError:
        return
    rows = pa.Table.from_batches(release.batches()).to_pylist()
    tree = qv.open_taxonomy(food).tree
    for row in data.draw(st.lists(st.sampled_from(rows), max_size=3)):
        row["node"] = data.draw(st.integers(0, len(tree) - 1))
        row["item"] = tree.names[row["node"]].as_py()
    table = pa.Table.from_pylist(rows, release.schema)
    forged = replace(release, batches=lambda: iter(table.to_batches()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generalized, "PAIRS", pairs)
        one, other = looks(forged, log, lambda work: {})
    assert one.counterexample == other.counterexample
    name, witness = next(iter(release.certificate.tables.items()))
    lie = data.draw(st.sampled_from([np.arange(len(witness)), np.arange(len(witness))[::-1]]))
    told = witness.set_column(1, witness.column_names[1], witness[1].take(pa.array(lie)))
    one, other = looks(forged, log, lambda work: {name: work.read(told)})
    assert one.counterexample == other.counterexample


def test_few_bags_of_a_large_log_are_compared_with_all_users(food, monkeypatch):  # noqa: F811
    monkeypatch.setattr(generalized, "PAIRS", 0)
    monkeypatch.setattr(generalized_tables, "DRAWN", 1)
    log = log_of([(u, "apple" if u < 4 else "beef milk") for u in range(8)])
    release = qv.Clump(k=2, taxonomy=food).anonymize(log)
    found = looks(release, log, lambda work: {})[1]
    assert found.counterexample is None
    assert found.how.startswith("1 distinct bags, drawn at random, were compared with all users")
    found = looks(release, log, lambda work: {"members": work.read(release.certificate.tables["members"])})[1]
    assert found.how == "all 8 users have the bag that the certificate names for them"


@pytest.fixture(scope="module")
def foods():
    """A log with queries of some and of no nouns, for all tests on Spark."""
    draw = np.random.default_rng(1)
    words = np.array([*WORDS, *FOODS, "unknown"])
    rows = [(f"u{draw.integers(30)}", " ".join(draw.choice(words, draw.integers(1, 4)))) for _ in range(90)]
    return pa.Table.from_pylist([{"user": user, "query": query} for user, query in rows])


@pytest.mark.parametrize("small", [False, pytest.param(True, marks=weekly)], ids=["whole", "cut"])
@pytest.mark.parametrize("method", [*METHODS[:3], *(pytest.param(one, marks=weekly) for one in METHODS[3:])], ids=IDS)
def test_the_release_on_spark_is_that_of_one_machine_and_is_verified_there(
    food,  # noqa: F811
    foods,
    read_on_spark,
    method,
    small,
    tmp_path,
    monkeypatch,
):
    """Also if workers hold a few rows, so that steps by tables and several blocks are needed."""
    if small:
        monkeypatch.setattr(wngen_tables, "WORKER", 60)
        monkeypatch.setattr(partition_tables, "WORKER", 40)
        monkeypatch.setattr(clump, "BLOCK", 8)
        monkeypatch.setattr(generalized, "PAIRS", 0)
    local, there = qv.read_log(foods), read_on_spark(foods)
    made = method(taxonomy=food)
    one, other = (made.anonymize(log, seed=4) for log in (local, there))
    assert one.manifest == other.manifest
    assert one.notes == other.notes
    rows = pa.Table.from_batches(list(one.batches()), one.schema)
    assert len(set(rows["node"].to_pylist())) > 3
    other.save_certificate(tmp_path / "r.certificate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queryveil.claims.certificates.MOST_ROWS", 1)
        with pytest.warns(QueryveilWarning, match="The certificate holds only the seed"):
            other.save_certificate(tmp_path / "seed.certificate")
    assert qv.load_certificate(tmp_path / "seed.certificate").tables == {}
    verdicts = other.save(tmp_path / "r")
    assert "certificate names" in " ".join(verdict.how or "" for verdict in verdicts)
    saved = qv.Release.load(tmp_path / "r")
    assert rows.equals(pa.Table.from_batches(list(saved.batches()), saved.schema))
    found = qv.verify(tmp_path / "r", there)
    assert found.holds, found
    # What an auditor is given names the ids of one machine, wherever it was made, and is as good on a cluster.
    given = qv.load_certificate(tmp_path / "r.certificate")
    assert {name: table.to_pylist() for name, table in given.tables.items()} == {
        name: table.to_pylist() for name, table in one.certificate.tables.items()
    }
    found = qv.verify(tmp_path / "r", there, certificate=given)
    assert found.holds, found
    assert "certificate names" in " ".join(verdict.how or "" for verdict in found.verdicts)
