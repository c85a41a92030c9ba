"""The world that synthetic users search in: topics, words, people, places and sites.

It is read from the text files in `data/`, two for English and one for each other language, and is the same for every
seed: two logs of different seeds are two populations in one world. The kernels see it as plain arrays.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple
from zlib import crc32

import numpy as np

from queryveil.arrays import offsets
from queryveil.kernels.types import Bools, Bytes, Floats, Longs
from queryveil.synth.settings import ENGLISH, Settings, read_settings

SITES_PER_LEAF = 200

LISTED, COINED = 0, 1  # kinds of words that the world chooses: see `words`
LATIN = 10
SYLLABLES, CODAS, SURNAME_ENDS = 256, 8, 528  # sounds of the language; of Latin letters; ends of surnames
SOUNDS = SYLLABLES + CODAS

# Groups of phrases: the short lists first, then one group for each leaf topic (its items).
LISTS = (
    "first names", "surnames", "places", "before", "after", "links", "streets", "street kinds", "mail hosts",
    "mail first names", "mail surnames", "regions",
)  # fmt: skip
FIRST_NAMES, SURNAMES, PLACES, BEFORE, AFTER, LINKS, STREETS, STREET_KINDS, MAIL_HOSTS = range(9)
MAIL_FIRST_NAMES, MAIL_SURNAMES, REGIONS = range(9, len(LISTS))
LEAVES = len(LISTS)

KINDS = ("navigational", "base", "refinement", "reformulation", "name", "slip", "personal")
NAVIGATIONAL, BASE, REFINEMENT, REFORMULATION, NAME, SLIP, PERSONAL = range(len(KINDS))

SENSITIVE = (None, "vanity", "name_place", "phone", "card", "national_id", "address", "email", "health")
NONE, VANITY, NAME_PLACE, PHONE, CARD, NATIONAL_ID, ADDRESS, EMAIL, HEALTH = range(len(SENSITIVE))

# Where a sensitive query belongs in the tree of topics.
_HOME_OF_SENSITIVE = (
    "Reference/Phone_Books", "Reference/Phone_Books", "Reference/Genealogy", "Reference/Phone_Books",
    "Business/Banking", "Society/Government", "Reference/Maps", "Computers/Mail", "Health/Conditions",
)  # fmt: skip
_LATIN = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "œ": "oe"})
_HEALTH_LEAVES = ("Conditions", "Mental_Health", "Reproductive", "Addictions")


class World(NamedTuple):
    """The world as arrays. `x_start` holds the offsets into `x`, one more than there are entries."""

    text: Bytes  # every word of the hand-written lists, one after the other
    text_start: Longs
    phrase: Longs  # phrases as words
    phrase_start: Longs
    group_start: Longs  # groups as ranges of phrases
    leaf_word: Longs  # the single words of a leaf
    leaf_word_start: Longs
    leaf_weight: Floats  # cumulative popularity of the leaves
    health: Bools  # is the leaf a health topic?
    home: Longs  # the leaf of each sensitive kind
    site_word: Longs  # name of site (leaf, i) as a word, at leaf * SITES_PER_LEAF + i
    site_name: Longs  # the same in Latin letters, as in its address
    site_ending: Longs
    known_site: Longs  # well-known sites in order of popularity
    url: Bytes
    url_start: Longs
    sound: Bytes  # syllables and codas of coined words, of the language and in Latin letters; ends of surnames
    sound_start: Longs
    ending: Bytes  # three endings of addresses, four bytes each
    form: Bytes  # of telephone numbers, then of national ids
    form_start: Longs
    phone_forms: int  # 0: those of the United States, and the ids of English
    check_weight: Longs  # of the digits of a national id
    check: Bytes  # what checks them, for every remainder
    check_modulus: int  # 0: ISO 7064
    address: Longs  # the parts of a street address in order: groups, or -1 for the number
    highest_number: int  # of a house
    listed_surnames: float  # the share of surnames that are listed, the others are coined
    place_link: float  # the chance of a word such as `in` before a place
    blank_every: int  # one in so many pairs of words has a blank between them
    coined_site: int  # kind of the names of sites beyond the directory


@dataclass(frozen=True)
class Site:
    """A site of the directory."""

    url: str
    title: str
    description: str
    items: tuple[str, ...]  # what it is about, the main thing first; a well-known site is about its whole topic


@dataclass(frozen=True)
class Atlas:
    """The world for people: the names behind the numbers of `World`."""

    languages: tuple[str, ...]
    worlds: list[World]  # one for each language
    url: Bytes  # of all sites
    url_start: Longs
    topics: list[str]  # path of each leaf, such as Top/Shopping/Phones, language by language
    leaves: list[int]  # how many of them each language has
    sites: list[Site]  # SITES_PER_LEAF for each leaf, in order of the leaves
    devices: list[str]
    countries: list[list[str]]  # for each language, where its users live, most of them in the first
    preferred: list[list[str]]  # and the languages they prefer, most of them the first


def _read(name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of a data file: the text in brackets, and the lines under it."""
    heading, lines = "", list[str]()
    for line in files(__package__).joinpath("data", name).read_text("utf-8").splitlines():
        if line.startswith("["):
            if heading:
                yield heading, lines
            heading, lines = line.strip("[]"), []
        elif line and not line.startswith("#"):
            lines.append(line)
    yield heading, lines


