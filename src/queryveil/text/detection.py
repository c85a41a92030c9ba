"""Which languages the queries of a log are in: by script, and where that does not decide by a detector for short texts.

The detector is py3langid (Lui and Baldwin, langid.py: An Off-the-shelf Language Identification Tool, ACL 2012): Bayes
on sequences of bytes, small, and right more often on texts of two or three words than others of its size.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError, missing, option, require
from queryveil.text.languages import AUTO, DEFAULT, LANGUAGES, Language, language
from queryveil.text.scripts import bit, characters, scripts_of

SAMPLE = 10_000
"""How many distinct queries are looked at."""
LEAST_SHARE = 0.05
"""The smallest share of them that a detected language has; mistakes about short texts are spread over all others."""
_LEAST_QUERIES = 100
"""With fewer queries of several words, those of one word count too: a single word may be of many languages."""
_OTHERS = ("ru", "uk")
"""Languages that are recognized only so that others are not taken for them."""
_KANA_SHARE = 0.2
"""If so many of the queries with kana or Chinese characters have kana, the log is Japanese, at least in part. Then
Chinese characters alone are Japanese as well, if Japanese has all of them."""
_HAN = re.compile(f"[{characters('han')}]")
_BY_SCRIPT = {"kana": "ja", "han": "zh", "hangul": "ko", "thai": "th", "greek": "el"}
"""Scripts of one language; a text is of the first that it has, but see `_KANA_SHARE`."""
DETECTED = ("latin", "cyrillic")
"""Scripts of several languages."""


def parsed(given: str | Sequence[str]) -> tuple[str, ...]:
    """The languages that a caller asks for.

    Case and region make no difference: `zh-CN` is Chinese.

    Raises:
        QueryveilError: If there is no such language, or `auto` stands beside others.
    """
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise QueryveilError(
            f"{option('language')} must be the code of a language, such as de, several of them, or auto. Got {given!r}"
            " instead."
        )
    ids = tuple(_code(part.strip()) for part in parts)
    if AUTO not in ids:
        return language(*ids).ids
    if len(ids) > 1:
        raise QueryveilError(f"{option('language', AUTO)} detects all languages; give no other beside it.")
    require("Detecting languages", "py3langid")
    return ids


def _code(written: str) -> str:
    code = re.split("[-_]", written.lower())[0]
    return code if code in LANGUAGES or code == AUTO else written


def named(given: str | Sequence[str], why: str) -> tuple[str, ...]:
    """The languages that a caller names, where they cannot be detected.

    Args:
        given: The languages.
        why: Why they cannot be detected, as the end of a sentence.
    """
    ids = parsed(given)
    if AUTO in ids:
        raise QueryveilError(f"Languages cannot be detected here, because {why}; name them with {option('language')}.")
    return ids


def resolved(languages: Sequence[str], sample: Callable[[], pa.Array]) -> Language:
    """The language of a log, maybe several together.

    Args:
        languages: What `parsed` returned.
        sample: Returns some of its distinct queries; called only if languages must be detected.
    """
    if AUTO not in languages:
        return language(*languages)
    found = detected(sample())
    decided = sum(found.values())
    chosen = [id for id, count in found.most_common() if id in LANGUAGES and count >= LEAST_SHARE * decided]
    return replace(language(*(chosen or (DEFAULT,))), detected=True)


def detected(texts: pa.Array) -> Counter[str]:
    """How many texts are in which language; those of no known script, and doubtful ones, are not counted.

    Without the package of the detector, scripts that several languages have are not counted.
    """
    scripts = scripts_of(texts)
    found: Counter[str] = Counter()
    left = scripts != 0
    for script, id in _BY_SCRIPT.items():
        own = left & (scripts & bit(script) != 0)
        found[id] += int(own.sum())
        left &= ~own
    if found["ja"] >= _KANA_SHARE * (found["ja"] + found["zh"]):
        alone = (scripts & bit("han") != 0) & (scripts & bit("kana") == 0)
        kanji = sum(map(_is_kanji, texts.filter(pa.array(alone)).to_pylist()))
        found.update(ja=kanji, zh=-kanji)
    left &= scripts & bit(*DETECTED) != 0
    if left.any() and missing("py3langid") is None:
        some = texts.filter(pa.array(left))
        several = some.filter(pc.match_substring(some, " "))
        classify = _detector().classify
        for text in (several if len(several) >= _LEAST_QUERIES else some).to_pylist():
            found[classify(text)[0]] += 1
    return Counter({id: count for id, count in found.items() if count})


def _is_kanji(text: str) -> bool:
    """Whether the Chinese characters of a text are in the Japanese standard, which lacks most simplified ones."""
    try:
        "".join(_HAN.findall(text)).encode("shift_jis")
    except UnicodeEncodeError:
        return False
    return True


@cache
def _detector() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    detector = LanguageIdentifier.from_model_file(MODEL_FILE)
    by_script = set(_BY_SCRIPT.values())
    detector.set_languages([id for id in (*LANGUAGES, *_OTHERS) if id not in by_script])
    return detector
