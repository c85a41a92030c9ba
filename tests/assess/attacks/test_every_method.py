"""Every attack and every measure, on a release of every method: a number, or a sentence that says why there is none."""

import math

import pytest

import queryveil as qv
from queryveil.assess.attacks import attack
from queryveil.assess.evaluation import evaluate
from queryveil.methods import METHODS
from tests.worlds import PARAMETERS

GIVEN = PARAMETERS | {"rules": {"max_characters": 30, "link": "user"}, "mdav": {"k": 3}}
ATTACKS = {
    "background_knowledge", "unique_queries", "unique_pairs", "reidentification_risk", "record_linkage", "user_linkage",
    "disambiguation", "personal_data", "differencing", "margins", "token_hashing", "sybil", "history_linkage",
    "attribution",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "saved"),
    [*((name, False) for name in GIVEN), ("equality", True), ("odp", True), ("clump", True), ("hash", True)],
)
def test_every_release_can_be_attacked_and_evaluated(small_world, tmp_path, name, saved):
    log, directory = small_world.log, small_world.directory
    given = GIVEN[name] | ({"taxonomy": directory} if name == "search" else {})
    release = METHODS[name](**given).anonymize(log)
    if saved:
        release.save(tmp_path / "r", allow_empty=True)
        release = qv.Release.load(tmp_path / "r")
    found = attack(release, log, n_known=(2,), taxonomy=directory)
    tried, skipped = {one.attack for one in found.findings}, {one.attack for one in found.skipped}
    assert tried | skipped == ATTACKS
    # The older half needs more than the random one; half of one member's log needs a record of several.
    assert not tried & skipped - {"history_linkage", "attribution"}
    for one in found.findings:
        assert one.estimate.low <= one.estimate.value <= one.estimate.high
        assert one.loss is None or one.loss <= 1
    for one in found.skipped:
        assert one.why
        assert "\n" not in one.why
    for one in evaluate(release, log, tests=50).measured:
        assert one.why if one.value is None else math.isfinite(one.value), one
