"""Directories: built from dumps, ranked as the literal rules say, refused with a sentence when something is wrong."""

import gzip
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from itertools import islice, pairwise
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.knowledge import Sites, open_taxonomy
from queryveil.knowledge.base import MOST_CATEGORIES
from queryveil.knowledge.directory import build_directory
from queryveil.knowledge.dumps import open_dump
from queryveil.knowledge.linkers import categorize_phrases
from queryveil.text import language
from tests.knowledge import rdf
from tests.oracles import directory
from tests.oracles.directory import Site
from tests.strategies import examples

SHARED = Path(__file__).resolve().parents[3] / "shared/data/directory"
PATHS = [
    "Arts/Music/Bands",
    "Arts/Music",
    "Sports/Soccer/UEFA/Spain",
    "Sports/Water_Sports/Swimming_and_Diving",
    "World/Deutsch",
]
SITES = [
    Site("Arts/Music", "lyrics.example.com", "Lyrics", "Words of songs & more."),
    Site("Arts/Music/Bands", "bands.example.com", "Bands", "Lyrics of bands, song by song."),
    Site("Arts/Music/Bands", "bands.example.com", "More bands", "Lyrics."),
    Site("Sports/Soccer/UEFA/Spain", "fcb.example.org", "Barcelona FC", "A soccer club."),
    Site("Sports/Water_Sports/Swimming_and_Diving", "192.0.2.7", "Divers", "Diving in the Mediterranean."),
    Site("World/Deutsch", "de.example.net", "Fußball", "Verein."),
]


@pytest.fixture
def built(tmp_path):
    def make(paths=PATHS, sites=SITES, **options):
        (tmp_path / "structure.rdf.u8").write_text(rdf.structure(paths), "utf-8")
        (tmp_path / "content.rdf.u8").write_text(rdf.content(sites), "utf-8")
        files = [tmp_path / "structure.rdf.u8", tmp_path / "content.rdf.u8"]
        return build_directory(files, tmp_path / "odp.qvd", overwrite=True, **options), open_taxonomy(
            tmp_path / "odp.qvd"
        )

    return make


def listed(taxonomy, index, text):
    names = [taxonomy.tree.path(int(node)) for node in index.nodes_of(index.find(pa.array([text])), 99)[1]]
    return [name.replace(" ", "_") for name in names]


def test_what_a_directory_knows(built):
    about, taxonomy = built()
    assert {key: about[key] for key in ("format", "kind", "categories", "levels", "sites", "left_out")} == {
        "format": 2, "kind": "rdf", "categories": 12, "levels": 4, "sites": 6, "left_out": {},
    }  # fmt: skip
    assert listed(taxonomy, taxonomy.terms, "songs") == ["Arts/Music", "Arts/Music/Bands"]
    assert listed(taxonomy, taxonomy.terms, "band") == ["Arts/Music/Bands"]
    assert listed(taxonomy, taxonomy.terms, "diving") == ["Sports/Water_Sports/Swimming_and_Diving"]
    assert listed(taxonomy, taxonomy.phrases, "water sport") == ["Sports/Water_Sports"]
    assert listed(taxonomy, taxonomy.hosts, "shop.bands.example.com") == ["Arts/Music/Bands"]
    assert listed(taxonomy, taxonomy.hosts, "else.example.com") == ["Arts/Music/Bands", "Arts/Music"]
    assert listed(taxonomy, taxonomy.hosts, "192.0.2.7") == ["Sports/Water_Sports/Swimming_and_Diving"]
    assert listed(taxonomy, taxonomy.hosts, "com") == []


NAME = st.sampled_from(
    ["Soccer", "Water_Sports", "Sport", "Running_and_Soccer", "Runs,_Sports_&_Water", "Running", "A"]
)
PATH = st.lists(NAME, min_size=1, max_size=3).map("/".join)
PHRASES = (
    "soccer", "water sports", "waters sport", "runs", "run", "sports", "running soccer", "soccer & running",
    "sport and water", "sports water", "running & soccer", "soccer water sport", "big blue water", "new soccer mills",
    "x.example.co.uk",
    "my a.example.com soccerless", "waters xyzzy", "xyzzy", "example", "exam ple", "co uk", "xyzzy plugh",
    "xyzzy-plugh", "plugh café",
)  # fmt: skip
WORDS = st.lists(st.sampled_from(["soccer", "sports", "sport", "runs", "water", "the"]), max_size=4).map(" ".join)
HOST = st.sampled_from(
    [
        "a.example.com", "b.a.example.com", "example.com", "example.org", "example.net", "example.co.uk", "com",
        "x.example.co.uk", "192.0.2.7", "xyzzyplugh.net", "a.xyzzyplugh.org", "xyzzy-plugh.org", "soccer.com",
    ]
)  # fmt: skip
SITE = st.builds(Site, path=PATH, host=HOST, title=WORDS, text=WORDS)


