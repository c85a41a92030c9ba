"""queryveil series on the command line."""

import json
from typing import NamedTuple

import pyarrow.csv as pacsv
import pytest

from tests.series.conftest import WEEK, rows

RECIPE = 'method = "equality"\nparameters = { k = 2, link = "none" }\n'


class Done(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def cli(run, tmp_path, monkeypatch):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: Done(*run(*words))


@pytest.fixture
def begun(cli, tmp_path):
    """A ledger with three periods, made on the command line."""
    (tmp_path / "recipe.toml").write_text(RECIPE)
    assert cli("series", "init", "ledger", "--recipe", "recipe.toml", "--retention", "13months").returncode == 0
    for number, day in enumerate(WEEK, 1):
        pacsv.write_csv(rows(*day).drop_columns(["url", "rank"]), tmp_path / f"{number}.csv")
        done = cli("series", "add", "ledger", f"{number}.csv", "-o", f"release-{number}")
        assert done.returncode == 0, done.stderr
    return tmp_path


EVERY = ("release-1", "release-2", "release-3")
LOGS = ("--original", "1.csv", "--original", "2.csv", "--original", "3.csv")


def test_the_whole_way(cli, begun):
    status = cli("series", "status", "ledger")
    assert "3 releases in 3 periods by equality" in status.stdout
    assert json.loads(cli("series", "status", "ledger", "--json").stdout)["released"] == 8
    verified = cli("series", "verify", "ledger", *EVERY, *LOGS)
    assert verified.returncode == 0
    assert "The series keeps its promises." in verified.stdout
    attacked = cli("series", "attack", "ledger", *EVERY, *LOGS, "--report", "page.html")
    assert attacked.returncode == 0, attacked.stderr
    assert "differencing of states" in attacked.stdout
    page = (begun / "page.html").read_text()
    assert "A series of releases" in page
    assert "secret diary" not in page
    forgotten = cli("series", "forget", "ledger", "--user", "c")
    assert "Deleted 1 waiting events." in forgotten.stdout
    assert "1 in release 2" in forgotten.stdout


def test_a_missing_release_is_refused(cli, begun):
    done = cli("series", "verify", "ledger", "release-1", "release-3")
    assert done.returncode == 1
    assert "is release 3, and stands in the place of 2" in done.stdout
    assert "The series is refuted." in done.stdout


def test_the_same_log_twice(cli, begun):
    done = cli("series", "add", "ledger", "1.csv", "-o", "again")
    assert (done.returncode, done.stdout) == (2, "")
    assert "was added before, as period 1" in done.stderr


def test_jitter_needs_a_threshold(cli, tmp_path):
    done = cli("series", "init", "ledger", "--recipe", "publish-queries", "--jitter", "0.5")
    assert done.returncode == 2
    assert "has a threshold of users that could be secret" in done.stderr
    (tmp_path / "recipe.toml").write_text(RECIPE)
    assert cli("series", "init", "ledger", "--recipe", "recipe.toml", "--jitter", "0.5").returncode == 0
    assert json.loads((tmp_path / "ledger" / "ledger.json").read_text())["settings"]["parameters"]["jitter"] == 0.5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("status", "nothing"), "There is no ledger in nothing"),
        (("init", "ledger", "--recipe", "publish-profiles"), "odp cannot make a series"),
        (("init", "ledger", "--recipe", "publish-counts"), "needs a budget for all releases together"),
        (("init", "ledger", "--recipe", "dma-30-5", "--retention", "a while"), "such as 13months"),
    ],
)
def test_mistakes_are_one_sentence(cli, tmp_path, words, sentence):
    done = cli("series", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_date_that_is_none(cli, begun):
    done = cli("series", "forget", "ledger", "--before", "yesterday")
    assert "such as 2026-03-31" in done.stderr
