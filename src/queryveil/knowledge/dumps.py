"""Dumps of web directories and of other trees, read as streams: categories first, then sites or other names.

| kind | files |
|---|---|
| rdf | the Open Directory's `structure.rdf.u8` and `content.rdf.u8` |
| curlie | Curlie's `rdf-*-s.tsv` (category id, path) and `rdf-*-c.tsv` (address, title, description, category id) |
| paths | lines of a category path and the address of a site, with a tab between them |
| names | lines of a category path, maybe with a tab and another name of the category |
| skos | N-Triples: concepts of SKOS, such as DBpedia's categories, and maybe what has them as its subject |

Real dumps have control characters, bytes that are not UTF-8 and entries without an end. Entries that cannot be read are
counted and left out. Links between categories (`narrow`, `symbolic`, `related`) are not read: the tree is in the paths.
Those between languages (`altlang`) are for `world.py`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError
from queryveil.formats.source import BLOCK, blocks, opened, sample
from queryveil.knowledge.hosts import hosts_of

CATEGORY = pa.schema([("path", pa.string()), ("text", pa.string())])
SITE = pa.schema([("path", pa.string()), ("url", pa.string()), ("title", pa.string()), ("text", pa.string())])
NAME = pa.schema([("path", pa.string()), ("name", pa.string())])
LONGEST = 64 << 20
MENDED = "mended: texts with bytes that are no UTF-8"

_CONTROL = bytes(c for c in range(32) if c not in b"\t\n\r") + b"\x7f"
_TOPIC = re.compile(
    # Possessive, so that a long entry causes no backtracking.
    rb'<Topic r:id="([^"<]*)">((?:[^<]++|<(?!/Topic>|Topic |ExternalPage |Alias ))*+)</Topic>'
)
_DESCRIPTION = re.compile(rb"<d:Description>([^<]*)</d:Description>")
_OTHER_LANGUAGE = re.compile(rb'<altlang[0-9]? r:resource="(?:[^":<]*:)?([^"<]*)"')
_PAGE = re.compile(
    rb'<ExternalPage about="([^"<]*)">\s*(?:<d:Title>([^<]*)</d:Title>\s*|<d:Title/>\s*)?'
    rb"(?:<d:Description>([^<]*)</d:Description>\s*|<d:Description/>\s*)?"
    rb"(?:<(?!topic|d:|/ExternalPage)[^>]*>[^<]*</[^>]*>\s*)*<topic>([^<]*)</topic>\s*</ExternalPage>"
)
_TAGS = r"<[^<>]{1,200}>"
_ENTITY = r"&#?[0-9A-Za-z]{1,10};"


@dataclass
class Dump:
    """A dump that can be read from its beginning more than once.

    Attributes:
        kind: What it is.
        categories: Reads its categories: batches of CATEGORY.
        sites: Reads its sites: batches of SITE; None if it is a tree without sites.
        names: Reads other names of its categories: batches of NAME.
        links: Reads links between categories of different languages: pairs of paths.
        left_out: What could not be read, by reason.
    """

    kind: str
    categories: Callable[[], Iterator[pa.RecordBatch]]
    sites: Callable[[], Iterator[pa.RecordBatch]] | None
    names: Callable[[], Iterator[pa.RecordBatch]] = lambda: iter(())
    links: Callable[[], Iterator[tuple[str, str]]] = lambda: iter(())
    left_out: Counter[str] = field(default_factory=Counter)


def open_dump(paths: Sequence[str | Path], languages: Sequence[str] = ("en",)) -> Dump:
    """Detect the kind of some files by their first bytes, in any order.

    Args:
        paths: The files.
        languages: The languages whose labels are read, if labels say theirs. The first that a concept has names it.

    Raises:
        QueryveilError: If a file is missing, is something else, or is the wrong one of a pair.
    """
    files = [Path(path) for path in paths]
    if not 1 <= len(files) <= 2:
        raise QueryveilError(f"A dump is one file or two; got {len(files)}.")
    for file in files:
        if not file.is_file():
            raise QueryveilError(f"There is no file {file}; check the path.")
    kinds = {file: _kind(file) for file in files}
    if set(kinds.values()) == {"triples"}:
        return _skos(files, [id.encode() for id in languages])
    for one, other, kind in (("structure", "content", "rdf"), ("categories", "sites", "curlie")):
        found = [file for file in files if kinds[file] in (one, other)]
        if not found:
            continue
        name = {"structure": "structure.rdf.u8", "content": "content.rdf.u8"}.get
        have = [kinds[file] for file in files]
        if sorted(have) == sorted((one, other)):
            first, second = (next(file for file in files if kinds[file] == wanted) for wanted in (one, other))
            return _rdf(first, second) if kind == "rdf" else _curlie(first, second)
        lack = other if have[0] == one else one
        what = name(lack) or f"the file of {lack}"
        if len(files) == 1:
            raise QueryveilError(f"{files[0]} is one of a pair; name {what} as well.")
        raise QueryveilError(
            f"{files[0]} and {files[1]} are not a pair: the first holds {have[0]}, the second {have[1]}; name {what}"
            f" instead of {files[1]}."
        )
    if len(files) > 1:
        raise QueryveilError(f"{files[1]} is one too many; a table of paths and addresses is a single file.")
    return _paths(files[0]) if kinds[files[0]] == "paths" else _names(files[0])


def _kind(file: Path) -> str:
    head = sample(file)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        raise QueryveilError(f"{file} is empty; fetch it again.")
    if re.match(rb"<!doctype html|<html", start, re.IGNORECASE):
        raise QueryveilError(f"{file} is a web page, not a dump; a server may have sent it instead: fetch it again.")
    if _TRIPLE.search(head):
        return "triples"
    if start.startswith(b"<"):
        if b"<RDF" not in head:
            raise QueryveilError(
                f"{file} is XML, but not RDF of the Open Directory; name its structure and content dumps."
            )
        return "content" if _has(file, b"<ExternalPage ", b"<link r:", b"<link1 r:") else "structure"
    rows = [line.split(b"\t") for line in start.splitlines()[:50] if line.strip()]
    widths = Counter(len(row) for row in rows)
    if widths[1] == len(rows):
        if sum(b"/" in row[0] for row in rows) * 2 < len(rows):
            raise QueryveilError(
                f"{file} is not a dump of a web directory or another tree; each line needs a path such as Arts/Music,"
                " maybe with a tab and the address of a site, or another name."
            )
        return "names"
    usual = widths.most_common(1)[0][0]
    typical = next(row for row in rows if len(row) == usual)
    if usual >= 4 and b"." in typical[0]:
        return "sites"
    if typical[0].strip().isdigit():
        return "categories"
    seconds = pa.array([row[1].decode("utf-8", "replace") for row in rows if len(row) > 1])
    return "paths" if pc.any(pc.is_valid(hosts_of(seconds))).as_py() else "names"


def _has(file: Path, *marks: bytes) -> bool:
    """Whether a mark occurs near the beginning; the first topics of a content dump have no sites."""
    with opened(file) as stream:
        head = stream.read(BLOCK)
    return any(mark in head for mark in marks)


# RDF


def _records(file: Path) -> Iterator[bytes]:
    """The file in blocks of whole records, without control characters."""
    rest = b""
    ended = False
    with opened(file) as stream:
        while data := stream.read(BLOCK):
            data = rest + data.translate(None, _CONTROL)
            cut = max(data.rfind(b"</Topic>"), data.rfind(b"</ExternalPage>"))
            if cut < 0 and len(data) > LONGEST:
                raise QueryveilError(
                    f"{file} has {LONGEST >> 20} MB without the end of an entry; it is not a dump of a web directory."
                )
            cut = data.find(b">", cut) + 1 if cut >= 0 else 0
            if cut:
                yield data[:cut]
            rest = data[cut:]
            ended = b"</RDF>" in rest
    if rest:
        yield rest  # what does not close there is still counted
    if not ended:
        raise QueryveilError(f"{file} is cut off: it does not end with </RDF>; fetch it again.")


def _rdf(structure: Path, content: Path) -> Dump:
    def categories() -> Iterator[pa.RecordBatch]:
        for data in _records(structure):
            found = _TOPIC.findall(data)
            dump.left_out["malformed categories"] += data.count(b"<Topic ") - len(found)
            texts = [match[1] if (match := _DESCRIPTION.search(body)) else b"" for _, body in found]
            path = _path(_texts([path for path, _ in found], dump.left_out))
            yield pa.record_batch([path, _plain(_texts(texts, dump.left_out))], schema=CATEGORY)

    def sites() -> Iterator[pa.RecordBatch]:
        for data in _records(content):
            found = _PAGE.findall(data)
            dump.left_out["malformed sites"] += data.count(b"<ExternalPage ") - len(found)
            url, title, text, path = (_texts([row[i] for row in found], dump.left_out) for i in range(4))
            yield pa.record_batch([_path(path), url, _plain(title), _plain(text)], schema=SITE)

    def links() -> Iterator[tuple[str, str]]:
        for data in _records(structure):
            pairs = [(path, other) for path, body in _TOPIC.findall(data) for other in _OTHER_LANGUAGE.findall(body)]
            one, other = (_path(_texts([pair[i] for pair in pairs], Counter())).to_pylist() for i in range(2))
            yield from zip(one, other, strict=True)

    dump = Dump("rdf", categories, sites, links=links)
    return dump


def _texts(values: list[bytes], left_out: Counter[str]) -> pa.Array:
    """Decode bytes with entities; bytes that are not UTF-8 become replacement characters, and are counted."""
    found = pa.array(values, pa.binary())
    try:
        texts = found.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [value.decode("utf-8", "replace") for value in values]
        left_out[MENDED] += sum("\ufffd" in text for text in decoded)
        texts = pa.array(decoded, pa.string())
    coded = pc.match_substring_regex(texts, _ENTITY)
    if not pc.any(coded).as_py():
        return texts
    # A replaced entity may be a control character.
    plain = [unescape(text).translate(_NO_CONTROL) for text in texts.filter(coded).to_pylist()]
    return pc.replace_with_mask(texts, coded, pa.array(plain, pa.string()))


_NO_CONTROL = dict.fromkeys([*range(32), 127], " ")


def _plain(texts: pa.Array) -> pa.Array:
    """Texts without markup: descriptions are HTML inside of XML."""
    marked = pc.match_substring_regex(texts, _TAGS)
    if not pc.any(marked).as_py():
        return texts
    plain = pc.replace_substring_regex(texts.filter(marked), _TAGS, " ")
    return pc.replace_with_mask(texts, marked, _texts([text.encode() for text in plain.to_pylist()], Counter()))


# Tables


def _rows(file: Path, width: int, left_out: Counter[str]) -> Iterator[list[pa.Array]]:
    """The first columns of a table of tabs without a header, in batches."""
    for block in blocks(file):
        rows = [line.split(b"\t", width) for line in bytes(block.data).translate(None, _CONTROL).splitlines()]
        rows = [row for row in rows if row != [b""]]
        good = [row for row in rows if len(row) >= width]
        left_out["lines with too few columns"] += len(rows) - len(good)
        yield [_texts([row[i].strip() for row in good], left_out) for i in range(width)]


def _path(paths: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(paths, "^/?(Top/)?|/$", "")


def _curlie(categories_file: Path, sites_file: Path) -> Dump:
    path_of: dict[str, str] = {}

    def categories() -> Iterator[pa.RecordBatch]:
        path_of.clear()
        for number, path in _rows(categories_file, 2, dump.left_out):
            plain = _path(path)
            path_of.update(zip(number.to_pylist(), plain.to_pylist(), strict=True))
            yield pa.record_batch([plain, pa.array([""] * len(plain))], schema=CATEGORY)

    def sites() -> Iterator[pa.RecordBatch]:
        for url, title, text, number in _rows(sites_file, 4, dump.left_out):
            path = pa.array([path_of.get(id_) for id_ in number.to_pylist()], pa.string())
            yield pa.record_batch([path, url, _plain(title), _plain(text)], schema=SITE)

    dump = Dump("curlie", categories, sites)
    return dump


def _paths(file: Path) -> Dump:
    def sites() -> Iterator[pa.RecordBatch]:
        for path, url in _rows(file, 2, dump.left_out):
            none = pa.array([""] * len(url))
            yield pa.record_batch([_path(path), url, none, none], schema=SITE)

    def categories() -> Iterator[pa.RecordBatch]:
        for batch in sites():
            # A heading has no address.
            path = batch["path"].filter(pc.is_valid(hosts_of(batch["url"]))).unique()
            yield pa.record_batch([path, pa.array([""] * len(path))], schema=CATEGORY)
        dump.left_out.clear()  # the same lines come again with the sites

    dump = Dump("paths", categories, sites)
    return dump


def _names(file: Path) -> Dump:
    def rows(left_out: Counter[str]) -> Iterator[tuple[pa.Array, pa.Array]]:
        for block in blocks(file):
            lines = [line.split(b"\t", 2) for line in bytes(block.data).translate(None, _CONTROL).splitlines()]
            lines = [line for line in lines if line[0].strip()]
            path, name = ([line[i].strip() if len(line) > i else b"" for line in lines] for i in range(2))
            yield _path(_texts(path, left_out)), _texts(name, left_out)

    def names() -> Iterator[pa.RecordBatch]:
        for path, name in rows(Counter()):  # the same lines came with the categories
            some = pc.match_substring_regex(name, _LETTER)
            yield pa.record_batch([path.filter(some), name.filter(some)], schema=NAME)

    def categories() -> Iterator[pa.RecordBatch]:
        for path, name in rows(dump.left_out):
            good = pc.or_(pc.equal(name, ""), pc.match_substring_regex(name, _LETTER))
            dump.left_out["lines with a name without a letter"] += len(path) - pc.sum(good).as_py()
            path = path.filter(good).unique()
            yield pa.record_batch([path, pa.array([""] * len(path))], schema=CATEGORY)

    dump = Dump("names", categories, None, names)
    return dump


_LETTER = r"\p{L}"


# Triples

_TRIPLE = re.compile(
    rb"^<([^<>\s]*)> +<([^<>\s]*)> +(?:<([^<>\s]*)>"
    rb'|"((?:[^"\\\n]|\\.)*)"(?:@([A-Za-z]+)[A-Za-z0-9-]*|\^\^<[^<>\s]*>)?) *\. *\r?$',
    re.MULTILINE,
)
_BROADER = (b"http://www.w3.org/2004/02/skos/core#broader", b"http://www.w3.org/2000/01/rdf-schema#subClassOf")
_NARROWER = (b"http://www.w3.org/2004/02/skos/core#narrower",)
_LABEL = (b"http://www.w3.org/2004/02/skos/core#prefLabel", b"http://www.w3.org/2000/01/rdf-schema#label")
_OTHER_LABEL = (b"http://www.w3.org/2004/02/skos/core#altLabel",)
_SUBJECT = (b"http://purl.org/dc/terms/subject",)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")


def _triples(
    files: Sequence[Path], left_out: Counter[str], languages: Sequence[bytes]
) -> Iterator[list[tuple[bytes, ...]]]:
    """The triples of files, in batches; labels in other languages are passed over."""
    for file in files:
        for block in blocks(file):
            data = bytes(block.data)
            found = _TRIPLE.findall(data)
            lines = sum(1 for line in data.splitlines() if line.strip() and not line.lstrip().startswith(b"#"))
            left_out["lines that are no triples"] += lines - len(found)
            yield [triple for triple in found if triple[4][:2].lower() in (b"", *languages)]


def _skos(files: Sequence[Path], languages: Sequence[bytes]) -> Dump:
    """A graph as a tree: a concept is below the broader one by which it is nearest to the top."""
    path_of: dict[bytes, str] = {}
    spoken: dict[bytes, int] = {}

    def place(tag: bytes) -> int:
        """The place of the language of a label; one that says none is in the first."""
        return languages.index(tag[:2].lower()) if tag else 0

    def categories() -> Iterator[pa.RecordBatch]:
        path_of.clear()
        spoken.clear()
        label: dict[bytes, str] = {}
        below: dict[bytes, list[bytes]] = {}
        has_broader: set[bytes] = set()
        for triples in _triples(files, dump.left_out, languages):
            for one, what, other, text, tag in triples:
                if what in _LABEL:
                    if place(tag) < spoken.get(one, len(languages)):
                        label[one], spoken[one] = _unescaped(text), place(tag)
                elif other and what in (*_BROADER, *_NARROWER):
                    child, parent = (one, other) if what in _BROADER else (other, one)
                    if child != parent:
                        below.setdefault(child, [])
                        below.setdefault(parent, []).append(child)
                        has_broader.add(child)
        level = [concept for concept in below if concept not in has_broader]
        for concept in level:
            path_of[concept] = _name(concept, label)
        while level:
            deeper = []
            for concept in level:
                for child in below[concept]:
                    if child not in path_of:
                        path_of[child] = f"{path_of[concept]}/{_name(child, label)}"
                        deeper.append(child)
            level = deeper
        dump.left_out["concepts in a circle, below no top"] += len(below) - len(path_of)
        path = pa.array(path_of.values(), pa.string()).unique()
        yield pa.record_batch([path, pa.array([""] * len(path))], schema=CATEGORY)

    def names() -> Iterator[pa.RecordBatch]:
        for triples in _triples(files, Counter(), languages):
            found = [
                (path_of[other], _name(one, {})) if what in _SUBJECT else (path_of[one], _unescaped(text))
                for one, what, other, text, tag in triples
                if (what in _SUBJECT and other in path_of)
                or (one in path_of and (what in _OTHER_LABEL or (what in _LABEL and place(tag) != spoken[one])))
            ]
            yield pa.record_batch([pa.array([row[i] for row in found], pa.string()) for i in range(2)], schema=NAME)

    dump = Dump("skos", categories, None, names)
    return dump


def _name(concept: bytes, label: dict[bytes, str]) -> str:
    """The label of a concept or, for want of one, the end of its address."""
    if concept in label:
        name = label[concept]
    else:
        address = concept.decode("utf-8", "replace")
        _, category, name = address.partition("Category:")
        if not category:
            name = address[8 + max(address[8:].rfind("#"), address[8:].rfind("/")) + 1 :]
        name = unquote(name)
    return " ".join(re.sub(r"[/_\x00-\x1f]+", " ", name).split()) or "?"


def _unescaped(text: bytes) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if not code:
            return {"n": " ", "t": " ", "r": " "}.get(match[3], match[3])
        number = int(code, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"

    return _ESCAPE.sub(character, text.decode("utf-8", "replace"))
