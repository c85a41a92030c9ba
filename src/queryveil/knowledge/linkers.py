"""Linkers: the categories of queries, one function for each way to find them.

| linker | what is looked up | for |
|---|---|---|
| terms | every word | Erola et al. 2011; with WordNet: Milani Fard and Wang 2010, He and Naughton 2009 |
| phrases | every noun phrase, in a web directory also as the address or name of a site | Batet et al. 2013, and more |
| text | every noun phrase by its text alone | Batet et al. 2013 |
| domains | the site that answers the query | Erola and Castella-Roca 2012 |

Each takes distinct queries in normal form and is one pass over Arrow arrays, so it runs on a cluster too.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError, require
from queryveil.kernels.types import Ints, Longs
from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.hosts import hosts_of
from queryveil.knowledge.index import Finder, Form, Gathered, in_layers
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
    found = _Look(items.texts, categories)
    found.up(taxonomy.terms)
    if taxonomy.hosts is not None:
        found.up(taxonomy.hosts, hosts_of)
    return Links.found(taxonomy.tree, items, *found.nodes)


def categorize_phrases(queries: pa.Array, taxonomy: Taxonomy, language: Language, *, categories: int = 1) -> Links:
    """The categories of every noun phrase; one that is not found loses words from its left until it is.

    In a taxonomy that was built, a phrase that is still not found is looked up word by word from its right, its head:
    as a host, then in the words of labels and sites; then as the name of a site.

    Args:
        queries: Distinct queries in normal form.
        taxonomy: Where to look.
        language: The language of the queries.
        categories: Most nodes of a phrase; 1 in the paper.
    """
    items = Items.of(*noun_phrases(queries, language, taxonomy.labels))
    ways = [(partial(_look_up_phrases, part), shift) for part, shift in taxonomy.layers]
    if taxonomy.parts:
        ways.append((partial(_look_up_words, taxonomy), 0))
    found = in_layers(items.texts, categories, ways)
    return Links.found(taxonomy.tree, items, *found)


def categorize_text(queries: pa.Array, taxonomy: Taxonomy, language: Language, *, categories: int = 1) -> Links:
    """The categories of every noun phrase by its text alone: nothing in it is taken for an address or name of a site.

    Args:
        queries: Distinct queries in normal form.
        taxonomy: Where to look.
        language: The language of the queries.
        categories: Most nodes of a phrase; 1 in the paper.
    """
    return categorize_phrases(queries, _without_hosts(taxonomy), language, categories=categories)


def _without_hosts(taxonomy: Taxonomy) -> Taxonomy:
    return replace(taxonomy, hosts=None, parts=tuple(map(_without_hosts, taxonomy.parts)))


def _look_up_phrases(taxonomy: Taxonomy, texts: pa.Array, most: int) -> tuple[Longs, Ints]:
    found = _Look(texts, most)
    found.up(taxonomy.phrases, cut=r"^[^ ]+ ")
    if taxonomy.words is not None:
        if taxonomy.hosts is not None:
            found.up(taxonomy.hosts, lambda texts: hosts_of(_last_words(texts)), cut=r" [^ ]+$")
        found.up(taxonomy.words, _last_words, cut=r" [^ ]+$")
        if taxonomy.hosts is not None:
            for ending in _ENDINGS:
                found.up(taxonomy.hosts, partial(_named_hosts, ending=ending))
    return found.nodes


def _look_up_words(taxonomy: Taxonomy, texts: pa.Array, most: int) -> tuple[Longs, Ints]:
    found = _Look(texts, most)
    found.up(taxonomy.terms, _last_words, cut=r" [^ ]+$")
    return found.nodes


_ENDINGS = (".com", ".org", ".net")
"""What people leave out when they type the name of a site."""


def _named_hosts(texts: pa.Array, *, ending: str) -> pa.Array:
    """The host that a phrase is the name of: `home depot`, homedepot.com."""
    names = pc.replace_substring(texts, " ", "")
    hosts = pc.binary_join_element_wise(names, ending, "")
    return pc.if_else(pc.match_substring_regex(names, "^[a-z0-9-]+$"), hosts, pa.scalar(None, pa.string()))


def _last_words(texts: pa.Array) -> pa.Array:
    return pc.struct_field(pc.extract_regex(texts, "(?P<last>[^ ]+)$"), "last")


class _Look:
    """Looks texts up in one way after another; a way is for the texts that no way before it has found.

    Args:
        texts: The texts.
        most: Most nodes of each.
    """

    def __init__(self, texts: pa.Array, most: int) -> None:
        self._texts, self._most = texts, most
        self._found = Gathered(len(texts))

    def up(self, index: Finder, form: Form | None = None, *, cut: str | None = None) -> None:
        """Look up what is not found yet.

        Args:
            index: Where.
            form: What to make of a text first; null to leave it out.
            cut: A pattern of what a text of several words loses each time that it is not found.
        """
        missing = np.flatnonzero(self._found.size == 0)
        rest = self._texts.take(pa.array(missing))
        while len(missing):
            start, node = index.look_up(rest if form is None else form(rest), self._most)
            self._found.add(missing, start, node)
            if cut is None:
                return
            again = (np.diff(start) == 0) & pc.match_substring(rest, " ").to_numpy(zero_copy_only=False)
            missing = missing[again]
            rest = pc.replace_substring_regex(rest.filter(pa.array(again)), cut, "")

    @property
    def nodes(self) -> tuple[Longs, Ints]:
        """The nodes of every text: those of text i are found[start[i]:start[i + 1]]."""
        return self._found.first(self._most)


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
    return Links.found(taxonomy.tree, items, *index.look_up(items.texts, categories))


def hosts_needed(taxonomy: Taxonomy) -> Finder:
    """The index of hosts; raises if there is none, before a resolver starts."""
    if taxonomy.hosts is None:
        raise QueryveilError(
            f"'{taxonomy.name}' has no sites, so domains cannot be categorized; name a web directory that"
            " 'queryveil web-directory build' made."
        )
    require("The domain of a web site", "publicsuffixlist")
    return taxonomy.hosts