@settings(max_examples=examples(13), deadline=None)
@given(st.lists(PATH, max_size=5), st.lists(SITE, min_size=1, max_size=12), st.sampled_from([1, 3, 1000]))
def test_every_ranking_is_the_literal_one(paths, sites, part):
    sites = [site for site in sites if "." in site.host]
    paths = list(dict.fromkeys([*paths, *(site.path for site in sites)]))
    if not sites:
        return
    with tempfile.TemporaryDirectory() as folder, patch("queryveil.knowledge.directory._PART", part):
        place = Path(folder)
        (place / "s").write_text(rdf.structure(paths), "utf-8")
        (place / "c").write_text(rdf.content(sites), "utf-8")
        build_directory([place / "s", place / "c"], place / "d")
        taxonomy = open_taxonomy(place / "d")
        assert [taxonomy.tree.path(i).replace(" ", "_") for i in range(1, len(taxonomy.tree))] == directory.nodes(paths)
        exact = {name: getattr(taxonomy, name).with_forms() for name in ("terms", "hosts")}
        for name, literal in (("terms", directory.terms), ("hosts", directory.hosts)):
            expected = literal(paths, sites, MOST_CATEGORIES)
            assert len(exact[name]) == len(expected)
            assert {text: listed(taxonomy, exact[name], text) for text in expected} == expected
        for phrase in PHRASES:
            assert listed(taxonomy, taxonomy.phrases, phrase) == directory.phrases(
                paths, sites, phrase, MOST_CATEGORIES
            ), phrase
        queries = [phrase for phrase in PHRASES if " and " not in phrase and " & " not in phrase]
        links = categorize_phrases(pa.array(queries), taxonomy, language())
        items = links.items.to_pylist()
        assert [first(links, i) for i in range(len(items))] == [directory.look_up(paths, sites, item) for item in items]


def first(links, item):
    some = links.node[links.first[item] : links.first[item + 1]]
    return links.tree.path(int(some[0])).replace(" ", "_") if len(some) else None


EXAMPLE = [
    "Sports/Water_Sports/Swimming_and_Diving",
    "Sports/Water_Sports/Windsurfing",
    "Regional/Europe/Regions/Mediterranean",
    "Home/Pets/Cats_and_Dogs",
    "Home/Pets/Cats",
    "Recreation/Travel/Guides",
]


def test_example_2_of_the_paper(built):
    _, taxonomy = built(EXAMPLE, [Site("Home/Pets", "vet.example.org", "Veterinarians", "Vaccination of pets.")])
    queries = [
        "diving in the mediterranean", "windsurfing in the mediterranean", "scuba dives", "swimming & diving",
        "pictures of cats and dogs", "my fluffy dog & cat", "travel guides", "cat vaccinations",
        "vet.example.org login",
    ]  # fmt: skip
    links = categorize_phrases(pa.array(queries), taxonomy, language())
    start, nodes = links.nodes()
    found = [[taxonomy.tree.path(int(n)).split("/")[-1] for n in nodes[a:b]] for a, b in pairwise(start)]
    assert found == [
        ["Swimming and Diving", "Mediterranean"],
        ["Windsurfing", "Mediterranean"],
        ["Swimming and Diving"],  # without its first word, by a stem of a part
        ["Swimming and Diving"],  # not two categories
        ["Cats and Dogs"],  # `pictures` is nowhere
        ["Cats and Dogs", "Cats"],
        ["Guides"],  # by its path
        ["Pets"],  # by the words of a site
        ["Pets"],  # by a site
    ]
    assert "cats and dogs" in links.items.to_pylist()


