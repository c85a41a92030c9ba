"""A directory as a list of categories and sites, and what the ranking rules say of it, literally."""

import re
from collections import Counter, defaultdict
from typing import NamedTuple

import Stemmer
from publicsuffixlist import PublicSuffixList

from tests.oracles.text import normal_form, words

_stem = Stemmer.Stemmer("english").stemWord
_suffixes = PublicSuffixList()


class Site(NamedTuple):
    path: str
    host: str
    title: str = ""
    text: str = ""


def stems(text: str) -> list[str]:
    return [_stem(word) for word in words(normal_form(text))]


def nodes(paths: list[str]) -> list[str]:
    """All categories, also those on the way, in the order of a walk."""
    every = {tuple(path.split("/")[:n]) for path in paths for n in range(1, path.count("/") + 2)}
    return ["/".join(parts) for parts in sorted(every)]


def name(path: str) -> str:
    return path.split("/")[-1].replace("_", " ")


def terms(paths: list[str], sites: list[Site], most: int) -> dict[str, list[str]]:
    """From stems to categories: called so, then with it in the name, then by sites that have it."""
    categories = nodes(paths)
    having: dict[str, Counter[str]] = defaultdict(Counter)
    for site in sites:
        for stem in set(stems(f"{site.title} {site.text}")):
            having[stem][site.path] += 1
    for path in categories:
        for stem in stems(name(path)):
            having[stem][path] += 0
    found = {}
    for stem, counts in having.items():

        def rank(path: str, stem: str = stem, counts: Counter[str] = counts) -> tuple[int, int, int, int]:
            named = stem in stems(name(path))
            whole = named and len(stems(name(path))) == 1
            n = sum(c for other, c in counts.items() if other == path or (named and other.startswith(path + "/")))
            return (-(named + whole), -n, path.count("/"), categories.index(path))

        found[stem] = sorted(counts, key=rank)[:most]
    return found


def hosts(paths: list[str], sites: list[Site], most: int) -> dict[str, list[str]]:
    """From hosts and the domains above them to categories: by own sites, then by those below, then by depth."""
    categories = nodes(paths)
    own: dict[str, Counter[str]] = defaultdict(Counter)
    below: dict[str, Counter[str]] = defaultdict(Counter)
    for site in sites:
        own[site.host][site.path] += 1
        number = site.host.replace(".", "").isdigit()
        domain = None if number else _suffixes.privatesuffix(site.host)
        above = site.host
        while domain is not None and above != domain:
            above = above.split(".", 1)[1]
            below[above][site.path] += 1
    return {
        host: sorted(
            set(own[host]) | set(below[host]),
            key=lambda path, host=host: (-own[host][path], -below[host][path], path.count("/"), categories.index(path)),
        )[:most]
        for host in set(own) | set(below)
    }


def phrases(paths: list[str], sites: list[Site], phrase: str, most: int) -> list[str]:
    """The categories of a phrase: as it is spelled, else by its stems, else by its words in any order.

    Of several categories: those called so, then those with it in `X and Y` or, by words, with a name above; then the
    nearest to the root, then the one with most sites.
    """
    categories = nodes(paths)
    size = {path: sum(s.path == path or s.path.startswith(path + "/") for s in sites) for path in categories}
    ranked = sorted(categories, key=lambda path: (path.count("/"), -size[path], categories.index(path)))
    label = {path: " ".join(words(normal_form(name(path)))) for path in ranked}
    for ways in (
        [(phrase, lambda path: {label[path]}), (phrase, lambda path: {stemmed(label[path])}),
         (phrase, lambda path: set(map(stemmed, parts(path))))],
        [(stemmed(phrase), lambda path: {label[path]}), (stemmed(phrase), lambda path: {stemmed(label[path])}),
         (stemmed(phrase), lambda path: set(map(stemmed, parts(path))))],
        [(bag(phrase), lambda path: {bag(label[path])} - {frozenset()}), (bag(phrase), bags_of_paths)],
    ):  # fmt: skip
        found = [path for key, texts in ways for path in ranked if key in texts(path)]  # type: ignore[no-untyped-call]
        if found:
            return list(dict.fromkeys(found))[:most]
    return []


STOP = {"the", "of", "a", "and", "&", "or"}


def stemmed(text: str) -> str:
    return " ".join(_stem(word) for word in text.replace(" & ", " and ").replace(" or ", " and ").split(" "))


def parts(path: str) -> list[str]:
    """What is joined in `X, Y and Z`, if anything is."""
    text = " ".join(words(normal_form(name(path).replace(",", " and "))))
    found = re.split(" (?:(?:and|&|or) )+", text)
    return [part for part in found if bag(part)] if len(found) > 1 else []


def bag(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in words(text) if word not in STOP)


def bags_of_paths(path: str) -> set[frozenset[str]]:
    """The words of a name or a part of it, together with those of one above."""

    def variants(one: str) -> list[frozenset[str]]:
        return [some for text in (normal_form(name(one)), *parts(one)) if (some := bag(text))]

    steps = path.split("/")
    above = ["/".join(steps[:n]) for n in range(1, len(steps))]
    return {mine | theirs for mine in variants(path) for one in above for theirs in variants(one)}


def look_up(paths: list[str], sites: list[Site], phrase: str) -> str | None:
    """The category of a noun phrase: words are dropped from its left; then hosts, then words, from its right.

    At last the whole phrase is the name of a site, written without blanks and without its ending.
    """
    split = phrase.split(" ")
    for n in range(len(split)):
        if found := phrases(paths, sites, " ".join(split[n:]), 1):
            return found[0]
    by_host, by_word = hosts(paths, sites, 1), terms(paths, sites, 1)
    for word in reversed(split):
        labels = word.removeprefix("www.").split(".")
        for n in range(len(labels) - 1):
            if ".".join(labels[n:]) in by_host:
                return by_host[".".join(labels[n:])][0]
    for word in reversed(split):
        if _stem(word) in by_word:
            return by_word[_stem(word)][0]
    site = phrase.replace(" ", "")
    if re.fullmatch("[a-z0-9-]+", site):
        for ending in ("com", "org", "net"):
            if f"{site}.{ending}" in by_host:
                return by_host[f"{site}.{ending}"][0]
    return None
