import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from queryveil.errors import QueryveilWarning
from queryveil.files import scratch
from queryveil.files.scratch import LOCK, Scratch, clear_leftovers

# Kills a child at every line that writing runs through, and looks after each kill, and again after the next start.
KILLED = """
import json, os, shutil, signal, sys, warnings
from pathlib import Path
from queryveil.files import folders as files
from queryveil.files import scratch

root, what, flags = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "flags"
warnings.simplefilter("ignore")
os.fsync = lambda handle: None  # a kill does not lose what the system holds, and disks are slow
if not flags:
    scratch._renameat2 = lambda *given: False

def write(text):
    if what == "file":
        files.write_whole(root / "r", text * 3, overwrite=(root / "r").exists())
        return
    place = files.LocalFolder(root / "r")
    replaces, stage = place.state(), place.stage()
    try:
        for name in "abc":
            stage.write(name, text)
        place.take(stage, replaces)
    finally:
        stage.remove()

def found():
    place = root / "r"
    if place.is_dir():
        return b"".join(place.joinpath(name).read_bytes() for name in sorted(os.listdir(place)))
    return place.read_bytes() if place.exists() else None

def dies_at(line):
    left = line
    def trace(frame, event, argument):
        nonlocal left
        if not frame.f_code.co_filename.endswith(("queryveil/files/folders.py", "queryveil/files/scratch.py")):
            return None
        left -= event == "line"
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace
    child = os.fork()
    if child == 0:
        sys.settrace(trace)
        write(b"n")
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL

seen, line, old = [], 0, None if sys.argv[4] == "new" else b"ooo"
while True:
    shutil.rmtree(root)
    root.mkdir()
    if old:
        write(b"o")
    line += 1
    killed = dies_at(line)
    right_after = found()
    files.LocalFolder(root / "r").tidy()
    left = {path.name for path in root.rglob("*") if path.is_file() and path.parent not in (root, root / "r")}
    seen.append([str(right_after), str(found()), sorted(left)])
    if not killed:
        break
print(json.dumps(seen))
"""


