"""The guides of CONTRIBUTING.md, followed to the letter: what they add shows up everywhere."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NOTES = [f"u{u}: {query}\n" for u in range(12) for query in ("tea", "green tea", f"mug {u % 3}", "pot")]
PROMISE = "Every released query is one word that at least 3 users typed."
COMMANDS = """
import contextlib, io, json, sys
import tests.overlay
from queryveil.cli import main

done = []
for words in json.loads(sys.argv[1]):
    sys.argv, code = ["queryveil", *words], 0
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    done.append((code, shown.getvalue()))
print(json.dumps(done))
"""
FROM_PYTHON = """
import json, sys
from pathlib import Path
import tests.overlay
import pyarrow as pa
import queryveil as qv
from queryveil.formats.detection import detect
from queryveil.knowledge.linkers import categorize_terms
from queryveil.knowledge.phrases import noun_phrases
from queryveil.methods import METHODS
from queryveil.text import language
from tests.fuzz import forging

file, out = map(Path, sys.argv[1:])
log = qv.read_log(file)
METHODS["single"](k=3).anonymize(log, seed=1).save(out)
honest = qv.verify(out, log).holds
_, table = forging.table_of(out)
rows = [row | {"query": row["query"].replace("pot", "green tea")} for row in table.to_pylist()]
forging.put_rows(out, log, rows, table.schema)
queries = pa.array(["la teo de green tea"])
print(json.dumps({
    "format": detect(file),
    "events": log.stats.events,
    "honest": honest,
    "forged": {verdict.claim: verdict.counterexample for verdict in qv.verify(out, log).verdicts},
    "terms": categorize_terms(queries, qv.open_taxonomy("wordnet"), language("eo")).items.to_pylist(),
    "phrases": noun_phrases(queries, language("eo"))[1].to_pylist(),
}))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package with what the guides add, and a log in the format that one of them adds."""
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
    assert len(added) == len(set(added)) == 15
    (folder / "log").write_text("".join(NOTES))
    return folder


def run(package, code, *words):
    places = os.pathsep.join(map(str, (ROOT, ROOT / "src")))
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"OVERLAY": str(package / "src"), "PYTHONPATH": places, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def queryveil(package, *commands):
    """What each command prints; they run one after the other in one process, because a start takes a second."""
    done = json.loads(run(package, COMMANDS, json.dumps([list(map(str, words)) for words in commands])))
    assert [code for code, _ in done] == [0] * len(commands)
    return [shown for _, shown in done]


def test_what_is_added_is_in_the_help(package):
    helps = (["anonymize"], ["anonymize", "--method", "single"], ["evaluate"], ["attack"])
    methods, method, measures, attacks = queryveil(package, *([*words, "--help"] for words in helps))
    assert "release queries of one word that at least k users issued" in methods
    assert "Format of the log: notes, aol, " in methods
    assert "distinct users behind a released query" in method
    assert "longest_query" in measures
    assert "record_size" in attacks


def test_what_is_added_is_made_verified_evaluated_attacked_compared_and_reported(package):
    log, out = package / "log", package / "r"
    known = [out, "--original", log, "--user-map", package / "map.csv"]
    made, verified, evaluated, attacked, _, _, longest, verbs, first, last, both = queryveil(
        package,
        ["anonymize", log, "--method", "single", "-k", "3", "--link", "user", "-o", out, *known[3:]],
        ["verify", out, "--original", log],
        ["evaluate", *known, "--json"],
        ["attack", *known, "--only", "record_size", "--json"],
        ["compare", log, "-o", package / "c", "--methods", "single,equality", "-k", "3", "--tests", "5"],
        ["report", *known, "-o", package / "report.html"],
        ["longest", log],
        ["--help"],
        ["anonymize", log, "--method", "single", "-k", "3", "--then", "odp", "-k", "3", "-o", package / "first"],
        ["anonymize", log, "--method", "equality", "-k", "2", "--then", "single", "-k", "3", "-o", package / "last"],
        ["verify", package / "first", "--original", log],
    )
    for shown in (first, last):  # as a step of a pipeline
        assert f"Holds: {PROMISE}" in shown
    assert f"holds    {PROMISE}" in both
    assert longest == "9\n"
    assert "Show how many characters the longest query of a log has." in verbs
    assert f"Holds: {PROMISE}" in made
    assert f"holds    {PROMISE}" in verified
    measured = json.loads(evaluated)["measured"]
    assert [one["value"] for one in measured if one["measure"] == "longest_query"] == [0.5]
    assert [one["label"] for one in json.loads(attacked)["findings"]] == ["record size"]
    page = (package / "c" / "report.html").read_text()
    assert "single, k = 3" in page
    assert "record size" in page
    table = (package / "c" / "measures.csv").read_text()
    assert "longest_query" in table
    page = (package / "report.html").read_text()
    for text in ("It holds queries of one word that at least 3 people typed.", "words of the longest query", PROMISE):
        assert text in page


def test_what_is_added_is_found_from_python_and_a_forgery_of_it_is_refuted(package):
    found = json.loads(run(package, FROM_PYTHON, package / "log", package / "forged"))
    assert (found["format"], found["events"]) == ("notes", len(NOTES))
    assert found["honest"]
    assert found["forged"][PROMISE] == "the query 'green tea' has several words"
    # Its stop words are no terms, and end phrases; those of English do not.
    assert (found["terms"], found["phrases"]) == (["teo", "green", "tea"], ["teo", "green tea"])
