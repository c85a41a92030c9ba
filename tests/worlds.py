"""A log of a few users with the directory of its sites, made once for all tests; and parameters of every method."""

from pathlib import Path
from typing import NamedTuple

import pytest

import queryveil as qv

PARAMETERS = {
    "equality": {"k": 2, "link": "user"},
    "rules": {"min_row_users": 2, "min_metadata_users": 2, "time": "day", "link": "session"},
    "counts": {"by": ["query", "period"], "period": "month", "min_row_users": 2, "totals": ["query"]},
    "affinity": {"k": 2, "link": "session"},
    "odp": {"k": 3},
    "search": {"k": 3},
    "mdav": {"k": 3, "compact": True},
    "clump": {"k": 3},
    "partition": {"k": 3},
    "wngen": {"k": 3, "link": "user"},
    "zealous": {"epsilon": 200, "delta": 0.1, "max_queries_per_user": 5, "clicks": True},
    "dp-set": {"epsilon": 200, "delta": 0.1, "max_queries_per_user": 5, "counts": True},
    "poblete": {"k": 2, "sites": 1},
    "hash": {"link": "user"},
    "pipeline": {
        "steps": [
            {"method": "scrub", "parameters": {"how": "mask"}},
            {"method": "affinity", "parameters": {"k": 2, "theta": 0.5}},
            {"method": "odp", "parameters": {"k": 3}},
        ]
    },
}
"""Parameters of every method with which it releases something of a log of thirty users."""


class World(NamedTuple):
    """A log, where its file is, and the directory of the sites that its users visit."""

    log: qv.QueryLog
    file: Path
    directory: str


@pytest.fixture(scope="session")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Thirty users of a synthetic log."""
    folder = tmp_path_factory.mktemp("world")
    qv.generate(folder / "all.tsv", users=100, seed=1, truth=folder / "truth")
    head, *lines = (folder / "all.tsv").read_text().splitlines(keepends=True)
    some = set(sorted({line.split("\t")[0] for line in lines} - {""})[:30])
    (folder / "log.tsv").write_text(head + "".join(line for line in lines if line.split("\t")[0] in some))
    dumps = [folder / "truth" / f"{name}.rdf.u8" for name in ("structure", "content")]
    qv.build_directory(dumps, folder / "sites")
    return World(qv.read_log(folder / "log.tsv"), folder / "log.tsv", str(folder / "sites"))
