"""Logs for the app: a synthetic one, and one whose queries attack the pages that show them."""

import csv

import pytest

import queryveil as qv
from tests.reports.conftest import HOSTILE


def write_hostile(path, users=12):
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["user", "query"])
        lines.writerows((f"u{u}", query) for query in [*HOSTILE, "plain words"] for u in range(users))
        lines.writerows((f"u{u}", f"kept secret{u}") for u in range(users))
    return path


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory):
    """A small synthetic log."""
    path = tmp_path_factory.mktemp("logs") / "log.tsv.gz"
    qv.generate(path, users=100, seed=1)
    return path
