"""Languages: one file each, found by its id in `LANGUAGES`.

What depends on the language of queries asks a `Language` for it. A log knows its own (`QueryLog.language`), which may
be several together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError
from queryveil.text.cutting import Chosen, Cutter, spaced
from queryveil.text.folding import bare, folded
from queryveil.text.masks import without_masks
from queryveil.text.scripts import bit, scripts_of
from queryveil.text.words import Words, split_at_blanks

LANGUAGES = {
    "bg": "bulgarian",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hr": "croatian",
    "hu": "hungarian",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "lt": "lithuanian",
    "lv": "latvian",
    "mt": "maltese",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "sk": "slovak",
    "sl": "slovenian",
    "sv": "swedish",
    "th": "thai",
    "zh": "chinese",
}
"""The file of each language in this folder, by its code of ISO 639-1."""

_OWN_NAMES = {
    "cesky": "cs",
    "dansk": "da",
    "deutsch": "de",
    "eesti": "et",
    "ellinika": "el",
    "espanol": "es",
    "francais": "fr",
    "gaeilge": "ga",
    "hrvatski": "hr",
    "italiano": "it",
    "latviesu": "lv",
    "lietuviu": "lt",
    "magyar": "hu",
    "malti": "mt",
    "nederlands": "nl",
    "polski": "pl",
    "portugues": "pt",
    "romana": "ro",
    "slovencina": "sk",
    "slovenscina": "sl",
    "suomi": "fi",
    "svenska": "sv",
    "български": "bg",
    "ελληνικα": "el",
    "中文": "zh",
    "日本語": "ja",
    "한국어": "ko",
}
"""What languages call themselves, for suggestions."""
DEFAULT = "en"
AUTO = "auto"
"""In the place of languages: those that are detected in a log."""


@dataclass(frozen=True)
class Cues:
    """Words that say what stands beside them, for the search for personal data.

    Attributes:
        people: What goes with the name of a person, such as `address` or `obituary`.
        before_places: What comes before a place.
        institutions: What is named after a person, such as `school`.
        public_life: What goes with the name of a public figure, such as `tickets`.
        phones: What goes with a phone number.
        networks: What goes with an IP address.
        versions: What comes before a version number, which may look like an IP address.
    """

    people: frozenset[str] = frozenset()
    before_places: frozenset[str] = frozenset()
    institutions: frozenset[str] = frozenset()
    public_life: frozenset[str] = frozenset()
    phones: frozenset[str] = frozenset()
    networks: frozenset[str] = frozenset()
    versions: frozenset[str] = frozenset()


def _unchanged(words: pa.Array) -> pa.Array:
    return words


@dataclass(frozen=True)
class Language:
    """What the rest of the package asks of a language, or of several together.

    Attributes:
        id: Its code of ISO 639-1; several with commas between them.
        label: Its name in English.
        stop_words: Words with little meaning of their own. Keep them few: a query is about its other words.
        accented: Stop words that are something else without their accents; of all others that form counts too.
        scripts: The scripts that it is written in.
        countries: The codes of ISO 3166 of countries where it is an official language, the largest first.
        cutter: How it is cut, if it puts no blanks between words. Queries are cut by their script, whatever the
            language of the log.
        stem: The stems of words; by default a word is its own stem.
        phrase_ends: Words that end a noun phrase and are no stop words.
        before_verbs: Words that end a noun phrase and are followed by a verb.
        determiners: Words that end a noun phrase and are followed by a noun.
        conjunctions: Words that join things that are alike, the most usual first.
        cues: Words that say what stands beside them.
        detected: Whether the languages were detected in the log, so that they say something about it.
        cutters: How texts of each script without blanks are cut. `language` fills it in.
    """

    id: str
    label: str
    stop_words: frozenset[str]
    accented: frozenset[str] = frozenset()
    scripts: tuple[str, ...] = ("latin",)
    countries: tuple[str, ...] = ()
    cutter: Cutter | None = None
    stem: Callable[[pa.Array], pa.Array] = _unchanged
    phrase_ends: frozenset[str] = frozenset()
    before_verbs: frozenset[str] = frozenset()
    determiners: frozenset[str] = frozenset()
    conjunctions: tuple[str, ...] = ()
    cues: Cues = Cues()
    detected: bool = False
    cutters: tuple[Chosen, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The code of each language."""
        return tuple(self.id.split(","))

    def words(self, queries: pa.Array) -> Words:
        """The words of queries in normal form.

        A mask such as `<email>` is not a word and separates words like a space: it stands for something different in
        every query, so two queries that share it have nothing in common.

        Example:
            >>> language().words(pa.array(["at&t (wireless) - plans", "c++", "<email> pizza"])).text.to_pylist()
            ['at&t', 'wireless', 'plans', 'c', 'pizza']
        """
        return split_at_blanks(self.spaced(without_masks(queries)))

    def spaced(self, texts: pa.Array) -> pa.Array:
        """Texts with blanks between words in scripts that put none there; all else stays."""
        return spaced(texts, self.cutters)

    def stem_phrases(self, phrases: pa.Array) -> pa.Array:
        """Phrases with every word replaced by its stem.

        Example:
            >>> language().stem_phrases(pa.array(["water sports", "running"])).to_pylist()
            ['water sport', 'run']
        """
        parts = pc.split_pattern(phrases, " ")
        words = parts.values if isinstance(parts, pa.ListArray) else parts.combine_chunks().values
        distinct = words.dictionary_encode()
        stems = self.stem(distinct.dictionary).take(distinct.indices)
        return pc.binary_join(pa.ListArray.from_arrays(parts.offsets, stems), " ")

    def dictionaries(self, scripts: int) -> dict[str, str]:
        """What words of these scripts, given as bits, were cut with: packages and versions, by what was cut."""
        found = {}
        for one in self.cutters:
            if one.cutter.dictionary and scripts & one.any_of:
                found[one.cutter.label] = one.cutter.dictionary
        return found


