"""Short texts as vectors whose cosine says how similar they are in meaning.

A text is the sum of the vectors of its words, and of pairs of words such as `real estate`; a word outside the
vocabulary is the sum of the vectors of its letter groups, so misspelt words and new names have a vector too. The
vectors imitate a sentence model, see `scripts/build_embedding.py`.
"""

import unicodedata
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.kernels.embedding import GROUP_START, WORD_START, embed_texts, fill_slots, line_hashes
from queryveil.kernels.types import Bytes, Ints, Singles, ULongs
from queryveil.text.arrays import byte_spans


class Embedded(NamedTuple):
    """Vectors of texts, and how far to trust them."""

    vectors: Singles
    """One row per text, of length one; all zeros if no word is known."""
    confidence: Singles
    """Share of a text's meaning that comes from known words, from 0 to 1."""


class _Table(NamedTuple):
    """The file, ready for the kernel."""

    slots: Ints
    hashes: ULongs
    vectors: NDArray[np.int8]
    scale: Singles
    mass: Singles
    usual_mass: np.float32
    letters: Bytes


def embed(texts: pa.Array) -> Embedded:
    """Vectors of short English texts in normal form.

    Example:
        >>> vectors, _ = embed(pa.array(["puppy", "dog, domestic dog", "income tax"]))
        >>> bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[2])
        True
    """
    data, starts, ends = byte_spans(texts)
    return Embedded(*embed_texts(data, starts, ends, *_table()))


@cache
def _table() -> _Table:
    with files(__package__).joinpath("data", "embedding.npz").open("rb") as stream, np.load(stream) as file:
        words, groups, vectors = file["words"], file["groups"], file["vectors"]
        scale = file["scale"].astype(np.float32)
    known = int(np.count_nonzero(words == ord("\n"))) + 1
    hashes = np.concatenate([line_hashes(words, WORD_START), line_hashes(groups, GROUP_START)])
    size = 1 << (4 * len(hashes) - 1).bit_length()  # mostly empty, for most look-ups of letter groups find nothing
    mass = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float32)) * scale
    return _Table(
        slots=fill_slots(hashes, size),
        hashes=hashes,
        vectors=vectors,
        scale=scale,
        mass=mass,
        usual_mass=np.float32(np.median(mass[:known])),
        letters=_letters(),
    )


def _letters() -> Bytes:
    # What a Latin code point is taken for: letters lose their accents, all that separates words is 0.
    table = np.zeros(0x180, np.uint8)
    for point in range(len(table)):
        base = unicodedata.normalize("NFKD", chr(point))[0].lower()
        if base.isascii() and base.isalnum():
            table[point] = ord(base)
        elif chr(point).isalpha():
            table[point] = 0xFF  # a letter, but none that any vector is about
    return table


def width() -> int:
    """How many numbers a vector has."""
    return int(_table().vectors.shape[1])
