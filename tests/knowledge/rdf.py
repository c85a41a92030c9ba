"""Small dumps of a directory, as the Open Directory wrote them."""

from xml.sax.saxutils import escape, quoteattr

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<RDF xmlns:r="http://www.w3.org/TR/RDF/" xmlns="http://dmoz.org/rdf/">\n'
)
TAIL = "</RDF>\n"


def structure(paths, texts=None, extra=""):
    topics = "".join(
        f"  <Topic r:id={quoteattr('Top/' + path)}>\n    <catid>1</catid>\n    <d:Title>x</d:Title>\n"
        f"    <d:Description>{escape((texts or {}).get(path, ''))}</d:Description>\n"
        f'    <related r:resource="Top/Elsewhere"></related>\n  </Topic>\n'
        for path in paths
    )
    return HEAD + '  <Topic r:id="Top">\n    <catid>1</catid>\n  </Topic>\n' + topics + extra + TAIL


def page(site):
    address = quoteattr(f"http://{site.host}/a?b&c")
    return (
        f"  <ExternalPage about={address}>\n    <d:Title>{escape(site.title)}</d:Title>\n"
        f"    <d:Description>{escape(site.text)}</d:Description>\n    <priority>1</priority>\n"
        f"    <topic>{escape('Top/' + site.path)}</topic>\n  </ExternalPage>\n"
    )


def content(sites, extra=""):
    topic = '  <Topic r:id="Top/X">\n    <link r:resource="http://x.org"></link>\n  </Topic>\n'
    return HEAD + topic + "".join(map(page, sites)) + extra + TAIL
