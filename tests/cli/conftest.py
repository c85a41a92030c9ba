import sys

import pytest

from queryveil.cli import main, progress

HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line; gives the exit code, stdout and stderr."""

    monkeypatch.setattr(progress, "EVERY", 1e6)  # a busy machine must not add lines

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["queryveil", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


@pytest.fixture
def log(tmp_path):
    """A small AOL file: `tea` by three users, `mug` by two, a secret by one."""
    rows = [("u-1", "tea"), ("u-2", "Tea"), ("u-3", "tea"), ("u-1", "mug"), ("u-2", "mug"), ("u-3", "my secret")]
    path = tmp_path / "log.tsv"
    path.write_text(
        HEADER + "".join(f"{user}\t{query}\t2006-03-01 10:00:0{i}\t\t\n" for i, (user, query) in enumerate(rows))
    )
    return path
