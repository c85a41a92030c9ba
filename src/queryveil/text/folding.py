"""Letters without accents: many people type none, and Greek capitals have none."""

import unicodedata
from functools import cache
from itertools import chain

LETTERS = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ς": "σ"}
"""Letters that are not a letter with an accent, and the letter that people type instead. Capitals in normal form end
in `σ`, where a word in small letters ends in `ς`."""


@cache
def _table() -> dict[int, str]:
    """Every letter of Latin, Greek and Cyrillic script that is one letter without its accent."""
    letters = map(chr, chain(range(0xC0, 0x250), range(0x370, 0x530), range(0x1E00, 0x2000)))
    bases = {letter: unicodedata.normalize("NFD", letter)[0] for letter in letters}
    return {ord(letter): LETTERS.get(base, base) for letter, base in bases.items() if base != letter or base in LETTERS}


def bare(word: str) -> str:
    """A word without accents, which keeps the last letter of a Greek word in small letters."""
    return folded(word)[:-1] + "ς" if word.endswith("ς") else folded(word)


def folded(text: str) -> str:
    """A text in normal form with every letter replaced by the one without an accent, character by character.

    Letters that people write as two (`ß`, `æ`) stay, so that what is found in it is in the same place in the text.

    Example:
        >>> folded("náměstí míru"), folded("ΟΔΟΣ".lower()) == folded("οδός")
        ('namesti miru', True)
    """
    return text if text.isascii() else text.translate(_table())
