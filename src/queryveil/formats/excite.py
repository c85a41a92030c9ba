"""The format of the Excite logs of 1997 to 2001: user, yymmddhhmmss, query, tab separated, no clicks."""

import re

from queryveil.formats.delimited import Layout, delimited_lines
from queryveil.formats.rows import ReadOptions
from queryveil.formats.source import Lines

NAMED_COLUMNS = False
_LAYOUT = Layout(columns=("user", "time", "query"), counts=(3,))
_ROW = re.compile(rb"[^\t]+\t\d{12}\t[^\t]*\r?")


def sniff(head: bytes) -> bool:
    """Whether most of the first lines have twelve digits between two tabs."""
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    return sum(bool(_ROW.fullmatch(line)) for line in lines) > 0.6 * len(lines)


def lines(file: str, head: bytes, options: ReadOptions) -> Lines:
    """How the lines of Excite files become rows."""
    return delimited_lines(_LAYOUT, options.encoding or "utf-8")
