"""Linkers against a literal look-up, and what they cover of a log."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.knowledge import Links, Tree, categorize
from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.directory import build_directory
from queryveil.knowledge.hosts import PARENTS
from queryveil.knowledge.index import Index
from queryveil.knowledge.linkers import categorize_domains, categorize_phrases, categorize_terms
from queryveil.knowledge.links import Items
from queryveil.knowledge.wordnet import wordnet
from queryveil.text import language
from tests.oracles.text import words

ENGLISH = language("en")
PATHS = [
    "Sports/Water Sports/Swimming and Diving",
    "Sports/Water Sports/Windsurfing",
    "Regional/Europe/Mediterranean",
    "Arts",
]


@pytest.fixture(scope="module")
def small():
    """A tree in which `diving` has three categories, and everything else one."""
    taxonomy = Tree.from_paths(pa.array(PATHS))
    at = {taxonomy.path(i): i for i in range(len(taxonomy))}
    texts = ["diving", "diving", "diving", "mediterranean", "windsurfing", "water sports", "art"]
    nodes = [PATHS[0], PATHS[1], "Arts", PATHS[2], PATHS[1], "Sports/Water Sports", "Arts"]
    index = Index.of(pa.array(texts), np.array([at[node] for node in nodes], np.int32))
    hosts = Index.of(pa.array(["dive.example.com", "example.com"]), np.array([at[PATHS[0]], at["Arts"]], np.int32))
    return Taxonomy("small", taxonomy, terms=index, phrases=index, meanings=wordnet().meanings, hosts=hosts)


def paths(links):
    start, nodes = links.nodes()
    return [[links.tree.path(int(n)) for n in nodes[start[q] : start[q + 1]]] for q in range(len(links))]


def test_the_phrases_of_the_paper(small):
    queries = pa.array(["diving in the mediterranean", "windsurfing", "nothing here", ""])
    assert paths(categorize_phrases(queries, small, ENGLISH)) == [[PATHS[0], PATHS[2]], [PATHS[1]], [], []]


def test_a_phrase_loses_words_from_its_left(small):
    links = categorize_phrases(
        pa.array(["cheap family water sports", "water sports bargains", "red art"]), small, ENGLISH
    )
    assert paths(links) == [["Sports/Water Sports"], [], ["Arts"]]
    assert links.items.to_pylist() == ["cheap family water sports", "water sports bargains", "red art"]


def test_terms_have_their_first_categories(small):
    queries = pa.array(["the diving", "diving diving art", "x"])
    assert paths(categorize_terms(queries, small, ENGLISH)) == [[PATHS[0]], [PATHS[0], PATHS[0], "Arts"], []]
    assert paths(categorize_terms(queries, small, ENGLISH, categories=2))[0] == [PATHS[0], PATHS[1]]
    assert paths(categorize_terms(queries, small, ENGLISH, categories=9))[0] == [PATHS[0], PATHS[1], "Arts"]


def test_a_term_that_is_a_host(small):
    queries = pa.array(["diving www.dive.example.com art", "dive.example.com", "none.example.org", "diving"])
    assert paths(categorize_terms(queries, small, ENGLISH, categories=2)) == [
        [PATHS[0], PATHS[1], PATHS[0], "Arts"], [PATHS[0]], [], [PATHS[0], PATHS[1]],
    ]  # fmt: skip


def test_domains_most_specific_first(small):
    urls = pa.array(
        [
            "http://www.dive.example.com/a",
            "http://x.dive.example.com",
            "http://else.example.com",
            "http://none.org",
            None,
        ]
    )
    taxonomy = replace(small, hosts=small.hosts.with_forms(*PARENTS))
    assert paths(categorize_domains(urls, taxonomy)) == [[PATHS[0]], [PATHS[0]], ["Arts"], [], []]


WORD = st.sampled_from(["dog", "dogs", "geese", "the", "new", "york", "xyzzy", "in", "water", "sports", "42", "(cat)"])


@given(st.lists(st.lists(WORD, max_size=5).map(" ".join), max_size=10))
def test_terms_are_looked_up_one_by_one(queries):
    taxonomy = wordnet()
    links = categorize_terms(pa.array(queries, pa.string()), taxonomy, ENGLISH)
    expected = []
    for query in queries:
        found = [int(taxonomy.terms.first(pa.array([word]))[0]) for word in words(query) if word not in ("the", "in")]
        expected.append([taxonomy.tree.path(node) for node in found if node >= 0])
    assert paths(links) == expected


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=8),
    st.lists(st.lists(st.integers(0, 6), max_size=3), min_size=5, max_size=5),
    st.data(),
)
def test_coverage_is_what_counting_says(queries, nodes, data):
    taxonomy = Tree.from_paths(pa.array(PATHS[:3]))
    events = np.array([data.draw(st.integers(1, 5)) for _ in queries], np.int64)
    flat = [node for some in nodes for node in some]
    items = Items(
        np.concatenate([[0], np.cumsum([len(q) for q in queries])]).astype(np.int64),
        np.array([i for q in queries for i in q], np.int32),
        pa.array(list("abcde")),
    )
    first = np.concatenate([[0], np.cumsum([len(some) for some in nodes])]).astype(np.int64)
    links = Links(
        items.start, taxonomy, items.item, items.texts, first, np.array(flat, np.int32), np.ones(len(flat), np.float32)
    )
    for row in links.coverage(events):
        deep = [any(taxonomy.depth[n] >= row.level for n in some) for some in nodes]
        reached = [any(deep[i] for i in query) for query in queries]
        occurrences = [deep[i] for query in queries for i in query]
        assert row.items == pytest.approx(np.mean(deep))
        assert row.occurrences == pytest.approx(np.mean(occurrences) if occurrences else 0)
        assert row.queries == pytest.approx(np.mean(reached) if reached else 0)
        assert row.events == pytest.approx(sum(events[np.array(reached, bool)]) / max(sum(events), 1) if reached else 0)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    path.write_text("user\tquery\na\tdog food\nb\tdog food\nb\txyzzy\n", "utf-8")
    return qv.read_log(path)


def test_a_log_is_linked_by_its_distinct_queries(log):
    links = categorize(log, "wordnet")
    found = dict(zip(log.query_text.to_pylist(), paths(links), strict=True))
    assert [path.split("/")[-1] for path in found["dog food"]] == ["dog", "food"]
    assert found["xyzzy"] == []
    covered = links.coverage(log.events_per_query)[0]
    assert (covered.queries, covered.events) == (0.5, pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"linker": "magic"}, "There is no linker 'magic'; there are terms, phrases, text, domains, embedding"),
        ({"linker": "domains"}, "'wordnet' has no sites, so domains cannot be categorized"),
        ({"categories": 0}, "The number of categories must be from 1 to 10. Got 0"),
    ],
)
def test_what_cannot_be_linked(log, arguments, sentence):
    with pytest.raises(QueryveilError, match=sentence):
        categorize(log, "wordnet", **arguments)


def test_accuracy_is_what_counting_says(small):
    queries = pa.array(["diving", "windsurfing", "mediterranean", "xyzzy", "art"])
    topics = pa.array([f"Top/{path}" for path in (*PATHS[:1], PATHS[0], PATHS[2], PATHS[2])] + [None])
    found = categorize_phrases(queries, small, ENGLISH).accuracy(topics)
    assert [(row.level, row.of_categorized, row.of_all) for row in found] == [
        (1, 1, 3 / 4), (2, 1, 3 / 4), (3, 2 / 3, 2 / 4),
    ]  # fmt: skip


def test_queries_without_a_category_have_that_of_their_clicks(small):
    links = categorize_phrases(
        pa.array(["diving xyzzy", "", "plugh", "art and mediterranean", "qwerty"]), small, ENGLISH
    )
    clicks = categorize_domains(
        pa.array(["http://example.com", "http://dive.example.com", None, "http://example.com", "http://example.com"]),
        small,
    )
    both = links.filled(clicks)
    assert paths(both) == [["Arts"], [PATHS[0]], [], ["Arts", PATHS[2]], ["Arts"]]
    assert both.items.to_pylist()[-2:] == ["example.com", "dive.example.com"]
    assert paths(links.filled(categorize_domains(pa.array([None] * 5, pa.string()), small))) == paths(links)


def test_a_log_with_clicks_is_categorized_by_them_as_well(tmp_path):
    (tmp_path / "t.tsv").write_text(
        "Arts/Music\thttp://music.example.com\nSports\thttp://sports.example.com\n", "utf-8"
    )
    build_directory([tmp_path / "t.tsv"], tmp_path / "d")
    rows = {"user": ["a", "b"], "query": ["xyzzy", "sport"], "url": ["http://music.example.com"] * 2}
    log = qv.read_log(pa.table(rows))
    found = dict(zip(log.query_text.to_pylist(), paths(categorize(log, tmp_path / "d", "phrases")), strict=True))
    assert found == {"xyzzy": ["Arts/Music"], "sport": ["Sports"]}
    assert paths(categorize(log, "wordnet", "phrases"))[log.query_text.to_pylist().index("xyzzy")] == []


SITES = "Arts/Music\thttp://music.example.com\nSports\thttp://sports.example.com\nHome\thttp://plugh-plugh.net\n"


@pytest.mark.parametrize("others", ["", "wordnet,"])
def test_the_text_alone_is_neither_a_site_nor_clicked(tmp_path, others):
    (tmp_path / "t.tsv").write_text(SITES, "utf-8")
    build_directory([tmp_path / "t.tsv"], tmp_path / "d")
    queries = ["xyzzy", "qqq music", "sports.example.com", "plugh-plugh"]
    log = qv.read_log(
        pa.table({"user": list("abcd"), "query": queries, "url": ["http://music.example.com", None, None, None]})
    )
    texts, base = log.query_text.to_pylist(), f"{others}{tmp_path / 'd'}"
    by = {linker: dict(zip(texts, paths(categorize(log, base, linker)), strict=True)) for linker in ("phrases", "text")}
    music = by["text"].pop("qqq music")
    assert music == by["phrases"].pop("qqq music") != []
    assert set(map(str, by["text"].values())) == {"[]"}
    assert by["phrases"] == {"xyzzy": ["Arts/Music"], "sports.example.com": ["Sports"], "plugh-plugh": ["Home"]}


def test_in_wordnet_phrases_are_looked_up_by_text_alone(small_world):
    by_text, by_phrases = (paths(categorize(small_world.log, "wordnet", linker)) for linker in ("text", "phrases"))
    assert by_text == by_phrases


def test_clicks_count_for_queries_and_not_for_phrases(small):
    links = categorize_phrases(pa.array(["diving", "plugh", "qwerty"]), small, ENGLISH)
    clicks = categorize_domains(pa.array([None, "http://example.com", "http://dive.example.com"]), small)
    covered = links.filled(clicks).coverage(np.ones(3, np.int64))[0]
    assert (covered.items, covered.occurrences, covered.queries) == (1 / 3, 1 / 3, 1)
