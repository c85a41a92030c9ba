"""Linkers against NLTK's WordNet and spaCy's noun chunks; a directory of the size of the real one; what is right.

The peers do the same look-ups: NLTK the first noun sense of every word, spaCy the noun chunks of every query, each then
looked up in NLTK's WordNet, words dropped from the left. Both run on a sample, because a whole log would take hours.
There is no trained English model of spaCy's on the package registry: its tagger and parser run here with the layers of
the small model and untrained weights, which takes the same time and finds nothing sensible.
"""

import json
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import DATA, log_file, run, timed

WORDNET = Path("/usr/share/wordnet")
SAMPLE = 2_000
CATEGORIES, SITES = 800_000, 3_800_000


def report(sizes: list[int], times: int) -> Iterator[str]:
    """The sections of benchmarks/README.md."""
    yield from _linkers(sizes[0], times)
    yield from _directory()
    yield from _accuracy()


# Speed of linkers


def _linkers(users: int, times: int) -> Iterator[str]:
    path = log_file(users)
    yield "| linker | taxonomy | distinct queries | a second, on 1 core | times NLTK | times spaCy | peak memory |"
    yield "|---|---|---|---|---|---|---|"
    peers = {}
    if (WORDNET / "data.noun").exists():
        for peer in ("nltk_terms", "spacy_phrases"):
            try:
                cost = run(f"benchmarks.knowledge:{peer}", path, times=times)
                peers[peer] = SAMPLE / cost.seconds
                yield f"| {peer} | wordnet | {SAMPLE:,} | {peers[peer]:,.0f} | | | {cost.peak_gib:.1f} GiB |"
            except RuntimeError as error:
                yield f"| {peer} | did not run: {str(error).splitlines()[-1]} | | | | | |"
    directory = _world()
    for linker, taxonomy in (
        ("terms", "wordnet"), ("phrases", "wordnet"), ("embedding", "wordnet"),
        ("terms", directory), ("phrases", directory), ("domains", directory), ("embedding", directory),
    ):  # fmt: skip
        cost = run("benchmarks.knowledge:linked", path, linker, taxonomy, times=times)
        queries = int(cost.told)
        speed = queries / cost.seconds
        ratios = " | ".join(
            f"{speed / peers[peer]:,.0f}" if peer in peers else "" for peer in ("nltk_terms", "spacy_phrases")
        )
        name = "wordnet" if taxonomy == "wordnet" else "directory"
        yield f"| {linker} | {name} | {queries:,} | {speed:,.0f} | {ratios} | {cost.peak_gib:.1f} GiB |"
    yield ""


def _one_core() -> None:
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})


def linked(path: str, linker: str, taxonomy: str) -> None:
    """Link a log."""
    _one_core()
    from queryveil import read_log
    from queryveil.knowledge import categorize, open_taxonomy

    base = open_taxonomy(taxonomy)
    warm = Path(DATA / "warm-link.tsv")
    warm.write_text("user\tquery\turl\na\tdog food in paris\thttp://a.com\n", "utf-8")
    categorize(read_log(warm), base, linker)
    log = read_log(path)
    with timed():
        categorize(log, base, linker)
    print(log.n_queries)


def _sample(path: str) -> list[str]:
    from queryveil import read_log

    texts = read_log(path).query_text
    return [texts[int(i)].as_py() for i in np.random.default_rng(1).choice(len(texts), SAMPLE, replace=False)]


def _nltk():  # type: ignore[no-untyped-def]
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    folder = DATA / "wordnet"
    if not folder.exists():
        folder.mkdir(parents=True)
        for file in WORDNET.glob("*.*"):
            shutil.copy(file, folder)
        # Debian leaves out the list of lexicographer files, which NLTK only counts.
        (folder / "lexnames").write_text("".join(f"{i:02}\tfile{i}\t1\n" for i in range(45)))
    nltk.data.path.append(str(DATA))  # it reads from nowhere else

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        def map_wn(self, version: str = "wordnet") -> None:
            """Nothing to map: this is WordNet 3.0."""

    with warnings.catch_warnings(action="ignore"):  # it has no other languages
        return Reader(str(folder), None)


def nltk_terms(path: str) -> None:
    """The first noun sense of every word, by NLTK."""
    _one_core()
    queries = _sample(path)
    reader = _nltk()
    reader.synsets("dog", "n")
    with timed():
        for query in queries:
            for word in query.split():
                reader.synsets(word, "n")[:1]


