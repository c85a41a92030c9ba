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

Languages other than English have lists of their own, without ordinary words: there, a family name raises no doubt by
being a word. Particles (`van der`), a second family name, and the family name in front are understood.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from queryveil.scrubbing import streets
from queryveil.scrubbing.lists import CITY, COMMON, FIRST, LAST, MAINLY, REGION, WORD, lists_of, plain_word
from queryveil.scrubbing.patterns import Span
from queryveil.text import language

_FIRMS = """
john deere, mary kay, jenny craig, calvin klein, ralph lauren, tommy hilfiger, eddie bauer, donna karan, kenneth cole,
marc jacobs, michael kors, kate spade, jack daniels, jim beam, johnnie walker, jimmy johns, jimmy choo, trader joes,
betty crocker, sara lee, estee lauder, elizabeth arden, oscar mayer, perry ellis, ethan allen, thomas kinkade,
johns hopkins, john hancock, charles schwab, edward jones, jackson hewitt, merrill lynch, morgan stanley, dean witter,
paul mitchell, vidal sassoon, sally hansen, martha stewart, robert half, harry winston, george foreman, lane bryant,
ann taylor, johnson johnson
"""
_LOCAL_FIRMS = """
hugo boss, jack wolfskin, philipp plein, ludwig beck, otto wulff, marco polo, peter pan, jil sander, wolfgang joop,
marc cain, ernst klett, carl zeiss, robert bosch, gerry weber, tom tailor, louis vuitton, yves rocher, leroy merlin,
jacques dessange, franck provost, alain afflelou, louis pion, christian dior, jean paul gaultier, pierre cardin, marie
claire, ines de la fressange, pierre fabre, yves saint laurent, christian louboutin, nina ricci, paul smith, saint
laurent, albert heijn, jan linders, giorgio armani, emporio armani, roberto cavalli, gianni versace, salvatore
ferragamo, luisa spagnoli, laura biagiotti, enzo ferrari, miu miu, marina rinaldi, max mara, ermenegildo zegna,
carolina herrera, adolfo dominguez, paco rabanne, david delfin, purificacion garcia, roberto verino, agatha ruiz,
victoria secret, pedro del hierro, jean louis david, daniel wellington, daniel hechter, karl lagerfeld
"""
_NOBODY = frozenset(name.strip() for name in _FIRMS.split(","))
_NOBODY_LOCAL = _NOBODY | frozenset(name.strip() for name in _LOCAL_FIRMS.split(","))
"""First and family names, as in the lists, that are companies and products."""
_NAMED_AFTER = """
universidad universidade universitat universite universita colegio escuela ecole lycee klinik krankenhaus iglesia eglise
kirche schule gymnasium instituto istituto ospedale
"""
_SMALL = """
von van vom zu zum zur der den dem de da do dos das del della dei di du des la las los le lo el al ben bin t ter ten e y
"""
PARTICLES = frozenset(_SMALL.split())
"""What may stand between a first and a family name in languages other than English."""
_MOST_PARTICLES = 3
_LONG_NAME = 4
"""Letters of a family name that is in no list."""
_ADDRESS = "<address>"
"""The mask of an address, which is a place too."""
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
        if _ADDRESS in part:
            texts.append(_ADDRESS)
            spans.append((at, at))
            at = end + 1
            continue
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


def _plain(words: frozenset[str]) -> frozenset[str]:
    """Words as the lists have them."""
    return words | frozenset(map(plain_word, words))


