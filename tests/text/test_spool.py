import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.text.spool import Spool


@given(st.lists(st.lists(st.text(max_size=8), max_size=5), max_size=5), st.randoms())
def test_texts_come_back_in_any_order(batches, random):
    spool, texts = Spool(), [text for batch in batches for text in batch]
    for batch in batches:
        spool.append(pa.array(batch, pa.string()))
    order = list(range(len(texts)))
    random.shuffle(order)
    assert spool.ordered(np.array(order, np.int64)).to_pylist() == [texts[i] for i in order]


def test_its_file_has_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = Spool()
    spool.append(pa.array(["a secret query"]))
    assert list(tmp_path.iterdir()) == []
