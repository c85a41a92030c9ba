from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess.measures import f_beta, ncp
from queryveil.assess.reproduce import Figure, carpineto2015, reproduce
from queryveil.assess.reproduce.carpineto2015 import CARPINETO2015
from queryveil.assess.reproduce.published import NONE, Values
from queryveil.errors import QueryveilError
from queryveil.text.show import percent

EQ, HIGH, LOW = "EQ", "AFF θ = 0.9", "AFF θ = 0.8"


@pytest.fixture
def figures(on_request):
    return {figure.name: figure for figure in on_request}


def by_method(figure):
    """The values of each line of a figure."""
    return {name: [row[figure.y] for row in figure.rows if row["method"] == name] for name in (EQ, HIGH, LOW)}


def by(figure):
    """The values of a figure against k and method."""
    return {(row["k"], row["method"]): row[figure.y] for row in figure.rows}


def test_there_is_a_table_for_everything(figures):
    assert list(figures) == [
        "table-2", "figure-5a", "figure-5a-samples", "figure-6", "figure-6-samples", "figure-7", "figure-7-samples",
        "table-5", "figure-5b", "table-4",
    ]  # fmt: skip
    assert [name for name, figure in figures.items() if figure.private] == ["figure-5b", "table-4"]


def test_what_is_released(world, figures):
    log = world[0]
    released = by(figures["figure-5a"])
    assert all(released[k, LOW] >= released[k, HIGH] >= released[k, EQ] for k, _ in released)
    assert released[2, EQ] == (log.users_per_query >= 2).mean()
    release = qv.Affinity(k=5, theta=0.8, min_term_users=2).anonymize(log)
    assert released[5, LOW] == release.manifest.counts.queries / log.n_queries


def test_samples_are_close_to_all(world, monkeypatch):
    monkeypatch.setattr(carpineto2015, "SAMPLE", 200)
    found = {figure.name: figure for figure in reproduce("carpineto2015", *world, ks=[3, 2], thetas=[0.7])}
    exact, sampled = by(found["figure-5a"]), by(found["figure-5a-samples"])
    assert list(exact) == [(2, EQ), (3, EQ), (2, "AFF θ = 0.7"), (3, "AFF θ = 0.7")]
    assert exact != sampled
    for row in found["figure-5a-samples"].rows:
        assert abs(row["released queries"] - exact[row["k"], row["method"]]) < 4 * row["deviation"] / 10**0.5


def test_harmless_queries(world, labels, figures):
    right = {(row["k"], row["method"], row["beta"]): row["F"] for row in figures["figure-6"].rows}
    assert right[2, EQ, 1.0] == right[2, EQ, 0.1] == 1  # equality at k = 2 releases just what is not of one user
    assert all(value is None or value < 1 for (k, name, _), value in right.items() if (k, name) != (2, EQ))
    release = qv.Affinity(k=5, theta=0.9, min_term_users=2).anonymize(world[0])
    assert right[5, HIGH, 0.1] == f_beta(release, world[0], labels, 0.1).value


def test_labels_without_a_harmless_query_are_refused_before_the_work(world):
    log, taxonomy = world
    for queries in (log.query_text, pa.array(["nobody typed this"])):
        all_of_it = pa.table({"query": queries, "sensitive": [True] * len(queries)})
        told = []
        with pytest.raises(QueryveilError, match=r"^No query of the log is labelled as harmless\.$"):
            reproduce("carpineto2015", log, taxonomy, labels=all_of_it, progress=told.append)
        assert not told


def test_samples_without_a_harmless_query_do_not_count(world, monkeypatch):
    """A sample may have no harmless query although the log has one."""
    monkeypatch.setattr(carpineto2015, "SAMPLE", 1)
    log = world[0]
    most = int(log.users_per_query.argmax())
    labels = pa.table({"query": log.query_text, "sensitive": [i != most for i in range(log.n_queries)]})
    found = {figure.name: figure for figure in reproduce("carpineto2015", *world, labels=labels, ks=[2], thetas=[0.9])}
    assert all(row["F"] > 0 for row in found["figure-6"].rows)
    assert all(row["F"] is None for row in found["figure-6-samples"].rows)


