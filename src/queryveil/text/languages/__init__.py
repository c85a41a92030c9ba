"""Languages: one file each, found by its id in `LANGUAGES`.

What depends on the language of queries asks a `Language` for it. A log knows its own (`QueryLog.language`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError, did_you_mean
from queryveil.text.masks import without_masks
from queryveil.text.words import Words, split_at_blanks

LANGUAGES = {
    "en": "english",
}
"""The file of each language in this folder, by its code of ISO 639-1."""

DEFAULT = "en"


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
    """What the rest of the package asks of a language.

    Attributes:
        id: Its code of ISO 639-1.
        label: Its name in English.
        stop_words: Words with little meaning of their own. Keep them few: a query is about its other words.
        cut: Cuts texts in normal form into words.
        stem: The stems of words; by default a word is its own stem.
        phrase_ends: Words that end a noun phrase and are no stop words.
        before_verbs: Words that end a noun phrase and are followed by a verb.
        determiners: Words that end a noun phrase and are followed by a noun.
        conjunctions: Words that join things that are alike, the most usual first.
        cues: Words that say what stands beside them.
    """

    id: str
    label: str
    stop_words: frozenset[str]
    cut: Callable[[pa.Array], Words] = split_at_blanks
    stem: Callable[[pa.Array], pa.Array] = _unchanged
    phrase_ends: frozenset[str] = frozenset()
    before_verbs: frozenset[str] = frozenset()
    determiners: frozenset[str] = frozenset()
    conjunctions: tuple[str, ...] = ()
    cues: Cues = Cues()

    def words(self, queries: pa.Array) -> Words:
        """The words of queries in normal form.

        A mask such as `<email>` is not a word and separates words like a space: it stands for something different in
        every query, so two queries that share it have nothing in common.

        Example:
            >>> language().words(pa.array(["at&t (wireless) - plans", "c++", "<email> pizza"])).text.to_pylist()
            ['at&t', 'wireless', 'plans', 'c', 'pizza']
        """
        return self.cut(without_masks(queries))

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


@cache
def language(id: str = DEFAULT) -> Language:
    """A language by its id.

    Raises:
        QueryveilError: If there is no such language.
    """
    if id not in LANGUAGES:
        raise QueryveilError(f"There is no language '{id}'; {did_you_mean(id, LANGUAGES)}.")
    return cast(Language, import_module(f"queryveil.text.languages.{LANGUAGES[id]}").LANGUAGE)
