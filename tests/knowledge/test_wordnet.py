"""WordNet's nouns: the counts of the database, and words that everyone can check."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pytest

from queryveil.knowledge import known_as, open_taxonomy, recall_taxonomy
from queryveil.knowledge.directory import build_directory
from queryveil.knowledge.wordnet import table, wordnet

ROOT = Path(__file__).resolve().parents[2]
DATABASE = Path("/usr/share/wordnet")


def path(text, index=None):
    node = (index or wordnet().terms).first(pa.array([text]))[0]
    return None if node < 0 else wordnet().tree.path(int(node), between=" > ")


def test_the_counts_of_wordnet_3():
    assert len(wordnet().tree) == 82_115
    assert len(table()["lemma"]) == len(wordnet().terms) == 117_798
    assert len(table()["exception"]) == 2_050


def test_one_root():
    taxonomy = wordnet().tree
    assert (taxonomy.parent == -1).sum() == 1
    assert taxonomy.names[0].as_py() == "entity"
    assert taxonomy.height == 19


def test_dog_to_entity():
    taxonomy = wordnet().tree
    names = taxonomy.names.take(pa.array(taxonomy.line(int(wordnet().terms.first(pa.array(["dog"]))[0])))).to_pylist()
    assert names == [
        "entity", "physical entity", "object", "whole", "living thing", "organism", "animal", "chordate", "vertebrate",
        "mammal", "placental", "carnivore", "canine", "dog",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("new york", "city > New York"),
        ("mediterranean", "sea > Mediterranean"),
        ("geese", "anseriform bird > goose"),
        ("boxes", "container > box"),
        ("women", "female > woman"),
        ("cities", "municipality > city"),
        ("glass", "solid > glass"),
        ("einstein", "physicist > Einstein"),
    ],
)
def test_words_are_found(text, end):
    assert path(text).endswith(end)


@pytest.mark.parametrize("text", ["xyzzy", "", "quickly", "buyed"])
def test_what_is_no_noun_is_not_found(text):
    assert path(text) is None


def test_phrases_are_also_found_by_their_stems():
    assert path("water sports").endswith("sport > water sport")
    assert path("automobiles insurances") is None
    assert path("automobiles insurances", wordnet().phrases).endswith("insurance > automobile insurance")


def test_the_licence_comes_with_the_data():
    data = files("queryveil.knowledge").joinpath("data")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in data.joinpath("WORDNET-LICENSE.txt").read_text(
        "utf-8"
    )
    assert "Copyright 2000-2011 by Kevin Atkinson" in data.joinpath("SCOWL-LICENSE.txt").read_text("utf-8")
    assert data.joinpath("wordnet.parquet").read_bytes()[:4] == b"PAR1"


@pytest.mark.skipif(not DATABASE.is_dir(), reason="WordNet's database is not installed (Debian: wordnet-base)")
def test_the_table_is_what_the_script_makes(tmp_path):
    made = tmp_path / "wordnet.parquet"
    subprocess.run([sys.executable, ROOT / "scripts/build_wordnet.py", DATABASE, made], check=True, capture_output=True)
    shipped = files("queryveil.knowledge").joinpath("data", "wordnet.parquet")
    import pyarrow.parquet as pq

    assert pq.read_table(made).equals(pq.read_table(str(shipped)))


def test_nothing_takes_the_place_of_what_is_built_in(tmp_path):
    known_as("wordnet", tmp_path)
    (tmp_path / "dump.tsv").write_text("Top/Arts/Music\thttp://a.com/\n")
    build_directory([tmp_path / "dump.tsv"], tmp_path / "wordnet")
    open_taxonomy(tmp_path / "wordnet")
    assert recall_taxonomy("wordnet") is open_taxonomy("wordnet")
