"""A series on Spark: the same releases as on one machine, and a ledger in a folder of the cluster's file system."""

import hashlib
import shutil
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.engines.hadoop import HadoopFolder
from queryveil.engines.spark import Spark
from queryveil.log.waiting_spark import _refuse_same_halves
from queryveil.methods import Scrub
from queryveil.series import Series
from queryveil.series.ledger import Ledger, LedgerFolder, Settings
from queryveil.series.remote import RemoteLedgerFolder
from tests.both import needs_spark
from tests.strategies import weekly

pytestmark = needs_spark
BEGIN = datetime(2026, 1, 1)


def table(*events, country=None):
    """Events of (user, query, hours since the beginning, address)."""
    user, query, hour, url = zip(*events, strict=True)
    times = [None if one is None else BEGIN + timedelta(hours=one) for one in hour]
    columns = {
        "user": user,
        "query": query,
        "time": pa.array(times, pa.timestamp("us")),
        "url": pa.array(url, pa.string()),
        "rank": pa.array([None if one is None else 1 for one in url], pa.int32()),
    }
    return pa.table(columns | ({} if country is None else {"country": country}))


PERIODS = [
    table(
        ("ann", "cats", 1, "a.org"), ("bob", "cats", 2, None), ("ann", "cats", 3, "b.org"), ("bob", "old", 3, "o.org"),
        ("eve", "my secret", None, None), ("eve", "my secret", None, None), ("cid", "dogs", 70, "d.org"),
        ("dan", "jane@example.com", 71, None), ("bob", "boats", 72, None), ("eve", "stale", 5, "s.org"),
    ),
    table(
        ("cid", "cats", 85, "a.org"), ("ann", "dogs", 86, "d.org"), ("dan", "dogs", 86, None),
        ("dan", "cats", 87, None), ("bob", "fish", 87, None), ("bob", "late", 71, None),
        country=["de", "fr", "", "de", "de", "fr"],
    ),
    table(("bob", "cats", 90, "a.org"), ("cid", "fish", 91, None), ("dan", "cats", 92, None), ("dan", "old", 93, None)),
]  # fmt: skip


def with_views(rows):
    """The same with the results that were shown, of which one address was never clicked."""
    return rows.append_column("clicked", pa.array([int(url not in (None, "d.org")) for url in rows["url"].to_pylist()]))


def at_an_address(monkeypatch):
    """Hadoop's client for files of this machine stands in for HDFS: the same calls, another file system behind them."""
    for module in ("series.series", "log.spark"):
        monkeypatch.setattr(f"queryveil.{module}.is_address", lambda path: str(path).startswith("file:"))


@pytest.fixture
def engine(spark):
    made = Spark(spark)
    yield made
    made.close()


def at_address(engine, address):
    """A ledger there, as `Series` opens it."""
    return RemoteLedgerFolder(engine, address, partial(HadoopFolder, engine))


