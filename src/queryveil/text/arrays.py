"""Arrow string arrays seen as bytes and positions, the way kernels take them, and back."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

Spans = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]


def byte_spans(array: pa.Array) -> Spans:
    """The bytes of a string or binary array, and where each value starts and ends; a null is empty."""
    if pa.types.is_dictionary(array.type) or array.type not in _OFFSETS:
        array = array.cast(pa.large_string())
    width = _OFFSETS[array.type]
    _, offset_buffer, data_buffer = array.buffers()
    if len(array) == 0 or offset_buffer is None:
        empty = np.zeros(len(array), np.int64)
        return np.empty(0, np.uint8), empty, empty
    offsets: NDArray[np.int64] = np.frombuffer(offset_buffer, dtype=width).astype(np.int64)
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return data, offsets[:-1], offsets[1:]


def from_offsets(offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> pa.Array:
    """A string array over bytes that are known to be UTF-8."""
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def packed(start: NDArray[np.int64], values: NDArray[Any]) -> pa.Array:
    """Lists of numbers or records, values[start[i]:start[i + 1]], as the bytes of a binary array."""
    if len(values) * values.itemsize >= 1 << 31:  # the offsets of a binary array
        raise MemoryError
    edges = (start * values.itemsize).astype(np.int32)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.binary(), len(start) - 1, [None, pa.py_buffer(edges), data])


def unpacked(array: pa.Array, kind: DTypeLike) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Where each list of `packed` starts and the last ends, and the values of all; a null is empty."""
    data, starts, ends = byte_spans(array)
    size = np.dtype(kind).itemsize
    start = np.zeros(len(array) + 1, np.int64)
    np.cumsum((ends - starts) // size, out=start[1:])
    inside = data[starts[0] : ends[-1]] if len(array) else data[:0]
    # A copy begins where numbers of its kind may begin.
    return start, inside.copy().view(kind)


_OFFSETS: dict[pa.DataType, np.dtype[np.int32] | np.dtype[np.int64]] = {
    pa.string(): np.dtype(np.int32),
    pa.binary(): np.dtype(np.int32),
    pa.large_string(): np.dtype(np.int64),
    pa.large_binary(): np.dtype(np.int64),
}
