"""Vectors of texts: sums over their words and, where a word is not known, over its letter groups."""

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bytes, Ints, Longs, Singles, ULongs

# These must agree with the script that makes the file.
_SHORTEST_GROUP = 3
_LONGEST_GROUP = 5
_LONGEST_WORD = 40
_LONGEST_NUMBER = 16

_BEFORE_WORD = np.uint8(ord("<"))
_AFTER_WORD = np.uint8(ord(">"))
_ZERO = np.uint8(ord("0"))
_NINE = np.uint8(ord("9"))
_NO_WORD = np.uint8(0)
_SPACE = np.uint8(ord(" "))

# A hash has another start for letter groups: the group `car` of `scarf` is not the word `car`.
WORD_START = np.uint64(0xCBF29CE484222325)
GROUP_START = np.uint64(0x9AE16A3B2F90404F)
_PRIME = np.uint64(0x100000001B3)
_SHIFT = np.uint64(32)

# The weight of a word of which only the letters are known, next to a known word: an unknown name may be anything.
_SPELT_TRUST = np.float32(0.5)


@helper
def _hash_on(state: np.uint64, byte: np.uint8) -> np.uint64:
    return (state ^ np.uint64(byte)) * _PRIME


@kernel
def line_hashes(data: Bytes, start: np.uint64) -> ULongs:
    """The hash of every line."""
    lines = 1
    for i in range(len(data)):
        if data[i] == 10:
            lines += 1
    out = np.empty(lines, np.uint64)
    line = 0
    state = start
    for i in range(len(data)):
        if data[i] == 10:
            out[line] = state
            line += 1
            state = start
        else:
            state = _hash_on(state, data[i])
    out[line] = state
    return out


@kernel
def fill_slots(hashes: ULongs, size: int) -> Ints:
    """A table from hashes to their places, of a size that is a power of two."""
    slots = np.full(size, -1, np.int32)
    for row in range(len(hashes)):
        at = np.int64((hashes[row] ^ (hashes[row] >> _SHIFT)) & np.uint64(size - 1))
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = row
    return slots


@helper
def _row_of(sought: np.uint64, slots: Ints, hashes: ULongs) -> int:
    last = len(slots) - 1
    at = np.int64((sought ^ (sought >> _SHIFT)) & np.uint64(last))
    while slots[at] >= 0:
        if hashes[slots[at]] == sought:
            return int(slots[at])
        at = (at + 1) & last
    return -1


@helper
def _letter(data: Bytes, at: int, end: int, letters: Bytes) -> tuple[np.uint8, int]:
    # What the code point at `at` is taken for, and its length in bytes.
    c = data[at]
    if c < 0x80:
        return letters[c], 1
    width = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
    if at + width > end:
        return np.uint8(0xFF), end - at
    if width == 2:
        point = (np.int64(c) & 0x1F) << 6 | np.int64(data[at + 1]) & 0x3F
        if point < len(letters):
            return letters[point], 2
    elif c == 0xE2 and data[at + 1] <= 0x81:  # general punctuation, such as dashes and curly quotes
        return _NO_WORD, 3
    return np.uint8(0xFF), width


@helper
def _hash_word(state: np.uint64, word: Bytes, length: int) -> np.uint64:
    for i in range(1, length + 1):
        state = _hash_on(state, word[i])
    return state


@helper
def _number_row(word: Bytes, length: int, slots: Ints, hashes: ULongs) -> int:
    # The row of any number of that many digits, or -1 if it is no number.
    for i in range(1, length + 1):
        if not _ZERO <= word[i] <= _NINE:
            return -1
    state = WORD_START
    for _ in range(min(length, _LONGEST_NUMBER)):
        state = _hash_on(state, _ZERO)
    return _row_of(state, slots, hashes)


@helper
def _spell(
    word: Bytes, length: int, slots: Ints, hashes: ULongs, vectors: NDArray[np.int8], scale: Singles, into: Singles
) -> int:
    # The sum of the vectors of the word's letter groups, and how many there are.
    into[:] = 0
    marked = length + 2
    found = 0
    for first in range(marked - _SHORTEST_GROUP + 1):
        state = GROUP_START
        for i in range(first, min(first + _LONGEST_GROUP, marked)):
            state = _hash_on(state, word[i])
            if i - first + 1 >= _SHORTEST_GROUP:
                row = _row_of(state, slots, hashes)
                if row >= 0:
                    found += 1
                    for k in range(len(into)):
                        into[k] += scale[row] * np.float32(vectors[row, k])
    return found


@kernel
def embed_texts(
    data: Bytes,
    starts: Longs,
    ends: Longs,
    slots: Ints,
    hashes: ULongs,
    vectors: NDArray[np.int8],
    scale: Singles,
    mass: Singles,
    usual_mass: np.float32,
    letters: Bytes,
) -> tuple[Singles, Singles]:
    """The vector of every data[starts[i]:ends[i]], and the share of it that comes from known words."""
    width = vectors.shape[1]
    out = np.zeros((len(starts), width), np.float32)
    confidence = np.zeros(len(starts), np.float32)
    word = np.empty(_LONGEST_WORD + 2, np.uint8)
    word[0] = _BEFORE_WORD
    spelt = np.empty(width, np.float32)
    for i in range(len(starts)):
        at = starts[i]
        end = ends[i]
        total = np.float32(0)
        known = np.float32(0)
        before = np.uint64(0)
        while at < end:
            length = 0
            while at < end:
                letter, step = _letter(data, at, end, letters)
                at += step
                if letter == _NO_WORD:
                    break
                if length < _LONGEST_WORD:
                    length += 1
                    word[length] = letter
            if length == 0:
                continue
            if before != 0:
                row = _row_of(_hash_word(_hash_on(before, _SPACE), word, length), slots, hashes)
                if row >= 0:
                    for k in range(width):
                        out[i, k] += scale[row] * np.float32(vectors[row, k])
            before = _hash_word(WORD_START, word, length)
            row = _row_of(before, slots, hashes)
            if row < 0:
                row = _number_row(word, length, slots, hashes)
            if row >= 0:
                for k in range(width):
                    out[i, k] += scale[row] * np.float32(vectors[row, k])
                total += mass[row]
                known += mass[row]
                continue
            word[length + 1] = _AFTER_WORD
            found = _spell(word, length, slots, hashes, vectors, scale, spelt)
            total += usual_mass
            if found > 0:
                factor = np.float32(1 / np.sqrt(found))
                square = np.float32(0)
                for k in range(width):
                    value = factor * spelt[k]
                    out[i, k] += value
                    square += value * value
                # Letter groups that contradict each other add up to little.
                known += _SPELT_TRUST * min(np.float32(np.sqrt(square)), usual_mass)
        square = np.float32(0)
        for k in range(width):
            square += out[i, k] * out[i, k]
        if square > 0:
            factor = np.float32(1 / np.sqrt(square))
            for k in range(width):
                out[i, k] *= factor
        if total > 0:
            confidence[i] = min(known / total, np.float32(1))
    return out, confidence
