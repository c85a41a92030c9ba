"""Scripts: which letters a text is written in."""

import sys
from functools import cache

import numpy as np
import pyarrow as pa

from queryveil.kernels.types import Bytes, Longs
from queryveil.text.arrays import byte_spans

_RANGES = {
    "latin": ((0x41, 0x5A), (0x61, 0x7A), (0xAA, 0xAA), (0xBA, 0xBA), (0xC0, 0x24F), (0x1E00, 0x1EFF),
              (0xA720, 0xA7FF)),
    "greek": ((0x370, 0x374), (0x376, 0x377), (0x37A, 0x37D), (0x37F, 0x3E1), (0x3F0, 0x3FF), (0x1F00, 0x1FFF)),
    "cyrillic": ((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    "han": ((0x2E80, 0x2FD5), (0x3005, 0x3007), (0x3021, 0x3029), (0x303B, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
            (0xF900, 0xFAFF), (0x20000, 0x3FFFD)),
    "kana": ((0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF)),
    "hangul": ((0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97C), (0xAC00, 0xD7FB)),
    "thai": ((0xE01, 0xE3A), (0xE40, 0xE4E)),
    "lao": ((0xE81, 0xEBD), (0xEC0, 0xECE), (0xEDC, 0xEDF)),
    "khmer": ((0x1780, 0x17D3), (0x17D7, 0x17D7), (0x17DC, 0x17DD)),
    "burmese": ((0x1000, 0x103F), (0x1050, 0x109F), (0xA9E0, 0xA9FE), (0xAA60, 0xAA7F)),
    "arabic": ((0x620, 0x65F), (0x66E, 0x6D3), (0x6D5, 0x6DC), (0x6E1, 0x6E8), (0x6EA, 0x6EF), (0x6FA, 0x6FF),
               (0x750, 0x77F), (0x8A0, 0x8E1), (0x8E3, 0x8FF)),
    "hebrew": ((0x591, 0x5BD), (0x5C1, 0x5C5), (0x5C7, 0x5C7), (0x5D0, 0x5F2)),
    "armenian": ((0x531, 0x556), (0x560, 0x588)),
    "georgian": ((0x10A0, 0x10FA), (0x10FC, 0x10FF), (0x1C90, 0x1CBF), (0x2D00, 0x2D2D)),
    "ethiopic": ((0x1200, 0x135F), (0x1380, 0x138F)),
    "devanagari": ((0x900, 0x963), (0x971, 0x97F)),
    "bengali": ((0x980, 0x9E3), (0x9F0, 0x9F1)),
    "gurmukhi": ((0xA01, 0xA5E), (0xA70, 0xA75)),
    "gujarati": ((0xA81, 0xAE3),),
    "odia": ((0xB01, 0xB63), (0xB71, 0xB71)),
    "tamil": ((0xB82, 0xBD7),),
    "telugu": ((0xC00, 0xC63),),
    "kannada": ((0xC80, 0xCE3),),
    "malayalam": ((0xD00, 0xD63),),
    "sinhala": ((0xD81, 0xDDF),),
    "tibetan": ((0xF00, 0xF00), (0xF40, 0xF84), (0xF88, 0xFBC)),
    "mongolian": ((0x1820, 0x18AA),),
}  # fmt: skip
"""The code points of the letters of each script, first and last; letters of scripts that are not here count as none."""

SCRIPTS = tuple(_RANGES)
"""The scripts that are known, in the order of their bits."""


def bit(*scripts: str) -> int:
    """The bits of some scripts."""
    return sum(1 << SCRIPTS.index(script) for script in set(scripts))


def characters(*scripts: str) -> str:
    """The letters of scripts as what stands in the brackets of a regular expression."""
    return "".join(f"{chr(first)}-{chr(last)}" for script in scripts for first, last in _RANGES[script])


@cache
def _table(ascii_only: bool) -> Bytes:
    table = np.zeros(128 if ascii_only else sys.maxunicode + 1, np.uint8)
    for number, ranges in enumerate(_RANGES.values(), 1):
        for first, last in ranges:
            table[first : last + 1] = number
    return table


def scripts_of(texts: pa.Array) -> Longs:
    """The scripts of each text, as bits in the order of `SCRIPTS`.

    Example:
        >>> [bin(found) for found in scripts_of(pa.array(["tea", "3 + 4", "tee καφές"]))]
        ['0b1', '0b0', '0b11']
    """
    from queryveil.kernels.scripts import scripts_of as of_spans

    data, starts, ends = byte_spans(texts)
    return of_spans(data, starts, ends, _table(len(data) == 0 or int(data.max()) < 128))
