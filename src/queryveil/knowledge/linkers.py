"""Linkers: the categories of queries, one function for each way to find them.

| linker | what is looked up | for |
|---|---|---|
| terms | every word | Erola et al. 2011; with WordNet: Milani Fard and Wang 2010, He and Naughton 2009 |
| phrases | every noun phrase | Batet et al. 2013 |
| domains | the site that answers the query | Erola and Castella-Roca 2012 |

Each takes distinct queries in normal form and is one pass over Arrow arrays, so it runs on a cluster too.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Ragged
from queryveil.errors import QueryveilError, require
from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.hosts import hosts_of
from queryveil.knowledge.index import Index
from queryveil.knowledge.links import Items, Links
from queryveil.knowledge.phrases import noun_phrases
from queryveil.text import Language


def categorize_terms(queries: pa.Array, taxonomy: Taxonomy, language: Language, *, categories: int = 1) -> Links:
    """The first categories of every word except stop words; of a word that is a host, those of the host.

    Args:
        queries: Distinct queries in normal form.
        taxonomy: Where to look.
        language: The language of the queries.
        categories: Most nodes of a word; 1 or 5 in the paper.
    """
    split = language.words(queries)
    meant = pc.invert(pc.is_in(split.text, value_set=pa.array(sorted(language.stop_words))))
    query = np.repeat(np.arange(len(queries)), split.per_query)[meant.to_numpy(zero_copy_only=False)]
    items = Items.of(np.bincount(query, minlength=len(queries)), split.text.filter(meant))
    entry = taxonomy.terms.find(items.texts)
    first, node = taxonomy.terms.nodes_of(entry, categories)
    if taxonomy.hosts is not None:
        host = np.full(len(entry), -1, np.int64)
        missing = np.flatnonzero(entry < 0)
        host[missing] = taxonomy.hosts.find(hosts_of(items.texts.take(pa.array(missing))))
        more_first, more = taxonomy.hosts.nodes_of(host, categories)
        # An item has nodes of one kind or of the other.
        item = np.concatenate([Ragged(part).owners for part in (first, more_first)])
        first, node = first + more_first, np.concatenate([node, more])[np.argsort(item, kind="stable")]
    return Links.found(taxonomy.tree, items, first, node)


def categorize_phrases(queries: pa.Array, taxonomy: Taxonomy, language: Language, *, categories: int = 1) -> Links:
    """The categories of every noun phrase; one that is not found loses words from its left until it is.

    Args:
        queries: Distinct queries in normal form.
        taxonomy: Where to look.
        language: The language of the queries.
        categories: Most nodes of a phrase; 1 in the paper.
    """
    items = Items.of(*noun_phrases(queries, language))
    entry = np.full(len(items.texts), -1, np.int64)
    missing, rest = np.arange(len(entry)), items.texts
    while len(missing):
        entry[missing] = taxonomy.phrases.find(rest)
        again = (entry[missing] < 0) & pc.match_substring(rest, " ").to_numpy(zero_copy_only=False)
        missing = missing[again]
        rest = pc.replace_substring_regex(rest.filter(pa.array(again)), r"^[^ ]+ ", "")
    return Links.found(taxonomy.tree, items, *taxonomy.phrases.nodes_of(entry, categories))


def categorize_domains(urls: pa.Array, taxonomy: Taxonomy, *, categories: int = 1) -> Links:
    """The categories of the address that answers each query, by its host, then by the domains above it.

    Args:
        urls: The address of every query, from a resolver; null if none is known.
        taxonomy: A web directory.
        categories: Most nodes of a host; 1 in the paper.
    """
    index = hosts_needed(taxonomy)
    hosts = hosts_of(urls)
    known = pc.is_valid(hosts)
    items = Items.of(known.to_numpy(zero_copy_only=False).astype(np.int64), hosts.filter(known))
    return Links.found(taxonomy.tree, items, *index.nodes_of(index.find(items.texts), categories))


def hosts_needed(taxonomy: Taxonomy) -> Index:
    """The index of hosts; raises if there is none, before a resolver starts."""
    if taxonomy.hosts is None:
        raise QueryveilError(
            f"'{taxonomy.name}' has no sites, so domains cannot be categorized; name a web directory that"
            " 'queryveil web-directory build' made."
        )
    require("The domain of a web site", "publicsuffixlist")
    return taxonomy.hosts
