import shutil

import pyarrow as pa
import pytest

import queryveil as qv


@pytest.fixture(scope="package")
def log():
    rows = [(f"u{i}", query) for i in range(12) for query in ("tea", "red tea", "mug")] + [("u1", "my secret")]
    users, queries = zip(*rows, strict=True)
    return qv.read_log(pa.table({"user": users, "query": queries}))


@pytest.fixture(scope="package")
def home(tmp_path_factory, log):
    """A folder with a signed release, which nobody changes."""
    home = tmp_path_factory.mktemp("signed")
    qv.Equality(k=5).anonymize(log, seed=1).save(home / "release")
    qv.new_key(home / "key")
    qv.sign(home / "release", home / "key")
    return home


@pytest.fixture
def copy(home, tmp_path):
    """A copy of that folder, to be changed."""
    return shutil.copytree(home, tmp_path / "copy")
