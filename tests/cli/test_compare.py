import json
import signal
import subprocess
import sys
import time

import pytest

import queryveil as qv

MAIN = "from queryveil.cli import main; main()"


@pytest.fixture(scope="module")
def path(small_world):
    return small_world.file


def stored(folder):
    return {file.name: file.read_bytes() for file in (folder / "configurations").glob("*.json")}


def test_a_killed_run_goes_on(path, tmp_path):
    words = [
        "compare",
        path,
        "-o",
        tmp_path / "c",
        "--methods",
        "equality,clump",
        "--k",
        "2,5",
        "--tests",
        "50",
    ]
    begun = subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    configs = tmp_path / "c" / "configurations"
    while begun.poll() is None and (not configs.exists() or not any(configs.glob("*.json"))):
        time.sleep(0.02)
    begun.send_signal(signal.SIGKILL)
    assert begun.wait() == -signal.SIGKILL
    before = stored(tmp_path / "c")
    assert 0 < len(before) < 8
    done = subprocess.run([sys.executable, "-c", MAIN, *map(str, words)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    after = stored(tmp_path / "c")
    assert len(after) == 8
    assert before.items() <= after.items()
    assert "Keep the long tail: " in done.stdout


def test_the_folder_names_no_place_and_no_query(run, path, tmp_path):
    code, out, _ = run(
        "compare", path, "-o", tmp_path / "c", "--methods", "equality", "-k", "5", "--tests", 10, "--json"
    )
    assert code == 0
    assert json.loads(out)["configurations"][0]["name"] == "equality, k = 5"
    log = qv.read_log(path)
    long = [text for text in log.query_text.to_pylist() if len(text) > 14]
    for file in (tmp_path / "c").rglob("*"):
        if file.is_file():
            assert file.stat().st_mode & 0o777 == 0o600
            text = file.read_bytes().decode("utf-8", "replace")
            assert str(tmp_path) not in text
            assert not [query for query in long if query in text]


def test_a_comparison_in_which_nothing_meets_the_policy_says_so_and_fails(run, path, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("min_k = 50\n")
    words = ["compare", path, "-o", tmp_path / "c", "--methods", "equality,zealous", "-k", 5, "--epsilon", 1]
    words += ["--tests", 10, "--jobs", 1]
    code, out, err = run(*words, "--policy", policy)
    assert (code, err) == (6, "")
    assert "Releases that meet the policy: 0 of 3." in out
    assert "Publish statistics: none. No differentially private release is possible on this log: at epsilon 1" in out
    assert "Keep sessions and histories: none. No release that keeps anything of it meets the policy." in out
    assert "The nearest is equality" in out
    assert "No release meets the policy." in (tmp_path / "c" / "report.html").read_text()
    assert run(*words)[0] == 0
    found = json.loads(run(*words, "--policy", policy, "--json")[1])
    assert found["policy"]["min_k"] == 50
    assert {one["meets"] for one in found["judgements"].values()} == {False}
    assert {one["configuration"] for one in found["recommendations"]} == {None}
