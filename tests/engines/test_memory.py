"""Large arrays are refused before they are made, with the limit that is true."""

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.engines import memory
from queryveil.errors import QueryveilError
from queryveil.methods.affinity.graph import _Search


@pytest.fixture(autouse=True)
def no_limit(monkeypatch):
    monkeypatch.setattr(memory, "_limit", None)


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [
        ("4GB", 4 * 10**9),
        ("4g", 4 * 10**9),
        ("1.5 GB", 15 * 10**8),
        ("2GiB", 2**31),
        ("600MB", 6 * 10**8),
        ("500000000", 5 * 10**8),
    ],
)
def test_sizes(size, bytes_):
    memory.limit_to(size)
    assert memory.for_tables() == bytes_ // 2


@pytest.mark.parametrize(
    "size", ["", "many", "-4GB", "4 GBytes", "1e3GB", "499MB", "nan", "4GB; DROP", "9" * 30 + "GB"]
)
def test_what_is_no_size_is_refused(size):
    with pytest.raises(QueryveilError, match="must be a size of at least 500 MB, such as 4GB"):
        memory.limit_to(size)


def test_no_size_leaves_the_limit_as_it_is():
    memory.limit_to("3GB")
    memory.limit_to(None)
    assert memory.for_tables() == 1_500_000_000


def test_what_fits_is_not_refused(monkeypatch):
    monkeypatch.setattr(memory, "_held", lambda: 1_000_000_000)
    memory.limit_to("4GB")
    memory.reserve(3_000_000_000, "A matrix")


def test_what_does_not_fit_into_the_limit_is_refused_with_the_limit(monkeypatch):
    monkeypatch.setattr(memory, "_held", lambda: 1_000_000_000)
    memory.limit_to("4GB")
    with pytest.raises(QueryveilError) as caught:
        memory.reserve(3_100_000_000, "A matrix")
    assert str(caught.value) == (
        "A matrix would take 3.1 GB of memory, and 3 GB is left of the memory limit of 4 GB; raise 'memory_limit', use"
        " a part of the log, or use Spark."
    )


def test_without_a_limit_the_machine_is_one(monkeypatch):
    monkeypatch.setattr(memory, "_available", lambda: 2_000_000_000)
    memory.reserve(2_000_000_000, "A matrix")
    with pytest.raises(QueryveilError, match="and this machine has 2 GB left; use one with more"):
        memory.reserve(2_000_000_001, "A matrix")


def test_a_system_that_does_not_say_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory, "_available", lambda: None)
    memory.reserve(10**18, "A matrix")


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)


def test_the_tightest_control_group_above_counts(tmp_path):
    own = tmp_path / "own"
    own.write_text("0::/slice/job\n")
    root = tmp_path / "root"
    group(root / "slice", memory_max="1000\n", memory_current="400\n", memory_stat="anon 300\ninactive_file 100\n")
    group(root / "slice" / "job", memory_max="max\n", memory_current="400\n", memory_stat="inactive_file 100\n")
    assert list(memory._left_to_group(root, own)) == [700]


def test_control_groups_of_the_first_version(tmp_path):
    own = tmp_path / "own"
    own.write_text("5:cpu,cpuacct:/a\n7:memory:/a\n")
    root = tmp_path / "root"
    group(
        root / "memory" / "a",
        memory_limit_in_bytes="1000",
        memory_usage_in_bytes="900",
        memory_stat="total_inactive_file 50\n",
    )
    assert list(memory._left_to_group(root, own)) == [150]


def test_this_machine_says_what_it_has():
    assert memory._available() is None or memory._available() > 0
    assert memory._held() >= 0


@pytest.fixture
def log():
    rows = [(f"u{user}", query) for user in range(8) for query in ("red tea", "black tea", "tea mug", "tea")]
    columns = {"user": [user for user, _ in rows], "query": [query for _, query in rows]}
    return qv.read_log(pa.table(columns | {"url": [f"http://{i % 5}.com/" for i in range(len(rows))]}))


@pytest.mark.parametrize(
    ("method", "what"),
    [
        (qv.Affinity(k=2, concept_min_users=2), "The vectors of queries"),
        (qv.Mdav(k=2), "The distances between users"),
        (qv.Clump(k=2), "The nouns of users"),
        (qv.Partition(k=2), "The nouns of users"),
        (qv.Poblete(k=1, sites=1), "The graph of queries and clicked addresses"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_methods_ask_before_they_take_memory(log, method, what, monkeypatch):
    monkeypatch.setattr(memory, "_available", lambda: 10)
    with pytest.raises(QueryveilError, match=f"{what} would take"):
        method.anonymize(log)


def test_many_witnesses_are_refused_before_they_are_looked_for(monkeypatch):
    monkeypatch.setattr(memory, "_available", lambda: 10**6)
    with pytest.raises(QueryveilError, match=r"The witnesses of similar queries would take 4.02 MB"):
        _Search.of(np.arange(1000, dtype=np.int32), 1000)


def test_reading_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(memory, "_held", lambda: 600_000_000)
    with pytest.raises(QueryveilError, match=r"The rows of this log would take .* left of the memory limit of 550 MB"):
        qv.read_log(pa.table({"user": ["a"], "query": ["b"]}), memory_limit="550MB")


def test_tables_have_half_of_the_limit():
    log = qv.read_log(pa.table({"user": ["a"], "query": ["b"]}), memory_limit="2GB")
    assert log.engine.row("SELECT current_setting('memory_limit') AS m") == ("953.6 MiB",)