def test_a_labelled_query_counts_as_released_if_it_is_sensitive():
    rows = [{"k": k, "method": EQ, "beta": 1.0, "F": f} for k, f in ((2, 0.5), (3, 0.0), (5, None))]
    values = Values([Figure("figure-6", "F", rows, "k", "F", "method", "beta")])
    said = {one.what: one for one in CARPINETO2015.published if one.figure == "figure-6"}
    assert said["the largest k with which equality releases a labelled query"].ours(values) == "k = 3"


def test_findings_of_section_4_3():
    of = {(EQ, 1.0): (0.4, 0.2, None), (HIGH, 1.0): (0.5, 0.2, 0.1), (LOW, 1.0): (0.7, 0.3, 0.3),
          (EQ, 0.01): (0.9, 0.9, None), (HIGH, 0.01): (0.8, 0.9, 0.9), (LOW, 0.01): (0.7, 0.8, 0.9)}  # fmt: skip
    rows = [{"method": method, "beta": beta, "k": k, "F": f}
            for (method, beta), line in of.items() for k, f in zip((2, 5, 10), line, strict=True)]  # fmt: skip
    values = Values([Figure("figure-6", "F", rows, "k", "F", "method", "beta")])
    found = {one.what: one.ours(values) for one in CARPINETO2015.published if one.figure == "figure-6"}
    assert found == {
        "the largest k with which equality releases a labelled query": "k = 5",
        "affinity is better than equality, theta 0.9 and 0.8, beta 1": "in 3 of 4 cases",
        "the same, beta 0.1": NONE,
        "F at theta 0.8 minus F at 0.9, mean over k, beta 1 and 0.1": f"+0.167, {NONE}",
        "the same for a smaller beta; ours: 0.01": "-0.067",
        "F falls from one k to the next, beta 1 and 0.1": "in 4 of 5 cases",
        "the same for a very small beta; ours: 0.01": "in 0 of 5 cases",
    }


def test_tables_beside_the_paper(world, figures):
    log = world[0]
    values = Values(list(figures.values()))
    found = {(one.figure, one.what): one.ours(values) for one in CARPINETO2015.published}
    grams = {(row["n-grams"], row["of"]): row["number"] for row in figures["table-2"].rows}
    distinct = (f"{grams[n, 'all: distinct']:,}" for n in ("unigrams", "bigrams", "trigrams"))
    assert found["table-2", "n-grams of 1, 2 and 3 words, distinct"] == ", ".join(distinct)
    repeated = found["table-2", "concepts of 1, 2 and 3 words, with repetitions"]
    assert repeated.startswith(f"{grams['unigrams', 'concepts, at least 5 users: with repetitions']:,}, ")
    root, *below = [row for row in figures["table-5"].rows if row["of"] == "distinct queries"]
    largest = max(below, key=lambda row: row["number"])
    named = f"{largest['concept'].split(' > ')[-1]} {largest['number']:,}"
    assert found["table-5", "the two largest concepts, and their queries"].startswith(named)
    assert found["table-5", "queries that stay at the root"] == percent(root["number"] / log.n_queries)
    degrees = by_method(figures["table-4"])
    counted = found["table-4", next(what for figure, what in found if figure == "table-4")]
    assert counted == ", ".join(f"{sum(d >= 2 for d in degrees[name])}" for name in (EQ, HIGH, LOW))


def test_cost(world, figures):
    log, taxonomy = world
    cost = by(figures["figure-7"])
    assert all(0 <= value <= 1 for value in cost.values())
    assert all(cost[k, HIGH] <= cost[k, EQ] for k, _ in cost)
    assert all(cost[k, "WNGEN"] <= cost[k, "WNGEN, a concept for one term"] for k, _ in cost)
    assert cost[2, EQ] < cost[50, EQ]
    links = qv.categorize(log, taxonomy)
    assert cost[5, EQ] == pytest.approx(ncp(qv.Equality(k=5).anonymize(log), log, links))
    release = qv.Wngen(k=5).release(log, taxonomy, links, seed=0)
    assert cost[5, "WNGEN"] == pytest.approx(ncp(release, log, links))
    assert cost[5, "WNGEN, a concept for one term"] == pytest.approx(ncp(release, log, links, reading="items"))


