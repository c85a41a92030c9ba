"""Stems of words and phrases: the Snowball stemmer for English (Porter 2001)."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english", 0)


def stem_words(words: pa.Array) -> pa.Array:
    """The stem of every word."""
    return pa.array(_stemmer().stemWords(words.to_pylist()), pa.string())


def stemmed(phrases: pa.Array) -> pa.Array:
    """Phrases with every word replaced by its stem.

    Example:
        >>> stemmed(pa.array(["water sports", "running"])).to_pylist()
        ['water sport', 'run']
    """
    parts = pc.split_pattern(phrases, " ")
    words = parts.values if isinstance(parts, pa.ListArray) else parts.combine_chunks().values
    distinct = words.dictionary_encode()
    stems = stem_words(distinct.dictionary).take(distinct.indices)
    offsets = parts.offsets.to_numpy()
    return pc.binary_join(pa.ListArray.from_arrays(np.asarray(offsets), stems), " ")