def test_branches_can_be_left_out(built):
    about, taxonomy = built(leave_out=["world", "Kids"])  # there is no such branch here, as in many dumps
    assert about["sites"] == 5
    assert about["left_out_branches"] == ["World"]
    assert "World" not in taxonomy.tree.names.to_pylist()
    assert listed(taxonomy, taxonomy.terms, "fußball") == []


def test_a_branch_that_is_not_there(built):
    with pytest.raises(QueryveilError, match="no top category 'nonsense' to leave out; there are Arts, Sports, World"):
        built(leave_out=["Nonsense"])


def test_compressed_files_in_any_order(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wt", encoding="utf-8") as file:
        file.write(rdf.content(SITES))
    with gzip.open(tmp_path / "b.gz", "wt", encoding="utf-8") as file:
        file.write(rdf.structure(PATHS))
    assert build_directory([tmp_path / "a.gz", tmp_path / "b.gz"], tmp_path / "d")["sites"] == 6


def test_what_real_dumps_contain_is_counted_and_not_fatal(tmp_path, monkeypatch):
    monkeypatch.setattr("queryveil.knowledge.dumps.BLOCK", 300)  # so that entries lie across blocks
    structure = rdf.structure(
        PATHS, extra='  <Topic r:id="Top/Broken">\n  <catid>1</catid>\n  <Topic r:id="Top/Late">\n  </Topic>\n'
    )
    bad = rdf.page(Site("Arts/Music", "bad.example.com", "T", "X")).replace(
        "X", "caf\udce9 \x01\x0b &#7; &lt;b&gt;bold&lt;/b&gt;"
    )
    extra = (
        bad
        + '  <ExternalPage about="http://open.example.com">\n    <d:Title>never closed</d:Title>\n'
        + rdf.page(Site("Arts/Unknown", "u.example.com"))
        + rdf.page(Site("Arts/Music", "mailto"))
    )
    (tmp_path / "s").write_text(structure, "utf-8")
    (tmp_path / "c").write_bytes(rdf.content(SITES, extra).encode("utf-8", "surrogateescape"))
    about = build_directory([tmp_path / "s", tmp_path / "c"], tmp_path / "d")
    assert about["sites"] == 7
    assert about["left_out"] == {
        "malformed categories": 1,
        "malformed sites": 1,
        "sites in a category that is not in the tree": 1,
        "sites without a host": 1,
        "mended: texts with bytes that are no UTF-8": 1,
    }
    taxonomy = open_taxonomy(tmp_path / "d")
    assert "Late" in taxonomy.tree.names.to_pylist()
    assert listed(taxonomy, taxonomy.terms, "bold") == ["Arts/Music"]


def test_a_long_entry_takes_no_more_memory_than_it_is_long(tmp_path):
    """A pattern that remembers every byte it might come back to would take gigabytes."""
    (tmp_path / "s").write_text(rdf.structure(["Arts"], {"Arts": "x y " * 2_000_000}), "utf-8")
    (tmp_path / "c").write_text(rdf.content([Site("Arts", "a.example.com", "T", "")]), "utf-8")
    script = (
        "import resource, sys; from queryveil.knowledge.dumps import open_dump\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert sum(len(batch) for batch in open_dump(sys.argv[1:]).categories()) == 2\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "s", tmp_path / "c"], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 400_000  # kilobytes; it was 1.4 million


def test_paths_and_titles_in_every_spelling(tmp_path):
    extra = (
        '  <ExternalPage about="http://s.example.com">\n    <d:Title>Self closed</d:Title>\n    <d:Description/>\n'
        "    <topic>Top/Arts/</topic>\n  </ExternalPage>\n"
        '  <ExternalPage about="http://n.example.com">\n    <topic></topic>\n  </ExternalPage>\n'
        '  <ExternalPage about="http://open.example.com">\n    <d:Title>at the very end</d:Title>\n'
    )
    (tmp_path / "s").write_text(rdf.structure(["Arts/"]), "utf-8")
    (tmp_path / "c").write_text(rdf.content([], extra), "utf-8")
    about = build_directory([tmp_path / "s", tmp_path / "c"], tmp_path / "d")
    assert about["sites"] == 1
    assert about["left_out"] == {"malformed sites": 1, "sites without a category": 1}


def test_a_heading_is_no_category(tmp_path):
    (tmp_path / "t.tsv").write_text("path\turl\nArts\thttp://a.com\n\thttp://c.com\n", "utf-8")
    about = build_directory([tmp_path / "t.tsv"], tmp_path / "d")
    assert open_taxonomy(tmp_path / "d").tree.names.to_pylist() == ["Top", "Arts"]
    assert about["left_out"] == {"sites in a category that is not in the tree": 1, "sites without a category": 1}


def test_curlie(tmp_path):
    (tmp_path / "s.tsv").write_text("7\tTop/Arts/Music\n8\tTop/World\nbroken\n", "utf-8")
    (tmp_path / "c.tsv").write_text(
        "http://a.example.com/\tSongs\tAll the songs\t7\thttp://x\nhttp://b.example.com/\tT\tD\t99\n", "utf-8"
    )
    about = build_directory([tmp_path / "s.tsv", tmp_path / "c.tsv"], tmp_path / "d")
    assert (about["kind"], about["sites"]) == ("curlie", 1)
    assert about["left_out"] == {"lines with too few columns": 1, "sites in a category that is not in the tree": 1}
    taxonomy = open_taxonomy(tmp_path / "d")
    assert listed(taxonomy, taxonomy.terms, "song") == ["Arts/Music"]


def test_a_table_of_paths(tmp_path):
    (tmp_path / "t.tsv").write_text("Top/Arts\thttp://www.a.com/\nTop/Arts/Music/\thttp://b.com\n\nonly\n", "utf-8")
    about = build_directory([tmp_path / "t.tsv"], tmp_path / "d")
    assert (about["kind"], about["categories"], about["sites"], about["left_out"]) == (
        "paths",
        3,
        2,
        {"lines with too few columns": 1},
    )
    taxonomy = open_taxonomy(tmp_path / "d")
    assert listed(taxonomy, taxonomy.hosts, "a.com") == ["Arts"]


def test_a_tree_without_addresses(tmp_path):
    """Such as a terminology of medicine: paths, and other names of what is at their ends."""
    (tmp_path / "t.tsv").write_text(
        "Disorder/Heart disease/Myocardial infarction\theart attack\n"
        "Disorder/Heart disease/Myocardial infarction\tMI\n"
        "Disorder/Infection/Varicella\tchicken pox\nDisorder/Infection\nDisorder/Infection/Numbered\t17\n",
        "utf-8",
    )
    about = build_directory([tmp_path / "t.tsv"], tmp_path / "d")
    assert (about["kind"], about["categories"], about["sites"], about["names"]) == ("names", 6, 0, 3)
    assert about["left_out"] == {"lines with a name without a letter": 1}
    taxonomy = open_taxonomy(tmp_path / "d")
    assert taxonomy.hosts is None
    for text, where in (
        ("heart attacks", "Heart_disease/Myocardial_infarction"), ("varicella", "Infection/Varicella"),
        ("chicken pox", "Infection/Varicella"), ("heart infarction", None),
        ("disorder varicella", "Infection/Varicella"),
    ):  # fmt: skip
        assert listed(taxonomy, taxonomy.phrases, text) == ([f"Disorder/{where}"] if where else [])
    log = qv.read_log(pa.table({"user": list("abcd"), "query": ["heart attack", "chicken pox", "mi", "varicella"]}))
    release = qv.Mdav(k=2, taxonomy=str(tmp_path / "d")).anonymize(log)
    assert release.manifest.counts.users == 4
    assert qv.verify(release, log).holds
    with pytest.raises(QueryveilError, match="has no sites"):
        qv.categorize(log, tmp_path / "d", "domains")
    with pytest.raises(QueryveilError, match="has no sites to search"):
        Sites(taxonomy).resolve(log)
    (tmp_path / "paths").write_text("Fruit/Apples\nFruit/Pears\n\nMeat\n", "utf-8")
    assert build_directory([tmp_path / "paths"], tmp_path / "e")["categories"] == 5


DBPEDIA = "http://dbpedia.org/resource/"
SKOS = "http://www.w3.org/2004/02/skos/core#"


def triple(one, what, other):
    return f"<{DBPEDIA}{one}> <{what}> {other} .\n"


def test_categories_of_dbpedia(tmp_path):
    def below(one, other):
        return triple(f"Category:{one}", f"{SKOS}broader", f"<{DBPEDIA}Category:{other}>")

    label = triple("Category:AC/DC_albums", f"{SKOS}prefLabel", '"AC/DC \\u00e1lbums"@en')
    (tmp_path / "skos.ttl").write_text(
        "# started\n"
        + below("Albums", "Music")
        + below("AC/DC_albums", "Albums")
        + below("AC/DC_albums", "Music")  # the shorter way to the top is its place
        + below("Lost", "Lost_too")
        + below("Lost_too", "Lost")
        + label
        + label.replace("@en", "@de").replace("AC/DC", "Alben")
        + triple("Category:Music", f"{SKOS}altLabel", '"sound art"')
        + "broken\n",
        "utf-8",
    )
    with lzma.open(tmp_path / "articles.ttl.xz", "wt", encoding="utf-8") as file:
        subject = "http://purl.org/dc/terms/subject"
        file.write(triple("Back_in_Black", subject, f"<{DBPEDIA}Category:AC/DC_albums>"))
        file.write(triple("Nowhere_Man", subject, f"<{DBPEDIA}Category:Unknown>"))
    about = build_directory([tmp_path / "skos.ttl", tmp_path / "articles.ttl.xz"], tmp_path / "d")
    assert (about["kind"], about["names"]) == ("skos", 2)
    assert about["left_out"] == {
        "concepts in a circle, below no top": 2,
        "lines that are no triples": 1,
    }
    taxonomy = open_taxonomy(tmp_path / "d")
    assert listed(taxonomy, taxonomy.phrases, "ac dc álbums") == ["Music/AC_DC_álbums"]
    assert listed(taxonomy, taxonomy.phrases, "back in black") == ["Music/AC_DC_álbums"]
    assert listed(taxonomy, taxonomy.phrases, "sound arts") == ["Music"]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"s": rdf.structure(PATHS), "c": rdf.content(SITES)[:-60]}, "c is cut off: it does not end with </RDF>"),
        ({"s": rdf.structure(PATHS)[:-60], "c": rdf.content(SITES)}, "s is cut off"),
        ({"s": "<!DOCTYPE html><html>404</html>", "c": rdf.content(SITES)}, "s is a web page, not a dump"),
        ({"s": rdf.content(SITES), "c": rdf.content(SITES)}, "first holds content, the second content; name struct"),
        ({"s": rdf.structure(PATHS), "c": rdf.structure(PATHS)}, "name content.rdf.u8 instead"),
        ({"s": rdf.structure(PATHS)}, "s is one of a pair; name content.rdf.u8 as well"),
        ({"s": rdf.structure(PATHS), "c": "Top/A\thttp://a.com\n"}, "are not a pair"),
        ({"s": "<xml></xml>", "c": rdf.content(SITES)}, "is XML, but not RDF"),
        ({"s": "hello\nworld\n"}, "is not a dump of a web directory"),
        ({"s": ""}, "s is empty"),
        ({"s": rdf.structure([]), "c": rdf.content(SITES)}, "has no category"),
        ({"s": rdf.structure(PATHS), "c": rdf.content([])}, "has no usable site"),
        ({"s": "Top/A\thttp://a.com\n", "c": "Top/A\thttp://a.com\n"}, "is one too many"),
        ({"s": "Top/A\t17\nTop/B\t3\n"}, "no category, except those that are left out"),
        ({}, "A dump is one file or two; got 0"),
        ({"s": "x", "c": "y", "x": "z"}, "A dump is one file or two; got 3"),
    ],
)  # fmt: skip
def test_a_dump_that_is_wrong(tmp_path, files, sentence):
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(QueryveilError, match=sentence) as error:
        build_directory([tmp_path / name for name in files], tmp_path / "d")
    assert "\n" not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_a_compressed_dump_that_is_cut_off(tmp_path):
    whole = gzip.compress(rdf.content(SITES * 50).encode())
    (tmp_path / "c.gz").write_bytes(whole[:-20])
    (tmp_path / "s").write_text(rdf.structure(PATHS), "utf-8")
    with pytest.raises(QueryveilError, match="is cut off or damaged"):
        build_directory([tmp_path / "s", tmp_path / "c.gz"], tmp_path / "d")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(QueryveilError, match="There is no file"):
        build_directory([tmp_path / "s"], tmp_path / "d")


