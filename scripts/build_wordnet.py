"""Make `src/queryveil/knowledge/data/wordnet.parquet` from the database files of WordNet 3.0.

    apt-get install wordnet-base
    python scripts/build_wordnet.py /usr/share/wordnet

The table has one row, whose columns are lists:

| column | what it lists |
|---|---|
| depth, name | of every noun synset, in first-child order: its depth in the tree, and its first word |
| lemma, node, count | every noun: its text, the node of its first sense, how often that sense was tagged in texts |
| exception, base | irregular plurals and what they are plurals of |
| word, tag | words and their forms that are mostly no nouns: a (adjective), A (also a noun), v (verb), r (adverb) |

The parent of a synset is its first hypernym, of classes (@) and of instances (@i) alike; children are in the order of
the file. The first sense of a lemma is the first that the index names; if a later one is tagged more often, it is that.
"""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.knowledge.tree import Tree

TARGET = Path(__file__).resolve().parent.parent / "src/queryveil/knowledge/data/wordnet.parquet"
KINDS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
LEAST = 3  # how often a verb or an adverb must have been tagged
TAGS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # the number of a kind in a sense key


def lines(path: Path) -> list[str]:
    """The lines of a database file without the licence at its head."""
    return [line for line in path.read_text("ascii").splitlines() if not line.startswith("  ")]


def synsets(folder: Path) -> tuple[dict[int, int], dict[int, str]]:
    """Of every noun synset, by its place in the file: its parent, and its first word."""
    parent, name = {}, {}
    for line in lines(folder / "data.noun"):
        field = line.split(" | ")[0].split()
        place, words = int(field[0]), int(field[3], 16)
        name[place] = field[4].replace("_", " ")
        pointers = field[5 + 2 * words :]
        above = [int(pointers[i + 1]) for i, kind in enumerate(pointers) if kind in ("@", "@i")]
        parent[place] = above[0] if above else -1
    return parent, name


def tagged(folder: Path) -> tuple[dict[tuple[str, int], int], dict[tuple[str, str], int]]:
    """How often each sense of each noun is tagged, and each word as each kind."""
    senses: dict[tuple[str, int], int] = {}
    kinds: dict[tuple[str, str], int] = defaultdict(int)
    for line in lines(folder / "cntlist.rev"):
        key, number, count = line.split()
        lemma, rest = key.split("%")
        kind = TAGS[rest[0]]
        if kind == "n":
            senses[lemma, int(number)] = int(count)
        kinds[lemma, kind] += int(count)
    return senses, kinds


def index(folder: Path, kind: str) -> dict[str, list[int]]:
    """The senses of every lemma of a kind."""
    found = {}
    for line in lines(folder / f"index.{KINDS[kind]}"):
        field = line.split()
        found[field[0]] = [int(place) for place in field[-int(field[2]) :]]
    return found


def exceptions(folder: Path, kind: str) -> dict[str, str]:
    """Irregular forms and their first base form."""
    pairs = (line.split() for line in lines(folder / f"{KINDS[kind]}.exc"))
    return {words[0]: words[1] for words in pairs}


def inflected(verb: str) -> dict[str, str]:
    """The regular forms of a verb; participles qualify nouns as adjectives do, and gerunds are nouns."""
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou"):
        return {verb[:-1] + "ies": "v", verb[:-1] + "ied": "a"}
    third = verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")
    return {third: "v", verb + ("d" if verb.endswith("e") else "ed"): "a"}


def _seldom(kind: str, as_noun: int, as_kind: int) -> str:
    """The tag of a word; A for an adjective that is a noun as well, and not seldom."""
    return "A" if kind == "a" and as_noun * 10 >= as_kind and as_noun else kind


def tags(folder: Path, counts: dict[tuple[str, str], int]) -> dict[str, str]:
    """Single words that are most often no nouns."""
    known = {kind: {lemma for lemma in index(folder, kind) if "_" not in lemma} for kind in KINDS}
    # Of equals, the first: a word that nobody tagged is a noun if it can be one.
    best = {
        word: max("navr", key=lambda kind: (word in known[kind], counts.get((word, kind), 0)))
        for word in set().union(*known.values())
    }
    found = {
        word: _seldom(kind, counts.get((word, "n"), 0), counts.get((word, kind), 0))
        for word, kind in best.items()
        # Verbs and adverbs that nobody tagged are rare words; in a query they are names.
        if kind == "a" or (kind in "vr" and counts.get((word, kind), 0) >= LEAST)
    }
    irregular = exceptions(folder, "v")
    plurals = set(exceptions(folder, "n"))
    forms = {form: "v" for form, base in irregular.items() if best.get(base) == "v"}
    for word, kind in best.items():
        if kind == "v" and counts.get((word, kind), 0) >= LEAST:
            forms |= inflected(word)
    forms |= {form: "a" for form, base in exceptions(folder, "a").items() if best.get(base) == "a"}
    for form, kind in forms.items():
        if form not in best and form not in plurals and not form.endswith("ing") and "_" not in form:
            found[form] = kind
    return found


def main(folder: Path, target: Path = TARGET) -> None:
    """Read the database and write the table."""
    parent, name = synsets(folder)
    places = sorted(parent)
    number = {place: i for i, place in enumerate(places)}
    above = np.array([number.get(parent[place], -1) for place in places])
    taxonomy, order = Tree.from_parents(above, pa.array([name[place] for place in places]))
    node = {places[old]: new for new, old in enumerate(order.tolist())}
    senses, counts = tagged(folder)
    nouns = index(folder, "n")
    lemmas = sorted(nouns)
    # The index gives the senses by how often they were tagged; the count settles it where it does not.
    first = [max(range(len(nouns[lemma])), key=lambda i: (senses.get((lemma, i + 1), 0), -i)) for lemma in lemmas]
    plural = exceptions(folder, "n")
    tag = tags(folder, counts)
    columns = {
        "depth": pa.array(taxonomy.depth, pa.uint8()),
        "name": taxonomy.names,
        "lemma": pa.array([lemma.replace("_", " ") for lemma in lemmas]),
        "node": pa.array([node[nouns[lemma][i]] for lemma, i in zip(lemmas, first, strict=True)], pa.int32()),
        "count": pa.array([senses.get((lemma, i + 1), 0) for lemma, i in zip(lemmas, first, strict=True)], pa.int32()),
        "exception": pa.array([form.replace("_", " ") for form in sorted(plural)]),
        "base": pa.array([plural[form].replace("_", " ") for form in sorted(plural)]),
        "word": pa.array(sorted(tag)),
        "tag": pa.array([tag[word] for word in sorted(tag)]),
    }
    table = pa.table({key: pa.ListArray.from_arrays([0, len(values)], values) for key, values in columns.items()})
    front_coded = {f"{key}.list.element": "DELTA_BYTE_ARRAY" for key in ("lemma", "name", "exception", "word")}
    pq.write_table(
        table, target, compression="zstd", compression_level=19, use_dictionary=["tag.list.element"],
        column_encoding=front_coded, store_schema=False,
    )  # fmt: skip
    several = sum(i > 0 for i in first)
    print(
        f"{len(taxonomy):,} synsets, {len(lemmas):,} lemmas ({several} by a later sense), {len(plural):,} exceptions,"
    )
    print(f"{len(tag):,} other words; {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
