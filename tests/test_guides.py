"""The guides of CONTRIBUTING.md, followed to the letter: what they add shows up everywhere."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LOG = pa.table(
    {
        "user": [f"u{u}" for u in range(12) for _ in range(4)],
        "query": [("tea", "green tea", f"mug {u % 3}", "pot")[i] for u in range(12) for i in range(4)],
    }
)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package with what the guides add, and a log."""
    folder = tmp_path_factory.mktemp("guides")
    added = []
    for _, text in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        head, code = textwrap.dedent(text).split("\n", 1)
        found = re.fullmatch(r"# (add to )?src/(queryveil/.+\.py)", head)
        if found is None:
            continue
        file = folder / "src" / found[2]
        file.parent.mkdir(parents=True, exist_ok=True)
        before = (ROOT / "src" / found[2]).read_text("utf-8") if found[1] else ""
        file.write_text(before + "\n" + code, "utf-8")
        added.append(found[2])
    assert len(added) == 7
    pacsv.write_csv(LOG, folder / "log.csv")
    return folder


def run(package, code, *words):
    done = subprocess.run(
        [sys.executable, "-c", "import tests.overlay\n" + code, *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"OVERLAY": str(package / "src"), "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def queryveil(package, *words):
    return run(package, "from queryveil.cli import main\nmain()", *words)


def test_what_is_added_is_in_the_help(package):
    assert "release queries of one word that at least k users issued" in queryveil(package, "anonymize", "--help")
    assert "distinct users behind a released query" in queryveil(package, "anonymize", "--method", "single", "--help")
    assert "longest_query" in queryveil(package, "evaluate", "--help")
    assert "record_size" in queryveil(package, "attack", "--help")


def test_what_is_added_is_made_verified_evaluated_attacked_compared_and_reported(package):
    log, out = package / "log.csv", package / "r"
    made = queryveil(package, "anonymize", log, "--method", "single", "-k", "3", "--link", "user", "-o", out,
                     "--user-map", package / "map.csv")  # fmt: skip
    assert "Holds: Every released query was issued by at least 3 users of the log." in made
    assert "REFUTED" not in queryveil(package, "verify", out, "--original", log)
    known = [out, "--original", log, "--user-map", package / "map.csv"]
    measured = json.loads(queryveil(package, "evaluate", *known, "--json"))["measured"]
    assert [one["value"] for one in measured if one["measure"] == "longest_query"] == [0.5]
    found = json.loads(queryveil(package, "attack", *known, "--only", "record_size", "--json"))["findings"]
    assert [one["label"] for one in found] == ["record size"]
    queryveil(package, "compare", log, "-o", package / "c", "--methods", "single,equality", "-k", "3", "--tests", "5")
    page = (package / "c" / "report.html").read_text()
    assert "single, k = 3" in page
    assert "record size" in page
    table = (package / "c" / "measures.csv").read_text()
    assert "longest_query" in table
    queryveil(package, "report", *known, "-o", package / "report.html")
    page = (package / "report.html").read_text()
    for text in ("It holds queries of one word that at least 3 people typed.", "words of the longest query"):
        assert text in page
