"""Every number of a grid is what the method itself releases."""

import json
import os
import stat
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.attacks.history_linkage import history_linkage
from queryveil.assess.grid import Grid
from queryveil.assess.grid_making import grid
from queryveil.assess.policy.evidence import issued_by_few
from queryveil.claims import AffineUsers, QueryUsers
from tests.oracles.log import Row
from tests.strategies import examples, table

WORDS = st.lists(st.sampled_from(["cell", "phone", "case", "the", "x1"]), min_size=1, max_size=4).map(" ".join)
LOGS = st.lists(st.tuples(st.sampled_from("abcdefgh"), WORDS).map(lambda pair: Row(*pair)), min_size=8, max_size=50)
KS, THETAS, WORD_USERS = (2, 3, 5), (0.6, 0.8, 1.0), (1, 3)


def small():
    return qv.read_log(
        table([Row(f"u{i % 9}", f"cell phone {['', 'case', 'x1', 'case x1'][i % 4]}") for i in range(60)])
    )


@settings(max_examples=examples(7))
@given(
    LOGS,
    st.sampled_from(KS),
    st.sampled_from([{}, {"concept_min_users": 2}, {"min_query_users": 2}, {"max_new_users": 0}]),
)
def test_each_setting_is_what_the_method_releases(rows, k, rest):
    log = qv.read_log(table(rows))
    if log.n_users < 5:
        return
    found = grid(log, ks=KS, thetas=THETAS, word_users=WORD_USERS, linkage_ks=(), **rest)
    release = qv.Equality(k=k).anonymize(log)
    assert_same(found.at("equality", k=k), release, log)
    for theta, words in product(THETAS, (None, *WORD_USERS)):
        release = qv.Affinity(k=k, theta=theta, min_term_users=words, **rest).anonymize(log)
        assert_same(found.at("affinity", k=k, theta=theta, min_word_users=words), release, log)


def assert_same(setting, release, log):
    counts = release.manifest.counts
    assert (setting.queries, setting.events) == (counts.queries, counts.events)
    assert setting.by_band == release.manifest.bands
    assert setting.few_queries == issued_by_few(release, log, setting.k)
    assert setting.exposed_queries == 0
    assert any(isinstance(claim, QueryUsers | AffineUsers) for claim in release.manifest.claims), "so a policy says"


@settings(max_examples=examples(7))
@given(LOGS)
def test_each_setting_is_what_a_sweep_counts(rows):
    log = qv.read_log(table(rows))
    if log.n_users < 3:
        return
    found = grid(log, ks=(2, 3), thetas=THETAS, word_users=(), linkage_ks=())
    for point in qv.sweep(log, ks=(2, 3), thetas=THETAS).points:
        one = found.at("equality" if point.theta is None else "affinity", k=point.k, theta=point.theta)
        assert (one.queries, one.events) == (point.queries, point.events)


def test_masked_queries_have_a_band_of_their_own():
    rows = [Row(f"u{i % 6}", ["tea", "jane@example.com tea", "joe@example.com tea"][i % 3]) for i in range(36)]
    log = qv.scrub(qv.read_log(table(rows)), "mask")
    found = grid(log, ks=(2,), thetas=(0.9,), linkage_ks=())
    assert found.at("equality", k=2).by_band == qv.Equality(k=2).anonymize(log).manifest.bands
    assert found.at("equality", k=2).by_band[-1].masked
    assert found.at("affinity", k=2, theta=0.9).by_band == qv.Affinity(k=2).anonymize(log).manifest.bands


def test_equality_takes_any_k_and_affinity_those_of_the_grid():
    log = small()
    found = grid(log, ks=(2, 5, 100), thetas=(0.9,), word_users=(2,), linkage_ks=())
    assert found.ks == (2, 5)
    assert found.at("equality", k=4).queries == qv.Equality(k=4).anonymize(log).manifest.counts.queries
    for asked, sentence in [
        ({"method": "affinity", "k": 4, "theta": 0.9}, r"The grid has no k of 4; choose one of 2, 5\."),
        ({"method": "affinity", "k": 5, "theta": 0.91}, r"The grid has no theta of 0\.91; choose one of 0\.9\."),
        ({"method": "affinity", "k": 5, "theta": 0.9, "min_word_users": 7}, "The grid has no min_word_users of 7"),
        ({"method": "equality", "k": 10}, "The log has only 9 users"),
        ({"method": "equality", "k": 1}, "must be a whole number of at least 2"),
        ({"method": "afinity", "k": 5}, "A grid has no method 'afinity'; did you mean"),
    ]:
        with pytest.raises(qv.QueryveilError, match=sentence):
            found.at(**asked)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ks": (50,)}, "A grid needs at least one theta, and a k of at most the users of the log"),
        ({"ks": (1,)}, "must be a whole number of at least 2"),
        ({"thetas": (1.5,)}, "The 'theta' parameter of Affinity must be a number"),
        ({"min_term_users": 2}, "A grid takes a list, 'word_users'"),
    ],
)
def test_a_wrong_parameter_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence):
        grid(small(), **given)