@pytest.mark.parametrize("before", ["new", "over"])
@pytest.mark.parametrize("flags", ["flags", "none"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_killed_at_any_line_the_old_or_the_new_is_there_and_the_next_start_cleans_up(tmp_path, what, flags, before):
    words = [sys.executable, "-c", KILLED, str(tmp_path / "work"), what, flags, before]
    (tmp_path / "work").mkdir()
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    seen = json.loads(done.stdout)
    assert len(seen) > 50
    old, new = str(b"ooo" if before == "over" else None), str(b"nnn")
    right_after, later = {one[0] for one in seen}, {one[1] for one in seen}
    if what == "file" or flags == "flags":
        assert right_after == later == {old, new}
    elif before == "new":  # the name is taken by an empty folder first
        assert right_after == later == {old, str(b""), new}
    else:  # nothing is there for an instant, until the next start puts the old folder back
        assert right_after == {old, str(None), str(b""), new}
        assert later == {old, new}
    # What was killed before it had its lock is a folder with nothing in it.
    assert {name for *_, names in seen for name in names} <= {f"{LOCK}-new"}


RACE = """
import os, shutil, sys
from pathlib import Path
from queryveil.errors import QueryveilError
from queryveil.files.folders import LocalFolder

place = LocalFolder(Path(sys.argv[1]) / "r")

def run(name, ready, go):
    stage = place.stage()
    stage.write("manifest.json", name)
    os.write(ready, b".")
    os.read(go, 1)
    code = 0
    try:
        place.take(stage, None)
    except QueryveilError as error:
        code = 1 if "made by somebody else" in str(error) else 2
    finally:
        stage.remove()
    os._exit(code)

for _ in range(20):
    ready, go = os.pipe(), os.pipe()
    children = []
    for name in (b"0", b"1"):
        children.append(os.fork())
        if children[-1] == 0:
            run(name, ready[1], go[0])
    for _ in children:
        os.read(ready[0], 1)
    os.write(go[1], b"..")
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(codes) == [0, 1], codes
    assert place.read("manifest.json") == str(codes.index(0)).encode()
    assert os.listdir(place.path.parent) == ["r"]
    shutil.rmtree(place.path)
"""


def test_of_two_processes_with_one_target_exactly_one_is_done(tmp_path):
    done = subprocess.run([sys.executable, "-c", RACE, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def leftover(around: Path) -> Path:
    """What a killed process leaves."""
    code = (
        "import os, signal, sys; from pathlib import Path; from queryveil.files.scratch import Scratch\n"
        "made = Scratch(Path(sys.argv[1])); (made.path / 'queries').mkdir()\n"
        "(made.path / 'queries' / 'x').write_text('secret'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    before = set(around.iterdir())
    assert subprocess.run([sys.executable, "-c", code, str(around)], timeout=60, check=False).returncode == -9
    (found,) = set(around.iterdir()) - before
    return found


def test_what_a_killed_run_left_is_private_and_goes_with_the_next_start(tmp_path):
    found = leftover(tmp_path)
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert stat.S_IMODE((found / LOCK).stat().st_mode) == 0o600
    with Scratch(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_what_others_work_in_stays(tmp_path):
    code = (
        "import sys; from pathlib import Path; from queryveil.files.scratch import Scratch\n"
        "print(Scratch(Path(sys.argv[1])).path, flush=True); sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        there = Path(other.stdout.readline().strip())
        with Scratch(tmp_path) as here:
            clear_leftovers(tmp_path)
            assert set(tmp_path.iterdir()) == {here, there}
        other.kill()
    clear_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["another owner", "link", "link as lock", "pipe as lock", "no lock", "open to others"])
def test_what_is_not_surely_a_leftover_of_this_user_stays(tmp_path, monkeypatch, what):
    found = leftover(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: found.stat().st_uid + (what == "another owner"))
    if what == "link":
        found.rename(tmp_path / "mine")
        found.symlink_to(tmp_path / "mine")
    elif what == "link as lock":
        (found / LOCK).rename(tmp_path / "lock")
        (found / LOCK).symlink_to(tmp_path / "lock")
    elif what == "pipe as lock":
        (found / LOCK).unlink()
        os.mkfifo(found / LOCK)
    elif what == "no lock":
        (found / LOCK).unlink()
    elif what == "open to others":
        found.chmod(0o770)
    clear_leftovers(tmp_path)
    assert (found / "queries" / "x").read_text() == "secret"


def test_a_link_in_a_leftover_leads_nobody_out_of_it(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo").write_text("photo")
    (tmp_path / "work").mkdir()
    found = leftover(tmp_path / "work")
    (found / "away").symlink_to(tmp_path / "mine")
    (found / "queries" / "away").symlink_to(tmp_path / "mine")
    clear_leftovers(tmp_path / "work")
    assert not found.exists()
    assert (tmp_path / "mine" / "photo").exists()


def test_what_was_swapped_out_by_mistake_before_a_kill_is_kept_and_said(tmp_path):
    found = leftover(tmp_path)
    (found / "made").mkdir()  # somebody's folder, which the exchange took from the target
    (found / LOCK).write_text(json.dumps({"target": "r", "known": [[1, 2], [3, 4]]}))
    with pytest.warns(QueryveilWarning, match=r"holds what was at .*/r while it was being replaced"):
        clear_leftovers(tmp_path)
    assert (found / "made").exists()


def test_where_there_are_no_locks_nothing_is_removed(tmp_path, monkeypatch):
    def refused(*given):
        raise OSError(37, "No locks available")

    found = leftover(tmp_path)
    monkeypatch.setattr(scratch.fcntl, "flock", refused)
    with Scratch(tmp_path) as folder:
        clear_leftovers(tmp_path)
        assert set(tmp_path.iterdir()) == {found, folder}


def test_a_folder_that_cannot_be_marked_is_not_left(tmp_path, monkeypatch):
    def full(*given, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space left"):
        Scratch(tmp_path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
