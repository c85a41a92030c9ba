"""Persons with a place, and where they live.

In lower case only lists distinguish a name from other words, and most names are also words or places: `virginia woods`
is a person, a forest or nothing. So a name counts only with enough evidence:

1. a first name and a family name that are neither words nor places, with any place right before or after them;
2. if one of the two is a word or a place, or the family name is in no list: with a common first name, a place right
   after it, and nothing else in the query except words that go with people (`address`, `dr`, `obituary`);
3. if both are: with a common first name, a listed family name, a city with its state or country right after it, and
   nothing else.

The two letters of a state or a postal code after the name are a place too. A name does not count if it is that of an
institution (`robert garcia elementary`), or if the query has a word of public life (`tickets`, `lyrics`).

The most frequent first names (`john`, `mark`) do not count as words, and `in` or a word that goes with people may come
before the place. A name without a place (kind `name`) counts if neither part is a word or a place, and the query has
nothing else except words that go with people.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from queryveil.scrubbing.lists import (
    CITY,
    COMMON,
    FIRST,
    LAST,
    MAINLY,
    REGION,
    WORD,
    code_at,
    kinds,
    place_at,
    plain_word,
    word_kinds,
)
from queryveil.scrubbing.patterns import Span
from queryveil.text import language

_STOP_WORDS, _CUES = language().stop_words, language().cues
_WITH_PEOPLE = _CUES.people | _STOP_WORDS
_BEFORE_PLACE = _CUES.before_places | (_CUES.people - _STOP_WORDS)
"""Words between a person and a place."""
_FIRMS = """
john deere, mary kay, jenny craig, calvin klein, ralph lauren, tommy hilfiger, eddie bauer, donna karan, kenneth cole,
marc jacobs, michael kors, kate spade, jack daniels, jim beam, johnnie walker, jimmy johns, jimmy choo, trader joes,
betty crocker, sara lee, estee lauder, elizabeth arden, oscar mayer, perry ellis, ethan allen, thomas kinkade,
johns hopkins, john hancock, charles schwab, edward jones, jackson hewitt, merrill lynch, morgan stanley, dean witter,
paul mitchell, vidal sassoon, sally hansen, martha stewart, robert half, harry winston, george foreman, lane bryant,
ann taylor, johnson johnson
"""
_NOBODY = frozenset(name.strip() for name in _FIRMS.split(","))
"""First and family names, as in the lists, that are companies and products."""
_NAMED_AFTER = """
universidad universidade universitat universite universita colegio escuela ecole lycee klinik krankenhaus iglesia eglise
kirche schule gymnasium instituto istituto ospedale
"""
_INSTITUTIONS = _CUES.institutions | frozenset(_NAMED_AFTER.split())
_EDGE = re.compile(r"^[^\w]+|[^\w]+$")


class _Words(NamedTuple):
    """The words of a text in the spelling of the lists, and where each one is."""

    texts: list[str]
    spans: list[Span]


def _words(text: str) -> _Words:
    texts, spans, at = [], [], 0
    for part in text.split(" "):
        end = at + len(part)
        # A mask of an earlier step is not a word: nothing may reach across it.
        bare = "" if "<" in part or ">" in part else _EDGE.sub("", part)
        begin = at + (part.find(bare) if bare else 0)
        texts.append(plain_word(bare))
        spans.append((begin, begin + len(bare)))
        at = end + 1
    return _Words(texts, spans)


class _Name(NamedTuple):
    """A name in a row of words."""

    words: int
    doubts: int
    """How many of its two parts are words or places as well, or in no list."""
    common: bool
    """Whether the first name is common."""
    listed: bool
    """Whether the family name is in a list."""


def _names_at(words: list[str], at: int) -> Iterator[_Name]:
    """The names that begin at a word: without a middle name, with an initial, or with a second first name."""
    known = word_kinds()
    first = _first_name(words[at])
    if not first & FIRST or kinds().get(" ".join(words[at : at + 2]), 0) & (CITY | REGION):
        return
    # Some city somewhere is called Mary; a common first name is the likelier meaning.
    doubts = bool(first & WORD and not first & MAINLY) or bool(first & REGION)
    doubts |= bool(first & CITY and not first & COMMON)
    for middle in range(min(2, len(words) - at - 1)):
        if middle and not (len(words[at + 1]) == 1 or known.get(words[at + 1], 0) & (FIRST | WORD) == FIRST):
            continue
        last = words[at + 1 + middle]
        if last in _INSTITUTIONS:
            continue
        found = [known.get(part, 0) for part in last.split("-")]
        listed = all(kind & LAST for kind in found)
        unlisted = found == [0] and last.isalpha() and len(last) >= 4
        if (listed or unlisted) and f"{words[at]} {last}" not in _NOBODY:
            unsure = unlisted or any(kind & (WORD | CITY | REGION) for kind in found)
            yield _Name(middle + 2, doubts + unsure, bool(first & COMMON), listed)


def _first_name(word: str) -> int:
    """What a first name can be; one with a hyphen (`mary-ann`) is not a word if any part is mainly a name."""
    found = [word_kinds().get(part, 0) for part in word.split("-")]
    if len(found) == 1 or not all(kind & FIRST for kind in found):
        return found[0] if len(found) == 1 else 0
    unsure = all(kind & WORD and not kind & MAINLY for kind in found)
    return FIRST | (COMMON if any(kind & COMMON for kind in found) else 0) | (WORD if unsure else 0)


def _is_institution(words: list[str], at: int, end: int) -> bool:
    """Whether the words right after or before a name make it the name of an institution, such as a school."""
    before = (
        words[at - 2 : at] if at > 1 and words[at - 1] in ("of", "de", "st", "saint") else words[max(0, at - 1) : at]
    )
    return any(word in _INSTITUTIONS for word in (*words[end : end + 1], *before))


def names_with_places(text: str) -> Iterator[Span]:
    """First name, family name and a place: see the rules above. The span ends with the place."""
    words, spans = _words(text)
    if not _CUES.public_life.isdisjoint(words):
        return
    for at in range(len(words) - 1):
        for name in _names_at(words, at):
            end = at + name.words
            if _is_institution(words, at, end):
                continue
            place = _place_end(words, end)
            if place is None:
                before = _place_before(words, at) if name.doubts == 0 else None
                if before is not None:
                    yield spans[before][0], spans[end - 1][1]
                continue
            stop, exact = place
            rest = [word for word in (*words[:at], *words[stop:]) if not word.isdigit()]
            people = all(word in _WITH_PEOPLE for word in rest)
            alone = exact and name.listed and not rest
            if name.doubts == 0 or (name.common and ((name.doubts == 1 and people) or alone)):
                yield spans[at][0], spans[stop - 1][1]


def _place_end(words: list[str], at: int) -> tuple[int, bool] | None:
    """Where the place at a word ends, and whether it is exact; up to two words (`attorney in`) may come before."""
    for skipped in range(3):
        place = place_at(words, at + skipped)
        code = code_at(words, at + skipped + (place.words if place is not None else 0))
        if place is not None:
            return at + skipped + place.words + code, place.exact
        if code:
            return at + skipped + code, False
        if at + skipped < len(words) and words[at + skipped] not in _BEFORE_PLACE:
            return None
    return None


def _place_before(words: list[str], end: int) -> int | None:
    """Where a place begins that ends right before a word."""
    for at in range(max(0, end - 5), end):
        place = place_at(words[:end], at)
        if place is not None and at + place.words == end:
            return at
    return None


def names(text: str) -> Iterator[Span]:
    """First name and family name, neither a word nor a place, with only words that go with people around them."""
    words, spans = _words(text)
    for at in range(len(words) - 1):
        for name in _names_at(words, at):
            end = at + name.words
            if name.doubts == 0 and all(word in _WITH_PEOPLE for word in (*words[:at], *words[end:])):
                yield spans[at][0], spans[end - 1][1]


_SURE = "street|avenue|ave|boulevard|blvd|road|rd|lane|ln"
_UNSURE = (
    "st|drive|dr|court|ct|place|pl|way|circle|cir|terrace|ter|trail|trl|parkway|pkwy|square|sq|highway|hwy|crescent|close"
    "|alley|loop|run|path|row|gardens|grove|mews"
)
_STREET = re.compile(
    r"(?<![\w.,$#/-])([0-9]{1,5})[a-d]? (?:(?:n|s|e|w|north|south|east|west|ne|nw|se|sw)\.? )?"
    rf"((?:(?!(?:{_SURE}|{_UNSURE})\b)[\w'.-]+ ){{1,3}}?)({_SURE}|{_UNSURE})\b\.?(?: (?:n|s|e|w|ne|nw|se|sw)\b)?"
    r"(?:,? (?:apt|apartment|unit|suite|ste|#)\.? ?#?\w{1,5}\b)?"
)
_EUROPEAN = re.compile(
    r"(?<![\w])(?:[^\W\d_]{3,}(?:straße|strasse|gasse|str\.) [0-9]{1,4}[a-h]?"
    r"|[0-9]{1,4},? (?:bis |ter )?(?:rue|chemin|impasse) (?:de la |de l'|du |des |de |d')?[^\W\d_][\w'-]+"
    r"|(?:calle|via|viale|rua|avenida) (?:de la |de |del |della |dei |do |da )?[^\W\d_][\w'-]+(?: [^\W\d_][\w'-]+)?"
    r",? [0-9]{1,4})"
    r"(?![\w-])"
)
_BOX = re.compile(r"(?<!\w)p\.?o\.? ?box [0-9]{1,6}(?!\w)")


def addresses(text: str) -> Iterator[Span]:
    """Street addresses.

    House number, one to three words and `street` or the like; then a place, a postal code, or the end of the query.
    If nothing follows, the word must be one of few (`street`, `road`) and the number must have at least two digits and
    not be a year. Also German, French, Spanish, Italian and Portuguese ones, and post-office boxes.
    """
    for pattern in (_EUROPEAN, _BOX):
        for found in pattern.finditer(text):
            yield found.span()
    for found in _STREET.finditer(text):
        number, name, kind = found.groups()
        if all(word in _STOP_WORDS for word in name.split()):
            continue
        # This is far enough for the longest place and its code.
        after = text[found.end() : found.end() + 100]
        shift = found.end() + len(after) - len(after.lstrip(" ,"))
        words, spans = _words(after.lstrip(" ,"))
        place = _place_end(words, 0)
        stop = place[0] if place is not None else 0
        if stop:
            yield found.start(), shift + spans[stop - 1][1]
        elif shift == len(text):
            year = len(number) == 4 and number[:2] in ("19", "20")
            if kind in _SURE.split("|") and len(number) > 1 and not year:
                yield found.span()
