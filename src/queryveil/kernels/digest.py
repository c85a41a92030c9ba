"""128-bit digests of many byte strings at once: SipHash-1-3.

Aumasson and Bernstein, SipHash: a fast short-input PRF, INDOCRYPT 2012; one round a word and three at the end, as in
the hash tables of Python and Rust; the 128-bit output is the one of its reference code.

Ids of users, queries and words follow from these digests, so the key is fixed: the same text has the same digest
in every run, on every engine. A keyed-quality function, and not a plain checksum, because queries are typed by
strangers who must not be able to make two of them collide with little effort. But who knows the key may succeed with
much effort; so on reading, texts are compared by a second digest too, whose key nobody knows.
"""

import numpy as np

from queryveil.kernels._jit import inlined, kernel
from queryveil.kernels.types import Bytes, Longs, ULongs

_KEY0 = np.uint64(0x7175657279766569)
_KEY1 = np.uint64(0x6C2D6C6F672D3031)
_INIT0 = np.uint64(0x736F6D6570736575)
_INIT1 = np.uint64(0x646F72616E646F6D)
_INIT2 = np.uint64(0x6C7967656E657261)
_INIT3 = np.uint64(0x7465646279746573)
_EIGHT = np.uint64(8)
_C13, _C16, _C17, _C21, _C32 = np.uint64(13), np.uint64(16), np.uint64(17), np.uint64(21), np.uint64(32)
_L51, _L48, _L47, _L43 = np.uint64(51), np.uint64(48), np.uint64(47), np.uint64(43)
_WIDE = np.uint64(0xEE)
_WIDE_TAIL = np.uint64(0xDD)
_TOP = np.uint64(56)
_BYTE = np.uint64(0xFF)


State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@inlined
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> State:
    v0 = v0 + v1
    v1 = (v1 << _C13) | (v1 >> _L51)
    v1 ^= v0
    v0 = (v0 << _C32) | (v0 >> _C32)
    v2 = v2 + v3
    v3 = (v3 << _C16) | (v3 >> _L48)
    v3 ^= v2
    v0 = v0 + v3
    v3 = (v3 << _C21) | (v3 >> _L43)
    v3 ^= v0
    v2 = v2 + v1
    v1 = (v1 << _C17) | (v1 >> _L47)
    v1 ^= v2
    v2 = (v2 << _C32) | (v2 >> _C32)
    return v0, v1, v2, v3


@kernel
def digests(
    data: Bytes, starts: Longs, ends: Longs, key0: np.uint64 = _KEY0, key1: np.uint64 = _KEY1
) -> tuple[ULongs, ULongs]:
    """Digest every data[starts[i]:ends[i]]; gives the low and the high 64 bits."""
    n = len(starts)
    low = np.empty(n, np.uint64)
    high = np.empty(n, np.uint64)
    for i in range(n):
        start, end = starts[i], ends[i]
        length = end - start
        v0, v1 = key0 ^ _INIT0, key1 ^ _INIT1 ^ _WIDE
        v2, v3 = key0 ^ _INIT2, key1 ^ _INIT3
        at = start
        for _ in range(length >> 3):
            m = np.uint64(0)
            for b in range(8):
                m |= np.uint64(data[at + b]) << np.uint64(8 * b)
            at += 8
            v3 ^= m
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
            v0 ^= m
        m = (np.uint64(length) & _BYTE) << _TOP
        shift = np.uint64(0)
        while at < end:
            m |= np.uint64(data[at]) << shift
            shift += _EIGHT
            at += 1
        v3 ^= m
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= m
        v2 ^= _WIDE
        for _ in range(3):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        low[i] = v0 ^ v1 ^ v2 ^ v3
        v1 ^= _WIDE_TAIL
        for _ in range(3):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        high[i] = v0 ^ v1 ^ v2 ^ v3
    return low, high
