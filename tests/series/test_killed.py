"""A killed `add` leaves ledger and releases as before or as after, never between."""

import os
import random
import select
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

import queryveil as qv
from queryveil.files.folders import LocalFolder
from tests.series.conftest import WEEK, Made, log, queries
from tests.strategies import examples

KILLS = examples(10)
"""A hundred in the checks of the week."""

CHILD = """
    import os, sys, warnings
    import queryveil as qv
    from tests.series.conftest import WEEK, log
    folder = sys.argv[1]
    series = qv.Series(folder + "/ledger")
    warm = log(*WEEK[0])
    qv.Equality(k=2).anonymize(warm).save(folder + "/warm")  # so that what follows is the work alone
    warm.close()  # its threads would not survive the fork
    for line in sys.stdin:  # one try after the other, each in a process of its own
        child = os.fork()
        if child == 0:
            try:
                series.add(log(*WEEK[1]), folder + "/release-2")
            finally:
                os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("done", flush=True)
"""


def state(made):
    """What is there: the periods of the ledger, and the releases."""
    periods = [(one.number, one.release, one.waiting) for one in made.series.status().periods]
    places = sorted(path.name for path in made.folder.glob("release-*"))
    return periods, places


@pytest.fixture
def begun(tmp_path: Path) -> Made:
    """A series with one period."""
    made = Made(tmp_path, qv.Equality(k=2))
    made.add(log(*WEEK[0]))
    return made


def test_killed_at_random_points(begun, tmp_path):
    before = state(begun)
    seen = set()
    random.seed(1)
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILD), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    backup = tmp_path / "backup"
    subprocess.run(["cp", "-a", str(begun.ledger), str(backup)], check=True)
    try:
        whole = 60.0  # the shortest time that the work ever took: on a busy machine the first may be far longer
        for attempt in range(KILLS + 1):
            server.stdin.write("\n")
            server.stdin.flush()
            begin = time.monotonic()
            child = int(server.stdout.readline())
            # One moment in each tenth of the time, and a first try that nobody kills.
            wait = 1.1 * whole * (attempt - 1 + random.random()) / KILLS if attempt else None
            if select.select([server.stdout], [], [], wait)[0]:
                whole = min(whole, time.monotonic() - begin)
            else:
                with suppress(ProcessLookupError):  # it may have ended just now
                    os.kill(child, signal.SIGKILL)
            server.stdout.readline()
            found = state(begun)
            if found == before:
                seen.add("before")
            else:
                periods, places = found
                assert len(periods) == 2
                assert places == ["release-1", "release-2"]
                assert queries(tmp_path / "release-2") == ["dogs", "dogs"]
                releases = [tmp_path / "release-1", tmp_path / "release-2"]
                assert begun.series.verify(releases).holds
                seen.add("after")
                subprocess.run(["rm", "-rf", str(begun.ledger), str(tmp_path / "release-2")], check=True)
                subprocess.run(["cp", "-a", str(backup), str(begun.ledger)], check=True)
    finally:
        server.kill()
        server.communicate()
    assert seen == {"before", "after"}


class _Killed(BaseException):
    """Instead of a signal."""


def interrupted(monkeypatch, made, where):
    """Stop `add` at one place as if it were killed there: nothing is tidied up."""

    def stop(*_: object, **__: object) -> None:
        raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr("queryveil.files.scratch.Scratch.remove", lambda self: os.close(self._handle))
        patch.setattr("queryveil.series.ledger.LedgerFolder.withdraw", lambda *_: None)
        patch.setattr(*where, stop)
        with pytest.raises(_Killed):
            made.series.add(log(*WEEK[1]), made.folder / "release-2")


def test_killed_before_the_release_is_moved(begun, monkeypatch):
    before = state(begun)
    interrupted(monkeypatch, begun, (LocalFolder, "take"))
    assert (begun.ledger / "pending.json").exists()
    assert state(begun) == before
    assert begun.add(log(*WEEK[1])).release == 2
    assert begun.wrong() == []


def test_killed_after_the_release_is_moved(begun, monkeypatch):
    from queryveil.series.ledger import LedgerFolder

    interrupted(monkeypatch, begun, (LedgerFolder, "commit"))
    assert len(begun.series.status().periods) == 2
    begun.logs.append(log(*WEEK[1]))
    begun.releases.append(begun.folder / "release-2")
    assert begun.wrong() == []


def test_killed_and_its_release_moved_away(begun, monkeypatch):
    from queryveil.series.ledger import LedgerFolder

    interrupted(monkeypatch, begun, (LedgerFolder, "commit"))
    (begun.folder / "release-2").rename(begun.folder / "elsewhere")
    assert len(begun.series.status().periods) == 2
    assert queries(begun.folder / "release-2") == queries(begun.folder / "elsewhere")  # the same, put back


def test_killed_and_what_it_left_removed_by_another_run(begun, monkeypatch):
    interrupted(monkeypatch, begun, (LocalFolder, "take"))
    qv.Equality(k=2).anonymize(log(*WEEK[0])).save(begun.folder / "another")
    assert len(begun.series.status().periods) == 2  # so it is finished, from the copy in the ledger
    begun.logs.append(log(*WEEK[1]))
    begun.releases.append(begun.folder / "release-2")
    assert begun.wrong() == []
    assert not (begun.ledger / "pending-release").exists()


def test_a_place_that_is_taken_in_the_meantime(begun, monkeypatch):
    before = state(begun)

    def taken(self, stage, replaces):
        raise qv.QueryveilError("was made by somebody else in the meantime")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "take", taken)
        with pytest.raises(qv.QueryveilError, match="in the meantime"):
            begun.series.add(log(*WEEK[1]), begun.folder / "release-2")
    assert state(begun) == before
    assert begun.add(log(*WEEK[1])).release == 2
