from collections import Counter
from functools import cache

import pyarrow as pa
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
def labels(world):
    """Queries of one user are sensitive, all others are harmless."""
    log = world[0]
    return pa.table({"query": log.query_text, "sensitive": [users == 1 for users in log.users_per_query.tolist()]})


@pytest.fixture(scope="package")
def busy(world):
    """The user with most distinct queries."""
    log = world[0]
    return log.user_text[Counter(log.query_users["user_id"].to_pylist()).most_common(1)[0][0]].as_py()


@pytest.fixture(scope="package")
def on_request(world, labels, busy):
    """All that carpineto2015 can make."""
    return reproduce("carpineto2015", *world, labels=labels, user=busy)


@pytest.fixture(scope="package")
def reproduced(world):
    """The figures of a paper, made once for all tests that only look."""
    return cache(lambda paper: reproduce(paper, *world))