def spacy_phrases(path: str) -> None:
    """The noun chunks of every query by spaCy, looked up by NLTK."""
    _one_core()
    import spacy
    from spacy.training import Example

    queries = _sample(path)
    reader = _nltk()
    reader.synsets("dog", "n")
    model = spacy.blank("en")
    width = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "*"}
    layers = {
        "@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 96, "depth": 4,
        "embed_size": 2000, "window_size": 1, "maxout_pieces": 3, "subword_features": True,
    }  # fmt: skip
    model.add_pipe("tok2vec", config={"model": layers})
    for pipe, kind in (("tagger", "spacy.Tagger.v2"), ("parser", "spacy.TransitionBasedParser.v2")):
        shape = {"@architectures": kind, "tok2vec": width}
        if pipe == "parser":
            shape |= {
                "state_type": "parser",
                "extra_state_tokens": False,
                "hidden_width": 64,
                "maxout_pieces": 2,
                "use_upper": True,
                "nO": None,
            }
        model.add_pipe(pipe, config={"model": shape})
    doc = model.make_doc("cheap flights to paris")
    truth = {"tags": ["JJ", "NNS", "IN", "NNP"], "heads": [1, 1, 1, 2], "deps": ["amod", "ROOT", "prep", "pobj"]}
    model.initialize(lambda: [Example.from_dict(doc, truth)])
    list(model.pipe(["warm up"]))
    with timed():
        for parsed in model.pipe(queries):
            for chunk in parsed.noun_chunks:
                words = chunk.text.split()
                while words and not reader.synsets("_".join(words), "n"):
                    words = words[1:]


# A directory


def _world() -> str:
    """The directory of the synthetic world."""
    from queryveil import generate
    from queryveil.knowledge.directory import build_directory

    DATA.mkdir(exist_ok=True)
    target = DATA / "world.qvd"
    if not target.exists():
        truth = DATA / "world-truth"
        generate(DATA / "world.tsv", users=20_000, seed=1, truth=truth, overwrite=True)
        build_directory([truth / "structure.rdf.u8", truth / "content.rdf.u8"], target)
    return str(target)


def _dump() -> tuple[Path, Path]:
    """Two dumps of the size of the real ones: 800,000 categories and 3.8 million sites."""
    structure, content = DATA / "structure.rdf.u8", DATA / "content.rdf.u8"
    if content.exists():
        return structure, content
    rng = np.random.default_rng(1)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "or", "us")]
    spelled = rng.choice(syllables, (400_000, 4))
    words = ["".join(parts[: 1 + i % 4]) for i, parts in enumerate(spelled.tolist())]
    weight = 1 / (np.arange(len(words)) + 10)
    weight /= weight.sum()
    paths = [f"Top/{word.capitalize()}" for word in words[:16]]
    depth = [1] * 16
    picks = iter(rng.integers(0, 1 << 62, CATEGORIES * 6).tolist())
    while len(paths) < CATEGORIES:
        above = next(picks) % len(paths)
        if depth[above] < 12:
            paths.append(f"{paths[above]}/{words[next(picks) % 60_000].capitalize()}_{len(paths) % 97}")
            depth.append(depth[above] + 1)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<RDF xmlns:r="http://www.w3.org/TR/RDF/">\n'
    with structure.open("w", encoding="utf-8") as file:
        file.write(head)
        for i, path in enumerate(paths):
            text = " ".join(words[j] for j in rng.integers(0, 5000, 20)) if i % 3 == 0 else ""
            file.write(f'  <Topic r:id="{path}">\n    <catid>{i}</catid>\n    <d:Description>{text}</d:Description>\n')
            file.write(f'    <related r:resource="{paths[i // 2]}"></related>\n' * 6 + "  </Topic>\n")
        file.write("</RDF>\n")
    with content.open("w", encoding="utf-8") as file:
        file.write(head)
        for begin in range(0, SITES, 100_000):
            topics = np.sort(rng.integers(0, len(paths), 100_000)).tolist()
            chosen = rng.choice(len(words), (100_000, 24), p=weight).tolist()
            for i, (topic, row) in enumerate(zip(topics, chosen, strict=True)):
                n = begin + i
                title, text = " ".join(words[j] for j in row[:5]), " ".join(words[j] for j in row[5:])
                url = f"http://www.{words[n % len(words)]}{n % 7}.{('com', 'org', 'co.uk')[n % 3]}/{n}"
                file.write(
                    f'  <Topic r:id="{paths[topic]}">\n    <link r:resource="{url}"></link>\n  </Topic>\n'
                    f'  <ExternalPage about="{url}">\n    <d:Title>{title}</d:Title>\n'
                    f"    <d:Description>{text.capitalize()}. Information, resources &amp; more.</d:Description>\n"
                    f"    <topic>{paths[topic]}</topic>\n  </ExternalPage>\n"
                )
        file.write("</RDF>\n")
    return structure, content


