"""One log, several threads: what runs side by side gives what it gives alone, and leaves nothing behind."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import queryveil as qv
from queryveil.formats import writers
from queryveil.methods import METHODS
from queryveil.methods.private import noise
from tests.worlds import PARAMETERS

THREADS = 4
KEY = bytes(range(32))


def side_by_side(*works):
    """What threads that start together get, one for each work; four for a single one."""
    todo = works * THREADS if len(works) == 1 else works
    start = threading.Barrier(len(todo))

    def run(work):
        start.wait()
        return work()

    with ThreadPoolExecutor(len(todo)) as pool:
        return list(pool.map(run, todo))


def made_by(name, world, folder):
    more = {"search": {"taxonomy": world.directory}, "hash": {"key_file": folder / "key"}}
    (folder / "key").write_bytes(KEY)
    (folder / "key").chmod(0o600)
    return METHODS[name](**PARAMETERS[name], **more.get(name, {}))


def content(release):
    users = None if release.pseudonyms is None else [batch.to_pylist() for batch in release.user_map()]
    return writers.sha256("parquet", release.schema, release.batches), release.manifest, release.linkage, users


def tables(log):
    found = log.engine.fetch("SELECT table_name AS name FROM information_schema.tables ORDER BY name")
    return found["name"].to_pylist()


def test_no_method_is_forgotten():
    assert PARAMETERS.keys() == METHODS.keys()


@pytest.mark.parametrize("name", PARAMETERS)
def test_releases_that_are_made_and_verified_side_by_side(small_world, tmp_path, name, monkeypatch):
    for kind in ("laplace", "gaussian"):  # which would be drawn anew
        monkeypatch.setattr(noise, kind, lambda values, scale: values)
    method, log = made_by(name, small_world, tmp_path), small_world.log
    log.ensure_tables("query_users", "per_query", "word_users", "rarest", "masked")
    before = tables(log)

    def work():
        return content(method.anonymize(log, seed=7))

    alone = work()
    assert side_by_side(work) == [alone] * THREADS
    release = method.anonymize(log, seed=7)
    release.save(tmp_path / "r", allow_empty=True)
    certificate = release.certificate
    verified = side_by_side(lambda: qv.verify(tmp_path / "r", log, certificate=certificate))
    assert all(found.holds for found in verified)
    assert verified == verified[:1] * THREADS
    del release
    assert tables(log) == before


def test_a_log_that_nobody_has_used_yet(small_world):
    """Tables that are made on demand are made once, whoever asks first."""
    log = qv.read_log(small_world.file)
    found = side_by_side(lambda: content(qv.Affinity(k=2, link="user").anonymize(log, seed=1)))
    assert found == [content(qv.Affinity(k=2, link="user").anonymize(small_world.log, seed=1))] * THREADS


def test_evaluations_and_attacks_side_by_side(small_world):
    log = small_world.log
    releases = [qv.Equality(k=2, link="user").anonymize(log, seed=1), qv.Odp(k=3).anonymize(log, seed=1)]
    works = [
        lambda: [qv.evaluate(release, log, tests=50) for release in releases],
        lambda: [qv.attack(release, log, n_known=(2,)) for release in releases],
    ]
    for work in works:
        assert side_by_side(work) == [work()] * THREADS


def test_different_jobs_side_by_side(small_world, tmp_path):
    log = small_world.log
    release = qv.Equality(k=2, link="user").anonymize(log, seed=1)
    release.save(tmp_path / "r")
    names = ["equality", "affinity", "odp", "wngen", "rules"]
    methods = [made_by(name, small_world, tmp_path) for name in names]
    works = [
        *(lambda method=method: content(method.anonymize(log, seed=3)) for method in methods),
        lambda: qv.verify(tmp_path / "r", log, certificate=release.certificate),
        lambda: qv.evaluate(release, log, tests=50),
        lambda: qv.attack(release, log, n_known=(2,)),
    ]
    alone = [work() for work in works]
    assert side_by_side(*works) == alone