@pytest.mark.parametrize("remote", [True, pytest.param(False, marks=weekly)])
def test_the_same_releases_as_on_one_machine(spark, engine, tmp_path, monkeypatch, remote):
    method, periods = qv.Equality(k=2, jitter=0.9), PERIODS[:2]
    if not remote:
        method, periods = qv.Pipeline([Scrub(), method]), [with_views(rows) for rows in PERIODS]
    language = "en" if remote else "de"
    here = Series.init(tmp_path / "here", method, retention="3days", seed=4, language=language)
    logs = [qv.read_log(rows, language=language) for rows in periods]
    if remote:
        at_an_address(monkeypatch)
        ledger = (tmp_path / "there").as_uri()
        at_address(engine, ledger).make(LedgerFolder(tmp_path / "here").read())  # the same secrets
        with pytest.raises(qv.QueryveilError, match="there is not on this machine; reach it with 'engine'"):
            Series(ledger)
    else:
        ledger = shutil.copytree(tmp_path / "here", tmp_path / "there")
    there, releases = Series(ledger, engine=spark), []
    for number, (rows, log) in enumerate(zip(periods, logs, strict=True), 1):
        frame = qv.read_log(spark.createDataFrame(rows), engine=spark, language=language)
        releases.append((tmp_path / f"there-{number}").as_uri() if remote else tmp_path / f"there-{number}")
        if number == 1:
            with pytest.raises(qv.QueryveilError, match="A release cannot be inside the ledger"):
                there.add(frame, f"{ledger}/release")
        if number == 2:
            with pytest.raises(qv.QueryveilError, match="wait on Spark; read the log there too, with engine"):
                there.add(log, tmp_path / "other")
            with pytest.raises(qv.QueryveilError, match="here wait on one machine; read the log without 'engine'"):
                here.add(frame, tmp_path / "other")
            with pytest.raises(qv.QueryveilError, match="1 events of the log are not later"):
                there.add(frame, releases[-1])
        ours = here.add(log, tmp_path / f"here-{number}", drop_late=True)
        theirs = there.add(frame, releases[-1], drop_late=True)
        with pytest.raises(qv.QueryveilError, match=f"This log was added before, as period {number}"):
            there.add(frame, tmp_path / "again")
        own = {"added", "manifest", "waited"}
        assert theirs.model_dump(exclude=own) == ours.model_dump(exclude=own)
        assert theirs.waited == pytest.approx(ours.waited)
        released = qv.Release.load(tmp_path / f"here-{number}").to_arrow()
        assert qv.Release.load(frame.folder(releases[-1])).to_arrow().equals(released)
        assert set(released["query"].to_pylist()) == [{"cats"}, {"cats", "dogs"}, {"cats"}][number - 1]
        if number == 1:
            erased = there.forget(user="bob")
            assert (erased.events, erased.published) == (2, {1: 1})
            assert here.forget(user="bob") == erased
        frame.close()
    assert [period.expired for period in there.status().periods[:2]] == [0, 1]
    assert there.verify(releases, logs).holds
    if not remote:
        until = BEGIN + timedelta(hours=91)
        assert there.forget(before=until).events == here.forget(before=until).events > 0


def test_a_killed_change_of_a_ledger_at_an_address_is_finished_or_taken_back(engine, tmp_path):
    place = at_address(engine, (tmp_path / "ledger").as_uri())
    empty = Ledger(settings=Settings(method="equality", parameters={"k": 2}, seed=1, key=(1, 2)))
    place.make(empty)
    with pytest.raises(qv.QueryveilError, match="exists already"):
        place.make(empty)
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o700
    after = empty.model_copy(update={"changes": 1})
    release = HadoopFolder(engine, (tmp_path / "release").as_uri())
    digest = hashlib.sha256(b"made").hexdigest()

    def announced():
        """A change up to the point where its release is moved to its place."""
        with place.opened() as found:
            assert found == empty
            place.stage(after, lambda address: (HadoopFolder(engine, address).write("events", b""), (0, 0))[1])
            stage = release.stage()
            stage.write("manifest.json", b"made")
            place.announce(after, release, stage, digest)
            return stage

    stage = announced()
    with place.opened() as found:  # killed before: as if nothing had happened
        assert found == empty
        assert stage.state() is None
    announced().remove()
    place.withdraw(release, digest)  # failed, and said so
    assert place.read() == empty
    release.take(announced(), None)
    place.withdraw(release, digest)  # too late
    with place.opened() as found:  # killed after: done
        assert found == after
        with pytest.raises(qv.QueryveilError, match="in use by another process; wait until that ends"):
            place.opened().__enter__()
    assert sorted(path.name for path in (tmp_path / "ledger").glob("[!.]*")) == ["ledger-1.json", "waiting-1"]
    (tmp_path / "ledger").chmod(0o755)
    with pytest.raises(qv.QueryveilError, match="can be read or changed by others"):
        place.read()


def test_texts_with_the_same_half_of_a_digest_are_refused(engine):
    for name, (number, text) in {"users": ("user_id", "user"), "urls": ("url_id", "url")}.items():
        engine.read(name, pa.table({number: [1, 2], text: ["a", "b"]}))
    engine.read("queries", pa.table({"query_id": [1, 2**63 - 1], "query": ["a", "b"]}))
    _refuse_same_halves(engine, ())
    # The same text stands in for two with the same half: side by side, as in one log, or with one id.
    for ids in ([1, 2], [1, 1]):
        engine.read("queries", pa.table({"query_id": ids, "query": ["a", "a"]}))
        with pytest.raises(qv.QueryveilError, match="the same half of a digest"):
            _refuse_same_halves(engine, ())
