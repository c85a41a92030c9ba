"""Taxonomies in other languages: World in the English tree, and labels of SKOS in a language."""

import pyarrow as pa
import pytest

from queryveil.errors import QueryveilError
from queryveil.knowledge import categorize_texts, open_taxonomy
from queryveil.knowledge.directory import build_directory
from queryveil.knowledge.world import NOT_LINKED, NOT_LINKED_SITES
from queryveil.text import language
from tests.knowledge import rdf
from tests.oracles.directory import Site

SITES = [
    Site("Arts/Music", "music.example.org", "Music", "music and songs"),
    Site("World/Deutsch/Kultur/Musik", "musik.example.de", "Musik", "alles über lieder"),
    Site("World/Deutsch/Kultur/Musik/Noten", "noten.example.de", "Noten", "klaviernoten zum ausdrucken"),
    Site("World/Deutsch/Regional", "ort.example.de", "Ort", "orte"),
]


def topic(path, *links):
    linked = "".join(f'    <altlang r:resource="{link}"></altlang>\n' for link in links)
    return f'  <Topic r:id="Top/{path}">\n    <catid>1</catid>\n{linked}  </Topic>\n'


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    links = topic("Arts", "Deutsch:Top/World/Deutsch/Kultur") + topic(
        "World/Deutsch/Kultur/Musik", "English:Top/Arts/Music", "Français:Top/World/Français/Arts"
    )
    plain = ["Arts/Music", "World/Deutsch/Kultur", "World/Deutsch/Kultur/Musik/Noten", "World/Deutsch/Regional"]
    (folder / "structure.rdf.u8").write_text(rdf.structure(plain, extra=links), "utf-8")
    (folder / "content.rdf.u8").write_text(rdf.content(SITES), "utf-8")
    return [folder / "structure.rdf.u8", folder / "content.rdf.u8"]


def node_path(base, texts, linker="text"):
    found = categorize_texts(pa.array(texts), base, linker, language("de"))
    start, node = found.nodes()
    return [base.tree.path(int(node[start[i]])) if start[i] < start[i + 1] else None for i in range(len(texts))]


def test_categories_of_world_are_put_into_the_english_tree(dump, tmp_path):
    about = build_directory(dump, tmp_path / "d", language=["de", "en"], map_world=True)
    assert (about["categories"], about["sites"], about["languages"]) == (3, 3, ["de", "en"])  # Top, Arts, Music
    assert about["left_out"] == {NOT_LINKED: 1, NOT_LINKED_SITES: 1}
    base = open_taxonomy(tmp_path / "d")
    assert node_path(base, ["kultur", "musik", "klaviernoten"]) == ["Arts", "Arts/Music", "Arts/Music"]
    # A host of a German site, and a word in another form than on the site.
    assert node_path(base, ["noten.example.de"], "domains") == ["Arts/Music"]
    assert node_path(base, ["lied"], "terms") == ["Arts/Music"]


def test_without_mapping_world_stays_a_branch(dump, tmp_path):
    build_directory(dump, tmp_path / "d")
    assert node_path(open_taxonomy(tmp_path / "d"), ["noten"]) == ["World/Deutsch/Kultur/Musik/Noten"]


def test_a_dump_without_links_cannot_be_mapped(tmp_path):
    (tmp_path / "paths.tsv").write_text("World/Deutsch/Kultur\tkultur.example.de\n", "utf-8")
    with pytest.raises(QueryveilError, match="no link between categories of World and English ones"):
        build_directory([tmp_path / "paths.tsv"], tmp_path / "d", map_world=True)


SKOS = "http://www.w3.org/2004/02/skos/core#"
TRIPLES = f"""
<http://x/1> <{SKOS}prefLabel> "transport"@en .
<http://x/1> <{SKOS}prefLabel> "Verkehr"@de .
<http://x/2> <{SKOS}prefLabel> "railway"@en .
<http://x/2> <{SKOS}prefLabel> "Eisenbahn"@de .
<http://x/2> <{SKOS}altLabel> "Zug"@de .
<http://x/2> <{SKOS}prefLabel> "chemin de fer"@fr .
<http://x/2> <{SKOS}broader> <http://x/1> .
"""


@pytest.mark.parametrize(
    ("languages", "tree", "text", "path"),
    [
        ("en", ["Top", "transport", "railway"], "railway", "transport/railway"),
        ("de", ["Top", "Verkehr", "Eisenbahn"], "züge", "Verkehr/Eisenbahn"),
        ("en,de", ["Top", "transport", "railway"], "eisenbahn", "transport/railway"),
        ("fr,de", ["Top", "Verkehr", "chemin de fer"], "eisenbahn", "Verkehr/chemin de fer"),
    ],
)
def test_labels_of_the_languages_that_were_asked_for_name_concepts(tmp_path, languages, tree, text, path):
    (tmp_path / "thesaurus.nt").write_text(TRIPLES, "utf-8")
    build_directory([tmp_path / "thesaurus.nt"], tmp_path / "d", language=languages)
    base = open_taxonomy(tmp_path / "d")
    assert base.tree.names.to_pylist() == tree
    assert node_path(base, [text]) == [path]


def test_a_table_of_names_brings_a_tree_in_another_language(tmp_path):
    """The way for a WordNet that does not ship: its hypernyms as paths, its lemmas as names."""
    rows = "Lebewesen/Tier/Hund\tHund\nLebewesen/Tier/Hund\tVierbeiner\nζώο/σκύλος\tσκυλί\n"
    (tmp_path / "wordnet.tsv").write_text(rows, "utf-8")
    build_directory([tmp_path / "wordnet.tsv"], tmp_path / "d", language="de,el")
    base = open_taxonomy(tmp_path / "d")
    assert node_path(base, ["hunde"]) == node_path(base, ["vierbeiner"]) == ["Lebewesen/Tier/Hund"]
    assert node_path(base, ["σκυλιά"]) == ["ζώο/σκύλος"]


def test_an_unknown_language_is_refused(tmp_path):
    with pytest.raises(QueryveilError, match="There is no language 'dutch'; did you mean 'nl'"):
        build_directory([tmp_path / "x"], tmp_path / "d", language="dutch")
