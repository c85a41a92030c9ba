"""Which languages the queries of a log are in: by script, and where that does not decide by a detector for short texts.

The detector is py3langid (Lui and Baldwin, langid.py: An Off-the-shelf Language Identification Tool, ACL 2012): Bayes
on sequences of bytes, small, and right more often on texts of two or three words than others of its size.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError, missing, option, require
from queryveil.text.languages import AUTO, DEFAULT, LANGUAGES, Language, language
from queryveil.text.scripts import bit, scripts_of

SAMPLE = 10_000
"""How many distinct queries are looked at."""
LEAST_SHARE = 0.05
"""The smallest share of them that a detected language has; mistakes about short texts are spread over all others."""
_LEAST_QUERIES = 100
"""With fewer queries of several words, those of one word count too: a single word may be of many languages."""
_OTHERS = ("ru", "uk")
"""Languages that are recognized only so that others are not taken for them."""
_BY_SCRIPT = {"kana": "ja", "han": "zh", "hangul": "ko", "thai": "th", "greek": "el"}
"""Scripts of one language; a text is of the first that it has."""
_DETECTED = ("latin", "cyrillic")
"""Scripts of several languages."""


def parsed(given: str | Sequence[str]) -> tuple[str, ...]:
    """The languages that a caller asks for.

    Raises:
        QueryveilError: If there is no such language, or `auto` stands beside others.
    """
    ids = tuple(part.strip() for part in (given.split(",") if isinstance(given, str) else given))
    if AUTO not in ids:
        return language(*ids).ids
    if len(ids) > 1:
        raise QueryveilError(f"{option('language', AUTO)} detects all languages; give no other beside it.")
    require("Detecting languages", "py3langid")
    return ids


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
    left &= scripts & bit(*_DETECTED) != 0
    if left.any() and missing("py3langid") is None:
        some = texts.filter(pa.array(left))
        several = some.filter(pc.match_substring(some, " "))
        classify = _detector().classify
        for text in (several if len(several) >= _LEAST_QUERIES else some).to_pylist():
            found[classify(text)[0]] += 1
    return Counter({id: count for id, count in found.items() if count})


@cache
def _detector() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    detector = LanguageIdentifier.from_model_file(MODEL_FILE)
    by_script = set(_BY_SCRIPT.values())
    detector.set_languages([id for id in (*LANGUAGES, *_OTHERS) if id not in by_script])
    return detector
