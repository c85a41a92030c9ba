"""The world that synthetic users search in: topics, words, people, places and sites.

It is read from the two text files in `data/` and is the same for every seed: two logs of different seeds are
two populations in one world. The kernels see it as plain arrays.
"""

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

SITES_PER_LEAF = 200
ENDINGS = ("com", "org", "net")

# Groups of phrases: the short lists first, then one group for each leaf topic (its items).
LISTS = (
    "first names", "surnames", "places", "before", "after", "links", "streets", "street kinds", "mail hosts",
)  # fmt: skip
FIRST_NAMES, SURNAMES, PLACES, BEFORE, AFTER, LINKS, STREETS, STREET_KINDS, MAIL_HOSTS = range(len(LISTS))
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
    site_ending: Longs
    known_site: Longs  # well-known sites in order of popularity
    url: Bytes
    url_start: Longs


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

    arrays: World
    topics: list[str]  # path of each leaf, such as Top/Shopping/Phones
    sites: list[Site]  # SITES_PER_LEAF for each leaf, in order of the leaves
    devices: list[str]
    countries: list[str]
    languages: list[str]


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


def _site(leaf: int, name: tuple[str, str], ending: str, topic: str, items: list[str]) -> Site:
    """Describe a site with items of its topic, so that a text search in the directory finds it."""
    shift = crc32("".join(name).encode()) % len(items)
    first, second, third = (items[(shift + step) % len(items)] for step in (0, 3, 7))
    place = topic.split("/")[-1].replace("_", " ").lower()
    main = next((item for item in items if name[0] in item.split()), "")
    return Site(
        url=f"http://www.{name[0]}{name[1]}.{ending}",
        title=" ".join(part.capitalize() for part in name if part),
        description=f"About {place}: {first}, {second} & {third}.",
        items=tuple(dict.fromkeys((main, first))) if name[1] else (),
    )


@cache
def atlas() -> Atlas:
    """Read the world."""
    lists = {heading: _entries(",".join(lines)) for heading, lines in _read("lists.txt")}
    paths, items, weights = list[str](), list[list[str]](), list[float]()
    for heading, lines in _read("topics.txt"):
        top, popularity = heading.split()
        for place, line in enumerate(lines):
            leaf, entries = line.split(":")
            paths.append(f"{top}/{leaf}")
            items.append(_entries(entries))
            weights.append(float(popularity) / (place + 3))

    words = _Words()
    groups = [lists[name] for name in LISTS] + items
    phrases = [[words(word) for word in entry.split()] for group in groups for entry in group]
    vocabularies = [list(dict.fromkeys(word for item in leaf for word in item.split())) for leaf in items]
    known = {name: paths.index(path) for name, path in map(str.split, lists["sites"])}
    names = _name_sites(vocabularies, lists["site endings"], known)
    slot = {first: place for place, (first, second) in enumerate(names) if not second}
    # Most sites end in .com; the rest is spread over the other endings.
    endings = [
        0 if first in known else (0, 0, 0, 0, 1, 2)[crc32((first + second).encode()) % 6] for first, second in names
    ]
    topics = [f"Top/{path}" for path in paths]
    sites = [
        _site(n // SITES_PER_LEAF, name, ENDINGS[ending], topics[n // SITES_PER_LEAF], items[n // SITES_PER_LEAF])
        for n, (name, ending) in enumerate(zip(names, endings, strict=True))
    ]
    site_word = [words("".join(name)) for name in names]
    text, text_start = _bytes(words.number)
    url, url_start = _bytes(site.url for site in sites)
    arrays = World(
        text=text,
        text_start=text_start,
        phrase=np.array([word for phrase in phrases for word in phrase], np.int64),
        phrase_start=_starts(map(len, phrases)),
        group_start=_starts(map(len, groups)),
        leaf_word=np.array([words(word) for leaf in vocabularies for word in leaf], np.int64),
        leaf_word_start=_starts(map(len, vocabularies)),
        leaf_weight=np.cumsum(weights) / np.sum(weights),
        health=np.array([path.startswith("Health/") and path.endswith(_HEALTH_LEAVES) for path in paths]),
        home=np.array([paths.index(path) for path in _HOME_OF_SENSITIVE], np.int64),
        site_word=np.array(site_word, np.int64),
        site_ending=np.array(endings, np.int64),
        known_site=np.array([slot[name] for name in known], np.int64),
        url=url,
        url_start=url_start,
    )
    return Atlas(arrays, topics, sites, lists["devices"], lists["countries"], lists["languages"])
