"""The categories of queries, phrases, terms and addresses in a taxonomy.

Methods see a tree with integer nodes (`Tree`) and the nodes of each query (`Links`) for any taxonomy: WordNet, which
comes with queryveil, or a web directory that the user brings.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path

import pyarrow as pa

from queryveil.errors import QueryveilError, did_you_mean, old_names, option
from queryveil.knowledge.base import MOST_CATEGORIES, Taxonomy
from queryveil.knowledge.linkers import (
    categorize_domains,
    categorize_phrases,
    categorize_terms,
    categorize_text,
    hosts_needed,
)
from queryveil.knowledge.links import Coverage, Links, topics_of
from queryveil.knowledge.resolvers import Clicks, Remote, Resolver, Sites
from queryveil.knowledge.tree import Tree
from queryveil.log import QueryLog, local
from queryveil.log.sharing import shared
from queryveil.text import Language

__all__ = [
    "Clicks",
    "Coverage",
    "Links",
    "Remote",
    "Resolver",
    "Sites",
    "Taxonomy",
    "Tree",
    "asks_clicks",
    "categorize",
    "categorize_texts",
    "hosts_needed",
    "known_as",
    "known_taxonomies",
    "open_taxonomy",
    "recall_taxonomy",
    "taxonomy_name",
    "topics_of",
]

LINKERS = ("terms", "phrases", "text", "domains", "embedding")


def open_taxonomy(name: str | Path) -> Taxonomy:
    """Open a taxonomy.

    Args:
        name: `wordnet`, which comes with queryveil, or the folder of a web directory that `build_directory` made.
            Several with commas between them are one taxonomy: of every look-up, the first that finds something wins.
    """
    if len(several := _several(name)) > 1:
        from queryveil.knowledge.combined import combine

        return combine([open_taxonomy(one) for one in several])
    if str(name) == "wordnet":
        from queryveil.knowledge.wordnet import wordnet

        return wordnet()
    if not Path(name).exists():
        there_are = "use wordnet, or a folder that 'queryveil web-directory build' made"
        raise QueryveilError(f"There is no taxonomy '{name}'; {did_you_mean(str(name), ['wordnet'], there_are)}.")
    from queryveil.knowledge.opened import open_directory

    _remember(Path(name).resolve().name, Path(name).resolve())
    return open_directory(name)


def _several(name: str | Path) -> list[str]:
    """The taxonomies in a list with commas; a folder may have a comma in its name."""
    if Path(name).exists():
        return [str(name)]
    found = [one.strip() for one in str(name).split(",")]
    if not all(found):
        raise QueryveilError(f"The taxonomy '{name}' has a comma with nothing beside it; put a name on both sides.")
    return found


def taxonomy_name(name: str | Path) -> str:
    """The name of a taxonomy in a manifest: not its path, which may reveal who made the release."""
    if len(several := _several(name)) > 1:
        return ",".join(map(taxonomy_name, several))
    if str(name) == "wordnet":
        return "wordnet"
    found = Path(name).resolve().name
    if found == "wordnet":
        raise QueryveilError(f"A web directory cannot be called 'wordnet', which is built in; rename {name}.")
    return found


def known_as(name: str, place: str | Path) -> None:
    """Let a name in manifests stand for the taxonomy at a place; a claim identifies it by its digest.

    The built-in taxonomy cannot be replaced. Of several with commas between them, each stands for one; the place of
    the only one that is not built in is enough.
    """
    names, spots = name.split(","), _several(place)
    if len(names) > 1 and len(spots) == 1:
        names = [one for one in names if one != "wordnet"]
    if len(names) != len(spots):
        return
    for one, spot in zip(names, spots, strict=True):
        _remember(one, Path(spot))


def _remember(name: str, place: Path) -> None:
    if name != "wordnet":
        with _remembering:
            _opened[name] = (place, *(other for other in _opened.get(name, ()) if other != place))


_remembering = threading.Lock()
_opened: dict[str, tuple[Path, ...]] = {}
"""Where taxonomies are, by name, the last one first. Several may have one name: nothing relies on the first alone."""


def known_taxonomies(name: str) -> list[Taxonomy]:
    """What a name in a manifest may stand for: all taxonomies that were opened, or the one in the current folder."""
    names = [name] if name in _opened else _several(name)
    of_each = [[str(place) for place in _opened.get(one, (one,))] for one in names]
    found = []
    for places in product(*of_each):
        with suppress(QueryveilError):
            found.append(open_taxonomy(",".join(places)))
    if not found:
        raise QueryveilError(
            f"The release was made with the taxonomy '{name}', which is not here; name its folder with"
            f" {option('taxonomy')}."
        )
    return found


def recall_taxonomy(name: str, tree: str | None = None) -> Taxonomy:
    """Open a taxonomy by its name in a manifest.

    Args:
        name: Its name.
        tree: The digest of its tree, if that is known; of several with this name, that one is opened.
    """
    found = known_taxonomies(name)
    return next((one for one in found if one.digest == tree), found[0])


@old_names(knowledge="taxonomy")
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
    """Find the categories of every distinct query of a log.

    Args:
        log: What `read_log` returned.
        taxonomy: A taxonomy, or what `open_taxonomy` takes.
        linker: What to look up: `terms`, `phrases`, `text` for phrases without sites and clicks, `domains`, or
            `embedding` for whole queries by their meaning.
        categories: Most categories of an item.
        min_confidence: Least confidence of a category that `embedding` finds, from 0 to 1.
        resolver: Finds the site of a query, for `domains`; by default the clicks of the log.
        progress: Called with the number of queries so far, by resolvers that take long.
    """
    base = taxonomy if isinstance(taxonomy, Taxonomy) else open_taxonomy(taxonomy)
    if not 1 <= categories <= MOST_CATEGORIES:
        raise QueryveilError(f"The number of categories must be from 1 to {MOST_CATEGORIES}. Got {categories} instead.")
    here = local(log, "Categorizing")
    if resolver is None:  # a part of a log has the queries of the whole, whose categories may be known already
        log = here = local(here.whole, "Categorizing")

    def found() -> Links:
        queries = here.query_text
        if linker == "domains":
            hosts_needed(base)
            queries = (resolver or Clicks()).resolve(log, progress)
        links = categorize_texts(
            queries, base, linker, log.language, categories=categories, min_confidence=min_confidence
        )
        if asks_clicks(log, base, linker):
            links = links.filled(categorize_domains(Clicks().resolve(log), base, categories=categories))
        return links

    if resolver is not None:
        return found()
    return shared(here, ("links", base.name, base.folders, linker, categories, min_confidence), found)


def asks_clicks(log: QueryLog, base: Taxonomy, linker: str) -> bool:
    """Whether a query without a category has that of the site that users clicked most for it."""
    return linker == "phrases" and base.hosts is not None and log.has_clicks


def categorize_texts(
    texts: pa.Array,
    base: Taxonomy,
    linker: str,
    language: Language,
    *,
    categories: int = 1,
    min_confidence: float = 0.4,
) -> Links:
    """Find the categories of texts: queries in normal form or, for `domains`, the addresses that answer them."""
    if linker == "terms":
        return categorize_terms(texts, base, language, categories=categories)
    if linker == "phrases":
        return categorize_phrases(texts, base, language, categories=categories)
    if linker == "text":
        return categorize_text(texts, base, language, categories=categories)
    if linker == "domains":
        return categorize_domains(texts, base, categories=categories)
    if linker == "embedding":
        from queryveil.knowledge.embedding import categorize_embedding

        return categorize_embedding(texts, base, categories=categories, min_confidence=min_confidence)
    raise QueryveilError(f"There is no linker '{linker}'; {did_you_mean(linker, LINKERS)}.")