def _entries(line: str) -> list[str]:
    return [entry.strip() for entry in line.split(",")]


class _Words:
    """Gives every distinct word a number."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def __call__(self, word: str) -> int:
        return self.number.setdefault(word, len(self.number))


def _starts(lengths: Iterable[int]) -> Longs:
    return offsets(np.fromiter(lengths, np.int64))


def _bytes(words: Iterable[str]) -> tuple[Bytes, Longs]:
    encoded = [word.encode() for word in words]
    return np.frombuffer(b"".join(encoded), np.uint8), _starts(map(len, encoded))


def _name_sites(vocabularies: list[list[str]], endings: list[str], known: dict[str, int]) -> list[tuple[str, str]]:
    """Name the sites of every leaf as (first part, second part), no name twice in the whole world."""
    taken = set(known)
    names = []
    for leaf, vocabulary in enumerate(vocabularies):
        mine = [(name, "") for name, home in known.items() if home == leaf]
        for word, ending in sorted(product(vocabulary, endings), key=lambda pair: crc32("".join(pair).encode())):
            if len(mine) < SITES_PER_LEAF and word + ending not in taken:
                taken.add(word + ending)
                mine.append((word, ending))
        if len(mine) < SITES_PER_LEAF:
            raise AssertionError(f"topic {leaf} has too few words to name {SITES_PER_LEAF} sites")
        names += mine
    return names


def _site(name: tuple[str, str], typed: str, ending: str, topic: str, items: list[str]) -> Site:
    """Describe a site with items of its topic, so that a text search in the directory finds it."""
    shift = crc32("".join(name).encode()) % len(items)
    first, second, third = (items[(shift + step) % len(items)] for step in (0, 3, 7))
    place = topic.split("/")[-1].replace("_", " ").lower()
    main = next((item for item in items if name[0] in item.split()), "")
    return Site(
        url=f"http://www.{name[0]}{name[1]}.{ending}",
        title=typed or " ".join(part.capitalize() for part in name if part),
        description=f"About {place}: {first}, {second} & {third}.",
        items=tuple(filter(None, dict.fromkeys((main, first)))) if name[1] else (),
    )


def _latin(word: str) -> str:
    """A word in letters of English, as in the address of a site; empty if it has others."""
    letters = unicodedata.normalize("NFD", word).translate(_LATIN)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return bare if bare.isascii() else ""


class _Source(NamedTuple):
    """What the files of a language say."""

    lists: dict[str, list[str]]
    settings: Settings
    paths: list[str]
    items: list[list[str]]
    forms: list[list[str]]  # other forms of the words of a leaf
    weights: list[float]


def _source(language: str) -> _Source:
    lists, settings = dict[str, list[str]](), ENGLISH
    found = _Source(lists, settings, [], [], [], [])
    for name in ("lists.txt", "topics.txt") if language == "en" else (f"{language}.txt",):
        for heading, lines in _read(name):
            top, _, popularity = heading.rpartition(" ")
            if heading == "settings":
                settings = read_settings(lines)
            elif not popularity.isdigit():
                lists[heading] = _entries(",".join(lines))
            else:
                for place, line in enumerate(lines):
                    leaf, entries = line.split(":")
                    entries, _, others = entries.partition(";")
                    found.paths.append(f"{top}/{leaf}")
                    found.items.append(_entries(entries))
                    found.forms.append(others.split())
                    found.weights.append(float(popularity) / (place + 3))
    if language == "en":
        lists["regions"] = [place.split()[-1] for place in lists["places"]]
    else:
        english = _source("en")
        for name in ("mail hosts", "devices"):
            lists[name] = english.lists[name]
    for name in ("first names", "surnames"):
        lists.setdefault(f"mail {name}", [_latin(entry).replace(" ", "") for entry in lists[name]])
    return found._replace(settings=settings)


class _Known(NamedTuple):
    """A well-known site: how it is typed, its name, its topic."""

    typed: str
    name: str
    leaf: int


def _known(source: _Source) -> dict[str, _Known]:
    known = {}
    for entry in source.lists["sites"]:
        written, path = entry.split()
        typed, _, name = written.rpartition("=")
        known[name] = _Known(typed, name, source.paths.index(path))
    return known


def _world(language: str) -> tuple[World, list[str], list[Site]]:
    """Read the world of a language: its arrays, topics and sites."""
    source = _source(language)
    lists, settings, paths, items = source.lists, source.settings, source.paths, source.items
    words = _Words()
    groups = [lists[name] for name in LISTS] + items
    phrases = [[words(word) for word in entry.split()] for group in groups for entry in group]
    vocabularies = [list(dict.fromkeys(word for item in leaf for word in item.split())) for leaf in items]
    known = _known(source)
    naming = vocabularies
    if language != "en":
        english = _source("en")
        of_path = dict(zip(english.paths, english.items, strict=True))
        naming = [
            list(dict.fromkeys(filter(None, map(_latin, leaf))))
            if all(map(_latin, leaf))
            else list(dict.fromkeys(word for item in of_path[path] for word in item.split()))
            for leaf, path in zip(vocabularies, paths, strict=True)
        ]
    names = _name_sites(naming, lists["site endings"], {site.name: site.leaf for site in known.values()})
    slot = {first: place for place, (first, second) in enumerate(names) if not second}
    # Most sites end in .com, or what is usual in the country; the rest is spread over the other endings.
    endings = [
        0 if first in known else (0, 0, 0, 0, 1, 2)[crc32((first + second).encode()) % 6] for first, second in names
    ]
    typed = [known[first].typed if not second and first in known else "" for first, second in names]
    topics = [f"Top/{path}" for path in paths]
    sites = [
        _site(name, typed[n], settings.endings[ending], topics[n // SITES_PER_LEAF], items[n // SITES_PER_LEAF])
        for n, (name, ending) in enumerate(zip(names, endings, strict=True))
    ]
    site_word = [words(typed[n] or "".join(name)) for n, name in enumerate(names)]
    site_name = [words("".join(name)) for name in names]
    leaf_words = [
        list(dict.fromkeys([*vocabulary, *forms])) for vocabulary, forms in zip(vocabularies, source.forms, strict=True)
    ]
    leaf_word = [words(word) for leaf in leaf_words for word in leaf]
    text, text_start = _bytes(words.number)
    url, url_start = _bytes(site.url for site in sites)
    sound, sound_start = _bytes([*settings.sounds, *ENGLISH.sounds, *settings.surname_ends])
    form, form_start = _bytes([*settings.phones, *settings.ids])
    arrays = World(
        text=text,
        text_start=text_start,
        phrase=np.array([word for phrase in phrases for word in phrase], np.int64),
        phrase_start=_starts(map(len, phrases)),
        group_start=_starts(map(len, groups)),
        leaf_word=np.array(leaf_word, np.int64),
        leaf_word_start=_starts(map(len, leaf_words)),
        leaf_weight=np.cumsum(source.weights) / np.sum(source.weights),
        health=np.array([path.startswith("Health/") and path.endswith(_HEALTH_LEAVES) for path in paths]),
        home=np.array([paths.index(path) for path in _HOME_OF_SENSITIVE], np.int64),
        site_word=np.array(site_word, np.int64),
        site_name=np.array(site_name, np.int64),
        site_ending=np.array(endings, np.int64),
        known_site=np.array([slot[name] for name in known], np.int64),
        url=url,
        url_start=url_start,
        sound=sound,
        sound_start=sound_start,
        ending=np.frombuffer("".join(f".{ending:<3}" for ending in settings.endings).encode(), np.uint8),
        form=form,
        form_start=form_start,
        phone_forms=len(settings.phones),
        check_weight=np.array(settings.check_weights, np.int64),
        check=np.frombuffer(settings.check.encode(), np.uint8),
        check_modulus=settings.check_modulus,
        address=np.array([LISTS.index(part) if part in LISTS else -1 for part in settings.address], np.int64),
        highest_number=settings.highest_number,
        listed_surnames=settings.listed_surnames,
        place_link=settings.place_link,
        blank_every=settings.blank_every,
        coined_site=COINED if language == "en" else LATIN,
    )
    return arrays, topics, sites


@cache
def atlas(languages: tuple[str, ...] = ("en",)) -> Atlas:
    """Read the worlds of some languages."""
    worlds, topics, sites = list[World](), list[str](), list[Site]()
    leaves, countries, preferred = list[int](), list[list[str]](), list[list[str]]()
    for language in languages:
        arrays, some_topics, some_sites = _world(language)
        lists = _source(language).lists
        worlds.append(arrays)
        topics += some_topics
        leaves.append(len(some_topics))
        sites += some_sites
        countries.append(lists["countries"])
        preferred.append(lists["languages"])
    url, url_start = _bytes(site.url for site in sites)
    return Atlas(
        languages, worlds, url, url_start, topics, leaves, sites, _source("en").lists["devices"], countries, preferred
    )
