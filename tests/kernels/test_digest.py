import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.digest import _KEY0, _KEY1, digests
from queryveil.text.arrays import byte_spans
from tests.oracles.siphash import siphash128

KEY = int(_KEY0).to_bytes(8, "little") + int(_KEY1).to_bytes(8, "little")


def test_the_oracle_gives_the_published_vectors_of_siphash_2_4():
    # Vectors of the reference implementation: key 00..0f, message of 0 and of 1 byte.
    key = bytes(range(16))
    low, high = siphash128(key, b"", 2, 4)
    assert (low.to_bytes(8, "little") + high.to_bytes(8, "little")).hex() == "a3817f04ba25a8e66df67214c7550293"
    low, high = siphash128(key, b"\x00", 2, 4)
    assert (low.to_bytes(8, "little") + high.to_bytes(8, "little")).hex() == "da87c1d86b99af44347659119b22fc45"


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_digests_are_siphash_1_3(values):
    low, high = digests(*byte_spans(pa.array(values, pa.binary())))
    assert [(int(a), int(b)) for a, b in zip(low, high, strict=True)] == [siphash128(KEY, v, 1, 3) for v in values]


def test_a_slice_of_an_array_has_the_digests_of_its_values():
    array = pa.array(["one", "two", "three"])
    whole, part = digests(*byte_spans(array)), digests(*byte_spans(array.slice(1)))
    assert np.array_equal(whole[0][1:], part[0])
