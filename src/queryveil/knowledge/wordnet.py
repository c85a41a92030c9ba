"""WordNet 3.0 nouns: the tree of their meanings, and the nodes of each word.

Fellbaum, WordNet: an electronic lexical database, MIT Press 1998. The table comes from `scripts/build_wordnet.py`,
which says how it was made; its licence is in `data/WORDNET-LICENSE.txt`.
"""

from functools import cache, partial
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import offsets
from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.index import Form, Index
from queryveil.knowledge.nearest import Cells
from queryveil.knowledge.tree import Tree
from queryveil.knowledge.vectors import embed
from queryveil.text import language

# How regular plurals end, and how the noun ends: WordNet's own rules, in its order.
_PLURALS = (
    ("s", ""),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)


@cache
def table() -> dict[str, pa.Array]:
    """The columns of the table, which have different lengths."""
    import pyarrow.parquet as pq

    with files(__package__).joinpath("data", "wordnet.parquet").open("rb") as file:
        read = pq.ParquetFile(file).read()
    return {name: read[name].chunk(0).values for name in read.column_names}


@cache
def wordnet() -> Taxonomy:
    """WordNet's nouns as a taxonomy.

    A term is looked up as it is, as an irregular plural (geese), then as a regular one. A phrase is also looked up by
    its stems; of lemmas with the same stems, the one whose first sense is tagged most often in texts wins.
    """
    columns = table()
    lemma, node = columns["lemma"], columns["node"].to_numpy()
    by_use = np.argsort(-columns["count"].to_numpy(), kind="stable")
    return Taxonomy(
        name="wordnet",
        tree=Tree.from_depths(columns["depth"].to_numpy(), columns["name"]),
        terms=nouns(),
        meanings=_meanings,
        phrases=Index.of_labels(lemma.take(pa.array(by_use)), node[by_use], language("en"), *_singulars()),
    )


@cache
def nouns() -> Index:
    """From nouns to their nodes."""
    columns = table()
    return Index.of(columns["lemma"], columns["node"].to_numpy(), *_singulars())


def _singulars() -> list[Form]:
    return [
        _irregular,
        *(partial(_regular, ending=ending, singular=singular) for ending, singular in _PLURALS),
    ]


@cache
def _meanings() -> Cells:
    """The meaning of a node comes from the words that have their first sense there, and from its name."""
    columns = table()
    node = np.concatenate([np.arange(len(columns["name"])), columns["node"].to_numpy()])
    text = pa.concat_arrays([pc.utf8_lower(columns["name"]), columns["lemma"]])
    order = np.argsort(node, kind="stable")
    size = np.bincount(node)
    lists = pa.ListArray.from_arrays(offsets(size).astype(np.int32), text.take(pa.array(order)))
    return Cells.of(embed(pc.binary_join(lists, ", ")).vectors)


def _irregular(words: pa.Array) -> pa.Array:
    columns = table()
    return columns["base"].take(pc.index_in(words, value_set=columns["exception"]))


def _regular(words: pa.Array, *, ending: str, singular: str) -> pa.Array:
    fits: Any = pc.and_(pc.ends_with(words, ending), pc.greater(pc.utf8_length(words), len(ending) + 1))
    if ending == "s":
        fits = pc.and_not(fits, pc.ends_with(words, "ss"))  # glass is no plural
    base = pc.binary_join_element_wise(pc.utf8_slice_codeunits(words, 0, -len(ending)), singular, "")
    return pc.if_else(fits, base, pa.scalar(None, pa.string()))