def test_nothing_is_written_over(built, tmp_path):
    built()
    with pytest.raises(QueryveilError, match="exists already"):
        build_directory([tmp_path / "structure.rdf.u8", tmp_path / "content.rdf.u8"], tmp_path / "odp.qvd")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "about.json").write_text("{}")
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    with pytest.raises(QueryveilError, match="exists already"):
        build_directory([tmp_path / "structure.rdf.u8", tmp_path / "content.rdf.u8"], tmp_path / "mine", overwrite=True)


def test_a_directory_with_a_file_of_somebody_else_is_not_replaced(built, tmp_path):
    built()
    (tmp_path / "odp.qvd" / "notes.txt").write_text("mine")
    with pytest.raises(QueryveilError, match="exists already"):
        built()
    assert (tmp_path / "odp.qvd" / "notes.txt").read_text() == "mine"


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "t.tsv").write_text("Arts\thttp://a.com\n")
    with pytest.raises(QueryveilError, match="cannot be written"):
        build_directory([tmp_path / "t.tsv"], "/proc/odp.qvd")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(QueryveilError, match="exists already"):
        build_directory([tmp_path / "t.tsv"], tmp_path / "link", overwrite=True)


@pytest.mark.parametrize(
    "name", ["hosts-start.npy", "meanings-vectors.npy", "nodes.arrow", "tree-parent.npy", "sites/meta.json"]
)
@pytest.mark.parametrize("damage", ["missing", "empty", "garbage"])
def test_any_file_that_is_damaged(built, tmp_path, name, damage):
    built()
    file = tmp_path / "odp.qvd" / name
    if damage == "missing":
        file.unlink()
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        file.write_bytes(b"\x93NUMPY\x01\x00{" + b"x" * (file.stat().st_size - 9))
    log = qv.read_log(pa.table({"user": ["a"], "query": ["song"]}))
    with pytest.raises(QueryveilError, match="is damaged; build it again"):
        Sites(open_taxonomy(tmp_path / "odp.qvd")).resolve(log)


