"""Stems of words: the Snowball stemmers (Porter 2001)."""

from functools import cache
from typing import Any

import pyarrow as pa


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
    return pa.array(_stemmer(algorithm).stemWords(words.to_pylist()), pa.string())
