from itertools import pairwise

import numpy as np
import pyarrow as pa

from queryveil.kernels.words import split_words
from queryveil.text.arrays import byte_spans


def test_only_the_ends_of_a_word_are_stripped():
    inside = np.zeros(128, np.bool_)
    inside[[ord(c) for c in "abc"]] = True
    per_query, offsets, out = split_words(*byte_spans(pa.array(["-a-b- .", "", "c"])), inside)
    assert per_query.tolist() == [1, 0, 1]
    assert [out[a:b].tobytes() for a, b in pairwise(offsets.tolist())] == [b"a-b", b"c"]
