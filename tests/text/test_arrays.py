"""Lists of numbers as the bytes of a binary array."""

import numpy as np
import pytest

from queryveil.text.arrays import packed


def test_lists_that_outgrow_a_binary_array_are_refused_and_not_wrapped_around():
    values = np.broadcast_to(np.zeros(1, np.int64), 1 << 28)  # of no size in memory
    with pytest.raises(MemoryError):
        packed(np.array([0, 1 << 28]), values)
