"""Categories in other languages, such as `World/Deutsch/Kultur`, put into the English tree by the links between them.

In the Open Directory, a category names those of other languages that are about the same (`altlang`). A category of
`World` is put where its own link leads or, without one, where that of the nearest category above it leads.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError, option
from queryveil.knowledge.dumps import NAME, Dump

WORLD = "World/"
NOT_LINKED = "categories of World without a link to an English one, also above them"
NOT_LINKED_SITES = "sites in such categories"


def in_english_tree(dump: Dump) -> Dump:
    """A dump whose categories of `World` are English ones: their sites are put there, and their names are other names.

    Args:
        dump: A dump with links between categories of different languages.

    Raises:
        QueryveilError: If it has no such links.
    """
    english = _links(dump)
    if not english:
        raise QueryveilError(
            "The dump has no link between categories of World and English ones, which only RDF of the Open Directory"
            f" has; leave {option('map_world', True)} out."
        )

    def target(path: str) -> str | None:
        """The English category of a path, which may be below one that is linked."""
        while path.startswith(WORLD):
            if path in english:
                return english[path]
            path = path.rpartition("/")[0]
        return None

    def categories() -> Iterator[pa.RecordBatch]:
        for batch in dump.categories():
            other = pc.or_(pc.starts_with(batch["path"], WORLD), pc.equal(batch["path"], WORLD[:-1]))
            below = [path for path in batch["path"].filter(other).to_pylist() if path.count("/") > 1]
            dump.left_out[NOT_LINKED] += sum(target(path) is None for path in below)
            yield batch.filter(pc.invert(other))

    def sites() -> Iterator[pa.RecordBatch]:
        assert dump.sites is not None  # noqa: S101  # only RDF has links, and it has sites
        for batch in dump.sites():
            path = pc.fill_null(batch["path"], "")
            other = pc.starts_with(path, WORLD)
            if pc.any(other).as_py():
                found = [target(one) for one in path.filter(other).to_pylist()]
                dump.left_out[NOT_LINKED_SITES] += found.count(None)
                path = pc.replace_with_mask(path, other, pa.array(found, pa.string()))
            there = path.is_valid()
            yield batch.set_column(0, "path", path).filter(there)

    def names() -> Iterator[pa.RecordBatch]:
        yield from dump.names()
        name = [path.rpartition("/")[2].replace("_", " ") for path in english]
        yield pa.record_batch([pa.array(list(english.values())), pa.array(name)], schema=NAME)

    return replace(dump, categories=categories, sites=sites, names=names)


def _links(dump: Dump) -> dict[str, str]:
    """The English category of each category of `World` that is linked: one that links back first, then by name."""
    there, back = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for path, other in dump.links():
        if path.startswith(WORLD) != other.startswith(WORLD):
            ours, english, found = (path, other, there) if path.startswith(WORLD) else (other, path, back)
            found[ours].add(english)
    return {
        path: min(there[path] | back[path], key=lambda one: (one not in there[path] & back[path], len(one), one))
        for path in sorted({*there, *back})
    }
