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
    "disambiguation", "personal_data", "differencing", "token_hashing", "sybil", "history_linkage", "attribution",
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A log of a few users, and the directory of its sites."""
    folder = tmp_path_factory.mktemp("every")
    qv.generate(folder / "log.tsv", users=100, seed=1, truth=folder / "truth")
    qv.build_directory([folder / "truth" / "structure.rdf.u8", folder / "truth" / "content.rdf.u8"], folder / "d")
    return qv.read_log(folder / "log.tsv"), str(folder / "d")


@pytest.mark.parametrize(
    ("name", "saved"),
    [*((name, False) for name in GIVEN), ("equality", True), ("odp", True), ("clump", True), ("hash", True)],
)
def test_every_release_can_be_attacked_and_evaluated(world, tmp_path, name, saved):
    log, directory = world
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
