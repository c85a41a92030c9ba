"""Where a text is in a taxonomy, and what is around it."""

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.hosts import hosts_of
from queryveil.text import normal_form


@dataclass(frozen=True)
class Place:
    """A node of a text.

    Attributes:
        found_as: What the text was looked up as: a phrase, a term or a site.
        path: The names from the root to the node.
        below: The names of the nodes right below it.
        beside: The names of the other nodes below its parent.
    """

    found_as: str
    path: list[str]
    below: list[str]
    beside: list[str]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def places(taxonomy: Taxonomy, text: str, categories: int = 5) -> list[Place]:
    """The nodes of a text, looked up as a phrase, as a term and as a site; each node once."""
    plain = normal_form(pa.array([text]))
    ways = [("phrase", taxonomy.phrases, plain), ("term", taxonomy.terms, plain)]
    if taxonomy.hosts is not None:
        ways.append(("site", taxonomy.hosts, hosts_of(plain)))
    found: dict[int, str] = {}
    for way, index, texts in ways:
        for node in index.look_up(texts, categories)[1].tolist():
            found.setdefault(node, way)
    tree = taxonomy.tree

    def names(nodes: list[int]) -> list[str]:
        found: list[str] = tree.names.take(pa.array(nodes, pa.int64())).to_pylist()
        return found

    result = []
    for node, way in list(found.items())[:categories]:
        parent = int(tree.parent[node])
        beside = [other for other in tree.children(parent) if other != node] if parent >= 0 else []
        result.append(Place(way, names(tree.line(node)), names(tree.children(node)), names(beside)))
    return result
