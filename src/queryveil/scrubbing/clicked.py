"""Find personal data in clicked addresses.

Addresses are full of numbers that belong to nobody. So only three parts are examined: what names a user, what a person
typed (the terms of a search, and every value with a space in it), and numbers whose parameter says what they are. Words
of a path and the host are not examined: `/2006/john-smith-chicago` is an article.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote, unquote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.scrubbing import patterns
from queryveil.scrubbing.scope import ENGLISH, Scope
from queryveil.scrubbing.texts import mask
from queryveil.text import normal_form
from queryveil.text.masks import KINDS

_NAMING = "(?i)@|%40|%7e|/~|" + "|".join(patterns.PROFILE_SITES) + f"|/{patterns.MEMBER}/|[?&;#]{patterns.NAMING}="
"""What every address that names a user contains; a cheap test."""
_SEARCHES = "q|query|search|search_?(?:terms?|query|text)|keywords?|kw|terms?|text|wd|find"
_TELLING = "phone|tel|telephone|mobile|cell|fax|ssn|iban|passport|nhs|pesel|bsn|cpf"
"""Parameters whose name says what the number is; it stands before the value as a word of the text."""
_TYPED = rf"(?i)[?&;#](?:(?:{_SEARCHES}|{_TELLING})=[^&;#]|[^=&;#]{{1,64}}=[^&;#]{{1,200}}(?:\+|%20))"
"""What every address with something that a person typed contains; a cheap test."""
_PARAMETER = re.compile(r"[?&;#]([^=&;#?]{1,64})=([^&;#]{1,2000})")
_SEARCH = re.compile(_SEARCHES)
_TOLD = re.compile(_TELLING)
_TOO_LONG = 16_384
"""The longest query; longer addresses are cut."""


def url_hits(urls: pa.Array, kinds: Sequence[str], scope: Scope = ENGLISH) -> NDArray[np.int64]:
    """The kinds found in each address, as bits in the order of `KINDS`.

    An address that as a whole names a user is not searched for e-mail as well.

    Example:
        >>> urls = pa.array(["http://example.com/?q=jane%40example.com", "http://example.com/item?id=2125550123"])
        >>> url_hits(urls, ["email", "phone"]).tolist()
        [2, 0]
    """
    hits = np.zeros(len(urls), np.int64)
    urls = pc.utf8_slice_codeunits(pc.fill_null(urls, ""), 0, _TOO_LONG)
    named = np.flatnonzero(pc.match_substring_regex(urls, _NAMING).to_numpy(zero_copy_only=False))
    decoded = normal_form(pa.array([unquote(url) for url in urls.take(pa.array(named)).to_pylist()], pa.string()))
    for at, url in zip(named.tolist(), decoded.to_pylist(), strict=True):
        if "url" in kinds and patterns.names_user(url):
            hits[at] |= 1 << KINDS.index("url")
        elif "email" in kinds and patterns.has_email(url):
            hits[at] |= 1 << KINDS.index("email")
    typed = np.flatnonzero(pc.match_substring_regex(urls, _TYPED).to_numpy(zero_copy_only=False))
    owners, texts = [], []
    for at, url in zip(typed.tolist(), urls.take(pa.array(typed)).to_pylist(), strict=True):
        for text in _typed(url):
            owners.append(at)
            texts.append(text)
    found = mask(normal_form(pa.array(texts, pa.string())), kinds, scope).hits
    np.bitwise_or.at(hits, np.array(owners, np.int64), found)
    return hits


def _typed(url: str) -> list[str]:
    """The values of an address that a person typed, or whose parameter says what they are."""
    texts = []
    for name, value in _PARAMETER.findall(url):
        name, text = name.lower(), unquote_plus(value)
        if _TOLD.fullmatch(name):
            texts.append(f"{name} {text}")
        elif " " in text.strip() or _SEARCH.fullmatch(name):
            texts.append(text)
    return texts
