"""A web directory as a taxonomy, opened from its folder; `directory.py` builds it from a dump.

It is a folder of plain arrays that are mapped into memory, so opening it is quick:

| file | what it holds |
|---|---|
| about.json | format version, counts, options, what was left out of the dump |
| tree-*.npy, nodes.arrow | the tree; the name, description and number of sites of every category |
| terms-*.npy | from stems of words to categories, ranked as a directory search would |
| phrases-*.npy | from labels, other names, parts of labels and words of paths to categories, see `labels.py` |
| hosts-*.npy | from hosts to categories |
| meanings-*.npy | the vector of every category, from its sites and its name |
| sites/ | a full-text index over the titles and descriptions of the sites, if it has any |
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from queryveil.errors import QueryveilError
from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.hosts import PARENTS
from queryveil.knowledge.index import Index
from queryveil.knowledge.labels import label_stems, word_bag
from queryveil.knowledge.nearest import Cells
from queryveil.knowledge.tree import Tree
from queryveil.text import language

VERSION = 2
ABOUT = "about.json"
ARRAYS = ("low", "high", "start", "node")
CELLS = ("middles", "middle_scale", "cell", "order", "vectors", "scale")
TREE = ("parent", "depth", "end", "leaves")
_INDEXES = ("terms", "phrases", "hosts")


def open_directory(path: str | Path) -> Taxonomy:
    """Open a web directory."""
    folder = Path(path)
    try:
        about = json.loads((folder / ABOUT).read_text("utf-8"))
        version = about["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise QueryveilError(
            f"{folder} is not a web directory; make one from a dump with: queryveil web-directory build."
        ) from None
    if version != VERSION:
        raise QueryveilError(
            f"{folder} has format {version}, and this queryveil reads format {VERSION}; build it again from the dump."
        )
    try:
        if any((folder / name).stat().st_size != size for name, size in about["files"].items()):
            raise ValueError("a file has another size")
        nodes = pa.ipc.open_file(pa.memory_map(str(folder / "nodes.arrow"))).read_all()
        tree = Tree(**{key: _load(folder, f"tree-{key}") for key in TREE}, names=nodes["name"].chunk(0))
        terms, phrases, hosts = (Index(**{key: _load(folder, f"{name}-{key}") for key in ARRAYS}) for name in _INDEXES)
        spoken = language(*about.get("languages", ()))
        cells = Cells(**{key: _load(folder, f"meanings-{key}") for key in CELLS})
    except Exception:  # whatever NumPy and Arrow make of bytes that are not theirs
        raise QueryveilError(f"The web directory {folder} is damaged; build it again from the dump.") from None
    terms = terms.with_forms(spoken.stem)
    stems, bag = partial(label_stems, language=spoken), partial(word_bag, language=spoken)
    return Taxonomy(
        name=folder.name,
        tree=tree,
        terms=terms,
        phrases=phrases.with_forms(stems, bag),
        meanings=lambda: cells,
        hosts=hosts.with_forms(*PARENTS) if len(hosts) else None,
        labels=phrases.with_forms(stems),
        words=terms,
        folder=folder,
    )


def _load(folder: Path, name: str) -> Any:
    return np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