def test_a_directory_of_another_format(built, tmp_path):
    built()
    about = tmp_path / "odp.qvd" / "about.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"format": 0}))
    with pytest.raises(QueryveilError, match="has format 0, and this queryveil reads format 2; build it again"):
        open_taxonomy(tmp_path / "odp.qvd")


def test_a_directory_that_is_damaged(built, tmp_path):
    built()
    (tmp_path / "odp.qvd" / "terms-low.npy").write_bytes(b"x")
    with pytest.raises(QueryveilError, match="is damaged; build it again"):
        open_taxonomy(tmp_path / "odp.qvd")
    shutil.rmtree(tmp_path / "odp.qvd")
    (tmp_path / "odp.qvd").mkdir()
    with pytest.raises(QueryveilError, match="is not a web directory"):
        open_taxonomy(tmp_path / "odp.qvd")


def test_an_unknown_knowledge_base():
    with pytest.raises(QueryveilError, match="There is no taxonomy 'wikidata'; use wordnet"):
        open_taxonomy("wikidata")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the samples of real directories are not here")
def test_openings_of_the_real_dumps():
    dump = open_dump([SHARED / "structure_sample.rdf.u8", SHARED / "content_sample.rdf.u8"])
    categories = pa.Table.from_batches(dump.categories()).to_pylist()
    assert [row["path"] for row in categories] == ["World", "Arts"]
    assert "<" not in categories[1]["text"]
    assert 'art, or "the use of skill' in categories[1]["text"]
    sites = pa.Table.from_batches(dump.sites()).to_pylist()
    assert sites[0]["url"] == "http://www.awn.com/"
    assert [row["path"] for row in sites][-2:] == [
        "Arts/Animation/Cartoons/Titles/P/PB_&_J_Otter",
        "World/Armenian/Առողջություն",
    ]
    assert sum(dump.left_out.values()) == 0


@pytest.mark.skipif(not SHARED.is_dir(), reason="the samples of real directories are not here")
def test_real_addresses(tmp_path):
    with lzma.open(SHARED / "url_toplevel.tsv.xz", "rt", encoding="utf-8") as lines:
        (tmp_path / "urls.tsv").write_text("".join(islice(lines, 20_000)), "utf-8")
    about = build_directory([tmp_path / "urls.tsv"], tmp_path / "d")
    assert about["sites"] + sum(about["left_out"].values()) == 20_000
    assert about["sites"] > 19_900
    taxonomy = open_taxonomy(tmp_path / "d")
    assert listed(taxonomy, taxonomy.hosts, "awn.com") == ["Arts"]
