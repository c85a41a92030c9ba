"""Building a web directory or another taxonomy from a dump, once; `opened.py` says what is in its folder."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets
from queryveil.engines import DuckDB
from queryveil.errors import QueryveilError, did_you_mean, option, require
from queryveil.files.folders import LocalFolder, State
from queryveil.kernels import trees
from queryveil.kernels.digest import digests
from queryveil.kernels.intern import Interner
from queryveil.kernels.ranks import best_of
from queryveil.kernels.types import Ints, Longs, ULongs
from queryveil.knowledge.base import MOST_CATEGORIES
from queryveil.knowledge.dumps import Dump, open_dump
from queryveil.knowledge.hosts import MOST_LABELS, domains_of, hosts_of, parent_of
from queryveil.knowledge.index import Index
from queryveil.knowledge.labels import Names, keys
from queryveil.knowledge.nearest import Cells, unit
from queryveil.knowledge.opened import ABOUT, ARRAYS, CELLS, TREE, VERSION
from queryveil.knowledge.sites import SiteWriter
from queryveil.knowledge.tree import Tree
from queryveil.knowledge.vectors import embed, width
from queryveil.knowledge.world import in_english_tree
from queryveil.text import Language, normal_form
from queryveil.text import language as speech
from queryveil.text.arrays import byte_spans
from queryveil.text.detection import named
from queryveil.text.languages import DEFAULT

_LABEL_WEIGHT = np.float32(0.25)  # of the name of a category, next to all its sites
_ALIASES = {"kids": "kids_and_teens"}
_USUAL = ("world", "regional", "kids_and_teens")  # one may leave these out without knowing whether they are there


def build_directory(
    paths: Sequence[str | Path],
    target: str | Path,
    *,
    leave_out: Sequence[str] = (),
    language: str | Sequence[str] = DEFAULT,
    map_world: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Make a web directory from a dump, or a taxonomy from another tree.

    Args:
        paths: `structure.rdf.u8` and `content.rdf.u8` of the Open Directory, the two tables of Curlie, one table of
            paths and addresses, or of paths and other names of categories, or triples of SKOS; maybe compressed.
        target: The folder to make.
        leave_out: Top categories to leave out, such as World, Regional, Kids.
        language: The language of its texts by its code, or several in a list; of SKOS, the labels in these are read.
        map_world: Whether categories of `World`, which are in other languages, are put into the English ones that they
            are linked to. The tree is then all English, and has names and sites in other languages.
        overwrite: Whether to replace an earlier web directory.
        progress: Called with the number of sites so far.

    Returns:
        What `about.json` says.
    """
    place = LocalFolder(target)
    replaces = _check_target(place, overwrite)
    languages = named(language, "a dump is read piece by piece")
    dump = open_dump(paths, languages)
    if map_world:
        dump = in_english_tree(dump)
    if dump.sites is not None:
        require("A web directory", "publicsuffixlist", "tantivy")
    try:
        stage = place.stage()
    except OSError as error:
        raise QueryveilError(f"{target} cannot be written: {error.strerror}; name another place.") from None
    try:
        about = _Build(dump, stage.path, leave_out, speech(*languages)).run(progress)
        place.take(stage, replaces)
    except OSError as error:
        raise QueryveilError(f"{target} cannot be written: {error.strerror}; name another place.") from None
    finally:
        stage.remove()
    return about


def _check_target(place: LocalFolder, overwrite: bool) -> State | None:
    place.tidy()
    found = place.state()
    if found is not None:
        if place.path.is_symlink() or not (overwrite and _is_directory(place)):
            raise QueryveilError(
                f"{place} exists already; choose another name, or replace an earlier web directory with"
                f" {option('overwrite', True)}.",
                code="exists",
            )
    elif place.parent() is None:
        raise QueryveilError(f"The folder {place.path.parent} does not exist; make it first.")
    return found


