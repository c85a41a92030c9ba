"""The topics and sites of the world as the Open Directory published its own: two RDF files."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from queryveil.synth.world import SITES_PER_LEAF, Atlas, Site

_OPEN = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<RDF xmlns:r="http://www.w3.org/TR/RDF/" xmlns:d="http://purl.org/dc/elements/1.0/"'
    ' xmlns="http://dmoz.org/rdf/">\n'
    "  <!-- A made-up directory of made-up sites, in the form of the Open Directory's -->\n"
)
_CLOSE = "</RDF>\n"


def _tree(topics: list[str]) -> dict[str, list[str]]:
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


def _content(atlas: Atlas, children: dict[str, list[str]]) -> Iterator[str]:
    leaf = {topic: place for place, topic in enumerate(atlas.topics)}
    for number, topic in enumerate(children, 1):
        begin = leaf[topic] * SITES_PER_LEAF if topic in leaf else 0
        sites = atlas.sites[begin : begin + SITES_PER_LEAF] if topic in leaf else []
        yield f"  <Topic r:id={quoteattr(topic)}>\n    <catid>{number}</catid>\n"
        yield from (f"    <link r:resource={quoteattr(site.url)}></link>\n" for site in sites)
        yield "  </Topic>\n"
        yield from (_page(site, topic) for site in sites)


def _save(path: Path, parts: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_OPEN)
        file.writelines(parts)
        file.write(_CLOSE)


def save_directory(atlas: Atlas, folder: Path) -> None:
    """Write `structure.rdf.u8` (the tree of topics) and `content.rdf.u8` (the sites under them)."""
    children = _tree(atlas.topics)
    _save(folder / "structure.rdf.u8", _structure(children))
    _save(folder / "content.rdf.u8", _content(atlas, children))
