import json
import signal
import subprocess
import sys
import time

import pytest

import queryveil as qv

MAIN = "from queryveil.cli import main; main()"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("logs") / "log.tsv"
    qv.generate(place, users=100, seed=3)
    return place


def stored(folder):
    return {file.name: file.read_bytes() for file in (folder / "cells").iterdir()}


def test_a_killed_run_goes_on(path, tmp_path):
    words = [
        "compare",
        path,
        "-o",
        tmp_path / "c",
        "--methods",
        "equality,clump",
        "--k",
        "2,5,10",
        "--tests",
        "50",
    ]
    begun = subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    cells = tmp_path / "c" / "cells"
    while begun.poll() is None and (not cells.exists() or not any(cells.glob("*.json"))):
        time.sleep(0.02)
    begun.send_signal(signal.SIGKILL)
    assert begun.wait() == -signal.SIGKILL
    before = stored(tmp_path / "c")
    assert 0 < len(before) < 9
    done = subprocess.run([sys.executable, "-c", MAIN, *map(str, words)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    after = stored(tmp_path / "c")
    assert len(after) == 9
    assert before.items() <= after.items()
    assert "Keep the long tail: " in done.stdout


def test_the_folder_names_no_place_and_no_query(run, path, tmp_path):
    code, out, _ = run(
        "compare", path, "-o", tmp_path / "c", "--methods", "equality", "-k", "5", "--tests", 10, "--json"
    )
    assert code == 0
    assert json.loads(out)["cells"][0]["name"] == "equality, k = 5"
    log = qv.read_log(path)
    long = [text for text in log.query_text.to_pylist() if len(text) > 14]
    for file in (tmp_path / "c").rglob("*"):
        if file.is_file():
            text = file.read_bytes().decode("utf-8", "replace")
            assert str(tmp_path) not in text
            assert not [query for query in long if query in text]
