"""How much of a log is read, for those who wait."""

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.formats import source

ROWS = "user,query\n" + "".join(f"u{i},query number {i}\n" for i in range(5000))


@pytest.mark.parametrize("packed", [lambda data: data, gzip.compress, bz2.compress, lzma.compress, "zstd"])
def test_the_share_of_the_bytes_grows_to_the_whole(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(source, "BLOCK", 1 << 13)
    for name in "ab":
        data = ROWS.encode()
        stored = pa.compress(data, "zstd", asbytes=True) if packed == "zstd" else packed(data)
        (tmp_path / f"{name}.csv").write_bytes(stored)
    seen = []
    log = qv.read_log([tmp_path / "a.csv", tmp_path / "b.csv"], threads=1, progress=seen.append)
    shares = [done.share for done in seen]
    assert log.stats.events == seen[-1] == 10_000
    assert shares == sorted(shares)
    assert 0 < shares[0] <= 0.51
    assert shares[-1] == 1


def test_a_table_says_no_share():
    seen = []
    qv.read_log(pa.table({"user": ["a"], "query": ["tea"]}), progress=seen.append)
    assert [(int(done), done.share) for done in seen] == [(1, None)]
