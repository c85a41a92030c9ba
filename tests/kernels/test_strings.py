import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.strings import CAPITAL, FOREIGN, UNTIDY, copy_spans, kinds_of
from queryveil.text.arrays import byte_spans


@given(st.lists(st.text("abZ \t\x7fé", max_size=6), max_size=10))
def test_kinds_say_what_must_be_changed(texts):
    found = kinds_of(*byte_spans(pa.array(texts, pa.string()))).tolist()
    for text, kinds in zip(texts, found, strict=True):
        assert bool(kinds & CAPITAL) == ("Z" in text)
        assert bool(kinds & FOREIGN) == ("é" in text)
        folded = " ".join(text.replace("\x7f", " ").split())
        if "é" not in text:
            assert bool(kinds & UNTIDY) == (text != folded)


@given(st.lists(st.binary(max_size=5), max_size=8), st.randoms())
def test_spans_are_copied_in_any_order(values, random):
    data, starts, ends = byte_spans(pa.array(values, pa.binary()))
    order = list(range(len(values)))
    random.shuffle(order)
    offsets = np.concatenate([[0], np.cumsum((ends - starts)[order])]).astype(np.int64)
    out = np.empty(offsets[-1], np.uint8)
    copy_spans(data, starts[order], offsets, out)
    assert out.tobytes() == b"".join(values[i] for i in order)
