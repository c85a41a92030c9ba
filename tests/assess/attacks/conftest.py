"""A log like real ones, made once."""

import pytest

import queryveil as qv


@pytest.fixture(scope="session")
def synthetic_truth(tmp_path_factory):
    """A synthetic log, and what is known of its queries."""
    folder = tmp_path_factory.mktemp("synthetic")
    qv.generate(folder / "log.tsv", users=1000, seed=1, truth=folder / "truth")
    return qv.read_log(folder / "log.tsv"), folder / "truth"


@pytest.fixture(scope="session")
def synthetic(synthetic_truth):
    return synthetic_truth[0]
