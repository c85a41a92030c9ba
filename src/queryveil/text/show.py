"""Text of a log, names of files and numbers, in a form for people."""

import json
import math
import re
import unicodedata
from functools import cache
from typing import Any

_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""They are part of the spelling of Persian and of scripts of India, and harmless."""
_OPEN, _CLOSE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


def printable(text: str) -> str:
    """Text without characters that could control a terminal or break a document."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)


def isolated(text: str) -> str:
    """Printable text in which what is written from right to left does not move what stands beside it.

    Applying it twice changes nothing more.
    """
    if text.isascii():
        return printable(text)
    bare = printable(text.replace(_OPEN, "").replace(_CLOSE, ""))
    return _right_to_left().sub(rf"{_OPEN}\g<0>{_CLOSE}", bare)


@cache
def _right_to_left() -> re.Pattern[str]:
    """Letters that are written from right to left, with everything between them that has no direction of its own."""
    letters = [chr(c) for c in range(0x590, 0x10000) if unicodedata.bidirectional(chr(c)) in ("R", "AL")]
    some = f"[{''.join(map(re.escape, letters))}]"
    return re.compile(rf"{some}(?:[^A-Za-z'\"]*{some})?[{_JOINERS}\u0591-\u05c7\u064b-\u065f]*")


def shortened(text: str, most: int) -> str:
    """The beginning of a text, with an ellipsis if it is longer; no mark is cut off its letter."""
    if len(text) <= most:
        return text
    end = most - 1
    while end > 1 and (unicodedata.category(text[end])[0] == "M" or text[end] in _JOINERS):
        end -= 1
    return f"{text[:end]}…"


def percent(value: float) -> str:
    """A share in per cent, such as `14.8 %`. Only nothing is `0.0 %`, and only everything is `100.0 %`."""
    value = round(value, 12)  # a sum of floats may miss 0 or 1 by less than that
    if 0 < abs(value) < 0.001:
        return "< 0.1 %" if value > 0 else "> -0.1 %"
    if 0.999 < value < 1:
        return "> 99.9 %"
    return f"{100 * value:.1f} %"


def json_text(value: Any) -> str:
    """Standard JSON for a program to read, with null for numbers that are infinite or undefined."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def json_line(value: Any) -> str:
    """The same on one line."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
