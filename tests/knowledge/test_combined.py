"""Several taxonomies as one: one tree, the first that finds something wins, and releases that say which they were."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.knowledge import Tree, categorize_texts, known_as, open_taxonomy, recall_taxonomy, taxonomy_name
from queryveil.knowledge.directory import build_directory
from queryveil.text import language

QUERIES = ["dog", "xyzzy lamps", "a dog and a violin", "plugh.example.com", "qwerty", "lamp"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("taxonomies")
    for name, lines in (
        ("sites.qvd", "Home/Lamps\thttp://plugh.example.com\nHome/Dogs\thttp://dogs.example.com\n"),
        ("names.qvd", "Keys/Qwerty\nKeys/Lamps\n"),
    ):
        (place / "dump").write_text(lines, "utf-8")
        build_directory([place / "dump"], place / name)
    return place


def found(taxonomy, linker="phrases", **options):
    links = categorize_texts(pa.array(QUERIES), taxonomy, linker, language(), **options)
    start, nodes = links.nodes()
    return [
        [links.tree.path(int(n)).split("/", 1)[-1] if n else "" for n in nodes[start[q] : start[q + 1]]]
        for q in range(len(QUERIES))
    ]


def test_the_first_that_finds_something_wins(folder):
    alone = [found(open_taxonomy(name)) for name in ("wordnet", folder / "sites.qvd", folder / "names.qvd")]
    for order in ((0, 1, 2), (1, 0, 2), (2, 1)):
        name = ",".join(str(("wordnet", folder / "sites.qvd", folder / "names.qvd")[i]) for i in order)
        combined = found(open_taxonomy(name))
        for q in (0, 4, 5):  # one item each
            assert combined[q] == next((alone[i][q] for i in order if alone[i][q]), [])
    assert found(open_taxonomy(f"{folder / 'names.qvd'},{folder / 'sites.qvd'}"))[3] == ["Lamps"]  # by its host
    two = open_taxonomy(f"{folder / 'sites.qvd'},{folder / 'names.qvd'}")
    assert found(two, categories=2)[5] == ["Lamps", "Lamps"]
    assert len(set(categorize_texts(pa.array(["lamp"]), two, "phrases", language(), categories=2).node.tolist())) == 2
    assert found(two, "terms")[5] == ["Lamps"]
    assert found(two, "embedding")[5] == ["Lamps"]


@given(st.lists(st.lists(st.sampled_from(["a", "b/c", "b/d", "e/f/g"]), min_size=1), min_size=1, max_size=3))
def test_nodes_keep_their_place_below_the_common_root(paths):
    trees = [Tree.from_paths(pa.array(some), root=f"root {i}") for i, some in enumerate(paths)]
    one = Tree.under_one_root(trees)
    shift = 0
    for tree in trees:
        for node in range(1, len(tree)):
            assert one.path(node + shift) == tree.path(node)
            assert one.depth[node + shift] == tree.depth[node]
            assert one.end[node + shift] - shift == tree.end[node]
        shift += len(tree) - 1
    assert len(one) == shift + 1
    assert one.leaves[0] == sum(tree.leaves[0] for tree in trees)
    assert np.all(np.diff(one.parent[1:][one.depth[1:] == 1]) == 0)


def test_a_release_says_which_taxonomies_it_was_made_with(folder, tmp_path, monkeypatch):
    name = f"wordnet,{folder / 'sites.qvd'}"
    log = qv.read_log(pa.table({"user": [f"u{i}" for i in range(6)], "query": QUERIES}))
    assert taxonomy_name(name) == "wordnet,sites.qvd"
    for method in (qv.Mdav(k=2, taxonomy=name), qv.Odp(k=2, taxonomy=name), qv.Clump(k=2, taxonomy=name)):
        release = method.anonymize(log, seed=1)
        assert release.manifest.parameters["taxonomy"] == "wordnet,sites.qvd"
        release.save(tmp_path / method.name)
        found = qv.verify(tmp_path / method.name, log, certificate=release.certificate, rebuild=True)
        assert found.holds
    monkeypatch.setattr("queryveil.knowledge._opened", {})
    with pytest.raises(QueryveilError, match=r"'wordnet,sites\.qvd', which is not here"):
        recall_taxonomy("wordnet,sites.qvd")
    known_as("wordnet,sites.qvd", folder / "sites.qvd")
    whole = recall_taxonomy("wordnet,sites.qvd")
    assert whole.source == name
    assert whole.digest == open_taxonomy(name).digest != open_taxonomy(folder / "sites.qvd").digest
    # Of two folders with one name, the digest says which.
    (tmp_path / "dump").write_text("Other\thttp://a.example.com\n", "utf-8")
    build_directory([tmp_path / "dump"], tmp_path / "sites.qvd")
    known_as("wordnet,sites.qvd", f"wordnet,{tmp_path / 'sites.qvd'}")
    assert recall_taxonomy("wordnet,sites.qvd").digest != whole.digest
    assert recall_taxonomy("wordnet,sites.qvd", whole.digest).source == name


def test_what_cannot_be_combined():
    with pytest.raises(QueryveilError, match="'wordnet' is named twice"):
        open_taxonomy("wordnet, wordnet")
    with pytest.raises(QueryveilError, match=r"There is no taxonomy 'nowhere\.qvd'"):
        open_taxonomy("wordnet,nowhere.qvd")
    for name in ("wordnet,", ",wordnet", "wordnet,,x", ","):
        with pytest.raises(QueryveilError, match=f"The taxonomy '{name}' has a comma with nothing beside it"):
            open_taxonomy(name)
