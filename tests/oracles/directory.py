"""A directory as a list of categories and sites, and what the ranking rules say of it, literally."""

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


def phrases(paths: list[str], sites: list[Site], phrase: str) -> str | None:
    """The category that a phrase means: as it is spelled, else by its stems; nearest to the root, then most sites."""
    categories = nodes(paths)

    def best(key: object, fits: object) -> str | None:
        some = [path for path in categories if key(normal_form(name(path))) == fits]  # type: ignore[operator]
        size = {path: sum(s.path == path or s.path.startswith(path + "/") for s in sites) for path in some}
        return min(some, key=lambda path: (path.count("/"), -size[path], categories.index(path)), default=None)

    def stem(text: str) -> str:
        return " ".join(_stem(word) for word in text.split(" "))

    for form in (phrase, stem(phrase)):
        found = best(lambda label: label, form) or best(stem, form)
        if found:
            return found
    return None