def test_runs_of_words(world, figures):
    log = world[0]
    found = {(row["n-grams"], row["of"]): row["number"] for row in figures["table-2"].rows}
    once, users = Counter(), {}
    words = log.tokens.text.to_pylist()
    texts = [[words[word] for word in log.tokens.word[begin:end]] for begin, end in pairwise(log.tokens.start.tolist())]
    for event in log.events.to_pylist():
        text = texts[event["query_id"]]
        for pair in pairwise(text):
            once[pair] += 1
            users.setdefault(pair, set()).add(event["user_id"])
    assert found["bigrams", "all: distinct"] == len(once)
    assert found["bigrams", "all: with repetitions"] == once.total()
    stop = log.language.stop_words
    concepts = [pair for pair in once if len(users[pair]) >= 5 and not set(pair) <= stop]
    assert found["bigrams", "concepts, at least 5 users: distinct"] == len(concepts)
    assert found["bigrams", "concepts, at least 5 users: with repetitions"] == sum(once[pair] for pair in concepts)


def test_a_partition_at_a_depth(world, figures):
    log, taxonomy = world
    found = {(row["concept"], row["of"]): row["number"] for row in figures["table-5"].rows}
    queries = {concept: n for (concept, of), n in found.items() if of == "distinct queries"}
    assert sum(queries.values()) == log.n_queries
    assert all(found[concept, "users"] >= 2 for concept, n in queries.items() if n)
    (root,) = reproduce("carpineto2015", *world, ks=[2], thetas=[0.9], depth=1)[-1].rows[::2]
    assert root == {"concept": taxonomy.tree.names[0].as_py(), "of": "distinct queries", "number": log.n_queries}


def test_one_user(world, busy, labels, figures):
    log = world[0]
    mine = [q for q, u in zip(*(log.query_users[c].to_pylist() for c in ("query_id", "user_id")), strict=True)
            if log.user_text[u].as_py() == busy]  # fmt: skip
    degrees = {theta: qv.Affinity(theta=theta, min_term_users=2).degrees(log, max_degree=200) for theta in (0.9, 0.8)}
    shares = by(figures["figure-5b"])
    assert shares[2, LOW] == pytest.approx(sum(degrees[0.8][q] >= 2 for q in mine) / len(mine))
    everything = reproduce("carpineto2015", *world, ks=[2], user=busy)[-1]
    found = {(row["query"], row["method"]): row["degree"] for row in everything.rows}
    assert {query for query, _ in found} == {log.query_text[q].as_py() for q in mine if degrees[0.8][q] > 1}
    for q in mine:
        text = log.query_text[q].as_py()
        if degrees[0.8][q] > 1:
            assert found[text, EQ] == log.users_per_query[q]
            assert (found[text, HIGH], found[text, LOW]) == (degrees[0.9][q], degrees[0.8][q])
    sensitive = {row["query"] for row in figures["table-4"].rows}
    assert sensitive == {log.query_text[q].as_py() for q in mine if degrees[0.8][q] > 1 and log.users_per_query[q] == 1}


def test_what_cannot_be_run(world):
    for given, why in (
        ({"user": "nobody"}, "The log has no user with this id"),
        ({"ks": [500]}, "'k' parameter of Affinity is 500, but the log has only 150 users"),
        ({"ks": [1]}, "'k' parameter of Affinity must be an integer of at least 2"),
        ({"thetas": [2.0]}, "'theta' parameter of Affinity must be a number"),
    ):
        with pytest.raises(QueryveilError, match=why):
            reproduce("carpineto2015", *world, **given)
