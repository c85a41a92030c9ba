"""Where a query, phrase, term or address sits in a tree of topics.

Methods see a tree with integer nodes (`Tree`) and the nodes that each query is linked to (`Links`), whatever the
taxonomy: WordNet, which ships with queryveil, or a directory of the web that the user brings.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from queryveil.errors import QueryveilError
from queryveil.knowledge.base import MOST_CATEGORIES, Taxonomy
from queryveil.knowledge.linkers import categorize_domains, categorize_phrases, categorize_terms, hosts_needed
from queryveil.knowledge.links import Coverage, Links
from queryveil.knowledge.resolvers import Clicks, Remote, Resolver, Sites
from queryveil.knowledge.tree import Tree
from queryveil.log import QueryLog, local
from queryveil.log.sharing import shared

__all__ = [
    "Clicks",
    "Coverage",
    "Links",
    "Remote",
    "Resolver",
    "Sites",
    "Taxonomy",
    "Tree",
    "categorize",
    "categorize_texts",
    "hosts_needed",
    "known_as",
    "open_taxonomy",
    "recall_taxonomy",
    "taxonomy_name",
]

LINKERS = ("terms", "phrases", "domains", "embedding")


def open_taxonomy(name: str | Path) -> Taxonomy:
    """Open a taxonomy.

    Args:
        name: `wordnet`, which ships with queryveil, or the folder of a directory that `build_directory` made.
    """
    if str(name) == "wordnet":
        from queryveil.knowledge.wordnet import wordnet

        return wordnet()
    if not Path(name).exists():
        raise QueryveilError(
            f"There is no taxonomy '{name}'; there is wordnet, and what 'queryveil directory build' makes."
        )
    from queryveil.knowledge.opened import open_directory

    known_as(Path(name).resolve().name, Path(name).resolve())
    return open_directory(name)


def taxonomy_name(name: str | Path) -> str:
    """What a manifest calls a taxonomy: no path, which may tell who is behind it."""
    if str(name) == "wordnet":
        return "wordnet"
    found = Path(name).resolve().name
    if found == "wordnet":
        raise QueryveilError(f"A directory must not be called 'wordnet', which is built in; rename {name}.")
    return found


def known_as(name: str, place: str | Path) -> None:
    """Let the taxonomy that manifests call so be the one at some place; a claim knows it by its digest.

    What is built in stays what it is.
    """
    place = Path(place)
    if name != "wordnet":
        _opened[name] = (place, *(other for other in _opened.get(name, ()) if other != place))


_opened: dict[str, tuple[Path, ...]] = {}
"""Where taxonomies lie, by name, the last one first. Several may have one name, so a claim has a digest too."""


def recall_taxonomy(name: str, tree: str | None = None) -> Taxonomy:
    """Open a taxonomy by its name alone, as a manifest has it: one that was opened before, or that lies here.

    Args:
        name: Its name.
        tree: The digest of its tree, if that is known; of several with this name, that one is opened.
    """
    places = _opened.get(name, (name,))
    try:
        if tree is not None and len(places) > 1:
            for place in places:
                found = open_taxonomy(place)
                if found.digest == tree:
                    return found
        return open_taxonomy(places[0])
    except QueryveilError:
        raise QueryveilError(
            f"The release was made with the taxonomy '{name}', which is not here; say where it lies with --taxonomy."
        ) from None


def categorize(
    log: QueryLog,
    taxonomy: Taxonomy | str | Path = "wordnet",
    linker: str = "terms",
    *,
    categories: int = 1,
    min_confidence: float = 0.4,
    resolver: Resolver | None = None,
    progress: Callable[[int], None] | None = None,
) -> Links:
    """Link every distinct query of a log to nodes of a tree of topics.

    Args:
        log: What `read_log` gave.
        taxonomy: A taxonomy, or what `open_taxonomy` takes.
        linker: What is looked up: `terms`, `phrases`, `domains`, or `embedding` for whole queries by what they mean.
        categories: How many nodes an item has at most.
        min_confidence: How sure a link by `embedding` must be, from 0 to 1.
        resolver: Finds the site of a query, for `domains`: by default the clicks of the log.
        progress: Called with the number of queries so far, where that takes its time.
    """
    base = taxonomy if isinstance(taxonomy, Taxonomy) else open_taxonomy(taxonomy)
    if not 1 <= categories <= MOST_CATEGORIES:
        raise QueryveilError(f"The number of categories must be from 1 to {MOST_CATEGORIES}. Got {categories} instead.")
    here = local(log, "Linking")

    def found() -> Links:
        queries = here.query_text
        if linker == "domains":
            hosts_needed(base)
            queries = (resolver or Clicks()).resolve(log, progress)
        return categorize_texts(queries, base, linker, categories=categories, min_confidence=min_confidence)

    if resolver is not None:
        return found()
    return shared(here, ("links", base.name, base.folder, linker, categories, min_confidence), found)


def categorize_texts(
    texts: pa.Array, base: Taxonomy, linker: str, *, categories: int = 1, min_confidence: float = 0.4
) -> Links:
    """Link texts: queries in normal form or, for `domains`, the addresses that answer them."""
    if linker == "terms":
        return categorize_terms(texts, base, categories=categories)
    if linker == "phrases":
        return categorize_phrases(texts, base, categories=categories)
    if linker == "domains":
        return categorize_domains(texts, base, categories=categories)
    if linker == "embedding":
        from queryveil.knowledge.embedding import categorize_embedding

        return categorize_embedding(texts, base, categories=categories, min_confidence=min_confidence)
    raise QueryveilError(f"There is no linker '{linker}'; there are {', '.join(LINKERS)}.")
