"""The topics and sites of the world as the Open Directory published its own: two RDF files.

Below a topic of the world are regions, kinds of sites, and what the sites are about, as in the Open Directory's
Sports/Soccer/Spain/Clubs/Barcelona. So a word has several categories, which part below the topic, and a site may be in
two.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr
from zlib import crc32

from queryveil.synth.world import SITES_PER_LEAF, Atlas, Site

# Most sites are of the first.
_REGIONS = ("North_America", "Europe", "Oceania")
_KINDS = ("Directories", "Retailers", "Organizations")
_SPREAD = (0, 0, 0, 1, 1, 2)
_TWICE = 3  # one in so many sites is in a second category

_OPEN = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<RDF xmlns:r="http://www.w3.org/TR/RDF/" xmlns:d="http://purl.org/dc/elements/1.0/"'
    ' xmlns="http://dmoz.org/rdf/">\n'
    "  <!-- A made-up directory of made-up sites, in the form of the Open Directory's -->\n"
)
_CLOSE = "</RDF>\n"


def _categories(topic: str, site: Site) -> list[str]:
    """The categories of a site: by its region, its kind, and what it is about."""
    if not site.items:
        return [topic]
    draw = crc32(site.url.encode())
    region, kind = _REGIONS[_SPREAD[draw % 6]], _KINDS[_SPREAD[draw // 6 % 6]]
    about = site.items if draw // 36 % _TWICE == 0 else site.items[:1]
    names = ("_".join(word.capitalize() for word in item.split()) for item in about)
    return [f"{topic}/{region}/{kind}/{name}" for name in names]


def _tree(topics: Iterable[str]) -> dict[str, list[str]]:
    """Map every topic, inner ones too, to its children."""
    children: dict[str, list[str]] = {"Top": []}
    for topic in topics:
        parts = topic.split("/")
        for depth in range(2, len(parts) + 1):
            path = "/".join(parts[:depth])
            if path not in children:
                children[path] = []
                children["/".join(parts[: depth - 1])].append(path)
    return children


def _structure(children: dict[str, list[str]]) -> Iterator[str]:
    for number, (topic, narrower) in enumerate(children.items(), 1):
        yield f"  <Topic r:id={quoteattr(topic)}>\n    <catid>{number}</catid>\n"
        yield f"    <d:Title>{escape(topic.split('/')[-1])}</d:Title>\n"
        for child in narrower:
            yield f"    <narrow r:resource={quoteattr(child)}></narrow>\n"
        yield "  </Topic>\n"


def _page(site: Site, topic: str) -> str:
    return (
        f"  <ExternalPage about={quoteattr(site.url)}>\n"
        f"    <d:Title>{escape(site.title)}</d:Title>\n"
        f"    <d:Description>{escape(site.description)}</d:Description>\n"
        f"    <topic>{escape(topic)}</topic>\n"
        "  </ExternalPage>\n"
    )


def _content(children: dict[str, list[str]], sites: dict[str, list[Site]]) -> Iterator[str]:
    for number, topic in enumerate(children, 1):
        here = sites.get(topic, [])
        yield f"  <Topic r:id={quoteattr(topic)}>\n    <catid>{number}</catid>\n"
        yield from (f"    <link r:resource={quoteattr(site.url)}></link>\n" for site in here)
        yield "  </Topic>\n"
        yield from (_page(site, topic) for site in here)


def _save(path: Path, parts: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_OPEN)
        file.writelines(parts)
        file.write(_CLOSE)


def save_directory(atlas: Atlas, folder: Path) -> None:
    """Write `structure.rdf.u8` (the tree of topics) and `content.rdf.u8` (the sites under them)."""
    sites: dict[str, list[Site]] = {}
    for place, site in enumerate(atlas.sites):
        for category in _categories(atlas.topics[place // SITES_PER_LEAF], site):
            sites.setdefault(category, []).append(site)
    children = _tree(sites)
    _save(folder / "structure.rdf.u8", _structure(children))
    _save(folder / "content.rdf.u8", _content(children, sites))