def _directory() -> Iterator[str]:
    structure, content = _dump()
    size = (structure.stat().st_size + content.stat().st_size) / 1e9
    target = DATA / "large.qvd"
    cost = run("benchmarks.knowledge:built", structure, content, target)
    about = json.loads(cost.told)
    disk = sum(file.stat().st_size for file in target.rglob("*") if file.is_file()) / 1e9
    opened = run("benchmarks.knowledge:opened", target, times=3)
    yield "| dump | categories | sites | build | peak memory | on disk | open and look up a word, a label and a host |"
    yield "|---|---|---|---|---|---|---|"
    yield (
        f"| {size:.1f} GB | {about['categories']:,} | {about['sites']:,} | {cost.seconds:,.0f} s"
        f" | {cost.peak_gib:.1f} GiB | {disk:.1f} GB | {opened.seconds:.3f} s, {opened.peak_gib:.1f} GiB |"
    )
    yield ""


def built(structure: str, content: str, target: str) -> None:
    """Build a directory."""
    from queryveil.knowledge.directory import build_directory

    with timed():
        about = build_directory([structure, content], target, overwrite=Path(target).exists())
    print(json.dumps(about))


def opened(target: str) -> None:
    """Open it and look something up; the imports are not counted."""
    import pyarrow as pa

    from queryveil.knowledge import open_taxonomy

    open_taxonomy("wordnet").phrases.find(pa.array(["warm up"]))
    with timed():
        base = open_taxonomy(target)
        base.terms.find(pa.array(["bade"]))
        base.phrases.find(pa.array(["bade"]))
        base.hosts.find(pa.array(["www.bade.com"])) if base.hosts else None


# What is right


def _accuracy() -> Iterator[str]:
    import pyarrow.parquet as pq

    from queryveil import read_log
    from queryveil.knowledge import Sites, categorize, open_taxonomy

    base = open_taxonomy(_world())
    log = read_log(DATA / "world.tsv")
    truth = pq.read_table(DATA / "world-truth" / "queries.parquet").to_pydict()
    topic = dict(zip(truth["query"], truth["topic"], strict=True))
    known = [topic[query].removeprefix("Top/").replace("_", " ").split("/") for query in log.query_text.to_pylist()]
    names = base.tree.names.to_pylist()
    place = {tuple(names[i] for i in base.tree.line(node)[1:]): node for node in range(len(names))}
    leaf = np.array([place[tuple(path)] for path in known])
    top = base.tree.at_level(leaf, 1)
    yield "| linker | distinct queries linked | of those right at level 1 | at level 2 | right of all, level 1 | 2 |"
    yield "|---|---|---|---|---|---|"
    for name, options in (
        ("terms", {}), ("phrases", {}), ("domains", {}), ("domains, by search in the sites", {"resolver": Sites(base)}),
        ("embedding", {}),
    ):  # fmt: skip
        found = categorize(log, base, name.split(",")[0], **options)  # type: ignore[arg-type]
        start, nodes = found.nodes()
        some = np.flatnonzero(np.diff(start))
        first = nodes[start[some]]
        right = [base.tree.at_level(first, 1) == top[some], first == leaf[some]]
        shares = [
            f"{len(some) / len(leaf):.1%}",
            *(f"{r.mean():.1%}" for r in right),
            *(f"{r.sum() / len(leaf):.1%}" for r in right),
        ]
        yield f"| {name} | {' | '.join(shares)} |"
    yield ""


if __name__ == "__main__":
    for line in report([int(sys.argv[1])], 1):
        print(line, flush=True)
