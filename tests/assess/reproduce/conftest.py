from functools import cache

import pytest

import queryveil as qv
from queryveil.assess.reproduce import reproduce
from queryveil.knowledge import open_taxonomy
from queryveil.knowledge.directory import build_directory


@pytest.fixture(scope="package")
def world(tmp_path_factory):
    """A synthetic log, and the web directory of its world."""
    folder = tmp_path_factory.mktemp("world")
    qv.generate(folder / "log.tsv", users=150, seed=1, truth=folder / "truth")
    build_directory([folder / "truth/structure.rdf.u8", folder / "truth/content.rdf.u8"], folder / "odp.qvd")
    return qv.read_log(folder / "log.tsv"), open_taxonomy(folder / "odp.qvd")


@pytest.fixture(scope="package")
def reproduced(world):
    """The figures of a paper, made once for all tests that only look."""
    return cache(lambda paper: reproduce(paper, *world))
