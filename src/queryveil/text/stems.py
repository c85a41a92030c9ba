"""Stems of words: the Snowball stemmers (Porter 2001)."""

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@cache
def _stemmer(algorithm: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(algorithm, 0)


def snowball(words: pa.Array, *, algorithm: str) -> pa.Array:
    """The stem of every word.

    Args:
        words: The words.
        algorithm: Which stemmer, as Snowball calls it: `english`.
    """
    if algorithm != "english":  # whose stems stay what they were in the first version
        words = pc.replace_substring(words, "’", "'")
    return pa.array(_stemmer(algorithm).stemWords(words.to_pylist()), pa.string())