def test_linkage_is_measured_on_the_release_itself_and_stands_for_smaller_ones():
    log = small()
    found = grid(log, ks=(2, 3, 5), thetas=(0.6, 0.9), word_users=(2,), linkage_ks=(2, 5), link="user")
    for method, made in (
        (("equality", 5, None), qv.Equality(k=5, link="user")),
        (("affinity", 5, 0.6), qv.Affinity(k=5, theta=0.6, link="user")),
    ):
        name, k, theta = method
        risk = found.at(name, k=k, theta=theta).linkage
        expected = history_linkage(made.anonymize(log, seed=0), log, seed=0).estimate
        assert (risk.share, risk.low, risk.high) == (expected.value, expected.low, expected.high)
        assert risk.measured
    near = found.at("affinity", k=3, theta=0.9).linkage
    assert (near.k, near.theta, near.measured) == (2, 0.9, False)
    rare = found.at("affinity", k=5, theta=0.9, min_word_users=2).linkage
    assert (rare.k, rare.theta, rare.measured) == (2, 0.9, False)
    assert grid(log, ks=(2,), thetas=(0.9,), linkage_ks=()).at("equality", k=2).linkage is None


def test_it_is_the_same_when_it_was_saved(tmp_path):
    log = small()
    made = grid(log, ks=(2, 5), thetas=(0.8, 1.0), linkage_ks=(2,), link="user")
    made.save(tmp_path / "grid")
    read = Grid.load(tmp_path / "grid", log)
    for k, theta, words in ((2, 0.8, None), (5, 1.0, 2)):
        given = {"method": "affinity", "k": k, "theta": theta, "min_word_users": words}
        assert read.at(**given) == made.at(**given)
    assert read.at("equality", k=3) == made.at("equality", k=3)
    assert stat.S_IMODE(os.stat(tmp_path / "grid").st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "grid").iterdir()} == {0o600}
    about = (tmp_path / "grid" / "grid.json").read_text()
    assert "phone" not in about
    made.save(tmp_path / "grid")


def test_a_grid_of_another_log_or_a_damaged_one_is_refused(tmp_path):
    log = small()
    grid(log, ks=(2,), thetas=(0.9,), linkage_ks=()).save(tmp_path / "grid")
    other = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"]}))
    with pytest.raises(qv.QueryveilError, match="is of another log, or of another version; make the grid again"):
        Grid.load(tmp_path / "grid", other)
    with pytest.raises(qv.QueryveilError, match="is of another log"):
        Grid.load(tmp_path / "grid", qv.scrub(log, "mask"))
    with pytest.raises(qv.QueryveilError, match="There is no finished grid in"):
        Grid.load(tmp_path / "none", log)
    (tmp_path / "grid" / "levels.parquet").write_bytes(b"PAR1")
    with pytest.raises(qv.QueryveilError, match="is damaged; make the grid again"):
        Grid.load(tmp_path / "grid", log)
    about = json.loads((tmp_path / "grid" / "grid.json").read_text())
    (tmp_path / "grid" / "grid.json").write_text(json.dumps(about | {"ks": 5}))
    with pytest.raises(qv.QueryveilError, match="is damaged"):
        Grid.load(tmp_path / "grid", log)


def test_progress_grows_and_what_it_raises_ends_the_work():
    seen = []
    grid(small(), ks=(2, 5), thetas=(0.9,), linkage_ks=(), progress=lambda step, share: seen.append(share))
    assert seen == sorted(seen)
    assert seen[-1] < 1

    class StoppedError(Exception):
        pass

    def stop(step, share):
        raise StoppedError

    with pytest.raises(StoppedError):
        grid(small(), ks=(2,), thetas=(0.9,), progress=stop)