class People:
    """Finds persons and addresses by the lists and words of one or more languages."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        """Read the lists."""
        spoken = language(*languages)
        self.lists = lists_of(languages)
        self._languages = languages
        self._english = languages == ("en",)
        self._stop_words = spoken.stop_words
        cues = spoken.cues
        self._with_people = _plain(cues.people | spoken.stop_words)
        self._before_place = _plain(cues.before_places | (cues.people - spoken.stop_words))
        self._institutions = _plain(cues.institutions) | frozenset(_NAMED_AFTER.split())
        self._public_life = _plain(cues.public_life)

    def _names_at(self, words: list[str], at: int) -> Iterator[_Name]:
        """The names that begin at a word: without a middle name, with an initial, or with a second first name."""
        if not self._english:
            yield from self._local_names_at(words, at)
            return
        known = self.lists.words
        first = self._first_name(words[at])
        if not first & FIRST or self.lists.kinds.get(" ".join(words[at : at + 2]), 0) & (CITY | REGION):
            return
        # Some city somewhere is called Mary; a common first name is the likelier meaning.
        doubts = bool(first & WORD and not first & MAINLY) or bool(first & REGION)
        doubts |= bool(first & CITY and not first & COMMON)
        for middle in range(min(2, len(words) - at - 1)):
            if middle and not (len(words[at + 1]) == 1 or known.get(words[at + 1], 0) & (FIRST | WORD) == FIRST):
                continue
            last = words[at + 1 + middle]
            if last in self._institutions:
                continue
            found = [known.get(part, 0) for part in last.split("-")]
            listed = all(kind & LAST for kind in found)
            unlisted = found == [0] and last.isalpha() and len(last) >= 4
            if (listed or unlisted) and f"{words[at]} {last}" not in _NOBODY:
                unsure = unlisted or any(kind & (WORD | CITY | REGION) for kind in found)
                yield _Name(middle + 2, doubts + unsure, bool(first & COMMON), listed)

    def _local_names_at(self, words: list[str], at: int) -> Iterator[_Name]:
        """The same in other languages: also with particles, two family names, or the family name in front."""
        known = self.lists.words
        first = self._first_name(words[at])
        if first & FIRST and not self.lists.kinds.get(" ".join(words[at : at + 2]), 0) & (CITY | REGION):
            doubts = bool(first & (WORD | CITY | REGION) and not first & MAINLY)
            for begin in self._after_first_names(words, at):
                end = self._without_particles(words, begin)
                whole = known.get(words[end], 0)  # a town may have a hyphen, and parts that are family names
                kinds = [whole] if whole else [known.get(part, 0) for part in words[end].split("-")]
                listed = any(kind & LAST for kind in kinds)
                # Behind a particle a family name is often a place or a first name: `von der weiden`, `de luca`.
                placed = end > begin and not any(kind & ~(CITY | FIRST | COMMON | MAINLY) for kind in kinds)
                unlisted = placed or not any(kinds)
                unlisted &= words[end].replace("-", "").isalpha() and len(words[end]) >= _LONG_NAME
                if not (listed or unlisted) or words[end] in self._institutions or words[end] in self._with_people:
                    continue
                if " ".join(words[at : end + 1]) in _NOBODY_LOCAL:
                    continue
                unsure = doubts + (unlisted or any(kind & WORD for kind in kinds))
                if end + 1 < len(words) and known.get(words[end + 1], 0) & LAST:
                    yield _Name(end + 2 - at, unsure, bool(first & COMMON), listed)
                yield _Name(end + 1 - at, unsure, bool(first & COMMON), listed)
        if known.get(words[at], 0) & LAST:
            yield from self._family_first(words, at)

    def _after_first_names(self, words: list[str], at: int) -> Iterator[int]:
        """Where the family name may begin: after one or two first names (`maria del carmen`), or an initial."""
        if at + 1 < len(words):
            yield at + 1
        if at + 2 < len(words) and len(words[at + 1]) == 1:
            yield at + 2
        second = self._without_particles(words, at + 1)
        if second + 1 < len(words):
            kind, family = (self.lists.words.get(word, 0) for word in words[second : second + 2])
            if kind & FIRST and (not kind & WORD or family & LAST):
                yield second + 1

    @staticmethod
    def _without_particles(words: list[str], at: int) -> int:
        end = at
        while end < len(words) - 1 and words[end] in PARTICLES and end - at < _MOST_PARTICLES:
            end += 1
        return end

    def _family_first(self, words: list[str], at: int) -> Iterator[_Name]:
        """One or two family names, and the first name behind them."""
        known = self.lists.words
        for n in (1, 2):
            if at + n >= len(words) or not known.get(words[at + n - 1], 0) & LAST:
                return
            first = self._first_name(words[at + n])
            both = first & LAST and any(known.get(word, 0) & FIRST for word in words[at : at + n])
            if first & FIRST and not first & WORD and not both:
                # King Louis is no person called King, so nothing else may be there.
                yield _Name(n + 1, 1, bool(first & COMMON), listed=True)

    def _first_name(self, word: str) -> int:
        """What a first name can be; one with a hyphen (`mary-ann`) is not a word if any part is mainly a name."""
        found = [self.lists.words.get(part, 0) for part in word.split("-")]
        if len(found) == 1 or not all(kind & FIRST for kind in found):
            return found[0] if len(found) == 1 else 0
        unsure = all(kind & WORD and not kind & MAINLY for kind in found)
        return FIRST | (COMMON if any(kind & COMMON for kind in found) else 0) | (WORD if unsure else 0)

    def _is_institution(self, words: list[str], at: int, end: int) -> bool:
        """Whether the words right after or before a name make it the name of an institution, such as a school."""
        before = (
            words[at - 2 : at]
            if at > 1 and words[at - 1] in ("of", "de", "st", "saint")
            else words[max(0, at - 1) : at]
        )
        return any(word in self._institutions for word in (*words[end : end + 1], *before))

    def names_with_places(self, text: str) -> Iterator[Span]:
        """First name, family name and a place: see the rules above. The span ends with the place."""
        if " " not in text:
            return
        words, spans = _words(text)
        if not self._public_life.isdisjoint(words):
            return
        for at in range(len(words) - 1):
            for name in self._names_at(words, at):
                end = at + name.words
                if self._is_institution(words, at, end):
                    continue
                place = self._place_end(words, end)
                if place is None and not self._english and _ADDRESS in (*words[end : end + 1], *words[at - 1 : at]):
                    rest = [word for word in (*words[:at], *words[end:]) if not word.isdigit() and word != _ADDRESS]
                    if name.doubts == 0 or (name.common and all(word in self._with_people for word in rest)):
                        yield spans[at][0], spans[end - 1][1]
                    continue
                if place is None:
                    before = self._place_before(words, at) if name.doubts == 0 else None
                    if before is not None:
                        yield spans[before][0], spans[end - 1][1]
                    continue
                stop, exact = place
                rest = [word for word in (*words[:at], *words[stop:]) if not word.isdigit()]
                people = all(word in self._with_people for word in rest)
                alone = exact and name.listed and not rest
                if name.doubts == 0 or (name.common and ((name.doubts == 1 and people) or alone)):
                    yield spans[at][0], spans[stop - 1][1]

    def _place_end(self, words: list[str], at: int) -> tuple[int, bool] | None:
        """Where the place at a word ends, and whether it is exact; up to two words (`attorney in`) may come before."""
        for skipped in range(3):
            place = self.lists.place_at(words, at + skipped)
            code = self.lists.code_at(words, at + skipped + (place.words if place is not None else 0))
            if place is not None:
                return at + skipped + place.words + code, place.exact
            if code:
                town = None if self._english else self.lists.place_at(words, at + skipped + code)
                return at + skipped + code + (town.words if town is not None else 0), False
            if at + skipped < len(words) and words[at + skipped] not in self._before_place:
                return None
        return None

    def place_end(self, text: str, at: int) -> int | None:
        """Where the place that begins at a point of a text ends, maybe behind a comma or a word such as `in`."""
        after = text[at : at + 100]
        shift = at + len(after) - len(after.lstrip(" ,"))
        words, spans = _words(after.lstrip(" ,"))
        place = self._place_end(words, 0)
        return shift + spans[place[0] - 1][1] if place is not None else None

    def _place_before(self, words: list[str], end: int) -> int | None:
        """Where a place begins that ends right before a word."""
        for at in range(max(0, end - 5), end):
            place = self.lists.place_at(words[:end], at)
            if place is not None and at + place.words == end:
                return at
        return None

    def names(self, text: str) -> Iterator[Span]:
        """First name and family name, neither a word nor a place, with only words that go with people around them."""
        words, spans = _words(text)
        for at in range(len(words) - 1):
            for name in self._names_at(words, at):
                end = at + name.words
                if name.doubts == 0 and all(word in self._with_people for word in (*words[:at], *words[end:])):
                    yield spans[at][0], spans[end - 1][1]

    def addresses(self, text: str) -> Iterator[Span]:
        """Street addresses.

        House number, one to three words and `street` or the like; then a place, a postal code, or the end of the query.
        If nothing follows, the word must be one of few (`street`, `road`) and the number must have at least two digits
        and not be a year. Also German, French, Spanish, Italian and Portuguese ones, and post-office boxes.
        """
        for found in _BOX.finditer(text):
            yield found.span()
        for found in _EUROPEAN.finditer(text):
            if not any(streets.is_other(text, found, code) for code in self._languages):
                yield found.span()
        for found in _STREET.finditer(text):
            number, name, kind = found.groups()
            if all(word in self._stop_words for word in name.split()):
                continue
            stop = self.place_end(text, found.end())
            if stop is not None:
                yield found.start(), stop
            elif not text[found.end() :].strip(" ,"):
                year = len(number) == 4 and number[:2] in ("19", "20")
                if kind in _SURE.split("|") and len(number) > 1 and not year:
                    yield found.span()


@cache
def people_of(languages: tuple[str, ...] = ("en",)) -> People:
    """What finds persons of these languages."""
    return People(languages)