def _is_directory(place: LocalFolder) -> bool:
    """Whether a folder holds a web directory and nothing else that would be lost."""
    try:
        about = json.loads((place.path / ABOUT).read_text("utf-8"))
        return place.files() == sorted([ABOUT, *about["files"]])
    except (OSError, ValueError, KeyError, TypeError):
        return False


class _Build:
    """The steps from a dump to a folder."""

    def __init__(self, dump: Dump, folder: Path, leave_out: Sequence[str], language: Language) -> None:
        self.dump = dump
        self.language = language
        self.folder = folder
        plain = [name.strip("/").replace(" ", "_").lower() for name in leave_out]
        self.leave_out = {_ALIASES.get(name, name): "" for name in plain}
        """Top categories to leave out, in lower case, and what the dump calls them."""
        self.terms = _Texts()
        self.hosts = _Texts()

    def run(self, progress: Callable[[int], None] | None) -> dict[str, Any]:
        paths = self._categories()
        engine = DuckDB(memory_limit=1_500_000_000)
        try:
            engine.load("postings", _POSTINGS, lambda: self._postings(paths, progress))
            self._hosts(engine)
            own, other = self._labels(paths)
            self._terms(engine, own, other)
            self._phrases(own, other)
            self._meanings()
        finally:
            engine.close()
        left_out = {reason: count for reason, count in sorted(self.dump.left_out.items()) if count}
        about = {
            "format": VERSION,
            "kind": self.dump.kind,
            "languages": list(self.language.ids),
            "left_out_branches": [name for name in self.leave_out.values() if name],
            "categories": len(self.tree),
            "levels": self.tree.height,
            "sites": int(self.sites.sum()),
            "hosts": len(self.hosts),
            "terms": len(self.terms),
            "names": len(other.node),
            "left_out": left_out,
        }
        files = {name: (self.folder / name).stat().st_size for name in LocalFolder(self.folder).files()}
        (self.folder / ABOUT).write_text(json.dumps(about | {"files": files}, indent=2) + "\n", "utf-8")
        return about

    def _wanted(self, paths: pa.Array) -> pa.Array:
        """Which paths are in none of the branches that are left out."""
        top = pc.struct_field(pc.extract_regex(paths, "^(?P<top>[^/]*)"), "top")
        left_out = pc.is_in(pc.utf8_lower(top), value_set=pa.array(list(self.leave_out), pa.string()))
        for name in top.filter(left_out).unique().to_pylist():
            self.leave_out[name.lower()] = name
        return pc.fill_null(pc.and_not(pc.greater(pc.utf8_length(top), 0), left_out), False)

    def _categories(self) -> Index:
        """Read the tree; returns an index from paths to nodes."""
        text_of: dict[str, str] = {}
        for batch in self.dump.categories():
            missing = batch.filter(self._wanted(batch["path"]))
            text_of.update(zip(missing["path"].to_pylist(), missing["text"].to_pylist(), strict=True))
        text_of.pop("Top", None)
        unknown = next((name for name, found in self.leave_out.items() if not found and name not in _USUAL), None)
        if unknown is not None:
            tops = sorted({path.split("/", 1)[0] for path in text_of})
            raise QueryveilError(
                f"There is no top category '{unknown}' to leave out; {did_you_mean(unknown, tops[:30])}."
            )
        if not text_of:
            raise QueryveilError(
                "The dump has no category, except those that are left out; check that it is the right file."
            )
        # With a separator that sorts before all letters, the order of the paths is that of a walk down the tree.
        known = sorted({path.strip("/").replace("/", "\x00") for path in text_of} - {""})
        paths, depth, open_ = [""], [0], list[str]()
        for path in known:
            parts = path.split("\x00")
            shared = 0
            while shared < min(len(open_), len(parts)) and open_[shared] == parts[shared]:
                shared += 1
            for level in range(shared, len(parts)):
                paths.append("/".join(parts[: level + 1]))
                depth.append(level + 1)
            open_ = parts
        path = pa.array(paths)
        name = pc.struct_field(pc.extract_regex(path, "(?P<name>[^/]*)$"), "name")
        name = pc.replace_substring(name, "_", " ")
        names = pa.concat_arrays([pa.array(["Top"]), name[1:]])
        self.tree = Tree.from_depths(np.array(depth), names)
        self.texts = pa.array([text_of.get(path, "") for path in paths])
        for key in TREE:
            np.save(self.folder / f"tree-{key}.npy", getattr(self.tree, key))
        return Index.of(path, np.arange(len(path), dtype=np.int32))

    def _postings(self, paths: Index, progress: Callable[[int], None] | None) -> Iterator[pa.RecordBatch]:
        """Read the sites; returns how many sites of a category have a term, or are on a host or below it."""
        self.sites = np.zeros(len(self.tree), np.int64)
        self.meaning = np.zeros((len(self.tree), width()), np.float32)
        if self.dump.sites is None:
            return
        seen = 0
        with SiteWriter(self.folder / "sites") as writer:
            for batch in self.dump.sites():
                empty = pc.equal(pc.fill_null(batch["path"], "?"), "")
                self.dump.left_out["sites without a category"] += pc.sum(empty).as_py() or 0
                batch = batch.filter(self._wanted(batch["path"].fill_null("?")))
                node = paths.first(batch["path"])
                host = hosts_of(batch["url"])
                known = node >= 0
                good = known & host.is_valid().to_numpy(zero_copy_only=False)
                self.dump.left_out["sites in a category that is not in the tree"] += int((~known).sum())
                self.dump.left_out["sites without a host"] += int((known & ~good).sum())
                batch, host, node = batch.filter(pa.array(good)), host.filter(pa.array(good)), node[good]
                self.sites += np.bincount(node, minlength=len(self.sites))
                writer.add(batch)
                text = normal_form(pc.binary_join_element_wise(batch["title"], batch["text"], " "))
                trees.add_rows(self.meaning, node, embed(text).vectors)
                yield from (self._terms_of(text, node), *self._hosts_of(host, node))
                seen += len(batch)
                if progress:
                    progress(seen)
        if seen == 0:
            why = ", ".join(f"{count:,} {what}" for what, count in sorted(self.dump.left_out.items()) if count)
            raise QueryveilError(
                f"The dump has no usable site{f' ({why})' if why else ''}; check that it is the right file, that its"
                " columns are a path and an address, or that two files belong together."
            )

    def _terms_of(self, text: pa.Array, node: Ints) -> pa.RecordBatch:
        split = self.language.words(text)
        coded = split.text.dictionary_encode()
        term = self.terms.number(self.language.stem(coded.dictionary))[coded.indices.to_numpy()]
        site = np.repeat(np.arange(len(node)), split.per_query)
        # A site counts once for each word, even if it repeats it.
        pairs = np.unique(site << 32 | term)
        return _counted(_TERM, pairs & 0xFFFFFFFF, node[pairs >> 32])

    def _hosts_of(self, host: pa.Array, node: Ints) -> Iterator[pa.RecordBatch]:
        """The hosts themselves, and all domains above them as `above`."""
        yield _counted(_HOST, self.hosts.number(host), node)
        domain = domains_of(host)
        for labels in range(1, MOST_LABELS):
            parent = parent_of(host, domain, labels)
            some = parent.is_valid()
            if not pc.any(some).as_py():
                break
            here = some.to_numpy(zero_copy_only=False)
            yield _counted(_ABOVE, self.hosts.number(parent.filter(some)), node[here])

    def _hosts(self, engine: DuckDB) -> None:
        """The categories of a host, ranked by its own sites, then by those of the hosts below it, then by depth."""
        rows = engine.fetch(
            f"SELECT key, node, CAST(sum(CASE WHEN kind = {_HOST} THEN n ELSE 0 END) AS BIGINT) AS own,"
            f" CAST(sum(CASE WHEN kind = {_ABOVE} THEN n ELSE 0 END) AS BIGINT) AS below FROM postings"
            f" WHERE kind <> {_TERM} GROUP BY key, node ORDER BY key, node"
        )
        key, node, own, below = (rows[name].to_numpy() for name in ("key", "node", "own", "below"))
        self._save("hosts", self.hosts, [_best(key, node, own, below * (self.tree.height + 1) - self.tree.depth[node])])

    def _labels(self, paths: Index) -> tuple[Names, Names]:
        """The labels of categories and their other names, in normal form; the root's is no topic."""
        names = [Names(pa.array([], pa.string()), np.zeros(0, np.int32))]
        for batch in self.dump.names():
            node = paths.first(batch["path"])
            known = np.flatnonzero(node > 0)
            names.append(Names(normal_form(batch["name"].take(pa.array(known))), node[known]))
        other = Names(pa.concat_arrays([some.text for some in names]), np.concatenate([some.node for some in names]))
        return Names(normal_form(self.tree.names[1:]), np.arange(1, len(self.tree), dtype=np.int32)), other

    def _terms(self, engine: DuckDB, own: Names, other: Names) -> None:
        """The categories of a term: first those with this name, then those with it in their name, then the others.

        Within each kind they are ranked by the number of sites that have the term: for a category with it in its name,
        the sites in it and below, for another those in it.
        """
        found_by_name = [self._named(part) for names in (own, other) for part in names.parts()]
        pair, whole = (np.concatenate(column) for column in zip(*found_by_name, strict=True))
        by_name, place = np.unique(pair, return_inverse=True)
        level = np.ones(len(by_name), np.int64)
        np.maximum.at(level, place, 1 + whole)
        counts = engine.fetch(f"SELECT key, count(*) AS n FROM postings WHERE kind = {_TERM} GROUP BY key ORDER BY key")
        size = np.zeros(len(self.terms), np.int64)
        size[counts["key"].to_numpy()] = counts["n"].to_numpy()
        # Part by part, because together they are the largest thing there is.
        bounds = np.flatnonzero(np.diff(np.cumsum(size) // _PART, prepend=0)) + 1
        found = []
        for low, high in pairwise([0, *bounds[bounds < len(size)].tolist(), len(size)]):
            rows = engine.fetch(
                f"SELECT key, node, CAST(sum(n) AS BIGINT) AS n FROM postings WHERE kind = {_TERM} AND key >= {low}"
                f" AND key < {high} GROUP BY key, node ORDER BY key, node"
            )
            pair = rows["key"].to_numpy() << 32 | rows["node"].to_numpy()
            part = slice(*np.searchsorted(by_name, [low << 32, high << 32]))
            found.append(self._ranked(pair, rows["n"].to_numpy(), by_name[part], level[part]))
        self._save("terms", self.terms, found)

    def _named(self, names: Names) -> tuple[Longs, Longs]:
        """The terms in names with their categories, as term * 2**32 + category, and 1 where the name is the term."""
        split = self.language.words(names.text)
        coded = split.text.dictionary_encode()
        term = self.terms.number(self.language.stem(coded.dictionary))[coded.indices.to_numpy()]
        whole = np.repeat(split.per_query == 1, split.per_query).astype(np.int64)
        return term << 32 | np.repeat(names.node.astype(np.int64), split.per_query), whole

    def _ranked(self, pair: Longs, sites: Longs, by_name: Longs, level: Longs) -> "_Best":
        """The best categories of some terms.

        Args:
            pair: Terms and the categories with sites that have them, as term * 2**32 + category, ascending.
            sites: How many such sites each has.
            by_name: Terms and the categories with names that have them, the same way.
            level: 2 where the name is the term, 1 where it is one of its words.
        """
        running = offsets(sites)
        node = by_name & 0xFFFFFFFF
        low, high = np.searchsorted(pair, by_name), np.searchsorted(pair, by_name - node + self.tree.end[node])
        both = np.union1d(pair, by_name)
        score = np.zeros(len(both), np.int64)
        score[np.searchsorted(both, pair)] = sites
        score[np.searchsorted(both, by_name)] = running[high] - running[low] + (level << 40)
        place = (both & 0xFFFFFFFF).astype(np.int32)
        return _best(both >> 32, place, score, -self.tree.depth[place].astype(np.int64))

    def _phrases(self, own: Names, other: Names) -> None:
        """A label of several categories stands for the one nearest to the root, then the one with the most sites."""
        running = offsets(self.sites)
        below = running[self.tree.end] - running[:-1]

        def ranked(names: Names) -> Names:
            stop = pc.is_in(names.text, value_set=pa.array(sorted(self.language.stop_words)))
            order = np.lexsort((names.node, -below[names.node], self.tree.depth[names.node]))
            return names.take(order[~stop.to_numpy(zero_copy_only=False)[order]])

        found = keys(self.tree, ranked(own), ranked(other), self.language)
        self._write("phrases", Index.of_digests(*found, most=MOST_CATEGORIES))
        table = pa.table({"name": self.tree.names, "text": self.texts, "sites": below})
        with pa.OSFile(str(self.folder / "nodes.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table.combine_chunks())

    def _meanings(self) -> None:
        """The meaning of a category comes from the sites in it and below, and a little from its name."""
        trees.add_to_parents(self.tree.parent, self.meaning)
        for begin in range(0, len(self.tree), 10_000):
            some = slice(begin, begin + 10_000)
            paths = [self.tree.path(node, between=", ") for node in range(len(self.tree))[some]]
            label = embed(normal_form(pa.array(paths))).vectors
            self.meaning[some] = unit(unit(self.meaning[some]) + _LABEL_WEIGHT * label)
        self.meaning[0] = 0  # the root means everything, so it is not a topic
        cells = Cells.of(self.meaning)
        for key in CELLS:
            np.save(self.folder / f"meanings-{key}.npy", getattr(cells, key))

    def _save(self, name: str, texts: "_Texts", parts: list["_Best"]) -> None:
        """Keep the best categories of every key, in the order of the digests of its texts."""
        key, size, node = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        low, high = (half[key] for half in texts.digests())
        order = np.lexsort((high, low))
        place = Ragged(offsets(size)).positions(order)
        self._write(name, Index(offsets(size[order]), low[order], high[order], node[place]))

    def _write(self, name: str, index: Index) -> None:
        for key in ARRAYS:
            np.save(self.folder / f"{name}-{key}.npy", getattr(index, key))


_TERM, _HOST, _ABOVE = range(3)
_POSTINGS = pa.schema([("kind", pa.int8()), ("key", pa.int64()), ("node", pa.int32()), ("n", pa.int32())])
_PART = 4_000_000

_Best = tuple[Longs, Longs, Ints]
"""Keys, how many nodes each has, and the nodes."""


def _best(key: Longs, node: Ints, first: Longs, then: Longs) -> _Best:
    """The best nodes of every key; the rows of a key are together."""
    start = np.append(np.flatnonzero(np.diff(key, prepend=-1)), len(key))
    kept_start, kept = best_of(start, first, then, MOST_CATEGORIES)
    return key[start[:-1]], np.diff(kept_start), node[kept]


def _counted(kind: int, key: NDArray[np.integer[Any]], node: Ints) -> pa.RecordBatch:
    """How often each pair of a key and a node occurs."""
    pairs, counts = np.unique(key.astype(np.int64) << 32 | node, return_counts=True)
    columns = [
        np.full(len(pairs), kind, np.int8),
        pairs >> 32,
        (pairs & 0xFFFFFFFF).astype(np.int32),
        counts.astype(np.int32),
    ]
    return pa.record_batch([pa.array(column) for column in columns], schema=_POSTINGS)


class _Texts:
    """Numbers for texts; only the digests of the texts are kept."""

    def __init__(self) -> None:
        self._known = Interner()

    def __len__(self) -> int:
        return self._known.count

    def number(self, texts: pa.Array) -> Longs:
        """The number of each text."""
        return self._known.add(*digests(*byte_spans(texts)))[0].astype(np.int64)

    def digests(self) -> tuple[ULongs, ULongs]:
        """The digest of every number."""
        return self._known.digests()
