"""The rules that make releases private, each taken out in turn: a test must notice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MUTATIONS = {
    "the weight test inside a group": (
        "kernels/cores.py",
        "if not affine(groups.weight[g], total[layer, v], total[layer, other], theta2[layer]):",
        "if False:",
        "tests/methods/affinity/test_graph.py::test_sharing_a_heavy_subset_is_not_enough",
    ),
    "the unique-word rule": (
        "methods/affinity/method.py",
        "self.chosen &= log.rarest_word >= fewest",
        "self.chosen &= log.rarest_word >= 0",
        "tests/methods/affinity/test_method.py::test_private_data_joined_to_a_frequent_query_is_not_released",
    ),
    "the distinct-user rule": (
        "kernels/cores.py",
        "if seen[i] == who:",
        "if False:",
        "tests/methods/affinity/test_graph.py::test_the_three_nested_cores_of_twelve_vertices_in_three_classes",
    ),
    "the check that k users share a record": (
        "claims/records.py",
        'f" HAVING count(*) < {self.users} ORDER BY one LIMIT 1"',
        'f" HAVING count(*) < {self.users - self.users} ORDER BY one LIMIT 1"',
        "tests/methods/microaggregation/test_common.py::test_the_verifier_finds_what_is_wrong[False-moved-record-users-Odp]",
    ),
    "the check of what follows from totals": (
        "claims/counted.py",
        'HAVING count(*) < {self.users}",\n                "few hidden users"',
        'HAVING count(*) < 1",\n                "few hidden users"',
        "tests/claims/test_counted.py::test_totals_without_secondary_suppression_give_a_row_away",
    ),
    "secondary suppression": (
        "methods/counts/hiding.py",
        "f\" LEFT JOIN {places} h ON {same.format('h', 'c')} AND h.place = 1\",",
        "f\" LEFT JOIN {places} h ON {same.format('h', 'c')} AND h.place = 0\",",
        "tests/claims/test_counted.py::test_an_honest_table_holds_and_hides_one_more_row",
    ),
    "the release made again": (
        "verification/rebuild.py",
        "return replace(found, verdicts=(*found.verdicts, _made_again(loaded, log, methods)))",
        "return found",
        "tests/verification/test_rebuild.py::test_what_the_other_checks_let_pass_is_seen_when_the_release_is_made_again",
    ),
    "claims that the method does not make": (
        "verification/verifier.py",
        "    if tuple(required) != stated:",
        "    if False:",
        "tests/verification/test_verifier.py::test_a_claim_that_the_method_does_not_make",
    ),
    "the one form of a manifest": (
        "verification/file_checks.py",
        "    if place.read(MANIFEST) != written(manifest):",
        "    if False:",
        "tests/verification/test_verifier.py::test_a_manifest_that_is_written_otherwise",
    ),
    "the key of the fingerprint": (
        "log/log.py",
        'hmac.new(b"fingerprint|%d" % seed, self.stats.content, hashlib.sha256)',
        'hmac.new(b"fingerprint", self.stats.content, hashlib.sha256)',
        "tests/cli/test_cli.py::test_without_a_seed_two_releases_do_not_line_up",
    ),
}


@pytest.mark.parametrize("rule", MUTATIONS)
def test_a_rule_that_is_missing_is_noticed(rule):
    file, old, new, test = MUTATIONS[rule]
    source = ROOT / "src" / "queryveil" / file
    assert source.read_text("utf-8").count(old) == 1
    name = ".".join(("queryveil", *Path(file).with_suffix("").parts))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutated", test],
        cwd=ROOT,
        env=os.environ | {"MUTATION": json.dumps([name, old, new]), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout
