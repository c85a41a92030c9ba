"""Many texts kept in an unnamed temporary file, so that memory holds only where each one is."""

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.errors import QueryveilError
from queryveil.text.arrays import byte_spans


class Spool:
    """Texts appended one array after another, returned as one array in any order.

    The file is unlinked as soon as it is made, so nothing of it stays if the process is killed.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="queryveil-")  # noqa: SIM115
        self._lengths: list[NDArray[np.int64]] = []

    def __del__(self) -> None:
        self._file.close()

    def append(self, texts: pa.Array) -> None:
        """Add texts after those already there."""
        data, starts, ends = byte_spans(texts)
        if len(starts):
            with _room():
                self._file.write(data[starts[0] : ends[-1]].data)
            self._lengths.append(ends - starts)

    def ordered(self, order: NDArray[np.int64]) -> pa.Array:
        """The texts at these places, as a string array over a file of its own."""
        from queryveil.kernels.strings import copy_spans

        lengths = np.concatenate(self._lengths) if self._lengths else np.empty(0, np.int64)
        ends = np.cumsum(lengths)
        with _room():
            self._file.flush()
        source = _mapped(self._file, int(ends[-1]) if len(ends) else 0)
        starts, lengths = (ends - lengths)[order], lengths[order]
        offsets = np.zeros(len(order) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        with tempfile.TemporaryFile(prefix="queryveil-") as target:
            if offsets[-1]:
                with _room():
                    # Writing to a mapped file on a full disk would kill the process, so the room is taken first.
                    os.posix_fallocate(target.fileno(), 0, int(offsets[-1]))
            out = _mapped(target, int(offsets[-1]))
            copy_spans(source, starts, offsets, out)
        self._file.close()
        return pa.Array.from_buffers(pa.large_string(), len(order), [None, pa.py_buffer(offsets), pa.py_buffer(out)])


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise QueryveilError(
            f"The temporary folder {tempfile.gettempdir()} cannot hold the texts of this log ({error.strerror}); free"
            " some space, or set TMPDIR to a larger disk."
        ) from error


def _mapped(file: IO[bytes], size: int) -> NDArray[np.uint8]:
    if size == 0:
        return np.empty(0, np.uint8)
    return np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)
