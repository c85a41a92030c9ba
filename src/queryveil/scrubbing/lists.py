"""Names, places and ordinary words, from the tables that `scripts/build_names.py` and `build_local_names.py` make."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from queryveil.text import language
from queryveil.text.folding import LETTERS

FIRST, COMMON, MAINLY, LAST, WORD, CITY, REGION, STATE_CODE = (1 << bit for bit in range(8))
"""As bits: first name, a common one, one that is mainly a name; family name, ordinary word, city, state or country, two
letters of a state."""

_LONGEST_PLACE = 4
_LETTERS = {**LETTERS, "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
"""Letters that are not a letter with an accent, and how the lists write them."""
_TABLE = str.maketrans({**_LETTERS, "'": "", "’": "", ".": ""})
_UNCLEAR_CODES = frozenset(["al", "co", "de", "hi", "id", "in", "la", "ma", "md", "me", "ms", "ok", "or", "pa"])
"""Two letters of states that mean something else after a name."""


class Place(NamedTuple):
    """A place in a row of words."""

    words: int
    """How many words it takes."""
    exact: bool
    """Whether it is a city with its state or country."""


@dataclass(frozen=True)
class Lists:
    """Names, places and words of one or more languages."""

    kinds: dict[str, int]
    """What every listed text can be."""
    texts: pa.Array
    """The listed texts of one word."""
    of_text: NDArray[np.uint8]
    """What each of them can be; a stop word is no name."""
    words: dict[str, int]
    """The same, to look up one word."""

    def code_at(self, words: Sequence[str], at: int) -> int:
        """How many words the postal code at a word takes, or the two letters of a state at the end.

        Two letters that are also a word or a title (`in`, `md`) count only before a postal code.
        """
        if at >= len(words):
            return 0
        if _is_postal(words[at]):
            return 1
        if not self.kinds.get(words[at], 0) & STATE_CODE:
            return 0
        if at + 1 < len(words) and _is_postal(words[at + 1]):
            return 2
        return int(at + 1 == len(words) and words[at] not in _UNCLEAR_CODES)

    def place_at(self, words: Sequence[str], at: int) -> Place | None:
        """The place that begins at a word, the longest one.

        A place is a city, a state or country, a city with its state or country, or a single word that is in no list
        with its state. A city that is also a word (`mobile`, `orange`) counts only with its state. The two letters of a
        state count only after a town and at the end, because most of them are also words.
        """
        known = self.kinds
        for n in range(min(_LONGEST_PLACE, len(words) - at), 0, -1):
            kind = known.get(" ".join(words[at : at + n]), 0)
            if kind & CITY:
                region = self._region_at(words, at + n)
                if region or n > 1 or not kind & WORD:
                    return Place(n + region, exact=region > 0)
            if kind & REGION:
                return Place(n, exact=False)
        if at < len(words) and words[at].isalpha() and len(words[at]) > 2 and not self.words.get(words[at], 0):
            region = self._region_at(words, at + 1)
            if region:
                return Place(1 + region, exact=False)
        return None

    def _region_at(self, words: Sequence[str], at: int) -> int:
        """How many words the state or country at a word takes."""
        known = self.kinds
        for n in range(min(_LONGEST_PLACE, len(words) - at), 0, -1):
            kind = known.get(" ".join(words[at : at + n]), 0)
            last = at + n == len(words) or words[at + n].isdigit()
            if kind & REGION or (kind & STATE_CODE and last):
                return n
        return 0


@cache
def lists_of(languages: tuple[str, ...] = ("en",)) -> Lists:
    """The lists of languages, as one."""
    kinds: dict[str, int] = {}
    for code in languages:
        table = _table("names.parquet") if code == "en" else _local(code)
        for text, kind in zip(table["text"].to_pylist(), table["kinds"].to_pylist(), strict=True):
            kinds[text] = kinds.get(text, 0) | kind
            if code != "en" and " " in text:
                hyphened = text.replace(" ", "-")
                kinds[hyphened] = kinds.get(hyphened, 0) | kind
    single = {text: kind for text, kind in kinds.items() if " " not in text}
    for word in language(*languages).stop_words & single.keys():
        single[word] &= ~(FIRST | LAST)
    of_text = np.fromiter(single.values(), np.uint8, len(single))
    return Lists(kinds, pa.array(list(single), pa.large_string()), of_text, single)


def plain_word(word: str) -> str:
    """A word as the lists have it: without accents, apostrophes and dots."""
    if word.isascii():
        return word.translate(_TABLE)
    bare = (c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn")
    return "".join(bare).translate(_TABLE)


def plain(words: pa.Array) -> pa.Array:
    """Words as the lists have them, as `plain_word`."""
    bare = pc.replace_substring_regex(pc.utf8_normalize(words, "NFD"), r"\p{Mn}|[.'’]", "")
    for letter, written in _LETTERS.items():
        bare = pc.replace_substring(bare, letter, written)
    return bare


def _is_postal(word: str) -> bool:
    return word.isascii() and len(word) in (5, 10) and word[:5].isdigit() and (word[5:6] or "-") == "-"


def _local(code: str) -> pa.Table:
    table = _table("local_names.parquet")
    return table.filter(pc.equal(table["language"].cast(pa.string()), code))


def _table(name: str) -> pa.Table:
    with (files("queryveil.scrubbing") / "data" / name).open("rb") as file:
        return pq.read_table(file)
