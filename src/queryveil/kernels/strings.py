"""Move stretches of bytes about."""

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import kernel


@kernel
def copy_spans(
    data: NDArray[np.uint8], starts: NDArray[np.int64], offsets: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Copy the bytes from starts[i] on to out[offsets[i]:offsets[i + 1]], for every i."""
    for i in range(len(starts)):
        shift = starts[i] - offsets[i]
        for at in range(offsets[i], offsets[i + 1]):
            out[at] = data[at + shift]