def language(*ids: str) -> Language:
    """A language by its id, or several together; without any, English.

    Together they have the stop words of all. A word is stemmed as in the first of them that has its script. Chinese
    characters in a text without kana are those of Japanese, if it comes before Chinese or Chinese is not among them.

    Raises:
        QueryveilError: If there is no such language.
    """
    return _language(tuple(dict.fromkeys(ids)) or (DEFAULT,))


@cache
def _language(ids: tuple[str, ...]) -> Language:
    return _together([_file(id) for id in ids])


def _file(id: str) -> Language:
    if id not in LANGUAGES:
        codes = {code: code for code in LANGUAGES} | {name: code for code, name in LANGUAGES.items()} | _OWN_NAMES
        near = get_close_matches(folded(id.lower()), codes, 1)
        known = f"there are {', '.join(LANGUAGES)}"
        suggested = f"did you mean '{codes[near[0]]}'? {known.capitalize()}" if near else known
        raise QueryveilError(f"There is no language '{id}'; {suggested}.")
    return cast(Language, import_module(f"queryveil.text.languages.{LANGUAGES[id]}").LANGUAGE)


def _together(parts: Sequence[Language]) -> Language:
    """One or more languages as one, with all cutters."""
    made = {one.name: _joined([getattr(part, one.name) for part in parts]) for one in fields(Language)}
    made |= {"id": ",".join(part.id for part in parts), "label": ", ".join(part.label for part in parts)}
    made |= {"cutter": None, "cutters": _cutters([part.id for part in parts])}
    made["stop_words"] = frozenset().union(*(_as_typed(part) for part in parts))
    made["stem"] = parts[0].stem if len(parts) == 1 else partial(_stemmed, parts=tuple(parts))
    return Language(**made)


def _as_typed(part: Language) -> frozenset[str]:
    """The stop words of a language, also without accents, and in Greek as they are in capitals."""
    typed = {form for word in part.stop_words - part.accented for form in (word, bare(word))}
    return part.stop_words | typed | {word.replace("ς", "σ") for word in typed}


def _joined(values: Sequence[Any]) -> Any:
    """Values of one field of several languages as one: sets and tuples are united."""
    first = values[0]
    if isinstance(first, frozenset):
        return frozenset().union(*values)
    if isinstance(first, tuple):
        return tuple(dict.fromkeys(part for value in values for part in value))
    if isinstance(first, Cues):
        return Cues(**{one.name: _joined([getattr(value, one.name) for value in values]) for one in fields(Cues)})
    return first


def _stemmed(words: pa.Array, *, parts: Sequence[Language]) -> pa.Array:
    """Words with the stems that they have in the first language of their script."""
    scripts = scripts_of(words)
    left = np.ones(len(words), np.bool_)
    for part in parts:
        own = left & (scripts & bit(*part.scripts) != 0)
        if own.any():
            mask = pa.array(own)
            words = pc.replace_with_mask(words, mask, part.stem(words.filter(mask)).cast(words.type))
            left &= ~own
    return words


def _cutters(ids: Sequence[str]) -> tuple[Chosen, ...]:
    """Which cutter cuts which texts: by script, and by the languages where two have the same."""
    han, kana = bit("han"), bit("kana")
    japanese = "ja" in ids and ("zh" not in ids or ids.index("ja") < ids.index("zh"))
    chosen = [
        Chosen(_own_cutter("ja"), han | kana) if japanese else Chosen(_own_cutter("ja"), kana),
        *([] if japanese else [Chosen(_own_cutter("zh"), han, kana)]),
        Chosen(_own_cutter("ko"), bit("hangul")),
        Chosen(_own_cutter("th"), bit("thai")),
        *(Chosen(Cutter(script.title(), (script,)).as_here(), bit(script)) for script in ("lao", "khmer", "burmese")),
    ]
    return tuple(chosen)


def _own_cutter(id: str) -> Cutter:
    cutter = _file(id).cutter
    assert cutter is not None  # noqa: S101  # its file has one
    return cutter.as_here()
