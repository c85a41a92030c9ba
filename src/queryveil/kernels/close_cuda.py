"""All close pairs of vectors on a graphics processor: one kernel multiplies, compares and keeps what is close.

The matrix of products is never stored: a tile of it lives in registers, and only its few close pairs are written. As in
`close.py` all numbers are whole: two bytes hold those of a vector, and sums of products stay below 2^24, so the tensor
cores find the same numbers as any other processor.
"""

from __future__ import annotations  # the types of the kernel are names of Triton, which may not be installed

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels.close import close, squared
from queryveil.kernels.types import Longs

_TILE = 128
_SPAN = 128
"""How many tiles of columns one program goes through."""
_ROOM = 1 << 26
"""Close pairs that fit at a time; a band of rows with more of them is cut in two."""
_BAND = 1 << 19
"""Rows whose pairs are searched for in one launch."""


tl: Any = None
"""Triton's language, once `_compiled` has imported it."""


@cache
def _compiled() -> Any:
    global tl
    import triton
    import triton.language

    tl = triton.language
    return triton.jit(_keep_close)


def _keep_close(  # type: ignore[no-untyped-def]  # its types are those of the device
    vectors, found, product, counter, n, first, last, least, room,
    WIDTH: tl.constexpr, TILE: tl.constexpr, SPAN: tl.constexpr,  # noqa: N803  # constants of the compiled code
):  # fmt: skip
    row_tile = first // TILE + tl.program_id(1)
    span = tl.program_id(0)
    rows = row_tile * TILE + tl.arange(0, TILE)
    width = tl.arange(0, WIDTH)
    begin, end = span * SPAN, tl.minimum((span + 1) * SPAN, tl.cdiv(n, TILE))
    begin = tl.maximum(begin, row_tile)
    if begin < end:
        one = tl.load(vectors + rows[:, None].to(tl.int64) * WIDTH + width[None, :], mask=rows[:, None] < n, other=0.0)
        for tile in range(begin, end):
            columns = tile * TILE + tl.arange(0, TILE)
            other = tl.load(
                vectors + columns[None, :].to(tl.int64) * WIDTH + width[:, None], mask=columns[None, :] < n, other=0.0
            )
            dot = tl.dot(one, other)
            if tl.max(dot) >= least:
                kept = (dot >= least) & (rows[:, None] < columns[None, :]) & (rows[:, None] < last)
                flat = tl.reshape(kept, (TILE * TILE,)).to(tl.int32)
                at = tl.atomic_add(counter, tl.sum(flat).to(tl.int64)) + tl.cumsum(flat).to(tl.int64) - 1
                pair = (rows[:, None].to(tl.int64) << 32) | columns[None, :].to(tl.int64)
                fits = (flat > 0) & (at < room)
                tl.store(found + at, tl.reshape(pair, (TILE * TILE,)), mask=fits)
                tl.store(product + at, tl.reshape(dot, (TILE * TILE,)), mask=fits)


def pairs_on_cuda(vectors: NDArray[np.int16], theta: float) -> Iterator[tuple[Longs, Longs]]:
    """All pairs of vectors whose cosine is at least theta, the first of each before the second.

    Args:
        vectors: Vectors of whole numbers, a power of two of them each.
        theta: The least cosine.
    """
    import torch

    n, width = vectors.shape
    if n < 2:
        return
    length = squared(vectors)
    least = float(np.float32(theta * length.min() * (1 - 1e-6)))
    on_device: Any = torch.from_numpy(vectors).cuda().half()
    room = min(_ROOM, max(1 << 16, n * (n - 1) // 2))
    found: Any = torch.empty(room, dtype=torch.int64, device="cuda")
    product: Any = torch.empty(room, dtype=torch.float32, device="cuda")
    counter: Any = torch.zeros(1, dtype=torch.int64, device="cuda")
    spans = _parts(_parts(n, _TILE), _SPAN)
    bands = [(begin, min(n, begin + _BAND)) for begin in range(0, n, _BAND)][::-1]
    while bands:
        first, last = bands.pop()
        counter.zero_()
        grid = spans, _parts(last - first, _TILE)
        _compiled()[grid](
            on_device, found, product, counter, n, first, last, least, room,
            WIDTH=width, TILE=_TILE, SPAN=_SPAN, num_warps=8, num_stages=3,
        )  # fmt: skip
        size = int(counter.item())
        if size > room:
            middle = first + max(_TILE, (last - first) // 2 // _TILE * _TILE)
            bands += [(middle, last), (first, middle)]
            continue
        pairs, dot = found[:size].cpu().numpy(), product[:size].cpu().numpy().astype(np.float64)
        one, other = pairs >> 32, pairs & 0xFFFFFFFF
        good = close(dot, length[one], length[other], theta)
        yield one[good], other[good]


def _parts(whole: int, size: int) -> int:
    """How many parts of some size cover the whole."""
    return -(-whole // size)
